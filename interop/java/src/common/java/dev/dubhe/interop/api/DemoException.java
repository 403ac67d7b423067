package dev.dubhe.interop.api;

/** The checked exception that {@link EchoService#throwChecked} declares. */
public class DemoException extends Exception {
    private static final long serialVersionUID = 1L;

    private int code;
    private String reason;

    public DemoException() {}

    public DemoException(String message, int code, String reason) {
        super(message);
        this.code = code;
        this.reason = reason;
    }

    public int getCode() {
        return code;
    }

    public void setCode(int code) {
        this.code = code;
    }

    public String getReason() {
        return reason;
    }

    public void setReason(String reason) {
        this.reason = reason;
    }
}

package dev.dubhe.interop.api;

/** An unchecked exception that {@link EchoService#throwRuntime} declares all the same. */
public class DemoRuntimeException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private int code;

    public DemoRuntimeException() {}

    public DemoRuntimeException(String message, int code) {
        super(message);
        this.code = code;
    }

    public int getCode() {
        return code;
    }

    public void setCode(int code) {
        this.code = code;
    }
}

package dev.dubhe.interop.api;

/**
 * An unchecked exception that no signature reaches. 2.7 and 3.1 send it as it is, because it lives beside the
 * interface; 3.3 trusts only classes that signatures reach and answers a failure of its own.
 */
public class UndeclaredException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public UndeclaredException() {}

    public UndeclaredException(String message) {
        super(message);
    }
}

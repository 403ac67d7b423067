package dev.dubhe.interop.api;

/** A second service, exported with group and version. */
public interface GreetService {
    /** Answers {@code "hello, " + name}. */
    String greet(String name);

    /** Answers which provider this is: {@code NAME#PID}. */
    String who();
}

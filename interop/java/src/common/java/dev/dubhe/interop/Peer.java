package dev.dubhe.interop;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.RegistryConfig;

/** What all programs share: configuration pieces and the way they end. */
final class Peer {
    private static final CountDownLatch END = new CountDownLatch(1);

    private Peer() {}

    static String pid() {
        return ManagementFactory.getRuntimeMXBean().getName().split("@")[0];
    }

    static ApplicationConfig application(Args args, String name) {
        ApplicationConfig application = new ApplicationConfig(args.get("app", name));
        application.setQosEnable(false);
        application.setQosEnableCompatible(false);
        application.setMetadataType(args.get("metadata", "local"));
        Compat.configure(application, args.get("register-mode", "interface"), args.number("metadata-port", 0),
                args.get("metadata-protocol", null));
        return application;
    }

    static RegistryConfig registry(Args args) {
        RegistryConfig registry = new RegistryConfig(args.get("registry", RegistryConfig.NO_AVAILABLE));
        registry.setTimeout(args.number("registry-timeout", 10_000));
        if (args.get("registry-group", null) != null) {
            registry.setGroup(args.get("registry-group", null));
        }
        return registry;
    }

    /** From now on SIGTERM, SIGINT and (unless {@code --stdin ignore}) the end of stdin ask the program to stop. */
    static void listenForEnd(Args args) {
        listenForEnd(args, () -> { });
    }

    /** The same; a line from stdin runs {@code order}. */
    static void listenForEnd(Args args, Runnable order) {
        for (String name : new String[] {"TERM", "INT"}) {
            sun.misc.Signal.handle(new sun.misc.Signal(name), signal -> END.countDown());
        }
        if ("ignore".equals(args.get("stdin", "watch"))) {
            return;
        }
        Thread watcher = new Thread(() -> drainStdin(order), "stdin");
        watcher.setDaemon(true);
        watcher.start();
    }

    private static void drainStdin(Runnable order) {
        try {
            for (int next = System.in.read(); next >= 0; next = System.in.read()) {
                if (next == '\n') {
                    order.run();
                }
            }
        } catch (IOException closed) {
            // the same as its end
        }
        END.countDown();
    }

    static void awaitEnd() throws InterruptedException {
        END.await();
    }

    /** Waits; answers true when the program was asked to stop meanwhile. */
    static boolean endedWithin(long nanos) throws InterruptedException {
        return END.await(nanos, TimeUnit.NANOSECONDS);
    }
}

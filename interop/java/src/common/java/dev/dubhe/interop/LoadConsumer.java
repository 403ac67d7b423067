package dev.dubhe.interop;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

import dev.dubhe.interop.api.EchoService;
import dev.dubhe.interop.api.GreetService;

/**
 * Calls {@code who()} at a steady rate. After {@code READY load VERSION PID} it prints a JSON line every second
 * ({@code {"second":3,"ok":50,"failed":0,"by":{"A#12":50},"errors":{}}}) and a last one with {@code "done":true} and
 * the totals, when the time is over, stdin ends or SIGTERM comes.
 */
public final class LoadConsumer {
    private static final long SECOND = 1_000_000_000L;

    private final Tally second = new Tally();
    private final Tally total = new Tally();

    private LoadConsumer() {}

    public static void main(String[] raw) throws Exception {
        Args args = new Args(raw);
        References references = new References(args);
        Supplier<String> who;
        if ("greet".equals(args.get("service", "echo"))) {
            GreetService greet = references.greet();
            who = greet::who;
        } else {
            EchoService echo = references.echo();
            who = echo::who;
        }
        Peer.listenForEnd(args);
        Out.line("READY load " + Compat.VERSION + " " + Peer.pid());
        new LoadConsumer().run(who, args.number("rate", 50), args.number("duration", Integer.MAX_VALUE));
        System.exit(0);
    }

    private void run(Supplier<String> who, int rate, int seconds) throws InterruptedException {
        ExecutorService pool = Executors.newCachedThreadPool();
        long start = System.nanoTime();
        long calls = 0;
        int passed = 0;
        while (passed < seconds) {
            pool.execute(() -> call(who));
            calls++;
            if (Peer.endedWithin(Math.max(0, start + calls * SECOND / rate - System.nanoTime()))) {
                break;
            }
            if (System.nanoTime() - start >= (passed + 1) * SECOND) {
                passed++;
                Map<String, Object> line = new LinkedHashMap<>();
                line.put("second", passed);
                Out.line(Out.json(second.take(line)));
            }
        }
        pool.shutdown();
        pool.awaitTermination(10, java.util.concurrent.TimeUnit.SECONDS);
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("done", true);
        Out.line(Out.json(total.take(line)));
    }

    private void call(Supplier<String> who) {
        try {
            String by = who.get();
            second.ok(by);
            total.ok(by);
        } catch (Throwable problem) {
            String text = Cases.describe(problem);
            text = text.length() > 300 ? text.substring(0, 300) : text;
            second.failed(text);
            total.failed(text);
        }
    }

    private static final class Tally {
        private final Map<String, Integer> by = new TreeMap<>();
        private final Map<String, Integer> errors = new TreeMap<>();
        private int ok;
        private int failed;

        synchronized void ok(String provider) {
            ok++;
            by.merge(provider, 1, Integer::sum);
        }

        synchronized void failed(String error) {
            failed++;
            if (errors.size() < 5 || errors.containsKey(error)) {
                errors.merge(error, 1, Integer::sum);
            }
        }

        synchronized Map<String, Object> take(Map<String, Object> line) {
            line.put("ok", ok);
            line.put("failed", failed);
            line.put("by", new TreeMap<>(by));
            line.put("errors", new TreeMap<>(errors));
            by.clear();
            errors.clear();
            ok = 0;
            failed = 0;
            return line;
        }
    }
}

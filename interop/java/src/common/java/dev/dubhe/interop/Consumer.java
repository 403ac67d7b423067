package dev.dubhe.interop;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;

/**
 * Calls every method of the services with fixed inputs and prints one JSON line for each case, after
 * {@code READY consumer VERSION}. Exit status 0: all held; 1: some did not; 2: could not start.
 */
public final class Consumer {
    private Consumer() {}

    public static void main(String[] raw) throws Exception {
        Args args = new Args(raw);
        PrintStream to = Out.open(args.get("out", "-"));
        List<String> services = Arrays.asList(args.get("services", "echo,greet").split(","));
        List<String> kinds = Arrays.asList(args.get("kinds", "typed,generic").split(","));
        Cases cases = new Cases(to, args.get("only", ""));

        References references;
        try {
            references = new References(args);
        } catch (RuntimeException problem) {
            cases.report("start", false, Cases.describe(problem));
            System.exit(2);
            return;
        }
        Out.line("READY consumer " + Compat.VERSION + " " + Peer.pid());

        boolean direct = args.get("url", null) != null;
        boolean filters = !direct || Compat.DIRECT_RUNS_FILTERS;
        boolean echo = services.contains("echo");
        boolean greet = services.contains("greet");
        if (kinds.contains("typed")) {
            if (echo) {
                group(cases, "typed/refer", () -> new TypedCases(cases, references.echo(), filters).run());
            }
            if (greet) {
                group(cases, "typed/refer-greet", () -> TypedCases.greet(cases, references.greet()));
            }
            if (greet && direct) {
                group(cases, "typed/refer-wrong-group", () -> TypedCases.wrongGroup(cases, references.wrongGroup()));
            }
        }
        if (kinds.contains("generic")) {
            if (echo) {
                group(cases, "generic/refer", () -> new GenericCases(cases, references.genericEcho(), filters).run());
            }
            if (greet) {
                group(cases, "generic/refer-greet", () -> GenericCases.greet(cases, references.genericGreet()));
            }
        }
        to.flush();
        System.exit(cases.failed() == 0 ? 0 : 1);
    }

    private static void group(Cases cases, String refer, Runnable all) {
        try {
            all.run();
        } catch (Throwable problem) {
            cases.report(refer, false, Cases.describe(problem));
        }
    }
}

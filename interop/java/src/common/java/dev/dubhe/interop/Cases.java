package dev.dubhe.interop;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/** Runs cases one after the other and prints one JSON line for each. */
final class Cases {
    private static final int DETAIL = 600;

    private final PrintStream to;
    private final String only;
    private int failed;

    Cases(PrintStream to, String only) {
        this.to = to;
        this.only = only;
    }

    interface Body {
        /** Answers a short text for the report, or throws. */
        String run() throws Throwable;
    }

    interface Call {
        Object run() throws Throwable;
    }

    void run(String name, Body body) {
        if (!name.startsWith(only)) {
            return;
        }
        try {
            report(name, true, body.run());
        } catch (Throwable problem) {
            report(name, false, describe(problem));
        }
    }

    /** A case whose call must answer the expected value. */
    void answers(String name, Object expected, Call call) {
        run(name, () -> same(expected, call.run()));
    }

    void report(String name, boolean ok, String detail) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("case", name);
        line.put("ok", ok);
        line.put("detail", cut(detail));
        to.println(Out.json(line));
        to.flush();
        if (!ok) {
            failed++;
        }
    }

    int failed() {
        return failed;
    }

    static String same(Object expected, Object actual) {
        if (!Objects.deepEquals(expected, actual)) {
            throw new AssertionError("expected " + show(expected) + ", got " + show(actual));
        }
        return "";
    }

    static void that(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    /** The throwable that the call must end with, which must be of this class. */
    static <T extends Throwable> T thrown(Class<T> type, Call call) {
        Object answer;
        try {
            answer = call.run();
        } catch (Throwable problem) {
            if (type.isInstance(problem)) {
                return type.cast(problem);
            }
            throw new AssertionError("expected " + type.getName() + ", got " + describe(problem));
        }
        throw new AssertionError("expected " + type.getName() + ", got the answer " + show(answer));
    }

    static String describe(Throwable problem) {
        String text = problem instanceof AssertionError ? problem.getMessage() : problem.toString();
        for (Throwable cause = problem.getCause(); cause != null; cause = cause.getCause()) {
            text += " <- " + cause;
        }
        return text;
    }

    private static String show(Object value) {
        if (value == null) {
            return "null";
        }
        String text = value instanceof byte[] ? ((byte[]) value).length + " bytes"
                : value instanceof int[] ? Arrays.toString((int[]) value)
                : value instanceof Object[] ? Arrays.deepToString((Object[]) value)
                : String.valueOf(value);
        return value.getClass().getName() + " " + (text.length() > 150 ? text.substring(0, 150) + "..." : text);
    }

    static String cut(String text) {
        return text.length() > DETAIL ? text.substring(0, DETAIL) + "..." : text;
    }
}

package dev.dubhe.interop;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;

import org.apache.dubbo.rpc.RpcException;
import org.apache.dubbo.rpc.service.GenericService;

import dev.dubhe.interop.api.Color;
import dev.dubhe.interop.api.DemoException;
import dev.dubhe.interop.api.DemoRuntimeException;
import dev.dubhe.interop.api.User;

/** The cases that call with {@code $invoke}, {@code generic=true}. */
final class GenericCases {
    private static final String STRING = "java.lang.String";
    private static final String LIST = "java.util.List";
    private static final String MAP = "java.util.Map";

    private final Cases cases;
    private final GenericService generic;
    private final boolean filters;

    /** {@code filters}: as in {@link TypedCases}. */
    GenericCases(Cases cases, GenericService generic, boolean filters) {
        this.cases = cases;
        this.generic = generic;
        this.filters = filters;
    }

    void run() {
        values();
        beans();
        special();
        if (filters) {
            contexts();
        }
        exceptions();
    }

    static void greet(Cases cases, GenericService greet) {
        cases.answers("generic/group-version", "hello, Ada", () -> greet.$invoke("greet", new String[] {STRING}, new Object[] {"Ada"}));
    }

    private Object call(String method, String type, Object value) {
        return generic.$invoke(method, new String[] {type}, new Object[] {value});
    }

    private void echoes(String name, String method, String type, Object value) {
        cases.answers("generic/" + name, value, () -> call(method, type, value));
    }

    private void values() {
        echoes("string", "echoString", STRING, Fixtures.BEYOND_BMP);
        echoes("string-null", "echoString", STRING, null);
        echoes("boolean", "echoBoolean", "boolean", true);
        echoes("int", "echoInt", "int", Integer.MIN_VALUE);
        echoes("long", "echoLong", "long", 7L);
        echoes("double", "echoDouble", "double", 12.25);
        echoes("boxed-int", "echoBoxedInt", "java.lang.Integer", 5);
        echoes("boxed-long-null", "echoBoxedLong", "java.lang.Long", null);
        echoes("bytes", "echoBytes", "byte[]", Fixtures.pattern(256));
        echoes("int-array", "echoIntArray", "int[]", new int[] {1, -1, 70_000});
        cases.run("generic/string-array", () -> {
            Object answer = call("echoStringArray", "java.lang.String[]", new String[] {"a", "b"});
            return Cases.same(new Object[] {"a", "b"}, answer);
        });
        echoes("date", "echoDate", "java.util.Date", Fixtures.DATE);
        echoes("big-decimal", "echoBigDecimal", "java.math.BigDecimal", new BigDecimal("1.50"));
        echoes("string-list", "echoStringList", LIST, new ArrayList<>(Arrays.asList("a", null, "c")));
        echoes("long-list", "echoLongList", LIST, new ArrayList<>(Arrays.asList(1L, 1L << 40)));
        cases.run("generic/string-set", () -> {
            Object answer = call("echoStringSet", "java.util.Set", new HashSet<>(Arrays.asList("x", "y")));
            return Cases.same(new HashSet<>(Arrays.asList("x", "y")), new HashSet<>((Collection<?>) answer));
        });
        Map<String, Object> map = new HashMap<>();
        map.put("text", "t");
        map.put("int", 7);
        map.put("long", 7L);
        map.put("null", null);
        echoes("object-map", "echoObjectMap", MAP, map);
        echoes("enum", "echoColor", Color.class.getName(), "BLUE");
    }

    private void beans() {
        cases.run("generic/user", () -> {
            Map<?, ?> answer = (Map<?, ?>) call("echoUser", User.class.getName(), Fixtures.userMap("Ada"));
            sameFields(Fixtures.userMap("Ada"), answer, "");
            Cases.that(answer.containsKey("nickname") && answer.get("nickname") == null, "nickname is not there as null");
            return "";
        });
        cases.run("generic/user-without-class", () -> {
            Map<String, Object> user = new HashMap<>();
            user.put("name", "Ada");
            user.put("age", 36);
            Map<?, ?> answer = (Map<?, ?>) call("echoUser", User.class.getName(), user);
            user.put("class", User.class.getName());
            sameFields(user, answer, "");
            return "";
        });
        cases.run("generic/user-list", () -> {
            List<Object> users = new ArrayList<>(Arrays.asList(Fixtures.userMap("one"), Fixtures.userMap("two")));
            List<?> answer = (List<?>) call("echoUserList", LIST, users);
            Cases.same(2, answer.size());
            sameFields(Fixtures.userMap("one"), (Map<?, ?>) answer.get(0), "0.");
            sameFields(Fixtures.userMap("two"), (Map<?, ?>) answer.get(1), "1.");
            return "";
        });
        cases.answers("generic/join", "a/1/2/true", () -> generic.$invoke("join",
                new String[] {STRING, "int", "long", "boolean"}, new Object[] {"a", 1, 2L, true}));
    }

    private void special() {
        cases.answers("generic/return-null", null, () -> generic.$invoke("returnNull", new String[0], new Object[0]));
        cases.answers("generic/void", null, () -> generic.$invoke("ping", new String[0], new Object[0]));
        cases.answers("generic/types-null", "named", () -> generic.$invoke("echoString", null, new Object[] {"named"}));
        cases.run("generic/one-way", () -> {
            String token = "generic-token-" + System.nanoTime();
            call("record", STRING, token);
            for (int i = 0; i < 100; i++) {
                if (((Collection<?>) generic.$invoke("recorded", new String[0], new Object[0])).contains(token)) {
                    return "seen after " + i + " looks";
                }
                Thread.sleep(20);
            }
            throw new AssertionError("the one-way call did not arrive");
        });
    }

    private void contexts() {
        cases.run("generic/attachments", () -> {
            Compat.sendAttachment("demo.a", "1");
            Map<?, ?> seen = (Map<?, ?>) generic.$invoke("attachments", new String[0], new Object[0]);
            Cases.same("1", seen.get("demo.a"));
            Object answer = Compat.answeredAttachment("demo.answer");
            Cases.that(String.valueOf(answer).startsWith("from "), "response attachment demo.answer is " + answer);
            return String.valueOf(answer);
        });
    }

    private void exceptions() {
        cases.run("generic/exception-checked", () -> failure(DemoException.class, "no luck",
                () -> generic.$invoke("throwChecked", new String[] {STRING, "int"}, new Object[] {"no luck", 42})));
        cases.run("generic/exception-runtime", () -> failure(DemoRuntimeException.class, "own class",
                () -> generic.$invoke("throwRuntime", new String[] {STRING, "int"}, new Object[] {"own class", -7})));
        cases.run("generic/no-such-method", () -> {
            Throwable problem = Cases.thrown(Throwable.class, () -> call("noSuchMethod", STRING, "x"));
            String text = Cases.describe(problem);
            Cases.that(text.contains("noSuchMethod"), "the message does not name the method: " + text);
            return text;
        });
        cases.run("generic/timeout", () -> {
            RpcException problem = Cases.thrown(RpcException.class, () -> call("sleep", "int", 1500));
            Cases.that(problem.isTimeout(), "expected code 2, got " + problem.getCode() + ": " + problem.getMessage());
            return "";
        });
    }

    /**
     * A failed generic call ends with a GenericException (of either package) that names class and message, or, from
     * some releases, with the original exception.
     */
    private static String failure(Class<? extends Throwable> type, String message, Cases.Call call) throws Exception {
        Throwable problem = Cases.thrown(Throwable.class, call);
        if (type.isInstance(problem)) {
            Cases.same(message, problem.getMessage());
            return "original exception";
        }
        Cases.that(problem.getClass().getSimpleName().equals("GenericException"), Cases.describe(problem));
        Cases.same(type.getName(), problem.getClass().getMethod("getExceptionClass").invoke(problem));
        Cases.same(message, problem.getClass().getMethod("getExceptionMessage").invoke(problem));
        return problem.getClass().getName();
    }

    /** Every expected field must be there and equal; more fields may be. */
    private static void sameFields(Map<?, ?> expected, Map<?, ?> actual, String path) {
        for (Map.Entry<?, ?> field : expected.entrySet()) {
            String name = path + field.getKey();
            Object value = actual.get(field.getKey());
            try {
                sameField(field.getValue(), value, name);
            } catch (ClassCastException | AssertionError problem) {
                throw new AssertionError(name + ": " + problem.getMessage());
            }
        }
    }

    private static void sameField(Object expected, Object actual, String path) {
        if (expected instanceof Map) {
            sameFields((Map<?, ?>) expected, (Map<?, ?>) actual, path + ".");
        } else if (expected instanceof List && ((List<?>) expected).get(0) instanceof Map) {
            sameFields((Map<?, ?>) ((List<?>) expected).get(0), (Map<?, ?>) ((List<?>) actual).get(0), path + ".0.");
        } else {
            Cases.same(expected, actual);
        }
    }
}

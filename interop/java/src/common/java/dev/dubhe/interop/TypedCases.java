package dev.dubhe.interop;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

import org.apache.dubbo.rpc.RpcException;

import dev.dubhe.interop.api.Color;
import dev.dubhe.interop.api.DemoException;
import dev.dubhe.interop.api.DemoRuntimeException;
import dev.dubhe.interop.api.EchoService;
import dev.dubhe.interop.api.GreetService;
import dev.dubhe.interop.api.Node;
import dev.dubhe.interop.api.User;

/** The cases that call through the interface. */
final class TypedCases {
    private final Cases cases;
    private final EchoService echo;
    private final boolean filters;

    /** {@code filters}: whether the client runs the consumer filters, which carry response attachments. */
    TypedCases(Cases cases, EchoService echo, boolean filters) {
        this.cases = cases;
        this.echo = echo;
        this.filters = filters;
    }

    void run() {
        strings();
        numbers();
        arrays();
        times();
        collections();
        beans();
        special();
        exceptions();
        if (filters) {
            contexts();
        }
        load();
    }

    static void greet(Cases cases, GreetService greet) {
        cases.answers("typed/group-version", "hello, Ada", () -> greet.greet("Ada"));
    }

    static void wrongGroup(Cases cases, GreetService nobody) {
        cases.run("typed/wrong-group", () -> {
            RpcException problem = Cases.thrown(RpcException.class, () -> nobody.greet("Ada"));
            Cases.that(!problem.isTimeout(), "timed out instead of a refusal: " + problem.getMessage());
            return problem.getMessage();
        });
    }

    private void strings() {
        cases.answers("typed/string", "hello", () -> echo.echoString("hello"));
        cases.answers("typed/string-empty", "", () -> echo.echoString(""));
        cases.answers("typed/string-null", null, () -> echo.echoString(null));
        cases.answers("typed/string-beyond-bmp", Fixtures.BEYOND_BMP, () -> echo.echoString(Fixtures.BEYOND_BMP));
        cases.answers("typed/string-long", Fixtures.longText(), () -> echo.echoString(Fixtures.longText()));
    }

    private void numbers() {
        cases.run("typed/boolean", () -> {
            Cases.same(true, echo.echoBoolean(true));
            return Cases.same(false, echo.echoBoolean(false));
        });
        for (byte value : new byte[] {0, 1, -1, Byte.MIN_VALUE, Byte.MAX_VALUE}) {
            cases.answers("typed/byte/" + value, value, () -> echo.echoByte(value));
        }
        for (short value : new short[] {0, -1, Short.MIN_VALUE, Short.MAX_VALUE}) {
            cases.answers("typed/short/" + value, value, () -> echo.echoShort(value));
        }
        for (int value : new int[] {0, 47, 48, -2049, 262144, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
            cases.answers("typed/int/" + value, value, () -> echo.echoInt(value));
        }
        for (long value : new long[] {0, 15, 16, -2049, 1L << 31, Long.MIN_VALUE, Long.MAX_VALUE}) {
            cases.answers("typed/long/" + value, value, () -> echo.echoLong(value));
        }
        for (float value : new float[] {0f, 1f, -0.5f, 3.14159f, Float.MAX_VALUE, Float.NaN}) {
            cases.answers("typed/float/" + value, value, () -> echo.echoFloat(value));
        }
        for (double value : new double[] {0, 1, 127, 0.001, 12.25, -Math.PI, Double.MAX_VALUE, Double.NEGATIVE_INFINITY}) {
            cases.answers("typed/double/" + value, value, () -> echo.echoDouble(value));
        }
        cases.run("typed/boxed", () -> {
            Cases.same(true, echo.echoBoxedBoolean(true));
            Cases.same((byte) -7, echo.echoBoxedByte((byte) -7));
            Cases.same((short) 300, echo.echoBoxedShort((short) 300));
            Cases.same(70_000, echo.echoBoxedInt(70_000));
            Cases.same(7L, echo.echoBoxedLong(7L));
            Cases.same(1.5f, echo.echoBoxedFloat(1.5f));
            return Cases.same(-2.25, echo.echoBoxedDouble(-2.25));
        });
        cases.run("typed/boxed-null", () -> {
            Cases.same(null, echo.echoBoxedBoolean(null));
            Cases.same(null, echo.echoBoxedByte(null));
            Cases.same(null, echo.echoBoxedShort(null));
            Cases.same(null, echo.echoBoxedInt(null));
            Cases.same(null, echo.echoBoxedLong(null));
            Cases.same(null, echo.echoBoxedFloat(null));
            return Cases.same(null, echo.echoBoxedDouble(null));
        });
        BigDecimal decimal = new BigDecimal("-12345678901234567890.0123456789");
        cases.answers("typed/big-decimal", decimal, () -> echo.echoBigDecimal(decimal));
        for (String value : new String[] {"0", "-1", "123456789012345678901234567890", "-340282366920938463463374607431768211456"}) {
            BigInteger integer = new BigInteger(value);
            cases.answers("typed/big-integer/" + value, integer, () -> echo.echoBigInteger(integer));
        }
    }

    private void arrays() {
        cases.answers("typed/bytes", Fixtures.pattern(256), () -> echo.echoBytes(Fixtures.pattern(256)));
        cases.answers("typed/bytes-empty", new byte[0], () -> echo.echoBytes(new byte[0]));
        cases.answers("typed/bytes-large", Fixtures.pattern(300_000), () -> echo.echoBytes(Fixtures.pattern(300_000)));
        cases.answers("typed/bytes-null", null, () -> echo.echoBytes(null));
        int[] ints = {1, -1, 100_000, Integer.MIN_VALUE};
        cases.answers("typed/int-array", ints, () -> echo.echoIntArray(ints));
        String[] strings = {"a", null, Fixtures.BEYOND_BMP};
        cases.answers("typed/string-array", strings, () -> echo.echoStringArray(strings));
    }

    private void times() {
        cases.answers("typed/date", Fixtures.DATE, () -> echo.echoDate(Fixtures.DATE));
        cases.answers("typed/date-null", null, () -> echo.echoDate(null));
        LocalDate day = LocalDate.of(2024, 2, 29);
        cases.answers("typed/local-date", day, () -> echo.echoLocalDate(day));
        LocalDateTime time = LocalDateTime.of(2024, 2, 29, 23, 59, 58, 123_456_789);
        cases.answers("typed/local-date-time", time, () -> echo.echoLocalDateTime(time));
    }

    private void collections() {
        List<String> strings = new ArrayList<>(Arrays.asList("a", "", null, Fixtures.BEYOND_BMP));
        cases.answers("typed/string-list", strings, () -> echo.echoStringList(strings));
        cases.answers("typed/list-empty", new ArrayList<>(), () -> echo.echoStringList(new ArrayList<>()));
        cases.answers("typed/list-null", null, () -> echo.echoStringList(null));
        List<Long> longs = new ArrayList<>(Arrays.asList(1L, -1L, Long.MAX_VALUE, null));
        cases.answers("typed/long-list", longs, () -> echo.echoLongList(longs));
        List<Long> asList = Arrays.asList(1L, 2L);
        cases.answers("typed/long-list-as-list", asList, () -> echo.echoLongList(asList));
        Set<String> set = new HashSet<>(Arrays.asList("x", "y", "z"));
        cases.answers("typed/string-set", set, () -> echo.echoStringSet(set));
        cases.answers("typed/object-map", Fixtures.objectMap(), () -> echo.echoObjectMap(Fixtures.objectMap()));
        cases.answers("typed/map-empty", new HashMap<>(), () -> echo.echoObjectMap(new HashMap<>()));
        cases.answers("typed/map-null", null, () -> echo.echoObjectMap(null));
        Map<String, Long> longMap = new HashMap<>();
        longMap.put("one", 1L);
        longMap.put("large", 1L << 40);
        cases.answers("typed/long-map", longMap, () -> echo.echoLongMap(longMap));
    }

    private void beans() {
        cases.answers("typed/enum", Color.BLUE, () -> echo.echoColor(Color.BLUE));
        cases.answers("typed/enum-null", null, () -> echo.echoColor(null));
        cases.answers("typed/user", Fixtures.user("Ada"), () -> echo.echoUser(Fixtures.user("Ada")));
        cases.answers("typed/user-unset", new User(), () -> echo.echoUser(new User()));
        cases.answers("typed/user-null", null, () -> echo.echoUser(null));
        List<User> users = new ArrayList<>(Arrays.asList(Fixtures.user("one"), null, Fixtures.user("two")));
        cases.answers("typed/user-list", users, () -> echo.echoUserList(users));
        User shared = Fixtures.user("shared");
        List<User> twice = new ArrayList<>(Arrays.asList(shared, shared));
        cases.answers("typed/user-list-shared", twice, () -> echo.echoUserList(twice));
        cases.run("typed/node-self-cycle", () -> {
            Node node = new Node("loop");
            node.setNext(node);
            node.getChildren().add(node);
            node.getChildren().add(new Node("leaf"));
            Node answer = echo.echoNode(node);
            Cases.same("loop", answer.getName());
            Cases.that(answer.getNext() == answer, "next is another object");
            Cases.same(2, answer.getChildren().size());
            Cases.that(answer.getChildren().get(0) == answer, "the first child is another object");
            return Cases.same("leaf", answer.getChildren().get(1).getName());
        });
        cases.answers("typed/join", "a/1/9000000000/true", () -> echo.join("a", 1, 9_000_000_000L, true));
    }

    private void special() {
        cases.answers("typed/return-null", null, echo::returnNull);
        cases.run("typed/void", () -> {
            echo.ping();
            return "";
        });
        cases.run("typed/$echo", () -> {
            Object probe = ((org.apache.dubbo.rpc.service.EchoService) echo).$echo("are you there");
            return Cases.same("are you there", probe);
        });
        cases.run("typed/who", () -> {
            String who = echo.who();
            Cases.that(who != null && who.contains("#"), "expected NAME#PID, got " + who);
            return who;
        });
        cases.run("typed/one-way", () -> {
            String token = "token-" + System.nanoTime();
            echo.record(token);
            for (int i = 0; i < 100; i++) {
                if (echo.recorded().contains(token)) {
                    return "seen after " + i + " looks";
                }
                Thread.sleep(20);
            }
            throw new AssertionError("the one-way call did not arrive");
        });
        cases.run("typed/async", () -> Cases.same("b/2/3/false",
                Compat.async(() -> echo.join("b", 2, 3L, false)).get(3, TimeUnit.SECONDS)));
    }

    private void exceptions() {
        cases.run("typed/exception-checked", () -> {
            DemoException problem = Cases.thrown(DemoException.class, () -> {
                echo.throwChecked("no luck", 42);
                return null;
            });
            Cases.same("no luck", problem.getMessage());
            Cases.same(42, problem.getCode());
            return Cases.same("asked for", problem.getReason());
        });
        cases.run("typed/exception-illegal-argument", () -> {
            IllegalArgumentException problem =
                    Cases.thrown(IllegalArgumentException.class, () -> echo.throwIllegalArgument("not this " + Fixtures.BEYOND_BMP));
            return Cases.same("not this " + Fixtures.BEYOND_BMP, problem.getMessage());
        });
        cases.run("typed/exception-runtime", () -> {
            DemoRuntimeException problem =
                    Cases.thrown(DemoRuntimeException.class, () -> echo.throwRuntime("own class", -7));
            Cases.same("own class", problem.getMessage());
            return Cases.same(-7, problem.getCode());
        });
        cases.run("typed/exception-undeclared", () -> {
            RuntimeException problem = Cases.thrown(RuntimeException.class, () -> echo.throwUndeclared("never announced"));
            String text = Cases.describe(problem);
            boolean untrusted = Compat.STRICT && problem instanceof RpcException && text.contains("expect Throwable");
            Cases.that(untrusted || text.contains("never announced"), "the message got lost: " + text);
            return untrusted ? "the class is not on this consumer's trusted list" : problem.getClass().getName();
        });
        cases.run("typed/timeout", () -> {
            long start = System.nanoTime();
            RpcException problem = Cases.thrown(RpcException.class, () -> echo.sleep(1500));
            long millis = (System.nanoTime() - start) / 1_000_000;
            Cases.that(problem.isTimeout(), "expected code 2, got " + problem.getCode() + ": " + problem.getMessage());
            Cases.that(millis >= References.SLEEP_TIMEOUT - 20 && millis < 1400, "after " + millis + " ms");
            return "after " + millis + " ms";
        });
        cases.answers("typed/after-timeout", 50, () -> echo.sleep(50));
    }

    private void contexts() {
        cases.run("typed/attachments", () -> {
            Map<String, String> expected = new HashMap<>();
            expected.put("demo.a", "1");
            expected.put("demo.text", Fixtures.BEYOND_BMP);
            expected.forEach(Compat::sendAttachment);
            Cases.same(expected, echo.attachments());
            Object answer = Compat.answeredAttachment("demo.answer");
            Cases.that(String.valueOf(answer).startsWith("from "), "response attachment demo.answer is " + answer);
            Cases.same("2", Compat.answeredAttachment("demo.count"));
            return String.valueOf(answer);
        });
        cases.answers("typed/attachments-only-once", Collections.emptyMap(), echo::attachments);
    }

    private void load() {
        cases.answers("typed/answer-1mb", Fixtures.pattern(1_000_000), () -> echo.big(1_000_000));
        cases.run("typed/concurrent", () -> {
            ExecutorService pool = Executors.newFixedThreadPool(32);
            try {
                List<Future<String>> answers = new ArrayList<>();
                for (int i = 0; i < 500; i++) {
                    String text = "call " + i;
                    answers.add(pool.submit(() -> echo.echoString(text)));
                }
                for (int i = 0; i < answers.size(); i++) {
                    Cases.same("call " + i, answers.get(i).get());
                }
            } finally {
                pool.shutdownNow();
            }
            return "";
        });
    }
}

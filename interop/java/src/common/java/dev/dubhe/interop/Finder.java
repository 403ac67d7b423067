package dev.dubhe.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

import org.apache.dubbo.rpc.RpcException;

import dev.dubhe.interop.api.EchoService;
import dev.dubhe.interop.api.GreetService;

/**
 * Has a client of both services for each of {@code --groups}, with nothing set that a provider may say, and makes a call when told
 * to. After {@code READY find VERSION PID} it reads commands from stdin, a line each, words separated by tabs, and prints a
 * JSON line for each ({@code {"ok":true,"detail":"A#12"}}).
 */
public final class Finder {
    private final Map<String, EchoService> echoes = new HashMap<>();
    private final Map<String, GreetService> greets = new HashMap<>();

    private Finder(References references, String[] groups) {
        for (String group : groups) {
            echoes.put(group, references.plainEcho(group));
            greets.put(group, references.plainGreet(group));
        }
    }

    public static void main(String[] raw) throws Exception {
        Args args = new Args(raw);
        Finder finder = new Finder(new References(args), args.need("groups").split(","));
        Out.line("READY find " + Compat.VERSION + " " + Peer.pid());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            Map<String, Object> answer = new LinkedHashMap<>();
            try {
                String detail = finder.execute(words[0], words[1]);
                answer.put("ok", true);
                answer.put("detail", detail);
            } catch (Throwable problem) {
                answer.put("ok", false);
                answer.put("detail", Cases.cut(Cases.describe(problem)));
            }
            Out.line(Out.json(answer));
        }
        System.exit(0);
    }

    private String execute(String command, String group) throws Throwable {
        switch (command) {
            case "echo":
                return echoes.get(group).who();
            case "greet":
                return greets.get(group).who();
            case "bean":
                return Cases.same(Fixtures.user("Ada"), echoes.get(group).echoUser(Fixtures.user("Ada")));
            case "timeout":
                return timeout(echoes.get(group));
            default:
                throw new IllegalArgumentException("no such command: " + command);
        }
    }

    /** The provider sets 300 ms for this method, and the default is 1 s. */
    private static String timeout(EchoService echo) throws Throwable {
        long start = System.nanoTime();
        RpcException problem = Cases.thrown(RpcException.class, () -> echo.sleep(1_500));
        long millis = (System.nanoTime() - start) / 1_000_000;
        Cases.that(problem.isTimeout(), "expected code 2, got " + problem.getCode() + ": " + problem.getMessage());
        Cases.that(millis >= 280 && millis < 900, "after " + millis + " ms");
        return "after " + millis + " ms";
    }
}

package dev.dubhe.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;

import org.apache.dubbo.common.URL;
import org.apache.dubbo.common.config.configcenter.DynamicConfiguration;
import org.apache.dubbo.common.config.configcenter.DynamicConfigurationFactory;
import org.apache.dubbo.common.extension.ExtensionLoader;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;
import org.apache.dubbo.registry.Registry;
import org.apache.dubbo.registry.RegistryFactory;

/**
 * Puts and removes rules, through Dubbo's own registry and config-centre clients, and shows the registry's tree. One command from the arguments, or
 * with {@code serve} any number of them from stdin, a line each, words separated by tabs. Prints
 * {@code READY rules} and, for each command, {@code DONE COMMAND} or {@code FAILED COMMAND WHY}.
 */
public final class Rules {
    private final Registry registry;
    private final DynamicConfiguration configuration;
    private final String address;
    private Tree tree;

    private Rules(Args args) {
        this.address = args.need("registry");
        DubboBootstrap.getInstance().application(Peer.application(args, "demo-rules"));
        URL url = URL.valueOf(address)
                .addParameter("application", "demo-rules")
                .addParameter("timeout", 10_000);
        registry = ExtensionLoader.getExtensionLoader(RegistryFactory.class)
                .getExtension(url.getProtocol())
                .getRegistry(url.setPath("org.apache.dubbo.registry.RegistryService"));
        configuration = ExtensionLoader.getExtensionLoader(DynamicConfigurationFactory.class)
                .getExtension(url.getProtocol())
                .getDynamicConfiguration(url);
    }

    public static void main(String[] raw) throws Exception {
        Args args = new Args(raw);
        Rules rules = new Rules(args);
        Out.line("READY rules " + Compat.VERSION + " " + Peer.pid());
        boolean ok = true;
        if (args.words.contains("serve")) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (!line.isEmpty()) {
                    ok &= rules.run(line.split("\t"));
                }
            }
        } else {
            ok = rules.run(raw);
        }
        System.exit(ok ? 0 : 1);
    }

    private boolean run(String[] raw) {
        String command = raw[0];
        try {
            Args args = new Args(raw);
            command = args.words.get(0);
            String answer = execute(command, args);
            Out.line("DONE " + command + answer);
            return true;
        } catch (Exception problem) {
            Out.line("FAILED " + command + " " + Cases.describe(problem).replace('\n', ' '));
            return false;
        }
    }

    private String execute(String command, Args args) throws Exception {
        switch (command) {
            case "put-route":
                registry.register(route(args));
                return "";
            case "remove-route":
                registry.unregister(route(args));
                return "";
            case "put-condition":
                publish(conditionKey(args), DynamicConfiguration.DEFAULT_GROUP, conditionRule(args));
                return " " + conditionKey(args);
            case "remove-condition":
                remove(conditionKey(args), DynamicConfiguration.DEFAULT_GROUP);
                return " " + conditionKey(args);
            case "publish":
                publish(args.need("key"), configGroup(args), content(args));
                return " " + args.need("key");
            case "remove":
                remove(args.need("key"), configGroup(args));
                return " " + args.need("key");
            case "tree":
                return " " + Out.json(tree().below(args.words.subList(1, args.words.size())));
            case "get":
                return " " + Out.json(configuration.getConfig(args.need("key"), configGroup(args)));
            default:
                throw new IllegalArgumentException("no such command");
        }
    }

    private Tree tree() throws Exception {
        if (tree == null) {
            tree = new Tree(address);
        }
        return tree;
    }

    /** The rule as the 2.6 admin writes it: a persistent node below the service's {@code routers}. */
    private static URL route(Args args) {
        URL url = URL.valueOf("route://0.0.0.0/" + args.need("interface"))
                .addParameter("category", "routers")
                .addParameter("router", "condition")
                .addParameter("dynamic", "false")
                .addParameter("enabled", args.get("enabled", "true"))
                .addParameter("force", args.get("force", "true"))
                .addParameter("runtime", "false")
                .addParameter("priority", args.get("priority", "0"))
                .addParameter("name", args.get("name", "demo"));
        if (args.get("group", null) != null) {
            url = url.addParameter("group", args.need("group"));
        }
        if (args.get("version", null) != null) {
            url = url.addParameter("version", args.need("version"));
        }
        return url.addParameterAndEncoded("rule", args.need("rule"));
    }

    private static String conditionKey(Args args) {
        String app = args.get("key", null);
        String service = app != null ? app : args.need("interface") + ":" + args.get("version", "") + ":" + args.get("group", "");
        return service + ".condition-router";
    }

    /** {@code --rule} holds one condition, or several separated by {@code ;}. */
    private static String conditionRule(Args args) {
        StringBuilder rule = new StringBuilder();
        boolean app = args.get("key", null) != null;
        rule.append("scope: ").append(app ? "application" : "service").append('\n');
        rule.append("key: ").append(app ? args.need("key") : args.need("interface")).append('\n');
        rule.append("force: ").append(args.get("force", "true")).append('\n');
        rule.append("runtime: true\n");
        rule.append("enabled: ").append(args.get("enabled", "true")).append('\n');
        rule.append("conditions:\n");
        for (String condition : args.need("rule").split(";")) {
            rule.append("  - '").append(condition.trim().replace("'", "''")).append("'\n");
        }
        return rule.toString();
    }

    private static String configGroup(Args args) {
        return args.get("config-group", DynamicConfiguration.DEFAULT_GROUP);
    }

    private static String content(Args args) throws Exception {
        String file = args.get("file", null);
        if (file != null) {
            return new String(Files.readAllBytes(Paths.get(file)), StandardCharsets.UTF_8);
        }
        return args.need("content").replace("\\n", "\n");
    }

    private void publish(String key, String group, String content) {
        if (!configuration.publishConfig(key, group, content)) {
            throw new IllegalStateException("not published: " + group + "/" + key);
        }
    }

    private void remove(String key, String group) {
        if (!configuration.removeConfig(key, group)) {
            throw new IllegalStateException("not removed: " + group + "/" + key);
        }
    }
}

package dev.dubhe.interop;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

import org.apache.dubbo.config.MethodConfig;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;
import org.apache.dubbo.rpc.service.GenericService;

import dev.dubhe.interop.api.EchoService;
import dev.dubhe.interop.api.GreetService;

/** Makes clients as the arguments tell: registry or direct address, group, version, migration step. */
final class References {
    /** The time-out of method {@code sleep}, in milliseconds; all others have {@code --timeout}. */
    static final int SLEEP_TIMEOUT = 500;

    private final Args args;

    References(Args args) {
        this.args = args;
        if (args.get("migration", null) != null) {
            System.setProperty("dubbo.application.service-discovery.migration", args.need("migration"));
        }
        DubboBootstrap.getInstance()
                .application(Peer.application(args, "demo-consumer"))
                .registry(Peer.registry(args))
                .start();
    }

    EchoService echo() {
        ReferenceConfig<EchoService> reference = new ReferenceConfig<>();
        reference.setId("typed-echo");
        reference.setInterface(EchoService.class);
        MethodConfig record = new MethodConfig();
        record.setName("record");
        record.setReturn(false);
        MethodConfig sleep = new MethodConfig();
        sleep.setName("sleep");
        sleep.setTimeout(SLEEP_TIMEOUT);
        reference.setMethods(Arrays.asList(record, sleep));
        return echoNamed(reference).get();
    }

    GenericService genericEcho() {
        ReferenceConfig<GenericService> reference = new ReferenceConfig<>();
        reference.setId("generic-echo");
        reference.setInterface(EchoService.class.getName());
        reference.setGeneric("true");
        reference.setParameters(new HashMap<>());
        reference.getParameters().put("sleep.timeout", String.valueOf(SLEEP_TIMEOUT));
        reference.getParameters().put("record.return", "false");
        return echoNamed(reference).get();
    }

    GreetService greet() {
        ReferenceConfig<GreetService> reference = new ReferenceConfig<>();
        reference.setId("typed-greet");
        reference.setInterface(GreetService.class);
        return greetNamed(reference).get();
    }

    GenericService genericGreet() {
        ReferenceConfig<GenericService> reference = new ReferenceConfig<>();
        reference.setId("generic-greet");
        reference.setInterface(GreetService.class.getName());
        reference.setGeneric("true");
        return greetNamed(reference).get();
    }

    /** A client of the group {@code nobody}, which no provider has; only useful with {@code --url}. */
    GreetService wrongGroup() {
        ReferenceConfig<GreetService> reference = new ReferenceConfig<>();
        reference.setId("wrong-group");
        reference.setInterface(GreetService.class);
        return configured(reference, "nobody", "1.0.0").get();
    }

    /** A client of the group whose settings are the provider's. */
    EchoService plainEcho(String group) {
        ReferenceConfig<EchoService> reference = new ReferenceConfig<>();
        reference.setId("echo-" + group);
        reference.setInterface(EchoService.class);
        return plain(reference, group, args.get("version", null)).get();
    }

    /** A client of the group whose settings are the provider's. */
    GreetService plainGreet(String group) {
        ReferenceConfig<GreetService> reference = new ReferenceConfig<>();
        reference.setId("greet-" + group);
        reference.setInterface(GreetService.class);
        return plain(reference, group, args.get("greet-version", "1.0.0")).get();
    }

    private <T> ReferenceConfig<T> echoNamed(ReferenceConfig<T> reference) {
        return configured(reference, args.get("group", null), args.get("version", null));
    }

    private <T> ReferenceConfig<T> greetNamed(ReferenceConfig<T> reference) {
        return configured(reference, args.get("greet-group", "g1"), args.get("greet-version", "1.0.0"));
    }

    private <T> ReferenceConfig<T> plain(ReferenceConfig<T> reference, String group, String version) {
        reference.setGroup(group);
        reference.setVersion(version);
        reference.setRetries(0);
        reference.setCheck(false);
        reference.setParameters(parameters());
        return reference;
    }

    private Map<String, String> parameters() {
        Map<String, String> parameters = new HashMap<>(args.pairs("param"));
        if (args.get("migration", null) != null) {
            parameters.put("migration.step", args.need("migration"));
        }
        return parameters;
    }

    private <T> ReferenceConfig<T> configured(ReferenceConfig<T> reference, String group, String version) {
        reference.setGroup(group);
        reference.setVersion(version);
        reference.setTimeout(args.number("timeout", 3000));
        reference.setRetries(args.number("retries", 0));
        reference.setCheck(args.flag("check", true));
        reference.setLoadbalance(args.get("loadbalance", null));
        reference.setCluster(args.get("cluster", null));
        reference.setUrl(args.get("url", null));
        Map<String, String> parameters = parameters();
        if (reference.getParameters() != null) {
            parameters.putAll(reference.getParameters());
        }
        reference.setParameters(parameters);
        return reference;
    }
}

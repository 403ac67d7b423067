package dev.dubhe.interop;

import java.util.Map;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.ServiceConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;

import dev.dubhe.interop.api.EchoService;
import dev.dubhe.interop.api.GreetService;

/**
 * A provider of both services. Prints {@code READY provider NAME PID PORT}, then serves until SIGTERM or the end of
 * stdin, stops gracefully and prints {@code STOPPED}. With {@code --later greet} it exports the second service only when a
 * line comes from stdin, and prints {@code EXPORTED greet}.
 */
public final class Provider {
    private Provider() {}

    public static void main(String[] raw) throws Exception {
        Args args = new Args(raw);
        String name = args.get("name", "java");
        boolean later = "greet".equals(args.get("later", null));
        System.setProperty("dubbo.service.shutdown.wait", args.get("shutdown-wait", "3000"));
        // How soon a service that is exported later shows in the application's instance; 3.1 waits half a minute by default.
        System.setProperty("dubbo.application.metadata.publish.delay", "1000");

        ProtocolConfig protocol = new ProtocolConfig("dubbo", args.number("port", 20880));
        if (args.get("host", null) != null) {
            protocol.setHost(args.get("host", null));
        }
        ApplicationConfig application = Peer.application(args, "demo-provider");
        EchoServiceImpl service = new EchoServiceImpl(name);

        ServiceConfig<EchoService> echo = new ServiceConfig<>();
        echo.setId("echo");
        echo.setInterface(EchoService.class);
        echo.setRef(service);
        configure(echo, args, args.get("group", null), args.get("version", null));

        ServiceConfig<GreetService> greet = new ServiceConfig<>();
        greet.setId("greet");
        greet.setInterface(GreetService.class);
        greet.setRef(service);
        configure(greet, args, args.get("greet-group", "g1"), args.get("greet-version", "1.0.0"));

        DubboBootstrap bootstrap = DubboBootstrap.getInstance();
        Peer.listenForEnd(args, later ? () -> exportLater(bootstrap, greet) : () -> { });
        bootstrap.application(application)
                .registry(Peer.registry(args))
                .protocol(protocol)
                .service(echo);
        if (args.number("tri-port", 0) != 0) {
            bootstrap.protocol(new ProtocolConfig("tri", args.number("tri-port", 0)));
        }
        if (!later) {
            bootstrap.service(greet);
        }
        bootstrap.start();
        Out.line("READY provider " + name + " " + Peer.pid() + " " + protocol.getPort());

        Peer.awaitEnd();
        bootstrap.stop();
        Out.line("STOPPED");
        System.exit(0);
    }

    private static void exportLater(DubboBootstrap bootstrap, ServiceConfig<?> service) {
        bootstrap.service(service);
        service.export();
        Out.line("EXPORTED greet");
    }

    private static void configure(ServiceConfig<?> service, Args args, String group, String version) {
        service.setGroup(group);
        service.setVersion(version);
        Map<String, String> parameters = args.pairs("param");
        if (!parameters.isEmpty()) {
            service.setParameters(parameters);
        }
        if (args.get("weight", null) != null) {
            service.setWeight(args.number("weight", 100));
        }
        if (args.get("token", null) != null) {
            service.setToken(args.get("token", null));
        }
    }
}

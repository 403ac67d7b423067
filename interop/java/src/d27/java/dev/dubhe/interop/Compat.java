package dev.dubhe.interop;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.rpc.RpcContext;

/** What is different in 2.7.23. */
final class Compat {
    static final String VERSION = "2.7.23";

    /** Whether only classes that trusted lists or signatures reach are read. */
    static final boolean STRICT = false;

    /** Whether a client of one direct address runs the consumer filters; without them attachments do not come back. */
    static final boolean DIRECT_RUNS_FILTERS = false;

    private Compat() {}

    /** Only interface-level registration here: every other mode is refused. */
    static void configure(ApplicationConfig application, String registerMode, int metadataPort, String metadataProtocol) {
        if (!"interface".equals(registerMode)) {
            throw new IllegalArgumentException("2.7 registers by interface only, not by " + registerMode);
        }
        if (metadataPort != 0) {
            application.setMetadataServicePort(metadataPort);
        }
    }

    /** Provider: attachments of the request. */
    static Map<String, Object> receivedAttachments() {
        return new HashMap<>(RpcContext.getContext().getObjectAttachments());
    }

    /** Provider: sets an attachment of the response. */
    static void answerAttachment(String key, String value) {
        RpcContext.getServerContext().setAttachment(key, value);
    }

    /** Consumer: sets an attachment of the next request of this thread. */
    static void sendAttachment(String key, String value) {
        RpcContext.getContext().setAttachment(key, value);
    }

    /** Consumer: an attachment of the last response of this thread, or null. */
    static Object answeredAttachment(String key) {
        return RpcContext.getServerContext().getObjectAttachment(key);
    }

    static <T> CompletableFuture<T> async(Callable<T> call) {
        return RpcContext.getContext().asyncCall(call);
    }
}

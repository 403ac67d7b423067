package dev.dubhe.interop;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.rpc.RpcContext;

/** What is different in 3.1.11. */
final class Compat {
    static final String VERSION = "3.1.11";

    /** Whether only classes that trusted lists or signatures reach are read. */
    static final boolean STRICT = false;

    /** Whether a client of one direct address runs the consumer filters. */
    static final boolean DIRECT_RUNS_FILTERS = true;

    private Compat() {}

    static void configure(ApplicationConfig application, String registerMode, int metadataPort, String metadataProtocol) {
        application.setRegisterMode(registerMode);
        application.setMetadataServiceProtocol(metadataProtocol);
        if (metadataPort != 0) {
            application.setMetadataServicePort(metadataPort);
        }
    }

    /** Provider: attachments of the request. */
    static Map<String, Object> receivedAttachments() {
        return new HashMap<>(RpcContext.getServerAttachment().getObjectAttachments());
    }

    /** Provider: sets an attachment of the response. */
    static void answerAttachment(String key, String value) {
        RpcContext.getServerContext().setAttachment(key, value);
    }

    /** Consumer: sets an attachment of the next request of this thread. */
    static void sendAttachment(String key, String value) {
        RpcContext.getClientAttachment().setAttachment(key, value);
    }

    /** Consumer: an attachment of the last response of this thread, or null. */
    static Object answeredAttachment(String key) {
        return RpcContext.getServerContext().getObjectAttachment(key);
    }

    static <T> CompletableFuture<T> async(Callable<T> call) {
        return RpcContext.getServiceContext().asyncCall(call);
    }
}

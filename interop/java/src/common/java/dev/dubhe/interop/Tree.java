package dev.dubhe.interop;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/** Looks at the registry's tree with ZooKeeper's own client, so that neither side of the matrix has to be believed. */
final class Tree {
    private final ZooKeeper client;

    /** {@code registry}: {@code zookeeper://192.0.2.10:2181}. */
    Tree(String registry) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        client = new ZooKeeper(registry.substring(registry.indexOf("://") + 3), 30_000, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        if (!connected.await(10, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + registry);
        }
    }

    /** Every node below {@code tops} and itself, with its text. What does not exist is left out. */
    Map<String, String> below(Iterable<String> tops) throws Exception {
        Map<String, String> nodes = new TreeMap<>();
        for (String top : tops) {
            collect(top, nodes);
        }
        return nodes;
    }

    private void collect(String path, Map<String, String> nodes) throws Exception {
        try {
            byte[] data = client.getData(path, false, null);
            nodes.put(path, data == null ? "" : new String(data, StandardCharsets.UTF_8));
            for (String child : client.getChildren(path, false)) {
                collect("/".equals(path) ? "/" + child : path + "/" + child, nodes);
            }
        } catch (KeeperException.NoNodeException gone) {
            // it went while we looked
        }
    }
}

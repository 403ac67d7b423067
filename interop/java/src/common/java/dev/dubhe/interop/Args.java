package dev.dubhe.interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Command line of the form {@code word... --key value --key value}. */
final class Args {
    final List<String> words = new ArrayList<>();
    private final Map<String, List<String>> options = new HashMap<>();

    Args(String... raw) {
        for (int i = 0; i < raw.length; i++) {
            if (!raw[i].startsWith("--")) {
                words.add(raw[i]);
                continue;
            }
            if (i + 1 == raw.length) {
                throw new IllegalArgumentException("no value after " + raw[i]);
            }
            options.computeIfAbsent(raw[i].substring(2), key -> new ArrayList<>()).add(raw[++i]);
        }
    }

    String get(String key, String otherwise) {
        List<String> values = options.get(key);
        return values == null ? otherwise : values.get(values.size() - 1);
    }

    String need(String key) {
        String value = get(key, null);
        if (value == null) {
            throw new IllegalArgumentException("--" + key + " is missing");
        }
        return value;
    }

    int number(String key, int otherwise) {
        String value = get(key, null);
        return value == null ? otherwise : Integer.parseInt(value);
    }

    boolean flag(String key, boolean otherwise) {
        String value = get(key, null);
        return value == null ? otherwise : Boolean.parseBoolean(value);
    }

    /** All {@code --key name=value} options as a map. */
    Map<String, String> pairs(String key) {
        Map<String, String> pairs = new LinkedHashMap<>();
        for (String pair : options.getOrDefault(key, Collections.emptyList())) {
            int at = pair.indexOf('=');
            if (at < 1) {
                throw new IllegalArgumentException("--" + key + " wants name=value, got " + pair);
            }
            pairs.put(pair.substring(0, at), pair.substring(at + 1));
        }
        return pairs;
    }
}

package dev.dubhe.interop;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import dev.dubhe.interop.api.Address;
import dev.dubhe.interop.api.Color;
import dev.dubhe.interop.api.User;

/** The fixed inputs. */
final class Fixtures {
    /** Two-, three- and four-byte UTF-8; the last two are surrogate pairs in Java. */
    static final String BEYOND_BMP = "za\u017c\u00f3\u0142\u0107 \u4f60\u597d \ud83d\ude80\ud834\udd1e";

    /** 2024-02-29T12:34:56.789Z. */
    static final Date DATE = new Date(1709210096789L);

    private Fixtures() {}

    static byte[] pattern(int size) {
        byte[] bytes = new byte[size];
        for (int i = 0; i < size; i++) {
            bytes[i] = (byte) (i * 31);
        }
        return bytes;
    }

    /** 100,000 UTF-16 units: longer than one chunk; pairs sit on every possible chunk border. */
    static String longText() {
        StringBuilder text = new StringBuilder("x");
        while (text.length() < 100_000) {
            text.append("\ud83d\ude80");
        }
        return text.toString();
    }

    static User user(String name) {
        User user = new User();
        user.setName(name);
        user.setAge(36);
        user.setId(5_000_000_000L);
        user.setActive(true);
        user.setScore(12.5);
        user.setColor(Color.GREEN);
        user.setBirthday(DATE);
        user.setBalance(new BigDecimal("12345678901234567890.0123"));
        user.setAddress(new Address("Main Street 1", "Springfield", 12345));
        user.setTags(new ArrayList<>(Arrays.asList("a", "b", BEYOND_BMP)));
        Map<String, Long> counters = new HashMap<>();
        counters.put("small", 1L);
        counters.put("large", 6_000_000_000L);
        user.setCounters(counters);
        List<Address> history = new ArrayList<>();
        history.add(new Address("Old Road 2", "Shelbyville", 54321));
        history.add(new Address("Older Road 3", null, 0));
        user.setHistory(history);
        user.setPhoto(pattern(300));
        user.setSince(LocalDate.of(2024, 2, 29));
        return user;
    }

    /** {@link #user} as a generic call writes it. */
    static Map<String, Object> userMap(String name) {
        Map<String, Object> user = new HashMap<>();
        user.put("class", User.class.getName());
        user.put("name", name);
        user.put("age", 36);
        user.put("id", 5_000_000_000L);
        user.put("active", true);
        user.put("score", 12.5);
        user.put("color", "GREEN");
        user.put("birthday", DATE);
        user.put("balance", new BigDecimal("12345678901234567890.0123"));
        user.put("address", addressMap("Main Street 1", "Springfield", 12345));
        user.put("tags", new ArrayList<>(Arrays.asList("a", "b", BEYOND_BMP)));
        Map<String, Object> counters = new HashMap<>();
        counters.put("small", 1L);
        counters.put("large", 6_000_000_000L);
        user.put("counters", counters);
        user.put("history", new ArrayList<>(Arrays.asList(addressMap("Old Road 2", "Shelbyville", 54321))));
        user.put("photo", pattern(300));
        return user;
    }

    static Map<String, Object> addressMap(String street, String city, int zip) {
        Map<String, Object> address = new HashMap<>();
        address.put("class", Address.class.getName());
        address.put("street", street);
        address.put("city", city);
        address.put("zip", zip);
        return address;
    }

    static Map<String, Object> objectMap() {
        Map<String, Object> map = new HashMap<>();
        map.put("text", BEYOND_BMP);
        map.put("int", 7);
        map.put("long", 7L);
        map.put("double", 0.5);
        map.put("boolean", true);
        map.put("null", null);
        map.put("date", DATE);
        map.put("list", new ArrayList<Object>(Arrays.asList(1, "two", 3L, null)));
        Map<String, Object> inner = new LinkedHashMap<>();
        inner.put("k", "v");
        map.put("map", inner);
        map.put("user", user("inner"));
        return map;
    }
}

package dev.dubhe.interop;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import dev.dubhe.interop.api.Color;
import dev.dubhe.interop.api.DemoException;
import dev.dubhe.interop.api.DemoRuntimeException;
import dev.dubhe.interop.api.EchoService;
import dev.dubhe.interop.api.GreetService;
import dev.dubhe.interop.api.Node;
import dev.dubhe.interop.api.UndeclaredException;
import dev.dubhe.interop.api.User;

/** Both services of the provider. */
public class EchoServiceImpl implements EchoService, GreetService {
    private static final int RECORDS = 1000;

    private final String name;
    private final List<String> records = new ArrayList<>();

    public EchoServiceImpl(String name) {
        this.name = name;
    }

    @Override
    public String greet(String who) {
        return "hello, " + who;
    }

    @Override
    public String who() {
        return name + "#" + Peer.pid();
    }

    @Override
    public String join(String text, int number, long big, boolean flag) {
        return text + "/" + number + "/" + big + "/" + flag;
    }

    @Override
    public String returnNull() {
        return null;
    }

    @Override
    public void ping() {}

    @Override
    public void throwChecked(String message, int code) throws DemoException {
        throw new DemoException(message, code, "asked for");
    }

    @Override
    public String throwIllegalArgument(String message) {
        throw new IllegalArgumentException(message);
    }

    @Override
    public String throwRuntime(String message, int code) {
        throw new DemoRuntimeException(message, code);
    }

    @Override
    public String throwUndeclared(String message) {
        throw new UndeclaredException(message);
    }

    @Override
    public Map<String, String> attachments() {
        Map<String, String> seen = new HashMap<>();
        Compat.receivedAttachments().forEach((key, value) -> {
            if (key.startsWith("demo.")) {
                seen.put(key, String.valueOf(value));
            }
        });
        Compat.answerAttachment("demo.answer", "from " + name);
        Compat.answerAttachment("demo.count", String.valueOf(seen.size()));
        return seen;
    }

    @Override
    public void record(String text) {
        synchronized (records) {
            records.add(text);
            if (records.size() > RECORDS) {
                records.remove(0);
            }
        }
    }

    @Override
    public List<String> recorded() {
        synchronized (records) {
            return new ArrayList<>(records);
        }
    }

    @Override
    public int sleep(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        return millis;
    }

    @Override
    public byte[] big(int size) {
        return Fixtures.pattern(size);
    }

    @Override
    public String echoString(String value) {
        return value;
    }

    @Override
    public boolean echoBoolean(boolean value) {
        return value;
    }

    @Override
    public byte echoByte(byte value) {
        return value;
    }

    @Override
    public short echoShort(short value) {
        return value;
    }

    @Override
    public int echoInt(int value) {
        return value;
    }

    @Override
    public long echoLong(long value) {
        return value;
    }

    @Override
    public float echoFloat(float value) {
        return value;
    }

    @Override
    public double echoDouble(double value) {
        return value;
    }

    @Override
    public Boolean echoBoxedBoolean(Boolean value) {
        return value;
    }

    @Override
    public Byte echoBoxedByte(Byte value) {
        return value;
    }

    @Override
    public Short echoBoxedShort(Short value) {
        return value;
    }

    @Override
    public Integer echoBoxedInt(Integer value) {
        return value;
    }

    @Override
    public Long echoBoxedLong(Long value) {
        return value;
    }

    @Override
    public Float echoBoxedFloat(Float value) {
        return value;
    }

    @Override
    public Double echoBoxedDouble(Double value) {
        return value;
    }

    @Override
    public byte[] echoBytes(byte[] value) {
        return value;
    }

    @Override
    public int[] echoIntArray(int[] value) {
        return value;
    }

    @Override
    public String[] echoStringArray(String[] value) {
        return value;
    }

    @Override
    public Date echoDate(Date value) {
        return value;
    }

    @Override
    public LocalDate echoLocalDate(LocalDate value) {
        return value;
    }

    @Override
    public LocalDateTime echoLocalDateTime(LocalDateTime value) {
        return value;
    }

    @Override
    public BigDecimal echoBigDecimal(BigDecimal value) {
        return value;
    }

    @Override
    public BigInteger echoBigInteger(BigInteger value) {
        return value;
    }

    @Override
    public List<String> echoStringList(List<String> value) {
        return value;
    }

    @Override
    public List<Long> echoLongList(List<Long> value) {
        return value;
    }

    @Override
    public List<User> echoUserList(List<User> value) {
        return value;
    }

    @Override
    public Set<String> echoStringSet(Set<String> value) {
        return value;
    }

    @Override
    public Map<String, Object> echoObjectMap(Map<String, Object> value) {
        return value;
    }

    @Override
    public Map<String, Long> echoLongMap(Map<String, Long> value) {
        return value;
    }

    @Override
    public Color echoColor(Color value) {
        return value;
    }

    @Override
    public User echoUser(User value) {
        return value;
    }

    @Override
    public Node echoNode(Node value) {
        return value;
    }
}

package dev.dubhe.interop.api;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The service of the matrix. No method name is overloaded, so that every language can map it by name alone.
 * Each {@code echo*} method answers its argument, null included where the type allows it.
 */
public interface EchoService {
    String echoString(String value);

    boolean echoBoolean(boolean value);

    byte echoByte(byte value);

    short echoShort(short value);

    int echoInt(int value);

    long echoLong(long value);

    float echoFloat(float value);

    double echoDouble(double value);

    Boolean echoBoxedBoolean(Boolean value);

    Byte echoBoxedByte(Byte value);

    Short echoBoxedShort(Short value);

    Integer echoBoxedInt(Integer value);

    Long echoBoxedLong(Long value);

    Float echoBoxedFloat(Float value);

    Double echoBoxedDouble(Double value);

    byte[] echoBytes(byte[] value);

    int[] echoIntArray(int[] value);

    String[] echoStringArray(String[] value);

    Date echoDate(Date value);

    LocalDate echoLocalDate(LocalDate value);

    LocalDateTime echoLocalDateTime(LocalDateTime value);

    BigDecimal echoBigDecimal(BigDecimal value);

    BigInteger echoBigInteger(BigInteger value);

    List<String> echoStringList(List<String> value);

    List<Long> echoLongList(List<Long> value);

    List<User> echoUserList(List<User> value);

    Set<String> echoStringSet(Set<String> value);

    Map<String, Object> echoObjectMap(Map<String, Object> value);

    Map<String, Long> echoLongMap(Map<String, Long> value);

    Color echoColor(Color value);

    User echoUser(User value);

    /** The argument may contain itself; the answer has the same shape. */
    Node echoNode(Node value);

    /** Answers {@code text + "/" + number + "/" + big + "/" + flag}: several arguments of several types. */
    String join(String text, int number, long big, boolean flag);

    /** Always answers null. */
    String returnNull();

    /** Answers nothing. */
    void ping();

    /** Throws {@link DemoException} with this message and code and the reason {@code "asked for"}. */
    void throwChecked(String message, int code) throws DemoException;

    /** Throws {@link IllegalArgumentException} with this message. */
    String throwIllegalArgument(String message);

    /** Throws {@link DemoRuntimeException}, which is unchecked and declared, with this message and code. */
    String throwRuntime(String message, int code) throws DemoRuntimeException;

    /** Throws {@link UndeclaredException}, which no signature names, with this message. */
    String throwUndeclared(String message);

    /**
     * Answers the request attachments that the application sees and that start with {@code demo.}, and sets two
     * response attachments: {@code demo.answer} = {@code "from " + NAME} and {@code demo.count} = how many there were.
     */
    Map<String, String> attachments();

    /** Remembers the text; callers use it one-way. */
    void record(String text);

    /** Answers the last 1000 texts that {@link #record} got, oldest first. */
    List<String> recorded();

    /** Sleeps, then answers {@code millis}. */
    int sleep(int millis);

    /** Answers which provider this is: {@code NAME#PID}. */
    String who();

    /** Answers {@code size} bytes; byte {@code i} is {@code i * 31} modulo 256. */
    byte[] big(int size);
}

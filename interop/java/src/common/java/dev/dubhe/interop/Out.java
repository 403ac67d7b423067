package dev.dubhe.interop;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.util.Iterator;
import java.util.Map;

/** The program's own lines. Whatever a library prints to {@code System.out} goes to stderr instead. */
final class Out {
    private static final PrintStream STDOUT = takeOver();

    private Out() {}

    private static PrintStream takeOver() {
        try {
            PrintStream own = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, "UTF-8");
            System.setOut(System.err);
            return own;
        } catch (java.io.UnsupportedEncodingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    static void line(String text) {
        synchronized (STDOUT) {
            STDOUT.println(text);
            STDOUT.flush();
        }
    }

    /** Opens the file, or answers stdout for {@code -}. */
    static PrintStream open(String path) throws IOException {
        return "-".equals(path) ? STDOUT : new PrintStream(new FileOutputStream(path), true, "UTF-8");
    }

    static String json(Object value) {
        StringBuilder to = new StringBuilder();
        write(to, value);
        return to.toString();
    }

    private static void write(StringBuilder to, Object value) {
        if (value instanceof Map) {
            to.append('{');
            for (Iterator<? extends Map.Entry<?, ?>> i = ((Map<?, ?>) value).entrySet().iterator(); i.hasNext(); ) {
                Map.Entry<?, ?> entry = i.next();
                write(to, String.valueOf(entry.getKey()));
                to.append(':');
                write(to, entry.getValue());
                to.append(i.hasNext() ? "," : "");
            }
            to.append('}');
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            to.append(value);
        } else {
            writeText(to, String.valueOf(value));
        }
    }

    private static void writeText(StringBuilder to, String text) {
        to.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                to.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                to.append(String.format("\\u%04x", (int) c));
            } else {
                to.append(c);
            }
        }
        to.append('"');
    }
}

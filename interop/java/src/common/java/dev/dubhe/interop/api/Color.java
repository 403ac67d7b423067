package dev.dubhe.interop.api;

/** An enum that goes over the wire. */
public enum Color {
    RED,
    GREEN,
    BLUE
}

package dev.dubhe.interop.api;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/** A bean that can point at itself: references inside one message. */
public class Node implements Serializable {
    private static final long serialVersionUID = 1L;

    private String name;
    private Node next;
    private List<Node> children = new ArrayList<>();

    public Node() {}

    public Node(String name) {
        this.name = name;
    }

    public String getName() {
        return name;
    }

    public void setName(String name) {
        this.name = name;
    }

    public Node getNext() {
        return next;
    }

    public void setNext(Node next) {
        this.next = next;
    }

    public List<Node> getChildren() {
        return children;
    }

    public void setChildren(List<Node> children) {
        this.children = children;
    }
}

package dev.dubhe.interop.api;

import java.io.Serializable;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** A bean with a field of every kind that the matrix asks for. */
public class User implements Serializable {
    private static final long serialVersionUID = 1L;

    private String name;
    private int age;
    private Long id;
    private boolean active;
    private Double score;
    private Color color;
    private Date birthday;
    private BigDecimal balance;
    private Address address;
    private List<String> tags;
    private Map<String, Long> counters;
    private List<Address> history;
    private byte[] photo;
    private LocalDate since;
    private String nickname;

    public String getName() {
        return name;
    }

    public void setName(String name) {
        this.name = name;
    }

    public int getAge() {
        return age;
    }

    public void setAge(int age) {
        this.age = age;
    }

    public Long getId() {
        return id;
    }

    public void setId(Long id) {
        this.id = id;
    }

    public boolean isActive() {
        return active;
    }

    public void setActive(boolean active) {
        this.active = active;
    }

    public Double getScore() {
        return score;
    }

    public void setScore(Double score) {
        this.score = score;
    }

    public Color getColor() {
        return color;
    }

    public void setColor(Color color) {
        this.color = color;
    }

    public Date getBirthday() {
        return birthday;
    }

    public void setBirthday(Date birthday) {
        this.birthday = birthday;
    }

    public BigDecimal getBalance() {
        return balance;
    }

    public void setBalance(BigDecimal balance) {
        this.balance = balance;
    }

    public Address getAddress() {
        return address;
    }

    public void setAddress(Address address) {
        this.address = address;
    }

    public List<String> getTags() {
        return tags;
    }

    public void setTags(List<String> tags) {
        this.tags = tags;
    }

    public Map<String, Long> getCounters() {
        return counters;
    }

    public void setCounters(Map<String, Long> counters) {
        this.counters = counters;
    }

    public List<Address> getHistory() {
        return history;
    }

    public void setHistory(List<Address> history) {
        this.history = history;
    }

    public byte[] getPhoto() {
        return photo;
    }

    public void setPhoto(byte[] photo) {
        this.photo = photo;
    }

    public LocalDate getSince() {
        return since;
    }

    public void setSince(LocalDate since) {
        this.since = since;
    }

    public String getNickname() {
        return nickname;
    }

    public void setNickname(String nickname) {
        this.nickname = nickname;
    }

    @Override
    public boolean equals(Object other) {
        if (!(other instanceof User)) {
            return false;
        }
        User that = (User) other;
        return Objects.equals(name, that.name)
                && age == that.age
                && Objects.equals(id, that.id)
                && active == that.active
                && Objects.equals(score, that.score)
                && Objects.equals(color, that.color)
                && Objects.equals(birthday, that.birthday)
                && Objects.equals(balance, that.balance)
                && Objects.equals(address, that.address)
                && Objects.equals(tags, that.tags)
                && Objects.equals(counters, that.counters)
                && Objects.equals(history, that.history)
                && Arrays.equals(photo, that.photo)
                && Objects.equals(since, that.since)
                && Objects.equals(nickname, that.nickname);
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, age, id);
    }

    @Override
    public String toString() {
        return "User("
                + "name=" + name
                + ", age=" + age
                + ", id=" + id
                + ", active=" + active
                + ", score=" + score
                + ", color=" + color
                + ", birthday=" + birthday
                + ", balance=" + balance
                + ", address=" + address
                + ", tags=" + tags
                + ", counters=" + counters
                + ", history=" + history
                + ", photo=" + Arrays.toString(photo)
                + ", since=" + since
                + ", nickname=" + nickname
                + ")";
    }
}

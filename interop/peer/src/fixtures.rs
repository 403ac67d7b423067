//! The fixed inputs, those of `Fixtures.java`.

use std::collections::{BTreeMap, HashMap};

use dubhe::Value;
use dubhe::java::{BigDecimal, Date, JavaBytes, LocalDate};
use dubhe::value::to_value;

use crate::api::{Address, Color, User};

/// Two-, three- and four-byte UTF-8; the last two are surrogate pairs in Java.
pub(crate) const BEYOND_BMP: &str = "za\u{17c}\u{f3}\u{142}\u{107} \u{4f60}\u{597d} \u{1f680}\u{1d11e}";

/// 2024-02-29T12:34:56.789Z.
pub(crate) const DATE: Date = Date(1_709_210_096_789);

pub(crate) const LEAP_DAY: LocalDate = LocalDate { year: 2024, month: 2, day: 29 };

const BALANCE: &str = "12345678901234567890.0123";

/// `size` bytes; byte `i` is `i * 31` modulo 256.
pub(crate) fn pattern(size: usize) -> JavaBytes {
    JavaBytes((0..size).map(|i| (i * 31 % 256) as u8).collect())
}

/// 100,001 UTF-16 units: longer than one chunk; pairs sit on every possible chunk border.
pub(crate) fn long_text() -> String {
    format!("x{}", "\u{1f680}".repeat(50_000))
}

pub(crate) fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

pub(crate) fn user(name: &str) -> User {
    let address = |street: &str, city: Option<&str>, zip| Address {
        street: text(street),
        city: city.and_then(text),
        zip,
    };
    User {
        name: text(name),
        age: 36,
        id: Some(5_000_000_000),
        active: true,
        score: Some(12.5),
        color: Some(Color::Green),
        birthday: Some(DATE),
        balance: Some(BigDecimal(BALANCE.to_owned())),
        address: Some(address("Main Street 1", Some("Springfield"), 12345)),
        tags: Some(vec![text("a"), text("b"), text(BEYOND_BMP)]),
        counters: Some(BTreeMap::from([("small".to_owned(), 1), ("large".to_owned(), 6_000_000_000)])),
        history: Some(vec![
            address("Old Road 2", Some("Shelbyville"), 54321),
            address("Older Road 3", None, 0),
        ]),
        photo: Some(pattern(300)),
        since: Some(LEAP_DAY),
        nickname: None,
    }
}

/// [`user`] as a generic call writes it.
pub(crate) fn user_map(name: &str) -> Value {
    let address = |street: &str, city: &str, zip: i32| {
        Value::map([
            ("class", Value::from("dev.dubhe.interop.api.Address")),
            ("street", street.into()),
            ("city", city.into()),
            ("zip", zip.into()),
        ])
    };
    Value::map([
        ("class", Value::from("dev.dubhe.interop.api.User")),
        ("name", name.into()),
        ("age", 36.into()),
        ("id", 5_000_000_000_i64.into()),
        ("active", true.into()),
        ("score", 12.5.into()),
        ("color", "GREEN".into()),
        ("birthday", DATE.into()),
        ("balance", decimal(BALANCE)),
        ("address", address("Main Street 1", "Springfield", 12345)),
        ("tags", Value::list(["a", "b", BEYOND_BMP].map(Value::from))),
        ("counters", Value::map([("small", 1_i64), ("large", 6_000_000_000)])),
        ("history", Value::list([address("Old Road 2", "Shelbyville", 54321)])),
        ("photo", pattern(300).into()),
    ])
}

pub(crate) fn decimal(text: &str) -> Value {
    to_value(&BigDecimal(text.to_owned())).expect("a decimal is an object with one string")
}

/// A map with a value of each kind; the object under `user` is [`user`]`("inner")`.
pub(crate) fn object_map() -> HashMap<String, Value> {
    let user = to_value(&user("inner")).expect("a user has a dynamic form");
    let entries: [(&str, Value); 10] = [
        ("text", BEYOND_BMP.into()),
        ("int", 7.into()),
        ("long", 7_i64.into()),
        ("double", 0.5.into()),
        ("boolean", true.into()),
        ("null", Value::Null),
        ("date", DATE.into()),
        ("list", Value::list([Value::from(1), "two".into(), 3_i64.into(), Value::Null])),
        ("map", Value::typed_map("java.util.LinkedHashMap", [("k", "v")])),
        ("user", user),
    ];
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

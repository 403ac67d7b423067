//! Rust types as Java types and back, over the wire; each also by way of a dynamic value.

mod support;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dubhe_core::value::java::{
    Array, BigDecimal, BigInteger, Date, Instant, IntArray, JavaBytes, LocalDate, LocalDateTime, LocalTime,
    Set, StringArray,
};
use dubhe_core::value::{Value, from_value, to_value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use support::{bytes, read_as, read_value, write, write_value};

/// `value` has these bytes, reads back equal, and is the same by way of a dynamic value.
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T, expected: &str) {
    let body = write(&value);
    assert_eq!(hex::encode(&body), hex::encode(bytes(expected)), "{value:?}");
    assert_eq!(read_as::<T>(body.clone()).expect("it reads"), value);
    let dynamic = to_value(&value).expect("it has a dynamic form");
    assert_eq!(write_value(&dynamic), body, "{dynamic:?}");
    assert_eq!(read_value(body).expect("it reads"), dynamic);
    assert_eq!(from_value::<T>(dynamic).expect("it converts"), value);
}

fn text(text: &str) -> String {
    hex::encode(write(&text))
}

#[test]
fn simple_types_have_their_java_forms() {
    check(true, "54");
    check(-3_i8, "8d");
    check(300_i16, "c92c");
    check(7_u8, "97");
    check(5_i64, "e5");
    check(5_u32, "e5");
    check('x', "0178");
    check("text".to_owned(), "04 74657874");
    check(1.1_f32, "5f 0000044c");
    check(f64::NEG_INFINITY, "44 fff0000000000000");
    check((), "4e");
    check(None::<i32>, "4e");
    check(Some(1), "91");
    check((1, "a".to_owned()), "7a 91 0161");
    assert!(support::write_with(&Default::default(), |writer| writer.write(&u64::MAX)).is_err());
    assert!(to_value(&u64::MAX).is_err());
}

#[test]
fn lists_sets_arrays_and_maps_have_their_java_forms() {
    check(vec![1, 2], "7a 91 92");
    check((0..9).collect::<Vec<i32>>(), "58 99 90 91 92 93 94 95 96 97 98");
    check(Array(vec![1, 2]), "72 04 5b696e74 91 92");
    check(Array(vec![1_i64; 9]), "56 05 5b6c6f6e67 99 e1e1e1e1e1e1e1e1e1");
    check(Array(vec!["a".to_owned()]), &format!("71 {} 0161", text("[string")));
    check(
        Array(vec![Array(vec![1]), Array(vec![2])]),
        &format!("72 {} 71 {} 91 71 91 92", text("[[int"), text("[int")),
    );
    check(Array(vec![Some(1), None]), &format!("72 {} 91 4e", text("[java.lang.Integer")));
    check(Array(vec![Date(0)]), &format!("71 {} 4b00000000", text("[date")));
    check(JavaBytes(vec![1, 2, 3]), "23 010203");
    check(Set::from_iter([1]), &format!("71 {} 91", text("java.util.HashSet")));
    check(HashSet::from([1]), "79 91");
    check(BTreeMap::from([("k".to_owned(), 1)]), "48 016b 91 5a");
    check(HashMap::from([(1_i64, vec!["v".to_owned()])]), "48 e1 79 0176 5a");
}

#[test]
fn numbers_and_times_of_java_have_their_java_forms() {
    check(Date(894_621_091_000), "4a 000000d04b9284b8");
    check(
        BigDecimal("1.10".into()),
        &format!("43 {} 91 {} 60 04 312e3130", text("java.math.BigDecimal"), text("value")),
    );
    let class = format!("43 {} 92 {} {} 60", text("java.math.BigInteger"), text("mag"), text("signum"));
    check(BigInteger("0".into()), &format!("{class} 70 {} 90", text("[int")));
    check(BigInteger("-1".into()), &format!("{class} 71 {} 91 8f", text("[int")));
    check(BigInteger("4294967296".into()), &format!("{class} 72 {} 91 90 91", text("[int")));
    let date = LocalDate { year: 2020, month: 1, day: 2 };
    let handle = |name: &str| text(&format!("com.alibaba.com.caucho.hessian.io.java8.{name}Handle"));
    let date_form =
        format!("43 {} 93 {} {} {}", handle("LocalDate"), text("day"), text("month"), text("year"));
    check(date, &format!("{date_form} 60 92 91 cfe4"));
    let time = LocalTime { hour: 12, minute: 34, second: 56, nano: 789 };
    let names = ["nano", "second", "minute", "hour"].map(text).concat();
    let time_form = format!("43 {} 94 {names}", handle("LocalTime"));
    check(time, &format!("{time_form} 60 cb15 c838 b2 9c"));
    let both = format!("43 {} 92 {} {} 60", handle("LocalDateTime"), text("time"), text("date"));
    let inner = format!("{time_form} 61 cb15 c838 b2 9c {date_form} 62 92 91 cfe4");
    check(LocalDateTime { date, time }, &format!("{both} {inner}"));
    let names = ["nanos", "seconds"].map(text).concat();
    check(Instant { seconds: 90, nanos: 5 }, &format!("43 {} 92 {names} 60 95 f85a", handle("Instant")));
}

#[test]
fn big_integers_keep_every_digit() {
    for digits in [
        "255",
        "123456789012345678901234567890",
        "-999999999999999999999999999999999999999999",
        "18446744073709551616",
    ] {
        let number = BigInteger(digits.into());
        assert_eq!(read_as::<BigInteger>(write(&number)).unwrap(), number);
    }
    assert_eq!(
        read_as::<i128>(write(&BigInteger("-18446744073709551616".into()))).unwrap(),
        -18_446_744_073_709_551_616
    );
    assert_eq!(read_as::<u64>(write(&BigInteger(u64::MAX.to_string()))).unwrap(), u64::MAX);
    assert!(read_as::<i64>(write(&BigInteger(u64::MAX.to_string()))).is_err());
    assert!(to_value(&BigInteger("12a".into())).is_err());
}

#[test]
fn dates_read_from_the_other_date_types_and_texts() {
    let sql = Value::object("java.sql.Timestamp", [("value", Value::Date(1_000))]);
    assert_eq!(read_as::<Date>(write_value(&sql)).unwrap(), Date(1_000));
    assert_eq!(from_value::<Date>("1970-01-01 00:00:01".into()).unwrap(), Date(1_000));
    assert_eq!(from_value::<LocalDate>("2020-02-29".into()).unwrap().to_string(), "2020-02-29");
    assert!(from_value::<LocalDate>("2021-02-29".into()).is_err());
    let time = UNIX_EPOCH - Duration::from_micros(1);
    assert_eq!(Date::from(time), Date(-1));
    assert_eq!(SystemTime::from(Date(-1)), UNIX_EPOCH - Duration::from_millis(1));
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename = "demo.Color")]
enum Color {
    #[serde(rename = "RED")]
    Red,
    #[serde(rename = "GREEN")]
    Green,
}

#[test]
fn an_enum_is_an_object_with_its_name_and_reads_from_text_and_maps() {
    let class = format!("43 {} 91 {}", text("demo.Color"), text("name"));
    check(
        vec![Color::Red, Color::Green, Color::Red],
        &format!("7b {class} 60 {} 60 {} 60 {}", text("RED"), text("GREEN"), text("RED")),
    );
    assert_eq!(read_as::<Color>(write(&"GREEN")).unwrap(), Color::Green);
    assert_eq!(from_value::<Color>("GREEN".into()).unwrap(), Color::Green);
    let map = Value::map([("class", "demo.Color"), ("name", "RED")]);
    assert_eq!(read_as::<Color>(write_value(&map)).unwrap(), Color::Red);
    assert_eq!(from_value::<Color>(map).unwrap(), Color::Red);
    assert!(read_as::<Color>(write(&"BLUE")).unwrap_err().to_string().contains("unknown variant `BLUE`"));
    // Java sends the same constant again as a reference.
    let java = bytes(&format!("7a {class} 60 {} 5191", text("RED")));
    assert_eq!(read_as::<Vec<Color>>(java).unwrap(), [Color::Red, Color::Red]);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Shape {
    #[serde(rename = "demo.Circle")]
    Circle { radius: f64 },
    #[serde(rename = "demo.Box")]
    Square(Side),
    #[serde(rename = "demo.Nothing")]
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Side {
    side: i32,
}

#[test]
fn an_enum_of_classes_picks_its_variant_by_class_name() {
    for shape in [Shape::Circle { radius: 1.0 }, Shape::Square(Side { side: 2 })] {
        let body = write(&shape);
        assert_eq!(read_as::<Shape>(body.clone()).unwrap(), shape);
        assert_eq!(from_value::<Shape>(read_value(body.clone()).unwrap()).unwrap(), shape);
        assert_eq!(write_value(&to_value(&shape).unwrap()), body);
    }
    assert_eq!(to_value(&Shape::Square(Side { side: 2 })).unwrap(), Value::object("demo.Box", [("side", 2)]));
    let map = Value::map([("class", Value::from("demo.Circle")), ("radius", 2.into())]);
    assert_eq!(from_value::<Shape>(map.clone()).unwrap(), Shape::Circle { radius: 2.0 });
    assert_eq!(read_as::<Shape>(write_value(&map)).unwrap(), Shape::Circle { radius: 2.0 });
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "demo.Person", rename_all = "camelCase", default)]
struct Person {
    full_name: String,
    age: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    nick_names: Vec<String>,
    boss: Option<Box<Self>>,
    extra: Value,
    picture: JavaBytes,
}

fn null_as_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[test]
fn a_class_is_defined_once_before_its_first_instance_also_when_that_holds_others() {
    let boss = Person { full_name: "ann".into(), extra: Value::list([1.into()]), ..Person::default() };
    let person = Person {
        full_name: "bob".into(),
        nick_names: vec!["b".into()],
        boss: Some(Box::new(boss)),
        extra: to_value(&Color::Red).unwrap(),
        ..Person::default()
    };
    let people = vec![person.clone(), Person::default(), person];
    let body = write(&people);
    assert_eq!(body.windows(11).filter(|window| window == b"demo.Person").count(), 1);
    assert_eq!(read_as::<Vec<Person>>(body.clone()).unwrap(), people);
    let dynamic = to_value(&people).unwrap();
    assert_eq!(read_value(body.clone()).unwrap(), dynamic);
    assert_eq!(write_value(&dynamic), body);
    assert_eq!(from_value::<Vec<Person>>(dynamic).unwrap(), people);
}

#[test]
fn classes_beyond_the_sixteenth_and_lists_of_unknown_length_are_written_right() {
    struct Unsized;

    impl Serialize for Unsized {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeSeq;

            let mut items = serializer.serialize_seq(None)?;
            for number in 0..20 {
                items.serialize_element(&number)?;
            }
            items.end()
        }
    }

    assert_eq!(
        read_as::<Vec<i32>>(write(&(Unsized, Unsized)).slice(1..)).unwrap(),
        (0..20).collect::<Vec<_>>()
    );
    let classes: Vec<Value> =
        (0..20).map(|index| Value::object(format!("demo.C{index}"), [("a", index)])).collect();
    let both = (classes, Person::default(), Color::Red, Person::default());
    let read: (Vec<Value>, Person, Color, Person) = read_as(write(&both)).unwrap();
    assert_eq!(read, both);
}

#[test]
fn an_object_reads_from_maps_and_objects_of_any_class_and_unknown_fields_are_skipped() {
    let map = Value::map([
        ("class", Value::from("demo.Other")),
        ("fullName", "ann".into()),
        ("unknown", Value::list([Value::object("demo.X", [("y", 1)])])),
        ("age", Value::Long(3)),
    ]);
    let object = Value::object(
        "demo.Other",
        [("fullName", Value::from("ann")), ("age", Value::Double(3.0)), ("z", Value::Null)],
    );
    for value in [map, object] {
        let person: Person = read_as(write_value(&value)).unwrap();
        assert_eq!((person.full_name.as_str(), person.age), ("ann", Some(3)));
        assert_eq!(from_value::<Person>(value).unwrap(), person);
    }
}

#[test]
fn an_error_names_the_field_and_the_byte() {
    let value = Value::object("demo.Person", [("boss", Value::object("demo.Person", [("age", "old")]))]);
    let error = read_as::<Person>(write_value(&value)).unwrap_err().to_string();
    assert_eq!(error, "demo.Person.boss: demo.Person.age: a string where i32 is expected, at byte 39 of 43");
    let error = from_value::<Person>(value).unwrap_err().to_string();
    assert!(error.starts_with("field boss of demo.Person: field age of demo.Person: "), "{error}");
}

#[test]
fn a_dynamic_value_inside_a_typed_one_keeps_its_cycles() {
    let cyclic = Value::object(
        "demo.Node",
        [("me", Value::Ref(0)), ("list", Value::list([Value::Ref(0), Value::Ref(1)]))],
    );
    let person = Person { extra: cyclic, full_name: "x".into(), ..Person::default() };
    let people = vec![Person::default(), person];
    assert_eq!(read_as::<Vec<Person>>(write(&people)).unwrap(), people);
    assert_eq!(from_value::<Vec<Person>>(to_value(&people).unwrap()).unwrap(), people);
}

#[test]
fn a_tuple_shorter_than_the_list_leaves_the_rest_unread() {
    let body = bytes("7a 73 04 5b696e74 91 92 93 0161");
    let read: ((i32, i32), String) = read_as(body).unwrap();
    assert_eq!(read, ((1, 2), "a".into()));
}

#[test]
fn arrays_read_from_any_list() {
    assert_eq!(read_as::<IntArray>(bytes("7a 91 e2")).unwrap(), Array(vec![1, 2]));
    assert_eq!(read_as::<StringArray>(bytes("79 0161")).unwrap(), Array(vec!["a".into()]));
    assert_eq!(read_as::<Set<String>>(bytes("7a 0161 0161")).unwrap().len(), 1);
    assert_eq!(read_as::<::bytes::Bytes>(bytes("22 0102")).unwrap(), [1, 2].as_slice());
}

//! For all input: reading never panics, and what is written reads back equal.

mod support;

use std::collections::HashMap;

use ::bytes::Bytes;
use dubhe_core::value::java::{Array, BigDecimal, BigInteger, Date, JavaBytes, LocalDateTime};
use dubhe_core::value::{Value, from_value};
use dubhe_serialize_hessian2::Hessian2;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use support::{read_as, read_value, read_values, reader, write, write_value, write_with};

/// A type with something of everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename = "demo.Everything", default)]
#[derive(Default)]
struct Everything {
    a: Option<Box<Self>>,
    b: Vec<Self>,
    c: HashMap<String, Value>,
    d: Option<JavaBytes>,
    e: Option<Date>,
    f: Option<BigDecimal>,
    g: Option<BigInteger>,
    h: Option<LocalDateTime>,
    i: (i8, u16, i64, f32, f64, bool, char),
    j: Array<Vec<i32>>,
    k: String,
    l: Kind,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename = "demo.Kind")]
enum Kind {
    #[default]
    One,
    Two,
}

/// Bytes that look like Hessian2: tags and small numbers are frequent.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => any::<u8>().prop_map(|byte| vec![byte]),
        2 => (0_u8..4).prop_map(|index| vec![0x51, 0x90 + index]),
        1 => Just(b"C\x01A\x92\x01a\x01b".to_vec()),
        1 => Just(b"C\x0ademo.Kind_\x91\x04name".to_vec()),
        2 => (0x60_u8..0x63).prop_map(|tag| vec![tag]),
        1 => Just(b"\x71\x04[int".to_vec()),
        1 => Just(b"M\x90".to_vec()),
        1 => Just(vec![b'H']),
        2 => Just(vec![b'Z']),
        1 => Just(vec![0x57]),
        1 => Just(b"\x52\x00\x01\xed\xa0\xbd".to_vec()),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn read_in_every_way(body: &Bytes) {
    if let Ok(values) = read_values(body.clone()) {
        assert_eq!(read_values(support::write_values(&values)).expect("it was just written"), values);
        for value in values {
            let _ = from_value::<Everything>(value.clone());
            let _ = (value.to_java_text(), format!("{value:?}"), serde_json::to_string(&value));
            let sharing = Hessian2::new().with_sharing(true);
            let shared = write_with(&sharing, |writer| writer.write_value(&value)).expect("it was just read");
            assert_eq!(read_value(shared).expect("it was just written"), value);
        }
    }
    let _ = read_as::<Everything>(body.clone());
    let _ = read_as::<Vec<Everything>>(body.clone());
    let _ = read_as::<HashMap<String, Vec<Kind>>>(body.clone());
    let _ = read_as::<serde_json::Value>(body.clone());
    let _ = read_as::<serde::de::IgnoredAny>(body.clone());
    let _ = (reader(body.clone()).read_exception(), reader(body.clone()).read_attachments());
    let _ = (reader(body.clone()).read_int(), reader(body.clone()).read_str());
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,40}", "\\PC{0,20}", Just("中😀".repeat(700))]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(Value::Int),
        (-300_000..300_000).prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        (-300_000_i64..300_000).prop_map(Value::Long),
        prop::num::f64::ANY.prop_map(Value::Double),
        (-3_000_000_i32..3_000_000).prop_map(|number| Value::Double(f64::from(number) / 100.0)),
        any::<i64>().prop_map(Value::Date),
        any::<i32>().prop_map(|minutes| Value::Date(i64::from(minutes) * 60_000)),
        text().prop_map(Value::from),
        prop::collection::vec(any::<u16>(), 0..40).prop_map(|units| Value::utf16(&units)),
        prop::collection::vec(any::<u8>(), 0..1_200).prop_map(|bytes| Value::Bytes(bytes.into())),
        Just(Value::Ref(0)),
    ];
    let inner = leaf.prop_recursive(5, 60, 8, |part| {
        let class = prop_oneof![Just("demo.A"), Just("demo.B"), Just("java.util.HashSet")];
        prop_oneof![
            prop::collection::vec(part.clone(), 0..10).prop_map(Value::list),
            (class.clone(), prop::collection::vec(part.clone(), 0..10))
                .prop_map(|(class, items)| Value::typed_list(class, items)),
            prop::collection::vec((part.clone(), part.clone()), 0..5).prop_map(Value::map),
            (class.clone(), prop::collection::vec((part.clone(), part.clone()), 0..5))
                .prop_map(|(class, entries)| Value::typed_map(class, entries)),
            (class, prop::collection::vec(("[a-c]", part.clone()), 0..5))
                .prop_map(|(class, fields)| Value::object(class, fields)),
            // The same part twice.
            part.prop_map(|part| Value::list([part.clone(), part])),
        ]
    });
    // A root for the references.
    inner.prop_map(|inner| Value::list([inner]))
}

fn everything() -> impl Strategy<Value = Everything> {
    let simple =
        (text(), any::<(i8, u16, i64, f32, f64, bool, char)>(), prop::option::of(any::<i64>()), value())
            .prop_filter("NaN is not equal to itself", |(_, numbers, _, _)| {
                !numbers.3.is_nan() && !numbers.4.is_nan()
            })
            .prop_map(|(k, i, date, value)| Everything {
                c: HashMap::from([(k.clone(), value)]),
                d: Some(JavaBytes(k.clone().into_bytes())),
                e: date.map(Date),
                g: date.map(|number| BigInteger(number.to_string())),
                j: Array(vec![vec![1, 2], vec![]]),
                k,
                l: if i.5 { Kind::One } else { Kind::Two },
                i,
                ..Everything::default()
            });
    simple.prop_recursive(3, 8, 2, |inner| {
        (inner.clone(), prop::collection::vec(inner, 0..3)).prop_map(|(a, b)| Everything {
            a: Some(Box::new(a)),
            b,
            ..Everything::default()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_reading_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        read_in_every_way(&body.into());
    }

    #[test]
    fn no_bytes_that_look_like_values_make_reading_panic(body in body()) {
        read_in_every_way(&body.into());
    }

    #[test]
    fn damaged_bodies_do_not_make_reading_panic(value in value(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = write_value(&value).to_vec();
        let at = at.index(body.len());
        body[at] = byte;
        read_in_every_way(&body.into());
    }

    #[test]
    fn dynamic_values_read_back_as_they_were_written(value in value()) {
        prop_assert_eq!(&read_value(write_value(&value)).unwrap(), &value);
        let sharing = Hessian2::new().with_sharing(true);
        let shared = write_with(&sharing, |writer| writer.write_value(&value)).unwrap();
        prop_assert_eq!(read_value(shared).unwrap(), value);
    }

    #[test]
    fn typed_values_read_back_as_they_were_written(value in everything()) {
        let body = write(&value);
        prop_assert_eq!(&read_as::<Everything>(body.clone()).unwrap(), &value);
        let dynamic = read_value(body.clone()).unwrap();
        prop_assert_eq!(write_value(&dynamic), body);
    }
}

//! What the user failures behind the recorded cases ask of strings, references, tags, numbers and hostile input.

mod support;

use std::collections::HashMap;

use dubhe_core::error::Exception;
use dubhe_core::serialize::{ObjectWriter, Serialization};
use dubhe_core::value::java::JavaBytes;
use dubhe_core::value::{List, Value};
use dubhe_serialize_hessian2::Hessian2;
use serde::{Deserialize, Serialize};
use support::{bytes, read_as, read_value, read_values, reader, write, write_value, write_with};

fn hex_of(value: &Value) -> String {
    hex::encode(write_value(value))
}

// C78
#[test]
fn a_character_beyond_the_bmp_is_two_units_of_three_bytes() {
    assert_eq!(hex::encode(write(&"😀")), "02eda0bdedb880");
    assert_eq!(read_as::<String>(bytes("02 eda0bd edb880")).unwrap(), "😀");
    assert_eq!(read_value(bytes("02 eda0bd edb880")).unwrap(), "😀".into());
}

// C78
#[test]
fn real_utf8_of_four_bytes_is_read_too() {
    assert_eq!(read_as::<String>(bytes("02 f09f9880")).unwrap(), "😀");
    assert_eq!(read_as::<String>(bytes("04 61 f09f9880 62")).unwrap(), "a😀b");
    // Counted as one character, as some writers do, it can be told at the end of a string.
    assert_eq!(read_as::<String>(bytes("01 f09f9880")).unwrap(), "😀");
}

// C78
#[test]
fn a_character_may_be_split_between_chunks() {
    assert_eq!(read_as::<String>(bytes("52 0001 eda0bd 01 edb880")).unwrap(), "😀");
    assert_eq!(read_as::<String>(bytes("52 0002 61 eda0bd 52 0000 53 0002 edb880 62")).unwrap(), "a😀b");
    assert_eq!(read_value(bytes("52 0001 eda0bd 01 edb880")).unwrap(), "😀".into());
}

// C78
#[test]
fn a_long_string_never_splits_a_pair_between_chunks() {
    let text = format!("{}😀b", "a".repeat(32_767));
    let body = write(&text);
    assert_eq!(&body[..3], [b'R', 0x7f, 0xff]);
    assert_eq!(&body[3 + 32_767..], bytes("03 eda0bd edb880 62"));
    assert_eq!(read_as::<String>(body).unwrap(), text);
}

#[test]
fn a_lone_surrogate_is_kept_in_a_dynamic_value_and_refused_by_a_rust_string() {
    let value = read_value(bytes("02 78 eda0bd")).unwrap();
    assert_eq!(value, Value::Utf16([0x78, 0xd83d].as_slice().into()));
    assert_eq!(hex_of(&value), "0278eda0bd");
    let error = read_as::<String>(bytes("02 78 eda0bd")).unwrap_err().to_string();
    assert!(error.contains("lone surrogate"), "{error}");
}

#[test]
fn a_truncated_string_is_an_error_where_java_invents_characters() {
    let error = read_as::<String>(bytes("05 616263")).unwrap_err().to_string();
    assert!(error.contains("the body ends inside a value, at byte 4"), "{error}");
    assert!(read_value(bytes("02 eda0")).is_err());
}

// C80
#[test]
fn an_object_with_empty_and_null_maps_that_refers_to_itself_is_a_cycle() {
    // Node {self, full1: {}, full2: {}, none1: null, none2: null, again}: the second reference counts both maps.
    let body = bytes("43 04 4e6f6465 96 0473656c66 0161 0162 0163 0164 0165 60 5190 485a 485a 4e 4e 5192");
    let node = read_value(body).unwrap();
    assert_eq!(node.field("self"), Some(&Value::Ref(0)));
    assert_eq!(node.field("a"), node.field("b"));
    assert_eq!(node.field("c"), Some(&Value::Null));
    assert_eq!(node.field("e"), Some(&Value::map::<Value, Value>([])));
    assert_eq!(read_value(write_value(&node)).unwrap(), node);
}

// C80
#[test]
fn a_reference_counts_lists_maps_and_objects_from_where_they_begin() {
    // [ [ "x" ], 1.5, date, "y", bytes, ref 1 ]
    let value = read_value(bytes("7e 790178 5f000005dc 4b00000000 0179 2101 5191")).unwrap();
    assert_eq!(value.element(5), value.element(0));
    let (Value::List(first), Value::List(last)) = (value.element(0).unwrap(), value.element(5).unwrap())
    else {
        panic!("both are lists");
    };
    assert!(std::sync::Arc::ptr_eq(first, last), "the same object again");
}

// C80
#[test]
fn a_class_may_be_defined_after_the_list_that_holds_its_instances_began() {
    let values = read_values(bytes("7a 43 0141 91 0178 60 91 43 0142 91 0179 61 92 60 93")).unwrap();
    assert_eq!(values[0], Value::list([Value::object("A", [("x", 1)]), Value::object("B", [("y", 2)])]));
    assert_eq!(values[1], Value::object("A", [("x", 3)]));
}

// C80
#[test]
fn a_reference_to_what_has_not_begun_is_an_error_that_names_it() {
    for (body, place) in [("7a 91 5195", "at byte 4"), ("5190", "at byte 2"), ("79 518f", "negative")] {
        let error = read_value(bytes(body)).unwrap_err().to_string();
        assert!(error.contains("reference") && error.contains(place), "{body}: {error}");
    }
    assert!(read_as::<Vec<Value>>(bytes("79 5195")).unwrap_err().to_string().contains("object 5"));
    let error = read_value(bytes("62 91")).unwrap_err().to_string();
    assert_eq!(error, "class 2, but only 0 are defined, at byte 0 of 2");
    assert!(read_value(bytes("71 93 91")).unwrap_err().to_string().contains("type 3, but only 0 were named"));
}

// C80
#[test]
fn a_shared_object_reads_twice_into_typed_values() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Point {
        x: i32,
    }

    let body = bytes("7b 43 0550 6f696e74 91 0178 60 91 5191 60 92");
    assert_eq!(read_as::<Vec<Point>>(body).unwrap(), [Point { x: 1 }, Point { x: 1 }, Point { x: 2 }]);
}

// C80
#[test]
fn a_cycle_in_a_typed_value_is_an_error() {
    #[derive(Debug, Deserialize)]
    struct Node {
        next: Option<Box<Self>>,
    }

    let error = read_as::<Node>(bytes("43 01 4e 91 04 6e657874 60 5190")).unwrap_err().to_string();
    assert!(error.contains("N.next") && error.contains("contains itself"), "{error}");
    let end: Node = read_as(bytes("43 01 4e 91 04 6e657874 60 60 4e")).unwrap();
    assert!(end.next.unwrap().next.is_none());
}

// C80
#[test]
fn an_object_of_an_earlier_argument_is_found_by_a_later_one() {
    // Two arguments: a list [ {"k": node} ] and the node again, which refers to itself and to the list.
    let body = bytes("79 48 016b 43 01 4e 92 0173 016c 60 5192 5190 5a 5192");
    let values = read_values(body).unwrap();
    let node = values[0].element(0).and_then(|map| map.get("k")).unwrap();
    assert_eq!(node.field("s"), Some(&Value::Ref(2)));
    assert_eq!(node.field("l"), Some(&Value::Ref(0)));
    // In the second argument the node is the root.
    assert_eq!(values[1].field("s"), Some(&Value::Ref(0)));
    let list = values[1].field("l").unwrap();
    assert_eq!(list.element(0).and_then(|map| map.get("k")), Some(&Value::Ref(0)));
    assert_eq!(read_values(support::write_values(&values)).unwrap(), values);
}

// C80
#[test]
fn cycles_are_written_as_references_and_shared_objects_again() {
    let inner = Value::list(["s".into()]);
    let shared = Value::list([inner.clone(), inner, Value::Ref(0)]);
    assert_eq!(hex_of(&shared), "7b7901737901735190");
    let sharing = Hessian2::new().with_sharing(true);
    let body = write_with(&sharing, |writer| writer.write_value(&shared)).unwrap();
    assert_eq!(hex::encode(&body), "7b79017351915190");
    assert_eq!(read_value(body).unwrap(), shared);
}

// C80
#[test]
fn references_count_on_after_typed_values_of_the_same_body() {
    let cyclic = Value::map([("me", Value::Ref(0))]);
    let body = write_with(&Hessian2::new(), |writer| {
        writer.write(&vec![vec![1], vec![2]])?;
        writer.write_value(&cyclic)
    })
    .unwrap();
    assert!(body.ends_with(&bytes("48 026d65 5193 5a")));
    assert_eq!(read_values(body).unwrap()[1], cyclic);
}

// C81
#[test]
fn an_object_with_a_byte_array_reads_in_all_forms_of_binary() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Blob {
        data: Vec<u8>,
    }

    let head = "43 04 426c6f62 91 04 64617461 60";
    for binary in
        ["23 010203", "3403 010203", "42 0003 010203", "41 0001 01 41 0001 02 21 03", "41 0003 010203 20"]
    {
        let body = bytes(&format!("{head} {binary}"));
        assert_eq!(read_as::<Blob>(body.clone()).unwrap(), Blob { data: vec![1, 2, 3] }, "{binary}");
        assert_eq!(read_value(body).unwrap().field("data"), Some(&Value::Bytes(vec![1, 2, 3].into())));
    }
    assert_eq!(read_as::<JavaBytes>(bytes("23 01ff03")).unwrap(), JavaBytes(vec![1, 255, 3]));
    assert_eq!(read_as::<Vec<i8>>(bytes("22 01ff")).unwrap(), [1, -1]);
    // A list of numbers where bytes are wanted.
    assert_eq!(read_as::<JavaBytes>(bytes("7a 91 8f")).unwrap(), JavaBytes(vec![1, 255]));
}

// C81
#[test]
fn lists_and_maps_of_variable_length_end_inside_nested_objects() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Outer {
        list: Vec<i32>,
        map: HashMap<String, Vec<i32>>,
        after: String,
    }

    let body = bytes(
        "43 01 4f 93 04 6c697374 03 6d6170 05 6166746572 60 57 91 92 5a 48 016b 55 04 5b696e74 93 5a 5a 0378797a",
    );
    let expected = Outer {
        list: vec![1, 2],
        map: [("k".to_owned(), vec![3])].into_iter().collect(),
        after: "xyz".into(),
    };
    assert_eq!(read_as::<Outer>(body.clone()).unwrap(), expected);
    let value = read_value(body).unwrap();
    assert_eq!(value.field("list").and_then(Value::as_list).map(<[_]>::len), Some(2));
    // Written with a fixed length, which every Java reader takes.
    assert!(!write_value(&value).contains(&0x57));
}

// C83
#[test]
fn small_integers_are_range_checked_by_typed_values_and_stay_ints_in_dynamic_ones() {
    let body = bytes("7a 91 c92c");
    assert_eq!(read_as::<Vec<i16>>(body.clone()).unwrap(), [1, 300]);
    let error = read_as::<Vec<i8>>(body.clone()).unwrap_err().to_string();
    assert!(error.contains("300") && error.contains("i8"), "{error}");
    assert_eq!(read_value(body).unwrap(), Value::list([1.into(), 300.into()]));
    assert!(read_as::<Vec<u8>>(bytes("79 8f")).is_err());
}

// C83
#[test]
fn numbers_convert_where_nothing_is_lost() {
    assert_eq!(read_as::<i32>(bytes("e5")).unwrap(), 5);
    assert_eq!(read_as::<i64>(bytes("95")).unwrap(), 5);
    assert_eq!(read_as::<i32>(bytes("5c")).unwrap(), 1);
    assert_eq!(read_as::<f64>(bytes("95")).unwrap(), 5.0);
    assert_eq!(read_as::<f32>(bytes("5f0000044c")).unwrap(), 1.1);
    assert!(read_as::<i32>(bytes("5f000005dc")).is_err(), "1.5 is no integer");
    assert!(read_as::<i32>(bytes("0135")).is_err(), "a string is no number");
    assert!(read_as::<i32>(bytes("4c0000000080000000")).is_err());
    assert_eq!(reader(bytes("4c0000000000000007")).read_int().unwrap(), 7);
    assert_eq!(read_as::<String>(bytes("95")).unwrap(), "5");
    assert!(read_as::<bool>(bytes("91")).unwrap());
    assert!(read_as::<i32>(bytes("4e")).unwrap_err().to_string().contains("null where i32 is expected"));
}

// C85
#[test]
fn a_length_that_the_body_cannot_hold_is_refused_before_anything_is_reserved() {
    for body in [
        "58 497fffffff",
        "56 045b696e74 497fffffff",
        "58 49ffffffff",
        "43 0141 497fffffff",
        "43 0141 c900",
        "53 ffff 61",
        "42 ffff 61",
    ] {
        assert!(read_value(bytes(body)).is_err(), "{body}");
        assert!(read_as::<Vec<i32>>(bytes(body)).is_err(), "{body}");
        assert!(read_as::<serde::de::IgnoredAny>(bytes(body)).is_err(), "{body}");
    }
}

// C85
#[test]
fn nesting_is_bounded_for_reading_skipping_and_writing() {
    let deep = |levels: usize| [vec![0x79; levels], vec![0x90]].concat();
    assert!(read_value(deep(128)).is_ok());
    let error = read_value(deep(129)).unwrap_err().to_string();
    assert_eq!(error, "nested deeper than 128 levels, at byte 128 of 130");
    assert!(read_value(deep(1_000_000)).is_err());
    assert!(read_as::<serde::de::IgnoredAny>(deep(1_000_000)).is_err());

    #[derive(Debug, Deserialize, Serialize)]
    #[serde(rename = "demo.Node")]
    struct Node {
        next: Option<Box<Self>>,
    }
    let chain =
        |levels: usize| (1..levels).fold(Node { next: None }, |node, _| Node { next: Some(Box::new(node)) });
    let body = write(&chain(128));
    read_as::<Node>(body).unwrap();
    let error = write_with(&Hessian2::new(), |writer| writer.write(&chain(129))).unwrap_err().to_string();
    assert!(error.contains("nested deeper than 128 levels"), "{error}");
    let longer = [bytes("43 01 4e 91 04 6e657874").to_vec(), vec![0x60; 100_000], vec![b'N']].concat();
    assert!(read_as::<Node>(longer).is_err());
}

// C85
#[test]
fn references_cannot_multiply_a_small_body_into_a_large_one() {
    // Each list holds the one before it twice.
    let bomb = |levels: usize| {
        let mut body = vec![0x7f, 0x7a, 0x90, 0x90, 0x7a, 0x51, 0x91, 0x51, 0x91];
        for level in 2..levels {
            body.extend([0x7a, 0x51, 0x90 + level as u8, 0x51, 0x90 + level as u8]);
        }
        body[0] = 0x58;
        body.splice(1..1, write(&(levels as i32)));
        body
    };
    let value = read_value(bomb(40)).unwrap();
    assert!(value.expanded_size() > 1 << 40);
    assert!(value.to_string().len() < 10_000);
    assert!(format!("{value:?}").len() < 10_000);
    assert_eq!(value, read_value(bomb(40)).unwrap());
    assert!(serde_json::to_string(&value).is_err());
    let error = write_with(&Hessian2::new(), |writer| writer.write_value(&value)).unwrap_err().to_string();
    assert!(error.contains("more than 1000000 values"), "{error}");
    let shared =
        write_with(&Hessian2::new().with_sharing(true), |writer| writer.write_value(&value)).unwrap();
    assert_eq!(read_value(shared).unwrap(), value);

    // A type that would hold it expanded.
    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code, reason = "only built")]
    enum Tree {
        Leaf(i32),
        Node(Vec<Self>),
    }
    let error = read_as::<Tree>(bomb(40)).unwrap_err().to_string();
    assert!(error.contains("more than 1000000 values"), "{error}");
}

// C85
#[test]
fn many_small_objects_are_bounded_by_their_number() {
    let mut body = bytes("43 0141 90 58 4900200000").to_vec();
    body.extend(std::iter::repeat_n(0x60, 0x20_0000));
    assert!(read_value(body.clone()).unwrap_err().to_string().contains("more than 1000000 values"));
    assert!(
        read_as::<serde::de::IgnoredAny>(body).unwrap_err().to_string().contains("more than 1000000 values")
    );
    let definitions = bytes("43 0141 90").repeat(5_000);
    assert!(read_value(definitions).unwrap_err().to_string().contains("more than 4096 class definitions"));
}

// C85
#[test]
fn class_names_have_no_effect() {
    let body = bytes(
        "43 1d 636f6d2e73756e2e726f777365742e4a646263526f77536574496d706c 91 0e 64617461536f757263654e616d65 60 0475726c3a",
    );
    let value = read_value(body).unwrap();
    assert_eq!(value.field("dataSourceName").and_then(Value::as_str), Some("url:"));
}

#[test]
fn every_unassigned_tag_and_every_truncation_is_an_error() {
    for tag in [0x40, 0x45, 0x47, 0x50, b'Z'] {
        assert!(read_value(vec![tag]).is_err(), "{tag:#x}");
    }
    let whole = write_value(&Value::object(
        "demo.All",
        [
            ("a", Value::list([1.into(), 2_i64.into(), 0.1.into()])),
            ("b", "text".into()),
            ("c", Value::Date(1)),
        ],
    ));
    for len in 0..whole.len() {
        assert!(read_value(whole.slice(..len)).is_err(), "{len}");
    }
}

#[test]
fn an_exception_is_written_so_that_java_reads_it_and_read_back() {
    let exception = Exception {
        cause: Some(Box::new(Exception::new("java.io.IOException", "inner"))),
        ..Exception::new("demo.OrderException", "no stock").with_field("code", 42)
    };
    let body = write_with(&Hessian2::new(), |writer| writer.write_exception(&exception)).unwrap();
    let value = read_value(body.clone()).unwrap();
    assert_eq!(value.class(), Some("demo.OrderException"));
    assert_eq!(value.field("suppressedExceptions"), Some(&Value::Null));
    assert_eq!(value.field("stackTrace"), Some(&Value::typed_list("[java.lang.StackTraceElement", [])));
    assert_eq!(reader(body).read_exception().unwrap(), exception);
}

#[test]
fn a_self_cause_is_no_cause() {
    let body = bytes("43 01 45 92 05 6361757365 0d 64657461696c4d657373616765 60 5190 04 626f6f6d");
    let exception = reader(body).read_exception().unwrap();
    assert_eq!((exception.message.as_deref(), exception.cause), (Some("boom"), None));
}

#[test]
fn empty_text_as_a_type_is_no_type_and_takes_its_number() {
    let values = read_values(bytes("71 00 91 71 045b696e74 92 71 91 93 71 90 94")).unwrap();
    let classes: Vec<_> = values.iter().map(Value::class).collect();
    assert_eq!(classes, [None, Some("[int"), Some("[int"), None]);
}

#[test]
fn compact_java_time_of_later_releases_reads_like_the_usual_form() {
    use dubhe_core::value::java::{LocalDate, LocalTime};

    let date = bytes("43 13 6a6176612e74696d652e4c6f63616c44617465 90 60 3c4757");
    assert_eq!(read_as::<LocalDate>(date.clone()).unwrap().to_string(), "2020-01-02");
    assert_eq!(read_value(date).unwrap().to_string(), "2020-01-02");
    let time = bytes("43 13 6a6176612e74696d652e4c6f63616c54696d65 90 60 4c000028ed7a4dac00 91");
    let mut reader = support::reader(time);
    let time: LocalTime = reader.read_as().unwrap();
    assert_eq!((time.hour, time.minute, reader.read_int().unwrap()), (12, 30, 1));
}

#[test]
fn a_written_list_type_is_named_once() {
    let ints = |item: i32| {
        Value::List(std::sync::Arc::new(List { class: Some("[int".into()), items: vec![item.into()] }))
    };
    assert_eq!(hex_of(&Value::list([ints(1), ints(2)])), "7a71045b696e74917190 92".replace(' ', ""));
}

#[test]
fn writing_appends_to_what_is_there() {
    let mut out = ::bytes::BytesMut::from(&b"head"[..]);
    Hessian2::new().encode(&mut out, &mut |writer: &mut dyn ObjectWriter| writer.write_int(1)).unwrap();
    assert_eq!(&out[..], b"head\x91");
}

// C85
#[test]
fn many_types_classes_attachments_and_frames_take_no_quadratic_time() {
    let name = |index: usize| format!("demo.T{index}");
    let lists: Vec<Value> = (0..100_000).map(|index| Value::typed_list(name(index), [])).collect();
    let lists = Value::list(lists);
    assert_eq!(read_value(write_value(&lists)).unwrap(), lists);

    let objects: Vec<Value> = (0..4_000).map(|index| Value::object(name(index), [("a", 1)])).collect();
    let objects = Value::list([objects.clone(), objects.clone(), objects].concat());
    let read = read_value(write_value(&objects)).unwrap();
    assert_eq!(read_value(write_value(&read)).unwrap(), objects);

    let attachments = Value::map((0..5_000).map(|index| (name(index), 1)));
    let error = reader(write_value(&attachments)).read_attachments().unwrap_err().to_string();
    assert!(error.contains("more than 4096 attachments"), "{error}");

    let frame = Value::object("java.lang.StackTraceElement", [("declaringClass", "x".repeat(100_000))]);
    let trace = Value::typed_list("[java.lang.StackTraceElement", vec![frame; 100_000]);
    let exception = Value::object("java.lang.Exception", [("stackTrace", trace)]);
    let body =
        write_with(&Hessian2::new().with_sharing(true), |writer| writer.write_value(&exception)).unwrap();
    let exception = reader(body).read_exception().unwrap();
    assert_eq!(exception.stack_trace.len(), 1_024);
    assert!(exception.stack_trace[0].len() < 2_000);
}

// C85
#[test]
fn references_to_a_large_text_cannot_multiply_it() {
    let large = Value::object("demo.A", [("text", "x".repeat(1 << 20))]);
    let shared = Value::list(vec![large; 1_000]);
    let error = write_with(&Hessian2::new(), |writer| writer.write_value(&shared)).unwrap_err().to_string();
    assert!(error.contains("more than 67108864 bytes"), "{error}");

    #[derive(Debug, Deserialize)]
    struct A {
        #[allow(dead_code, reason = "only read")]
        text: String,
    }
    let body = write_with(&Hessian2::new().with_sharing(true), |writer| writer.write_value(&shared)).unwrap();
    assert_eq!(read_value(body.clone()).unwrap(), shared);
    let error = read_as::<Vec<A>>(body).unwrap_err().to_string();
    assert!(error.contains("more than 67108864 bytes"), "{error}");
}

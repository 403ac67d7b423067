use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::java::{Array, BigDecimal, Date, Instant, IntArray, JavaBytes, LocalDate, LocalTime, Set};
use super::{JavaType, Value, descriptor_of, from_value, to_value};

#[track_caller]
fn check_type<T: JavaType + ?Sized>(name: &str, descriptor: &str) {
    assert_eq!((&*T::name(), &*T::descriptor()), (name, descriptor));
}

#[test]
fn rust_types_have_java_names_and_descriptors() {
    check_type::<()>("void", "V");
    check_type::<bool>("boolean", "Z");
    check_type::<i8>("byte", "B");
    check_type::<i16>("short", "S");
    check_type::<i32>("int", "I");
    check_type::<i64>("long", "J");
    check_type::<f32>("float", "F");
    check_type::<f64>("double", "D");
    check_type::<char>("char", "C");
    check_type::<str>("java.lang.String", "Ljava/lang/String;");
    check_type::<&str>("java.lang.String", "Ljava/lang/String;");
    check_type::<Option<i32>>("java.lang.Integer", "Ljava/lang/Integer;");
    check_type::<Option<char>>("java.lang.Character", "Ljava/lang/Character;");
    check_type::<Option<String>>("java.lang.String", "Ljava/lang/String;");
    check_type::<Option<Vec<i32>>>("java.util.List", "Ljava/util/List;");
    check_type::<Vec<Option<i64>>>("java.util.List", "Ljava/util/List;");
    check_type::<HashMap<String, i32>>("java.util.Map", "Ljava/util/Map;");
    check_type::<HashSet<i32>>("java.util.Set", "Ljava/util/Set;");
    check_type::<BTreeSet<i32>>("java.util.Set", "Ljava/util/Set;");
    check_type::<Set<i32>>("java.util.Set", "Ljava/util/Set;");
    check_type::<Value>("java.lang.Object", "Ljava/lang/Object;");
    check_type::<IntArray>("int[]", "[I");
    check_type::<Array<Array<i32>>>("int[][]", "[[I");
    check_type::<Array<Option<i32>>>("java.lang.Integer[]", "[Ljava/lang/Integer;");
    check_type::<Array<String>>("java.lang.String[]", "[Ljava/lang/String;");
    check_type::<JavaBytes>("byte[]", "[B");
    check_type::<bytes::Bytes>("byte[]", "[B");
    check_type::<Array<JavaBytes>>("byte[][]", "[[B");
    check_type::<Option<JavaBytes>>("byte[]", "[B");
    check_type::<Date>("java.util.Date", "Ljava/util/Date;");
    check_type::<BigDecimal>("java.math.BigDecimal", "Ljava/math/BigDecimal;");
    check_type::<LocalDate>("java.time.LocalDate", "Ljava/time/LocalDate;");
    check_type::<Box<LocalTime>>("java.time.LocalTime", "Ljava/time/LocalTime;");
    assert_eq!(descriptor_of("demo.Outer$Inner[]"), "[Ldemo/Outer$Inner;");
    assert_eq!(descriptor_of("[Ljava.lang.String;"), "[Ljava/lang/String;");
}

#[test]
fn simple_values_have_the_text_of_java() {
    for (value, text) in [
        (Value::Null, "null"),
        (true.into(), "true"),
        (Value::Long(-5), "-5"),
        (1.0.into(), "1.0"),
        ((-0.0).into(), "-0.0"),
        (0.1.into(), "0.1"),
        (100.0.into(), "100.0"),
        (9_999_999.0.into(), "9999999.0"),
        (1.0e7.into(), "1.0E7"),
        (1.5e10.into(), "1.5E10"),
        (0.001.into(), "0.001"),
        (0.000_1.into(), "1.0E-4"),
        (1.23e-5.into(), "1.23E-5"),
        (f64::MAX.into(), "1.7976931348623157E308"),
        (f64::NAN.into(), "NaN"),
        (f64::NEG_INFINITY.into(), "-Infinity"),
        ("a b".into(), "a b"),
        (Value::Date(0), "Thu Jan 01 00:00:00 UTC 1970"),
        (Value::Date(894_621_091_000), "Fri May 08 09:51:31 UTC 1998"),
        (Value::Date(-1), "Wed Dec 31 23:59:59 UTC 1969"),
        (Value::list([1.into(), "x".into(), Value::Null]), "[1, x, null]"),
        (Value::map([("a", 1), ("b", 2)]), "{a=1, b=2}"),
        (Value::enum_constant("demo.Color", "RED"), "RED"),
        (to_value(&BigDecimal("1E+3".into())).unwrap(), "1E+3"),
        (to_value(&LocalDate { year: 2020, month: 1, day: 2 }).unwrap(), "2020-01-02"),
        (to_value(&Instant { seconds: 0, nanos: 0 }).unwrap(), "1970-01-01T00:00:00Z"),
        (Value::object("demo.P", [("x", 1)]), "demo.P{x=1}"),
    ] {
        assert_eq!(value.to_java_text(), text);
    }
}

#[test]
fn text_of_a_large_value_is_cut() {
    let long = Value::list(vec![Value::from("x".repeat(1_000)); 100]);
    assert!(long.to_string().len() < 5_000 && long.to_string().ends_with('…'));
    assert!(format!("{long:?} {:?}", Value::from("é".repeat(100_000))).len() < 15_000);
    assert_eq!(Value::from("x".repeat(100_000)).to_java_text().len(), 100_000);
    let deep = (0..200).fold(Value::Null, |inner, _| Value::list([inner]));
    assert!(deep.to_string().contains('…'));
}

#[test]
fn equality_is_structural_and_by_bits() {
    assert_eq!(Value::Double(f64::NAN), Value::Double(f64::NAN));
    assert_ne!(Value::Double(0.0), Value::Double(-0.0));
    assert_ne!(Value::Int(1), Value::Long(1));
    assert_eq!(Value::list([Value::Ref(0)]), Value::list([Value::Ref(0)]));
    assert_ne!(Value::list([Value::Ref(0)]), Value::list([Value::Ref(1)]));
    let inner = Value::list([1.into()]);
    let other = Value::list([2.into()]);
    assert_eq!(
        Value::list([inner.clone(), inner.clone()]),
        Value::list([inner.clone(), Value::list([1.into()])])
    );
    assert_ne!(Value::list([inner.clone(), inner.clone()]), Value::list([inner.clone(), other.clone()]));
    assert_ne!(Value::list([inner.clone(), inner]), Value::list([other.clone(), other]));
}

#[test]
fn equality_takes_no_longer_for_shared_parts() {
    let bomb = || (0..60).fold(Value::list([]), |inner, _| Value::list([inner.clone(), inner]));
    assert_eq!(bomb(), bomb());
    assert_eq!(bomb().expanded_size(), (1 << 61) - 1);
    assert!(!bomb().has_refs());
    assert!(serde_json::to_string(&bomb()).is_err());
    assert!(from_value::<serde_json::Value>(bomb()).is_err());
    let cyclic = (0..60).fold(Value::list([Value::Ref(0)]), |inner, _| Value::list([inner.clone(), inner]));
    assert_eq!(cyclic.without_cycles().expanded_size(), cyclic.expanded_size());
}

#[test]
fn values_are_looked_into_by_kind() {
    let value =
        Value::object("demo.User", [("name", Value::from("ann")), ("tags", Value::list(["a".into()]))]);
    assert_eq!(value.class(), Some("demo.User"));
    assert_eq!(value.field("name").and_then(Value::as_str), Some("ann"));
    assert_eq!(value.field("tags").and_then(|tags| tags.element(0)).and_then(Value::as_str), Some("a"));
    assert_eq!(value.field("none"), None);
    let map = Value::map([("k", Value::Long(5)), ("k", Value::Long(6))]);
    assert_eq!(map.get("k").and_then(Value::as_int), Some(6));
    assert_eq!(map.field("k").and_then(Value::as_double), Some(6.0));
    assert_eq!(Value::Long(1 << 40).as_int(), None);
    assert_eq!(Value::utf16(&[0x61]), "a".into());
    assert!(matches!(Value::utf16(&[0xd800]), Value::Utf16(_)));
}

#[test]
fn a_part_taken_out_of_its_root_has_no_cycles() {
    let shared = Value::map([("up", Value::Ref(0)), ("x", 1.into())]);
    assert_eq!(shared.without_cycles(), Value::map([("up", Value::Null), ("x", 1.into())]));
    let plain = Value::list([1.into()]);
    let (Value::List(a), Value::List(b)) = (&plain, &plain.without_cycles()) else { panic!("lists") };
    assert!(Arc::ptr_eq(a, b), "nothing to cut, nothing copied");
    assert!(
        from_value::<Vec<Vec<i32>>>(Value::list([Value::Ref(0)])).unwrap_err().to_string().contains("cycle")
    );
}

#[test]
fn values_go_to_json_and_come_from_it() {
    let value = Value::object(
        "demo.P",
        [("x", Value::Int(1)), ("d", Value::Date(5)), ("b", Value::Bytes(vec![1].into()))],
    );
    assert_eq!(serde_json::to_string(&value).unwrap(), r#"{"class":"demo.P","x":1,"d":5,"b":[1]}"#);
    let read: Value = serde_json::from_str(r#"{"a":[1,5000000000,1.5,null,true,"s"]}"#).unwrap();
    let items = [1.into(), 5_000_000_000_i64.into(), 1.5.into(), Value::Null, true.into(), "s".into()];
    assert_eq!(read, Value::map([("a", Value::list(items))]));
    let set = serde_json::to_string(&(Array(vec![1]), Date(5), BigDecimal("1.5".into()))).unwrap();
    assert_eq!(set, r#"[[1],5,"1.5"]"#);
    assert_eq!(
        serde_json::from_str::<(Array<i32>, Date, BigDecimal)>(&set).unwrap().2,
        BigDecimal("1.5".into())
    );
}

#[test]
fn floats_widen_by_their_text() {
    assert_eq!(to_value(&1.1_f32).unwrap(), Value::Double(1.1));
    assert_eq!(to_value(&16_777_216.0_f32).unwrap(), Value::Double(16_777_216.0));
    assert_eq!(to_value(&f32::INFINITY).unwrap(), Value::Double(f64::INFINITY));
    assert_eq!(from_value::<f32>(Value::Double(1.1)).unwrap(), 1.1);
}

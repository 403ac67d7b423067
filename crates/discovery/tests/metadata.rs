//! Metadata as others may write it.

use dubhe_core::value::Value;
use dubhe_discovery::{MetadataInfo, metadata_from_value, metadata_to_value};

#[test]
fn nulls_and_unknown_fields_anywhere_are_tolerated() {
    let text = r#"{"app":null,"revision":"r","tag":{"deep":[1]},"services":{
        "a.A:dubbo":{"name":"a.A","group":null,"version":null,"protocol":"dubbo","port":null,"path":null,
            "params":{"timeout":"5","token":null},"methodParams":null,"x":[{}]},
        "a.B:dubbo":{"name":"a.B","protocol":null,"params":null},
        "a.C:dubbo":null}}"#;
    let info: MetadataInfo = serde_json::from_str(text).expect("metadata");
    assert_eq!(info.services.keys().collect::<Vec<_>>(), ["a.A:dubbo", "a.B:dubbo"]);
    let service = &info.services["a.A:dubbo"];
    assert_eq!((service.port, service.path.as_deref()), (-1, None));
    assert_eq!(service.params.iter().collect::<Vec<_>>(), [(&"timeout".to_owned(), &"5".to_owned())]);
    let bare: MetadataInfo = serde_json::from_str(r#"{"services":null}"#).expect("metadata");
    assert_eq!(bare, MetadataInfo::default());
}

#[test]
fn nulls_in_an_answer_of_a_metadata_service_are_tolerated() {
    let service = |params: Value| {
        let fields = [
            ("name", Value::from("a.A")),
            ("protocol", Value::Null),
            ("port", Value::Null),
            ("params", params),
        ];
        Value::object("org.apache.dubbo.metadata.MetadataInfo$ServiceInfo", fields)
    };
    let params = Value::map([("timeout", Value::from("5")), ("token", Value::Null)]);
    let services =
        Value::map([("a.A:dubbo", service(params)), ("a.B", service(Value::Null)), ("a.C", Value::Null)]);
    let fields = [("services", services), ("app", Value::Null), ("more", Value::from(1))];
    let answer = Value::object("org.apache.dubbo.metadata.MetadataInfo", fields);
    let info = metadata_from_value(answer).expect("metadata").expect("known");
    assert_eq!(info.services.len(), 2);
    assert_eq!(info.services["a.A:dubbo"].params.len(), 1);
    let again = metadata_from_value(metadata_to_value(&info)).expect("metadata").expect("known");
    assert_eq!(again, info);
}

#[test]
fn what_is_no_metadata_is_an_error() {
    for answer in [Value::from(1), Value::from("text"), Value::map([("services", Value::from("text"))])] {
        assert!(metadata_from_value(answer).is_err());
    }
    assert_eq!(metadata_from_value(Value::Null).expect("null"), None);
}

use super::*;
use crate::recorded;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// Two services, one of them also over another protocol.
fn service() -> MetadataService {
    let own = OwnMetadata::new("demo");
    own.add(&url("dubbo://192.0.2.1:20880/demo.Foo?interface=demo.Foo&timeout=5"));
    own.add(&url("tri://192.0.2.1:50051/demo.Foo?interface=demo.Foo"));
    own.add(&url("dubbo://192.0.2.1:20880/demo.Bar?interface=demo.Bar&group=g&version=1"));
    MetadataService::new("demo", vec![Arc::new(own)])
}

async fn ask(service: &MetadataService, name: &str, arguments: &[Value]) -> Value {
    let types: String = arguments.iter().map(|_| "Ljava/lang/String;").collect();
    let index = service.definition().find(name, &types).unwrap();
    let call = Invocation::dynamic(name, &types, arguments.to_vec());
    match service.call(index, call).await.unwrap().outcome {
        Outcome::Value(payload) => payload.to_value().unwrap(),
        Outcome::Exception(exception) => panic!("{exception}"),
    }
}

#[tokio::test]
async fn a_revision_is_answered_as_long_as_it_is_known() {
    let service = service();
    let current = service.own[0].current();
    service.own[0].remove(&url("tri://192.0.2.1:50051/demo.Foo?interface=demo.Foo"));
    let now = service.own[0].current();
    for info in [&current, &now] {
        let revision = Value::from(info.revision.as_deref().unwrap());
        let reply = ask(&service, "getMetadataInfo", &[revision]).await;
        assert_eq!(metadata_from_value(reply).unwrap().as_ref(), Some(&**info));
    }
    for unknown in [Value::from("unknown"), Value::from(""), Value::Null] {
        let reply = ask(&service, "getMetadataInfo", &[unknown]).await;
        assert_eq!(metadata_from_value(reply).unwrap(), None);
    }
    let all = ask(&service, "getMetadataInfos", &[]).await;
    assert_eq!(all.as_map().map(<[_]>::len), Some(2));
}

#[tokio::test]
async fn exported_urls_are_found_by_every_number_of_arguments() {
    let service = service();
    let text = Value::from;
    let rows: [(&[Value], &[&str]); 10] = [
        (&[], &["dubbo 20880 demo.Bar", "dubbo 20880 demo.Foo", "tri 50051 demo.Foo"]),
        (&[text("*")], &["dubbo 20880 demo.Bar", "dubbo 20880 demo.Foo", "tri 50051 demo.Foo"]),
        (&[text("demo.Foo")], &["dubbo 20880 demo.Foo", "tri 50051 demo.Foo"]),
        (&[text("demo.Bar")], &[]),
        (&[text("demo.Bar"), text("g")], &[]),
        (&[text("demo.Bar"), text("g"), text("1")], &["dubbo 20880 demo.Bar"]),
        (&[text("demo.Foo"), Value::Null, Value::Null], &["dubbo 20880 demo.Foo", "tri 50051 demo.Foo"]),
        (&[text("demo.Foo"), text(""), text(""), text("tri")], &["tri 50051 demo.Foo"]),
        (
            &[text("demo.Foo"), Value::Null, Value::Null, Value::Null],
            &["dubbo 20880 demo.Foo", "tri 50051 demo.Foo"],
        ),
        (&[text("demo.Baz"), Value::Null, Value::Null, text("dubbo")], &[]),
    ];
    for (arguments, expected) in rows {
        let reply = ask(&service, "getExportedURLs", arguments).await;
        assert_eq!(reply.class(), Some("java.util.TreeSet"));
        let urls: Vec<Url> = reply.as_list().unwrap().iter().map(|one| url(one.as_str().unwrap())).collect();
        let seen: Vec<String> = urls
            .iter()
            .map(|url| format!("{} {} {}", url.protocol(), url.port(), url.service_interface()))
            .collect();
        assert_eq!(seen, expected, "{arguments:?}");
    }
}

#[tokio::test]
async fn the_other_methods_are_answered() {
    let service = service();
    assert_eq!(ask(&service, "serviceName", &[]).await, Value::from("demo"));
    assert_eq!(ask(&service, "version", &[]).await, Value::from("1.0.0"));
    assert_eq!(ask(&service, "getSubscribedURLs", &[]).await.as_list().map(<[_]>::len), Some(0));
    for (name, types) in METHODS {
        let descriptor: String = types.iter().map(|name| format!("L{};", name.replace('.', "/"))).collect();
        let index = service.definition().find(name, &descriptor).unwrap();
        let nulls = vec![Value::Null; types.len()];
        service.call(index, Invocation::dynamic(name, &descriptor, nulls)).await.unwrap();
        // Whatever the arguments are.
        service.call(index, Invocation::dynamic(name, &descriptor, Vec::new())).await.unwrap();
    }
}

#[test]
fn recorded_metadata_survives_the_way_there_and_back() {
    for capture in recorded::captures() {
        let value = metadata_to_value(&capture.metadata_info);
        assert_eq!(value.class(), Some("org.apache.dubbo.metadata.MetadataInfo"));
        let (_, first) = &value.field("services").unwrap().as_map().unwrap()[0];
        assert_eq!(first.class(), Some("org.apache.dubbo.metadata.MetadataInfo$ServiceInfo"));
        assert_eq!(metadata_from_value(value).unwrap(), Some(capture.metadata_info));
    }
}

#[test]
fn answers_of_other_shapes_are_read_or_refused() {
    let loose = Value::map([
        ("app", Value::from("a")),
        ("revision", Value::Null),
        ("more", Value::from(1)),
        ("services", Value::map([("x.Y:dubbo", Value::map([("name", "x.Y"), ("protocol", "dubbo")]))])),
    ]);
    let info = metadata_from_value(loose).unwrap().unwrap();
    assert_eq!(info.services["x.Y:dubbo"].port, -1);
    let nulls = Value::object("x.Y", [("services", Value::Null)]);
    assert_eq!(metadata_from_value(nulls).unwrap(), Some(MetadataInfo::default()));
    for wrong in
        [Value::from("text"), Value::Int(1), Value::map([("services", Value::from("x"))]), Value::Ref(0)]
    {
        assert!(metadata_from_value(wrong.clone()).is_err(), "{wrong:?}");
    }
}

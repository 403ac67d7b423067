//! An instance as a node's data: one JSON object, as Curator writes it for Dubbo's `ZookeeperInstance`.

use std::collections::BTreeMap;
use std::sync::Arc;

use dubhe_core::discovery::ServiceInstance;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// What Java readers make the payload by. Origin: `ZookeeperInstance`.
const PAYLOAD_CLASS: &str = "org.apache.dubbo.registry.zookeeper.ZookeeperInstance";

/// Metadata key of Spring Cloud's instances.
const INSTANCE_STATUS: &str = "instance_status";

/// Fields in the order in which Curator writes them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    name: &'a str,
    id: &'a str,
    address: &'a str,
    port: u16,
    ssl_port: (),
    payload: WrittenPayload<'a>,
    #[serde(rename = "registrationTimeUTC")]
    registration_time: u64,
    service_type: &'static str,
    uri_spec: (),
}

#[derive(Serialize)]
struct WrittenPayload<'a> {
    #[serde(rename = "@class")]
    class: &'static str,
    id: &'a str,
    name: &'a str,
    metadata: &'a BTreeMap<String, String>,
}

/// The node's data. Java's readers skip what they do not know, but need each of these fields as it is.
pub(crate) fn write(instance: &ServiceInstance) -> String {
    let id = instance.address();
    let node = Written {
        name: &instance.application,
        id: &id,
        address: &instance.host,
        port: instance.port,
        ssl_port: (),
        payload: WrittenPayload {
            class: PAYLOAD_CLASS,
            id: &id,
            name: &instance.application,
            metadata: &instance.metadata,
        },
        registration_time: instance.registered_at,
        service_type: "DYNAMIC",
        uri_spec: (),
    };
    serde_json::to_string(&node).expect("texts and numbers have a JSON form")
}

#[derive(Deserialize)]
struct Read {
    address: Option<String>,
    port: Option<i64>,
    #[serde(rename = "registrationTimeUTC")]
    registration_time: Option<i64>,
    enabled: Option<bool>,
    payload: Option<Json>,
}

/// Reads a node's data; the error says what is wrong with it.
///
/// A payload of another class, such as Spring Cloud's, or none at all is an instance without metadata; a status that
/// is not `UP` disables it.
pub(crate) fn read(application: &Arc<str>, data: &[u8]) -> Result<ServiceInstance, String> {
    let node: Read = serde_json::from_slice(data).map_err(|error| error.to_string())?;
    let host = node.address.as_deref().map(|host| host.trim().trim_start_matches('[').trim_end_matches(']'));
    let host = host.filter(|host| !host.is_empty()).ok_or("it has no address")?;
    let port = node.port.ok_or("it has no port")?;
    let port = u16::try_from(port).ok().filter(|port| *port != 0).ok_or(format!("its port is {port}"))?;
    let payload = node.payload.unwrap_or_default();
    let texts = |value: &Json| match value {
        Json::Object(entries) => {
            let texts = entries.iter().filter_map(|(key, value)| Some((key.clone(), text(value)?)));
            texts.collect()
        }
        _ => BTreeMap::new(),
    };
    let metadata = texts(&payload["metadata"]);
    let is_up = metadata.get(INSTANCE_STATUS).is_none_or(|status| status.eq_ignore_ascii_case("UP"));
    Ok(ServiceInstance {
        application: Arc::clone(application),
        host: Arc::from(host),
        port,
        enabled: node.enabled.unwrap_or(true) && is_up,
        registered_at: node.registration_time.and_then(|time| u64::try_from(time).ok()).unwrap_or(0),
        metadata: if payload["@class"] == PAYLOAD_CLASS { metadata } else { BTreeMap::new() },
    })
}

fn text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Number(_) | Json::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;

    fn app() -> Arc<str> {
        Arc::from("demo")
    }

    #[test]
    fn a_foreign_payload_is_an_instance_without_metadata() {
        let rows = [
            r#"{"name":"demo","id":"x","address":"192.0.2.1","port":8080,"payload":null}"#,
            r#"{"address":"192.0.2.1","port":8080}"#,
            r#"{"address":"192.0.2.1","port":8080,"payload":[1,2],"uriSpec":{"parts":[]}}"#,
            r#"{"name":"demo","id":"a-uuid","address":"192.0.2.1","port":8080,"sslPort":null,"payload":{
                "@class":"org.springframework.cloud.zookeeper.discovery.ZookeeperInstance","id":"application-1",
                "name":"demo","metadata":{"instance_status":"UP"}},"registrationTimeUTC":1,"serviceType":"DYNAMIC"}"#,
        ];
        for data in rows {
            let instance = read(&app(), data.as_bytes()).unwrap();
            assert_eq!((&*instance.host, instance.port, instance.enabled), ("192.0.2.1", 8080, true));
            assert!(instance.metadata.is_empty());
        }
    }

    #[test]
    fn recorded_instances_are_written_as_they_were_read() {
        let nodes = recorded::instances();
        assert_eq!(nodes.len(), 10, "six trees and four captures");
        for node in nodes {
            let instance = read(&Arc::from("demo-provider"), node.data.as_bytes()).unwrap();
            assert!(instance.enabled && instance.revision().is_some() && instance.registered_at > 0);
            assert!(node.path.ends_with(&format!("/{}", instance.address())));
            assert_eq!(write(&instance), node.data);
        }
    }

    // C111
    #[test]
    fn an_instance_that_is_not_up_is_disabled() {
        let rows = [
            r#"{"address":"192.0.2.1","port":8080,"enabled":false}"#,
            r#"{"address":"192.0.2.1","port":8080,"payload":{"@class":"x.Y","metadata":{"instance_status":"OUT_OF_SERVICE"}}}"#,
            r#"{"address":"192.0.2.1","port":8080,"payload":{"@class":"x.Y","metadata":{"instance_status":"DOWN"}}}"#,
        ];
        for data in rows {
            assert!(!read(&app(), data.as_bytes()).unwrap().enabled, "{data}");
        }
    }

    #[test]
    fn what_is_no_instance_is_an_error() {
        let deep = "[".repeat(100_000);
        let rows = [
            "",
            "127.0.0.1",
            "[]",
            r#"{"port":1}"#,
            r#"{"address":"","port":1}"#,
            r#"{"address":"h","port":null}"#,
            r#"{"address":"h","port":0}"#,
            r#"{"address":"h","port":70000}"#,
            r#"{"address":"h","port":-1}"#,
            r#"{"address":5,"port":1}"#,
            &deep,
        ];
        for data in rows {
            assert!(read(&app(), data.as_bytes()).is_err(), "{data:.60}");
        }
        assert!(read(&app(), b"{\"address\":\"\xff\",\"port\":1}").is_err());
    }

    #[test]
    fn an_ipv6_host_has_no_brackets() {
        let instance = read(&app(), br#"{"address":"[2001:db8::1]","port":1}"#).unwrap();
        assert_eq!(&*instance.host, "2001:db8::1");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut instance =
            ServiceInstance::new("demo", "192.0.2.1", 20880).with("k", "{\"a\":\"\u{e9}\\\"\"}");
        instance.registered_at = 7;
        assert_eq!(read(&app(), write(&instance).as_bytes()).unwrap(), instance);
    }

    proptest::proptest! {
        #[test]
        fn no_data_makes_reading_panic(data in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let _ = read(&app(), &data);
        }

        #[test]
        fn no_field_makes_reading_panic(
            name in "(address|port|payload|enabled|registrationTimeUTC)",
            value in r#"(null|true|-?[0-9]{1,25}(\.[0-9])?|"[^"\\]{0,9}"|\{"metadata":([0-9]|\[\]|\{"a":[0-9]\})\}|\[\])"#,
        ) {
            let data = format!(r#"{{"address":"h","port":1,"x":{{}},"{name}":{value}}}"#);
            let _ = read(&app(), data.as_bytes());
        }

        #[test]
        fn any_metadata_is_read_as_it_was_written(
            metadata in proptest::collection::btree_map(".{0,20}", ".{0,40}", 0..5),
            port in 1..=u16::MAX,
        ) {
            let mut instance = ServiceInstance::new("demo", "192.0.2.1", port);
            instance.metadata = metadata;
            // A status is Spring Cloud's business.
            instance.metadata.remove(INSTANCE_STATUS);
            proptest::prop_assert_eq!(read(&app(), write(&instance).as_bytes()), Ok(instance));
        }
    }
}

//! The metadata service over the dubbo protocol, and what Java's answered.

use std::sync::Arc;

use bytes::Bytes;
use dubhe::Dubhe;
use dubhe::config::ProtocolConfig;
use dubhe_common::Url;
use dubhe_core::metadata::MetadataInfo;
use dubhe_core::serialize::Serialization;
use dubhe_discovery::{
    METADATA_SERVICE, METADATA_SERVICE_V1, MetadataService, OwnMetadata, ask_metadata_service,
    metadata_from_value,
};
use dubhe_serialize_hessian2::Hessian2;

const APP: &str = "demo-provider";

#[tokio::test]
async fn a_provider_answers_for_its_metadata_over_the_dubbo_protocol() {
    let own = Arc::new(OwnMetadata::new(APP));
    own.add(&Url::parse("dubbo://192.0.2.1:20880/demo.Foo?interface=demo.Foo&timeout=5&group=g").unwrap());
    let provider =
        Dubhe::builder(APP).protocol(ProtocolConfig { port: Some(0), ..ProtocolConfig::default() });
    let provider = provider.start().await.unwrap();
    let exported = provider
        .untyped_service(Arc::new(MetadataService::new(APP, vec![Arc::clone(&own)])))
        .group(APP)
        .version(METADATA_SERVICE_V1)
        .register(false)
        .export()
        .await
        .unwrap();
    let port = exported.urls()[0].port();
    let consumer = Dubhe::builder("demo-consumer").start().await.unwrap();
    let asking = consumer
        .generic(METADATA_SERVICE)
        .group(APP)
        .version(METADATA_SERVICE_V1)
        .url(format!("dubbo://127.0.0.1:{port}/{METADATA_SERVICE}"))
        .get()
        .await
        .unwrap();
    let current = own.current();
    let revision = current.revision.as_deref().unwrap();
    let answer = ask_metadata_service(asking.invoker(), revision).await.unwrap();
    assert_eq!(answer.as_ref(), Some(&*current));
    assert_eq!(ask_metadata_service(asking.invoker(), "unknown").await.unwrap(), None);
    consumer.shutdown().await;
    provider.shutdown().await;
}

#[test]
fn answers_of_java_are_read() {
    #[derive(serde::Deserialize)]
    struct Captures {
        cases: Vec<Case>,
    }
    #[derive(serde::Deserialize)]
    struct Case {
        metadata_info: MetadataInfo,
        response: Response,
    }
    #[derive(serde::Deserialize)]
    struct Response {
        hex: String,
    }
    let json = include_str!("../../../discovery/tests/vectors/metadata.json");
    let captures: Captures = serde_json::from_str(json).unwrap();
    assert_eq!(captures.cases.len(), 4);
    for case in captures.cases {
        let frame = hex::decode(case.response.hex).unwrap();
        // After the header: the kind of reply, then the value.
        let mut reader = Hessian2::new().reader(Bytes::from(frame).slice(16..));
        assert_eq!(reader.read_int().unwrap(), 4);
        let answer = metadata_from_value(reader.read_value().unwrap()).unwrap();
        assert_eq!(answer, Some(case.metadata_info));
    }
}

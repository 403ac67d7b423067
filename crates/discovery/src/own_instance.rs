//! An application's own instance, made from what it exports (`ServiceInstanceMetadataUtils`).

use std::collections::BTreeMap;
use std::fmt::Write;

use dubhe_common::{Url, keys};
use dubhe_core::discovery::{
    ENDPOINTS, LOCAL, METADATA_SERVICE_PARAMS, METADATA_SERVICE_VERSION, REMOTE, REVISION, STORAGE_TYPE,
    ServiceInstance,
};
use dubhe_core::tree::TreeError;

use crate::instance_metadata::Endpoint;

/// Parameters of exported URLs that belong to the instance as a whole. Origin: `ServiceInstanceMetadataUtils`.
const OF_THE_INSTANCE: [&str; 3] = [keys::TIMESTAMP, keys::HEARTBEAT_TIMEOUT, keys::IPV6];

/// Parameters of the metadata service that consumers need, in the order in which Dubbo writes them. Origin: the
/// simplified provider keys without application, group, deprecated and timestamp.
const OF_THE_METADATA_SERVICE: [&str; 21] = [
    keys::CODEC,
    keys::EXCHANGER,
    keys::SERIALIZATION,
    keys::PREFER_SERIALIZATION,
    "serialize.packable.factory",
    keys::CLUSTER,
    keys::CONNECTIONS,
    keys::LOADBALANCE,
    keys::MOCK,
    keys::PATH,
    keys::TIMEOUT,
    keys::TOKEN,
    keys::VERSION,
    keys::WARMUP,
    keys::WEIGHT,
    keys::DUBBO,
    keys::RELEASE,
    keys::SIDE,
    keys::IPV6,
    "auth",
    "authenticator",
];

/// What an application says of itself when it registers. Made anew for every update, so that nothing goes stale.
#[derive(Clone, Debug)]
pub struct OwnInstance<'a> {
    application: &'a str,
    protocol: &'a str,
    exported: &'a [Url],
    revision: &'a str,
    metadata_service: Option<&'a Url>,
    metadata_service_version: Option<&'a str>,
    labels: BTreeMap<String, String>,
}

/// An instance cannot say two things at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the services of application {application} disagree on `{name}` ({one} and {other}): it belongs to the instance, set it once for all"
)]
pub struct InconsistentInstance {
    /// The application.
    pub application: String,
    /// The parameter.
    pub name: String,
    /// A value of it.
    pub one: String,
    /// Another one.
    pub other: String,
}

impl From<InconsistentInstance> for TreeError {
    fn from(error: InconsistentInstance) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl<'a> OwnInstance<'a> {
    /// An instance of `application` that exports these URLs under this revision, its metadata in the metadata report.
    pub fn new(application: &'a str, exported: &'a [Url], revision: &'a str) -> Self {
        Self {
            application,
            protocol: keys::protocol::DUBBO,
            exported,
            revision,
            metadata_service: None,
            metadata_service_version: None,
            labels: BTreeMap::new(),
        }
    }

    /// With the protocol whose host and port are the instance's. Default `dubbo`.
    #[must_use]
    pub fn protocol(mut self, protocol: &'a str) -> Self {
        self.protocol = protocol;
        self
    }

    /// With a metadata service of its own at `url`, to be asked instead of the report.
    #[must_use]
    pub fn metadata_service(mut self, url: &'a Url) -> Self {
        self.metadata_service = Some(url);
        self
    }

    /// With the version of the metadata service, as 3.3 says it (`meta-v`). Say `2.0.0` only where that is served.
    #[must_use]
    pub fn metadata_service_version(mut self, version: &'a str) -> Self {
        self.metadata_service_version = Some(version);
        self
    }

    /// With further metadata; what Dubbo's own keys say prevails.
    #[must_use]
    pub fn labels(mut self, labels: BTreeMap<String, String>) -> Self {
        self.labels = labels;
        self
    }

    /// The instance; `None` while nothing is exported that has a port: then there is nothing to register.
    ///
    /// Host and port are those of the first URL of the application's protocol, else of the first URL at all; never the
    /// metadata service's.
    ///
    /// # Errors
    /// Exported services disagree on a parameter of the instance.
    pub fn build(&self) -> Result<Option<ServiceInstance>, InconsistentInstance> {
        let offered = || self.exported.iter().filter(|url| url.port() != 0 && !url.host().is_empty());
        let first = offered().find(|url| url.protocol() == self.protocol).or_else(|| offered().next());
        let Some(first) = first else { return Ok(None) };
        let host = first.host().trim_start_matches('[').trim_end_matches(']');
        let mut instance = ServiceInstance::new(self.application, host, first.port());
        instance.metadata = self.labels.clone();
        self.lift(&mut instance.metadata)?;
        let storage = if self.metadata_service.is_some() { LOCAL } else { REMOTE };
        instance = instance
            .with(ENDPOINTS, endpoints_text(offered()))
            .with(REVISION, self.revision)
            .with(STORAGE_TYPE, storage);
        if let Some(url) = self.metadata_service {
            instance = instance.with(METADATA_SERVICE_PARAMS, metadata_service_text(url));
        }
        if let Some(version) = self.metadata_service_version {
            instance = instance.with(METADATA_SERVICE_VERSION, version);
        }
        Ok(Some(instance))
    }

    fn lift(&self, metadata: &mut BTreeMap<String, String>) -> Result<(), InconsistentInstance> {
        for name in OF_THE_INSTANCE {
            let mut found: Option<&str> = None;
            for value in self.exported.iter().filter_map(|url| url.param(name)) {
                match found {
                    Some(one) if one != value && name != keys::TIMESTAMP => {
                        return Err(InconsistentInstance {
                            application: self.application.to_owned(),
                            name: name.to_owned(),
                            one: one.to_owned(),
                            other: value.to_owned(),
                        });
                    }
                    // Of times, the last.
                    _ => found = Some(value),
                }
            }
            if let Some(value) = found {
                metadata.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }
}

/// One endpoint per protocol, in the order of their first appearance; of several ports of one protocol the last.
fn endpoints_text<'a>(urls: impl Iterator<Item = &'a Url>) -> String {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for url in urls {
        match endpoints.iter_mut().find(|endpoint| endpoint.protocol == url.protocol()) {
            Some(endpoint) => endpoint.port = url.port(),
            None => endpoints.push(Endpoint { port: url.port(), protocol: url.protocol().to_owned() }),
        }
    }
    serde_json::to_string(&endpoints).expect("texts and numbers have a JSON form")
}

fn metadata_service_text(url: &Url) -> String {
    let port = url.port().to_string();
    let params = OF_THE_METADATA_SERVICE.iter().filter_map(|name| Some((*name, url.param(name)?)));
    let params = params.filter(|(_, value)| !value.trim().is_empty());
    let mut text = String::from("{");
    for (name, value) in params.chain([(keys::PORT, &*port), (keys::PROTOCOL, url.protocol())]) {
        let comma = if text.len() > 1 { "," } else { "" };
        let value = serde_json::Value::from(value);
        // Writing to a string does not fail.
        let _ = write!(text, "{comma}\"{name}\":{value}");
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance_metadata::{endpoints, metadata_service_params, metadata_service_url, port_for};
    use crate::{instance_node, recorded};

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    // C101
    #[test]
    fn host_port_and_endpoints_are_those_of_the_services() {
        let metadata_service = url(
            "dubbo://192.0.2.1:20885/org.apache.dubbo.metadata.MetadataService?version=1.0.0&group=demo&side=provider",
        );
        let exported = [
            url("tri://192.0.2.1:50051/demo.Foo"),
            url("dubbo://192.0.2.1:20880/demo.Foo"),
            url("dubbo://192.0.2.1:20880/demo.Bar"),
        ];
        let own = OwnInstance::new("demo", &exported, "r").metadata_service(&metadata_service);
        // The same whether it is made for the first attempt to register or for a later one.
        for _ in 0..2 {
            let instance = own.build().unwrap().unwrap();
            assert_eq!(instance.address(), "192.0.2.1:20880");
            assert_eq!(
                instance.metadata[ENDPOINTS],
                r#"[{"port":50051,"protocol":"tri"},{"port":20880,"protocol":"dubbo"}]"#
            );
            assert_eq!(endpoints(&instance).len(), 2);
            assert_eq!((port_for(&instance, "tri"), port_for(&instance, "rest")), (50051, 20880));
            assert_eq!(
                metadata_service_url(&instance, Some(1)).address(),
                "192.0.2.1:20885",
                "the metadata port is for metadata only"
            );
        }
    }

    #[test]
    fn an_application_that_exports_nothing_has_no_instance() {
        assert_eq!(OwnInstance::new("demo", &[], "0").build(), Ok(None));
        let in_process = [url("injvm://127.0.0.1/demo.Foo")];
        assert_eq!(OwnInstance::new("demo", &in_process, "r").build(), Ok(None));
    }

    #[test]
    fn another_protocol_stands_in_for_the_applications_own() {
        let exported = [url("tri://[2001:db8::1]:50051/demo.Foo")];
        let instance = OwnInstance::new("demo", &exported, "r").build().unwrap().unwrap();
        assert_eq!((&*instance.host, instance.port), ("2001:db8::1", 50051));
        let exported = [url("dubbo://192.0.2.1:1/demo.Foo"), url("tri://192.0.2.1:2/demo.Foo")];
        let instance = OwnInstance::new("demo", &exported, "r").protocol("tri").build().unwrap().unwrap();
        assert_eq!(instance.port, 2);
    }

    #[test]
    fn services_must_agree_on_what_belongs_to_the_instance() {
        let with = |params: &str| url(&format!("dubbo://192.0.2.1:1/demo.Foo?{params}"));
        let exported = [with("timestamp=1&ipv6=2001:db8::2"), with("timestamp=2&ipv6=2001:db8::2")];
        let instance = OwnInstance::new("demo", &exported, "r").build().unwrap().unwrap();
        assert_eq!((&*instance.metadata["timestamp"], &*instance.metadata["ipv6"]), ("2", "2001:db8::2"));
        let exported = [with("heartbeat.timeout=1"), with("heartbeat.timeout=2")];
        let refused = OwnInstance::new("demo", &exported, "r").build().unwrap_err();
        assert_eq!(refused.name, "heartbeat.timeout");
    }

    #[test]
    fn labels_do_not_replace_what_dubbo_says() {
        let exported = [url("dubbo://192.0.2.1:1/demo.Foo")];
        let labels =
            [("env", "gray"), (REVISION, "mine")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let own = OwnInstance::new("demo", &exported, "r").labels(BTreeMap::from(labels));
        let instance = own.build().unwrap().unwrap();
        assert_eq!((&*instance.metadata["env"], instance.revision()), ("gray", Some("r")));
    }

    #[test]
    fn an_instance_says_the_same_as_the_recorded_ones() {
        for node in recorded::instances() {
            let theirs = instance_node::read(&"demo-provider".into(), node.data.as_bytes()).unwrap();
            // What that provider exported, as far as the instance shows it.
            let lifted = ["ipv6", "timestamp"].map(|name| (name, theirs.metadata.get(name)));
            let lifted = lifted.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?)));
            let exported: Vec<Url> = endpoints(&theirs)
                .iter()
                .map(|endpoint| {
                    let url = Url::builder(&endpoint.protocol, &theirs.host, endpoint.port).path("demo.Foo");
                    url.params(lifted.clone()).build()
                })
                .collect();
            let mut own = OwnInstance::new("demo-provider", &exported, theirs.revision().unwrap());
            let service = metadata_service_params(&theirs).map(|params| {
                let url = Url::builder(&params["protocol"], &theirs.host, params["port"].parse().unwrap());
                let more =
                    [("application", "x"), ("group", "x"), ("deprecated", "false"), ("executes", "100")];
                url.params(params.iter().filter(|(name, _)| *name != "port" && *name != "protocol"))
                    .params(more)
                    .build()
            });
            if let Some(service) = &service {
                own = own.metadata_service(service);
            }
            if theirs.metadata.contains_key(METADATA_SERVICE_VERSION) {
                own = own.metadata_service_version("1.0.0");
            }
            let ours = own.build().unwrap().unwrap();
            assert_eq!(ours, ServiceInstance { registered_at: 0, ..theirs });
        }
    }

    // C15
    #[test]
    fn the_metadata_service_is_asked_where_the_instance_says() {
        let instance =
            ServiceInstance::new("app", "192.0.2.1", 20880).with(METADATA_SERVICE_VERSION, "2.0.0").with(
                METADATA_SERVICE_PARAMS,
                r#"{"protocol":"dubbo","port":"28001","version":"1.0.0","group":"app"}"#,
            );
        let asked = metadata_service_url(&instance, None);
        assert_eq!((asked.protocol(), asked.port()), ("dubbo", 28001));
        assert_eq!((asked.version(), asked.group()), (Some("1.0.0"), Some("app")));
        assert!(!crate::instance_metadata::offers_metadata_service_v2(&instance));

        let triple =
            instance.with(METADATA_SERVICE_PARAMS, r#"{"protocol":"tri","port":"50051","version":"2.0.0"}"#);
        let asked = metadata_service_url(&triple, None);
        assert_eq!((asked.protocol(), asked.port(), asked.version()), ("tri", 50051, Some("1.0.0")));
        assert!(crate::instance_metadata::offers_metadata_service_v2(&triple));
    }

    #[test]
    fn an_instance_that_does_not_say_is_asked_at_its_own_port() {
        let silent = ServiceInstance::new("app", "192.0.2.1", 20880);
        let asked = metadata_service_url(&silent, None);
        assert_eq!(
            asked.to_full_string(),
            "dubbo://192.0.2.1:20880/org.apache.dubbo.metadata.MetadataService?group=app&\
             interface=org.apache.dubbo.metadata.MetadataService&reconnect=false&retries=0&side=consumer&timeout=5000&version=1.0.0"
        );
        assert_eq!(metadata_service_url(&silent, Some(7)).port(), 7);
        for malformed in ["", "null", "[]", "{\"port\":20880}", "{"] {
            let broken = silent.clone().with(METADATA_SERVICE_PARAMS, malformed).with(ENDPOINTS, malformed);
            assert_eq!(metadata_service_url(&broken, None).port(), 20880);
            assert!(endpoints(&broken).is_empty());
        }
    }

    #[test]
    fn spring_cloud_names_its_metadata_service_by_url() {
        let instance = ServiceInstance::new("app", "192.0.2.1", 8080)
            .with("dubbo.metadata-service.urls", r#"["dubbo://192.0.2.7:20881/x?version=1.0.0&group=app"]"#);
        let asked = metadata_service_url(&instance, None);
        assert_eq!((asked.host(), asked.port(), asked.group()), ("192.0.2.1", 20881, Some("app")));
        for malformed in ["", "null", "[]", "[7]", "{", r#"[""]"#] {
            let broken = instance
                .clone()
                .with("dubbo.metadata-service.urls", malformed)
                .with(METADATA_SERVICE_PARAMS, r#"{"protocol":"dubbo","port":"20882"}"#);
            assert_eq!(metadata_service_url(&broken, None).port(), 20882, "{malformed}");
        }
    }
}

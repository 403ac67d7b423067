//! The metadata service that a provider offers beside its own (`MetadataService`, version 1.0.0), and how to ask one.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use dubhe_common::{ServiceKey, Url};
use dubhe_core::BoxFuture;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::{Arguments, Invocation};
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::metadata::{MetadataInfo, ServiceInfo};
use dubhe_core::response::{Outcome, Payload, Response};
use dubhe_core::serialize::{ObjectReader, SerializeError};
use dubhe_core::service::{MethodDefinition, ReadArguments, Service, ServiceDefinition};
use dubhe_core::value::{Value, from_value};

use crate::instance_metadata::{METADATA_SERVICE, METADATA_SERVICE_V1};
use crate::own_metadata::OwnMetadata;

const TEXT: &str = "java.lang.String";
const LISTENER: &str = "org.apache.dubbo.metadata.InstanceMetadataChangedListener";
const GET_METADATA_INFO: &str = "getMetadataInfo";
const GET_EXPORTED_URLS: &str = "getExportedURLs";
/// Stands for every interface.
const ALL: &str = "*";

/// Java classes of the answers. Fields of an object are found by name.
const METADATA_INFO: &str = "org.apache.dubbo.metadata.MetadataInfo";
const SERVICE_INFO: &str = "org.apache.dubbo.metadata.MetadataInfo$ServiceInfo";
const CONCURRENT_MAP: &str = "java.util.concurrent.ConcurrentHashMap";
const SORTED_SET: &str = "java.util.TreeSet";

/// Names and parameter types of the methods.
const METHODS: [(&str, &[&str]); 16] = [
    ("serviceName", &[]),
    ("version", &[]),
    ("getMetadataURL", &[]),
    ("getSubscribedURLs", &[]),
    (GET_EXPORTED_URLS, &[]),
    (GET_EXPORTED_URLS, &[TEXT]),
    (GET_EXPORTED_URLS, &[TEXT, TEXT]),
    (GET_EXPORTED_URLS, &[TEXT, TEXT, TEXT]),
    (GET_EXPORTED_URLS, &[TEXT, TEXT, TEXT, TEXT]),
    ("getExportedServiceURLs", &[]),
    ("getServiceDefinition", &[TEXT]),
    ("getServiceDefinition", &[TEXT, TEXT, TEXT]),
    (GET_METADATA_INFO, &[TEXT]),
    ("getMetadataInfos", &[]),
    ("exportInstanceMetadata", &[TEXT]),
    ("getAndListenInstanceMetadata", &[TEXT, LISTENER]),
];

/// Answers consumers about what this application exports.
///
/// To be exported unregistered, with the application as group and version `1.0.0`. A revision is answered as long as
/// an [`OwnMetadata`] knows it, and with null otherwise. Of the older methods `getExportedURLs`, `serviceName` and
/// `version` are answered; the rest is null or empty, as for an application that has nothing of the kind.
pub struct MetadataService {
    application: Arc<str>,
    own: Vec<Arc<OwnMetadata>>,
    definition: Arc<ServiceDefinition>,
}

impl MetadataService {
    /// The service of `application` for what `own` knows: what it exports to each of its registries.
    pub fn new(application: impl Into<Arc<str>>, own: Vec<Arc<OwnMetadata>>) -> Self {
        let methods = METHODS.iter().map(|(name, types)| method(name, types)).collect();
        Self {
            application: application.into(),
            own,
            definition: Arc::new(ServiceDefinition::new(METADATA_SERVICE, methods)),
        }
    }

    fn answer(&self, index: usize, arguments: &dyn Arguments) -> Value {
        let Some(method) = self.definition.methods().get(index) else { return Value::Null };
        let values: Vec<Value> = (0..arguments.len()).filter_map(|at| arguments.value(at)).collect();
        let text = |at: usize| values.get(at).and_then(Value::as_str).filter(|text| !text.is_empty());
        match &*method.name {
            "serviceName" => Value::from(Arc::clone(&self.application)),
            "version" => Value::from(METADATA_SERVICE_V1),
            "getSubscribedURLs" => Value::typed_list(SORTED_SET, Vec::new()),
            GET_EXPORTED_URLS => self.exported(text(0).unwrap_or(ALL), text(1), text(2), text(3)),
            GET_METADATA_INFO => {
                let known = |revision: &str| self.own.iter().find_map(|own| own.of_revision(revision));
                text(0).and_then(known).map_or(Value::Null, |info| metadata_to_value(&info))
            }
            "getMetadataInfos" => {
                let known: Vec<_> = self.own.iter().flat_map(|own| own.revisions()).collect();
                let entry = |info: &Arc<MetadataInfo>| {
                    Some((Value::from(info.revision.as_deref()?), metadata_to_value(info)))
                };
                Value::typed_map(CONCURRENT_MAP, known.iter().filter_map(entry))
            }
            _ => Value::Null,
        }
    }

    fn exported(
        &self,
        interface: &str,
        group: Option<&str>,
        version: Option<&str>,
        protocol: Option<&str>,
    ) -> Value {
        let key = ServiceKey::new(group, interface, version);
        let fits = |url: &Url| {
            interface == ALL
                || (ServiceKey::from_url(url) == key
                    && protocol.is_none_or(|protocol| protocol == url.protocol()))
        };
        let urls: BTreeSet<String> = self
            .own
            .iter()
            .flat_map(|own| own.exported())
            .filter(fits)
            .map(|url| url.to_full_string())
            .collect();
        Value::typed_list(SORTED_SET, urls.into_iter().map(Value::from).collect::<Vec<_>>())
    }
}

impl Service for MetadataService {
    fn definition(&self) -> &Arc<ServiceDefinition> {
        &self.definition
    }

    fn call(&self, index: usize, call: Invocation) -> BoxFuture<'_, Result<Response, RpcError>> {
        let answer = self.answer(index, &**call.arguments());
        Box::pin(async move { Ok(Response::of(Payload::value(answer))) })
    }
}

impl fmt::Debug for MetadataService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataService").field("own", &self.own).finish_non_exhaustive()
    }
}

fn method(name: &str, types: &[&str]) -> MethodDefinition {
    let reads: [ReadArguments; 5] =
        [read_values::<0>, read_values::<1>, read_values::<2>, read_values::<3>, read_values::<4>];
    MethodDefinition {
        name: Arc::from(name),
        descriptor: types
            .iter()
            .map(|name| format!("L{};", name.replace('.', "/")))
            .collect::<String>()
            .into(),
        parameter_types: types.iter().map(|name| Arc::from(*name)).collect(),
        read: reads[types.len()],
        convert: |values| Ok(Arc::new(values)),
    }
}

fn read_values<const COUNT: usize>(
    reader: &mut dyn ObjectReader,
) -> Result<Arc<dyn Arguments>, SerializeError> {
    let values: Result<Vec<Value>, SerializeError> = (0..COUNT).map(|_| reader.read_value()).collect();
    Ok(Arc::new(values?))
}

/// Metadata as Java's metadata service sends it.
pub fn metadata_to_value(info: &MetadataInfo) -> Value {
    let services = info.services.iter().map(|(key, service)| (key.as_str(), service_to_value(service)));
    Value::object(
        METADATA_INFO,
        [
            ("services", Value::typed_map(CONCURRENT_MAP, services)),
            ("revision", text_or_null(info.revision.as_deref())),
            ("app", text_or_null(info.app.as_deref())),
        ],
    )
}

fn service_to_value(service: &ServiceInfo) -> Value {
    let params = service.params.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Value::object(
        SERVICE_INFO,
        [
            ("params", Value::map(params)),
            ("path", text_or_null(service.path.as_deref())),
            ("port", Value::Int(service.port)),
            ("protocol", Value::from(service.protocol.as_str())),
            ("version", text_or_null(service.version.as_deref())),
            ("group", text_or_null(service.group.as_deref())),
            ("name", Value::from(service.name.as_str())),
        ],
    )
}

fn text_or_null(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::from)
}

/// What a metadata service answered; `None` for null: it does not know the revision. Unknown fields are skipped.
///
/// # Errors
/// It is no metadata.
pub fn metadata_from_value(reply: Value) -> Result<Option<MetadataInfo>, SerializeError> {
    from_value(reply)
}

/// Asks the metadata service behind `invoker`, which was made for [`metadata_service_url`](crate::metadata_service_url).
///
/// # Errors
/// The call's, and [`ErrorCode::Serialization`] for an answer that is no metadata.
pub async fn ask_metadata_service(
    invoker: &SharedInvoker,
    revision: &str,
) -> Result<Option<MetadataInfo>, RpcError> {
    let call = Invocation::dynamic(GET_METADATA_INFO, "Ljava/lang/String;", vec![Value::from(revision)]);
    let payload = match invoker.invoke(call).await?.outcome {
        Outcome::Value(payload) => payload,
        Outcome::Exception(exception) => return Err(RpcError::business(exception)),
    };
    let malformed = |error: &dyn fmt::Display| {
        let address = invoker.url().address();
        RpcError::new(
            ErrorCode::Serialization,
            format!(
                "the metadata service at {address} answered revision {revision} with something else: {error}"
            ),
        )
    };
    let reply = match payload.take::<Value>() {
        Ok(value) => value,
        Err(payload) => payload.to_value().map_err(|error| malformed(&error))?,
    };
    metadata_from_value(reply).map_err(|error| malformed(&error))
}

#[cfg(test)]
mod tests;

//! Definitions of services for the metadata report: what an admin console shows.

use std::collections::BTreeMap;

use dubhe_common::Url;
use dubhe_core::service::ServiceDefinition;
use serde::Serialize;

/// Rust does not know what a method returns in Java.
const UNKNOWN_TYPE: &str = "java.lang.Object";

/// Fields in the alphabet's order, as 3.3 writes them (`FullServiceDefinition`).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Definition<'a> {
    annotations: [(); 0],
    canonical_name: &'a str,
    code_source: &'a str,
    methods: Vec<Method<'a>>,
    parameters: BTreeMap<&'a str, &'a str>,
    types: Vec<Type<'a>>,
    unique_id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Method<'a> {
    annotations: [(); 0],
    name: &'a str,
    parameter_types: Vec<&'a str>,
    parameters: [(); 0],
    return_type: &'a str,
}

#[derive(Serialize)]
struct Type<'a> {
    enums: [(); 0],
    items: [(); 0],
    properties: BTreeMap<&'a str, &'a str>,
    #[serde(rename = "type")]
    name: &'a str,
}

/// The definition of a provider's service, for [`MetadataReport::publish_definition`]: its methods, the types of
/// their parameters by name only, and all parameters of the exported `url`. `code_source` says where the code is from.
///
/// [`MetadataReport::publish_definition`]: dubhe_core::metadata::MetadataReport::publish_definition
pub fn provider_definition(definition: &ServiceDefinition, url: &Url, code_source: &str) -> String {
    let mut types: Vec<&str> = definition
        .methods()
        .iter()
        .flat_map(|method| method.parameter_types.iter().map(|name| &**name))
        .collect();
    types.sort_unstable();
    types.dedup();
    let written = Definition {
        annotations: [],
        canonical_name: definition.interface(),
        code_source,
        methods: definition
            .methods()
            .iter()
            .map(|method| Method {
                annotations: [],
                name: &method.name,
                parameter_types: method.parameter_types.iter().map(|name| &**name).collect(),
                parameters: [],
                return_type: UNKNOWN_TYPE,
            })
            .collect(),
        parameters: url.params().collect(),
        types: types
            .into_iter()
            .map(|name| Type { enums: [], items: [], properties: BTreeMap::new(), name })
            .collect(),
        unique_id: format!("{}@{code_source}", definition.interface()),
    };
    serde_json::to_string(&written).expect("texts have a JSON form")
}

/// The definition of a consumer's reference: all parameters of its URL.
pub fn consumer_definition(url: &Url) -> String {
    let parameters: BTreeMap<&str, &str> = url.params().collect();
    serde_json::to_string(&parameters).expect("texts have a JSON form")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use dubhe_core::invocation::Arguments;
    use dubhe_core::service::MethodDefinition;
    use std::sync::Arc;

    #[test]
    fn a_definition_has_the_recorded_shape() {
        let greet = MethodDefinition {
            name: "greet".into(),
            descriptor: "Ljava/lang/String;".into(),
            parameter_types: vec!["java.lang.String".into()],
            read: |_| Ok(Arc::new(()) as Arc<dyn Arguments>),
            convert: |values| Ok(Arc::new(values)),
        };
        let node = recorded::nodes()
            .into_iter()
            .rfind(|node| node.path.ends_with("GreetService/1.0.0/g1/provider/demo-provider"))
            .unwrap();
        let mut theirs: serde_json::Value = serde_json::from_str(&node.data).unwrap();
        let params = theirs["parameters"].as_object().unwrap().clone();
        let url = Url::builder("dubbo", "192.0.2.1", 20880)
            .params(params.iter().map(|(name, value)| (name, value.as_str().unwrap())))
            .build();
        let interface = "org.apache.dubbo.demo.GreetService";
        let definition = ServiceDefinition::new(interface, vec![greet]);
        let ours = provider_definition(&definition, &url, theirs["codeSource"].as_str().unwrap());
        theirs["methods"][0]["returnType"] = UNKNOWN_TYPE.into();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&ours).unwrap(), theirs);
        let consumer: BTreeMap<String, String> = serde_json::from_str(&consumer_definition(&url)).unwrap();
        assert_eq!(consumer.len(), params.len());
    }
}

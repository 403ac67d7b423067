//! Trees taken to pieces, and where they differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use dubhe::Url;
use serde_json::Value as Json;

use crate::stores::Node;

/// Host and port of the recorded provider: ours stand for them.
const HOST: &str = "192.0.2.10";
const PORT: &str = "20880";

/// Whose tree it is, as far as that shows.
#[derive(Debug)]
pub(crate) struct Identity {
    host: String,
    port: String,
    /// On the node of the instance.
    revision: String,
}

impl Identity {
    /// Of the provider that is registered in a tree.
    pub(crate) fn of(nodes: &[Node]) -> Self {
        let mut instances = nodes.iter().filter(|node| node.path.starts_with("/services/demo-provider/"));
        let instance: Json = serde_json::from_str(&instances.next().expect("an instance").data).unwrap();
        assert!(instances.next().is_none(), "there is one instance");
        Self {
            host: instance["address"].as_str().unwrap().to_owned(),
            port: instance["port"].to_string(),
            revision: instance["payload"]["metadata"]["dubbo.metadata.revision"].as_str().unwrap().to_owned(),
        }
    }

    fn generalize(&self, text: &str) -> String {
        match text {
            _ if text == self.host => HOST.to_owned(),
            _ if text == self.port => PORT.to_owned(),
            _ if text == self.revision => "<revision>".to_owned(),
            _ => text.replace(&format!("{}:{}", self.host, self.port), &format!("{HOST}:{PORT}")),
        }
    }
}

/// Every field of every node: `(place, field)`. A place is a path without what changes with each start; the fields are the kind of the
/// node and all that its name and data hold, down to JSON in texts in JSON.
pub(crate) type Fields = BTreeMap<(String, String), String>;

pub(crate) fn fields(nodes: &[Node]) -> Fields {
    let of = &Identity::of(nodes);
    let mut fields = Fields::new();
    for node in nodes {
        let kind = match &node.node_type {
            Some(kind) => kind,
            None if node.ephemeral => "ephemeral",
            None => "persistent",
        };
        let (place, content) = content(node, of);
        for (field, value) in content.into_iter().chain([("kind".to_owned(), kind.to_owned())]) {
            let former = fields.insert((place.clone(), field.clone()), value);
            assert_eq!(former, None, "two nodes at {place}: {field}");
        }
    }
    fields
}

fn content(node: &Node, of: &Identity) -> (String, BTreeMap<String, String>) {
    let parts: Vec<&str> = node.path.split('/').skip(1).collect();
    let mut content = BTreeMap::new();
    let place = match parts[..] {
        ["dubbo", interface, category @ ("providers" | "consumers"), name] => {
            let url = Url::parse_encoded(name).unwrap();
            let mut put = |name: &str, value: &str| put_text(&mut content, name, value, of);
            put("(host)", url.host());
            put("(port)", &url.port().to_string());
            put("(path)", url.path().unwrap());
            put("(address)", &node.data);
            url.params().for_each(|(name, value)| put(name, value));
            format!("/dubbo/{interface}/{category}/<{}>", url.protocol())
        }
        ["dubbo", "mapping", interface] => {
            put_text(&mut content, "(applications)", &node.data, of);
            format!("/dubbo/mapping/{interface}")
        }
        _ => {
            match serde_json::from_str::<Json>(&node.data) {
                Ok(json @ Json::Object(_)) => flatten(&mut content, "", &json, of),
                _ => put_text(&mut content, "(data)", &node.data, of),
            }
            match parts[..] {
                ["dubbo", "metadata", application, revision] if content.contains_key("revision") => {
                    let former = if revision == of.revision { "<revision>" } else { "<former revision>" };
                    format!("/dubbo/metadata/{application}/{former}")
                }
                _ => of.generalize(&node.path),
            }
        }
    };
    (place, content)
}

fn flatten(content: &mut BTreeMap<String, String>, at: &str, json: &Json, of: &Identity) {
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
    match json {
        Json::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| flatten(content, &below(name), value, of));
        }
        Json::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                let name = if at == "methods" { signature(item) } else { index.to_string() };
                flatten(content, &below(&name), item, of);
            }
        }
        Json::String(text) => match serde_json::from_str(text) {
            Ok(inner @ (Json::Object(_) | Json::Array(_))) => flatten(content, at, &inner, of),
            _ => put_text(content, at, text, of),
        },
        other => put_text(content, at, &other.to_string(), of),
    }
}

/// Methods are in no order; the types of type parameters are not known in Rust.
fn signature(method: &Json) -> String {
    let types = method["parameterTypes"].as_array().unwrap().iter();
    let types: Vec<&str> = types.map(|name| name.as_str().unwrap().split('<').next().unwrap()).collect();
    format!("{}({})", method["name"].as_str().unwrap(), types.join(","))
}

fn put_text(content: &mut BTreeMap<String, String>, name: &str, text: &str, of: &Identity) {
    let mut text = of.generalize(text);
    if name.rsplit('/').next() == Some("methods") {
        let names: Vec<&str> = text.split(',').collect();
        let once: BTreeSet<&str> = names.iter().copied().collect();
        if once.len() < names.len() {
            content.insert(format!("{name} (repeated)"), "some".to_owned());
        }
        text = once.into_iter().collect::<Vec<_>>().join(",");
    }
    content.insert(name.to_owned(), text);
}

/// A field that is not the same in both trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) place: String,
    pub(crate) field: String,
    pub(crate) theirs: Option<String>,
    pub(crate) ours: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, field, theirs, ours } = self;
        let shown = |one: &Option<String>| one.clone().unwrap_or_else(|| "-".to_owned());
        write!(f, "{place} {field}: theirs {}, ours {}", shown(theirs), shown(ours))
    }
}

pub(crate) fn differences(theirs: &Fields, ours: &Fields) -> Vec<Difference> {
    let all: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
    let different = all.into_iter().filter(|key| theirs.get(key) != ours.get(key));
    different
        .map(|key| Difference {
            place: key.0.clone(),
            field: key.1.clone(),
            theirs: theirs.get(key).cloned(),
            ours: ours.get(key).cloned(),
        })
        .collect()
}

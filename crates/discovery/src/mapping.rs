//! Service-name mapping over a tree (`MetadataServiceNameMapping`, `ZookeeperMetadataReport`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use dubhe_common::Url;
use dubhe_core::mapping::{Applications, ServiceNameMapping};
use dubhe_core::observation::{Observation, Stamp};
use dubhe_core::tree::{NodeData, Tree, TreeError};
use tokio::sync::watch;

use crate::follow::{Reading, follow};
use crate::instance_metadata::METADATA_SERVICE;
use crate::mapping_cache::MappingCache;
use crate::metadata_report::root;
use crate::node_path;
use crate::put::contended;

/// What all mappings are below.
const MAPPING: &str = "mapping";
/// Attempts to add a name while others add theirs. Origin: `dubbo.metadata-report.cas-retry-times`, 10, and the first.
const ATTEMPTS: usize = 11;
/// Longest pause between two attempts, milliseconds. Origin: `dubbo.metadata-report.cas-retry-wait-time`.
const MAX_PAUSE: u64 = 100;

/// Names at `<root>/mapping/<interface>`: `app-a,app-b`. Groups and versions play no part.
///
/// The root is that of the registry's metadata report: each registry's mapping is its own. Names are only ever added.
/// A node that goes away or is emptied leaves what was known, and an order of names is none.
#[derive(Debug)]
pub struct TreeServiceNameMapping {
    tree: Arc<dyn Tree>,
    root: String,
    cache: Option<Arc<MappingCache>>,
}

impl TreeServiceNameMapping {
    /// The mapping beside the metadata report that `url` is the address of, which may be a registry's: `group`
    /// (default `dubbo`).
    pub fn new(url: &Url, tree: Arc<dyn Tree>) -> Self {
        Self { tree, root: node_path::join(&[&root(url), MAPPING]), cache: None }
    }

    /// With a cache: what it knows is there at once, marked as not read yet, until the node is read.
    #[must_use]
    pub fn with_cache(mut self, cache: Arc<MappingCache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// The node of an interface, whose name is not encoded.
    pub fn path(&self, interface: &str) -> String {
        node_path::join(&[&self.root, interface])
    }
}

#[async_trait]
impl ServiceNameMapping for TreeServiceNameMapping {
    /// Fails at once when access is denied, and after eleven attempts during which others were faster each time.
    async fn map(&self, interface: &str, application: &str) -> Result<(), TreeError> {
        let application = application.trim();
        if !is_name(application) || application.contains(',') || interface.is_empty() {
            return Err(TreeError::Invalid(format!(
                "`{interface}` cannot be mapped to application `{application}`: both need a name, that of the application without commas and slashes"
            )));
        }
        if interface == METADATA_SERVICE {
            return Ok(());
        }
        let path = self.path(interface);
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(fastrand::u64(0..MAX_PAUSE))).await;
            }
            // From what is there now, each time.
            let written = match self.tree.read(&path).await? {
                Some(node) if names(&node.bytes).iter().any(|name| **name == *application) => return Ok(()),
                Some(node) => {
                    self.tree.set(&path, with_name(&node.bytes, application), Some(node.version)).await?
                }
                None => self.tree.create(&path, Bytes::copy_from_slice(application.as_bytes())).await?,
            };
            if written {
                return Ok(());
            }
        }
        Err(contended(&*self.tree, &path))
    }

    fn applications(&self, interface: &str) -> watch::Receiver<Observation<Applications>> {
        let cached = self.cache.as_ref().and_then(|cache| cache.get(interface));
        let start = Observation {
            trouble: cached.as_ref().map(|_| Arc::from("from the cache, not read from the registry yet")),
            known: cached,
            stamp: Stamp::default(),
        };
        let reading = Names { interface: Arc::from(interface), cache: self.cache.clone() };
        follow(
            self.tree.data(&self.path(interface)),
            start,
            reading,
            tracing::debug_span!("mapping", rpc.service = interface),
        )
    }
}

struct Names {
    interface: Arc<str>,
    cache: Option<Arc<MappingCache>>,
}

impl Reading for Names {
    type Value = Applications;

    fn read(&mut self, data: Option<&NodeData>, before: Option<&Applications>) -> Applications {
        let now = data.map(|node| names(&node.bytes)).unwrap_or_default();
        match before {
            // The same set is the same value, in whatever order it is written.
            Some(before) if **before == now => Arc::clone(before),
            Some(before) if now.is_empty() => {
                tracing::info!(rpc.service = %self.interface, "the mapping is gone: keeping the applications known");
                Arc::clone(before)
            }
            _ => {
                let now = Arc::new(now);
                if let Some(cache) = &self.cache {
                    cache.put(&self.interface, &now);
                }
                now
            }
        }
    }
}

/// The names in a node: between commas, trimmed, each once. What no application can be called is left out.
fn names(data: &[u8]) -> BTreeSet<Arc<str>> {
    let text = String::from_utf8_lossy(data);
    text.split(',').map(str::trim).filter(|name| is_name(name)).map(Arc::from).collect()
}

/// Whether an application's instances can be in a node of that name.
fn is_name(text: &str) -> bool {
    !matches!(text, "" | "." | "..") && !text.contains(|char: char| char == '/' || char.is_control())
}

/// The same names in the same order, and one more.
fn with_name(data: &[u8], application: &str) -> Bytes {
    let data = data.trim_ascii();
    let end = data.iter().rposition(|byte| !matches!(byte, b',' | b' ')).map_or(0, |at| at + 1);
    let mut longer = data[..end].to_vec();
    if !longer.is_empty() {
        longer.push(b',');
    }
    longer.extend_from_slice(application.as_bytes());
    longer.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubles::Nodes;

    #[test]
    fn names_are_exact_trimmed_and_each_there_once() {
        let rows: [(&str, &[&str]); 6] = [
            ("", &[]),
            (" , ,", &[]),
            ("a", &["a"]),
            ("b, a ,b,,", &["a", "b"]),
            ("order-api,order", &["order", "order-api"]),
            ("\u{e9}", &["\u{e9}"]),
        ];
        for (text, expected) in rows {
            let names: Vec<String> = names(text.as_bytes()).iter().map(|name| name.to_string()).collect();
            assert_eq!(names, expected, "{text}");
        }
        assert_eq!(names(b"\xff,a").len(), 2);
        assert_eq!(names(b"../x,.,..,/,a\0b,a\nb,a").len(), 1, "only what can be a node");
    }

    const PATH: &str = "/dubbo/mapping/demo.Foo";

    fn mapping() -> (Arc<Nodes>, TreeServiceNameMapping) {
        let nodes = Arc::new(Nodes::default());
        let url = Url::parse("zookeeper://192.0.2.1:2181").unwrap();
        let mapping = TreeServiceNameMapping::new(&url, Arc::clone(&nodes) as _);
        (nodes, mapping)
    }

    // C14
    #[tokio::test(start_paused = true)]
    async fn every_attempt_starts_from_what_is_there_then() {
        let rows: [(Option<&str>, &[&str], &str); 5] = [
            (Some("a"), &["", "b"], "b,x"),
            // The reference writes `a,x` here.
            (Some("a"), &[""], "x"),
            (Some("a"), &["a,b", "a,b,c"], "a,b,c,x"),
            // Made by somebody else right before we make it: never written over.
            (None, &["order-x"], "order-x,x"),
            (None, &["x,a"], "x,a"),
        ];
        for (before, others, after) in rows {
            let (nodes, mapping) = mapping();
            if let Some(before) = before {
                nodes.write(PATH, Some(before));
            }
            nodes.interrupt(others);
            mapping.map("demo.Foo", "x").await.unwrap();
            assert_eq!(nodes.text(PATH).as_deref(), Some(after), "{before:?} {others:?}");
        }
    }

    // C14
    #[tokio::test(start_paused = true)]
    async fn who_is_slower_than_others_every_time_gives_up_after_eleven_attempts() {
        let (nodes, mapping) = mapping();
        nodes.write(PATH, Some("a"));
        nodes.interrupt(&["b"; ATTEMPTS]);
        let refused = mapping.map("demo.Foo", "x").await;
        assert!(matches!(refused, Err(TreeError::Unreachable { .. })), "{refused:?}");
        mapping.map("demo.Foo", "x").await.unwrap();
        assert_eq!(nodes.text(PATH).as_deref(), Some("b,x"));
    }

    #[test]
    fn a_name_is_put_after_the_others() {
        let rows = [
            ("", "x"),
            (" ", "x"),
            (",", "x"),
            ("a", "a,x"),
            ("b,a", "b,a,x"),
            ("a,", "a,x"),
            ("a , ", "a,x"),
        ];
        for (before, after) in rows {
            assert_eq!(with_name(before.as_bytes(), "x"), after, "{before}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_name_is_added_and_none_is_lost(before in "[a-c ,\\u{e9}]{0,12}") {
            let mut wanted = names(before.as_bytes());
            wanted.insert(Arc::from("new"));
            proptest::prop_assert_eq!(names(&with_name(before.as_bytes(), "new")), wanted);
        }
    }
}

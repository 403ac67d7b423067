use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// Settings of one reference, or the defaults of all (`consumer`).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ReferenceConfig {
    /// Java interface name, when it is not the section's key.
    pub interface: Option<String>,
    /// Group; a comma list or `*` finds several.
    pub group: Option<String>,
    /// Version; `*` finds all.
    pub version: Option<String>,
    /// Whether a provider must be there when the reference is made. Default true.
    pub check: Option<bool>,
    /// Time limit of one attempt, milliseconds. Default 1000.
    pub timeout: Option<u64>,
    /// Attempts after the first. Default 2.
    pub retries: Option<i32>,
    /// Fault tolerance. Default `failover`.
    pub cluster: Option<String>,
    /// Balancer. Default `random`.
    pub loadbalance: Option<String>,
    /// Whether one provider is kept while it is available. Default false.
    pub sticky: Option<bool>,
    /// Provider addresses to call directly, `;`-separated; no registry is asked.
    pub url: Option<String>,
    /// Applications that offer the service, comma list; the mapping from interfaces to applications is not asked.
    pub provided_by: Option<String>,
    /// Protocols to use, comma list; others are skipped.
    pub protocol: Option<String>,
    /// Connections of this reference alone; 0: shared. Default 0.
    pub connections: Option<u32>,
    /// Whether connections are made at the first call. Default false.
    pub lazy: Option<bool>,
    /// Whether this consumer is registered. Default true.
    pub register: Option<bool>,
    /// Ids of the registries to use, comma list. Default: all.
    pub registry: Option<String>,
    /// Settings of single methods.
    pub methods: Vec<MethodConfig>,
    /// More URL parameters.
    pub parameters: BTreeMap<String, String>,
}

/// Settings of one service, or the defaults of all (`provider`).
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ServiceConfig {
    /// Java interface name, when it is not the section's key.
    pub interface: Option<String>,
    /// Group.
    pub group: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// Path, when it is not the interface.
    pub path: Option<String>,
    /// Share of calls relative to other providers. Default 100.
    pub weight: Option<u32>,
    /// Time over which the weight grows after a start, milliseconds. Default 600000.
    pub warmup: Option<u64>,
    /// Time limit that consumers take over, milliseconds.
    pub timeout: Option<u64>,
    /// Balancer that consumers take over.
    pub loadbalance: Option<String>,
    /// Token that consumers must send; `true`: a random one.
    pub token: Option<String>,
    /// Whether the registered node goes with the session. Default true.
    pub dynamic: Option<bool>,
    /// Whether it is registered. Default true.
    pub register: Option<bool>,
    /// Delay of the export, milliseconds; 0 and -1: none. Default 0.
    pub delay: Option<i64>,
    /// Calls of one method served at once. Default 0: unlimited.
    pub executes: Option<u32>,
    /// Whether it is marked as deprecated. Default false.
    pub deprecated: Option<bool>,
    /// Tag of this instance.
    pub tag: Option<String>,
    /// Ids of the registries to use, comma list. Default: all.
    pub registry: Option<String>,
    /// Ids of the protocols to use, comma list. Default: all.
    pub protocol: Option<String>,
    /// Settings of single methods.
    pub methods: Vec<MethodConfig>,
    /// More URL parameters.
    pub parameters: BTreeMap<String, String>,
}

impl fmt::Debug for ServiceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the token, nor what may be one among the parameters.
        f.debug_struct("ServiceConfig")
            .field("interface", &self.interface)
            .field("group", &self.group)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Settings of one method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MethodConfig {
    /// Java method name.
    pub name: String,
    /// Time limit of one attempt, milliseconds.
    pub timeout: Option<u64>,
    /// Attempts after the first.
    pub retries: Option<i32>,
    /// Balancer.
    pub loadbalance: Option<String>,
    /// Whether one provider is kept while it is available.
    pub sticky: Option<bool>,
    /// Whether a reply is wanted (`return`). Default true.
    #[serde(rename = "return")]
    pub returns: Option<bool>,
    /// More URL parameters of the method.
    pub parameters: BTreeMap<String, String>,
}

struct Params(BTreeMap<String, String>);

impl Params {
    fn put(&mut self, key: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.0.insert(key.to_owned(), value.to_string());
        }
    }

    fn put_methods(&mut self, methods: &[MethodConfig]) {
        for method in methods {
            let name = &method.name;
            self.put(&format!("{name}.timeout"), method.timeout);
            self.put(&format!("{name}.retries"), method.retries);
            self.put(&format!("{name}.loadbalance"), method.loadbalance.as_ref());
            self.put(&format!("{name}.sticky"), method.sticky);
            self.put(&format!("{name}.return"), method.returns);
            for (key, value) in &method.parameters {
                self.put(&format!("{name}.{key}"), Some(value));
            }
        }
    }
}

impl ReferenceConfig {
    /// The reference's URL parameters; what is not set is left out.
    pub fn url_params(&self) -> BTreeMap<String, String> {
        let mut params = Params(self.parameters.clone());
        params.put("group", self.group.as_ref());
        params.put("version", self.version.as_ref());
        params.put("check", self.check);
        params.put("timeout", self.timeout);
        params.put("retries", self.retries);
        params.put("cluster", self.cluster.as_ref());
        params.put("loadbalance", self.loadbalance.as_ref());
        params.put("sticky", self.sticky);
        params.put("provided-by", self.provided_by.as_ref());
        params.put("protocol", self.protocol.as_ref());
        params.put("connections", self.connections);
        params.put("lazy", self.lazy);
        params.put_methods(&self.methods);
        params.0
    }
}

impl ServiceConfig {
    /// The service's URL parameters; what is not set is left out.
    pub fn url_params(&self) -> BTreeMap<String, String> {
        let mut params = Params(self.parameters.clone());
        params.put("group", self.group.as_ref());
        params.put("version", self.version.as_ref());
        params.put("weight", self.weight);
        params.put("warmup", self.warmup);
        params.put("timeout", self.timeout);
        params.put("loadbalance", self.loadbalance.as_ref());
        params.put("token", self.token.as_ref());
        params.put("dynamic", self.dynamic);
        params.put("executes", self.executes);
        params.put("deprecated", self.deprecated);
        params.put("dubbo.tag", self.tag.as_ref());
        params.put_methods(&self.methods);
        params.0
    }
}

//! Config centre and metadata centre, where they are not the registry.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::registry::without_secrets;

/// The `config-center` section: where governance rules and migration rules are kept. Without it: the registries, where they can be.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ConfigCenterConfig {
    /// As a registry's: `zookeeper://192.0.2.1:2181?backup=192.0.2.2:2181`, or `192.0.2.1:2181,192.0.2.2:2181`.
    pub address: String,
    /// Protocol when the address has none. Default `zookeeper`.
    pub protocol: Option<String>,
    /// Port when the address has none.
    pub port: Option<u16>,
    /// User, when the address has none.
    pub username: Option<String>,
    /// Password, when the address has none.
    pub password: Option<String>,
    /// Group of properties; rules have their own. Default `dubbo`.
    pub group: Option<String>,
    /// Root of the tree. Default `dubbo`.
    pub namespace: Option<String>,
    /// How long connecting and reading may take, milliseconds. Default 30000.
    pub timeout: Option<u64>,
    /// Whether it must be reachable at start. Default true.
    pub check: Option<bool>,
    /// More URL parameters.
    pub parameters: BTreeMap<String, String>,
}

/// The `metadata-report` section: the metadata centre, which holds metadata of applications and the mapping from interfaces to
/// applications. Without it: the registries, where they can be.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MetadataReportConfig {
    /// As a registry's: `zookeeper://192.0.2.1:2181?backup=192.0.2.2:2181`, or `192.0.2.1:2181,192.0.2.2:2181`.
    pub address: String,
    /// Protocol when the address has none. Default `zookeeper`.
    pub protocol: Option<String>,
    /// Port when the address has none.
    pub port: Option<u16>,
    /// User, when the address has none.
    pub username: Option<String>,
    /// Password, when the address has none.
    pub password: Option<String>,
    /// Root of the tree. Default `dubbo`.
    pub group: Option<String>,
    /// How long connecting and reading may take, milliseconds. Default 30000.
    pub timeout: Option<u64>,
    /// Whether it must be reachable at start. Default true.
    pub check: Option<bool>,
    /// More URL parameters.
    pub parameters: BTreeMap<String, String>,
}

impl ConfigCenterConfig {
    /// A config centre at `address`.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: address.into(), ..Self::default() }
    }

    /// Parameters of its URL, without what stands in the authority.
    pub fn url_params(&self) -> BTreeMap<String, String> {
        let own = [
            ("group", self.group.clone()),
            ("namespace", self.namespace.clone()),
            ("timeout", self.timeout.map(|one| one.to_string())),
            ("check", self.check.map(|one| one.to_string())),
        ];
        with(&self.parameters, own)
    }
}

impl MetadataReportConfig {
    /// A metadata centre at `address`.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: address.into(), ..Self::default() }
    }

    /// Parameters of its URL, without what stands in the authority.
    pub fn url_params(&self) -> BTreeMap<String, String> {
        let own = [
            ("group", self.group.clone()),
            ("timeout", self.timeout.map(|one| one.to_string())),
            ("check", self.check.map(|one| one.to_string())),
        ];
        with(&self.parameters, own)
    }
}

/// `more`, and over it what is set of `own`.
fn with<const N: usize>(
    more: &BTreeMap<String, String>,
    own: [(&str, Option<String>); N],
) -> BTreeMap<String, String> {
    let mut params = more.clone();
    params.extend(own.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    params
}

impl fmt::Debug for ConfigCenterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigCenterConfig")
            .field("address", &without_secrets(&self.address))
            .field("namespace", &self.namespace)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for MetadataReportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetadataReportConfig")
            .field("address", &without_secrets(&self.address))
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

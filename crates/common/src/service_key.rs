//! What a service is known by: group, interface and version.

use std::fmt;
use std::sync::Arc;

use crate::error::{UrlError, excerpt};
use crate::url::Url;

/// `group/interface:version`. An empty group or version is no group or version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceKey {
    /// The group, if any.
    pub group: Option<Arc<str>>,
    /// The interface.
    pub interface: Arc<str>,
    /// The version, if any. `0.0.0` is a version like any other here.
    pub version: Option<Arc<str>>,
}

impl ServiceKey {
    /// A key from its parts.
    pub fn new(group: Option<&str>, interface: &str, version: Option<&str>) -> Self {
        let part = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(Arc::from);
        Self { group: part(group), interface: Arc::from(interface), version: part(version) }
    }

    /// Reads the text form. The group ends at the first `/`, the version starts at the last `:` after it.
    ///
    /// # Errors
    /// There is no interface.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (group, rest) = text.split_once('/').map_or((None, text), |(group, rest)| (Some(group), rest));
        let (interface, version) =
            rest.rsplit_once(':').map_or((rest, None), |(interface, version)| (interface, Some(version)));
        if interface.is_empty() {
            return Err(UrlError::BadServiceKey { text: excerpt(text) });
        }
        Ok(Self::new(group, interface, version))
    }

    /// The key of the service a URL is about.
    pub fn from_url(url: &Url) -> Self {
        Self::new(url.group(), url.service_interface(), url.version())
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&write_service_key(self.group.as_deref(), &self.interface, self.version.as_deref()))
    }
}

impl std::str::FromStr for ServiceKey {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)
    }
}

/// The text form; empty without an interface.
pub(crate) fn write_service_key(group: Option<&str>, interface: &str, version: Option<&str>) -> String {
    if interface.is_empty() {
        return String::new();
    }
    let mut text = String::with_capacity(interface.len() + 24);
    if let Some(group) = group.filter(|group| !group.is_empty()) {
        text.push_str(group);
        text.push('/');
    }
    text.push_str(interface);
    if let Some(version) = version.filter(|version| !version.is_empty()) {
        text.push(':');
        text.push_str(version);
    }
    text
}

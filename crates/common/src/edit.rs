//! URLs made from a URL by one change.

use std::fmt::Display;

use crate::url::Url;

impl Url {
    /// This URL with a parameter set. Unchanged if the name or the value is empty.
    #[must_use]
    pub fn with_param(&self, key: &str, value: impl Display) -> Self {
        self.to_builder().param(key, value).build()
    }

    /// This URL with a parameter set unless there is one of that name.
    #[must_use]
    pub fn with_param_if_absent(&self, key: &str, value: impl Display) -> Self {
        self.to_builder().param_if_absent(key, value).build()
    }

    /// This URL with several parameters set.
    #[must_use]
    pub fn with_params<K: AsRef<str>, V: Display>(&self, params: impl IntoIterator<Item = (K, V)>) -> Self {
        self.to_builder().params(params).build()
    }

    /// This URL without a parameter.
    #[must_use]
    pub fn without_param(&self, key: &str) -> Self {
        self.to_builder().without_param(key).build()
    }

    /// This URL without several parameters.
    #[must_use]
    pub fn without_params<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Self {
        keys.into_iter().fold(self.to_builder(), |builder, key| builder.without_param(key.as_ref())).build()
    }

    /// This URL with only the parameters that `keep` accepts.
    #[must_use]
    pub fn retain_params(&self, keep: impl FnMut(&str, &str) -> bool) -> Self {
        self.to_builder().retain_params(keep).build()
    }

    /// This URL without any parameter.
    #[must_use]
    pub fn clear_params(&self) -> Self {
        self.to_builder().clear_params().build()
    }

    /// This URL with another protocol.
    #[must_use]
    pub fn with_protocol(&self, protocol: &str) -> Self {
        self.to_builder().protocol(protocol).build()
    }

    /// This URL with another host.
    #[must_use]
    pub fn with_host(&self, host: &str) -> Self {
        self.to_builder().host(host).build()
    }

    /// This URL with another port; 0 for none.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        self.to_builder().port(port).build()
    }

    /// This URL with another path; empty for none.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Self {
        self.to_builder().path(path).build()
    }
}

//! Layer 6, configurator: parameters of addresses changed at run time.

use std::fmt::Debug;

use dubhe_common::Url;

/// One override rule (`override://`, `absent://`, or a rule of the config centre).
pub trait Configurator: Send + Sync + Debug {
    /// `address` with the rule applied, or `None` when the rule does not concern it. Conditions look at the provider's own
    /// parameters, before the consumer's are merged in.
    fn configure(&self, address: &Url) -> Option<Url>;

    /// Rules apply in ascending order of (host, priority).
    fn order(&self) -> (&str, i64);
}

/// Makes configurators of the URLs in the registry's `configurators` category.
pub trait ConfiguratorFactory: Send + Sync + Debug {
    /// The rules, sorted; a malformed one is logged once and skipped.
    fn configurators(&self, rules: &[Url]) -> Vec<Box<dyn Configurator>>;
}

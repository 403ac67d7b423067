//! Layer 6, configurator: parameters of addresses changed at run time.

use std::fmt::Debug;

use dubhe_common::Url;

/// One override rule (`override://`, `absent://`, or a rule of the config centre).
pub trait Configurator: Send + Sync + Debug {
    /// The parameters that the rule sets in the override layer of `address`, or `None` when it does not concern that address.
    /// Conditions look at `provider`, the provider's own URL; `address` is that URL merged with the consumer's parameters and
    /// with the rules that came before.
    fn configure(&self, provider: &Url, consumer: &Url, address: &Url) -> Option<Vec<(String, String)>>;

    /// Rules apply in ascending order of (host, priority).
    fn order(&self) -> (&str, i64);
}

/// Makes configurators of the URLs in the registry's `configurators` category.
pub trait ConfiguratorFactory: Send + Sync + Debug {
    /// The rules, sorted; a malformed one is logged once and skipped.
    fn configurators(&self, rules: &[Url]) -> Vec<Box<dyn Configurator>>;
}

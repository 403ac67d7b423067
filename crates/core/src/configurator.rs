//! Layer 6, configurator: parameters of addresses changed at run time by rules (`override://`, `absent://`).
//!
//! A rule is a URL, whatever its source: the `configurators` category of a registry
//! ([`ServiceView::configurators`](crate::registry::ServiceView)) or a document of the config centre. So the contract between those who
//! read rules and those who apply them is a sorted list of URLs. Whoever merges addresses applies it; that is the directory for
//! consumers, and the export for providers.

pub use dubhe_common::configurator::{Configurators, RuleTarget, rule_applies, rule_settings};

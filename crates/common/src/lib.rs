//! Dubhe's ground: the URL model of Apache Dubbo, parameter names, service keys and matching rules.
//!
//! A [`Url`] names a service, an address or a rule and carries its settings. It is parsed once, immutable and cheap
//! to clone. Addresses of a registry are made by a [`UrlFactory`], which lets them share what is equal, and seen by
//! a consumer through [`AddressMerger`], which lays overrides, consumer and provider over each other.
//!
//! ```
//! use dubhe_common::{Url, is_match};
//!
//! let provider = Url::parse("dubbo://192.0.2.1:20880/demo.Greeter?version=1.0.0&timeout=3000")?;
//! let consumer = Url::builder("consumer", "192.0.2.9", 0).path("demo.Greeter").param("version", "1.0.0").build();
//! assert!(is_match(&consumer, &provider));
//! assert_eq!(provider.service_key(), "demo.Greeter:1.0.0");
//! # Ok::<(), dubhe_common::UrlError>(())
//! ```
//!
//! Not here: any I/O, any runtime, any contract of a layer (see `dubhe-core`).

mod builder;
mod common_text;
mod edit;
mod error;
mod format;
mod intern;
mod params;
mod parse;
mod service_key;
mod typed;
mod url;
mod volatile;

pub mod address;
pub mod configurator;
pub mod defaults;
pub mod encode;
pub mod keys;
pub mod matching;
pub mod merge;
pub mod provider_view;

pub use address::parse_registry_address;
pub use builder::UrlBuilder;
pub use configurator::{Configurators, RuleTarget};
pub use encode::{decode, encode};
pub use error::UrlError;
pub use intern::{Interned, UrlFactory};
pub use matching::{glob, is_match, list_contains, list_items};
pub use merge::merge_consumer_into_provider;
pub use params::Params;
pub use provider_view::{AddressMerger, merge_address};
pub use service_key::ServiceKey;
pub use url::Url;

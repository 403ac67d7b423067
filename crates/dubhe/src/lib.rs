//! Apache Dubbo for Rust: call the services of a Dubbo fleet, and offer services to it.
//!
//! # Call a service
//!
//! ```no_run
//! use dubhe::Dubhe;
//!
//! #[dubhe::service(interface = "com.example.Greeter")]
//! pub trait Greeter {
//!     async fn say_hello(&self, name: String) -> dubhe::Result<String>;
//! }
//!
//! # async fn run() -> dubhe::Result<()> {
//! let dubhe = Dubhe::builder("greeter-consumer").registry("zookeeper://127.0.0.1:2181").start().await?;
//! let greeter = dubhe.refer::<GreeterClient>().await?;
//! println!("{}", greeter.say_hello("world".to_owned()).await?);
//! dubhe.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Offer a service
//!
//! ```no_run
//! # use dubhe::Dubhe;
//! # #[dubhe::service(interface = "com.example.Greeter")]
//! # pub trait Greeter {
//! #     async fn say_hello(&self, name: String) -> dubhe::Result<String>;
//! # }
//! struct Polite;
//!
//! impl Greeter for Polite {
//!     async fn say_hello(&self, name: String) -> dubhe::Result<String> {
//!         Ok(format!("Hello {name}"))
//!     }
//! }
//!
//! # async fn run() -> dubhe::Result<()> {
//! let dubhe = Dubhe::builder("greeter-provider").registry("zookeeper://127.0.0.1:2181").start().await?;
//! dubhe.export(GreeterService::new(Polite)).await?;
//! dubhe.run_until_signal().await; // SIGTERM or Ctrl-C: unregister, let calls finish, close
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! | to | see |
//! | --- | --- |
//! | configure by code or by `dubbo.yaml` | [`DubheBuilder`], [`config`] |
//! | set a reference up: version, group, time limits | [`Dubhe::reference`], [`Reference`] |
//! | call without an interface | [`Dubhe::generic`], [`GenericService`] |
//! | send and read attachments | [`CallOptions`], [`context`] |
//! | map structs to Java classes | [`java_class`], [`java`], [`value`] |
//! | know why a call goes where it goes | [`Reference::connect`] and [`Connected::explain`] |
//! | know which discovery a reference uses, and what keeps it from the other | [`Connected::migration`] |
//! | read, publish or remove a rule | [`Dubhe::config_center`] |
//! | put in a balancer, a router, a filter, a protocol | [`Extensions`], [`core`] |
//! | hear how services are registered and references migrate | [`Extensions::status_reporters`] |
//!
//! This crate wires the layers and holds no logic of theirs: each is a crate of its own behind a trait of [`core`].

mod address;
mod application;
mod application_level;
mod builder;
mod consumer;
mod export;
mod extensions;
mod in_flight;
mod labels;
mod migration_rules;
mod open_references;
mod open_registries;
mod own_instance;
mod ports;
mod provider;
mod providers;
mod refer;
mod reference;
mod registries;
mod registry_invoker;
mod settings;
mod sides;
mod signals;

/// The contracts of all layers.
pub use dubhe_core as core;

pub use application::Dubhe;
pub use builder::DubheBuilder;
pub use export::{Export, ExportedService};
pub use extensions::Extensions;
pub use reference::{Connected, GenericReference, Reference, RegistryStatus};

pub use dubhe_common::{Url, UrlError, encode, keys};
pub use dubhe_config as config;
pub use dubhe_core::BoxFuture;
pub use dubhe_core::config_center::{self, ConfigCenter};
pub use dubhe_core::error::{Attempt, Delivery, ErrorCode, Exception, RpcError};
pub use dubhe_core::filter::{Filter, FilterSide};
pub use dubhe_core::invocation::{Attachments, Invocation, Method};
pub use dubhe_core::migration::MigrationStep;
pub use dubhe_core::response::{Outcome, Payload, Response};
pub use dubhe_core::router::Explanation;
pub use dubhe_core::service::{MethodDefinition, Service, ServiceDefinition};
pub use dubhe_core::value::{self, JavaType, Value, java};
pub use dubhe_macros::{java_class, service};
pub use dubhe_migration::{MigrationExplanation, MigrationState, SideKind, SideReport, SideState};
pub use dubhe_proxy::{
    self as proxy, CallOptions, GenericService, ResponseAttachments, ServiceClient, ServiceInterface,
    TypedClient, context,
};
pub use dubhe_registry::MemoryStore;
pub use dubhe_router::ConditionRouter;
pub use serde;

/// The error of calls and of the application's own operations.
pub use dubhe_core::error::RpcError as Error;

/// What service methods and the application's operations return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So does the guide's.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/migration.md")]
struct Guide;

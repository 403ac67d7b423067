//! Contracts of Dubhe: one module per layer of Dubbo, with the traits of that layer and the values that cross it.
//!
//! A layer crate implements traits from here and uses other layers through traits from here; it never names
//! another layer crate. What you need to extend Dubhe (a balancer, a router, a protocol, a registry) is this crate
//! and `dubhe-common` alone. There is no I/O in this crate, and no runtime: of tokio only the `sync` types, whose
//! `watch` channel carries every "latest state" between layers.
//!
//! | layer | module | traits |
//! | --- | --- | --- |
//! | 10 service, 8 proxy | [`service`] | [`service::Service`] |
//! | 7 registry | [`registry`], [`tree`], [`config_center`], [`discovery`], [`metadata`], [`mapping`] | [`registry::Registry`], [`tree::Tree`], ... |
//! | 6 cluster | [`directory`], [`router`], [`load_balance`], [`cluster`], [`configurator`], [`migration`] | [`directory::Directory`], [`router::RouterChain`], ... |
//! | 5 monitor | [`monitor`], [`status_report`] | [`monitor::Monitor`], [`status_report::StatusReporter`] |
//! | 4 protocol | [`protocol`], [`filter`] | [`protocol::Protocol`], [`filter::Filter`] |
//! | 3 exchange | [`exchange`] | [`exchange::Exchanger`] |
//! | 2 transport | [`transport`] | [`transport::Transporter`] |
//! | 1 serialize | [`serialize`], [`value`] | [`serialize::Serialization`] |
//!
//! What all layers speak of: [`invoker::Invoker`], [`invocation::Invocation`], [`response::Response`],
//! [`error::RpcError`], and [`extension::Extensions`], which finds an implementation by its name on the wire.

pub mod error;
pub mod extension;
pub mod invocation;
pub mod invoker;
pub mod response;

pub mod cluster;
pub mod config_center;
pub mod configurator;
pub mod directory;
pub mod discovery;
pub mod exchange;
pub mod filter;
pub mod load_balance;
pub mod mapping;
pub mod metadata;
pub mod migration;
pub mod monitor;
pub mod observation;
pub mod protocol;
pub mod registry;
pub mod router;
pub mod serialize;
pub mod service;
pub mod status_report;
pub mod transport;
pub mod tree;
pub mod value;

mod attachments;
mod candidates;
mod text;

use std::pin::Pin;

/// A boxed future that may move between threads: one per hop of a call.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Any error that may be kept as a source.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

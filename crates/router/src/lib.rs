//! Router chain of the cluster layer: which providers a call may go to, and why.
//!
//! A rule looks at calls in one part and at providers in another. So what a chain makes of a provider list is a function of few outcomes,
//! whatever arguments calls have. [`RouterChain::bind`] compiles the chain for a list; per call only the outcomes are asked, and the
//! candidates of an outcome are computed once, then found without lock and without allocation.
//!
//! ```
//! use std::sync::Arc;
//! use dubhe_common::Url;
//! use dubhe_core::router::{RouterChain, Routes};
//! use dubhe_router::{Chain, ConditionRouter};
//!
//! let consumer = Url::parse("consumer://192.0.2.9/demo.Greeter?application=shop")?;
//! let chain = Chain::builder(consumer).build();
//! chain.set_rule("canary", ConditionRouter::parse("method = greet => region = hz")?.with_force(true));
//! let routes = chain.bind(&Arc::from([]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Here: the chain, the mock selector, condition rules from code and from a registry's `routers` category, users' routers. Not here:
//! listening to registries or config centres, choosing among the candidates (load balance), what happens when none is left (cluster).

pub use dubhe_core::router::{
    BoundRouter, Decision, Dependence, ExplainedStep, Explanation, Router, RouterChain, Routes, RuleRouter,
};

mod address_pattern;
mod chain;
mod condition;
mod error;
mod mock;
mod registry_rules;
mod routes;
mod step;
mod table;
mod user;

pub use address_pattern::{AddressPatternError, address_fits};
pub use chain::{Chain, ChainBuilder};
pub use condition::{
    APPLICATION_RULE_PRIORITY, ConditionRouter, Dialect, MAX_CALL_CONDITIONS, MAX_RULE_BYTES,
    SERVICE_RULE_PRIORITY,
};
pub use error::RuleError;
pub use mock::{MockSelector, NEED_MOCK};

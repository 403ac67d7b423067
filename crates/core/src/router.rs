//! Layer 6, router: which providers a call may go to, and why.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::sync::Arc;

use dubhe_common::Url;
use tokio::sync::watch;

use crate::error::RpcError;
use crate::invocation::Invocation;
use crate::invoker::SharedInvoker;
use crate::load_balance::Candidates;

/// A router as users write it: takes a list, returns a list.
///
/// Promises: pure for one list and one call (same answer each time), no I/O, never awaits, adds no provider. What it returns is
/// matched with the input by identity; anything foreign is dropped.
pub trait Router: Send + Sync + Debug {
    /// The name in URLs and explanations, e.g. `tag`.
    fn name(&self) -> &str;

    /// Routers run by ascending priority; ties by name.
    fn priority(&self) -> i32 {
        0
    }

    /// What of a call the answer depends on. The chain computes each answer once per distinct value of it.
    fn depends_on(&self) -> Dependence {
        Dependence::Anything
    }

    /// The providers of `input` that `call` may go to. An empty answer stops the chain.
    fn route<'a>(
        &self,
        input: &[&'a SharedInvoker],
        consumer: &Url,
        call: &Invocation,
    ) -> Vec<&'a SharedInvoker>;
}

/// What of a call a router's answer depends on.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Dependence {
    /// On nothing: only the provider list and the consumer count.
    Nothing,
    /// On the method name.
    Method,
    /// On one attachment's text.
    Attachment(&'static str),
    /// On what this function computes from the call; equal numbers must mean equal answers.
    Key(fn(&Invocation) -> u64),
    /// On anything: it runs on every call.
    Anything,
}

/// A rule that looks at calls and consumers in one part and at providers in another, bound to a list once per change.
///
/// This is how the built-in rule routers are made: per call only [`BoundRouter::outcome`] runs.
pub trait RuleRouter: Send + Sync + Debug {
    /// The name in explanations, e.g. `condition`.
    fn name(&self) -> &str;

    /// Order in the chain, ascending (-100 mock, 100 tag, 140 service condition, 150 application condition).
    fn priority(&self) -> i32;

    /// Binds the rule to a provider list and a consumer.
    fn bind(&self, providers: &Arc<[SharedInvoker]>, consumer: &Url) -> Box<dyn BoundRouter>;
}

/// A rule router bound to one provider list.
pub trait BoundRouter: Send + Sync + Debug {
    /// What the rule makes of the call, as a number: equal numbers mean equal [`BoundRouter::keep`]. No allocation.
    fn outcome(&self, call: &Invocation) -> u64;

    /// The outcome of every call, where it does not depend on the call: then [`BoundRouter::outcome`] is not asked.
    fn constant(&self) -> Option<u64> {
        None
    }

    /// The providers (by ascending position in the bound list) of `input` that remain for that outcome.
    fn keep(&self, outcome: u64, input: &[usize]) -> Vec<usize>;

    /// For people: which rule decided about the provider at `position` for that outcome.
    fn reason(&self, outcome: u64, position: usize) -> Cow<'_, str>;

    /// For people: the reasons for all of `input`, where a reason depends on what else came in (a rule that would leave nothing keeps
    /// all, unless it is forced).
    fn reasons(&self, outcome: u64, input: &[usize]) -> Vec<Cow<'_, str>> {
        input.iter().map(|position| self.reason(outcome, *position)).collect()
    }
}

/// The routers of one service, in order.
pub trait RouterChain: Send + Sync + Debug {
    /// Binds all routers, with the rules that are in force now, to a provider list.
    fn bind(&self, providers: &Arc<[SharedInvoker]>) -> Arc<dyn Routes>;

    /// Replaces the rules that came from the registry's `routers` category (full list). Malformed rules are logged once and
    /// skipped. Returns whether anything changed.
    fn set_registry_rules(&self, rules: &[Url]) -> bool;

    /// Changes whenever rules changed for another reason than [`RouterChain::set_registry_rules`] (config centre, code): bind again.
    fn changes(&self) -> ChangeCount;
}

/// The count of changes of rules: [`RouterChain::changes`].
pub type ChangeCount = watch::Receiver<u64>;

/// Counts changes of rules for [`RouterChain::changes`], so that a chain needs no runtime of its own.
#[derive(Debug)]
pub struct Changes(watch::Sender<u64>);

impl Changes {
    /// No change yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// One more change.
    pub fn record(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// The count from now on.
    pub fn subscribe(&self) -> ChangeCount {
        self.0.subscribe()
    }
}

impl Default for Changes {
    fn default() -> Self {
        Self::new()
    }
}

/// A router chain bound to one provider list: immutable, shared by all calls until the next change.
pub trait Routes: Send + Sync + Debug {
    /// The providers that the call may go to. Computed once per distinct outcome, then one look-up: no lock, no allocation.
    fn candidates(&self, call: &Invocation) -> Result<Arc<Candidates>, RpcError>;

    /// Router by router and provider by provider, why.
    fn explain(&self, call: &Invocation) -> Explanation;
}

/// Why a call goes where it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// One step per router, in the order in which they ran; routers behind an empty result did not run.
    pub steps: Vec<ExplainedStep>,
    /// Addresses that are left.
    pub remaining: Vec<String>,
}

/// What one router did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedStep {
    /// The router's name.
    pub router: String,
    /// One entry per provider that came in.
    pub decisions: Vec<Decision>,
}

/// What one router decided about one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// `host:port`.
    pub address: String,
    /// Whether it stays.
    pub kept: bool,
    /// The rule, and which part of it decided.
    pub reason: String,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "[{}]", step.router)?;
            for decision in &step.decisions {
                let word = if decision.kept { "keeps" } else { "drops" };
                writeln!(f, "  {word} {}: {}", decision.address, decision.reason)?;
            }
        }
        write!(
            f,
            "remaining: {}",
            if self.remaining.is_empty() { "none".to_owned() } else { self.remaining.join(", ") }
        )
    }
}

use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::error::RpcError;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::router::{BoundRouter, RuleRouter};

use crate::user::{Texts, UserStep};

/// One router of a chain, bound to a provider list.
#[derive(Debug)]
pub(crate) enum Step {
    Rule { name: Box<str>, bound: Box<dyn BoundRouter>, constant: Option<u64> },
    User(UserStep),
}

impl Step {
    pub(crate) fn of_rule(rule: &dyn RuleRouter, providers: &Arc<[SharedInvoker]>, consumer: &Url) -> Self {
        let bound = rule.bind(providers, consumer);
        Self::Rule { name: rule.name().into(), constant: bound.constant(), bound }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Rule { name, .. } => name,
            Self::User(user) => user.name(),
        }
    }

    /// Whether it has outcomes. If not, it runs on every call.
    pub(crate) const fn is_compiled(&self) -> bool {
        match self {
            Self::Rule { .. } => true,
            Self::User(user) => user.is_compiled(),
        }
    }

    pub(crate) const fn is_constant(&self) -> bool {
        match self {
            Self::Rule { constant, .. } => constant.is_some(),
            Self::User(user) => user.is_constant(),
        }
    }

    pub(crate) const fn has_texts(&self) -> bool {
        matches!(self, Self::User(_))
    }

    pub(crate) fn outcome(&self, call: &Invocation, hashing: &foldhash::fast::RandomState) -> u64 {
        match self {
            Self::Rule { bound, constant, .. } => constant.unwrap_or_else(|| bound.outcome(call)),
            Self::User(user) => user.word(call, hashing),
        }
    }

    pub(crate) fn texts<'a>(&self, call: &'a Invocation) -> Option<Texts<'a>> {
        match self {
            Self::Rule { .. } => None,
            Self::User(user) => user.texts(call),
        }
    }

    pub(crate) fn run(
        &self,
        providers: &[SharedInvoker],
        input: &[usize],
        consumer: &Url,
        call: &Invocation,
        hashing: &foldhash::fast::RandomState,
    ) -> Result<Vec<usize>, RpcError> {
        match self {
            Self::Rule { bound, .. } => Ok(bound.keep(self.outcome(call, hashing), input)),
            Self::User(user) => user.run(providers, input, consumer, call),
        }
    }

    /// Why each of `input` is or is not in `kept`.
    pub(crate) fn reasons(
        &self,
        input: &[usize],
        kept: &[usize],
        call: &Invocation,
        hashing: &foldhash::fast::RandomState,
    ) -> Vec<String> {
        match self {
            Self::Rule { bound, .. } => {
                let reasons = bound.reasons(self.outcome(call, hashing), input);
                reasons.into_iter().map(std::borrow::Cow::into_owned).collect()
            }
            Self::User(user) => {
                let reason = |kept: bool| {
                    format!(
                        "router `{}` {}",
                        user.name(),
                        if kept { "returned it" } else { "did not return it" }
                    )
                };
                input.iter().map(|position| reason(kept.binary_search(position).is_ok())).collect()
            }
        }
    }
}

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::error::{ErrorCode, RpcError};
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::router::{Dependence, Router};

/// A user's router in a chain.
#[derive(Debug)]
pub(crate) struct UserStep {
    router: Arc<dyn Router>,
    dependence: Dependence,
}

/// The texts of a call that a router's answer depends on.
pub(crate) type Texts<'a> = (&'a str, &'a str);

impl UserStep {
    pub(crate) fn new(router: Arc<dyn Router>) -> Self {
        let dependence = router.depends_on();
        Self { router, dependence }
    }

    pub(crate) fn name(&self) -> &str {
        self.router.name()
    }

    /// Whether the answer is the same for all calls.
    pub(crate) const fn is_constant(&self) -> bool {
        matches!(self.dependence, Dependence::Nothing)
    }

    /// Whether the answer can be kept for calls of the same number and texts.
    pub(crate) const fn is_compiled(&self) -> bool {
        matches!(
            self.dependence,
            Dependence::Nothing | Dependence::Method | Dependence::Attachment(_) | Dependence::Key(_)
        )
    }

    /// What the answer depends on, as a number. Where it stands for a text, [`UserStep::texts`] tells equal numbers apart.
    pub(crate) fn word(&self, call: &Invocation, hashing: &foldhash::fast::RandomState) -> u64 {
        if let Dependence::Key(key) = self.dependence {
            return key(call);
        }
        let Some((first, second)) = self.texts(call) else { return 0 };
        let mut state = hashing.build_hasher();
        state.write(first.as_bytes());
        state.write_u8(0xff);
        state.write(second.as_bytes());
        state.finish()
    }

    pub(crate) fn texts<'a>(&self, call: &'a Invocation) -> Option<Texts<'a>> {
        match self.dependence {
            // A generic call has two names; the router may look at either.
            Dependence::Method => Some((&call.method().name, call.method_name())),
            Dependence::Attachment(key) => match call.attachments().get(key) {
                None => Some(("", "none")),
                Some(value) => Some((
                    value.as_str().unwrap_or_default(),
                    if value.as_str().is_some() { "text" } else { "other" },
                )),
            },
            _ => None,
        }
    }

    /// Runs the router. A panic of it becomes an error of this call and touches no other.
    pub(crate) fn run(
        &self,
        providers: &[SharedInvoker],
        input: &[usize],
        consumer: &Url,
        call: &Invocation,
    ) -> Result<Vec<usize>, RpcError> {
        let offered: Vec<&SharedInvoker> =
            input.iter().filter_map(|position| providers.get(*position)).collect();
        let answer = catch_unwind(AssertUnwindSafe(|| self.router.route(&offered, consumer, call)));
        let Ok(answer) = answer else {
            let name = self.name();
            tracing::error!(router = name, "router panicked");
            let message = format!(
                "router `{name}` panicked while routing `{}`: no provider is chosen",
                call.method_name()
            );
            return Err(RpcError::new(ErrorCode::NoInvokerAvailableAfterFilter, message));
        };
        Ok(positions(&offered, input, &answer))
    }
}

/// Positions of what a router answered, by identity: it may have built a new list. Foreign invokers are left out.
fn positions(offered: &[&SharedInvoker], input: &[usize], answer: &[&SharedInvoker]) -> Vec<usize> {
    let mut found = Vec::with_capacity(answer.len().min(offered.len()));
    let mut rest = offered.iter().zip(input);
    // Most routers keep the order, so that one walk over the input finds all.
    if answer.iter().all(|wanted| {
        let position = rest.find(|(one, _)| address(one) == address(wanted)).map(|(_, position)| *position);
        found.extend(position);
        position.is_some()
    }) {
        return found;
    }
    let known: HashMap<usize, usize> =
        offered.iter().zip(input).map(|(one, position)| (address(one), *position)).collect();
    let mut found: Vec<usize> = answer.iter().filter_map(|one| known.get(&address(one)).copied()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn address(invoker: &SharedInvoker) -> usize {
    Arc::as_ptr(invoker).cast::<()>() as usize
}

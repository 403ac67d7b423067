use std::hash::BuildHasher;
use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::error::RpcError;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::{SharedInvoker, same_invoker};
use dubhe_core::load_balance::Candidates;
use dubhe_core::router::{Decision, ExplainedStep, Explanation, Routes};

use crate::step::Step;
use crate::table::Table;

/// A chain bound to one provider list.
///
/// A call's key is the outcome of each router whose outcome varies; the candidates of a key are computed once. From the first router on
/// that may depend on anything of a call, routers run on every call.
#[derive(Debug)]
pub(crate) struct CompiledRoutes {
    providers: Arc<[SharedInvoker]>,
    consumer: Url,
    steps: Box<[Step]>,
    /// How many steps, from the first, have outcomes.
    compiled: usize,
    /// Those of them whose outcome varies.
    varying: Box<[usize]>,
    /// Whether any of those stands for texts.
    has_texts: bool,
    fail_fast: bool,
    hashing: foldhash::fast::RandomState,
    known: Table<Known>,
    /// Lists that steps on every call led to, so that equal lists share what balancers prepare.
    recent: Table<Listed>,
}

/// How many keys are kept; calls of further ones are routed each time.
pub(crate) const KEYS: usize = 256;

/// How many lists of routers that run on every call are kept.
const RECENT: usize = 32;

/// Outcomes within the key itself; of further routers they are asked again to compare.
const INLINE: usize = 4;

#[derive(Debug)]
struct Key {
    hash: u64,
    outcomes: [u64; INLINE],
}

#[derive(Debug)]
struct Known {
    outcomes: [u64; INLINE],
    further: Box<[u64]>,
    /// One entry per varying step where any has texts, else empty.
    texts: Box<[Option<OwnTexts>]>,
    /// Positions; only where steps on every call follow.
    positions: Box<[usize]>,
    candidates: Arc<Candidates>,
}

type OwnTexts = (Box<str>, Box<str>);

#[derive(Debug)]
struct Listed {
    positions: Box<[usize]>,
    candidates: Arc<Candidates>,
}

impl CompiledRoutes {
    pub(crate) fn new(
        providers: Arc<[SharedInvoker]>,
        consumer: Url,
        steps: Vec<Step>,
        fail_fast: bool,
    ) -> Self {
        let compiled = steps.iter().position(|step| !step.is_compiled()).unwrap_or(steps.len());
        let varying: Box<[usize]> = (0..compiled).filter(|at| !steps[*at].is_constant()).collect();
        let has_texts = varying.iter().any(|at| steps[*at].has_texts());
        Self {
            providers,
            consumer,
            steps: steps.into(),
            compiled,
            varying,
            has_texts,
            fail_fast,
            hashing: foldhash::fast::RandomState::default(),
            known: Table::new(KEYS),
            recent: Table::new(RECENT),
        }
    }

    fn varying(&self) -> impl Iterator<Item = &Step> {
        self.varying.iter().map(|at| &self.steps[*at])
    }

    fn key(&self, call: &Invocation) -> Key {
        let mut key = Key { hash: 0, outcomes: [0; INLINE] };
        for (at, step) in self.varying().enumerate() {
            let outcome = step.outcome(call, &self.hashing);
            if let Some(inline) = key.outcomes.get_mut(at) {
                *inline = outcome;
            }
            key.hash = (key.hash.rotate_left(23) ^ outcome).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        key
    }

    fn is_of(&self, known: &Known, key: &Key, call: &Invocation) -> bool {
        known.outcomes == key.outcomes
            && (known.further.is_empty() || self.has_further(known, call))
            && (!self.has_texts || self.has_texts(known, call))
    }

    fn has_further(&self, known: &Known, call: &Invocation) -> bool {
        let further = self.varying().skip(INLINE);
        further.zip(&known.further).all(|(step, outcome)| step.outcome(call, &self.hashing) == *outcome)
    }

    fn has_texts(&self, known: &Known, call: &Invocation) -> bool {
        self.varying().zip(&known.texts).all(|(step, texts)| {
            let known = texts.as_ref().map(|(first, second)| (&**first, &**second));
            step.texts(call) == known
        })
    }

    /// The first call of a key.
    #[cold]
    fn route_first(&self, key: &Key, call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
        let all = (0..self.providers.len()).collect();
        let mut left = Vec::new();
        let positions = self.run(&self.steps[..self.compiled], all, call, |step, _, kept| {
            left.push(format!("{} leaves {}", step.name(), kept.len()));
        })?;
        if positions.is_empty() && !self.providers.is_empty() {
            tracing::warn!(
                providers = self.providers.len(),
                rpc.method = call.method_name(),
                routers = left.join(", "),
                "no provider is left after routing"
            );
        }
        let runs_on = self.compiled < self.steps.len();
        let own = |text: &str| -> Box<str> { text.into() };
        let known = Known {
            outcomes: key.outcomes,
            further: self.varying().skip(INLINE).map(|step| step.outcome(call, &self.hashing)).collect(),
            texts: if self.has_texts {
                self.varying()
                    .map(|step| step.texts(call).map(|(first, second)| (own(first), own(second))))
                    .collect()
            } else {
                Box::default()
            },
            candidates: self.share(&positions),
            positions: if runs_on { positions.into() } else { Box::default() },
        };
        match self.known.insert(key.hash, known, |known| self.is_of(known, key, call)) {
            Ok(known) => self.finish(known, call),
            Err(known) => self.finish(&known, call),
        }
    }

    fn finish(&self, known: &Known, call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
        if self.compiled == self.steps.len() || (known.positions.is_empty() && self.fail_fast) {
            return Ok(Arc::clone(&known.candidates));
        }
        let positions =
            self.run(&self.steps[self.compiled..], known.positions.to_vec(), call, |_, _, _| {})?;
        if positions == *known.positions {
            return Ok(Arc::clone(&known.candidates));
        }
        let hash = self.hashing.hash_one(&positions);
        let same = |listed: &Listed| *listed.positions == *positions;
        if let Some(listed) = self.recent.find(hash, same) {
            return Ok(Arc::clone(&listed.candidates));
        }
        let listed = Listed { candidates: self.share(&positions), positions: positions.clone().into() };
        match self.recent.insert(hash, listed, same) {
            Ok(listed) => Ok(Arc::clone(&listed.candidates)),
            Err(listed) => Ok(listed.candidates),
        }
    }

    /// Candidates at these positions: those of another key if they are the same, so that what balancers prepare is shared.
    fn share(&self, positions: &[usize]) -> Arc<Candidates> {
        let is_same = |candidates: &Candidates| {
            candidates.len() == positions.len()
                && candidates
                    .invokers()
                    .iter()
                    .zip(positions)
                    .all(|(one, at)| same_invoker(one, &self.providers[*at]))
        };
        if let Some(known) = self.known.iter().find(|known| is_same(&known.candidates)) {
            return Arc::clone(&known.candidates);
        }
        // Routers leave out and do not reorder: as many as there are is all there are.
        if positions.len() == self.providers.len() {
            return Arc::new(Candidates::new(Arc::clone(&self.providers)));
        }
        let invokers: Arc<[SharedInvoker]> =
            positions.iter().map(|at| Arc::clone(&self.providers[*at])).collect();
        Arc::new(Candidates::new(invokers))
    }

    fn run(
        &self,
        steps: &[Step],
        input: Vec<usize>,
        call: &Invocation,
        mut seen: impl FnMut(&Step, &[usize], &[usize]),
    ) -> Result<Vec<usize>, RpcError> {
        let mut list = input;
        for step in steps {
            if list.is_empty() && self.fail_fast {
                break;
            }
            let answer = step.run(&self.providers, &list, &self.consumer, call, &self.hashing)?;
            let kept = narrow(answer, &list);
            seen(step, &list, &kept);
            list = kept;
        }
        Ok(list)
    }
}

impl Routes for CompiledRoutes {
    fn candidates(&self, call: &Invocation) -> Result<Arc<Candidates>, RpcError> {
        let key = self.key(call);
        match self.known.find(key.hash, |known| self.is_of(known, &key, call)) {
            Some(known) => self.finish(known, call),
            None => self.route_first(&key, call),
        }
    }

    fn explain(&self, call: &Invocation) -> Explanation {
        let mut explained = Vec::new();
        let address = |position: &usize| {
            self.providers.get(*position).map(|one| one.url().address()).unwrap_or_default()
        };
        let all = (0..self.providers.len()).collect();
        let remaining = self.run(&self.steps, all, call, |step, input, kept| {
            let reasons = step.reasons(input, kept, call, &self.hashing);
            let decisions = input.iter().zip(reasons).map(|(position, reason)| Decision {
                address: address(position),
                kept: kept.binary_search(position).is_ok(),
                reason,
            });
            explained.push(ExplainedStep { router: step.name().to_owned(), decisions: decisions.collect() });
        });
        match remaining {
            Ok(remaining) => {
                Explanation { steps: explained, remaining: remaining.iter().map(address).collect() }
            }
            Err(error) => {
                explained.push(ExplainedStep { router: error.message().to_owned(), decisions: Vec::new() });
                Explanation { steps: explained, remaining: Vec::new() }
            }
        }
    }
}

/// A router can only narrow: what was not in `input` is left out, and the order is that of the directory.
fn narrow(mut answer: Vec<usize>, input: &[usize]) -> Vec<usize> {
    if !answer.is_sorted_by(|one, next| one < next) {
        answer.sort_unstable();
        answer.dedup();
    }
    let mut rest = input.iter().peekable();
    answer.retain(|wanted| {
        while rest.next_if(|one| *one < wanted).is_some() {}
        rest.next_if_eq(&wanted).is_some()
    });
    answer
}

#[cfg(test)]
mod tests {
    use super::narrow;

    #[test]
    fn a_router_can_only_narrow() {
        assert_eq!(narrow(vec![9, 3, 1, 3, 4], &[1, 3, 5]), [1, 3]);
        assert_eq!(narrow(vec![1, 3, 5], &[1, 3, 5]), [1, 3, 5]);
        assert_eq!(narrow(vec![2, 3, 5], &[1, 3, 5]), [3, 5]);
    }
}

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use dubhe_common::Url;
use dubhe_core::invocation::Invocation;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::router::BoundRouter;

use super::part::{Pair, Part};
use super::{Condition, ConditionRouter, Dialect, Then};

/// A condition rule bound to a provider list.
///
/// Its outcome is a set: bit `n` tells whether the `n`-th kind of call that the rule tells apart is at hand.
#[derive(Debug)]
pub(super) struct BoundConditions {
    providers: Arc<[SharedInvoker]>,
    conditions: Arc<[Condition]>,
    /// One per condition; none when the rule is disabled.
    steps: Box<[Step]>,
    /// The kinds of calls: pairs that must all hold.
    kinds: Box<[Box<[Pair]>]>,
    force: bool,
    dialect: Dialect,
}

#[derive(Debug)]
struct Step {
    applies: Applies,
    /// With the consumer's values in place of references; `None` where no provider is allowed.
    then: Option<Part>,
    /// Whether `then` holds, a bit per provider. Made when the condition first applies.
    holds: OnceLock<Box<[u64]>>,
}

#[derive(Clone, Copy, Debug)]
enum Applies {
    /// The consumer is not concerned.
    Never,
    /// All calls of the consumer are concerned.
    Always,
    /// Calls of one kind are.
    ToKind(u32),
}

impl BoundConditions {
    pub(super) fn new(rule: &ConditionRouter, providers: &Arc<[SharedInvoker]>, consumer: &Url) -> Self {
        let mut kinds: Vec<Box<[Pair]>> = Vec::new();
        let mut steps = Vec::new();
        let conditions: &[Condition] = if rule.enabled { &rule.conditions } else { &[] };
        for condition in conditions {
            let (of_call, of_consumer): (Vec<Pair>, Vec<Pair>) =
                condition.when.pairs.iter().cloned().partition(Pair::looks_at_call);
            let applies = if !of_consumer.iter().all(|pair| pair.holds_for_url(consumer, rule.dialect)) {
                Applies::Never
            } else if of_call.is_empty() {
                Applies::Always
            } else {
                Applies::ToKind(kind(&mut kinds, of_call))
            };
            let then = match &condition.then {
                Then::Nobody => None,
                Then::Providers(part) => Some(part.resolve(consumer)),
            };
            steps.push(Step { applies, then, holds: OnceLock::new() });
        }
        Self {
            providers: Arc::clone(providers),
            conditions: Arc::clone(&rule.conditions),
            steps: steps.into(),
            kinds: kinds.into(),
            force: rule.force,
            dialect: rule.dialect,
        }
    }

    /// The steps that apply, with what each leaves of what came to it.
    fn run(&self, outcome: u64, input: &[usize], mut seen: impl FnMut(&[usize], usize, Left)) -> Vec<usize> {
        let mut list = input.to_vec();
        for (at, step) in self.steps.iter().enumerate() {
            if list.is_empty() {
                break;
            }
            if !step.applies.to(outcome) {
                continue;
            }
            let Some(then) = &step.then else {
                seen(&list, at, Left::Nobody);
                list.clear();
                break;
            };
            let holds = step.holds.get_or_init(|| self.evaluate(then));
            let kept: Vec<usize> = list.iter().copied().filter(|position| bit(holds, *position)).collect();
            if !kept.is_empty() {
                seen(&list, at, Left::Some(&kept));
                list = kept;
            } else if self.force {
                tracing::warn!(rule = &*self.conditions[at].text, "forced route rule leaves no provider");
                seen(&list, at, Left::Some(&kept));
                list = kept;
            } else {
                seen(&list, at, Left::AllForWantOfAny);
            }
        }
        list
    }

    fn evaluate(&self, then: &Part) -> Box<[u64]> {
        let mut bits = vec![0; self.providers.len().div_ceil(64)];
        for (position, provider) in self.providers.iter().enumerate() {
            if then.holds_for_provider(provider.registered_url(), self.dialect) {
                bits[position / 64] |= 1 << (position % 64);
            }
        }
        bits.into()
    }

    /// Which pair decided about a provider, for one condition.
    fn decision(&self, at: usize, position: usize, kept: bool) -> String {
        let text = &self.conditions[at].text;
        let (Some(part), Some(provider)) = (&self.steps[at].then, self.providers.get(position)) else {
            return format!("`{text}` allows no provider");
        };
        let url = provider.registered_url();
        if kept {
            let pairs: Vec<String> = part.pairs.iter().map(|pair| format!("`{pair}`")).collect();
            return format!("`{text}`: {} holds", pairs.join(" and "));
        }
        match part.failing(url, self.dialect) {
            Some(pair) => format!("`{text}`: `{pair}` does not hold, {}", pair.found_in(url)),
            None => format!("`{text}`: names no property of a provider, so none has it"),
        }
    }
}

/// What a condition left.
enum Left<'a> {
    Nobody,
    Some(&'a [usize]),
    AllForWantOfAny,
}

impl BoundRouter for BoundConditions {
    fn outcome(&self, call: &Invocation) -> u64 {
        let mut outcome = 0;
        for (bit, pairs) in self.kinds.iter().enumerate() {
            if pairs.iter().all(|pair| pair.holds_for_call(call, self.dialect)) {
                outcome |= 1 << bit;
            }
        }
        outcome
    }

    fn constant(&self) -> Option<u64> {
        self.kinds.is_empty().then_some(0)
    }

    fn keep(&self, outcome: u64, input: &[usize]) -> Vec<usize> {
        self.run(outcome, input, |_, _, _| {})
    }

    fn reason(&self, outcome: u64, position: usize) -> Cow<'_, str> {
        let all: Vec<usize> = (0..self.providers.len()).collect();
        self.reasons(outcome, &all).into_iter().nth(position).unwrap_or_default()
    }

    fn reasons(&self, outcome: u64, input: &[usize]) -> Vec<Cow<'_, str>> {
        let mut reasons = vec![Vec::new(); input.len()];
        self.run(outcome, input, |list, at, left| {
            for position in list {
                let reason = match left {
                    Left::Nobody => format!("`{}` allows no provider", self.conditions[at].text),
                    Left::Some(kept) => self.decision(at, *position, kept.binary_search(position).is_ok()),
                    Left::AllForWantOfAny => {
                        format!(
                            "{}; no provider fits and the rule is not forced",
                            self.decision(at, *position, false)
                        )
                    }
                };
                if let Ok(index) = input.binary_search(position) {
                    reasons[index].push(reason);
                }
            }
        });
        let unconcerned = if self.steps.is_empty() {
            "the rule is disabled".to_owned()
        } else {
            let texts: Vec<String> = self.conditions.iter().map(|one| format!("`{}`", one.text)).collect();
            format!("{}: the call is not concerned", texts.join(", "))
        };
        let words = |each: Vec<String>| if each.is_empty() { unconcerned.clone() } else { each.join("; ") };
        reasons.into_iter().map(|each| words(each).into()).collect()
    }
}

impl Applies {
    const fn to(self, outcome: u64) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::ToKind(bit) => outcome & (1 << bit) != 0,
        }
    }
}

/// The number of a kind of calls. [`ConditionRouter::of_conditions`] made sure that there are at most 64.
fn kind(kinds: &mut Vec<Box<[Pair]>>, pairs: Vec<Pair>) -> u32 {
    let at = kinds.iter().position(|known| **known == *pairs).unwrap_or_else(|| {
        kinds.push(pairs.into());
        kinds.len() - 1
    });
    at as u32
}

fn bit(bits: &[u64], position: usize) -> bool {
    bits.get(position / 64).is_some_and(|word| word & (1 << (position % 64)) != 0)
}

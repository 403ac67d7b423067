mod bound;
mod part;
mod pattern;
mod token;

use std::fmt;
use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::invoker::SharedInvoker;
use dubhe_core::router::{BoundRouter, RuleRouter};

use crate::error::RuleError;
use bound::BoundConditions;
use part::{Pair, Part};
use pattern::Side;

/// Longest text of one condition that is read, bytes. Ours: a ZooKeeper node holds 1 MiB, a rule a line or two.
pub const MAX_RULE_BYTES: usize = 64 * 1024;

/// How many kinds of calls the conditions of one rule can tell apart: the outcome of a rule is a 64-bit set.
pub const MAX_CALL_CONDITIONS: usize = 64;

/// Priority of a rule for one service. Origin: `ServiceStateRouterFactory`.
pub const SERVICE_RULE_PRIORITY: i32 = 140;

/// Priority of a rule for an application. Origin: `AppStateRouterFactory`.
pub const APPLICATION_RULE_PRIORITY: i32 = 150;

/// Whose reading of a rule counts where Dubbo 3.1 and 3.3 read it differently.
///
/// | | 3.1 | 3.3 |
/// |---|---|---|
/// | a value that is missing | fits `!=`, and a key without values | fits nothing |
/// | `method` of a generic call | `$invoke` | the method inside it |
///
/// Ranges (`1~100`) and `attachments[…]`, which only 3.3 has, are read in both. An argument that is missing fits nothing in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// As Dubbo 3.1 and before.
    #[default]
    Dubbo31,
    /// As Dubbo 3.3.
    Dubbo33,
}

/// `host = 192.0.2.10 => region = hz`: which calls are concerned, and which providers they may go to.
///
/// A rule is one condition or several, each applied to what the one before left. Compiled: per call only the pairs before `=>` that
/// look at the call are compared; what is after `=>` is evaluated once per provider.
///
/// Follows `ConditionStateRouter` of Dubbo with its accidents of grammar (each is logged when a rule has one), except that `consumer.`
/// and `provider.` are removed only in front of keys, that open ranges (`5~`) work, and that `attachments[a.b]` is found.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionRouter {
    conditions: Arc<[Condition]>,
    priority: i32,
    force: bool,
    enabled: bool,
    dialect: Dialect,
}

/// One condition, read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    text: Box<str>,
    when: Part,
    then: Then,
}

/// What is after `=>`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Then {
    /// Nothing or `false`: the calls may go nowhere.
    Nobody,
    Providers(Part),
}

impl ConditionRouter {
    /// Reads a rule of one condition. It is enabled, not forced, and has the priority of a service rule.
    ///
    /// # Errors
    /// With Dubbo's own texts: see [`RuleError`].
    pub fn parse(rule: &str) -> Result<Self, RuleError> {
        Self::of_conditions([rule])
    }

    /// Reads a rule of several conditions, each applied to what the one before left. None at all is a rule without effect.
    ///
    /// # Errors
    /// As [`ConditionRouter::parse`]; one bad condition refuses the whole rule.
    pub fn of_conditions<'a>(conditions: impl IntoIterator<Item = &'a str>) -> Result<Self, RuleError> {
        let conditions: Arc<[Condition]> =
            conditions.into_iter().map(Condition::parse).collect::<Result<_, _>>()?;
        let mut kinds: Vec<Vec<&Pair>> = Vec::new();
        for condition in &*conditions {
            let kind: Vec<&Pair> = condition.when.pairs.iter().filter(|pair| pair.looks_at_call()).collect();
            // The comparison is bounded: it ends with the first rule that has too many.
            if !kind.is_empty() && !kinds.contains(&kind) {
                kinds.push(kind);
            }
            if kinds.len() > MAX_CALL_CONDITIONS {
                return Err(RuleError::TooManyConditions { found: kinds.len(), limit: MAX_CALL_CONDITIONS });
            }
        }
        drop(kinds);
        let dialect = Dialect::default();
        Ok(Self { conditions, priority: SERVICE_RULE_PRIORITY, force: false, enabled: true, dialect })
    }

    /// The same rule, forced or not: whether a condition that leaves no provider leaves none (`true`) or all (`false`, the default).
    pub const fn with_force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// The same rule, in effect (default) or not.
    pub const fn with_enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// The same rule at another place in the chain; default [`SERVICE_RULE_PRIORITY`].
    pub const fn with_priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// The same rule, read as another version of Dubbo reads it; default [`Dialect::Dubbo31`].
    pub const fn with_dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Whether a condition that leaves no provider leaves none.
    pub const fn force(&self) -> bool {
        self.force
    }

    /// Whether it is in effect.
    pub const fn enabled(&self) -> bool {
        self.enabled
    }

    /// The texts of its conditions.
    pub fn conditions(&self) -> impl Iterator<Item = &str> {
        self.conditions.iter().map(|condition| &*condition.text)
    }
}

impl RuleRouter for ConditionRouter {
    fn name(&self) -> &str {
        "condition"
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn bind(&self, providers: &Arc<[SharedInvoker]>, consumer: &Url) -> Box<dyn BoundRouter> {
        Box::new(BoundConditions::new(self, providers, consumer))
    }
}

impl fmt::Display for ConditionRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.conditions().collect::<Vec<_>>().join("; "))
    }
}

impl Condition {
    fn parse(text: &str) -> Result<Self, RuleError> {
        if text.len() > MAX_RULE_BYTES {
            return Err(RuleError::TooLong { bytes: text.len(), limit: MAX_RULE_BYTES });
        }
        let text = trim(text);
        if text.is_empty() {
            return Err(RuleError::Empty);
        }
        let (when, then) = match text.split_once("=>") {
            Some((when, then)) => (trim(when), trim(then)),
            None => ("", text),
        };
        let mut remarks = Vec::new();
        let when = if matches!(when, "" | "true") { "" } else { when };
        let when = Part::parse(when, Side::Consumer, &mut remarks)?;
        let then = match then {
            "" | "false" => Then::Nobody,
            then => Then::Providers(Part::parse(then, Side::Provider, &mut remarks)?),
        };
        for remark in remarks {
            tracing::warn!(rule = text, remark, "route rule may not say what is meant");
        }
        Ok(Self { text: text.into(), when, then })
    }
}

/// As `String.trim` of Java.
fn trim(text: &str) -> &str {
    text.trim_matches(|letter| letter <= ' ')
}

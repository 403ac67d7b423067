use dubhe_common::UrlError;

/// Why the text of a condition rule is refused.
///
/// The first two texts are those of Dubbo's `ConditionStateRouter`, so that people find them where they look for them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// There is no text.
    #[error("Illegal route rule!")]
    Empty,
    /// A separator stands where it may not.
    #[error(
        "Illegal route rule \"{part}\", The error char '{separator}' at index {index} before \"{content}\"."
    )]
    Separator {
        /// The part of the rule before or after `=>`.
        part: String,
        /// What stands there.
        separator: String,
        /// Where in the part, in UTF-16 units from 0.
        index: usize,
        /// What follows it.
        content: String,
    },
    /// The text is longer than [`MAX_RULE_BYTES`](crate::MAX_RULE_BYTES).
    #[error("route rule of {bytes} bytes is too long: at most {limit} are read")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A document has more conditions that look at calls than [`MAX_CALL_CONDITIONS`](crate::MAX_CALL_CONDITIONS).
    #[error(
        "route rule tells {found} kinds of calls apart, at most {limit} fit: split it into several rules"
    )]
    TooManyConditions {
        /// How many different ones it has.
        found: usize,
        /// The limit.
        limit: usize,
    },
}

/// Why a rule of the registry's `routers` category is skipped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RegistryRuleError {
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error("rule has an unusable number: {0}")]
    Number(#[from] UrlError),
    #[error("rules of type `{0}` run code that anybody with access to the registry can write: refused")]
    Script(String),
    #[error("rules of type `{0}` are not supported: use `router=condition`")]
    UnknownType(String),
}

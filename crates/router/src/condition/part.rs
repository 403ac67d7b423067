use std::collections::HashMap;
use std::fmt;

use dubhe_common::Url;
use dubhe_core::invocation::Invocation;

use super::Dialect;
use super::pattern::{Pattern, Side, UrlKey};
use super::token::Tokens;
use crate::error::RuleError;

/// One part of a rule: pairs of a key with values, all of which must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) pairs: Vec<Pair>,
}

/// A key with the values that it must and must not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) key: Key,
    matches: Vec<Pattern>,
    mismatches: Vec<Pattern>,
}

/// What a pair looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// The method that is called; only before `=>`.
    Method,
    /// `arguments[N]`; `None` when it has not that form.
    Argument(Option<usize>),
    /// `attachments[K]`; `None` when it has not that form.
    Attachment(Option<Box<str>>),
    /// A property of the consumer's or the provider's URL.
    Url(UrlKey),
}

/// Where values are added: the set of `=` or of `!=` values of a pair.
#[derive(Clone, Copy)]
struct Target {
    pair: usize,
    negated: bool,
}

impl Part {
    /// Reads one part. `remarks` gets what is legal by accident of Dubbo's grammar and probably not meant.
    pub(super) fn parse(text: &str, side: Side, remarks: &mut Vec<&'static str>) -> Result<Self, RuleError> {
        let mut pairs: Vec<Pair> = Vec::new();
        // By key, the pair that counts; a replaced pair stays in `pairs`, where a comma may still add values to it.
        let mut of_key: HashMap<&str, usize> = HashMap::new();
        let mut current: Option<usize> = None;
        let mut target: Option<Target> = None;
        let mut tokens = Tokens::new(text);
        for token in &mut tokens {
            let refused = || token.refused(text);
            match token.separator {
                "" | "&" => {
                    let name = strip_owner(token.content);
                    let known = of_key.get(name).copied().filter(|_| token.separator == "&");
                    let at = known.unwrap_or_else(|| {
                        pairs.push(Pair::new(Key::new(name, side)));
                        pairs.len() - 1
                    });
                    of_key.insert(name, at);
                    current = Some(at);
                    continue;
                }
                "=" | "!=" => {
                    let pair = current.ok_or_else(refused)?;
                    target = Some(Target { pair, negated: token.separator == "!=" });
                }
                "," => {
                    if target.is_none_or(|target| pairs[target.pair].values(target.negated).is_empty()) {
                        return Err(refused());
                    }
                    if target.map(|target| target.pair) != current {
                        remarks.push(
                            "a comma after a key without value adds to the values of the key before it",
                        );
                    }
                }
                _ => return Err(refused()),
            }
            if token.content.starts_with('>') {
                remarks.push("a second `=>` is read as a value that begins with `>`");
            }
            if let Some(target) = target {
                pairs[target.pair].values(target.negated).push(Pattern::compile(token.content, side));
            }
        }
        if tokens.skipped_separators {
            remarks.push("a separator without anything behind it is skipped");
        }
        let mut live: Vec<usize> = of_key.into_values().collect();
        live.sort_unstable();
        let pairs: Vec<Pair> = live.into_iter().map(|at| pairs[at].clone()).collect();
        if pairs.iter().any(Pair::is_bare) {
            remarks.push("a key without value holds only where the key is missing, in Dubbo 3.3 never");
        }
        Ok(Self { pairs })
    }

    /// The same part with references replaced by what the consumer has.
    pub(super) fn resolve(&self, consumer: &Url) -> Self {
        let resolve = |patterns: &[Pattern]| patterns.iter().map(|one| one.resolve(consumer)).collect();
        let pairs = self.pairs.iter().map(|pair| Pair {
            key: pair.key.clone(),
            matches: resolve(&pair.matches),
            mismatches: resolve(&pair.mismatches),
        });
        Self { pairs: pairs.collect() }
    }

    /// Whether this part of the provider's side holds for a provider. A part without pairs holds for nobody.
    pub(super) fn holds_for_provider(&self, provider: &Url, dialect: Dialect) -> bool {
        !self.pairs.is_empty() && self.failing(provider, dialect).is_none()
    }

    /// The first pair that does not hold for a URL.
    pub(super) fn failing(&self, url: &Url, dialect: Dialect) -> Option<&Pair> {
        self.pairs.iter().find(|pair| !pair.holds_for_url(url, dialect))
    }
}

impl Pair {
    const fn new(key: Key) -> Self {
        Self { key, matches: Vec::new(), mismatches: Vec::new() }
    }

    /// Whether it depends on the call, not only on the consumer.
    pub(super) const fn looks_at_call(&self) -> bool {
        !matches!(self.key, Key::Url(_))
    }

    /// Whether it holds for a call. Does not allocate, but for arguments of unusual types.
    pub(super) fn holds_for_call(&self, call: &Invocation, dialect: Dialect) -> bool {
        match &self.key {
            Key::Method => match dialect {
                Dialect::Dubbo31 => self.accepts(&call.method().name),
                Dialect::Dubbo33 => self.accepts(call.method_name()),
            },
            Key::Argument(Some(index)) => {
                let mut holds = false;
                call.with_argument_text(*index, &mut |text| holds = self.accepts(text)) && holds
            }
            Key::Argument(None) => false,
            Key::Attachment(name) => {
                let value = name.as_deref().and_then(|name| call.attachments().get_str(name));
                self.accepts_option(value, dialect)
            }
            Key::Url(_) => false,
        }
    }

    /// Whether it holds for a URL. What is not of a URL is missing there.
    pub(super) fn holds_for_url(&self, url: &Url, dialect: Dialect) -> bool {
        match &self.key {
            Key::Url(key) => self.accepts_option(key.value(url).as_deref(), dialect),
            Key::Attachment(_) => self.accepts_option(None, dialect),
            Key::Method | Key::Argument(_) => false,
        }
    }

    /// For people: the value that a URL has under this key.
    pub(super) fn found_in(&self, url: &Url) -> String {
        match &self.key {
            Key::Url(key) => match key.value(url) {
                Some(value) => format!("{} is `{value}`", key.name()),
                None => format!("{} is missing", key.name()),
            },
            _ => format!("{} is not of a provider", self.key),
        }
    }

    fn accepts_option(&self, value: Option<&str>, dialect: Dialect) -> bool {
        match (value, dialect) {
            (Some(value), _) => self.accepts(value),
            (None, Dialect::Dubbo31) => self.matches.is_empty(),
            (None, Dialect::Dubbo33) => false,
        }
    }

    fn accepts(&self, value: &str) -> bool {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.fits(value));
        match (self.matches.is_empty(), self.mismatches.is_empty()) {
            (true, true) => false,
            (true, false) => !fits(&self.mismatches),
            (false, _) => !fits(&self.mismatches) && fits(&self.matches),
        }
    }

    const fn is_bare(&self) -> bool {
        self.matches.is_empty() && self.mismatches.is_empty()
    }

    const fn values(&mut self, negated: bool) -> &mut Vec<Pattern> {
        if negated { &mut self.mismatches } else { &mut self.matches }
    }
}

impl Key {
    fn new(name: &str, side: Side) -> Self {
        if name.starts_with("attachments") {
            return Self::Attachment(bracketed(name).map(Into::into));
        }
        if name.starts_with("arguments") {
            let form = name.split('.').next().unwrap_or(name);
            return Self::Argument(bracketed(form).and_then(|index| index.parse().ok()));
        }
        match name {
            "method" | "methods" if side == Side::Consumer => Self::Method,
            _ => Self::Url(UrlKey::new(name)),
        }
    }
}

/// What is between the first `[` and the last `]`.
fn bracketed(name: &str) -> Option<&str> {
    let from = name.find('[')? + 1;
    let to = name.rfind(']')?;
    name.get(from..to).filter(|inner| !inner.is_empty())
}

/// Rules may say whose property a key is; the side already does. Dubbo removes the two words everywhere, also inside
/// values, where it changes what the rule says.
fn strip_owner(name: &str) -> &str {
    name.strip_prefix("consumer.").or_else(|| name.strip_prefix("provider.")).unwrap_or(name)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method => f.write_str("method"),
            Self::Argument(Some(index)) => write!(f, "arguments[{index}]"),
            Self::Argument(None) => f.write_str("arguments"),
            Self::Attachment(Some(name)) => write!(f, "attachments[{name}]"),
            Self::Attachment(None) => f.write_str("attachments"),
            Self::Url(key) => f.write_str(key.name()),
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |patterns: &[Pattern]| patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        write!(f, "{}", self.key)?;
        if !self.matches.is_empty() {
            write!(f, "={}", list(&self.matches))?;
        }
        if !self.mismatches.is_empty() {
            write!(f, "!={}", list(&self.mismatches))?;
        }
        Ok(())
    }
}

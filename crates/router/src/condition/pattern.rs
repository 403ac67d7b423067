use std::fmt;

use dubhe_common::Url;

/// Which part of a rule a pattern stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Before `=>`: the call and the consumer.
    Consumer,
    /// After `=>`: a provider.
    Provider,
}

/// What a value is compared with: `*`, `192.0.2.*`, `hz`, `1~100`, `$region`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// `*`.
    Any,
    /// No `*` in it.
    Exact(Box<str>),
    /// Only the last `*` counts; what is around it may overlap in the value.
    Affix { prefix: Box<str>, suffix: Box<str> },
    /// `from~to`, inclusive; either end may be open.
    Range { from: Option<u64>, to: Option<u64> },
    /// A range that is none: as in Dubbo 3.3 nothing fits it before `=>`, and everything after it.
    BadRange { text: Box<str>, fits: bool },
    /// `$name`: the consumer's value of that name. Resolved when the rule is bound to a consumer.
    Reference(Box<str>),
    /// A reference to something that the consumer does not have.
    Unresolved(Box<str>),
}

impl Pattern {
    pub(super) fn compile(text: &str, side: Side) -> Self {
        if text.contains('~') {
            return Self::range(text)
                .unwrap_or_else(|| Self::BadRange { text: text.into(), fits: side == Side::Provider });
        }
        match text.strip_prefix('$') {
            Some(name) if side == Side::Provider => Self::Reference(name.into()),
            _ => Self::glob(text),
        }
    }

    pub(super) fn fits(&self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(text) => **text == *value,
            Self::Affix { prefix, suffix } => value.starts_with(&**prefix) && value.ends_with(&**suffix),
            Self::Range { from, to } => value.parse().is_ok_and(|number: u64| {
                from.is_none_or(|from| from <= number) && to.is_none_or(|to| number <= to)
            }),
            Self::BadRange { fits, .. } => *fits,
            Self::Reference(_) | Self::Unresolved(_) => false,
        }
    }

    /// The same pattern with a reference replaced by what the consumer has.
    pub(super) fn resolve(&self, consumer: &Url) -> Self {
        let Self::Reference(name) = self else { return self.clone() };
        match UrlKey::new(name).value(consumer) {
            Some(value) => Self::glob(&value),
            None => Self::Unresolved(name.clone()),
        }
    }

    fn glob(text: &str) -> Self {
        match text.rsplit_once('*') {
            None => Self::Exact(text.into()),
            Some(("", "")) => Self::Any,
            Some((prefix, suffix)) => Self::Affix { prefix: prefix.into(), suffix: suffix.into() },
        }
    }

    fn range(text: &str) -> Option<Self> {
        let end = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
        let (from, to) = text.split_once('~')?;
        let (from, to) = (end(from)?, end(to)?);
        (from.is_some() || to.is_some()).then_some(Self::Range { from, to })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = |end: &Option<u64>| end.map(|end| end.to_string()).unwrap_or_default();
        match self {
            Self::Any => f.write_str("*"),
            Self::Exact(text) | Self::BadRange { text, .. } => f.write_str(text),
            Self::Affix { prefix, suffix } => write!(f, "{prefix}*{suffix}"),
            Self::Range { from, to } => write!(f, "{}~{}", open(from), open(to)),
            Self::Reference(name) | Self::Unresolved(name) => write!(f, "${name}"),
        }
    }
}

/// A property of a URL, as rules name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UrlKey {
    Host,
    Port,
    Protocol,
    Path,
    Username,
    Password,
    Address,
    Parameter(Box<str>),
}

impl UrlKey {
    pub(super) fn new(name: &str) -> Self {
        match name {
            "host" => Self::Host,
            "port" => Self::Port,
            "protocol" => Self::Protocol,
            "path" => Self::Path,
            "username" => Self::Username,
            "password" => Self::Password,
            "address" => Self::Address,
            _ => Self::Parameter(name.into()),
        }
    }

    pub(super) fn value<'a>(&self, url: &'a Url) -> Option<std::borrow::Cow<'a, str>> {
        match self {
            Self::Host => Some(url.host().into()),
            Self::Port => (url.port() > 0).then(|| url.port().to_string().into()),
            Self::Protocol => Some(url.protocol().into()),
            Self::Path => url.path().map(Into::into),
            Self::Username => url.user().map(Into::into),
            Self::Password => url.password().map(Into::into),
            Self::Address => Some(url.address().into()),
            Self::Parameter(name) => url.raw_param(name).map(Into::into),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Host => "host",
            Self::Port => "port",
            Self::Protocol => "protocol",
            Self::Path => "path",
            Self::Username => "username",
            Self::Password => "password",
            Self::Address => "address",
            Self::Parameter(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, value: &str) -> bool {
        Pattern::compile(pattern, Side::Consumer).fits(value)
    }

    #[test]
    fn only_the_last_star_is_special() {
        assert!(fits("ab*ba", "aba"));
        assert!(!fits("*b*", "abc"));
        assert!(fits("*b*", "*bc"));
        assert!(!fits("a*", ""));
    }

    #[test]
    fn ranges_include_their_ends_and_may_be_open() {
        assert!(fits("1~10", "1") && fits("1~10", "10") && !fits("1~10", "11"));
        assert!(fits("~5", "0") && !fits("~5", "6"));
        assert!(fits("5~", "7") && !fits("5~", "4"));
        assert!(!fits("~5", "x"));
    }

    #[test]
    fn a_malformed_range_fits_nothing_before_the_arrow_and_anything_after_it() {
        for text in ["~", "a~b", "1~2~3"] {
            assert!(!Pattern::compile(text, Side::Consumer).fits("1"));
            assert!(Pattern::compile(text, Side::Provider).fits("1"));
        }
    }

    #[test]
    fn a_reference_is_literal_before_the_arrow() {
        assert!(fits("$host", "$host"));
        let consumer = Url::parse("consumer://192.0.2.9/a.B?region=hz").unwrap();
        let resolved = |text| Pattern::compile(text, Side::Provider).resolve(&consumer);
        assert!(resolved("$region").fits("hz"));
        assert!(resolved("$host").fits("192.0.2.9"));
        assert!(!resolved("$zone").fits("hz"));
    }
}

//! Rules that change settings of services at run time: `override://…` and `absent://…`.
//!
//! Follows `AbstractConfigurator` of Dubbo 3.3. Differs from it in that `priority` and `providerAddresses` do not
//! end up on the URL, and in that a rule sees the settings of all layers, as its author does.

use std::fmt;

use crate::address::connect_host;
use crate::keys::{self, ANY, ANYHOST_VALUE, CONDITION_PREFIX};
use crate::matching::list_items;
use crate::url::Url;

/// What a rule is matched against, next to the URL it would change.
#[derive(Debug, Clone, Copy)]
pub struct RuleTarget<'a> {
    /// `provider` or `consumer`: whose settings are changed.
    pub side: &'a str,
    /// Name of the application whose settings are changed: on the consumer side the consumer's.
    pub application: &'a str,
    /// Address this process is known by.
    pub local_host: &'a str,
}

/// The rules of one source, in the order in which they are applied: all-host rules before those for one host, then
/// by rising `priority`; later rules win.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Configurators(Vec<Url>);

impl Configurators {
    /// Reads a notification. `None` means that it says nothing and the rules so far stay; an `empty://` URL clears
    /// them. Rules without settings, marked `compatible_config`, or of unknown kind are left out.
    pub fn from_notified(urls: &[Url]) -> Option<Self> {
        if urls.is_empty() {
            return None;
        }
        if urls.iter().any(Url::is_empty_protocol) {
            return Some(Self::default());
        }
        let mut rules: Vec<Url> = urls.iter().filter(|url| is_rule(url)).cloned().collect();
        rules.sort_by(|a, b| a.host().cmp(b.host()).then_with(|| priority(a).cmp(&priority(b))));
        Some(Self(rules))
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rules.
    pub fn rules(&self) -> &[Url] {
        &self.0
    }

    /// `url` with the settings of every rule that applies. The same value if none changes anything.
    #[must_use]
    pub fn apply(&self, url: &Url, target: &RuleTarget<'_>) -> Url {
        self.0.iter().fold(url.clone(), |url, rule| apply_rule(rule, url, target))
    }
}

impl fmt::Debug for Configurators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

/// Whether a rule applies to a URL.
pub fn rule_applies(rule: &Url, url: &Url, target: &RuleTarget<'_>) -> bool {
    rule.bool_param(keys::ENABLED, true)
        && !rule.host().is_empty()
        && !url.host().is_empty()
        && host_applies(rule, url, target)
        && address_applies(rule.param(keys::PROVIDER_ADDRESSES), url)
        && is_any_or(rule.param(keys::APPLICATION).or_else(|| rule.user()), target.application)
        && is_any_or(rule.side(), target.side)
        && conditions_hold(rule, url)
}

/// The settings a rule makes: its parameters without those that steer the rule itself.
pub fn rule_settings(rule: &Url) -> impl Iterator<Item = (&str, &str)> {
    rule.params().filter(|(name, _)| !name.starts_with(CONDITION_PREFIX) && !STEERING.contains(name))
}

/// Parameters of a rule that are no settings.
const STEERING: [&str; 14] = [
    keys::CATEGORY,
    keys::CHECK,
    keys::DYNAMIC,
    keys::ENABLED,
    keys::GROUP,
    keys::VERSION,
    keys::APPLICATION,
    keys::SIDE,
    keys::CONFIG_VERSION,
    keys::COMPATIBLE_CONFIG,
    keys::INTERFACES,
    keys::INTERFACE,
    keys::PRIORITY,
    keys::PROVIDER_ADDRESSES,
];

fn is_rule(url: &Url) -> bool {
    matches!(url.protocol(), keys::protocol::OVERRIDE | keys::protocol::ABSENT)
        && url.params().any(|(name, _)| name != keys::ANYHOST)
        && url.param(keys::COMPATIBLE_CONFIG).is_none()
}

fn priority(rule: &Url) -> i64 {
    rule.int_param(keys::PRIORITY, 0).unwrap_or(0)
}

fn apply_rule(rule: &Url, url: Url, target: &RuleTarget<'_>) -> Url {
    if !rule_applies(rule, &url, target) {
        return url;
    }
    let only_absent = rule.protocol() == keys::protocol::ABSENT;
    let changes: Vec<(&str, &str)> = rule_settings(rule)
        .filter(|(name, value)| match url.param(name) {
            Some(present) => !only_absent && present != *value,
            None => true,
        })
        .collect();
    if changes.is_empty() { url } else { url.with_params(changes) }
}

/// Whether a rule is about the host in question. Old rules (without `configVersion`) with a port name a provider;
/// without a port they name the host of the process that reads them, and a provider heeds only those for all hosts.
fn host_applies(rule: &Url, url: &Url, target: &RuleTarget<'_>) -> bool {
    let is_consumer = target.side == keys::side::CONSUMER;
    let candidate = if rule.param(keys::CONFIG_VERSION).is_some() {
        if rule.side().is_none_or(|side| side != target.side) {
            return false;
        }
        if is_consumer { target.local_host } else { url.host() }
    } else if rule.port() != 0 {
        if rule.port() != url.port() {
            return false;
        }
        url.host()
    } else if is_consumer {
        target.local_host
    } else {
        ANYHOST_VALUE
    };
    rule.host() == ANYHOST_VALUE || connect_host(rule.host()) == connect_host(candidate)
}

fn address_applies(addresses: Option<&str>, url: &Url) -> bool {
    let Some(addresses) = addresses else { return true };
    let host_fits = |host: &str| host == ANYHOST_VALUE || host == url.host();
    list_items(addresses).any(|item| match item.rsplit_once(':') {
        Some((host, "*")) => host_fits(host),
        _ => match crate::parse::body(item) {
            Ok(body) => host_fits(body.host) && (body.port == 0 || body.port == url.port()),
            Err(_) => item == url.address(),
        },
    })
}

fn conditions_hold(rule: &Url, url: &Url) -> bool {
    rule.params().all(|(name, value)| match name.strip_prefix(CONDITION_PREFIX) {
        Some(key) => value.is_empty() || value == ANY || url.param(key) == Some(value),
        None => true,
    })
}

fn is_any_or(wanted: Option<&str>, actual: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == ANY || wanted == actual)
}

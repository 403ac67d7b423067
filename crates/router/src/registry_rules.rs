use std::collections::HashSet;
use std::sync::Arc;

use dubhe_common::{Url, keys};

use crate::condition::{ConditionRouter, Dialect};
use crate::error::RegistryRuleError;

/// The rules of a registry's `routers` category, as the old admin consoles write them (Dubbo 2.6 and before).
///
/// Dubbo 3 still subscribes to them and then fails to make routers of them; here they work, by ascending `priority`.
#[derive(Debug, Default)]
pub(crate) struct RegistryRules {
    urls: Vec<Url>,
    rules: Arc<[ConditionRouter]>,
    /// Those that were logged already.
    refused: HashSet<Url>,
}

impl RegistryRules {
    pub(crate) fn rules(&self) -> Arc<[ConditionRouter]> {
        Arc::clone(&self.rules)
    }

    /// Replaces the rules by those of a full list. Returns whether any rule changed.
    pub(crate) fn replace(&mut self, urls: &[Url], dialect: Dialect) -> bool {
        let mut accepted: Vec<(i32, &Url, ConditionRouter)> = Vec::new();
        let mut refused = HashSet::new();
        for url in urls.iter().filter(|url| concerns(url)) {
            if accepted.iter().any(|(_, known, _)| *known == url) {
                continue;
            }
            match read(url) {
                Ok((priority, rule)) => accepted.push((priority, url, rule.with_dialect(dialect))),
                Err(error) => {
                    if !self.refused.contains(url) && !refused.contains(url) {
                        tracing::warn!(%error, rule = %url, "rule from the registry is skipped");
                    }
                    refused.insert(url.clone());
                }
            }
        }
        self.refused = refused;
        // The order of a registry's list means nothing: equal priorities go by their text.
        accepted.sort_by_cached_key(|(priority, url, _)| (*priority, url.to_full_string()));
        if accepted.iter().map(|(_, url, _)| *url).eq(&self.urls) {
            return false;
        }
        self.urls = accepted.iter().map(|(_, url, _)| (*url).clone()).collect();
        self.rules = accepted.into_iter().map(|(_, _, rule)| rule).collect();
        true
    }
}

/// Rules with `compatible_config` were written a second time, for Dubbo 2.6 only.
fn concerns(url: &Url) -> bool {
    !url.is_empty_protocol()
        && url.param(keys::COMPATIBLE_CONFIG).is_none()
        && url.bool_param(keys::ENABLED, true)
}

fn read(url: &Url) -> Result<(i32, ConditionRouter), RegistryRuleError> {
    match url.param(keys::ROUTER).unwrap_or_else(|| url.protocol()) {
        keys::protocol::CONDITION => {
            let priority = url.int_param(keys::PRIORITY, 0)?.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
            let rule = ConditionRouter::parse(&url.param_decoded(keys::RULE).unwrap_or_default())?;
            Ok((priority, rule.with_priority(priority).with_force(url.bool_param(keys::FORCE, false))))
        }
        kind @ (keys::protocol::SCRIPT | "file") => Err(RegistryRuleError::Script(kind.to_owned())),
        kind => Err(RegistryRuleError::UnknownType(kind.to_owned())),
    }
}

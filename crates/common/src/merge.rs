//! What a consumer's settings do to a provider's URL when the two are merged into one.
//!
//! Used for addresses given by hand; addresses of a registry are merged by [`merge_address`](crate::merge_address).

use std::sync::Arc;

use crate::keys;
use crate::params::{Entry, Params, set_sorted};
use crate::url::Url;

/// Names of which the consumer's value never counts. Origin: `DefaultProviderFirstParams`.
pub(crate) const PROVIDER_FIRST: [&str; 5] =
    [keys::RELEASE, keys::DUBBO, keys::METHODS, keys::TIMESTAMP, keys::TAG];

/// Names of which both values count, the provider's first.
pub(crate) const JOINED: [&str; 2] = [keys::REFERENCE_FILTER, keys::INVOKER_LISTENER];

/// Settings of a provider's threads, which say nothing to a consumer. Each also as `default.…`.
const PROVIDER_ONLY: [&str; 7] = [
    keys::THREADNAME,
    keys::THREADPOOL,
    keys::CORE_THREADS,
    keys::THREADS,
    keys::QUEUES,
    keys::ALIVE,
    keys::TRANSPORTER,
];

/// Names of which the consumer's value counts only where the provider has none.
const PROVIDER_IF_PRESENT: [&str; 3] = [keys::GROUP, keys::VERSION, keys::GENERIC];

/// The provider's URL with the consumer's parameters over its own (`DefaultProviderURLMergeProcessor` of Dubbo).
///
/// The consumer wins except for `group`, `version`, `generic` where the provider has them, and for `release`,
/// `dubbo`, `methods`, `timestamp` and `dubbo.tag`. Settings of the provider's threads are dropped,
/// `remote.application` keeps the provider's application, filters and listeners are joined.
pub fn merge_consumer_into_provider(provider: &Url, consumer: &Url) -> Url {
    let mut entries: Vec<Entry> = provider
        .shared_params()
        .entries()
        .iter()
        .filter(|(name, _)| !PROVIDER_ONLY.contains(&name.strip_prefix(keys::DEFAULT_PREFIX).unwrap_or(name)))
        .cloned()
        .collect();
    for (name, value) in consumer.shared_params().entries() {
        let kept = PROVIDER_FIRST.contains(&&**name)
            || (PROVIDER_IF_PRESENT.contains(&&**name) && provider.param(name).is_some());
        if !kept {
            set_sorted(&mut entries, name, Arc::clone(value));
        }
    }
    if let Some(application) = provider.application() {
        set_sorted(&mut entries, keys::REMOTE_APPLICATION, Arc::from(application));
    }
    for name in JOINED {
        if let (Some(first), Some(second)) = (provider.param(name), consumer.param(name)) {
            set_sorted(&mut entries, name, Arc::from(format!("{first},{second}")));
        }
    }
    let merged = provider.to_builder().shared_params(Params::from_sorted(entries));
    match consumer.param(keys::PID) {
        Some(pid) => merged.param(keys::PID, pid).build(),
        None => merged.build(),
    }
}

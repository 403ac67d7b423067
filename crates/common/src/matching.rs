//! Which providers answer which consumer, and the patterns both are written in.

use crate::keys::{self, ANY};
use crate::url::Url;

/// Whether a URL from a registry concerns a consumer: interface, category, enabled, group, version and classifier
/// agree (`UrlUtils.isMatch` of Dubbo, comparing items where Dubbo looks for substrings).
pub fn is_match(consumer: &Url, provider: &Url) -> bool {
    interface_matches(consumer.service_interface(), provider.service_interface())
        && category_matches(consumer.category(), provider.category())
        && (provider.bool_param(keys::ENABLED, true) || consumer.param(keys::ENABLED) == Some(ANY))
        && group_matches(consumer.raw_param(keys::GROUP), provider.raw_param(keys::GROUP))
        && version_matches(consumer.raw_param(keys::VERSION), provider.raw_param(keys::VERSION))
        && classifier_matches(
            consumer.param_or(keys::CLASSIFIER, ANY),
            provider.param_or(keys::CLASSIFIER, ANY),
        )
}

/// Whether `category` is among `wanted`: a comma list of names, `*` for all, `-name` for all but that one.
pub fn category_matches(wanted: &str, category: &str) -> bool {
    if wanted.is_empty() {
        return category == keys::category::PROVIDERS;
    }
    let excludes = |item: &str| item.strip_prefix('-') == Some(category);
    if list_contains(wanted, ANY) {
        return true;
    }
    if list_items(wanted).any(|item| item.starts_with('-')) {
        return !list_items(wanted).any(excludes);
    }
    list_contains(wanted, category)
}

/// Whether a comma list holds an item; blanks around items do not count.
pub fn list_contains(list: &str, item: &str) -> bool {
    list_items(list).any(|each| each == item)
}

/// The items of a comma list without the blanks around them and without empty ones.
pub fn list_items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Whether `value` fits `pattern`, as routing rules write it: only the last `*` is special, it stands for anything,
/// and what is before and after it may overlap (`ab*ba` fits `aba`).
pub fn glob(pattern: &str, value: &str) -> bool {
    if pattern == ANY || (pattern.is_empty() && value.is_empty()) {
        return true;
    }
    if pattern.is_empty() || value.is_empty() {
        return false;
    }
    match pattern.rsplit_once('*') {
        None => pattern == value,
        Some((prefix, suffix)) => value.starts_with(prefix) && value.ends_with(suffix),
    }
}

fn interface_matches(consumer: &str, provider: &str) -> bool {
    consumer == ANY || provider == ANY || consumer == provider
}

/// A consumer may ask for several groups; a provider without one is not among them.
fn group_matches(consumer: Option<&str>, provider: Option<&str>) -> bool {
    if consumer == Some(ANY) || consumer == provider {
        return true;
    }
    match (consumer, provider) {
        (Some(wanted), Some(group)) => !group.is_empty() && list_contains(wanted, group),
        _ => false,
    }
}

fn version_matches(consumer: Option<&str>, provider: Option<&str>) -> bool {
    consumer == Some(ANY) || consumer == provider
}

fn classifier_matches(consumer: &str, provider: &str) -> bool {
    consumer == ANY || consumer == provider
}

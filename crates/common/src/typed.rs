//! Parameters read as numbers, flags, lists and times, for the service and for one of its methods.

use std::time::Duration;

use crate::encode::decode;
use crate::error::{UrlError, excerpt};
use crate::keys;
use crate::matching::{list_contains, list_items};
use crate::params::MethodParams;
use crate::url::Url;

impl Url {
    /// Value of a parameter, or `default` where it is missing or empty.
    pub fn param_or<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.param(key).unwrap_or(default)
    }

    /// Whether a parameter is `true` in any case; `default` where it is missing or empty.
    pub fn bool_param(&self, key: &str, default: bool) -> bool {
        self.param(key).map_or(default, is_true)
    }

    /// A parameter as a whole number; `default` where it is missing or empty.
    ///
    /// # Errors
    /// The value is not a whole number.
    pub fn int_param(&self, key: &str, default: i64) -> Result<i64, UrlError> {
        self.param(key).map_or(Ok(default), |value| number(key, value))
    }

    /// As [`Url::int_param`], but with `default` in place of what is not above zero.
    ///
    /// # Errors
    /// The value is not a whole number.
    pub fn positive_param(&self, key: &str, default: i64) -> Result<i64, UrlError> {
        self.int_param(key, default).map(|value| if value > 0 { value } else { default })
    }

    /// The items of a comma list, without blanks around them; empty where the parameter is missing.
    pub fn list_param(&self, key: &str) -> Vec<&str> {
        self.param(key).map(|list| list_items(list).collect()).unwrap_or_default()
    }

    /// A parameter in milliseconds; `default` where it is missing, malformed or not above zero.
    pub fn duration_param(&self, key: &str, default: Duration) -> Duration {
        self.param(key).and_then(millis).unwrap_or(default)
    }

    /// Value for a method: `method.key` if it is there and not empty, else `key`.
    pub fn method_param(&self, method: &str, key: &str) -> Option<&str> {
        self.method_param_strict(method, key).or_else(|| self.param(key))
    }

    /// Value of `method.key`, if it is not empty and `methods` does not leave the method out.
    pub fn method_param_strict(&self, method: &str, key: &str) -> Option<&str> {
        let kind = self.shared_params().method_params();
        if kind == MethodParams::None {
            return None;
        }
        let value = self.shared_params().raw_of_method(method, key).filter(|value| !value.is_empty())?;
        (kind == MethodParams::Allowed || self.lists_method(method)).then_some(value)
    }

    /// As [`Url::bool_param`] for a method.
    pub fn method_bool(&self, method: &str, key: &str, default: bool) -> bool {
        self.method_param(method, key).map_or(default, is_true)
    }

    /// A whole number for a method; `default` where it is missing or malformed. A call must not fail because of a
    /// setting nobody checked; check it where the URL is made, with [`Url::int_param`].
    pub fn method_int(&self, method: &str, key: &str, default: i64) -> i64 {
        self.method_param(method, key).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// As [`Url::duration_param`] for a method.
    pub fn method_duration(&self, method: &str, key: &str, default: Duration) -> Duration {
        self.method_param(method, key).and_then(millis).unwrap_or(default)
    }

    /// Value for a method, decoded once more.
    pub fn method_param_decoded(&self, method: &str, key: &str) -> Option<String> {
        self.method_param(method, key).map(|value| decode(value).into_owned())
    }

    /// Whether any parameter may be one of a method. A hot path can skip the lookup where not.
    #[inline]
    pub fn has_method_params(&self) -> bool {
        self.shared_params().method_params() != MethodParams::None
    }

    /// Whether there is any parameter of this method.
    pub fn has_params_of_method(&self, method: &str) -> bool {
        self.params().any(|(name, _)| name.split_once('.').is_some_and(|(left, _)| left == method))
    }

    /// Value of `key` for the first method that has one, methods in the order of `methods` or of the alphabet.
    pub fn any_method_param(&self, key: &str) -> Option<&str> {
        let listed = self.list_param(keys::METHODS);
        if !listed.is_empty() && !listed.contains(&keys::ANY) {
            return listed.into_iter().find_map(|method| self.method_param_strict(method, key));
        }
        self.params().find_map(|(name, value)| {
            name.split_once('.').filter(|(_, right)| *right == key && !value.is_empty()).map(|_| value)
        })
    }

    fn lists_method(&self, method: &str) -> bool {
        self.param(keys::METHODS)
            .is_none_or(|list| list_contains(list, method) || list_contains(list, keys::ANY))
    }
}

fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true")
}

fn number(key: &str, value: &str) -> Result<i64, UrlError> {
    value.parse().map_err(|_| UrlError::NotANumber { name: key.to_owned(), value: excerpt(value) })
}

fn millis(value: &str) -> Option<Duration> {
    value.parse().ok().filter(|millis| *millis > 0).map(Duration::from_millis)
}

use std::borrow::Cow;

use crate::value::Value;

/// Key and value pairs that travel with a request or a response, in the order in which they were set.
///
/// Values are usually strings; Java peers may send any object. A key occurs once. Maps on the wire are small (five to
/// ten entries), so a linear search beats hashing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attachments(Vec<(Cow<'static, str>, Value)>);

impl Attachments {
    /// No attachments; does not allocate.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value under `key`, of any type.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// The value under `key` when it is a string (as Java's string look-up: other types answer `None`).
    pub fn get_str(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }

    /// Sets `key`, replacing an earlier value.
    pub fn set(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Value>) {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// Sets `key` unless it is present.
    pub fn set_if_absent(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Value>) {
        let key = key.into();
        if self.get(&key).is_none() {
            self.0.push((key, value.into()));
        }
    }

    /// Removes `key` and gives its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }

    /// All pairs, in the order in which they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(k, v)| (k.as_ref(), v))
    }

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<Cow<'static, str>>, V: Into<Value>> FromIterator<(K, V)> for Attachments {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut all = Self::new();
        for (key, value) in pairs {
            all.set(key, value);
        }
        all
    }
}

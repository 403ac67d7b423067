//! Implementations found by the name that the wire and the configuration use.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The extensions of one contract (`Extensions<dyn LoadBalance>`), by name.
///
/// A value owned by an application and passed down: nothing is global. Filled while the application is built, then
/// shared and only read. Each implementation is made at its first use and is one object per application.
pub struct Extensions<T: ?Sized> {
    kind: &'static str,
    entries: BTreeMap<String, Entry<T>>,
    wrappers: Vec<Wrapper<T>>,
}

type Factory<T> = Box<dyn Fn() -> Arc<T> + Send + Sync>;
type Wrapper<T> = Box<dyn Fn(Arc<T>) -> Arc<T> + Send + Sync>;

struct Entry<T: ?Sized> {
    order: i32,
    factory: Factory<T>,
    made: OnceLock<Arc<T>>,
}

/// No extension of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} `{name}`: known are {}", known.join(", "))]
pub struct UnknownExtension {
    /// What was looked for, e.g. `loadbalance`.
    pub kind: &'static str,
    /// The name asked for.
    pub name: String,
    /// The names that exist, in order.
    pub known: Vec<String>,
}

/// A name that is taken already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} `{name}` is registered already: choose another name or use `replace`")]
pub struct DuplicateExtension {
    /// What was registered, e.g. `loadbalance`.
    pub kind: &'static str,
    /// The name given twice.
    pub name: String,
}

impl<T: ?Sized> Extensions<T> {
    /// No extensions yet of `kind` (the word that errors use: `loadbalance`, `cluster`, `protocol`).
    pub const fn new(kind: &'static str) -> Self {
        Self { kind, entries: BTreeMap::new(), wrappers: Vec::new() }
    }

    /// Registers `factory` under `name` with activation order 0.
    pub fn register<F>(&mut self, name: &str, factory: F) -> Result<(), DuplicateExtension>
    where
        F: Fn() -> Arc<T> + Send + Sync + 'static,
    {
        self.register_at(name, 0, factory)
    }

    /// Registers `factory` under `name`; lower `order` comes first in [`Extensions::activated`].
    pub fn register_at<F>(&mut self, name: &str, order: i32, factory: F) -> Result<(), DuplicateExtension>
    where
        F: Fn() -> Arc<T> + Send + Sync + 'static,
    {
        if self.entries.contains_key(name) {
            return Err(DuplicateExtension { kind: self.kind, name: name.to_owned() });
        }
        self.replace(name, order, factory);
        Ok(())
    }

    /// Registers `factory` under `name`, in place of an earlier one of that name.
    pub fn replace<F>(&mut self, name: &str, order: i32, factory: F)
    where
        F: Fn() -> Arc<T> + Send + Sync + 'static,
    {
        let entry = Entry { order, factory: Box::new(factory), made: OnceLock::new() };
        self.entries.insert(name.to_owned(), entry);
    }

    /// Adds a wrapper that every extension of this kind is put in when it is made (the mock cluster wraps every
    /// cluster). Later wrappers are outside.
    pub fn wrap<F>(&mut self, wrapper: F)
    where
        F: Fn(Arc<T>) -> Arc<T> + Send + Sync + 'static,
    {
        self.wrappers.push(Box::new(wrapper));
    }

    /// The extension of that name.
    pub fn get(&self, name: &str) -> Result<Arc<T>, UnknownExtension> {
        match self.entries.get(name) {
            Some(entry) => Ok(self.made(entry)),
            None => Err(UnknownExtension {
                kind: self.kind,
                name: name.to_owned(),
                known: self.names().map(str::to_owned).collect(),
            }),
        }
    }

    /// Whether there is one of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// All extensions by activation order, then name.
    pub fn activated(&self) -> Vec<(String, Arc<T>)> {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_by_key(|(name, entry)| (entry.order, name.as_str()));
        all.into_iter().map(|(name, entry)| (name.clone(), self.made(entry))).collect()
    }

    fn made(&self, entry: &Entry<T>) -> Arc<T> {
        let make = || self.wrappers.iter().fold((entry.factory)(), |inner, wrap| wrap(inner));
        Arc::clone(entry.made.get_or_init(make))
    }
}

impl<T: ?Sized> fmt::Debug for Extensions<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extensions").field("kind", &self.kind).field("names", &self.entries.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    trait Greeter: Send + Sync {
        fn greet(&self) -> String;
    }

    struct Plain(&'static str);
    impl Greeter for Plain {
        fn greet(&self) -> String {
            self.0.to_owned()
        }
    }

    struct Loud(Arc<dyn Greeter>);
    impl Greeter for Loud {
        fn greet(&self) -> String {
            format!("{}!", self.0.greet())
        }
    }

    fn greeters() -> Extensions<dyn Greeter> {
        let mut greeters: Extensions<dyn Greeter> = Extensions::new("greeter");
        greeters.register_at("late", 5, || Arc::new(Plain("late"))).unwrap();
        greeters.register("early", || Arc::new(Plain("early"))).unwrap();
        greeters
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = greeters().get("nobody").map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "unknown greeter `nobody`: known are early, late");
    }

    #[test]
    fn a_name_cannot_be_taken_twice_by_accident() {
        let error = greeters().register("late", || Arc::new(Plain("other"))).unwrap_err();
        assert!(error.to_string().contains("`late` is registered already"));
    }

    #[test]
    fn one_object_is_made_per_name() {
        let greeters = greeters();
        assert!(Arc::ptr_eq(&greeters.get("late").unwrap(), &greeters.get("late").unwrap()));
    }

    #[test]
    fn wrappers_are_put_around_every_extension() {
        let mut greeters = greeters();
        greeters.wrap(|inner| Arc::new(Loud(inner)));
        let all: Vec<_> = greeters.activated().into_iter().map(|(name, one)| (name, one.greet())).collect();
        assert_eq!(all, [("early".to_owned(), "early!".to_owned()), ("late".to_owned(), "late!".to_owned())]);
    }
}

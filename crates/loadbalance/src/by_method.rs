use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

/// Values by method name, made at the first call of a method, found without lock and without allocation after it.
pub(crate) struct ByMethod<T> {
    known: ArcSwap<HashMap<Box<str>, Arc<T>, foldhash::fast::RandomState>>,
    making: Mutex<()>,
}

/// How many methods are told apart. Names come from callers; those beyond share one value.
const METHODS: usize = 1_024;

impl<T> ByMethod<T> {
    /// Calls `then` with the value of a method, made by `make` if there is none. Only one thread makes it; the others of the same first
    /// moment wait for it.
    pub(crate) fn with<R>(
        &self,
        method: &str,
        make: impl FnOnce(&str) -> Arc<T>,
        then: impl FnOnce(&T) -> R,
    ) -> R {
        let known = self.known.load();
        if let Some(value) = known.get(method) {
            return then(value);
        }
        drop(known);
        then(&self.make(method, make))
    }

    #[cold]
    fn make(&self, method: &str, make: impl FnOnce(&str) -> Arc<T>) -> Arc<T> {
        let _making = self.making.lock();
        let known = self.known.load();
        let method = if known.len() < METHODS { method } else { "" };
        if let Some(value) = known.get(method) {
            return Arc::clone(value);
        }
        let value = make(method);
        let mut more = HashMap::clone(&known);
        more.insert(method.into(), Arc::clone(&value));
        self.known.store(Arc::new(more));
        value
    }
}

impl<T> Default for ByMethod<T> {
    fn default() -> Self {
        Self { known: ArcSwap::default(), making: Mutex::new(()) }
    }
}

impl<T> std::fmt::Debug for ByMethod<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.known.load().keys()).finish()
    }
}

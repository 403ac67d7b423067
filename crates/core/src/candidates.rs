use std::any::{Any, TypeId};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::invoker::SharedInvoker;

/// What routing left over for some kinds of calls: the list that a balancer picks from, with whatever was prepared for it.
///
/// Made at a change of addresses or rules and shared by all calls until the next one. Never empty lists only: an empty list is legal
/// and means that no provider is left.
pub struct Candidates {
    invokers: Arc<[SharedInvoker]>,
    id: u64,
    prepared: [OnceLock<Prepared>; SLOTS],
    more: Mutex<Vec<Prepared>>,
}

/// Prepared values that are found without a lock; more than these are found under one.
const SLOTS: usize = 6;

struct Prepared {
    kind: TypeId,
    key: Box<str>,
    value: Arc<dyn Any + Send + Sync>,
}

impl Candidates {
    /// Candidates in this order. A list that is shared already, such as that of the directory, is not copied.
    pub fn new(invokers: impl Into<Arc<[SharedInvoker]>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            invokers: invokers.into(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            prepared: Default::default(),
            more: Mutex::new(Vec::new()),
        }
    }

    /// A number that no other candidates of this process have.
    #[inline]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The candidates, in the order of the directory.
    #[inline]
    pub fn invokers(&self) -> &[SharedInvoker] {
        &self.invokers
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.invokers.len()
    }

    /// Whether none is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.invokers.is_empty()
    }

    /// What was prepared for this list as a `T` under `key` (the method name where it depends on the method, else empty), made by
    /// `prepare` at the first call. Found again without lock and without allocation for the first few (kind, key) pairs.
    ///
    /// `prepare` may run more than once when first calls race; one result is kept.
    #[inline]
    pub fn prepared<T, F>(&self, key: &str, prepare: F) -> PreparedRef<'_, T>
    where
        T: Any + Send + Sync,
        F: FnOnce(&[SharedInvoker]) -> T,
    {
        let kind = TypeId::of::<T>();
        for slot in &self.prepared {
            match slot.get() {
                Some(found) if found.kind == kind && same_key(&found.key, key) => {
                    if let Some(value) = found.value.downcast_ref::<T>() {
                        return PreparedRef::Slot(value);
                    }
                }
                Some(_) => {}
                None => break,
            }
        }
        self.prepare_slow(kind, key, prepare)
    }

    #[cold]
    fn prepare_slow<T, F>(&self, kind: TypeId, key: &str, prepare: F) -> PreparedRef<'_, T>
    where
        T: Any + Send + Sync,
        F: FnOnce(&[SharedInvoker]) -> T,
    {
        if let Some(found) = self.find_more(kind, key) {
            return PreparedRef::Shared(found);
        }
        let value: Arc<T> = Arc::new(prepare(&self.invokers));
        let mut entry =
            Prepared { kind, key: key.into(), value: Arc::clone(&value) as Arc<dyn Any + Send + Sync> };
        for slot in &self.prepared {
            match slot.set(entry) {
                Ok(()) => return PreparedRef::Shared(value),
                Err(back) => entry = back,
            }
            // Another first call may have been here with the same: one result is kept, and takes one slot.
            if let Some(found) = slot.get().filter(|found| found.kind == kind && same_key(&found.key, key))
                && let Some(value) = found.value.downcast_ref::<T>()
            {
                return PreparedRef::Slot(value);
            }
        }
        let mut more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
        // Bounded: method names come from callers. Beyond it, what is not kept is made again.
        if let Some(found) = more.iter().find(|one| one.kind == kind && same_key(&one.key, key))
            && let Ok(value) = Arc::clone(&found.value).downcast::<T>()
        {
            return PreparedRef::Shared(value);
        }
        if more.len() < 1024 {
            more.push(entry);
        }
        PreparedRef::Shared(value)
    }

    fn find_more<T: Any + Send + Sync>(&self, kind: TypeId, key: &str) -> Option<Arc<T>> {
        let more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
        let found = more.iter().find(|one| one.kind == kind && same_key(&one.key, key))?;
        Arc::clone(&found.value).downcast::<T>().ok()
    }
}

/// Keys are mostly empty: then nothing is compared. (A call of the C library's comparison costs as much as the rest of a pick.)
fn same_key(a: &str, b: &str) -> bool {
    a.len() == b.len() && (a.is_empty() || a == b)
}

/// A prepared value, borrowed from its candidates or shared with them.
#[derive(Debug)]
pub enum PreparedRef<'a, T> {
    /// Found in a slot of the candidates.
    Slot(&'a T),
    /// Just made, or kept beyond the slots.
    Shared(Arc<T>),
}

impl<T> std::ops::Deref for PreparedRef<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Slot(value) => value,
            Self::Shared(value) => value,
        }
    }
}

impl fmt::Debug for Candidates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.invokers.iter().take(5).map(|one| one.url().address()).collect();
        f.debug_struct("Candidates")
            .field("id", &self.id)
            .field("len", &self.len())
            .field("first", &addresses)
            .finish()
    }
}

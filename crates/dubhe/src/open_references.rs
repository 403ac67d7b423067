use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::providers::Providers;

/// The references of an application that somebody still holds.
#[derive(Debug, Default)]
pub(crate) struct OpenReferences(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    ended: bool,
    next: u64,
    references: HashMap<u64, Providers>,
}

impl OpenReferences {
    /// Takes a reference in: it is closed when its lease is dropped, or with all others. `None` once all were closed.
    ///
    /// Must be called inside a runtime: closing runs there.
    pub(crate) fn hold(self: &Arc<Self>, providers: Providers) -> Option<Arc<Lease>> {
        let mut open = self.0.lock();
        if open.ended {
            return None;
        }
        let id = open.next;
        open.next += 1;
        open.references.insert(id, providers.clone());
        drop(open);
        Some(Arc::new(Lease { id, providers, of: Arc::downgrade(self), runtime: Handle::current() }))
    }

    /// Closes all, and takes none in from now on.
    pub(crate) async fn close(&self) {
        let references: Vec<_> = {
            let mut open = self.0.lock();
            open.ended = true;
            open.references.values().cloned().collect()
        };
        // All at once: each may wait for its registry.
        futures::future::join_all(references.iter().map(Providers::close)).await;
        self.0.lock().references.clear();
    }
}

/// What the holders of one reference share: its clients, and views of it.
#[derive(Debug)]
pub(crate) struct Lease {
    id: u64,
    pub(crate) providers: Providers,
    of: Weak<OpenReferences>,
    runtime: Handle,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(of) = self.of.upgrade() else { return };
        let Some(providers) = of.0.lock().references.remove(&self.id) else { return };
        self.runtime.spawn(async move { providers.close().await });
    }
}

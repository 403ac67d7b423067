use std::collections::HashMap;
use std::sync::{Arc, Weak};

use dubhe_core::directory::Directory;
use parking_lot::Mutex;
use tokio::runtime::Handle;

/// The references of an application that somebody still holds.
#[derive(Debug, Default)]
pub(crate) struct OpenReferences(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    ended: bool,
    next: u64,
    directories: HashMap<u64, Arc<dyn Directory>>,
}

impl OpenReferences {
    /// Takes a reference in: it is closed when its lease is dropped, or with all others. `None` once all were closed.
    ///
    /// Must be called inside a runtime: closing runs there.
    pub(crate) fn hold(self: &Arc<Self>, directory: Arc<dyn Directory>) -> Option<Arc<Lease>> {
        let mut open = self.0.lock();
        if open.ended {
            return None;
        }
        let id = open.next;
        open.next += 1;
        open.directories.insert(id, Arc::clone(&directory));
        drop(open);
        Some(Arc::new(Lease { id, directory, of: Arc::downgrade(self), runtime: Handle::current() }))
    }

    /// Closes all, and takes none in from now on.
    pub(crate) async fn close(&self) {
        let directories: Vec<_> = {
            let mut open = self.0.lock();
            open.ended = true;
            open.directories.values().cloned().collect()
        };
        for directory in &directories {
            directory.close().await;
        }
        self.0.lock().directories.clear();
    }
}

/// What the holders of one reference share: its clients, and views of it.
#[derive(Debug)]
pub(crate) struct Lease {
    id: u64,
    pub(crate) directory: Arc<dyn Directory>,
    of: Weak<OpenReferences>,
    runtime: Handle,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(of) = self.of.upgrade() else { return };
        let Some(directory) = of.0.lock().directories.remove(&self.id) else { return };
        self.runtime.spawn(async move { directory.close().await });
    }
}

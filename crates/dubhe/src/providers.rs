//! What is behind one reference.

use std::fmt;
use std::sync::Arc;

use dubhe_core::directory::Directory;
use dubhe_core::invoker::Invoker;
use dubhe_migration::{MigrationInvoker, SideKind, SideState};

use crate::reference::RegistryStatus;
use crate::registries::OpenRegistry;
use crate::sides::Sides;

/// The providers of one reference: a fixed list, or what discovery finds.
#[derive(Clone, Debug)]
pub(crate) enum Providers {
    /// The reference names their addresses.
    Fixed(Arc<dyn Directory>),
    /// In each registry of the reference, in the order of the configuration. `joined`: several registries, as what
    /// calls choose from.
    Discovered { registries: Arc<[InRegistry]>, joined: Option<Arc<dyn Directory>> },
}

/// The providers in one registry: in two models, and a migration from one to the other.
#[derive(Debug)]
pub(crate) struct InRegistry {
    pub(crate) registry: Arc<OpenRegistry>,
    pub(crate) migration: Arc<MigrationInvoker>,
    pub(crate) sides: Arc<Sides>,
}

impl Providers {
    /// The first registry that has somebody to call; while none has, the first one with a directory.
    pub(crate) fn in_use(&self) -> Option<&InRegistry> {
        let all = self.registries();
        let usable = all.iter().find(|one| one.migration.is_available());
        usable.or_else(|| all.iter().find(|one| one.directory().is_some())).or_else(|| all.first())
    }

    /// The directory of that one, or the fixed list.
    pub(crate) fn directory(&self) -> Option<Arc<dyn Directory>> {
        match self {
            Self::Fixed(directory) => Some(Arc::clone(directory)),
            Self::Discovered { .. } => self.in_use()?.directory(),
        }
    }

    /// Waits until each wanted side of each registry was made, or failed to be for the first time.
    pub(crate) async fn ready(&self) {
        futures::future::join_all(self.registries().iter().map(|one| one.migration.ready())).await;
    }

    /// Whether anybody has an address, usable or not.
    pub(crate) fn have_addresses(&self) -> bool {
        let has_addresses = |directory: &Arc<dyn Directory>| directory.status().borrow().total > 0;
        match self {
            Self::Fixed(directory) => has_addresses(directory),
            Self::Discovered { registries, .. } => {
                registries.iter().flat_map(InRegistry::sides).any(|(_, directory)| has_addresses(&directory))
            }
        }
    }

    /// Why nothing could be made of the sides that are wanted, if that is so of all registries.
    pub(crate) fn failure(&self) -> Option<String> {
        let failures: Option<Vec<String>> = self.registries().iter().map(InRegistry::failure).collect();
        failures.filter(|failures| !failures.is_empty()).map(|failures| failures.join("; "))
    }

    /// Where the addresses come from, for messages.
    pub(crate) fn origin(&self) -> String {
        match self {
            Self::Fixed(directory) => directory.origin().to_owned(),
            Self::Discovered { registries, .. } => {
                registries.iter().map(|one| one.registry.url.address()).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Ends the calls' ways out: a migration closes its directories after the calls on them.
    pub(crate) async fn close(&self) {
        match self {
            Self::Fixed(directory) => directory.close().await,
            Self::Discovered { registries, joined } => {
                futures::future::join_all(registries.iter().map(|one| one.migration.close())).await;
                if let Some(joined) = joined {
                    joined.close().await;
                }
            }
        }
    }

    /// All registries; none for a fixed list.
    pub(crate) fn registries(&self) -> &[InRegistry] {
        match self {
            Self::Fixed(_) => &[],
            Self::Discovered { registries, .. } => registries,
        }
    }
}

impl InRegistry {
    pub(crate) fn status(&self) -> RegistryStatus {
        RegistryStatus {
            registry: self.registry.url.address(),
            migration: self.migration.explain(),
            directory: self.directory(),
        }
    }

    /// The directory of the preferred model; where that has nobody to call and the other one has, of the other.
    fn directory(&self) -> Option<Arc<dyn Directory>> {
        let preferred = self.migration.state().borrow().preferred;
        match (self.sides.directory(preferred), self.sides.directory(preferred.other())) {
            (Some(first), Some(other)) if !first.is_available() && other.is_available() => Some(other),
            (first, other) => first.or(other),
        }
    }

    fn sides(&self) -> impl Iterator<Item = (SideKind, Arc<dyn Directory>)> {
        [SideKind::Interface, SideKind::Application]
            .into_iter()
            .filter_map(|kind| Some((kind, self.sides.directory(kind)?)))
    }

    fn failure(&self) -> Option<String> {
        if self.sides().next().is_some() {
            return None;
        }
        let state = self.migration.state().borrow().clone();
        [&state.interface, &state.application].into_iter().find_map(|side| match side {
            SideState::Failed(why) => Some(why.to_string()),
            _ => None,
        })
    }
}

/// What there is, for messages.
impl fmt::Display for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(directory) => write!(f, "the directory has {}", *directory.status().borrow()),
            Self::Discovered { registries, .. } => {
                for (at, one) in registries.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { "; " })?;
                    write!(f, "{}", one.registry.url.address())?;
                    for (kind, directory) in one.sides() {
                        write!(f, ", {kind}: {}", *directory.status().borrow())?;
                    }
                }
                Ok(())
            }
        }
    }
}

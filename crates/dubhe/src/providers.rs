//! What is behind one reference.

use std::fmt;
use std::sync::Arc;

use dubhe_core::directory::Directory;
use dubhe_migration::{MigrationExplanation, MigrationInvoker, SideKind, SideState};

use crate::sides::Sides;

/// The providers of one reference: a fixed list, or what discovery finds.
#[derive(Clone, Debug)]
pub(crate) enum Providers {
    /// The reference names their addresses.
    Fixed(Arc<dyn Directory>),
    /// In two models, and a migration from one to the other.
    Discovered { migration: Arc<MigrationInvoker>, sides: Arc<Sides> },
}

impl Providers {
    /// The directory that calls go to now; `None` while there is none.
    pub(crate) fn directory(&self) -> Option<Arc<dyn Directory>> {
        match self {
            Self::Fixed(directory) => Some(Arc::clone(directory)),
            Self::Discovered { migration, sides } => {
                let preferred = migration.state().borrow().preferred;
                sides.directory(preferred).or_else(|| sides.directory(preferred.other()))
            }
        }
    }

    /// Both models and where calls go; `None` for a fixed list.
    pub(crate) fn migration(&self) -> Option<MigrationExplanation> {
        match self {
            Self::Fixed(_) => None,
            Self::Discovered { migration, .. } => Some(migration.explain()),
        }
    }

    /// Whether anybody has an address, usable or not.
    pub(crate) fn have_addresses(&self) -> bool {
        self.directories().any(|directory| directory.status().borrow().total > 0)
    }

    /// Why nothing could be made of the sides that are wanted, if that is so.
    pub(crate) fn failure(&self) -> Option<String> {
        let Self::Discovered { migration, .. } = self else { return None };
        if self.directories().next().is_some() {
            return None;
        }
        let state = migration.state().borrow().clone();
        [&state.interface, &state.application].into_iter().find_map(|side| match side {
            SideState::Failed(why) => Some(why.to_string()),
            _ => None,
        })
    }

    /// Where the addresses come from, for messages.
    pub(crate) fn origin(&self) -> String {
        match self {
            Self::Fixed(directory) => directory.origin().to_owned(),
            Self::Discovered { sides, .. } => sides.origin(),
        }
    }

    fn directories(&self) -> impl Iterator<Item = Arc<dyn Directory>> {
        let all = match self {
            Self::Fixed(directory) => [Some(Arc::clone(directory)), None],
            Self::Discovered { sides, .. } => {
                [SideKind::Interface, SideKind::Application].map(|kind| sides.directory(kind))
            }
        };
        all.into_iter().flatten()
    }

    /// Ends the calls' ways out: the migration closes its directories after the calls on them.
    pub(crate) async fn close(&self) {
        match self {
            Self::Fixed(directory) => directory.close().await,
            Self::Discovered { migration, .. } => migration.close().await,
        }
    }
}

/// What there is, for messages.
impl fmt::Display for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(directory) => write!(f, "the directory has {}", *directory.status().borrow()),
            Self::Discovered { sides, .. } => {
                let has = |kind| match sides.directory(kind) {
                    Some(directory) => directory.status().borrow().to_string(),
                    None => "is not there".to_owned(),
                };
                let (interface, application) = (SideKind::Interface, SideKind::Application);
                write!(
                    f,
                    "{interface} directory: {}; {application} directory: {}",
                    has(interface),
                    has(application)
                )
            }
        }
    }
}

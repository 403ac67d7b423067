//! A session as it is right now; what the owner of the session publishes and everybody else follows.

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use zookeeper_client::Client;

use crate::parents::Parents;
use crate::settings::Settings;

/// The state of one session.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    /// No session; the reason of the last failure, if there was a try.
    Connecting(Option<Arc<str>>),
    /// Alive.
    Up(Arc<Up>),
    /// The connection is lost; the session may survive.
    Suspended,
    /// For good.
    Closed,
}

impl Link {
    pub(crate) fn up(&self) -> Option<&Arc<Up>> {
        match self {
            Self::Up(up) => Some(up),
            _ => None,
        }
    }

    /// Why nothing can be asked now.
    pub(crate) fn trouble(&self) -> Option<Arc<str>> {
        match self {
            Self::Connecting(reason) => reason.clone(),
            Self::Up(_) => None,
            Self::Suspended => Some("the connection is lost".into()),
            Self::Closed => Some("the session is closed".into()),
        }
    }
}

/// A live session, and with it everything that asking the store takes.
#[derive(Clone, Debug)]
pub(crate) struct Up {
    pub(crate) client: Client,
    /// Owner of our ephemeral nodes.
    pub(crate) session: i64,
    /// This and our last sessions; a node of any of them is or was ours.
    pub(crate) sessions: Arc<[i64]>,
    pub(crate) at: Round,
    pub(crate) settings: Arc<Settings>,
    pub(crate) parents: Arc<Parents>,
    /// Wakes the owner when the client behaves as a dead one does.
    pub(crate) suspicion: Arc<Notify>,
}

/// Which connection of which session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Round {
    /// Counts sessions, from 1.
    pub(crate) epoch: u64,
    /// Counts connections over all sessions.
    pub(crate) round: u64,
}

/// Waits until the session is alive; `None` when it never will be.
pub(crate) async fn up(link: &mut watch::Receiver<Link>) -> Option<Arc<Up>> {
    let link = link.wait_for(|link| matches!(link, Link::Up(_) | Link::Closed)).await.ok()?;
    link.up().cloned()
}

//! ZooKeeper back end of the registry layer: a [`Tree`] of nodes over real sessions.
//!
//! What callers want is kept outside of any connection, as *intents* (these nodes shall exist) and *observations* (these
//! paths are watched). Tasks drive the store towards them, over and over, whatever happens to the connection:
//!
//! ```text
//!  ensure / withdraw ──► ledger ──► reconciler ──┐                      ┌── session owner: connect, back off,
//!                        (intents)   per session ├──► link (the session │   reattach, probe, rebuild; one client
//!  children / data  ───► follower per path ──────┘    as it is now) ◄───┘   and one socket at a time
//! ```
//!
//! - The owner of a session does nothing else, so session events never wait behind reads or writes.
//! - Every (re)connection is a new *round*: own nodes are checked, paths are read again with a new watch in the same
//!   request. Every new session is a new *epoch*: own ephemeral nodes are made again.
//! - Any answer that is not definite means "outcome unknown" and is tried again; all requests are idempotent.
//! - Ephemeral nodes are spread over further sessions before one session owns more than [`SESSION_BUDGET`] bytes of paths.
//!
//! Not here: what the nodes mean (see `registry`), and sharing of one tree among its users (the caller keeps the `Arc`).
//!
//! Parameters of the address: see [`Settings`].

pub use dubhe_core::tree::{Tree, TreeFactory};

mod factory;
pub use factory::ZookeeperTreeFactory;

mod settings;
pub use settings::{DEFAULT_PACKET_LIMIT, Settings};

mod tree;
pub use tree::ZookeeperTree;

mod ledger;
pub use ledger::SESSION_BUDGET;

mod backoff;
mod failure;
mod link;
mod observe;
mod parents;
mod reconcile;
mod session;
mod store;

//! Layer 3, exchange: requests and responses over one connection.
//!
//! [`HeaderExchanger`] puts the 16-byte header of the dubbo protocol in front of message bodies and carries many
//! requests at once over one connection of any [`Transporter`](dubhe_core::transport::Transporter).
//!
//! On a client: every connection has its own table of pending requests, so that no peer can answer a call that was sent
//! to another one (the reference keeps one table per process). A lost connection fails all of them at once and is made
//! again, first at once, then after 0.5 s to 30 s; while it is down, requests fail at once.
//!
//! On a server: a task per request, at most `threads` at a time; beyond that the answer is status 100. Heartbeats are
//! answered by the reading task and need no permit.
//!
//! **Cancel**: dropping the future of a request removes its pending entry; a late answer to it is dropped.
//!
//! Not here: what is in a body (see `dubhe-protocol-dubbo`), sockets (see `dubhe-transport`).

pub use dubhe_core::exchange::*;

pub mod frame;

mod backoff;
mod client;
mod event;
mod exchanger;
mod line;
mod link;
mod pending;
mod server;
mod serving;
mod state;
mod text;

#[cfg(test)]
mod tests;

pub use exchanger::HeaderExchanger;

//! Layer 2, transport: connections that carry bytes.
//!
//! [`TcpTransporter`] opens and accepts TCP connections; [`MemoryTransporter`] does the same inside one process, for
//! embedding and for tests. Both run the same connection code: one task reads into a buffer and hands it to the
//! connection's [`Receiver`], one task writes what was queued, many messages per system call.
//!
//! Promises beyond those of the traits:
//! - The send queue is bounded by bytes ([`QUEUE_LIMIT`]): who sends faster than the peer reads, waits or is told.
//! - A close that flushes ends within [`FLUSH_LIMIT`], even when the peer does not read.
//! - A connect tries the addresses of a host in turns of families, the next one after 250 ms of silence.
//!
//! Not here: frames, requests, reconnecting (see `dubhe-exchange`), TLS.

pub use dubhe_core::transport::{
    Accept, Channel, Endpoint, Listener, Receiver, SendError, TransportError, Transporter,
};

mod connection;
mod memory;
mod queue;
mod tcp;

pub use connection::FLUSH_LIMIT;
pub use memory::MemoryTransporter;
pub use queue::QUEUE_LIMIT;
pub use tcp::TcpTransporter;

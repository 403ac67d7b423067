//! What tests need from the outside world: a private, real ZooKeeper that can be paused, killed and restarted,
//! three of them as an ensemble, and a TCP proxy that breaks on demand.
//!
//! Not here: doubles. Whoever needs a registry without ZooKeeper uses the in-memory registry.
//!
//! Everything listens on 127.0.0.1, on a port of its own, keeps its data in a temporary folder and ends with the
//! value that stands for it, also when the test process itself is killed. Nothing waits for time: a start ends when
//! the server answers. A machine without Java or ZooKeeper makes `start` fail with the command that installs them;
//! no test is skipped for it.
//!
//! ```no_run
//! # async fn test() -> anyhow::Result<()> {
//! use dubhe_testkit::{BreakableProxy, ZooKeeper};
//!
//! let zookeeper = ZooKeeper::start().await?;
//! let proxy = BreakableProxy::start(zookeeper.address()).await?;
//! // connect the code under test to `proxy.address()`, then:
//! proxy.cut().await;
//! zookeeper.kill();
//! zookeeper.restart().await?;
//! println!("{}", zookeeper.four_letter("dump").await?);
//! # Ok(())
//! # }
//! ```

mod zookeeper;
pub use zookeeper::{Builder, ZooKeeper};

mod ensemble;
pub use ensemble::Ensemble;

mod proxy;
pub use proxy::BreakableProxy;

mod installation;
pub use installation::Installation;

mod port;
pub use port::Port;

#[cfg(feature = "suites")]
pub mod suites;

mod four_letter;
mod process;

//! A private ZooKeeper for trying things out: `dubhe-zookeeper [ADDRESS]`.
//!
//! Listens on `ADDRESS` (`ip:port`; by default a free port of 127.0.0.1), prints `READY ADDRESS` when it serves, and
//! ends, with all its data, on SIGTERM, SIGINT, or the end of its standard input.
#![allow(clippy::print_stdout)] // its one line of output is what it is for

use std::net::SocketAddrV4;

use anyhow::{Context, Result};
use dubhe_testkit::ZooKeeper;
use tokio::io::{AsyncReadExt, stdin};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut builder = ZooKeeper::builder();
    if let Some(address) = std::env::args().nth(1) {
        let address: SocketAddrV4 = address
            .parse()
            .with_context(|| format!("{address:?} is not an address such as 127.0.0.1:2181"))?;
        builder = builder.listen(address);
    }
    let zookeeper = tokio::select! {
        zookeeper = builder.start() => zookeeper?,
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    println!("READY {}", zookeeper.address());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = end_of_input() => {}
    }
    drop(zookeeper);
    // A thread may still wait for standard input; it must not keep the process.
    std::process::exit(0)
}

async fn end_of_input() {
    let mut ignored = [0; 256];
    while stdin().read(&mut ignored).await.is_ok_and(|length| length > 0) {}
}

//! The main job in one process: three providers on loopback sockets, a registry, a consumer under steady load. A provider leaves
//! and returns, a routing rule is put and removed, and no call fails.
//!
//! `cargo demo`, or `cargo demo -- --registry zookeeper://127.0.0.1:2181`

mod board;
mod fleet;
mod options;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use crate::board::Board;
use crate::fleet::Fleet;
use crate::options::Options;

fn main() -> ExitCode {
    match options::Options::from_arguments(std::env::args().skip(1)).map(run) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) | Err(error) => {
            board::complain(&format!("demo: {error:#}"));
            ExitCode::from(2)
        }
    }
}

#[tokio::main]
async fn run(options: Options) -> Result<ExitCode> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "error".into()),
        )
        .init();
    let board = Board::new();
    board.say(&format!("registry: {}", options.registry));
    let mut fleet = Fleet::start(&options, &board).await?;
    let load = fleet.load(&board);
    let watch = board.watch();

    let scene = Duration::from_secs_f64(options.seconds / 5.0);
    board.scene("three providers, steady load");
    tokio::time::sleep(scene).await;
    board.scene("provider-2 leaves: unregisters, finishes its calls, closes");
    fleet.leave(1).await;
    tokio::time::sleep(scene).await;
    board.scene("provider-2 returns on a new port");
    fleet.enter(1).await?;
    tokio::time::sleep(scene).await;
    board.scene("a condition rule sends sayHello to provider-1 alone");
    fleet.put_rule(0).await?;
    tokio::time::sleep(scene).await;
    board.scene("the rule is removed");
    fleet.remove_rule().await?;
    tokio::time::sleep(scene).await;

    load.stop().await;
    watch.stop().await;
    fleet.stop().await;
    Ok(if board.summary() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! The main job in one process: providers on loopback sockets, a registry, a consumer under steady load, and no call that fails.
//!
//! `cargo demo`: a provider leaves and returns, a routing rule is put and removed.
//! `cargo demo -- --migrate`: the fleet moves from registration by interface to registration by application.
//! Both take `--registry zookeeper://127.0.0.1:2181`.

mod board;
mod changes;
mod fleet;
mod load;
mod migrate;
mod network;
mod options;
mod road;
mod table;
mod view;

use std::process::ExitCode;

use anyhow::Result;

use crate::options::{Options, Story};

fn main() -> ExitCode {
    match Options::from_arguments(std::env::args().skip(1)).map(run) {
        Ok(Ok(true)) => ExitCode::SUCCESS,
        Ok(Ok(false)) => ExitCode::FAILURE,
        Ok(Err(error)) | Err(error) => {
            board::complain(&format!("demo: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// `true` when all went as it should.
#[tokio::main]
async fn run(options: Options) -> Result<bool> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "error".into()),
        )
        .init();
    match options.story {
        Story::Changes => changes::run(&options).await,
        Story::Migration => migrate::run(&options).await,
    }
}

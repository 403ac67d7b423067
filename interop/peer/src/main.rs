//! The Rust side of the interop matrix: the like of each Java program of `interop/java`, with the same options, lines and cases.
//!
//! It is also a first user of the facade: whatever is awkward here is awkward for everyone.

mod api;
mod cases;
mod consumer;
mod end;
mod find;
mod fixtures;
mod generic;
mod load;
mod options;
mod out;
mod provider;
mod typed;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The Rust side of the interop matrix.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    program: Program,
}

#[derive(Debug, Subcommand)]
enum Program {
    /// Serves both services until SIGTERM or the end of standard input.
    Provider(provider::Options),
    /// Runs all cases and prints a line for each. Exit status 0: all held; 1: some did not; 2: could not start.
    Consumer(consumer::Options),
    /// Has a client for each group and makes a call when told to.
    Find(find::Options),
    /// Calls `who` at a steady rate and prints a line each second.
    Load(load::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter(tracing_subscriber::EnvFilter::new("info,dubhe=debug"))
        .init();
    let result = match Arguments::parse().program {
        Program::Provider(options) => provider::run(options).await,
        Program::Consumer(options) => consumer::run(options).await,
        Program::Find(options) => find::run(options).await,
        Program::Load(options) => load::run(options).await,
    };
    result.unwrap_or_else(|error| {
        out::log(&format!("{error:#}"));
        ExitCode::from(2)
    })
}

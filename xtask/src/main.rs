//! Tasks of the workspace. `cargo xtask help` lists them.
//!
//! `test` is the one that a newcomer runs; the others are its parts or stand beside it.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program that talks to people

mod bench_report;
mod interop;
mod layers;
mod licences;
mod outside;
mod test;
mod tools;
mod totals;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Tasks of the workspace", disable_version_flag = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run every test of the workspace, then check-layers, the demo and interop; ends with the totals.
    Test(test::Options),
    /// Run the matrix against real Apache Dubbo processes, both directions.
    Interop(interop::Options),
    /// Measure every question of the benches and print the table for the README.
    BenchReport(bench_report::Options),
    /// Build and run programs outside the workspace that depend on its crates by path.
    Outside,
    /// Check who depends on whom.
    CheckLayers,
    /// Check licences, sources and banned crates of all dependencies against deny.toml.
    CheckLicences,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Test(options) => test::run(&options),
        Task::Interop(options) => interop::run(&options),
        Task::BenchReport(options) => bench_report::run(&options),
        Task::Outside => outside::run(),
        Task::CheckLayers => layers::run(),
        Task::CheckLicences => licences::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

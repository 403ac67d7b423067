//! `bench-report`: the figures of the README, measured on this machine.

use anyhow::Result;
use clap::Args;

use crate::{tools, workspace};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure one question only: pick, change, memory, codec, call, push or scale.
    #[arg(long)]
    only: Option<String>,
}

/// Builds the report program with optimisation and runs it: a table on standard output, and `target/bench-report.json`.
pub(crate) fn run(options: &Options) -> Result<()> {
    tools::ensure(&tools::FOR_TESTS)?;
    let target = workspace::target().join("bench-report.json");
    let mut report = workspace::cargo();
    report
        .args(["run", "--quiet", "--release", "--package", "dubhe-benches", "--bin", "report", "--"])
        .arg(target);
    if let Some(question) = &options.only {
        report.args(["--only", question]);
    }
    workspace::run(&mut report)
}

//! `test`: everything that can fail, in one command.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use crate::totals::Totals;
use crate::{interop, layers, outside, tools, workspace};

/// How long each story of the demo runs: two seconds for each of its scenes, or one for each phase of the migration.
const DEMO_SECONDS: &str = "10";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Leave out the matrix against real Dubbo processes (it fetches them from Maven Central).
    #[arg(long)]
    no_interop: bool,
}

/// Runs all steps, whatever fails, and prints cargo's totals last. A step other than `cargo test` that fails counts as
/// one failed test, so that the closing lines never look better than the run.
pub(crate) fn run(options: &Options) -> Result<()> {
    let needed: &[_] = if options.no_interop { &tools::FOR_TESTS } else { &tools::FOR_INTEROP };
    tools::ensure(needed)?;

    let mut totals = Totals::default();
    let mut broken = Vec::new();
    let mut note = |step: &str, result: Result<()>| {
        if let Err(error) = result {
            eprintln!("error: {step}: {error:#}");
            broken.push(step.to_owned());
        }
    };

    headline("cargo test");
    note("cargo test", cargo_test(&mut totals));
    headline("check-layers");
    note("check-layers", layers::run());
    headline("programs outside the workspace");
    note("programs outside the workspace", outside::run());
    headline("demo");
    note("demo", demo());
    if !options.no_interop {
        headline("interop");
        note("interop", interop::run(&interop::Options::default()));
    }

    let steps = broken.iter().filter(|step| *step != "cargo test" || totals.failed == 0).count();
    totals.failed += steps as u64;
    println!();
    if !broken.is_empty() {
        println!("failed steps: {}", broken.join(", "));
    }
    println!("{}", totals.lines());
    if !broken.is_empty() {
        bail!("{} of the steps failed", broken.len());
    }
    Ok(())
}

fn headline(step: &str) {
    println!("\n==> {step}");
}

fn cargo_test(totals: &mut Totals) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    stream(&mut command, |line| totals.add(line))?;
    if totals.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

/// The demo, as it runs without a terminal: in memory, and on a ZooKeeper of its own.
fn demo() -> Result<()> {
    run_demos("memory://local")?;
    let mut build = workspace::cargo();
    build.args(["build", "--quiet", "--package", "dubhe-testkit", "--bin", "dubhe-zookeeper"]);
    workspace::run(&mut build)?;
    let program = workspace::target().join("debug/dubhe-zookeeper");
    // It ends when its input does, which is when `zookeeper` is dropped.
    let mut zookeeper = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut ready = String::new();
    BufReader::new(zookeeper.stdout.take().context("no output")?).read_line(&mut ready)?;
    let result = match ready.trim().strip_prefix("READY ") {
        Some(address) => run_demos(&format!("zookeeper://{address}")),
        None => Err(anyhow!("the private zookeeper did not start")),
    };
    drop(zookeeper.stdin.take());
    zookeeper.wait()?;
    result
}

/// Both stories: of providers and rules that come and go, and of a migration.
fn run_demos(registry: &str) -> Result<()> {
    run_demo(registry, &[])?;
    run_demo(registry, &["--migrate"])
}

fn run_demo(registry: &str, story: &[&str]) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["run", "--quiet", "--package", "dubhe-examples", "--bin", "demo"]);
    command.args(["--", "--registry", registry, "--seconds", DEMO_SECONDS]).args(story);
    let mut last = String::new();
    stream(&mut command, |line| last = line.to_owned())?;
    check_demo(&last)
}

/// The demo's last line must tell of calls, and of none that failed.
fn check_demo(last: &str) -> Result<()> {
    let numbers = last.strip_prefix("demo: ").and_then(|rest| rest.split_once(" calls, "));
    match numbers.map(|(calls, failed)| (calls.parse::<u64>(), failed)) {
        Some((Ok(1..), "0 failed")) => Ok(()),
        _ => bail!("the demo's last line is {last:?} instead of \"demo: CALLS calls, 0 failed\""),
    }
}

/// Runs a command to its end; passes its output on line by line and shows each line to `see`.
fn stream(command: &mut Command, mut see: impl FnMut(&str)) -> Result<()> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    // Tests may print anything, also what is not UTF-8.
    while lines.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        print!("{text}");
        see(text.trim_end());
        line.clear();
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{} ended with {status}", workspace::line(command));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_must_call_and_must_not_fail() {
        check_demo("demo: 1200 calls, 0 failed").unwrap();
        for line in ["demo: 0 calls, 0 failed", "demo: 1200 calls, 1 failed", "demo: calls", ""] {
            check_demo(line).unwrap_err();
        }
    }

    #[test]
    fn output_is_seen_line_by_line_and_a_bad_end_is_an_error() {
        let mut seen = Vec::new();
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; printf '\\377\\n'; printf two; exit 3"]);
        let error = stream(&mut command, |line| seen.push(line.to_owned())).unwrap_err();
        assert_eq!(seen, ["one", "\u{fffd}", "two"]);
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }
}

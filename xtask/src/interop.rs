//! `interop`: the matrix against real Apache Dubbo processes.
//!
//! Java peers register an address of the machine and take 127.x for "not configured". So ZooKeeper, the Java
//! programs and the Rust ones run together in a network namespace of the run, with an address that is reserved for
//! documentation ([`network`]); the rest of the machine does not see them, and they end with the run.
//!
//! # The programs
//! Each Java program of `interop/java` has its like in `dubhe-interop-peer`, with the same options (`--key value`) and
//! the same lines, so that [`scenario`] drives both alike:
//!
//! | Java class | `dubhe-interop-peer` | prints |
//! | --- | --- | --- |
//! | `Provider` | `provider --registry URL --port N --name NAME [--host IP]` | `READY provider NAME PID PORT`, at the end `STOPPED` |
//! | `Consumer` | `consumer --registry URL` | `READY consumer VERSION PID`, then `{"case":"typed/string","ok":true,"detail":""}` for each case; exit status 0 if all held, 1 if not, 2 if it could not start |
//! | `LoadConsumer` | `load --registry URL [--rate N] [--retries N] [--timeout MS]` | `READY load VERSION PID`, each second `{"second":3,"ok":50,"failed":0,"by":{"A#12":50},"errors":{}}`, at the end one with `"done":true` |
//! | `Finder` | `find --registry URL --groups A,B [--migration STEP]` | `READY find VERSION PID`, then `{"ok":true,"detail":"A#12"}` for each command |
//! | `Rules` | none: rules are put by the Java client | `READY rules VERSION PID`, `DONE ...` or `FAILED ...` for each command |
//!
//! - `URL` is `zookeeper://192.0.2.10:2181`.
//! - `provider` serves `dev.dubhe.interop.api.EchoService` (no group, no version) and `GreetService` (group `g1`,
//!   version `1.0.0`) as their Java docs say; `who()` answers `NAME#PID`. It stops gracefully on SIGTERM and at the
//!   end of standard input.
//! - `consumer` uses retries 0, and time-outs of 3 s and, for `sleep`, 500 ms. Its case names are those of the Java consumer.
//! - `load` calls `EchoService.who` until standard input ends or SIGTERM comes.
//! - `find` has a client of both services for each group, and calls when a command comes from standard input.
//! - Standard output carries these lines and nothing else; logs go to standard error.
//!
//! # The parts
//! - `cases` ([`scenario`]): what the wire carries, and two providers under load, all at interface level; and a Dubbo 2.7 consumer
//!   with a provider that registers both ways.
//! - `discovery` ([`discovery`], [`migration`]): who is found by which model, for every register mode and metadata type; and a
//!   consumer that is moved between the models under load. Without 2.7, which knows no instances.
//!
//! # What makes a run good
//! Every case of every peer holds. A case that could not run, or that one peer of a direction ran and another did not,
//! is a failure.

mod build;
mod discovery;
mod finder;
mod load;
mod migration;
mod network;
mod peer;
mod program;
mod report;
mod rules;
mod scenario;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::{tools, workspace};
use peer::{Peer, Version};
use report::Report;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Options {
    /// A Dubbo release of the matrix; may be given several times. All of them by default.
    #[arg(long = "peer", value_enum)]
    peers: Vec<Version>,

    /// Who calls whom; may be given several times. Rust to Java and Java to Rust by default.
    #[arg(long = "direction", value_enum)]
    directions: Vec<Direction>,

    /// What is tried; may be given several times. All by default.
    #[arg(long = "part", value_enum)]
    parts: Vec<Part>,

    /// The second half of a run, inside its namespace.
    #[arg(long, hide = true)]
    inside: bool,
}

/// What is tried between two peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The wire, and providers that come and go, at interface level.
    Cases,
    /// Both models of discovery, and the way from one to the other.
    Discovery,
}

/// Who calls whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Direction {
    RustToJava,
    JavaToRust,
    /// Shows that the matrix itself works: whatever fails here is not Dubhe's.
    JavaToJava,
}

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Self::RustToJava => "rust-to-java",
            Self::JavaToRust => "java-to-rust",
            Self::JavaToJava => "java-to-java",
        }
    }

    /// Consumer and provider.
    fn sides(self, version: Version) -> (Peer, Peer) {
        match self {
            Self::RustToJava => (Peer::Rust, Peer::Java(version)),
            Self::JavaToRust => (Peer::Java(version), Peer::Rust),
            Self::JavaToJava => (Peer::Java(version), Peer::Java(version)),
        }
    }
}

/// Runs the matrix.
///
/// # Errors
/// When a case failed, or when something that the matrix needs cannot be had.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.inside {
        return run_inside(options);
    }
    tools::ensure(&tools::FOR_INTEROP)?;
    let folder = folder();
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(folder.join("logs"))?;
    for version in options.versions() {
        build::java(version)?;
    }
    build::rust(options.directions().iter().any(|direction| *direction != Direction::JavaToJava))?;
    network::enter(&options.arguments())
}

impl Options {
    fn versions(&self) -> Vec<Version> {
        if self.peers.is_empty() { Version::value_variants().to_vec() } else { self.peers.clone() }
    }

    fn directions(&self) -> Vec<Direction> {
        match self.directions.as_slice() {
            [] => vec![Direction::RustToJava, Direction::JavaToRust],
            some => some.to_vec(),
        }
    }

    fn has(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// The command line of the second half.
    fn arguments(&self) -> Vec<String> {
        let mut words = vec!["interop".to_owned(), "--inside".to_owned()];
        for version in &self.peers {
            words.extend(["--peer".to_owned(), version.number().to_owned()]);
        }
        for direction in &self.directions {
            words.extend(["--direction".to_owned(), direction.name().to_owned()]);
        }
        for part in self.parts.iter().filter_map(ValueEnum::to_possible_value) {
            words.extend(["--part".to_owned(), part.get_name().to_owned()]);
        }
        words
    }
}

fn run_inside(options: &Options) -> Result<()> {
    network::end_with_input();
    network::set_up(&folder())?;
    let mut report = Report::default();
    for direction in options.directions() {
        for version in options.versions() {
            if options.has(Part::Cases) {
                println!("interop: {} {}", direction.name(), version.number());
                cases(direction, version, &mut report);
            }
            if options.has(Part::Discovery) && version.has_instances() {
                println!("interop: {} {}, both models of discovery", direction.name(), version.number());
                models(direction, version, &mut report);
            }
        }
    }
    if options.has(Part::Cases) && options.directions().contains(&Direction::RustToJava) {
        println!("interop: the examples");
        let outcome = scenario::examples().map_err(|error| format!("{error:#}"));
        report.add("dubhe", "rust-to-rust", "interface", "examples", outcome);
    }
    report.complete();
    println!("\n{}", report.table());
    let file = workspace::target().join("interop-report.json");
    report.write(&file)?;
    println!("interop: {}, see {}", report.summary(), file.display());
    match report.failures() {
        0 => Ok(()),
        count => {
            bail!(
                "{count} cases of the interop matrix failed; logs are in {}",
                folder().join("logs").display()
            )
        }
    }
}

fn cases(direction: Direction, version: Version, report: &mut Report) {
    let (consumer, provider) = direction.sides(version);
    scenario::run(&consumer, &provider, version, &mut |case, outcome| {
        report.add(version.number(), direction.name(), "interface", case, outcome);
    });
    if direction == Direction::JavaToRust && !version.has_instances() {
        scenario::run_mixed(&consumer, &provider, version, &mut |case, outcome| {
            report.add(version.number(), direction.name(), "all", case, outcome);
        });
    }
}

fn models(direction: Direction, version: Version, report: &mut Report) {
    let (consumer, provider) = direction.sides(version);
    discovery::run(consumer, provider, version, &mut |mode, case, outcome| {
        report.add(version.number(), direction.name(), mode, case, outcome);
    });
    migration::run(consumer, provider, version, &mut |case, outcome| {
        report.add(version.number(), direction.name(), "all", case, outcome);
    });
}

/// The folder of a run: logs, homes, and the files of its network.
fn folder() -> PathBuf {
    workspace::target().join("interop")
}

//! Measures every question once and writes the report: a table for people, and a JSON list.
//!
//! `cargo xtask bench-report`; the JSON is `target/bench-report.json`. With `--only pick` (or another question) just that.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

mod discovery;
mod table;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use dubhe_benches::call::{Floor as CallFloor, Pair};
use dubhe_benches::change::Changes;
use dubhe_benches::codec::{Codec, order};
use dubhe_benches::measure::{allocations, median, median_ns, percentile};
use dubhe_benches::pick::{Floor, Picks, RULE};
use dubhe_benches::{memory, push};

use crate::table::{Report, Row};

/// Batches, and picks in each, of one median.
const PICK_SAMPLES: usize = 200;
const PICK_BATCH: usize = 2_000;
/// How long each rate is measured.
const CALL_TIME: Duration = Duration::from_secs(3);
/// Rounds of one changed address.
const CHANGE_ROUNDS: usize = 31;
/// Providers that join one after the other.
const PUSH_ROUNDS: usize = 200;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().map_or_else(|| PathBuf::from("target/bench-report.json"), PathBuf::from);
    if let Some(model) = discovery::model(&target) {
        return discovery::measure(model);
    }
    let only = arguments.next().filter(|word| word == "--only").and_then(|_| arguments.next());
    let asked = |question: &str| only.as_deref().is_none_or(|only| only == question);
    let runtime = tokio::runtime::Runtime::new()?;
    let mut report = Report::default();
    if asked("pick") {
        let _entered = runtime.enter();
        picks(&mut report)?;
    }
    if asked("change") {
        runtime.block_on(changes(&mut report))?;
    }
    if asked("memory") {
        runtime.block_on(addresses(&mut report))?;
    }
    if asked("codec") {
        codecs(&mut report)?;
    }
    if asked("call") {
        runtime.block_on(calls(&mut report))?;
    }
    if asked("push") {
        runtime.block_on(pushes(&mut report))?;
    }
    if asked("scale") {
        discovery::scale(&mut report)?;
    }
    println!("{report}");
    report.write(&target)?;
    println!("written to {}", target.display());
    Ok(())
}

fn picks(report: &mut Report) -> Result<()> {
    for n in [10, 100, 1_000, 10_000] {
        let floor = Floor::new(n);
        let floor_ns = median_ns(PICK_SAMPLES, PICK_BATCH, || drop(std::hint::black_box(floor.pick())));
        report.add(Row { median_ns: Some(floor_ns), ..Row::new("pick", "floor", n) });
        for (case, rule) in [("none", None), ("condition", Some(RULE))] {
            for balancer in ["random", "roundrobin"] {
                let picks = Picks::new(n, balancer, rule)?;
                drop(picks.pick());
                let ns = median_ns(PICK_SAMPLES, PICK_BATCH, || drop(std::hint::black_box(picks.pick())));
                let (count, bytes) = allocations(|| {
                    for _ in 0..1_000 {
                        drop(std::hint::black_box(picks.pick()));
                    }
                });
                let case = if balancer == "random" { case.to_owned() } else { format!("{case}, {balancer}") };
                report.add(Row {
                    median_ns: Some(ns),
                    allocations: Some(count as f64 / 1_000.0),
                    bytes: Some(bytes as f64 / 1_000.0),
                    against: Some("atomic snapshot + alias pick"),
                    ratio: Some(ns / floor_ns),
                    ..Row::new("pick", case, n)
                });
            }
        }
    }
    Ok(())
}

async fn changes(report: &mut Report) -> Result<()> {
    for n in [1_000, 10_000, 50_000] {
        let mut changes = Changes::new(n).await?;
        let start = Instant::now();
        changes.first().await;
        let first = start.elapsed();
        report.add(Row { median_ns: Some(first.as_nanos() as f64), ..Row::new("change", "first list", n) });
        let mut times = Vec::with_capacity(CHANGE_ROUNDS);
        for _ in 0..CHANGE_ROUNDS {
            let start = Instant::now();
            changes.one_changed().await;
            times.push(start.elapsed());
        }
        let one = median(&mut times);
        report.add(Row {
            median_ns: Some(one.as_nanos() as f64),
            ..Row::new("change", "one of them changed", n)
        });
    }
    Ok(())
}

async fn addresses(report: &mut Report) -> Result<()> {
    let n = 100_000;
    let bytes = memory::bytes_per_address(n).await?;
    report.add(Row { bytes: Some(bytes), ..Row::new("memory", "interface-level, resident per address", n) });
    Ok(())
}

fn codecs(report: &mut Report) -> Result<()> {
    let mut text = Codec::new("x".repeat(1024))?;
    let bytes = text.bytes();
    let encode = median_ns(100, 2_000, || {
        std::hint::black_box(text.encode());
    });
    codec_row(report, "encode, string of 1 KiB", bytes, encode);
    let decode = median_ns(100, 2_000, || drop(std::hint::black_box(text.decode())));
    codec_row(report, "decode, string of 1 KiB", bytes, decode);
    let mut order = Codec::new(order(20))?;
    let bytes = order.bytes();
    let encode = median_ns(100, 500, || {
        std::hint::black_box(order.encode());
    });
    codec_row(report, "encode, order of 20 items", bytes, encode);
    let decode = median_ns(100, 500, || drop(std::hint::black_box(order.decode())));
    codec_row(report, "decode, order of 20 items", bytes, decode);
    Ok(())
}

/// `per_second` is bytes here.
fn codec_row(report: &mut Report, case: &str, bytes: usize, ns: f64) {
    report.add(Row {
        median_ns: Some(ns),
        bytes: Some(bytes as f64),
        per_second: Some(bytes as f64 * 1e9 / ns),
        ..Row::new("codec", case, 1)
    });
}

async fn calls(report: &mut Report) -> Result<()> {
    let floor = CallFloor::start().await?;
    let pair = Pair::start().await?;
    floor.run(16, Duration::from_millis(500)).await?;
    pair.run(16, Duration::from_millis(500)).await?;
    for callers in [1, 16, 64, 256] {
        // Taken in turns, so that other load on the machine meets both.
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            floors.push(floor.run(callers, CALL_TIME / 3).await?);
            ours.push(pair.run(callers, CALL_TIME / 3).await?);
        }
        let best = |rates: &mut Vec<dubhe_benches::call::Rate>| {
            rates.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
            rates[rates.len() / 2]
        };
        let (floor_rate, rate) = (best(&mut floors), best(&mut ours));
        report.add(Row {
            median_ns: Some(floor_rate.p50.as_nanos() as f64),
            per_second: Some(floor_rate.per_second),
            ..Row::new("call", "floor", callers)
        });
        report.add(Row {
            median_ns: Some(rate.p50.as_nanos() as f64),
            per_second: Some(rate.per_second),
            against: Some("bare tokio echo, task per call"),
            ratio: Some(rate.per_second / floor_rate.per_second),
            ..Row::new("call", "dubhe", callers)
        });
        report.add(Row {
            median_ns: Some(rate.p99.as_nanos() as f64),
            ..Row::new("call", "dubhe, p99", callers)
        });
    }
    pair.stop().await;
    Ok(())
}

async fn pushes(report: &mut Report) -> Result<()> {
    let mut times = push::join_times(PUSH_ROUNDS).await?;
    let (p50, p99) = (median(&mut times), percentile(&mut times, 99));
    report.add(Row {
        median_ns: Some(p50.as_nanos() as f64),
        ..Row::new("push", "registered to routable, p50", 1)
    });
    report.add(Row {
        median_ns: Some(p99.as_nanos() as f64),
        ..Row::new("push", "registered to routable, p99", 1)
    });
    Ok(())
}

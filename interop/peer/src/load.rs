//! Calls `who()` at a steady rate.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::api::{Echo, EchoClient, Greet, GreetClient};
use crate::consumer::References;
use crate::options::Application;
use crate::{end, out};

/// How many different errors are told apart in one line.
const ERRORS: usize = 5;

/// How long calls that are under way at the end may take.
const LAST_CALLS: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    application: Application,
    #[command(flatten)]
    references: References,
    /// `echo` or `greet`.
    #[arg(long, default_value = "echo")]
    service: String,
    /// Calls a second.
    #[arg(long, default_value_t = 50)]
    rate: u32,
    /// Seconds; without end by default.
    #[arg(long)]
    duration: Option<u64>,
}

pub(crate) async fn run(options: Options) -> Result<ExitCode> {
    let mut end = end::listen(options.application.watches_input())?;
    let dubhe = options.application.builder("demo-consumer").start().await?;
    let client = match options.service.as_str() {
        "greet" => Client::Greet(options.references.greet(&dubhe).await?),
        _ => Client::Echo(options.references.echo(&dubhe).await?),
    };
    out::line(&format!("READY load {} {}", env!("CARGO_PKG_VERSION"), std::process::id()));

    let (second, total) = (Arc::<Mutex<Tally>>::default(), Arc::<Mutex<Tally>>::default());
    let mut calls = JoinSet::new();
    let mut call = interval(Duration::from_secs(1) / options.rate.max(1));
    call.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut passed = 0;
    let start = Instant::now();
    while options.duration.is_none_or(|seconds| passed < seconds) {
        tokio::select! {
            () = end.asked() => break,
            _ = call.tick() => {
                let (client, second, total) = (client.clone(), Arc::clone(&second), Arc::clone(&total));
                calls.spawn(async move {
                    let answer = client.who().await.map_err(|error| error.to_string());
                    add(&second, &answer);
                    add(&total, &answer);
                });
            }
            Some(_) = calls.join_next() => {}
        }
        if start.elapsed() >= Duration::from_secs(passed + 1) {
            passed += 1;
            let tally = std::mem::take(&mut *second.lock().unwrap_or_else(PoisonError::into_inner));
            out::line(&tally.line("second", passed.into()));
        }
    }
    let _ = timeout(LAST_CALLS, async { while calls.join_next().await.is_some() {} }).await;
    let tally = std::mem::take(&mut *total.lock().unwrap_or_else(PoisonError::into_inner));
    out::line(&tally.line("done", true.into()));
    dubhe.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

#[derive(Clone, Debug)]
enum Client {
    Echo(EchoClient),
    Greet(GreetClient),
}

impl Client {
    async fn who(&self) -> dubhe::Result<String> {
        match self {
            Self::Echo(client) => client.who().await,
            Self::Greet(client) => client.who().await,
        }
    }
}

#[derive(Debug, Default)]
struct Tally {
    ok: u64,
    failed: u64,
    by: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
}

fn add(tally: &Mutex<Tally>, answer: &Result<String, String>) {
    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    match answer {
        Ok(provider) => {
            tally.ok += 1;
            *tally.by.entry(provider.clone()).or_default() += 1;
        }
        Err(error) => {
            tally.failed += 1;
            let error = shortened(error);
            if tally.errors.len() < ERRORS || tally.errors.contains_key(&error) {
                *tally.errors.entry(error).or_default() += 1;
            }
        }
    }
}

/// Start and end of a long error: what failed, and why. A Java stack trace comes as further lines, which are left out.
fn shortened(error: &str) -> String {
    let error = error.lines().next().unwrap_or_default();
    let length = error.chars().count();
    if length <= 300 {
        return error.to_owned();
    }
    let start: String = error.chars().take(100).collect();
    let end: String = error.chars().skip(length - 200).collect();
    format!("{start}...{end}")
}

impl Tally {
    fn line(&self, key: &str, value: serde_json::Value) -> String {
        let mut line = json!({"ok": self.ok, "failed": self.failed, "by": self.by, "errors": self.errors});
        line[key] = value;
        line.to_string()
    }
}

//! Has a client of both services for each group, with nothing set that a provider may say, and makes a call when told to.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use dubhe::Connected;
use serde_json::json;

use crate::api::{Echo, EchoClient, Greet, GreetClient};
use crate::cases::{failure, same};
use crate::consumer::References;
use crate::options::Application;
use crate::{end, fixtures, out};

/// What the provider sets for `sleep` is 300 ms, and the default is 1 s.
const PROVIDER_TIMEOUT: std::ops::Range<Duration> = Duration::from_millis(280)..Duration::from_millis(900);

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    application: Application,
    #[command(flatten)]
    references: References,
    /// Comma list of groups.
    #[arg(long, value_delimiter = ',', required = true)]
    groups: Vec<String>,
}

pub(crate) async fn run(options: Options) -> Result<ExitCode> {
    let mut end = end::listen(options.application.watches_input())?;
    let dubhe = options.application.builder("demo-consumer").start().await?;
    let mut clients = BTreeMap::new();
    for group in &options.groups {
        let echo = options.references.plain_echo(&dubhe, group).await?;
        let greet = options.references.plain_greet(&dubhe, group).await?;
        clients.insert(group.as_str(), Clients { echo, greet });
    }
    out::line(&format!("READY find {} {}", env!("CARGO_PKG_VERSION"), std::process::id()));
    while let Some(line) = end.line().await {
        let (command, group) = line.split_once('\t').context("a command wants a group")?;
        let clients = clients.get(group).with_context(|| format!("no such group: {group}"))?;
        let (ok, detail) = match clients.execute(command).await {
            Ok(detail) => (true, detail),
            Err(error) => (false, format!("{error:#}")),
        };
        out::line(&json!({"ok": ok, "detail": detail}).to_string());
    }
    dubhe.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

/// The clients of one group.
struct Clients {
    echo: Connected<EchoClient>,
    greet: GreetClient,
}

impl Clients {
    async fn execute(&self, command: &str) -> Result<String> {
        match command {
            "echo" => Ok(self.echo.client.who().await?),
            "greet" => Ok(self.greet.who().await?),
            "bean" => {
                let user = Some(fixtures::user("Ada"));
                same(&user, &self.echo.client.echo_user(user.clone()).await?)
            }
            "timeout" => self.timeout().await,
            "explain" => {
                let migration = self.echo.migration().context("there is no migration")?;
                Ok(migration.to_string())
            }
            _ => bail!("no such command: {command}"),
        }
    }

    async fn timeout(&self) -> Result<String> {
        let start = Instant::now();
        let error = failure(self.echo.client.sleep(1_500)).await?;
        let took = start.elapsed();
        ensure!(error.is_timeout(), "expected a timeout, got {error}");
        ensure!(PROVIDER_TIMEOUT.contains(&took), "after {took:?}");
        Ok(format!("after {} ms", took.as_millis()))
    }
}

//! Calls every method of the services with fixed inputs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use dubhe::{Connected, Dubhe, GenericService};

use crate::api::{EchoClient, GreetClient};
use crate::cases::Cases;
use crate::options::{Application, Identity};
use crate::{generic, out, typed};

/// Time limit of method `sleep`, milliseconds; all others have `--timeout`.
pub(crate) const SLEEP_TIMEOUT: u64 = 500;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) application: Application,
    #[command(flatten)]
    pub(crate) references: References,
    /// Comma list of `echo`, `greet`.
    #[arg(long, default_value = "echo,greet")]
    services: String,
    /// Comma list of `typed`, `generic`.
    #[arg(long, default_value = "typed,generic")]
    kinds: String,
    /// Only cases whose name starts so.
    #[arg(long, default_value = "")]
    only: String,
}

/// How clients are made.
#[derive(Debug, Args)]
pub(crate) struct References {
    #[command(flatten)]
    identity: Identity,
    /// Addresses to call directly.
    #[arg(long)]
    url: Option<String>,
    /// Milliseconds.
    #[arg(long, default_value_t = 3_000)]
    timeout: u64,
    #[arg(long, default_value_t = 0)]
    retries: u32,
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    check: bool,
    #[arg(long)]
    loadbalance: Option<String>,
    #[arg(long)]
    cluster: Option<String>,
}

pub(crate) async fn run(options: Options) -> Result<ExitCode> {
    let mut cases = Cases::new(options.only.clone());
    let dubhe = match options.application.builder("demo-consumer").start().await {
        Ok(dubhe) => dubhe,
        Err(error) => {
            cases.report("start", false, &error.to_string());
            return Ok(ExitCode::from(2));
        }
    };
    out::line(&format!("READY consumer {} {}", env!("CARGO_PKG_VERSION"), std::process::id()));

    let asked = |list: &str, name: &str| list.split(',').any(|one| one == name);
    let (echo, greet) = (asked(&options.services, "echo"), asked(&options.services, "greet"));
    let references = &options.references;
    if asked(&options.kinds, "typed") {
        if echo {
            match references.echo(&dubhe).await {
                Ok(client) => typed::run(&mut cases, &client).await,
                Err(error) => cases.report("typed/refer", false, &error.to_string()),
            }
        }
        if greet {
            match references.greet(&dubhe).await {
                Ok(client) => typed::greet(&mut cases, &client).await,
                Err(error) => cases.report("typed/refer-greet", false, &error.to_string()),
            }
        }
        if greet && references.url.is_some() {
            match references.wrong_group(&dubhe).await {
                Ok(client) => typed::wrong_group(&mut cases, &client).await,
                Err(error) => cases.report("typed/refer-wrong-group", false, &error.to_string()),
            }
        }
    }
    if asked(&options.kinds, "generic") {
        if echo {
            match references.generic_echo(&dubhe).await {
                Ok(client) => generic::run(&mut cases, &client).await,
                Err(error) => cases.report("generic/refer", false, &error.to_string()),
            }
        }
        if greet {
            match references.generic_greet(&dubhe).await {
                Ok(client) => generic::greet(&mut cases, &client).await,
                Err(error) => cases.report("generic/refer-greet", false, &error.to_string()),
            }
        }
    }
    dubhe.shutdown().await;
    Ok(if cases.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Typed and generic references have the same settings, but are of different types.
macro_rules! configured {
    ($self:ident, $reference:expr, $group:expr, $version:expr) => {{
        let mut reference = $reference
            .timeout(Duration::from_millis($self.timeout))
            .retries($self.retries)
            .check($self.check);
        if let Some(group) = $group {
            reference = reference.group(group);
        }
        if let Some(version) = $version {
            reference = reference.version(version);
        }
        if let Some(name) = &$self.loadbalance {
            reference = reference.load_balance(name);
        }
        if let Some(name) = &$self.cluster {
            reference = reference.cluster(name);
        }
        if let Some(url) = &$self.url {
            reference = reference.url(url);
        }
        for (key, value) in &$self.identity.params {
            reference = reference.param(key, value);
        }
        reference
    }};
}

impl References {
    pub(crate) async fn echo(&self, dubhe: &Dubhe) -> dubhe::Result<EchoClient> {
        let Identity { group, version, .. } = &self.identity;
        configured!(self, dubhe.reference::<EchoClient>(), group, version)
            .param("sleep.timeout", SLEEP_TIMEOUT)
            .get()
            .await
    }

    pub(crate) async fn greet(&self, dubhe: &Dubhe) -> dubhe::Result<GreetClient> {
        let Identity { greet_group, greet_version, .. } = &self.identity;
        configured!(self, dubhe.reference::<GreetClient>(), Some(greet_group), Some(greet_version))
            .get()
            .await
    }

    /// A client of the group whose settings are the provider's.
    pub(crate) async fn plain_echo(
        &self,
        dubhe: &Dubhe,
        group: &str,
    ) -> dubhe::Result<Connected<EchoClient>> {
        let mut reference = dubhe.reference::<EchoClient>().retries(0).check(false).group(group);
        if let Some(version) = &self.identity.version {
            reference = reference.version(version);
        }
        reference.connect().await
    }

    /// A client of the group whose settings are the provider's.
    pub(crate) async fn plain_greet(&self, dubhe: &Dubhe, group: &str) -> dubhe::Result<GreetClient> {
        let reference = dubhe.reference::<GreetClient>().retries(0).check(false).group(group);
        reference.version(&self.identity.greet_version).get().await
    }

    /// A client of the group `nobody`, which no provider has; only useful with `--url`.
    async fn wrong_group(&self, dubhe: &Dubhe) -> dubhe::Result<GreetClient> {
        configured!(self, dubhe.reference::<GreetClient>(), Some("nobody"), Some("1.0.0")).get().await
    }

    async fn generic_echo(&self, dubhe: &Dubhe) -> dubhe::Result<GenericService> {
        let Identity { group, version, .. } = &self.identity;
        configured!(self, dubhe.generic("dev.dubhe.interop.api.EchoService"), group, version)
            .param("sleep.timeout", SLEEP_TIMEOUT)
            .param("record.return", false)
            .get()
            .await
    }

    async fn generic_greet(&self, dubhe: &Dubhe) -> dubhe::Result<GenericService> {
        let Identity { greet_group, greet_version, .. } = &self.identity;
        let reference = dubhe.generic("dev.dubhe.interop.api.GreetService");
        configured!(self, reference, Some(greet_group), Some(greet_version)).get().await
    }
}

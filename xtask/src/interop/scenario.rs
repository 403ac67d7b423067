//! What happens between one consumer and one provider: all cases, then a day in the life of two providers under load.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::build;
use super::load::{CHANGE, Load};
use super::network::{FIRST, SECOND};
use super::peer::{Peer, Role, Version};
use super::program::Program;
use super::report::Outcome;
use super::rules::Rules;

/// Where ZooKeeper listens.
const REGISTRY_PORT: u16 = 2181;

/// Longest silence of a consumer between two cases: the slowest case sleeps and retries for some seconds.
const CASE: Duration = Duration::from_secs(60);

/// The interface that load calls and rules name.
pub(super) const SERVICE: &str = "dev.dubhe.interop.api.EchoService";

/// The cases of the second part, in order: each needs those before it.
const CHANGES: [&str; 7] = [
    "load/balanced",
    "load/graceful-stop",
    "load/return-after-stop",
    "load/condition-rule-put",
    "load/condition-rule-removed",
    "load/crash",
    "load/return-after-crash",
];

/// Runs everything between two peers and tells each outcome. `version` is the Java side, whose rule client is used.
pub(super) fn run(consumer: &Peer, provider: &Peer, version: Version, tell: &mut dyn FnMut(&str, Outcome)) {
    let stage = Stage { consumer: *consumer, provider: *provider, version };
    if let Err(error) = stage.cases(tell) {
        tell("cases/complete", Err(format!("{error:#}")));
    } else {
        tell("cases/complete", Ok(String::new()));
    }
    if consumer == &Peer::Rust {
        tell("load/readonly-alone", stage.readonly().map_err(|error| format!("{error:#}")));
    }
    let mut done = 0;
    let result = stage.changes(&mut |remark| {
        tell(CHANGES[done], Ok(remark));
        done += 1;
    });
    if let Err(error) = result {
        tell(CHANGES[done], Err(format!("{error:#}")));
        for case in &CHANGES[done + 1..] {
            tell(case, Err(format!("did not run: {} failed", CHANGES[done])));
        }
    }
}

/// A consumer that knows interface-level discovery only, and a provider that registers both ways: it must not notice.
pub(super) fn run_mixed(
    consumer: &Peer,
    provider: &Peer,
    version: Version,
    tell: &mut dyn FnMut(&str, Outcome),
) {
    let stage = Stage { consumer: *consumer, provider: *provider, version };
    let outcome = stage.mixed(tell).map(|()| String::new()).map_err(|error| format!("{error:#}"));
    tell("cases/complete", outcome);
}

/// The programs of the README, as a newcomer runs them: the example provider, then the example consumer.
pub(super) fn examples() -> Result<String> {
    let (_zookeeper, registry) = zookeeper("examples-zookeeper")?;
    let provider =
        Program::start(Command::new(build::program("provider")).arg(&registry), "examples-provider")?;
    provider.log_with(CHANGE, "serving ")?;
    let consumer =
        Program::start(Command::new(build::program("consumer")).arg(&registry), "examples-consumer")?;
    let answer = consumer.line_with(CASE, |line| !line.is_empty())?;
    let status = consumer.end(CASE)?;
    if !status.success() {
        bail!("the example consumer ended with {status}");
    }
    let status = provider.stop()?;
    if !status.success() {
        bail!("the example provider ended with {status} after SIGTERM");
    }
    Ok(answer)
}

struct Stage {
    consumer: Peer,
    provider: Peer,
    version: Version,
}

impl Stage {
    /// One provider; one consumer that finds it in the registry, for all cases, and one that calls it directly, for the case that a
    /// registry prevents: a group that the provider does not have.
    fn cases(&self, tell: &mut dyn FnMut(&str, Outcome)) -> Result<()> {
        let (_zookeeper, registry) = self.zookeeper("cases")?;
        let (_provider, _) = self.provide(&registry, "A", FIRST, 20_880, "cases-provider")?;
        self.consume("cases-consumer", &["--registry", &registry], tell)?;
        let url = format!("dubbo://{FIRST}:20880");
        let direct =
            ["--url", &url, "--services", "greet", "--kinds", "typed", "--only", "typed/wrong-group"];
        self.consume("direct-consumer", &direct, tell)
    }

    /// The typed cases, with a provider of register mode `all`.
    fn mixed(&self, tell: &mut dyn FnMut(&str, Outcome)) -> Result<()> {
        let (_zookeeper, registry) = self.zookeeper("mixed")?;
        let log = self.name("mixed-provider");
        let mut command = self.provider.command(Role::Provider, &log)?;
        command.args(["--registry", &registry, "--host", FIRST, "--port", "20880", "--register-mode", "all"]);
        let provider = Program::start(&mut command, &log)?;
        provider.ready()?;
        self.consume("mixed-consumer", &["--registry", &registry, "--kinds", "typed"], tell)
    }

    /// Runs a consumer to its end and tells its cases.
    fn consume(&self, log: &str, options: &[&str], tell: &mut dyn FnMut(&str, Outcome)) -> Result<()> {
        let mut command = self.consumer.command(Role::Consumer, &self.name(log))?;
        let consumer = Program::start(command.args(options), &self.name(log))?;
        let mut count = 0;
        while let Some(line) = consumer.next(CASE)? {
            if line.starts_with("READY ") {
                continue;
            }
            let case: Case = serde_json::from_str(&line).with_context(|| format!("not a case: {line}"))?;
            tell(&case.case, if case.ok { Ok(case.detail) } else { Err(case.detail) });
            count += 1;
        }
        // 1 says that some cases failed, which each of them has said itself.
        match consumer.end(CASE)?.code() {
            Some(0 | 1) if count > 0 => Ok(()),
            Some(code) => bail!("{log} ended with {code} after {count} cases; its log tells why"),
            None => bail!("{log} crashed after {count} cases; its log tells why"),
        }
    }

    /// Two providers without a registry under load: what moves the calls when one of them stops is its readonly event alone. (Not
    /// for Java consumers: 2.7.23 cannot call two addresses directly.)
    fn readonly(&self) -> Result<String> {
        const NONE: &str = "N/A";
        let (first, _) = self.provide(NONE, "A", FIRST, 20_880, "readonly-provider-a")?;
        let (_other, _) = self.provide(NONE, "B", SECOND, 20_881, "readonly-provider-b")?;
        let url = format!("dubbo://{FIRST}:20880;dubbo://{SECOND}:20881");
        // 2.7.23 takes its services off some milliseconds before it says so, and refuses the calls in between ("Not found exported
        // service"): another try must be allowed there, and the log must tell that the event came.
        let retries = if self.version == Version::V27 { "1" } else { "0" };
        let mut load = self.load_with("readonly-consumer", &["--url", &url, "--retries", retries])?;
        load.until("both providers are called", &|second| second.by("A") && second.by("B"))?;
        first.stop().context("stopping provider A")?;
        load.program.log_with(CASE, "read_only=true")?;
        load.without_failure("only B is called", &|second| !second.by("A") && second.by("B"))
    }

    /// Two providers under load: one stops, returns, is ruled out, is ruled in, crashes, returns. `held` is called
    /// after each.
    fn changes(&self, held: &mut dyn FnMut(String)) -> Result<()> {
        let (_zookeeper, registry) = self.zookeeper("load")?;
        let (first, _) = self.provide(&registry, "A", FIRST, 20_880, "load-provider-a1")?;
        let (_other, _) = self.provide(&registry, "B", SECOND, 20_881, "load-provider-b")?;
        // A graceful change may cost no call at all; a crash may cost tries, but no call that may be retried.
        let mut strict = self.load(&registry, "0")?;
        let mut retrying = self.load(&registry, "2")?;
        let seen = strict.until("both providers are called", &|second| second.by("A") && second.by("B"))?;
        held(seen);

        first.stop().context("stopping provider A")?;
        held(strict.without_failure("only B is called", &|second| !second.by("A") && second.by("B"))?);

        let (second, pid) = self.provide(&registry, "A", FIRST, 20_880, "load-provider-a2")?;
        held(strict.without_failure("the returned A is called", &|second| second.by(&format!("A#{pid}")))?);

        let mut rules = Rules::start(self.version, &self.name("load-rules"), &registry)?;
        let kind = rule_kind(self.consumer);
        let rule = format!("--interface\t{SERVICE}\t--rule\t=> host = {SECOND}");
        rules.order(&format!("put-{kind}\t{rule}"))?;
        held(strict.without_failure("only B is called", &|second| !second.by("A") && second.by("B"))?);

        rules.order(&format!("remove-{kind}\t{rule}"))?;
        held(strict.without_failure("A is called again", &|second| second.by("A") && second.by("B"))?);

        retrying.forget();
        drop(second);
        held(retrying.without_failure("only B is called", &|second| !second.by("A") && second.by("B"))?);

        let (_third, pid) = self.provide(&registry, "A", FIRST, 20_880, "load-provider-a3")?;
        held(retrying.without_failure("the returned A is called", &|second| second.by(&format!("A#{pid}")))?);
        Ok(())
    }

    fn zookeeper(&self, part: &str) -> Result<(Program, String)> {
        zookeeper(&self.name(&format!("{part}-zookeeper")))
    }

    /// Starts a provider; returns it with its process number.
    fn provide(
        &self,
        registry: &str,
        name: &str,
        host: &str,
        port: u16,
        log: &str,
    ) -> Result<(Program, String)> {
        let mut command = self.provider.command(Role::Provider, &self.name(log))?;
        command.args(["--registry", registry, "--name", name, "--host", host, "--port", &port.to_string()]);
        let provider = Program::start(&mut command, &self.name(log))?;
        let words = provider.ready()?;
        let pid = words.get(3).with_context(|| format!("READY line without a process number: {words:?}"))?;
        Ok((provider, pid.clone()))
    }

    fn load(&self, registry: &str, retries: &str) -> Result<Load> {
        let name = format!("load-consumer-retries-{retries}");
        self.load_with(&name, &["--registry", registry, "--retries", retries])
    }

    fn load_with(&self, name: &str, options: &[&str]) -> Result<Load> {
        Load::start(self.consumer, &self.name(name), options)
    }

    fn name(&self, what: &str) -> String {
        format!("{}-to-{}-{what}", self.consumer.name(), self.provider.name())
    }
}

/// Starts a ZooKeeper; returns it with its registry address.
pub(super) fn zookeeper(log: &str) -> Result<(Program, String)> {
    let address = format!("{FIRST}:{REGISTRY_PORT}");
    let mut command = Command::new(build::program("dubhe-zookeeper"));
    let zookeeper = Program::start(command.arg(&address), log)?;
    zookeeper.ready()?;
    Ok((zookeeper, format!("zookeeper://{address}")))
}

/// Where a condition rule is put: `route` is a node below the service's `routers`, `condition` a document in the config
/// centre. Java 3.1 and 3.3 skip the former (they ship no router for it), Dubhe reads it.
fn rule_kind(consumer: Peer) -> &'static str {
    match consumer {
        Peer::Rust => "route",
        Peer::Java(_) => "condition",
    }
}

/// A line of a consumer.
#[derive(Debug, Deserialize)]
struct Case {
    case: String,
    ok: bool,
    #[serde(default)]
    detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_may_come_without_detail() {
        let case: Case = serde_json::from_str(r#"{"case":"typed/string","ok":true}"#).unwrap();
        assert!(case.ok && case.detail.is_empty());
    }
}

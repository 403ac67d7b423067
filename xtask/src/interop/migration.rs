//! A consumer under load whose application is moved from one discovery model to the other and back, by rules that the Java
//! client publishes, while providers that are registered for one model, the other, and both come and go. No call may fail.

use anyhow::{Context, Result, bail};

use super::load::{CHANGE, Load, Second};
use super::network::FIRST;
use super::peer::{Peer, Role, Version};
use super::program::Program;
use super::report::Outcome;
use super::rules::Rules;
use super::scenario::{SERVICE, zookeeper};

/// The consumer's application.
const APPLICATION: &str = "migrating-consumer";

/// The cases, in order: each needs those before it.
const CASES: [&str; 7] = [
    "migration/force-interface",
    "migration/application-first",
    "migration/provider-leaves",
    "migration/provider-returns",
    "migration/force-application",
    "migration/back-to-application-first",
    "migration/back-to-force-interface",
];

/// Runs the cases and tells each. `version` is the Java side, whose rule client is used.
pub(super) fn run(consumer: Peer, provider: Peer, version: Version, tell: &mut dyn FnMut(&str, Outcome)) {
    let mut done = 0;
    let result = Stage { consumer, provider, version }.run(&mut |remark| {
        tell(CASES[done], Ok(remark));
        done += 1;
    });
    if let Err(error) = result {
        tell(CASES[done], Err(format!("{error:#}")));
        for case in &CASES[done + 1..] {
            tell(case, Err(format!("did not run: {} failed", CASES[done])));
        }
    }
}

struct Stage {
    consumer: Peer,
    provider: Peer,
    version: Version,
}

impl Stage {
    /// Provider I is registered at interface level, provider A as its application's instance, provider B, which is of the
    /// consumer's kind, both ways.
    fn run(&self, held: &mut dyn FnMut(String)) -> Result<()> {
        let (_zookeeper, registry) = zookeeper(&self.name("zookeeper"))?;
        let mut rules = Rules::begin(self.version, &self.name("rules"), &registry)?;
        let by_interface = self.provide(self.provider, "I", "interface", 21_000, &registry)?;
        let by_application = self.provide(self.provider, "A", "instance", 21_001, &registry)?;
        let both = self.provide(self.consumer, "B", "all", 21_002, &registry)?;
        rules.ready()?;
        for provider in [&by_interface, &by_application, &both] {
            provider.ready()?;
        }

        rules.migrate(APPLICATION, "FORCE_INTERFACE")?;
        let options = ["--registry", &registry, "--app", APPLICATION, "--retries", "0"];
        let mut load = Load::start(self.consumer, &self.name("consumer"), &options)?;
        held(load.without_failure("I and B are called", &|second| called(second, "IB"))?);
        expect_consumer_node(&mut rules, true)?;
        if self.consumer == Peer::Rust {
            // The rule was there before the reference, so nothing else came before its step.
            load.program.log_with(CHANGE, "from=\"none\" to=FORCE_INTERFACE")?;
        }

        rules.migrate(APPLICATION, "APPLICATION_FIRST")?;
        held(load.without_failure("A and B are called", &|second| called(second, "AB"))?);

        by_application.stop().context("stopping provider A")?;
        held(load.without_failure("only B is called", &|second| called(second, "B"))?);

        let by_application = self.provide(self.provider, "A", "instance", 21_001, &registry)?;
        by_application.ready()?;
        held(load.without_failure("A and B are called", &|second| called(second, "AB"))?);

        rules.migrate(APPLICATION, "FORCE_APPLICATION")?;
        let remark = load.without_failure("A and B are called", &|second| called(second, "AB"))?;
        expect_consumer_node(&mut rules, false)?;
        held(remark);

        rules.migrate(APPLICATION, "APPLICATION_FIRST")?;
        let remark = load.without_failure("A and B are called", &|second| called(second, "AB"))?;
        expect_consumer_node(&mut rules, true)?;
        held(remark);

        rules.migrate(APPLICATION, "FORCE_INTERFACE")?;
        held(load.without_failure("I and B are called", &|second| called(second, "IB"))?);
        Ok(())
    }

    /// Starts a provider without waiting.
    fn provide(&self, peer: Peer, name: &str, mode: &str, port: u16, registry: &str) -> Result<Program> {
        let log = self.name(&format!("provider-{mode}"));
        let mut command = peer.command(Role::Provider, &log)?;
        command.args(["--registry", registry, "--app", &format!("{mode}-provider"), "--name", name]);
        command.args(["--host", FIRST, "--port", &port.to_string(), "--register-mode", mode]);
        Program::start(&mut command, &log)
    }

    fn name(&self, what: &str) -> String {
        format!("migration-{}-to-{}-{what}", self.consumer.name(), self.provider.name())
    }
}

/// Whether exactly these providers, each a letter, answered.
fn called(second: &Second, providers: &str) -> bool {
    ["I", "A", "B"].iter().all(|name| second.by(name) == providers.contains(name))
}

/// The interface-level side of a consumer, and only that, has a node.
fn expect_consumer_node(rules: &mut Rules, expected: bool) -> Result<()> {
    let top = format!("/dubbo/{SERVICE}/consumers");
    let nodes = rules.tree(&[&top])?;
    let found = nodes.keys().any(|path| path.contains(APPLICATION));
    if found != expected {
        bail!("interface-level consumer node: expected {expected}, found {found}");
    }
    Ok(())
}

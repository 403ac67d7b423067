//! Interface-level and application-level discovery between one consumer and one provider: providers of every register mode and
//! metadata type, each asked for by a consumer of every migration step, all over one registry.
//!
//! What the wire carries is the other matrix's affair ([`super::scenario`]). Here a provider must be found by the models that it
//! registers for and by no other; what it says of itself (a token, a method's time-out, group and version) must arrive; a service
//! that it exports later must appear; and when it stops it must go, from the calls and from the registry.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::peer::{Peer, Version};
use super::report::Outcome;
use super::rules::Rules;
use super::scenario::zookeeper;
use sides::{Consumer, Provider, STEPS, Step, has_node, variants};

mod sides;

/// How long a change may take to show: from a service's export, or a provider's end, to the calls.
const CHANGE: Duration = Duration::from_secs(40);

/// How long a provider that returned may wait for its consumers: Java looks after a lost connection now and then only, and keeps
/// an invoker whose URL is the same as before.
const RETURN: Duration = Duration::from_secs(90);

/// The port of the first provider; the others follow. Java's own picks start below.
const PORT: u16 = 21_000;

/// Nodes of the registry that tell who registered where.
const TOPS: [&str; 3] = ["/dubbo/metadata", "/services", "/dubbo/dev.dubhe.interop.api.EchoService"];

/// Told each case: the register mode of the provider, the name, how it ended.
pub(super) type Tell<'a> = &'a mut dyn FnMut(&str, &str, Outcome);

/// Runs everything between two peers. `version` is the Java side, whose rule client looks at the registry.
pub(super) fn run(consumer: Peer, provider: Peer, version: Version, tell: Tell<'_>) {
    let outcome = run_all(consumer, provider, version, tell);
    tell("all", "discovery/complete", outcome.map(|()| String::new()).map_err(|error| format!("{error:#}")));
}

fn run_all(consumer: Peer, provider: Peer, version: Version, tell: Tell<'_>) -> Result<()> {
    let name = |what: &str| format!("discovery-{}-to-{}-{what}", consumer.name(), provider.name());
    let (_zookeeper, registry) = zookeeper(&name("zookeeper"))?;

    // All at once: most of the time of a run is the start of Java processes.
    let mut rules = Rules::begin(version, &name("rules"), &registry)?;
    let mut providers = Vec::new();
    for (variant, port) in variants(provider).iter().zip(PORT..) {
        let name = name(&format!("provider-{}", variant.tag()));
        providers.push(Provider::begin(*variant, provider, &name, port, &registry)?);
    }
    let mut consumers = Vec::new();
    for step in STEPS {
        consumers.push(Consumer::begin(step, consumer, variants(provider), &name(step.word()), &registry)?);
    }
    rules.ready()?;
    for provider in &mut providers {
        provider.ready()?;
    }
    for one in &consumers {
        one.finder.ready()?;
    }

    found(consumer, &providers, &mut consumers, tell);
    registered(&mut rules, &providers, &consumers, tell)?;
    exported_later(&mut providers, &mut consumers, tell)?;
    stopped(&mut rules, providers, &mut consumers, tell)?;
    // The same for Java would start five processes more; the migration under load has one return.
    if provider == Peer::Rust {
        returned(&registry, &name("returned"), &mut consumers, tell)?;
    }
    Ok(())
}

/// Who finds whom, and what arrives beside the address.
fn found(consumer: Peer, providers: &[Provider], consumers: &mut [Consumer], tell: Tell<'_>) {
    let deadline = Instant::now() + CHANGE;
    for (provider, variant) in providers.iter().map(|provider| (provider, provider.variant)) {
        for Consumer { step, finder } in consumers.iter_mut().filter(|one| variant.is_found_by(one.step)) {
            let found = finder.await_outcome("echo", &variant.tag(), deadline, |outcome| {
                outcome.as_ref().is_ok_and(|who| *who == provider.who)
            });
            tell(variant.mode, &variant.case(*step, "found"), found);
            tell(variant.mode, &variant.case(*step, "call"), finder.ask("bean", &variant.tag()));
            tell(
                variant.mode,
                &variant.case(*step, "provider-timeout"),
                finder.ask("timeout", &variant.tag()),
            );
            if consumer == Peer::Rust {
                let explained = finder.ask("explain", &variant.tag());
                let outcome = explained.and_then(|text| variant.check_side(*step, text));
                tell(variant.mode, &variant.case(*step, "explained"), outcome);
            }
        }
    }
    // Now that each provider is known by one model, an absence in the other is no matter of time.
    for variant in providers.iter().map(|provider| provider.variant) {
        for Consumer { step, finder } in consumers.iter_mut().filter(|one| !variant.is_found_by(one.step)) {
            let outcome = match finder.ask("echo", &variant.tag()) {
                Ok(who) => Err(format!("{who} answered, although it is not registered for this model")),
                Err(error) => Ok(error),
            };
            tell(variant.mode, &variant.case(*step, "not-found"), outcome);
        }
    }
}

/// What stands in the registry.
fn registered(
    rules: &mut Rules,
    providers: &[Provider],
    consumers: &[Consumer],
    tell: Tell<'_>,
) -> Result<()> {
    let tree = rules.tree(&TOPS)?;
    for provider in providers {
        let variant = provider.variant;
        tell(variant.mode, &variant.name("registered"), provider.check_registered(&tree));
    }
    for Consumer { step, .. } in consumers {
        // Only the interface-level side of a consumer leaves a node.
        let (expected, found) = (*step != Step::ForceApplication, has_node(&tree, "consumers", step.word()));
        let outcome = match found == expected {
            true => Ok(String::new()),
            false => Err(format!("consumer node of {}: expected {expected}, found {found}", step.word())),
        };
        tell("all", &format!("discovery/{}/consumer-node", step.word()), outcome);
    }
    Ok(())
}

/// A service that is exported when everybody has long found the first one.
fn exported_later(providers: &mut [Provider], consumers: &mut [Consumer], tell: Tell<'_>) -> Result<()> {
    for provider in providers.iter_mut() {
        provider.program.say("export")?;
    }
    for provider in providers.iter() {
        provider.program.line_with(CHANGE, |line| line.starts_with("EXPORTED "))?;
    }
    let deadline = Instant::now() + CHANGE;
    for (provider, variant) in providers.iter().map(|provider| (provider, provider.variant)) {
        for Consumer { step, finder } in consumers.iter_mut().filter(|one| variant.is_found_by(one.step)) {
            let outcome = finder.await_outcome("greet", &variant.tag(), deadline, |outcome| {
                outcome.as_ref().is_ok_and(|who| *who == provider.who)
            });
            tell(variant.mode, &variant.case(*step, "later-service"), outcome);
        }
    }
    Ok(())
}

/// Providers that stop are called no more and leave nothing.
fn stopped(
    rules: &mut Rules,
    providers: Vec<Provider>,
    consumers: &mut [Consumer],
    tell: Tell<'_>,
) -> Result<()> {
    for provider in &providers {
        provider.program.terminate()?;
    }
    let variants: Vec<_> = providers.iter().map(|provider| provider.variant).collect();
    for provider in providers {
        let status = provider.program.end(CHANGE)?;
        let outcome = if status.success() { Ok(String::new()) } else { Err(status.to_string()) };
        tell(provider.variant.mode, &provider.variant.name("stopped"), outcome);
    }
    let deadline = Instant::now() + CHANGE;
    for variant in &variants {
        for Consumer { step, finder } in consumers.iter_mut().filter(|one| variant.is_found_by(one.step)) {
            let gone = finder.await_outcome("echo", &variant.tag(), deadline, Result::is_err);
            tell(variant.mode, &variant.case(*step, "gone"), gone);
        }
    }
    let tree = rules.tree(&TOPS)?;
    for variant in variants {
        let left = variant.nodes(&tree);
        let outcome = if left.is_empty() { Ok(String::new()) } else { Err(format!("left: {left:?}")) };
        tell(variant.mode, &variant.name("nothing-left"), outcome);
    }
    Ok(())
}

/// Providers that start anew, at the same addresses, are found again.
fn returned(registry: &str, log: &str, consumers: &mut [Consumer], tell: Tell<'_>) -> Result<()> {
    let mut providers = Vec::new();
    for (variant, port) in variants(Peer::Rust).iter().zip(PORT..) {
        let name = format!("{log}-{}", variant.tag());
        providers.push(Provider::begin(*variant, Peer::Rust, &name, port, registry)?);
    }
    for provider in &mut providers {
        provider.ready()?;
    }
    let deadline = Instant::now() + RETURN;
    for (provider, variant) in providers.iter().map(|provider| (provider, provider.variant)) {
        for Consumer { step, finder } in consumers.iter_mut().filter(|one| variant.is_found_by(one.step)) {
            let outcome = finder.await_outcome("echo", &variant.tag(), deadline, |outcome| {
                outcome.as_ref().is_ok_and(|who| *who == provider.who)
            });
            tell(variant.mode, &variant.case(*step, "returned"), outcome);
        }
    }
    Ok(())
}

//! Interface-level and application-level discovery between one consumer and one provider: providers of every register mode and
//! metadata type, each asked for by a consumer of every migration step, all over one registry.
//!
//! What the wire carries is the other matrix's affair ([`super::scenario`]). Here a provider must be found by the models that it
//! registers for and by no other; what it says of itself (a token, a method's time-out, group and version) must arrive; a service
//! that it exports later must appear; and when it stops it must go, from the calls and from the registry.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::finder::Finder;
use super::network::FIRST;
use super::peer::{Peer, Role, Version};
use super::program::Program;
use super::report::Outcome;
use super::rules::{Rules, Tree};
use super::scenario::{SERVICE, zookeeper};

/// How long a change may take to show: from a service's export, or a provider's end, to the calls.
const CHANGE: Duration = Duration::from_secs(40);

/// How long a provider that returned may wait for its consumers: Java looks after a lost connection now and then only, and keeps
/// an invoker whose URL is the same as before.
const RETURN: Duration = Duration::from_secs(90);

/// The port of the first provider; the others follow. Java's own picks start below.
const PORT: u16 = 21_000;

/// What providers demand of each call. Consumers learn it from the registry alone.
const TOKEN: &str = "only-for-consumers";

/// Nodes of the registry that tell who registered where.
const TOPS: [&str; 3] = ["/dubbo/metadata", "/services", "/dubbo/dev.dubhe.interop.api.EchoService"];

/// The last two for Java providers only: Dubhe has no Triple.
const VARIANTS: [Variant; 7] = [
    Variant { mode: "instance", metadata: Some("local"), triple: false },
    Variant { mode: "instance", metadata: Some("remote"), triple: false },
    Variant { mode: "all", metadata: Some("local"), triple: false },
    Variant { mode: "all", metadata: Some("remote"), triple: false },
    Variant { mode: "interface", metadata: None, triple: false },
    Variant { mode: "instance", metadata: Some("local"), triple: true },
    Variant { mode: "all", metadata: Some("remote"), triple: true },
];

const STEPS: [Step; 3] = [Step::ForceApplication, Step::ApplicationFirst, Step::ForceInterface];

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

/// How a provider makes itself known.
#[derive(Debug, Clone, Copy)]
struct Variant {
    mode: &'static str,
    /// Where its metadata is; who registers no instance has none.
    metadata: Option<&'static str>,
    /// Whether its services are also offered over Triple, which is no affair of consumers of the other protocol.
    triple: bool,
}

/// The variants that a provider has.
fn variants(provider: Peer) -> &'static [Variant] {
    match provider {
        Peer::Rust => &VARIANTS[..VARIANTS.len() - 2],
        Peer::Java(_) => &VARIANTS,
    }
}

impl Variant {
    /// Names the provider, and is the group of its services: so all can serve one interface in one registry.
    fn tag(self) -> String {
        self.name_with(self.mode, "-")
    }

    fn application(self) -> String {
        format!("{}-provider", self.tag())
    }

    fn is_found_by(self, step: Step) -> bool {
        match step {
            Step::ForceInterface => self.mode != "instance",
            Step::ApplicationFirst => true,
            Step::ForceApplication => self.mode != "interface",
        }
    }

    /// Whether calls go to the side that a consumer of this step should prefer, as Dubhe explains it.
    fn check_side(self, step: Step, explanation: String) -> Outcome {
        let by_interface = step == Step::ForceInterface || self.mode == "interface";
        let side = if by_interface { "* interface-level" } else { "* application-level" };
        let fits = explanation.contains(side) && explanation.contains(&format!("step {}", step.word()));
        if fits { Ok(explanation) } else { Err(format!("expected {side}: {explanation}")) }
    }

    /// The name of a case about the provider alone.
    fn name(self, what: &str) -> String {
        format!("{}/{what}", self.name_with("discovery", "/"))
    }

    /// The name of a case with a consumer.
    fn case(self, step: Step, what: &str) -> String {
        self.name(&format!("{}/{what}", step.word()))
    }

    fn name_with(self, start: &str, between: &str) -> String {
        match self.metadata {
            Some(metadata) if self.triple => format!("{start}{between}{metadata}-and-triple"),
            Some(metadata) => format!("{start}{between}{metadata}"),
            None => start.to_owned(),
        }
    }

    /// Ephemeral nodes of this provider.
    fn nodes(self, tree: &Tree) -> Vec<&str> {
        let instance = format!("/services/{}/", self.application());
        let is_its =
            |path: &str| path.starts_with(&instance) || is_node(path, "providers", &self.application());
        tree.keys().map(String::as_str).filter(|path| is_its(path)).collect()
    }
}

/// What a consumer is told about the two models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    ForceInterface,
    ApplicationFirst,
    ForceApplication,
}

impl Step {
    /// As rules name it. Also the name of the consumer's application.
    fn word(self) -> &'static str {
        match self {
            Self::ForceInterface => "FORCE_INTERFACE",
            Self::ApplicationFirst => "APPLICATION_FIRST",
            Self::ForceApplication => "FORCE_APPLICATION",
        }
    }
}

struct Consumer {
    step: Step,
    finder: Finder,
}

impl Consumer {
    fn begin(step: Step, peer: Peer, variants: &[Variant], name: &str, registry: &str) -> Result<Self> {
        let groups = variants.iter().map(|variant| variant.tag()).collect::<Vec<_>>().join(",");
        let options = [
            ["--registry", registry],
            ["--app", step.word()],
            ["--migration", step.word()],
            ["--groups", &groups],
            ["--version", "2.0.0"],
        ];
        Ok(Self { step, finder: Finder::begin(peer, name, options.as_flattened())? })
    }
}

struct Provider {
    variant: Variant,
    port: u16,
    program: Program,
    /// What its services answer; known when it is ready.
    who: String,
}

impl Provider {
    fn begin(variant: Variant, peer: Peer, name: &str, port: u16, registry: &str) -> Result<Self> {
        let (tag, application) = (variant.tag(), variant.application());
        let mut command = peer.command(Role::Provider, name)?;
        command.args(["--registry", registry, "--app", &application, "--name", &tag]);
        command.args(["--host", FIRST, "--port", &port.to_string()]);
        command.args(["--group", &tag, "--version", "2.0.0", "--greet-group", &tag, "--later", "greet"]);
        command.args(["--token", TOKEN, "--param", "timeout=5000", "--param", "sleep.timeout=300"]);
        command.args(["--register-mode", variant.mode]);
        if let Some(metadata) = variant.metadata {
            command.args(["--metadata", metadata]);
            if metadata == "local" && variant.mode == "instance" && !variant.triple {
                // Elsewhere metadata is answered at the services' own port.
                command.args(["--metadata-port", &(port + 100).to_string()]);
            }
        }
        if variant.triple {
            command.args(["--tri-port", &(port + 100).to_string()]);
            // Else Java answers for its metadata over Triple alone.
            command.args(["--metadata-protocol", "dubbo"]);
        }
        Ok(Self { variant, port, program: Program::start(&mut command, name)?, who: String::new() })
    }

    fn ready(&mut self) -> Result<()> {
        let words = self.program.ready()?;
        let pid = words.get(3).with_context(|| format!("READY line without a process number: {words:?}"))?;
        self.who = format!("{}#{pid}", self.variant.tag());
        Ok(())
    }

    /// Only the nodes of its register mode, and its metadata where it says it is.
    fn check_registered(&self, tree: &Tree) -> Outcome {
        self.try_registered(tree).map_err(|error| format!("{error:#}"))
    }

    fn try_registered(&self, tree: &Tree) -> Result<String> {
        let (mode, application) = (self.variant.mode, self.variant.application());
        let by_interface = has_node(tree, "providers", &application);
        if by_interface != (mode != "instance") {
            bail!("interface-level node: {by_interface}");
        }
        let instance = tree.get(&format!("/services/{application}/{FIRST}:{}", self.port));
        let (Some(metadata), Some(instance)) = (self.variant.metadata, instance) else {
            match (self.variant.metadata, self.variant.nodes(tree).len()) {
                (None, 1) => return Ok(String::new()),
                (_, nodes) => bail!("no instance where one is due, or the reverse; {nodes} nodes in all"),
            }
        };
        let payload: serde_json::Value = serde_json::from_str(instance)?;
        let said = |key: &str| payload["payload"]["metadata"][key].as_str().unwrap_or_default();
        if said("dubbo.metadata.storage-type") != metadata {
            bail!("the instance says of its metadata: {instance}");
        }
        let revision = said("dubbo.metadata.revision");
        let is_stored = tree.contains_key(&format!("/dubbo/metadata/{application}/{revision}"));
        if is_stored != (metadata == "remote") {
            bail!("metadata of revision {revision} in the registry: {is_stored}");
        }
        Ok(format!("revision {revision}"))
    }
}

/// Whether the application has a node of this category at interface level.
fn has_node(tree: &Tree, category: &str, application: &str) -> bool {
    tree.keys().any(|path| is_node(path, category, application))
}

fn is_node(path: &str, category: &str, application: &str) -> bool {
    path.strip_prefix(&format!("/dubbo/{SERVICE}/{category}/"))
        .is_some_and(|url| url.contains(&format!("application%3D{application}%26")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_names_metadata_only_where_there_is_some() {
        let step = Step::ForceApplication;
        assert_eq!(VARIANTS[1].case(step, "found"), "discovery/remote/FORCE_APPLICATION/found");
        assert_eq!(VARIANTS[4].case(step, "not-found"), "discovery/FORCE_APPLICATION/not-found");
        assert_eq!((VARIANTS[1].tag(), VARIANTS[4].tag()), ("instance-remote".into(), "interface".into()));
    }

    #[test]
    fn a_node_belongs_to_the_application_that_its_url_names() {
        let path = format!(
            "/dubbo/{SERVICE}/providers/dubbo%3A%2F%2Fh%2Fs%3Fanyhost%3Dtrue%26application%3Dall-local-provider%26x%3D1"
        );
        assert!(is_node(&path, "providers", "all-local-provider"));
        assert!(!is_node(&path, "consumers", "all-local-provider"));
        assert!(!is_node(&path, "providers", "all-local"));
    }
}

//! Who takes part: providers of every way to register, consumers of every step.

use anyhow::{Context, Result, bail};

use crate::interop::finder::Finder;
use crate::interop::network::FIRST;
use crate::interop::peer::{Peer, Role};
use crate::interop::program::Program;
use crate::interop::report::Outcome;
use crate::interop::rules::Tree;
use crate::interop::scenario::SERVICE;

/// What providers demand of each call. Consumers learn it from the registry alone.
const TOKEN: &str = "only-for-consumers";

/// The last three for Java providers only: Dubhe serves no Triple.
const VARIANTS: [Variant; 8] = [
    Variant { mode: "instance", metadata: Some("local"), triple: Triple::None },
    Variant { mode: "instance", metadata: Some("remote"), triple: Triple::None },
    Variant { mode: "all", metadata: Some("local"), triple: Triple::None },
    Variant { mode: "all", metadata: Some("remote"), triple: Triple::None },
    Variant { mode: "interface", metadata: None, triple: Triple::None },
    Variant { mode: "instance", metadata: Some("local"), triple: Triple::Beside },
    Variant { mode: "all", metadata: Some("remote"), triple: Triple::Beside },
    Variant { mode: "instance", metadata: Some("local"), triple: Triple::ForMetadata },
];

/// Those of the consumers.
pub(super) const STEPS: [Step; 3] = [Step::ForceApplication, Step::ApplicationFirst, Step::ForceInterface];

/// How a provider makes itself known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variant {
    pub(super) mode: &'static str,
    /// Where its metadata is; who registers no instance has none.
    metadata: Option<&'static str>,
    triple: Triple,
}

/// What a provider offers over Triple, beside dubbo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Triple {
    None,
    /// Its services, which is no affair of consumers of the other protocol.
    Beside,
    /// Its services, and its metadata there alone: what Java does when it is not told otherwise.
    ForMetadata,
}

/// The variants that a provider has.
pub(super) fn variants(provider: Peer) -> &'static [Variant] {
    match provider {
        Peer::Rust => &VARIANTS[..VARIANTS.len() - 3],
        Peer::Java(_) => &VARIANTS,
    }
}

impl Variant {
    /// Names the provider, and is the group of its services: so all can serve one interface in one registry.
    pub(super) fn tag(self) -> String {
        self.name_with(self.mode, "-")
    }

    pub(super) fn application(self) -> String {
        format!("{}-provider", self.tag())
    }

    pub(super) fn is_found_by(self, step: Step) -> bool {
        match step {
            Step::ForceInterface => self.mode != "instance",
            Step::ApplicationFirst => true,
            Step::ForceApplication => self.mode != "interface",
        }
    }

    /// Whether calls go to the side that a consumer of this step should prefer, as Dubhe explains it.
    pub(super) fn check_side(self, step: Step, explanation: String) -> Outcome {
        let by_interface = step == Step::ForceInterface || self.mode == "interface";
        let side = if by_interface { "* interface-level" } else { "* application-level" };
        let fits = explanation.contains(side) && explanation.contains(&format!("step {}", step.word()));
        if fits { Ok(explanation) } else { Err(format!("expected {side}: {explanation}")) }
    }

    /// The name of a case about the provider alone.
    pub(super) fn name(self, what: &str) -> String {
        format!("{}/{what}", self.name_with("discovery", "/"))
    }

    /// The name of a case with a consumer.
    pub(super) fn case(self, step: Step, what: &str) -> String {
        self.name(&format!("{}/{what}", step.word()))
    }

    fn name_with(self, start: &str, between: &str) -> String {
        let Some(metadata) = self.metadata else { return start.to_owned() };
        let triple = match self.triple {
            Triple::None => "",
            Triple::Beside => "-and-triple",
            Triple::ForMetadata => "-over-triple",
        };
        format!("{start}{between}{metadata}{triple}")
    }

    /// Ephemeral nodes of this provider.
    pub(super) fn nodes(self, tree: &Tree) -> Vec<&str> {
        let instance = format!("/services/{}/", self.application());
        let is_its =
            |path: &str| path.starts_with(&instance) || is_node(path, "providers", &self.application());
        tree.keys().map(String::as_str).filter(|path| is_its(path)).collect()
    }
}

/// What a consumer is told about the two models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    ForceInterface,
    ApplicationFirst,
    ForceApplication,
}

impl Step {
    /// As rules name it. Also the name of the consumer's application.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::ForceInterface => "FORCE_INTERFACE",
            Self::ApplicationFirst => "APPLICATION_FIRST",
            Self::ForceApplication => "FORCE_APPLICATION",
        }
    }
}

/// A running consumer.
pub(super) struct Consumer {
    pub(super) step: Step,
    pub(super) finder: Finder,
}

impl Consumer {
    pub(super) fn begin(
        step: Step,
        peer: Peer,
        variants: &[Variant],
        name: &str,
        registry: &str,
    ) -> Result<Self> {
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

/// A running provider.
pub(super) struct Provider {
    pub(super) variant: Variant,
    port: u16,
    pub(super) program: Program,
    /// What its services answer; known when it is ready.
    pub(super) who: String,
}

impl Provider {
    pub(super) fn begin(variant: Variant, peer: Peer, name: &str, port: u16, registry: &str) -> Result<Self> {
        let (tag, application) = (variant.tag(), variant.application());
        let mut command = peer.command(Role::Provider, name)?;
        command.args(["--registry", registry, "--app", &application, "--name", &tag]);
        command.args(["--host", FIRST, "--port", &port.to_string()]);
        command.args(["--group", &tag, "--version", "2.0.0", "--greet-group", &tag, "--later", "greet"]);
        command.args(["--token", TOKEN, "--param", "timeout=5000", "--param", "sleep.timeout=300"]);
        command.args(["--register-mode", variant.mode]);
        if let Some(metadata) = variant.metadata {
            command.args(["--metadata", metadata]);
            if metadata == "local" && variant.mode == "instance" && variant.triple == Triple::None {
                // Elsewhere metadata is answered at the services' own port.
                command.args(["--metadata-port", &(port + 100).to_string()]);
            }
        }
        if variant.triple != Triple::None {
            command.args(["--tri-port", &(port + 100).to_string()]);
        }
        if variant.triple == Triple::Beside {
            // Else Java answers for its metadata over Triple alone.
            command.args(["--metadata-protocol", "dubbo"]);
        }
        Ok(Self { variant, port, program: Program::start(&mut command, name)?, who: String::new() })
    }

    pub(super) fn ready(&mut self) -> Result<()> {
        let words = self.program.ready()?;
        let pid = words.get(3).with_context(|| format!("READY line without a process number: {words:?}"))?;
        self.who = format!("{}#{pid}", self.variant.tag());
        Ok(())
    }

    /// Only the nodes of its register mode, and its metadata where it says it is.
    pub(super) fn check_registered(&self, tree: &Tree) -> Outcome {
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
        let named = said("dubbo.metadata-service.url-params");
        let is_over_triple = named.contains(r#""protocol":"tri""#);
        if is_over_triple != (self.variant.triple == Triple::ForMetadata) {
            bail!("the instance says of its metadata service: {named}");
        }
        Ok(format!("revision {revision}, metadata service {named}"))
    }
}

/// Whether the application has a node of this category at interface level.
pub(super) fn has_node(tree: &Tree, category: &str, application: &str) -> bool {
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
        assert_eq!(VARIANTS[7].tag(), "instance-local-over-triple");
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

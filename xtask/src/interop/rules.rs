//! The Java rule client: it writes rules as a Java administrator does, and shows the registry's tree, so that neither side has
//! to be believed.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use super::load::CHANGE;
use super::peer::{Peer, Role, Version};
use super::program::Program;

/// Each node's path and text.
pub(super) type Tree = BTreeMap<String, String>;

/// The rule client of a release.
pub(super) struct Rules {
    program: Program,
}

impl Rules {
    /// Starts it; its log and its home are called `name`.
    pub(super) fn start(version: Version, name: &str, registry: &str) -> Result<Self> {
        let rules = Self::begin(version, name, registry)?;
        rules.ready()?;
        Ok(rules)
    }

    /// As [`Self::start`], without waiting.
    pub(super) fn begin(version: Version, name: &str, registry: &str) -> Result<Self> {
        let mut command = Peer::Java(version).command(Role::Rules, name)?;
        let program = Program::start(command.args(["serve", "--registry", registry]), name)?;
        Ok(Self { program })
    }

    pub(super) fn ready(&self) -> Result<()> {
        self.program.ready().map(drop)
    }

    /// Gives a command, words separated by tabs, and waits until it is done; returns what the client says about it.
    pub(super) fn order(&mut self, command: &str) -> Result<String> {
        self.program.say(command)?;
        let answer = self
            .program
            .line_with(CHANGE, |line| line.starts_with("DONE ") || line.starts_with("FAILED "))?;
        match answer.strip_prefix("DONE ") {
            Some(done) => Ok(done.to_owned()),
            None => bail!("the rule client says: {answer}"),
        }
    }

    /// Publishes the migration rule of an application: all its references take this step.
    pub(super) fn migrate(&mut self, application: &str, step: &str) -> Result<()> {
        let key = format!("--key\t{application}.migration\t--config-group\tDUBBO_SERVICEDISCOVERY_MIGRATION");
        let rule = format!("key: {application}\\nstep: {step}\\n");
        self.order(&format!("publish\t{key}\t--content\t{rule}")).map(drop)
    }

    /// All nodes at and below `tops`, at this moment.
    pub(super) fn tree(&mut self, tops: &[&str]) -> Result<Tree> {
        let answer = self.order(&format!("tree\t{}", tops.join("\t")))?;
        let json = answer.strip_prefix("tree ").unwrap_or(&answer);
        serde_json::from_str(json).with_context(|| format!("not a tree: {json}"))
    }
}

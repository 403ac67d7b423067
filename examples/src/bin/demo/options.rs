//! The demo's command line.

use anyhow::{Result, bail};

/// What the demo was asked for.
#[derive(Debug)]
pub(crate) struct Options {
    /// Registry address.
    pub(crate) registry: String,
    /// How long the whole thing takes.
    pub(crate) seconds: f64,
}

const USAGE: &str = "usage: cargo demo [-- [--registry zookeeper://127.0.0.1:2181] [--seconds 15]]";

impl Options {
    pub(crate) fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self { registry: "memory://local".to_owned(), seconds: 15.0 };
        // `cargo demo -- --seconds 5`: cargo's alias ends with `--` already, so that a second one comes through.
        let mut arguments = arguments.filter(|argument| argument != "--");
        while let Some(argument) = arguments.next() {
            match (argument.as_str(), arguments.next()) {
                ("--registry", Some(address)) => options.registry = address,
                ("--seconds", Some(text)) => match text.parse() {
                    Ok(seconds) if (1.0..=3_600.0).contains(&seconds) => options.seconds = seconds,
                    _ => bail!("--seconds {text} is not a number from 1 to 3600; {USAGE}"),
                },
                _ => bail!("unknown or incomplete argument `{argument}`; {USAGE}"),
            }
        }
        Ok(options)
    }
}

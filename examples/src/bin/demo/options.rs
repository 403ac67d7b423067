//! The demo's command line.

use anyhow::{Result, bail};

/// What the demo was asked for.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) story: Story,
    /// Registry address.
    pub(crate) registry: String,
    /// How long the whole thing takes.
    pub(crate) seconds: f64,
}

/// What the demo tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Story {
    /// Providers and rules come and go.
    Changes,
    /// From registration by interface to registration by application (`--migrate`).
    Migration,
}

const USAGE: &str =
    "usage: cargo demo [-- [--migrate] [--registry zookeeper://127.0.0.1:2181] [--seconds 15]]";

impl Options {
    pub(crate) fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let registry = "memory://local".to_owned();
        let mut options = Self { story: Story::Changes, registry, seconds: 15.0 };
        // `cargo demo -- --seconds 5`: cargo's alias ends with `--` already, so that a second one comes through.
        let mut arguments = arguments.filter(|argument| argument != "--");
        while let Some(argument) = arguments.next() {
            if argument == "--migrate" {
                options.story = Story::Migration;
                continue;
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options> {
        Options::from_arguments(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_count_with_and_without_dashes_before_them() {
        for line in [
            "--seconds 5 --registry zookeeper://127.0.0.1:1",
            "-- --seconds 5 --registry zookeeper://127.0.0.1:1",
        ] {
            let options = read(line).unwrap();
            assert_eq!((options.seconds, options.registry.as_str()), (5.0, "zookeeper://127.0.0.1:1"));
        }
        assert_eq!(read("").unwrap().registry, "memory://local");
    }

    #[test]
    fn the_migration_is_told_on_request_wherever_that_stands() {
        for line in ["--migrate", "-- --migrate --seconds 5", "--seconds 5 --migrate", "--migrate --migrate"]
        {
            assert_eq!(read(line).unwrap().story, Story::Migration, "{line}");
        }
        for line in ["", "--seconds 5", "--registry --migrate"] {
            assert_eq!(read(line).unwrap().story, Story::Changes, "{line}");
        }
    }

    #[test]
    fn a_mistake_is_told_with_the_usage() {
        for line in
            ["--second 5", "--seconds", "--seconds soon", "--seconds 0", "--migrate 5", "--seconds --migrate"]
        {
            let text = read(line).unwrap_err().to_string();
            assert!(text.contains("usage: cargo demo"), "{line}: {text}");
        }
    }
}

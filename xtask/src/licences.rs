//! `check-licences`: what `cargo deny check licenses sources bans` would say, without having to build it.
//!
//! Reads the lists of `deny.toml` that this workspace uses and compares them with `cargo metadata`.

use std::fs;

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand};
use serde::Deserialize;

use crate::workspace;

/// Reads `deny.toml` and all packages that the workspace can reach; fails with all violations at once.
pub(crate) fn run() -> Result<()> {
    let root = workspace::root();
    let text = fs::read_to_string(root.join("deny.toml")).context("reading deny.toml")?;
    let rules: Rules = toml::from_str(&text).context("reading deny.toml")?;
    let packages = read(MetadataCommand::new().current_dir(root).exec()?);
    let violations = check(&rules, &packages);
    if violations.is_empty() {
        println!("check-licences: {} packages, all allowed by deny.toml", packages.len());
        return Ok(());
    }
    bail!("check-licences: {} violations of deny.toml\n  {}", violations.len(), violations.join("\n  "))
}

/// The part of `deny.toml` that is understood here.
#[derive(Debug, Deserialize)]
struct Rules {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Banned>,
}

#[derive(Debug, Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// Where it comes from; nothing for a member of the workspace.
    source: Option<String>,
}

fn read(metadata: Metadata) -> Vec<Package> {
    let package = |package: cargo_metadata::Package| Package {
        name: package.name.to_string(),
        version: package.version.to_string(),
        licence: package.license,
        source: package.source.map(|source| source.repr),
    };
    metadata.packages.into_iter().map(package).collect()
}

fn check(rules: &Rules, packages: &[Package]) -> Vec<String> {
    let mut violations = Vec::new();
    for Package { name, version, licence, source } in packages {
        let mut allowed: Vec<&str> = rules.licenses.allow.iter().map(String::as_str).collect();
        for exception in rules.licenses.exceptions.iter().filter(|exception| exception.name == *name) {
            allowed.extend(exception.allow.iter().map(String::as_str));
        }
        match licence {
            Some(expression) if is_allowed(expression, &allowed) => {}
            Some(expression) => {
                violations.push(format!("{name} {version}: the licence {expression} is not allowed"));
            }
            None => violations.push(format!("{name} {version}: no licence given")),
        }
        let known = |source: &String| {
            let address = source.trim_start_matches("registry+").trim_start_matches("sparse+");
            rules.sources.allow_registry.iter().any(|allowed| allowed == address)
        };
        if let Some(source) = source.as_ref().filter(|source| !known(source)) {
            violations.push(format!("{name} {version}: the source {source} is not allowed"));
        }
        if let Some(banned) = rules.bans.deny.iter().find(|banned| banned.name == *name) {
            violations.push(format!("{name} {version}: banned: {}", banned.reason));
        }
    }
    violations
}

/// Whether an SPDX expression can be met with the allowed licences. `AND` binds closer than `OR`; the old form with a
/// slash means `OR`.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words, allowed) && words.peek().is_none()
}

type Words<'a, 'b> = &'a mut std::iter::Peekable<std::str::SplitWhitespace<'b>>;

fn any(words: Words<'_, '_>, allowed: &[&str]) -> bool {
    let mut met = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words, allowed);
    }
    met
}

fn all(words: Words<'_, '_>, allowed: &[&str]) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: Words<'_, '_>, allowed: &[&str]) -> bool {
    match words.next() {
        Some("(") => {
            let met = any(words, allowed);
            words.next_if_eq(&")").is_some() && met
        }
        Some(licence) => match words.next_if_eq(&"WITH").and_then(|_| words.next()) {
            Some(exception) => allowed.contains(&format!("{licence} WITH {exception}").as_str()),
            None => allowed.contains(&licence),
        },
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: [&str; 4] = ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];

    #[track_caller]
    fn check_expression(expression: &str, met: bool) {
        assert_eq!(is_allowed(expression, &ALLOWED), met, "{expression}");
    }

    #[test]
    fn one_allowed_choice_is_enough() {
        check_expression("MIT", true);
        check_expression("MIT OR Apache-2.0", true);
        check_expression("GPL-3.0 OR MIT", true);
        check_expression("Unlicense/MIT", true);
        check_expression("GPL-3.0", false);
        check_expression("GPL-3.0 OR MPL-2.0", false);
    }

    #[test]
    fn every_part_of_a_conjunction_must_be_allowed() {
        check_expression("(MIT OR GPL-3.0) AND Unicode-3.0", true);
        check_expression("MIT AND GPL-3.0", false);
        check_expression("GPL-3.0 AND MIT OR Apache-2.0", true);
        check_expression("Apache-2.0 AND (GPL-3.0 OR MPL-2.0)", false);
    }

    #[test]
    fn an_exception_makes_another_licence_of_it() {
        check_expression("Apache-2.0 WITH LLVM-exception", true);
        check_expression("GPL-2.0 WITH Classpath-exception-2.0", false);
        check_expression("GPL-2.0 WITH Classpath-exception-2.0 OR MIT", true);
    }

    #[test]
    fn what_is_no_expression_is_not_allowed() {
        for text in ["", "MIT MIT", "(MIT", "MIT)", "OR MIT", "GPL-3.0 OR"] {
            check_expression(text, false);
        }
    }

    fn package(name: &str, licence: Option<&str>, source: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
            source: source.map(str::to_owned),
        }
    }

    #[test]
    fn each_kind_of_violation_is_named() {
        let rules: Rules = toml::from_str(
            r#"
            [licenses]
            allow = ["MIT"]
            exceptions = [{ allow = ["Zlib"], crate = "special" }]
            [bans]
            deny = [{ crate = "left-pad", reason = "we can pad" }]
            [sources]
            allow-registry = ["https://example.org/index"]
            "#,
        )
        .unwrap();
        let good = Some("registry+https://example.org/index");
        let packages = [
            package("fine", Some("MIT"), good),
            package("ours", Some("MIT"), None),
            package("special", Some("Zlib"), good),
            package("zlib", Some("Zlib"), good),
            package("silent", None, good),
            package("left-pad", Some("MIT"), good),
            package("forked", Some("MIT"), Some("git+https://example.org/forked")),
        ];
        let violations = check(&rules, &packages);
        assert_eq!(
            violations,
            [
                "zlib 1.0.0: the licence Zlib is not allowed",
                "silent 1.0.0: no licence given",
                "left-pad 1.0.0: banned: we can pad",
                "forked 1.0.0: the source git+https://example.org/forked is not allowed",
            ]
        );
    }
}

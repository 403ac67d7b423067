//! `check-layers`: the borders between the crates, as rules over `cargo metadata`.
//!
//! A crate that no rule knows counts as a layer crate, so a new one starts with the strictest rules.

use anyhow::{Result, bail};
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::workspace;

/// The only two crates of ours that a layer crate may know.
const GROUND: [&str; 2] = ["dubhe-common", "dubhe-core"];

/// Test support and the suites of the contracts, for dev-dependencies only.
const TESTKIT: &str = "dubhe-testkit";

/// The one library that wires the layers, and the programs beside it that may look behind it.
const FACADE: &str = "dubhe";
const MAY_NAME_SEVERAL: [&str; 5] = [FACADE, "dubhe-cli", "dubhe-benches", "dubhe-interop-peer", "xtask"];

/// The crate that shows what users write.
const EXAMPLES: &str = "dubhe-examples";

/// Crates that wait for the outside world, or exist to wait.
const WAITING: [&str; 17] = [
    "async-io",
    "async-std",
    "async-trait",
    "curl",
    "futures",
    "futures-core",
    "futures-util",
    "h2",
    "hyper",
    "mio",
    "notify",
    "reqwest",
    "smol",
    "socket2",
    "tokio",
    "tokio-util",
    "zookeeper-client",
];

/// Those of [`WAITING`] that define an interface and wait for nothing themselves: contracts may use them.
const WAITING_CONTRACTS: [&str; 3] = ["async-trait", "futures-core", "tokio"];

/// Crates that turn values into bytes.
const VALUE_FORMATS: [&str; 8] =
    ["bincode", "ciborium", "hessian2", "hessian_rs", "postcard", "prost", "rmp-serde", "serde-hessian"];

/// Clients of a ZooKeeper.
const ZOOKEEPER_CLIENTS: [&str; 3] = ["zookeeper-client", "zookeeper", "zookeeper-async"];

/// Reads the workspace's manifests and fails with all violations at once.
pub(crate) fn run() -> Result<()> {
    let crates = read()?;
    let violations = check(&crates);
    if violations.is_empty() {
        println!("check-layers: {} crates, no border crossed", crates.len());
        return Ok(());
    }
    bail!("check-layers: {} borders crossed\n  {}", violations.len(), violations.join("\n  "))
}

/// A workspace member as the rules see it.
#[derive(Debug, Clone, PartialEq)]
struct Crate {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone, PartialEq)]
struct Dependency {
    name: String,
    dev: bool,
    features: Vec<String>,
    ours: bool,
}

fn read() -> Result<Vec<Crate>> {
    let mut command = MetadataCommand::new();
    let metadata = command.current_dir(workspace::root()).no_deps().exec()?;
    let members = metadata.packages.into_iter().map(|package| Crate {
        name: package.name.to_string(),
        dependencies: package
            .dependencies
            .into_iter()
            .map(|dependency| Dependency {
                dev: dependency.kind == DependencyKind::Development,
                ours: dependency.path.is_some(),
                features: dependency.features,
                name: dependency.name,
            })
            .collect(),
    });
    Ok(members.collect())
}

/// Every crossed border, as a sentence that says what must not be.
fn check(crates: &[Crate]) -> Vec<String> {
    let mut violations = Vec::new();
    for one in crates {
        for dependency in &one.dependencies {
            let rules = [ours, waiting, zookeeper, value_formats, testkit];
            violations.extend(rules.iter().filter_map(|rule| rule(&one.name, dependency)));
        }
    }
    violations
}

/// Who may know which crate of ours.
fn ours(name: &str, dependency: &Dependency) -> Option<String> {
    let to = dependency.name.as_str();
    if !dependency.ours || to == TESTKIT || MAY_NAME_SEVERAL.contains(&name) {
        return None;
    }
    let (allowed, border): (&[&str], &str) = match name {
        "dubhe-common" => (&[], "the ground depends on no crate of ours"),
        TESTKIT => {
            (&GROUND, "the test kit knows contracts only, as its suites test any implementation of them")
        }
        "dubhe-macros" => (&[], "the macros depend on no crate of ours"),
        "dubhe-core" => (&["dubhe-common"], "the contracts depend on no crate of ours but dubhe-common"),
        EXAMPLES => (&[FACADE], "an example never looks behind the facade"),
        _ => (
            &GROUND,
            "a layer crate never depends on another layer crate: only on dubhe-common, dubhe-core and third parties",
        ),
    };
    (!allowed.contains(&to)).then(|| format!("{name} must not depend on {to}: {border}"))
}

/// Who must not wait.
fn waiting(name: &str, dependency: &Dependency) -> Option<String> {
    let to = dependency.name.as_str();
    if !WAITING.contains(&to) {
        return None;
    }
    match name {
        "dubhe-router" | "dubhe-loadbalance" => {
            Some(format!("{name} must not depend on {to}: it does no I/O and never awaits, in tests neither"))
        }
        "dubhe-common" => {
            Some(format!("{name} must not depend on {to}: the ground has no runtime and no I/O"))
        }
        "dubhe-core" if dependency.dev => None,
        "dubhe-core" if !WAITING_CONTRACTS.contains(&to) => {
            Some(format!("{name} must not depend on {to}: contracts do no I/O"))
        }
        "dubhe-core" if to == "tokio" => {
            let feature = dependency.features.iter().find(|feature| *feature != "sync")?;
            Some(format!(
                "{name} must not switch on tokio's feature {feature}: contracts need no runtime, only `sync`"
            ))
        }
        _ => None,
    }
}

/// Who must not know ZooKeeper.
fn zookeeper(name: &str, dependency: &Dependency) -> Option<String> {
    let (to, back_end) = (dependency.name.as_str(), "dubhe-registry-zookeeper");
    let looks_inside = dependency.dev && MAY_NAME_SEVERAL.contains(&name);
    (ZOOKEEPER_CLIENTS.contains(&to) && name != back_end && !looks_inside)
        .then(|| format!("{name} must not depend on {to}: only {back_end} knows ZooKeeper"))
}

/// Who must not know how values become bytes.
fn value_formats(name: &str, dependency: &Dependency) -> Option<String> {
    let to = dependency.name.as_str();
    (VALUE_FORMATS.contains(&to) && !name.starts_with("dubhe-serialize-"))
        .then(|| format!("{name} must not depend on {to}: only dubhe-serialize-* knows the bytes of values"))
}

/// The test kit stays out of everything that ships.
fn testkit(name: &str, dependency: &Dependency) -> Option<String> {
    let beside = MAY_NAME_SEVERAL.contains(&name) && name != FACADE;
    (dependency.name == TESTKIT && !dependency.dev && !beside)
        .then(|| format!("{name} must not depend on {TESTKIT} except as a dev-dependency: it is for tests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependency(text: &str) -> Dependency {
        // "dev name" or "name" or "name+feature+feature"
        let (dev, text) = text.strip_prefix("dev ").map_or((false, text), |rest| (true, rest));
        let mut parts = text.split('+').map(str::to_owned);
        let name = parts.next().unwrap();
        let ours = name.starts_with("dubhe");
        Dependency { name, dev, features: parts.collect(), ours }
    }

    fn violations(name: &str, dependencies: &[&str]) -> Vec<String> {
        let dependencies = dependencies.iter().map(|text| dependency(text)).collect();
        check(&[Crate { name: name.to_owned(), dependencies }])
    }

    #[track_caller]
    fn check_crossed(name: &str, dependency: &str, says: &str) {
        let found = violations(name, &["serde", dependency]);
        assert_eq!(found.len(), 1, "{name} -> {dependency}: {found:?}");
        assert!(found[0].contains(says), "{}", found[0]);
    }

    #[track_caller]
    fn check_allowed(name: &str, dependencies: &[&str]) {
        assert_eq!(violations(name, dependencies), Vec::<String>::new());
    }

    #[test]
    fn a_layer_crate_must_not_know_another_one() {
        check_crossed(
            "dubhe-directory",
            "dubhe-registry",
            "dubhe-directory must not depend on dubhe-registry",
        );
        check_crossed("dubhe-directory", "dev dubhe-registry", "a layer crate never depends on another");
        check_crossed("dubhe-new-thing", "dubhe", "a layer crate never depends on another");
        check_allowed("dubhe-directory", &["dubhe-common", "dubhe-core", "dev dubhe-testkit", "tokio+rt"]);
    }

    #[test]
    fn facade_and_programs_may_name_several() {
        for name in MAY_NAME_SEVERAL {
            check_allowed(name, &["dubhe-registry", "dubhe-router", "dubhe-common", "tokio+full"]);
        }
    }

    #[test]
    fn examples_must_not_look_behind_the_facade() {
        check_crossed("dubhe-examples", "dubhe-registry", "never looks behind the facade");
        check_allowed("dubhe-examples", &["dubhe", "tokio+full", "dev dubhe-testkit"]);
    }

    #[test]
    fn ground_contracts_macros_and_test_kit_know_nothing_above_them() {
        check_crossed("dubhe-common", "dubhe-core", "the ground depends on no crate of ours");
        check_crossed("dubhe-core", "dubhe-router", "no crate of ours but dubhe-common");
        check_crossed("dubhe-macros", "dubhe-core", "the macros depend on no crate of ours");
        check_crossed("dubhe-testkit", "dubhe-registry", "the test kit knows contracts only");
    }

    #[test]
    fn router_and_load_balance_must_not_wait() {
        for name in ["dubhe-router", "dubhe-loadbalance"] {
            check_crossed(name, "tokio+sync", "does no I/O and never awaits");
            check_crossed(name, "dev tokio+full", "does no I/O and never awaits");
            check_crossed(name, "async-trait", "does no I/O and never awaits");
        }
    }

    #[test]
    fn ground_has_no_tokio_and_contracts_have_no_runtime() {
        check_crossed("dubhe-common", "tokio+sync", "no runtime and no I/O");
        check_crossed("dubhe-core", "tokio+sync+rt", "tokio's feature rt");
        check_crossed("dubhe-core", "hyper", "contracts do no I/O");
        check_allowed("dubhe-core", &["tokio+sync", "async-trait", "dev tokio+full"]);
    }

    #[test]
    fn only_the_back_end_knows_zookeeper() {
        check_crossed("dubhe-registry", "zookeeper-client", "only dubhe-registry-zookeeper knows ZooKeeper");
        check_crossed("dubhe-registry", "dev zookeeper-client", "only dubhe-registry-zookeeper");
        check_crossed("dubhe", "zookeeper-client", "only dubhe-registry-zookeeper");
        check_allowed("dubhe-registry-zookeeper", &["zookeeper-client+tokio"]);
    }

    #[test]
    fn only_serialize_crates_know_bytes_of_values() {
        check_crossed("dubhe-protocol-dubbo", "hessian2", "only dubhe-serialize-* knows");
        check_allowed("dubhe-serialize-protobuf", &["prost"]);
    }

    #[test]
    fn the_test_kit_must_not_ship() {
        check_crossed("dubhe-registry", "dubhe-testkit", "it is for tests");
        check_crossed("dubhe", "dubhe-testkit", "it is for tests");
        check_allowed("dubhe-benches", &["dubhe-testkit"]);
    }

    #[test]
    fn every_member_of_this_workspace_is_seen() {
        let crates = read().unwrap();
        let names: Vec<_> = crates.iter().map(|one| one.name.as_str()).collect();
        for name in ["dubhe", "dubhe-common", "dubhe-core", "dubhe-router", "dubhe-testkit", "xtask"] {
            assert!(names.contains(&name), "{name} is missing in {names:?}");
        }
        let router = crates.iter().find(|one| one.name == "dubhe-router").unwrap();
        assert!(router.dependencies.iter().any(|dependency| dependency.ours));
    }
}

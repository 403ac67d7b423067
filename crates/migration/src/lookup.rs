//! What a rule, the consumer's parameters and the properties say for one reference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use dubhe_common::{Url, keys};
use dubhe_core::migration::MigrationStep;

use crate::rule::{MigrationRule, SubRule, seconds};

/// Names of properties that stand behind rules and parameters.
pub mod property {
    /// The step.
    pub const STEP: &str = "dubbo.application.migration.step";
    /// The step, by its older name.
    pub const SERVICE_DISCOVERY_MIGRATION: &str = "dubbo.application.service-discovery.migration";
    /// The threshold.
    pub const THRESHOLD: &str = "dubbo.application.migration.threshold";
    /// Milliseconds after which a local rule file is applied.
    pub const LOCAL_RULE_DELAY: &str = "dubbo.application.migration.delay";
}

/// Properties of the application by their names in Dubbo; those of [`property`] are looked at.
pub type Properties = Arc<BTreeMap<String, String>>;

/// Threshold when nothing says one: one address is enough. Origin: `DefaultMigrationAddressComparator` of Dubbo 3.3.
const DEFAULT_THRESHOLD: f32 = 0.0;
/// Percent of calls that may go by application when nothing says. Origin: `MigrationRule.getProportion` of Dubbo 3.3.
const DEFAULT_PROPORTION: i32 = 100;

/// What is in force for one reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// The step to reach.
    pub step: MigrationStep,
    /// Who said so.
    pub step_origin: Origin,
    /// Least ratio of the new side's usable addresses to the old side's; 0 or more.
    pub threshold: f32,
    /// Percent of calls that may go by application in `APPLICATION_FIRST`, 0 to 100.
    pub proportion: u8,
    /// How long a switch may wait for addresses.
    pub delay: Duration,
    /// Whether to switch without enough addresses when the wait is over.
    pub force: bool,
}

/// Where a value was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The rule's part for this service.
    InterfaceRule,
    /// The rule's part for this provider application.
    ApplicationRule(Arc<str>),
    /// The rule itself.
    Rule,
    /// The consumer's URL.
    Parameter,
    /// A property, by its name.
    Property(&'static str),
    /// Nothing said anything.
    Default,
    /// The code: the registry knows one kind of discovery only.
    Fixed,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InterfaceRule => f.write_str("the rule for the interface"),
            Self::ApplicationRule(application) => write!(f, "the rule for the application `{application}`"),
            Self::Rule => f.write_str("the rule"),
            Self::Parameter => write!(f, "the consumer's parameter `{}`", keys::MIGRATION_STEP),
            Self::Property(name) => write!(f, "the property `{name}`"),
            Self::Default => f.write_str("the default"),
            Self::Fixed => f.write_str("a registry that knows no other discovery"),
        }
    }
}

impl Effective {
    /// What holds for a reference whose registry knows applications only (`service-discovery-registry://`), whatever the rules say.
    pub const fn application_only() -> Self {
        Self::fixed(MigrationStep::ForceApplication)
    }

    /// What holds for a reference whose registry knows interfaces only, whatever the rules say.
    pub const fn interface_only() -> Self {
        Self::fixed(MigrationStep::ForceInterface)
    }

    const fn fixed(step: MigrationStep) -> Self {
        Self {
            step,
            step_origin: Origin::Fixed,
            threshold: 1.0,
            proportion: 100,
            delay: Duration::ZERO,
            force: false,
        }
    }
}

/// Finds what is in force for one reference: field by field, the first that says something of
///
/// 1. the rule's `interfaces` part for the service's key without group,
/// 2. the rule's `applications` part for an application that the interface is mapped to, in the order of their names,
/// 3. the rule,
/// 4. the consumer's parameter (`migration.step`, `.threshold`, `.promotion`, `.delay`, `.force`),
/// 5. for the step and the threshold, a [`property`],
/// 6. the default: `APPLICATION_FIRST`, 0.0, 100, 0, false.
///
/// Nothing of the answer is kept, so that one reference's parameters never become another's. A parameter or property that cannot be
/// read is warned of once and left out.
#[derive(Clone, Debug)]
pub struct Lookup {
    display_key: String,
    outside: Outside,
}

/// What parameters and properties say; it never changes.
#[derive(Clone, Debug, Default)]
struct Outside {
    step: Option<(MigrationStep, Origin)>,
    threshold: Option<f32>,
    proportion: Option<i32>,
    delay: Option<i32>,
    force: Option<bool>,
}

impl Lookup {
    /// The lookup for the reference of `consumer`.
    pub fn new(consumer: &Url, properties: &BTreeMap<String, String>) -> Self {
        let parameter =
            |key| consumer.param(key).filter(|text| !text.trim().is_empty()).map(|text| (key, text));
        let property = |key: &'static str| {
            properties
                .get(key)
                .map(String::as_str)
                .filter(|text| !text.trim().is_empty())
                .map(|text| (key, text))
        };
        let step = |found: Option<(&'static str, &str)>, origin: Origin| {
            read::<MigrationStep>(consumer, found).map(|step| (step, origin))
        };
        let outside = Outside {
            step: step(parameter(keys::MIGRATION_STEP), Origin::Parameter)
                .or_else(|| step(property(property::STEP), Origin::Property(property::STEP)))
                .or_else(|| {
                    let name = property::SERVICE_DISCOVERY_MIGRATION;
                    step(property(name), Origin::Property(name))
                }),
            threshold: read(consumer, parameter(keys::MIGRATION_THRESHOLD))
                .filter(is_said)
                .or_else(|| read(consumer, property(property::THRESHOLD)).filter(is_said)),
            proportion: read(consumer, parameter(keys::MIGRATION_PROMOTION)),
            delay: read(consumer, parameter(keys::MIGRATION_DELAY)),
            force: read(consumer, parameter(keys::MIGRATION_FORCE)),
        };
        Self { display_key: consumer.display_service_key(), outside }
    }

    /// What is in force with `rule` for an interface that is mapped to `applications`.
    pub fn effective(&self, rule: &MigrationRule, applications: &BTreeSet<Arc<str>>) -> Effective {
        let parts = Parts {
            interface: rule.of_interface(&self.display_key),
            applications: applications
                .iter()
                .filter_map(|name| rule.of_application(name).map(|part| (name, part)))
                .collect(),
        };
        let outside = &self.outside;
        let (step, step_origin) = parts
            .first(|part| part.step)
            .or_else(|| rule.step.map(|step| (step, Origin::Rule)))
            .or_else(|| outside.step.clone())
            .unwrap_or((MigrationStep::default(), Origin::Default));
        let threshold = parts
            .value(|part| part.threshold.filter(is_said), rule.threshold.filter(is_said))
            .or(outside.threshold)
            .unwrap_or(DEFAULT_THRESHOLD);
        let proportion = parts
            .value(|part| part.proportion, rule.proportion)
            .or(outside.proportion)
            .unwrap_or(DEFAULT_PROPORTION);
        let delay = parts.value(|part| part.delay, rule.delay).or(outside.delay).unwrap_or(0);
        let force = parts.value(|part| part.force, rule.force).or(outside.force).unwrap_or(false);
        let proportion = u8::try_from(proportion.clamp(0, 100)).unwrap_or(100);
        Effective { step, step_origin, threshold, proportion, delay: seconds(delay), force }
    }
}

/// The parts of a rule that concern one reference.
struct Parts<'a> {
    interface: Option<&'a SubRule>,
    applications: Vec<(&'a Arc<str>, &'a SubRule)>,
}

impl Parts<'_> {
    fn first<T>(&self, field: impl Fn(&SubRule) -> Option<T>) -> Option<(T, Origin)> {
        let of_interface = self.interface.and_then(&field).map(|value| (value, Origin::InterfaceRule));
        of_interface.or_else(|| {
            let named = |(name, part): &(&Arc<str>, &SubRule)| {
                field(part).map(|value| (value, Origin::ApplicationRule(Arc::clone(name))))
            };
            self.applications.iter().find_map(named)
        })
    }

    fn value<T>(&self, field: impl Fn(&SubRule) -> Option<T>, of_rule: Option<T>) -> Option<T> {
        self.first(field).map(|(value, _)| value).or(of_rule)
    }
}

/// A negative threshold says nothing, in rules and parameters.
fn is_said(threshold: &f32) -> bool {
    threshold.is_finite() && *threshold >= 0.0
}

fn read<T: FromStr>(consumer: &Url, found: Option<(&'static str, &str)>) -> Option<T> {
    let (name, text) = found?;
    let value = text.trim().parse().ok();
    if value.is_none() {
        tracing::warn!(
            rpc.service = %consumer.display_service_key(),
            name,
            value = text,
            "migration setting cannot be read, left out"
        );
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "
step: FORCE_APPLICATION
threshold: 0.9
delay: 9
interfaces: [{serviceKey: 'demo.Greeter:1.0.0', step: FORCE_INTERFACE, threshold: 0.7}]
applications:
  - {serviceKey: stock, step: APPLICATION_FIRST, threshold: 0.8, proportion: 80}
  - {serviceKey: archive, proportion: 20, force: true}
";

    fn consumer(query: &str) -> Url {
        Url::parse(&format!("consumer://192.0.2.9/demo.Greeter?interface=demo.Greeter{query}")).unwrap()
    }

    fn properties(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn applications(names: &[&str]) -> BTreeSet<Arc<str>> {
        names.iter().copied().map(Arc::from).collect()
    }

    fn lookup(consumer: &Url, props: &[(&str, &str)], rule: &str, apps: &[&str]) -> Effective {
        let rule = MigrationRule::parse(rule).unwrap();
        Lookup::new(consumer, &properties(props)).effective(&rule, &applications(apps))
    }

    #[test]
    fn each_field_comes_from_the_first_that_says_it() {
        let found = lookup(&consumer("&version=1.0.0&group=g"), &[], RULE, &["stock", "archive"]);
        assert_eq!((found.step, found.step_origin), (MigrationStep::ForceInterface, Origin::InterfaceRule));
        assert_eq!((found.threshold, found.proportion), (0.7, 20));
        assert_eq!((found.delay, found.force), (Duration::from_secs(9), true));
    }

    #[test]
    fn an_interface_part_counts_for_its_version_only() {
        let found = lookup(&consumer("&version=2.0.0"), &[], RULE, &["stock"]);
        assert_eq!(found.step_origin, Origin::ApplicationRule("stock".into()));
        assert_eq!((found.step, found.threshold), (MigrationStep::ApplicationFirst, 0.8));
    }

    #[test]
    fn an_application_part_counts_only_for_interfaces_mapped_to_it() {
        let found = lookup(&consumer(""), &[], RULE, &["other"]);
        assert_eq!((found.step, found.step_origin), (MigrationStep::ForceApplication, Origin::Rule));
        assert_eq!((found.threshold, found.proportion), (0.9, 100));
    }

    #[test]
    fn parameters_stand_behind_the_rule_and_before_properties() {
        let consumer = consumer(
            "&migration.step=FORCE_INTERFACE&migration.threshold=0.3&migration.promotion=30&migration.delay=3&migration.force=true",
        );
        let props = [(property::STEP, "FORCE_APPLICATION"), (property::THRESHOLD, "0.2")];
        let found = lookup(&consumer, &props, "", &[]);
        let expected = Effective {
            step: MigrationStep::ForceInterface,
            step_origin: Origin::Parameter,
            threshold: 0.3,
            proportion: 30,
            delay: Duration::from_secs(3),
            force: true,
        };
        assert_eq!(found, expected);
        assert_eq!(lookup(&consumer, &props, "step: APPLICATION_FIRST", &[]).step_origin, Origin::Rule);
    }

    #[test]
    fn properties_stand_before_the_default_and_the_older_name_behind_the_newer() {
        let older = (property::SERVICE_DISCOVERY_MIGRATION, "FORCE_INTERFACE");
        let newer = (property::STEP, "FORCE_APPLICATION");
        assert_eq!(lookup(&consumer(""), &[older], "", &[]).step, MigrationStep::ForceInterface);
        assert_eq!(lookup(&consumer(""), &[older, newer], "", &[]).step, MigrationStep::ForceApplication);
        assert_eq!(
            lookup(&consumer(""), &[(property::THRESHOLD, "0.4")], "threshold: -1", &[]).threshold,
            0.4
        );
    }

    #[test]
    fn without_a_word_it_is_application_first_with_one_address_enough() {
        let expected = Effective {
            step: MigrationStep::ApplicationFirst,
            step_origin: Origin::Default,
            threshold: 0.0,
            proportion: 100,
            delay: Duration::ZERO,
            force: false,
        };
        assert_eq!(lookup(&consumer(""), &[], "", &[]), expected);
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let consumer = consumer(
            "&migration.step=whatever&migration.threshold=x&migration.promotion=y&migration.delay=-4",
        );
        let found = lookup(&consumer, &[(property::STEP, "no"), (property::THRESHOLD, "NaN")], "", &[]);
        assert_eq!(
            (found.step, found.threshold, found.proportion),
            (MigrationStep::ApplicationFirst, 0.0, 100)
        );
        assert_eq!(found.delay, Duration::ZERO);
    }

    #[test]
    fn proportions_out_of_range_are_the_nearest_in_range() {
        assert_eq!(lookup(&consumer(""), &[], "proportion: 250", &[]).proportion, 100);
        assert_eq!(lookup(&consumer(""), &[], "proportion: -3", &[]).proportion, 0);
    }

    // The reference stores the first reference's answer in the shared rule (registry.md 9.2).
    #[test]
    fn one_references_step_never_becomes_anothers() {
        let rule = MigrationRule::parse("threshold: 0.5").unwrap();
        let forced = Lookup::new(&consumer("&migration.step=FORCE_INTERFACE"), &BTreeMap::new());
        let plain = Lookup::new(&consumer(""), &BTreeMap::new());
        assert_eq!(forced.effective(&rule, &BTreeSet::new()).step, MigrationStep::ForceInterface);
        assert_eq!(plain.effective(&rule, &BTreeSet::new()).step, MigrationStep::ApplicationFirst);
    }
}

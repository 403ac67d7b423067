//! The rule document, as it stands in the config centre.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use dubhe_core::migration::MigrationStep;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// What the reference shows instead of a rule when there is none; as a text it is an empty rule.
const NO_RULE: &str = "INIT";

/// A migration rule. Text form: YAML.
///
/// ```yaml
/// key: shop
/// step: APPLICATION_FIRST
/// threshold: 1.0      # least ratio of application-level to interface-level addresses
/// proportion: 60      # percent of calls that may go by application
/// delay: 60           # seconds that a switch may wait for addresses
/// force: false        # switch after that even without enough of them
/// interfaces:
///   - { serviceKey: "demo.Greeter:1.0.0", step: FORCE_INTERFACE }
/// applications:
///   - { serviceKey: "stock", threshold: 0.5 }
/// ```
///
/// Each field may be missing; a field's value for one reference is looked up by [`crate::Lookup`]. Unknown keys are ignored.
/// A scalar may be quoted, as Java's parser has it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MigrationRule {
    /// Name of the consumer's application; for people.
    #[serde(deserialize_with = "scalar")]
    pub key: Option<String>,
    /// The step.
    #[serde(deserialize_with = "scalar")]
    pub step: Option<MigrationStep>,
    /// Least ratio of the new side's addresses to the old side's; negative is the same as missing.
    #[serde(deserialize_with = "scalar")]
    pub threshold: Option<f32>,
    /// Percent of calls that may go by application in `APPLICATION_FIRST`; 100 and more: all, 0 and less: none.
    #[serde(deserialize_with = "scalar")]
    pub proportion: Option<i32>,
    /// Seconds that a switch may wait for addresses; 0 and less: it does not wait.
    #[serde(deserialize_with = "scalar")]
    pub delay: Option<i32>,
    /// Whether to switch without enough addresses when the wait is over.
    #[serde(deserialize_with = "scalar")]
    pub force: Option<bool>,
    /// Values for single services; `serviceKey` is `interface` or `interface:version`.
    #[serde(deserialize_with = "list")]
    pub interfaces: Vec<SubRule>,
    /// Values for the services of a provider's application; `serviceKey` is its name.
    #[serde(deserialize_with = "list")]
    pub applications: Vec<SubRule>,
}

/// The part of a rule for one service or one provider application. Of several with one key the last counts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SubRule {
    /// Service or application.
    #[serde(rename = "serviceKey", deserialize_with = "scalar")]
    pub service_key: Option<String>,
    /// As in [`MigrationRule::step`].
    #[serde(deserialize_with = "scalar")]
    pub step: Option<MigrationStep>,
    /// As in [`MigrationRule::threshold`].
    #[serde(deserialize_with = "scalar")]
    pub threshold: Option<f32>,
    /// As in [`MigrationRule::proportion`].
    #[serde(deserialize_with = "scalar")]
    pub proportion: Option<i32>,
    /// As in [`MigrationRule::delay`].
    #[serde(deserialize_with = "scalar")]
    pub delay: Option<i32>,
    /// As in [`MigrationRule::force`].
    #[serde(deserialize_with = "scalar")]
    pub force: Option<bool>,
}

/// A text that is no migration rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Not YAML, or a value of the wrong kind.
    #[error("malformed migration rule, the previous one stays in force: {reason}")]
    Malformed {
        /// What and where, with line and column.
        reason: String,
    },
    /// More text than a rule can have.
    #[error(
        "migration rule of {bytes} bytes is too long, the previous one stays in force: at most {} are read",
        MigrationRule::MAX_BYTES
    )]
    TooLong {
        /// Its size.
        bytes: usize,
    },
}

impl MigrationRule {
    /// Longest text that is read, in bytes: as much as a ZooKeeper node holds.
    pub const MAX_BYTES: usize = 1024 * 1024;

    /// Reads a rule. An empty text is a rule that says nothing.
    ///
    /// # Errors
    /// The text is not YAML, a step or number cannot be read, or it is too long.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if text.len() > Self::MAX_BYTES {
            return Err(RuleError::TooLong { bytes: text.len() });
        }
        let text = text.trim();
        if text.is_empty() || text == NO_RULE {
            return Ok(Self::default());
        }
        match serde_saphyr::from_str::<Option<Self>>(text) {
            Ok(rule) => Ok(rule.unwrap_or_default()),
            Err(error) => Err(RuleError::Malformed { reason: first_line(&error.to_string()) }),
        }
    }

    /// The part for a service, by its key without group.
    pub fn of_interface(&self, display_key: &str) -> Option<&SubRule> {
        find(&self.interfaces, display_key)
    }

    /// The part for a provider application.
    pub fn of_application(&self, application: &str) -> Option<&SubRule> {
        find(&self.applications, application)
    }
}

/// What is wrong and where, without the lines of the text that the parser shows below.
fn first_line(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn find<'a>(rules: &'a [SubRule], key: &str) -> Option<&'a SubRule> {
    rules.iter().rev().find(|rule| rule.service_key.as_deref() == Some(key))
}

/// `delay` as a duration.
pub(crate) fn seconds(delay: i32) -> Duration {
    Duration::from_secs(u64::try_from(delay).unwrap_or(0))
}

/// A list that may be written as null.
fn list<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<SubRule>, D::Error> {
    Ok(Option::<Vec<SubRule>>::deserialize(input)?.unwrap_or_default())
}

/// A scalar that may be quoted, or null.
fn scalar<'de, D: Deserializer<'de>, T: Scalar>(input: D) -> Result<Option<T>, D::Error> {
    input.deserialize_any(ScalarVisitor(PhantomData))
}

/// What a scalar of a rule can be read as.
trait Scalar: Sized {
    const EXPECTED: &'static str;

    fn read(text: &str) -> Result<Self, String>;
}

impl Scalar for String {
    const EXPECTED: &'static str = "a text";

    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }
}

impl Scalar for MigrationStep {
    const EXPECTED: &'static str = "a migration step";

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|unknown: dubhe_core::migration::UnknownStep| unknown.to_string())
    }
}

impl Scalar for f32 {
    const EXPECTED: &'static str = "a ratio such as 1.0";

    fn read(text: &str) -> Result<Self, String> {
        number::<Self>(text, Self::EXPECTED).and_then(|ratio| {
            if ratio.is_finite() { Ok(ratio) } else { Err(format!("`{text}` is not {}", Self::EXPECTED)) }
        })
    }
}

impl Scalar for i32 {
    const EXPECTED: &'static str = "a whole number";

    fn read(text: &str) -> Result<Self, String> {
        number(text, Self::EXPECTED)
    }
}

impl Scalar for bool {
    const EXPECTED: &'static str = "true or false";

    fn read(text: &str) -> Result<Self, String> {
        // As in Java, case does not matter, and its parser knows more words; others are errors here instead of false.
        match &*text.to_ascii_lowercase() {
            "yes" | "on" => Ok(true),
            "no" | "off" => Ok(false),
            text => number(text, Self::EXPECTED),
        }
    }
}

fn number<T: FromStr>(text: &str, expected: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| {
        let shown: String = text.chars().take(64).collect();
        format!("`{shown}` is not {expected}")
    })
}

struct ScalarVisitor<T>(PhantomData<T>);

impl<'de, T: Scalar> Visitor<'de> for ScalarVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        T::read(text).map(Some).map_err(E::custom)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        self.visit_str(if value { "true" } else { "false" })
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_any(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"
key: shop
step: FORCE_APPLICATION
threshold: 0.8
proportion: 60
delay: 30
force: true
targetProportion: 10
interfaces:
  - serviceKey: demo.Greeter:1.0.0
    step: FORCE_INTERFACE
    threshold: 1
    proportion: 50
    delay: 5
    force: false
    note: unknown
applications:
  - serviceKey: stock
    step: APPLICATION_FIRST
"#;

    #[test]
    fn reads_every_field_and_ignores_unknown_ones() {
        let rule = MigrationRule::parse(FULL).unwrap();
        let greeter = SubRule {
            service_key: Some("demo.Greeter:1.0.0".into()),
            step: Some(MigrationStep::ForceInterface),
            threshold: Some(1.0),
            proportion: Some(50),
            delay: Some(5),
            force: Some(false),
        };
        let stock = SubRule {
            service_key: Some("stock".into()),
            step: Some(MigrationStep::ApplicationFirst),
            ..SubRule::default()
        };
        let expected = MigrationRule {
            key: Some("shop".into()),
            step: Some(MigrationStep::ForceApplication),
            threshold: Some(0.8),
            proportion: Some(60),
            delay: Some(30),
            force: Some(true),
            interfaces: vec![greeter],
            applications: vec![stock],
        };
        assert_eq!(rule, expected);
    }

    #[test]
    fn nothing_is_a_rule_that_says_nothing() {
        for text in ["", "  \n", "INIT", "---\n", "# only a comment\n", "{}"] {
            assert_eq!(MigrationRule::parse(text), Ok(MigrationRule::default()), "{text:?}");
        }
    }

    #[test]
    fn quoted_scalars_and_nulls_are_read_as_java_reads_them() {
        let text = "key: 17\nstep: 'FORCE_INTERFACE'\nthreshold: \"0.5\"\ndelay: '3'\nforce: 'TRUE'\nproportion:\ninterfaces:\napplications: ~\n";
        let rule = MigrationRule::parse(text).unwrap();
        assert_eq!(rule.key.as_deref(), Some("17"));
        assert_eq!(rule.step, Some(MigrationStep::ForceInterface));
        assert_eq!((rule.threshold, rule.delay, rule.force), (Some(0.5), Some(3), Some(true)));
        assert_eq!(rule.proportion, None);
        assert!(rule.interfaces.is_empty() && rule.applications.is_empty());
        for (word, expected) in [("yes", true), ("On", true), ("NO", false), ("off", false), ("False", false)]
        {
            let rule = MigrationRule::parse(&format!("force: {word}")).unwrap();
            assert_eq!(rule.force, Some(expected), "{word}");
        }
    }

    #[test]
    fn malformed_text_says_what_and_where() {
        for (text, expected) in [
            ("step: force_interface", "unknown migration step `force_interface`"),
            ("step: [", "malformed migration rule"),
            ("threshold: much", "`much` is not a ratio"),
            ("threshold: .nan", "non-finite float"),
            ("proportion: 1.5", "is not a whole number"),
            ("delay: 99999999999", "is not a whole number"),
            ("force: perhaps", "`perhaps` is not true or false"),
            ("interfaces: 3", "malformed migration rule"),
            ("just words", "malformed migration rule"),
        ] {
            let error = MigrationRule::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected) && error.contains("the previous one stays"), "{text}: {error}");
        }
        let long = "#".repeat(MigrationRule::MAX_BYTES + 1);
        assert!(matches!(MigrationRule::parse(&long), Err(RuleError::TooLong { .. })));
    }

    #[test]
    fn of_several_parts_with_one_key_the_last_counts() {
        let text =
            "applications: [{serviceKey: a, delay: 1}, {serviceKey: b, delay: 2}, {serviceKey: a, delay: 3}]";
        let rule = MigrationRule::parse(text).unwrap();
        assert_eq!(rule.of_application("a").unwrap().delay, Some(3));
        assert_eq!(rule.of_application("c"), None);
    }

    #[test]
    fn deep_and_repeated_yaml_is_refused_or_read_but_never_explodes() {
        let nested = format!("interfaces: {}", "[".repeat(1_000_000));
        assert!(MigrationRule::parse(&nested).is_err());
        let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
        for (new, old) in "bcdefghij".chars().zip("abcdefghi".chars()) {
            bomb +=
                &format!("{new}: &{new} [*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old},*{old}]\n");
        }
        let _ = MigrationRule::parse(&bomb);
    }
}

//! What the environment says of this instance, for routers of its consumers: labels.

use std::collections::BTreeMap;

/// The labels themselves: `region=hangzhou; env=gray`.
const DUBBO_LABELS: &str = "DUBBO_LABELS";
/// Names of variables whose values are labels: `REGION, ENV`.
const DUBBO_ENV_KEYS: &str = "DUBBO_ENV_KEYS";

/// The labels that variables ask for (`EnvironmentAdapter`); `variable` looks one up.
///
/// The value of a variable that [`DUBBO_ENV_KEYS`] names is a label under that name, and under that name in lower case, as since 3.2 of
/// Java; it beats one of [`DUBBO_LABELS`]. One that is not set or empty gives none. As in Java, neither names nor values contain `=`; parts
/// of which that is not true are skipped, here with a warning.
pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let set = |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let mut labels = BTreeMap::new();
    let mut malformed = Vec::new();
    let text = set(DUBBO_LABELS).unwrap_or_default();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        match label(part) {
            Some((name, value)) => drop(labels.insert(name.to_owned(), value.to_owned())),
            None => malformed.push(part),
        }
    }
    let names = set(DUBBO_ENV_KEYS).unwrap_or_default();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        // No variable can have such a name; some platforms do not even let it be asked for.
        if name.contains(['=', '\0']) {
            malformed.push(name);
        } else if let Some(value) = set(name) {
            labels.insert(name.to_lowercase(), value.clone());
            labels.insert(name.to_owned(), value);
        }
    }
    if !malformed.is_empty() {
        tracing::warn!(
            parts = malformed.join(" "),
            "labels skipped: write DUBBO_LABELS as k1=v1;k2=v2 and DUBBO_ENV_KEYS as NAME1,NAME2"
        );
    }
    labels
}

fn label(part: &str) -> Option<(&str, &str)> {
    let (name, value) = part.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty() && !value.is_empty() && !value.contains('=')).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(environment: &[(&str, &str)], expected: &[(&str, &str)]) {
        let variable = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let labels = from_environment(variable);
        let labels: Vec<_> = labels.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(labels, expected, "{environment:?}");
    }

    #[test]
    fn labels_are_read_with_and_without_blanks() {
        check(&[], &[]);
        check(&[(DUBBO_LABELS, "region=hangzhou;env=gray")], &[("env", "gray"), ("region", "hangzhou")]);
        check(
            &[(DUBBO_LABELS, " region = hangzhou ;; env=gray; ")],
            &[("env", "gray"), ("region", "hangzhou")],
        );
        check(&[(DUBBO_LABELS, "a=1;a=2")], &[("a", "2")]);
    }

    #[test]
    fn variables_that_are_named_become_labels_under_their_name_also_in_lower_case() {
        let environment =
            [(DUBBO_ENV_KEYS, "REGION, zone ,, UNSET,EMPTY"), ("REGION", "hangzhou"), ("EMPTY", "")];
        let environment = [&environment[..], &[("zone", "b"), ("OTHER", "x")]].concat();
        check(&environment, &[("REGION", "hangzhou"), ("region", "hangzhou"), ("zone", "b")]);
    }

    #[test]
    fn a_variable_beats_a_label_of_its_name() {
        let environment = [(DUBBO_LABELS, "region=x;env=gray"), (DUBBO_ENV_KEYS, "REGION"), ("REGION", "y")];
        check(&environment, &[("REGION", "y"), ("env", "gray"), ("region", "y")]);
    }

    #[test]
    fn malformed_parts_are_skipped_and_the_others_kept() {
        check(&[(DUBBO_LABELS, "alone;=v;k=;a=b=c;ok=1;=")], &[("ok", "1")]);
        check(&[(DUBBO_ENV_KEYS, "A=B,C"), ("A=B", "x"), ("C", "1")], &[("C", "1"), ("c", "1")]);
    }
}

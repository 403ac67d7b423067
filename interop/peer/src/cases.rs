//! Runs cases one after the other and prints a JSON line for each.

use std::fmt::Debug;

use anyhow::{Result, bail, ensure};
use dubhe::{Exception, Value};
use serde_json::json;

use crate::out;

/// Longest detail of a line, characters.
const DETAIL: usize = 600;

/// Longest shown value, characters.
const SHOWN: usize = 150;

#[derive(Debug)]
pub(crate) struct Cases {
    only: String,
    failed: usize,
}

impl Cases {
    /// Runs those cases whose name starts with `only`.
    pub(crate) fn new(only: String) -> Self {
        Self { only, failed: 0 }
    }

    /// Runs a case; its output is a short text for the report.
    pub(crate) async fn run(&mut self, name: &str, body: impl Future<Output = Result<String>>) {
        if name.starts_with(&self.only) {
            match body.await {
                Ok(detail) => self.report(name, true, &detail),
                Err(error) => self.report(name, false, &format!("{error:#}")),
            }
        }
    }

    /// A case whose call must answer the expected value.
    pub(crate) async fn answers<T: PartialEq + Debug>(
        &mut self,
        name: &str,
        expected: T,
        call: impl Future<Output = dubhe::Result<T>>,
    ) {
        self.run(name, async { same(&expected, &call.await?) }).await;
    }

    pub(crate) fn report(&mut self, name: &str, ok: bool, detail: &str) {
        out::line(&json!({"case": name, "ok": ok, "detail": cut(detail, DETAIL)}).to_string());
        if !ok {
            self.failed += 1;
        }
    }

    pub(crate) fn failed(&self) -> usize {
        self.failed
    }
}

pub(crate) fn same<T: PartialEq + Debug + ?Sized>(expected: &T, actual: &T) -> Result<String> {
    ensure!(expected == actual, "expected {}, got {}", show(expected), show(actual));
    Ok(String::new())
}

/// As [`same`], for values that Java would call equal.
pub(crate) fn same_value(expected: &Value, actual: &Value) -> Result<String> {
    ensure!(
        equal(expected, actual),
        "expected {} ({:?}), got {} ({:?})",
        show(expected),
        expected.class(),
        show(actual),
        actual.class()
    );
    Ok(String::new())
}

/// Java's equality: the class of a collection does not count, arrays apart, nor does the order of a map's entries.
fn equal(a: &Value, b: &Value) -> bool {
    let is_array = |value: &Value| value.class().is_some_and(|class| class.starts_with('['));
    match (a, b) {
        (Value::List(left), Value::List(right)) => {
            is_array(a) == is_array(b)
                && left.items.len() == right.items.len()
                && left.items.iter().zip(&right.items).all(|(a, b)| equal(a, b))
        }
        (Value::Map(left), Value::Map(right)) => {
            let has = |(key, value): &(Value, Value)| {
                right.entries.iter().any(|(k, v)| equal(key, k) && equal(value, v))
            };
            left.entries.len() == right.entries.len() && left.entries.iter().all(has)
        }
        (Value::Object(left), Value::Object(right)) => {
            left.class == right.class
                && left.fields.len() == right.fields.len()
                && left
                    .fields
                    .iter()
                    .all(|(name, value)| right.field(name).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

/// Every expected field must be there and equal; more fields may be. Of lists of maps only the first counts.
pub(crate) fn same_fields(expected: &Value, actual: &Value, path: &str) -> Result<String> {
    match (expected, actual) {
        (Value::Map(fields), Value::Map(_)) => {
            for (name, value) in &fields.entries {
                let name = name.as_str().unwrap_or_default();
                let Some(actual) = actual.get(name) else { bail!("{path}{name} is missing in {actual}") };
                same_fields(value, actual, &format!("{path}{name}."))?;
            }
            Ok(String::new())
        }
        (Value::List(list), Value::List(got)) if matches!(list.items.first(), Some(Value::Map(_))) => {
            match (list.items.first(), got.items.first()) {
                (Some(one), Some(got)) => same_fields(one, got, &format!("{path}0.")),
                _ => bail!("{path}: an empty list"),
            }
        }
        _ => same_value(expected, actual).map_err(|error| error.context(path.to_owned())),
    }
}

/// The failure that the call must end with.
pub(crate) async fn failure<T: Debug>(call: impl Future<Output = dubhe::Result<T>>) -> Result<dubhe::Error> {
    match call.await {
        Ok(answer) => bail!("expected a failure, got the answer {}", show(&answer)),
        Err(error) => Ok(error),
    }
}

/// The exception of the service that the call must end with.
pub(crate) async fn thrown<T: Debug>(
    class: &str,
    call: impl Future<Output = dubhe::Result<T>>,
) -> Result<Exception> {
    let error = failure(call).await?;
    let Some(exception) = error.exception() else { bail!("expected {class}, got {error:?}") };
    ensure!(&*exception.class == class, "expected {class}, got {exception}");
    Ok(exception.clone())
}

fn show<T: Debug + ?Sized>(value: &T) -> String {
    cut(&format!("{value:?}"), SHOWN)
}

fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

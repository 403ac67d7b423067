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

/// Every expected field must be there and equal, at whatever place; more fields may be. Of lists of maps only the first counts.
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
        (Value::List(list), Value::List(got)) => {
            same(&list.items, &got.items).map_err(|error| error.context(path.to_owned()))
        }
        _ => same(expected, actual).map_err(|error| error.context(path.to_owned())),
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

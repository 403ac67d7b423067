//! The report's rows.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

/// One measured case. Fields that do not apply are left out of the JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Row {
    pub(crate) question: &'static str,
    pub(crate) case: String,
    pub(crate) n: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) median_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allocations: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) against: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ratio: Option<f64>,
}

impl Row {
    pub(crate) fn new(question: &'static str, case: impl Into<String>, n: usize) -> Self {
        Self { question, case: case.into(), n, ..Self::default() }
    }
}

/// All rows, in the order in which they were measured.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<Row>);

impl Report {
    /// Adds a row, and shows it on standard error: the whole takes a minute or two.
    pub(crate) fn add(&mut self, row: Row) {
        let figure = row
            .median_ns
            .map(time)
            .or(row.bytes.map(|bytes| format!("{bytes:.0} bytes")))
            .unwrap_or_default();
        eprintln!("{} / {} / {}: {figure}", row.question, row.case, row.n);
        self.0.push(row);
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let text = serde_json::to_string_pretty(&self.0)?;
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }
}

impl fmt::Display for Report {
    /// A table as the README has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| question | case | n | median | allocations | bytes | per second | ratio |")?;
        writeln!(f, "| --- | --- | --- | --- | --- | --- | --- | --- |")?;
        for row in &self.0 {
            let against = row.against.map(|floor| format!(" of {floor}")).unwrap_or_default();
            let ratio = row.ratio.map(|ratio| format!("{ratio:.2}{against}")).unwrap_or_default();
            writeln!(
                f,
                "| {} | {} | {} | {} | {} | {} | {} | {ratio} |",
                row.question,
                row.case,
                row.n,
                row.median_ns.map(time).unwrap_or_default(),
                row.allocations.map(|count| format!("{count:.2}")).unwrap_or_default(),
                row.bytes.map(|bytes| format!("{bytes:.0}")).unwrap_or_default(),
                row.per_second.map(rate).unwrap_or_default(),
            )?;
        }
        Ok(())
    }
}

fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate < 1e6 => format!("{rate:.0}"),
        rate => format!("{:.0} million", rate / 1e6),
    }
}

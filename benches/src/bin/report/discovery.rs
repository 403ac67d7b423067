//! Discovery at scale: each consumer in a process of its own, so that none finds memory that another one has left behind.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use dubhe_benches::scale::{self, Figures, Join, Model, Size};

use crate::table::{Report, Row};

const SIZE: Size = Size { interfaces: 1_000, instances: 500 };
/// Consumers of each model.
const RUNS: usize = 3;
/// Instances that join each consumer, one after the other.
const JOINS: usize = 11;
/// In place of the report's file: measure one consumer and print the figures as JSON.
const MODELS: [(&str, Model); 2] =
    [("--interface-level", Model::Interface), ("--application-level", Model::Application)];

/// The model that this process is to measure, if it is to measure one.
pub(crate) fn model(argument: &Path) -> Option<Model> {
    MODELS.iter().find(|(name, _)| Path::new(name) == argument).map(|(_, model)| *model)
}

/// Measures one consumer and prints the figures.
pub(crate) fn measure(model: Model) -> Result<()> {
    println!("{}", serde_json::to_string(&scale::measure(model, SIZE, JOINS)?)?);
    Ok(())
}

pub(crate) fn scale(report: &mut Report) -> Result<()> {
    let (mut interface, mut application) = (Vec::new(), Vec::new());
    // Taken in turns, so that other load on the machine meets both.
    for _ in 0..RUNS {
        for (name, model) in MODELS {
            let figures = in_its_own_process(name)?;
            match model {
                Model::Interface => interface.push(figures),
                Model::Application => application.push(figures),
            }
        }
    }
    let (interface, application) = (Medians::of(&interface), Medians::of(&application));
    interface.rows(report, "interface-level", None);
    application.rows(report, "application-level", Some(&interface));
    Ok(())
}

fn in_its_own_process(model: &str) -> Result<Figures> {
    let output = Command::new(std::env::current_exe()?).arg(model).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{model}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).with_context(|| format!("{model} gave {text}"))
}

struct Medians {
    resident: f64,
    held: f64,
    first_ns: f64,
    all_ns: f64,
    join: Join,
}

impl Medians {
    fn of(runs: &[Figures]) -> Self {
        let of_runs = |figure: fn(&Figures) -> f64| median(runs.iter().map(figure));
        let joins = || runs.iter().flat_map(|run| &run.joins);
        Self {
            resident: of_runs(|run| run.resident),
            held: of_runs(|run| run.held),
            first_ns: of_runs(|run| run.first_ns),
            all_ns: of_runs(|run| run.all_ns),
            join: Join {
                ns: median(joins().map(|join| join.ns)),
                allocations: median(joins().map(|join| join.allocations)),
                bytes: median(joins().map(|join| join.bytes)),
            },
        }
    }

    /// With ratios to `other`.
    fn rows(&self, report: &mut Report, model: &str, other: Option<&Self>) {
        let pairs = SIZE.interfaces * SIZE.instances;
        let row = |case: &str, n, figure: fn(&Self) -> f64| Row {
            against: other.map(|_| "interface-level"),
            ratio: other.map(|other| figure(self) / figure(other)),
            ..Row::new("scale", format!("{model}, {case}"), n)
        };
        report.add(Row {
            bytes: Some(self.resident),
            ..row("resident per (interface, instance)", pairs, |it| it.resident)
        });
        report.add(Row {
            bytes: Some(self.held),
            ..row("heap per (interface, instance)", pairs, |it| it.held)
        });
        report.add(Row {
            median_ns: Some(self.first_ns),
            ..row("first interface routable", 1, |it| it.first_ns)
        });
        report.add(Row {
            median_ns: Some(self.all_ns),
            ..row("all interfaces routable", SIZE.interfaces, |it| it.all_ns)
        });
        report.add(Row {
            median_ns: Some(self.join.ns),
            allocations: Some(self.join.allocations),
            bytes: Some(self.join.bytes),
            ..row("one instance joins all interfaces", SIZE.interfaces, |it| it.join.ns)
        });
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

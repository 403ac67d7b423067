//! What came out, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

/// How one case ended: a remark, or why it failed.
pub(super) type Outcome = Result<String, String>;

/// One line of `interop-report.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Entry {
    peer: String,
    direction: String,
    mode: String,
    case: String,
    ok: bool,
    detail: String,
}

/// All outcomes of a run, in order.
#[derive(Debug, Default)]
pub(super) struct Report {
    entries: Vec<Entry>,
}

impl Report {
    pub(super) fn add(&mut self, peer: &str, direction: &str, mode: &str, case: &str, outcome: Outcome) {
        let ok = outcome.is_ok();
        if let Err(why) = &outcome {
            println!("interop: FAILED {direction} ({mode}) {peer} {case}: {why}");
        }
        self.entries.push(Entry {
            peer: peer.to_owned(),
            direction: direction.to_owned(),
            mode: mode.to_owned(),
            case: case.to_owned(),
            ok,
            detail: outcome.unwrap_or_else(|why| why),
        });
    }

    /// Adds a failure for each case that one peer of a direction ran and another did not.
    pub(super) fn complete(&mut self) {
        let mut missing = Vec::new();
        for block in self.blocks() {
            for (case, _) in &block.rows {
                for peer in block.peers.iter().filter(|peer| block.entry(case, peer).is_none()) {
                    missing.push((peer.clone(), block.direction.clone(), block.mode.clone(), case.clone()));
                }
            }
        }
        for (peer, direction, mode, case) in missing {
            self.add(&peer, &direction, &mode, &case, Err("did not run".to_owned()));
        }
    }

    pub(super) fn failures(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.ok).count()
    }

    pub(super) fn summary(&self) -> String {
        let failed = self.failures();
        format!("{} cases held, {failed} failed", self.entries.len() - failed)
    }

    /// A row for each case, a column for each peer, a block for each direction; then why what failed failed.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        for block in self.blocks() {
            let width = block.rows.iter().map(|(case, _)| case.len()).max().unwrap_or(0).max(20);
            let _ = write!(text, "{:width$}", format!("{} ({})", block.direction, block.mode));
            for peer in &block.peers {
                let _ = write!(text, "  {peer:>8}");
            }
            text.push('\n');
            for (case, _) in &block.rows {
                let _ = write!(text, "{case:width$}");
                for peer in &block.peers {
                    let word = match block.entry(case, peer) {
                        Some(entry) if entry.ok => "ok",
                        Some(_) => "FAILED",
                        None => "not run",
                    };
                    let _ = write!(text, "  {word:>8}");
                }
                text.push('\n');
            }
            text.push('\n');
        }
        for entry in self.entries.iter().filter(|entry| !entry.ok) {
            let Entry { peer, direction, mode, case, detail, .. } = entry;
            let _ = writeln!(text, "FAILED {direction} ({mode}) {peer} {case}: {detail}");
        }
        text
    }

    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.entries)?;
        fs::write(file, text + "\n").with_context(|| format!("writing {}", file.display()))
    }

    fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        for entry in &self.entries {
            let part = part(&entry.case);
            let same = |block: &Block<'_>| {
                block.direction == entry.direction && block.mode == entry.mode && block.part == part
            };
            let at = blocks.iter().position(same).unwrap_or_else(|| {
                let (direction, mode) = (entry.direction.clone(), entry.mode.clone());
                blocks.push(Block { direction, mode, part, peers: Vec::new(), rows: Vec::new() });
                blocks.len() - 1
            });
            blocks[at].add(entry);
        }
        blocks
    }
}

/// The entries of one direction, mode and part of the matrix: what every peer of a block must have run.
struct Block<'a> {
    direction: String,
    mode: String,
    part: &'static str,
    peers: Vec<String>,
    rows: Vec<(String, BTreeMap<String, &'a Entry>)>,
}

impl<'a> Block<'a> {
    fn add(&mut self, entry: &'a Entry) {
        if !self.peers.contains(&entry.peer) {
            self.peers.push(entry.peer.clone());
        }
        let at = self.rows.iter().position(|(case, _)| *case == entry.case).unwrap_or_else(|| {
            self.rows.push((entry.case.clone(), BTreeMap::new()));
            self.rows.len() - 1
        });
        self.rows[at].1.insert(entry.peer.clone(), entry);
    }

    fn entry(&self, case: &str, peer: &str) -> Option<&'a Entry> {
        let (_, row) = self.rows.iter().find(|(name, _)| name == case)?;
        row.get(peer).copied()
    }
}

/// The part of the matrix that a case belongs to. Not every peer takes part in each.
fn part(case: &str) -> &'static str {
    match case.split('/').next() {
        Some("discovery") => "discovery",
        Some("migration") => "migration",
        _ => "cases",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::default();
        report.add("2.7.23", "rust-to-java", "interface", "typed/string", Ok(String::new()));
        report.add("2.7.23", "rust-to-java", "interface", "typed/date", Err("no date".to_owned()));
        report.add("3.1.11", "rust-to-java", "interface", "typed/string", Ok(String::new()));
        report
    }

    #[test]
    fn a_case_that_another_peer_ran_is_a_failure() {
        let mut report = report();
        assert_eq!(report.failures(), 1);
        report.complete();
        assert_eq!(report.failures(), 2);
        assert_eq!(report.entries.last().unwrap().detail, "did not run");
        assert_eq!(report.summary(), "2 cases held, 2 failed");
    }

    #[test]
    fn a_peer_need_not_take_part_in_every_part() {
        let mut report = report();
        report.add(
            "3.1.11",
            "rust-to-java",
            "interface",
            "discovery/FORCE_INTERFACE/found",
            Ok(String::new()),
        );
        report.complete();
        assert!(
            !report
                .entries
                .iter()
                .any(|entry| entry.peer == "2.7.23" && entry.case.starts_with("discovery/"))
        );
    }

    #[test]
    fn the_table_has_a_column_for_each_peer_and_the_reasons_below() {
        let table = report().table();
        let lines: Vec<_> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(lines[0], ["rust-to-java", "(interface)", "2.7.23", "3.1.11"]);
        assert_eq!(lines[1], ["typed/string", "ok", "ok"]);
        assert_eq!(lines[2], ["typed/date", "FAILED", "not", "run"]);
        assert!(table.contains("FAILED rust-to-java (interface) 2.7.23 typed/date: no date"));
    }

    #[test]
    fn the_file_has_the_six_fields() {
        let folder = std::env::temp_dir().join(format!("xtask-report-{}", std::process::id()));
        report().write(&folder).unwrap();
        let text = fs::read_to_string(&folder).unwrap();
        fs::remove_file(&folder).unwrap();
        let entries: Vec<BTreeMap<String, serde_json::Value>> = serde_json::from_str(&text).unwrap();
        let fields: Vec<_> = entries[0].keys().map(String::as_str).collect();
        assert_eq!(fields, ["case", "detail", "direction", "mode", "ok", "peer"]);
    }
}

//! The sum of what `cargo test` prints after each test program.

/// Numbers of tests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    pub(crate) filtered: u64,
}

impl Totals {
    /// Adds the numbers of one line of output, if it is one of those that close a test program.
    pub(crate) fn add(&mut self, line: &str) {
        let Some((_, numbers)) = line.split_once("test result: ").and_then(|(_, rest)| rest.split_once(". "))
        else {
            return;
        };
        for part in numbers.split("; ") {
            let mut words = part.splitn(2, ' ');
            let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse::<u64>), words.next()) else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                "filtered out" => self.filtered += number,
                _ => {}
            }
        }
    }

    /// The closing lines: in cargo's own form, then for people.
    pub(crate) fn lines(&self) -> String {
        let Self { passed, failed, ignored, filtered } = self;
        let word = if *failed == 0 { "ok" } else { "FAILED" };
        format!(
            "test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; \
             {filtered} filtered out\n{passed} passed, {failed} failed"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_the_closing_lines_and_nothing_else() {
        let mut totals = Totals::default();
        for line in [
            "running 3 tests",
            "test tests::result_is_ok ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s",
            "test result: FAILED. 10 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s",
            "12 passed; 1 failed",
        ] {
            totals.add(line);
        }
        assert_eq!(totals, Totals { passed: 13, failed: 4, ignored: 1, filtered: 2 });
    }

    #[test]
    fn closes_as_cargo_does_and_with_a_plain_line() {
        let totals = Totals { passed: 7, failed: 0, ignored: 0, filtered: 0 };
        assert_eq!(
            totals.lines(),
            "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n7 passed, 0 failed"
        );
        let failed = Totals { failed: 1, ..totals };
        assert!(failed.lines().starts_with("test result: FAILED. 7 passed; 1 failed;"));
        assert!(failed.lines().ends_with("\n7 passed, 1 failed"));
    }
}

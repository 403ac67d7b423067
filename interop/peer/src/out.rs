//! The program's own lines.

/// Prints a line that the matrix reads.
#[expect(clippy::print_stdout, reason = "the lines are what the program is for")]
pub(crate) fn line(text: &str) {
    println!("{text}");
}

/// Tells a person why the program ends.
#[expect(clippy::print_stderr, reason = "a program talks to its user")]
pub(crate) fn log(text: &str) {
    eprintln!("{text}");
}

//! To be written first thing.
fn main() {}

//! Service traits and Java classes from annotated Rust items.

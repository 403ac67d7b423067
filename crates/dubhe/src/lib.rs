//! Apache Dubbo for Rust: refer and export services of a Dubbo fleet.

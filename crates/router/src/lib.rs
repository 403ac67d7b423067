//! Router chain of the cluster layer: compiled rules, explained decisions.

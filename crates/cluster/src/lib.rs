//! Fault tolerance of the cluster layer: failover, failfast.

//! Load balancers of the cluster layer.

//! Proxy layer: typed clients, generic invocation and provider skeletons.

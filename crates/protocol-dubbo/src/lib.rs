//! Protocol layer: the dubbo protocol, both roles.

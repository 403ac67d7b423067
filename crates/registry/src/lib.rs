//! Registry layer: interface-level registration and subscription over a tree, the local cache file and the in-memory registry.

//! What [`Registry`](dubhe_core::registry::Registry) promises.

//! Any text as a condition rule: reading and binding must not panic.

#![no_main]

use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::invocation::Invocation;
use dubhe_core::router::RouterChain;
use dubhe_router::{Chain, ConditionRouter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    if let Ok(rule) = ConditionRouter::parse(data) {
        let consumer = Url::builder("consumer", "192.0.2.9", 0).path("demo.Shop").build();
        let routes = Chain::builder(consumer).rule(rule).build().bind(&Arc::from([]));
        let call = Invocation::dynamic("buy", "", Vec::new());
        let _ = routes.candidates(&call);
        let _ = routes.explain(&call);
    }
});

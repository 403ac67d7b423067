//! What an address costs. Alone in this program, so that nothing else moves the numbers.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::{Url, UrlFactory, encode};

const ADDRESSES: usize = 100_000;
/// Bytes per address, everything included: the handle in the list, the factory's tables, allocator overhead.
const BUDGET: usize = 300;

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("linux has it");
    let pages: usize = statm.split(' ').nth(1).and_then(|field| field.parse().ok()).expect("second field");
    pages * 4096
}

/// No two addresses share their host: the worst case.
fn child(methods: &str, host: usize, round: usize) -> String {
    encode(&format!(
        "dubbo://10.{}.{}.{}:20880/org.example.shop.order.api.OrderService?anyhost=true&application=order-provider\
         &deprecated=false&dubbo=2.0.2&dynamic=true&generic=false&interface=org.example.shop.order.api.OrderService\
         &methods={methods}&pid={}&release=3.1.11&revision=1.4.2&service-name-mapping=true&side=provider&threads=200\
         &timeout=3000&timestamp={}",
        host >> 16,
        (host >> 8) & 255,
        host & 255,
        10_000 + host + round,
        1_700_000_000_000_usize + host + round,
    ))
}

// C95
#[test]
fn an_address_costs_no_more_than_what_is_its_own() {
    let factory = UrlFactory::new();
    let methods: Vec<String> = (0..40).map(|method| format!("operation{method}")).collect();
    let methods = methods.join(",");
    assert!(child(&methods, 0, 0).len() > 900, "the raw text is about 1 kB");
    let read = |round| -> Vec<Url> {
        (0..ADDRESSES).map(|number| factory.parse_encoded(&child(&methods, number, round)).unwrap()).collect()
    };
    let before = resident_bytes();
    let mut addresses = read(0);
    let each = (resident_bytes() - before) / ADDRESSES;
    assert!(each <= BUDGET, "{each} bytes per address");
    assert_eq!(factory.interned().param_sets, 1);

    // Later notifications replace every address; old and new are alive together for a moment, not longer.
    addresses = {
        let next = read(1);
        drop(addresses);
        next
    };
    let settled = resident_bytes();
    for round in 2..4 {
        addresses = {
            let next = read(round);
            drop(addresses);
            next
        };
    }
    let grown = resident_bytes().saturating_sub(settled);
    assert!(grown < settled / 10, "{grown} bytes more after two rounds over {settled}");
    assert_eq!(addresses.len(), ADDRESSES);
}

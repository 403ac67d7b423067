//! What an address costs. Alone in this program, so that nothing else moves the numbers.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::{AddressMerger, Params, Url, UrlFactory, encode};

const ADDRESSES: usize = 100_000;
/// Addresses replaced in each later round.
const REPLACED: usize = 10_000;
/// Bytes per address, everything included: the handle in the list, the factory's tables, allocator overhead.
const BUDGET: usize = 200;
/// The same with the address as the consumer sees it.
const BUDGET_OF_BOTH: usize = 350;

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("linux has it");
    let pages: usize = statm.split(' ').nth(1).and_then(|field| field.parse().ok()).expect("second field");
    pages * 4096
}

/// An encoded address with `HOST` and `START` to be filled in; about 1 kB.
fn template() -> String {
    let methods: Vec<String> = (0..40).map(|method| format!("operation{method}")).collect();
    encode(&format!(
        "dubbo://HOST:20880/org.example.shop.order.api.OrderService?anyhost=true&application=order-provider\
         &deprecated=false&dubbo=2.0.2&dynamic=true&generic=false&interface=org.example.shop.order.api.OrderService\
         &methods={}&pid=PID&release=3.1.11&revision=1.4.2&service-name-mapping=true&side=provider&threads=200\
         &timeout=3000&timestamp=START",
        methods.join(","),
    ))
}

/// No two addresses share their host: the worst case.
fn child(template: &str, number: usize, round: usize) -> String {
    let host = format!("10.{}.{}.{}", number >> 16, (number >> 8) & 255, number & 255);
    let start = (1_700_000_000_000_usize + number + round).to_string();
    template.replace("HOST", &host).replace("PID", &start[8..]).replace("START", &start)
}

// C95
#[test]
fn an_address_costs_no_more_than_what_is_its_own() {
    let factory = UrlFactory::new();
    let template = template();
    assert!(template.len() > 900, "the raw text is about 1 kB");
    let read = |number, round| factory.parse_encoded(&child(&template, number, round)).unwrap();
    let before = resident_bytes();
    let mut addresses: Vec<Url> = (0..ADDRESSES).map(|number| read(number, 0)).collect();
    let each = (resident_bytes() - before) / ADDRESSES;
    assert!(each <= BUDGET, "{each} bytes per address");
    assert_eq!(factory.interned().param_sets, 1);

    // Restarts replace addresses; what they leave is used again.
    let settled = resident_bytes();
    for round in 1..=4 {
        for (number, address) in addresses.iter_mut().enumerate().take(REPLACED) {
            *address = read(number, round);
        }
    }
    let grown = resident_bytes().saturating_sub(settled);
    assert!(grown < settled / 10, "{grown} bytes more after four restarts over {settled}");
    assert_eq!(addresses.len(), ADDRESSES);

    // The others stay, so that these use no memory that was used before.
    let before = resident_bytes();
    let consumer = Url::builder("consumer", "192.0.2.9", 0).param("timeout", 500).param("pid", 4_711).build();
    let mut merger = AddressMerger::new(&consumer, &Params::new()).with_factory(&factory);
    let seen: Vec<(Url, Url)> = (0..ADDRESSES)
        .map(|number| {
            let provider = read(number, 0);
            let merged = merger.merge(&provider);
            (provider, merged)
        })
        .collect();
    let each = resident_bytes().saturating_sub(before) / ADDRESSES;
    assert!(each <= BUDGET_OF_BOTH, "{each} bytes per address and its merged one");
    assert_eq!((seen.len() + addresses.len(), factory.interned().param_sets), (2 * ADDRESSES, 2));
}

//! A pick does not allocate once its list is prepared.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::hint::black_box;

use dubhe_core::load_balance::Candidates;
use support::{balancers, call, provider, weighing};

const PICKS: usize = 10_000;

#[test]
fn picks_cost_no_allocation_at_any_size() {
    for size in [10, 10_000] {
        let alike = weighing(&vec![100; size]);
        let different = weighing(&(0..size).map(|number| 1 + number as u32 % 9).collect::<Vec<_>>());
        let by_method = Candidates::new(
            (0..size)
                .map(|number| provider(number, &format!("get.weight={}", number % 5)))
                .collect::<Vec<_>>(),
        );
        for candidates in [alike, different, by_method] {
            for balancer in balancers() {
                let calls = [call("get"), call("set")];
                let pick = |at: usize| black_box(balancer.select(&candidates, &calls[at % 2])).is_some();
                (0..4).for_each(|at| assert!(pick(at)));
                let counted = allocation_counter::measure(|| (0..PICKS).for_each(|at| assert!(pick(at))));
                assert_eq!(counted.count_total, 0, "{} at {size}", balancer.name());
            }
        }
    }
}

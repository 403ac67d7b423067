//! What the report's figures of a pick must not lose: no allocation, whatever the size and the rule.

use dubhe_benches::measure::allocations;
use dubhe_benches::pick::{Picks, RULE};

#[tokio::test]
async fn a_whole_pick_allocates_nothing() -> anyhow::Result<()> {
    for n in [10, 10_000] {
        for balancer in ["random", "roundrobin"] {
            for rule in [None, Some(RULE)] {
                let picks = Picks::new(n, balancer, rule)?;
                // The first pick after a change prepares what the others use.
                drop(picks.pick());
                let (count, bytes) = allocations(|| {
                    for _ in 0..10_000 {
                        drop(picks.pick());
                    }
                });
                assert_eq!((count, bytes), (0, 0), "{n} providers, {balancer}, {rule:?}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_rule_keeps_every_pick_to_its_half() -> anyhow::Result<()> {
    let picks = Picks::new(10, "random", Some(RULE))?;
    for _ in 0..1_000 {
        assert_eq!(picks.pick().url().param("region"), Some("east"));
    }
    Ok(())
}

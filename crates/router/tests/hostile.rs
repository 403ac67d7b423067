//! Rules come from registries: any text must be read or refused, quickly and without a panic.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use dubhe_core::router::RouterChain;
use dubhe_router::{Chain, ConditionRouter, Dialect, MAX_RULE_BYTES, RuleError, address_fits};
use support::{call_with, consumer, many};

/// Pieces of which rules are made, and what does not belong into them.
const PIECES: [&str; 26] = [
    "host",
    "method",
    "arguments[0]",
    "arguments[",
    "attachments[a.b]",
    "attachments]",
    "consumer.",
    "=",
    "!=",
    "!",
    "&",
    ",",
    "=>",
    " ",
    "*",
    "$host",
    "$",
    "~",
    "1~5",
    "x~",
    "é",
    "\u{1F980}",
    "\t",
    "\u{0}",
    "true",
    "%3D",
];

#[test]
fn any_text_is_read_or_refused() {
    let list = many(4);
    let mut random = 7_u64;
    let mut next = |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % limit
    };
    let mut accepted = 0;
    for _ in 0..20_000 {
        let text: String = (0..next(12)).map(|_| PIECES[next(PIECES.len())]).collect();
        let _ = address_fits(&text, "10.0.0.1", 1);
        let _ = address_fits(&text, "2001:db8::1", 1);
        let Ok(rule) = ConditionRouter::parse(&text) else { continue };
        accepted += 1;
        let dialect = if next(2) == 0 { Dialect::Dubbo31 } else { Dialect::Dubbo33 };
        let rule = rule.with_force(next(2) == 0).with_dialect(dialect);
        let routes = Chain::builder(consumer()).rule(rule).build().bind(&list);
        let call = call_with("get", vec!["1".into()]).with_attachment("a.b", "1");
        let kept = routes.candidates(&call).unwrap();
        assert_eq!(routes.explain(&call).remaining.len(), kept.len(), "`{text}`");
    }
    assert!(accepted > 1_000);
}

#[test]
fn a_rule_without_end_is_refused() {
    let text = format!("=> host={}", "a,".repeat(MAX_RULE_BYTES));
    assert!(matches!(ConditionRouter::parse(&text), Err(RuleError::TooLong { .. })));
}

#[test]
fn a_rule_of_very_many_keys_is_read_in_time() {
    let text: String = (0..9_000).map(|at| format!("k{at}&")).collect();
    assert!(ConditionRouter::parse(&format!("{text}=>host=*")).is_ok());
}

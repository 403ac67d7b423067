//! From a text in the config centre to the steps of several references.

mod support;

use std::sync::Arc;
use std::time::Duration;

use dubhe_common::Url;
use dubhe_core::config_center::ConfigText;
use dubhe_core::observation::{Observation, Stamp};
use dubhe_migration::{LocalRule, MigrationInvoker, MigrationParts, RuleSource};
use support::{Application, Factory, Interface, call};
use tokio::sync::watch;

type Texts = watch::Sender<Observation<Option<ConfigText>>>;

fn publish(center: &Texts, version: i32, text: Option<&str>) {
    let known = Some(text.map(|text| ConfigText { text: text.into(), version }));
    center.send_replace(Observation { known, stamp: Stamp::default(), trouble: None });
}

/// A reference of `interface` with one provider of each kind.
async fn refer(source: &RuleSource, interface: &str, query: &str) -> MigrationInvoker {
    let factory = Arc::new(Factory::default());
    factory.interface.set(1);
    factory.application.set(1);
    let consumer = format!("consumer://192.0.2.9/{interface}?interface={interface}{query}");
    let mut parts = MigrationParts::new(Url::parse(&consumer).expect("a URL"), factory);
    parts.rules = Some(source.rules());
    let invoker = MigrationInvoker::start(parts);
    invoker.ready().await;
    settled(&invoker).await;
    invoker
}

async fn settled(invoker: &MigrationInvoker) -> &'static str {
    tokio::time::sleep(Duration::from_millis(1)).await;
    invoker.state().borrow().step.map_or("none", |step| step.name())
}

// registry.md 9.2: in the reference the step of the first reference becomes everyone's.
#[tokio::test(start_paused = true)]
async fn references_with_one_rule_keep_their_own_steps() {
    let center: Texts = watch::Sender::new(Observation::unknown());
    publish(&center, 1, Some("threshold: 0.5"));
    let source = RuleSource::follow("shop", Some(center.subscribe()), None);
    let forced = refer(&source, "demo.Forced", "&migration.step=FORCE_INTERFACE").await;
    let plain = refer(&source, "demo.Plain", "").await;
    assert_eq!((settled(&forced).await, settled(&plain).await), ("FORCE_INTERFACE", "APPLICATION_FIRST"));
    assert_eq!(call(&forced).await.unwrap(), Interface);
    assert_eq!(call(&plain).await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn a_published_rule_moves_every_reference_and_its_parts_move_single_ones() {
    let center: Texts = watch::Sender::new(Observation::unknown());
    let source = RuleSource::follow("shop", Some(center.subscribe()), None);
    let one = refer(&source, "demo.One", "").await;
    let two = refer(&source, "demo.Two", "&version=2.0.0").await;
    publish(
        &center,
        1,
        Some("step: FORCE_APPLICATION\ninterfaces: [{serviceKey: 'demo.Two:2.0.0', step: FORCE_INTERFACE}]"),
    );
    assert_eq!((settled(&one).await, settled(&two).await), ("FORCE_APPLICATION", "FORCE_INTERFACE"));
    publish(&center, 2, Some("step: FORCE_INTERFACE"));
    assert_eq!((settled(&one).await, settled(&two).await), ("FORCE_INTERFACE", "FORCE_INTERFACE"));
    publish(&center, 3, None);
    assert_eq!((settled(&one).await, settled(&two).await), ("APPLICATION_FIRST", "APPLICATION_FIRST"));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_rule_moves_nobody() {
    let center: Texts = watch::Sender::new(Observation::unknown());
    publish(&center, 1, Some("step: FORCE_APPLICATION"));
    let source =
        RuleSource::follow("shop", Some(center.subscribe()), Some(LocalRule::new("step: FORCE_INTERFACE")));
    let reference = refer(&source, "demo.One", "").await;
    publish(&center, 2, Some("step: FORCE_INTERFACE\nthreshold: [1"));
    assert_eq!(settled(&reference).await, "FORCE_APPLICATION");
    assert!(source.rules().borrow().refused.is_some());
    publish(&center, 3, Some("step: FORCE_INTERFACE"));
    assert_eq!(settled(&reference).await, "FORCE_INTERFACE");
}

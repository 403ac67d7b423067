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
    refer_over(source, interface, query, Arc::default()).await
}

async fn refer_over(
    source: &RuleSource,
    interface: &str,
    query: &str,
    factory: Arc<Factory>,
) -> MigrationInvoker {
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

#[tokio::test(start_paused = true)]
async fn a_rule_that_was_malformed_from_the_start_is_as_none_until_it_is_mended() {
    let center: Texts = watch::Sender::new(Observation::unknown());
    publish(&center, 1, Some("step: FORCE_SOMETHING"));
    let source = RuleSource::follow("shop", Some(center.subscribe()), None);
    let reference = refer(&source, "demo.One", "").await;
    assert_eq!(settled(&reference).await, "APPLICATION_FIRST");
    assert_eq!(call(&reference).await.unwrap(), Application);
    publish(&center, 2, Some("step: FORCE_INTERFACE"));
    assert_eq!(settled(&reference).await, "FORCE_INTERFACE");
}

// governance.md 2.1: in the reference one worker waits for all references, and a text that failed is not tried again.
#[tokio::test(start_paused = true)]
async fn a_reference_that_cannot_follow_a_rule_holds_up_no_other_and_follows_when_it_can() {
    let center: Texts = watch::Sender::new(Observation::unknown());
    publish(&center, 1, Some("step: FORCE_INTERFACE"));
    let source = RuleSource::follow("shop", Some(center.subscribe()), None);
    let (hanging, failing) = (Arc::new(Factory::default()), Arc::new(Factory::default()));
    hanging.application.hold_making(true);
    failing.application.set_broken(Some("denied"));
    let one = refer_over(&source, "demo.One", "", Arc::clone(&hanging)).await;
    let two = refer_over(&source, "demo.Two", "", Arc::clone(&failing)).await;
    let three = refer(&source, "demo.Three", "").await;
    publish(&center, 2, Some("step: FORCE_APPLICATION"));
    assert_eq!(settled(&three).await, "FORCE_APPLICATION");
    assert_eq!((settled(&one).await, settled(&two).await), ("FORCE_INTERFACE", "FORCE_INTERFACE"));
    for reference in [&one, &two] {
        assert_eq!(call(reference).await.unwrap(), Interface);
    }
    hanging.application.hold_making(false);
    failing.application.set_broken(None);
    assert_eq!(settled(&one).await, "FORCE_APPLICATION");
    let mut state = two.state();
    state.wait_for(|state| state.is_settled()).await.unwrap();
    assert_eq!(call(&two).await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn a_rule_published_while_a_reference_comes_up_is_not_missed() {
    for yields in 0..20 {
        let center: Texts = watch::Sender::new(Observation::unknown());
        let source = RuleSource::follow("shop", Some(center.subscribe()), None);
        let publishing = async {
            for _ in 0..yields {
                tokio::task::yield_now().await;
            }
            publish(&center, 1, Some("step: FORCE_INTERFACE"));
        };
        let (reference, ()) = tokio::join!(refer(&source, "demo.One", ""), publishing);
        assert_eq!(settled(&reference).await, "FORCE_INTERFACE", "after {yields} turns");
    }
}

// registry.md 9.2: the first step of a reference is the rule's, and makes no other side.
#[tokio::test(start_paused = true)]
async fn a_rule_that_comes_a_moment_after_the_reference_is_its_first_step() {
    let center: Texts = watch::Sender::new(Observation::unknown());
    let source = RuleSource::follow("shop", Some(center.subscribe()), None);
    let factory: Arc<Factory> = Arc::default();
    let reference = refer_over(&source, "demo.Greeter", "", Arc::clone(&factory));
    let answer = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        publish(&center, 1, Some("step: FORCE_APPLICATION\nthreshold: 9"));
    };
    let (invoker, ()) = tokio::join!(reference, answer);
    assert_eq!(settled(&invoker).await, "FORCE_APPLICATION");
    assert_eq!(factory.interface.made(), 0);
    assert_eq!(call(&invoker).await.unwrap(), Application);
}

#[tokio::test(start_paused = true)]
async fn a_config_centre_that_does_not_answer_keeps_no_reference_from_starting() {
    let center: Texts = watch::Sender::new(Observation::unknown());
    let source = RuleSource::follow("shop", Some(center.subscribe()), None);
    let start = tokio::time::Instant::now();
    let invoker = refer(&source, "demo.Greeter", "").await;
    assert_eq!(settled(&invoker).await, "APPLICATION_FIRST");
    assert!(start.elapsed() < Duration::from_secs(4));
    drop(center);
}

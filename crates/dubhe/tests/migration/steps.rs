//! The steps of the migration, by rules in the config centre, under load.

use dubhe::config::{ConfigCenterConfig, RegistryConfig};
use dubhe::core::migration::MigrationStep;
use dubhe::{Connected, MigrationExplanation, SideKind};
use dubhe_migration::SideState;

use crate::support::{
    BUYER, Fleet, Load, Shop, ShopClient, answers, on_every_store, prefers, until, until_callable,
    until_migration,
};

on_every_store! {
    no_call_fails_on_the_way_to_applications_and_back_while_providers_of_all_kinds_come_and_go
    a_step_that_would_lose_the_providers_is_blocked_until_they_are_there
    a_rule_that_is_there_before_the_start_is_in_force_at_the_first_call
}

/// Waits for a step that is reached, with what it has and nothing else.
async fn reached(
    shop: &Connected<ShopClient>,
    step: MigrationStep,
    preferred: SideKind,
) -> MigrationExplanation {
    let both = step == MigrationStep::ApplicationFirst;
    let here = |kind| both || kind == preferred;
    let expected = |kind| if here(kind) { SideState::Present } else { SideState::Absent };
    let now = until_migration(shop, step.name(), |now| {
        now.state.step == Some(step)
            && prefers(now, preferred)
            && now.interface.state == expected(SideKind::Interface)
            && now.application.state == expected(SideKind::Application)
    })
    .await;
    assert!(now.state.is_settled(), "{now}");
    assert_eq!(now.state.blocked, None, "{now}");
    assert_eq!(now.interface.status.is_some(), here(SideKind::Interface), "{now}");
    assert_eq!(now.application.status.is_some(), here(SideKind::Application), "{now}");
    now
}

async fn no_call_fails_on_the_way_to_applications_and_back_while_providers_of_all_kinds_come_and_go(
    fleet: Fleet,
) {
    use MigrationStep::{ApplicationFirst, ForceApplication, ForceInterface};
    use SideKind::{Application, Interface};

    let old = fleet.provider("old", "interface").await;
    fleet.publish_rule("step: FORCE_INTERFACE").await;
    let consumer = fleet.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let load = Load::start(&shop.client, 4);
    let now = reached(&shop, ForceInterface, Interface).await;
    assert_eq!(now.interface.addresses, [old.address()]);
    load.more(50).await;

    // Everybody may be registered in both ways; a first one is by application only, which nobody sees yet.
    let both = fleet.provider("both", "all").await;
    let new = fleet.provider("new", "instance").await;
    until_callable(&shop, 2).await;
    load.more(50).await;
    assert_eq!(new.served(), 0);

    fleet.publish_rule("step: APPLICATION_FIRST").await;
    reached(&shop, ApplicationFirst, Application).await;
    let two = |now: &MigrationExplanation| {
        (now.interface.addresses.len(), now.application.addresses.len()) == (2, 2)
    };
    until_migration(&shop, "both sides have their two", two).await;
    load.more(50).await;

    // All that calls go to leaves: the others serve. It comes back: calls do.
    let port = new.port();
    new.leave().await;
    both.leave().await;
    reached(&shop, ApplicationFirst, Interface).await;
    load.more(50).await;
    let new = fleet.provider_with("new", port, "instance", |export| export).await;
    reached(&shop, ApplicationFirst, Application).await;
    let both = fleet.provider("both", "all").await;
    load.more(50).await;

    fleet.publish_rule("step: FORCE_APPLICATION").await;
    let now = reached(&shop, ForceApplication, Application).await;
    assert!(!now.application.addresses.contains(&old.address()), "{now}");
    // What is registered by interface only is nobody's loss any more.
    old.leave().await;
    load.more(50).await;
    new.leave().await;
    load.more(50).await;
    let new = fleet.provider("new", "instance").await;
    until_callable(&shop, 2).await;
    both.leave().await;
    load.more(50).await;

    // Only one that the old model does not know is left. Back to both, and then to the old one when it has somebody.
    fleet.publish_rule("step: APPLICATION_FIRST").await;
    reached(&shop, ApplicationFirst, Application).await;
    load.more(50).await;
    let old = fleet.provider("old", "interface").await;
    until_migration(&shop, "found by interface", |now| now.interface.available).await;
    fleet.publish_rule("step: FORCE_INTERFACE").await;
    let now = reached(&shop, ForceInterface, Interface).await;
    assert_eq!(now.interface.addresses, [old.address()]);
    load.more(50).await;
    new.leave().await;
    load.more(50).await;
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    old.leave().await;
}

async fn a_step_that_would_lose_the_providers_is_blocked_until_they_are_there(fleet: Fleet) {
    let old = fleet.provider("old", "interface").await;
    let consumer = fleet.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let load = Load::start(&shop.client, 2);
    reached(&shop, MigrationStep::ApplicationFirst, SideKind::Interface).await;
    fleet.publish_rule("step: FORCE_APPLICATION").await;
    let now = until_migration(&shop, "blocked", |now| now.state.blocked.is_some()).await;
    assert_eq!(now.state.step, Some(MigrationStep::ApplicationFirst), "{now}");
    assert!(!now.state.is_settled() && prefers(&now, SideKind::Interface), "{now}");
    assert!(now.to_string().contains("FORCE_APPLICATION wanted"), "{now}");
    load.more(50).await;
    let new = fleet.provider("new", "instance").await;
    reached(&shop, MigrationStep::ForceApplication, SideKind::Application).await;
    load.more(50).await;
    old.leave().await;
    load.more(50).await;

    fleet.publish_rule("step: FORCE_INTERFACE").await;
    let now = until_migration(&shop, "blocked", |now| now.state.blocked.is_some()).await;
    assert_eq!(now.state.step, Some(MigrationStep::ForceApplication), "{now}");
    assert!(prefers(&now, SideKind::Application), "{now}");
    load.more(50).await;
    let old = fleet.provider("old", "interface").await;
    reached(&shop, MigrationStep::ForceInterface, SideKind::Interface).await;
    new.leave().await;
    load.more(50).await;
    assert_eq!(load.stop().await, [""; 0]);
    consumer.shutdown().await;
    old.leave().await;
}

// C37
async fn a_rule_that_is_there_before_the_start_is_in_force_at_the_first_call(fleet: Fleet) {
    let old = fleet.provider("old", "interface").await;
    let new = fleet.provider("new", "instance").await;
    fleet.publish_rule("step: FORCE_INTERFACE").await;
    let consumer = fleet.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    assert_eq!(answers(&shop.client, 20).await.into_iter().collect::<Vec<_>>(), ["old"]);
    assert_eq!(shop.migration().unwrap().state.step, Some(MigrationStep::ForceInterface));
    assert_eq!(new.served(), 0);
    fleet.publish_rule("step: FORCE_APPLICATION").await;
    consumer.shutdown().await;
    let consumer = fleet.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let before = old.served();
    assert_eq!(answers(&shop.client, 20).await.into_iter().collect::<Vec<_>>(), ["new"]);
    assert_eq!(old.served(), before);
    consumer.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_may_send_a_part_of_the_calls_to_applications_or_ask_for_more_addresses_first() {
    let fleet = Fleet::in_memory();
    let old = [fleet.provider("old-1", "interface").await, fleet.provider("old-2", "interface").await];
    let new = fleet.provider("new", "all").await;
    fleet.publish_rule("step: APPLICATION_FIRST\nthreshold: 1.0").await;
    let consumer = fleet.consumer().await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let sides = |now: &MigrationExplanation| (now.interface.addresses.len(), now.application.addresses.len());
    // One of three is not enough, one of one is.
    let now = until_migration(&shop, "all are found", |now| sides(now) == (3, 1)).await;
    assert!(prefers(&now, SideKind::Interface) && now.state.is_settled(), "{now}");
    let load = Load::start(&shop.client, 2);
    for one in old {
        one.leave().await;
    }
    until_migration(&shop, "it is enough", |now| prefers(now, SideKind::Application)).await;
    let old = fleet.provider("old", "interface").await;
    until_migration(&shop, "it is not enough", |now| prefers(now, SideKind::Interface)).await;
    // A part only.
    old.leave().await;
    let old = fleet.provider("old", "interface").await;
    for (proportion, expected) in [(0, "old"), (50, "both")] {
        fleet.publish_rule(&format!("step: APPLICATION_FIRST\nproportion: {proportion}")).await;
        until_migration(&shop, "the rule", |now| i32::from(now.state.wanted.proportion) == proportion).await;
        until_migration(&shop, "applications", |now| prefers(now, SideKind::Application)).await;
        let by_application = shop.directory().unwrap().invokers().len();
        assert_eq!(by_application, 1);
        let names = answers(&shop.client, 100).await;
        assert!(names.contains("old"), "{expected}: {names:?}");
    }
    assert!(new.served() > 0);
    assert_eq!(load.stop().await, [""; 0]);
    drop(old);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_are_read_where_the_config_centre_is() {
    let fleet = Fleet::in_memory();
    let center = fleet.group("rules");
    let old = fleet.provider("old", "interface").await;
    let _new = fleet.provider("new", "instance").await;
    center.publish_rule("step: FORCE_INTERFACE").await;
    fleet.publish_rule("step: FORCE_APPLICATION").await;
    let mut builder = fleet.builder(BUYER);
    let namespace = Some("rules".to_owned());
    builder.config().config_center =
        Some(ConfigCenterConfig { namespace, ..ConfigCenterConfig::at(fleet.address()) });
    let consumer = builder.start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    reached(&shop, MigrationStep::ForceInterface, SideKind::Interface).await;
    // A registry that is no config centre has no rules either.
    let registry = RegistryConfig { use_as_config_center: Some(false), ..fleet.registry() };
    let without = fleet.bare(BUYER).registry_config(registry).start().await.unwrap();
    let shop = without.reference::<ShopClient>().connect().await.unwrap();
    reached(&shop, MigrationStep::ApplicationFirst, SideKind::Application).await;
    // What cannot be read is no rule; what is removed is none any more.
    center.publish_rule("step: FORCE_NOTHING").await;
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    reached(&shop, MigrationStep::ForceInterface, SideKind::Interface).await;
    assert!(shop.addresses().contains(&old.address()));
    center.publish_rule("").await;
    reached(&shop, MigrationStep::ApplicationFirst, SideKind::Application).await;
}

// With retries off: a switch is not made up for by another attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_that_change_without_pause_fail_no_call_and_leave_nothing_of_references_that_go() {
    let fleet = Fleet::in_memory();
    let _providers = (fleet.provider("app-a", "all").await, fleet.provider("app-b", "all").await);
    let consumer = fleet.consumer().await;
    let shop = consumer.reference::<ShopClient>().retries(0).connect().await.unwrap();
    let load = Load::start(&shop.client, 4);
    fleet.publish_rule("step: APPLICATION_FIRST").await;
    until_callable(&shop, 2).await;
    let left = || [fleet.memory().nodes(), fleet.memory().sessions(), fleet.memory().watches()];
    reached(&shop, MigrationStep::ApplicationFirst, SideKind::Application).await;
    let before = left();
    for round in 0..30 {
        let step = ["FORCE_INTERFACE", "APPLICATION_FIRST", "FORCE_APPLICATION"][round % 3];
        let rule = format!("step: {step}");
        let ((), other) =
            tokio::join!(fleet.publish_rule(&rule), consumer.reference::<ShopClient>().retries(0).get());
        other.unwrap().who().await.unwrap();
        if round % 5 == 0 {
            load.more(20).await;
        }
    }
    fleet.publish_rule("step: APPLICATION_FIRST").await;
    reached(&shop, MigrationStep::ApplicationFirst, SideKind::Application).await;
    assert_eq!(load.stop().await, [""; 0]);
    until("nothing is left of the others", || left().iter().zip(before).all(|(now, before)| *now <= before))
        .await;
}

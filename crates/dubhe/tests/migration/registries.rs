//! References of several registries, each of which has both models.

use std::collections::BTreeSet;

use dubhe::{Connected, ErrorCode, SideKind};

use crate::support::{BUYER, Fleet, LONG, Load, Shop, ShopClient, answers, prefers, until};

/// Who can be called by each registry, and in which model.
fn seen(shop: &Connected<ShopClient>) -> Vec<Option<SideKind>> {
    let in_one = |now: &dubhe::MigrationExplanation| {
        let kind = if prefers(now, SideKind::Application) { &now.application } else { &now.interface };
        kind.available.then_some(now.state.preferred)
    };
    shop.registries().iter().map(|one| in_one(&one.migration)).collect()
}

// C31
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_of_several_registries_calls_by_each_model_of_each_for_as_long_as_anybody_is_there() {
    let fleet = Fleet::in_memory();
    let (east, west) = (fleet.group("east"), fleet.group("west"));
    let old = east.provider("old", "interface").await;
    let new = west.provider("new", "instance").await;
    let builder = fleet.bare(BUYER).registry_config(east.registry()).registry_config(west.registry());
    let consumer = builder.start().await.unwrap();
    let shop = consumer.reference::<ShopClient>().connect().await.unwrap();
    let (by_interface, by_application) = (Some(SideKind::Interface), Some(SideKind::Application));
    until("both are found", || seen(&shop) == [by_interface, by_application]).await;
    assert_eq!(answers(&shop.client, 60).await, BTreeSet::from(["new".to_owned(), "old".to_owned()]));
    let load = Load::start(&shop.client, 4);
    // One registry after the other has nobody, or migrates.
    old.leave().await;
    until("the east has nobody", || seen(&shop) == [None, by_application]).await;
    load.more(40).await;
    let migrated = east.provider("migrated", "instance").await;
    until("the east has migrated", || seen(&shop) == [by_application, by_application]).await;
    new.leave().await;
    until("the west has nobody", || seen(&shop) == [by_application, None]).await;
    load.more(40).await;
    let back = west.provider("back", "interface").await;
    until("the west went back", || seen(&shop) == [by_application, by_interface]).await;
    load.more(40).await;
    assert_eq!(load.stop().await, [""; 0]);
    // Nobody is an error and no end.
    migrated.leave().await;
    back.leave().await;
    until("nobody is left", || seen(&shop) == [None, None]).await;
    let error = shop.client.who().await.unwrap_err();
    let codes = [ErrorCode::Forbidden, ErrorCode::NoInvokerAvailableAfterFilter];
    assert!(codes.contains(&error.code()), "{error:?}");
    let _again = west.provider("again", "all").await;
    let called = async { while shop.client.who().await.is_err() {} };
    tokio::time::timeout(LONG, called).await.unwrap();
}

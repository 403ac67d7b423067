//! What [`Registry`](dubhe_core::registry::Registry) promises.

use std::sync::Arc;

use dubhe_common::Url;
use dubhe_core::registry::{Category, RegistryError, ServiceView, Subscription};
use tokio::time::timeout;

use super::{PATIENCE, RegistryFixture};

/// One test per promise of [`Registry`](dubhe_core::registry::Registry), for the fixture that the expression makes.
#[macro_export]
macro_rules! registry_suite {
    ($fixture:expr) => {
        $crate::registry_suite! { @each $fixture;
            what_one_registers_another_finds
            a_url_is_found_as_it_was_registered
            unregister_takes_exactly_this_url_back
            unregistering_what_is_not_registered_is_no_error
            registering_twice_is_registering_once
            a_static_registration_outlives_its_registry_and_a_dynamic_one_does_not
            a_url_without_an_interface_is_refused
            a_subscription_starts_with_all_its_categories
            categories_that_were_not_asked_for_stay_unknown
            rules_and_providers_come_in_one_view
            a_subscription_follows_those_who_join_and_leave
            the_last_to_leave_leaves_an_explicit_empty_list
            nobody_for_this_version_is_not_nobody
            several_groups_are_a_list
            any_group_and_any_version_match_a_star
            old_parameters_with_default_prefix_count
            disabled_providers_are_left_out
            every_interface_is_one_view_of_all
            unchanged_addresses_and_lists_are_the_same_values
            many_changes_end_with_the_last_state
            an_outage_keeps_every_address
            what_changed_during_an_outage_is_seen_after_it
            subscriptions_survive_a_new_session
            registrations_are_made_again_in_a_new_session
            unregistering_during_an_outage_is_carried_out_after_it
            registering_unchecked_during_an_outage_is_carried_out_after_it
            registering_checked_during_an_outage_fails_and_leaves_nothing
            a_consumer_never_fails_to_register
            subscribing_unchecked_during_an_outage_is_made_good_after_it
            subscribing_checked_during_an_outage_fails
            a_consumer_is_seen_among_the_consumers
            close_unregisters_and_ends_everything
        }
    };
    (@each $fixture:expr; $($name:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let fixture = $fixture;
                $crate::suites::registry::$name(&fixture).await;
            }
        )*
    };
}

const ALL: &str = "providers,configurators,routers";

#[allow(missing_docs, reason = "the names are the sentences")]
mod promises {
    use super::*;

    pub async fn what_one_registers_another_finds(fixture: &dyn RegistryFixture) {
        let ((provider, _f), (consumer, _g)) = (fixture.open("").await, fixture.open("").await);
        provider.register(&at(1, "")).await.unwrap();
        provider.register(&at(2, "")).await.unwrap();
        assert_eq!(hosts(&consumer.lookup(&wanting("")).await.unwrap()), [1, 2]);
    }

    pub async fn a_url_is_found_as_it_was_registered(fixture: &dyn RegistryFixture) {
        let ((provider, _f), (consumer, _g)) = (fixture.open("").await, fixture.open("").await);
        let urls = [
            at(1, "a=x%2Cy%3Dz&b=%E4%B8%AD&c=a,b&methods=one,two&one.timeout=3&tilde=~*-._"),
            url("dubbo://[2001:db8::1]:20880/demo.Foo?interface=demo.Foo&note=a;b"),
            url("tri://user:secret@192.0.2.7:50051/ctx/demo.Foo?interface=demo.Foo"),
        ];
        for url in &urls {
            provider.register(url).await.unwrap();
        }
        let mut found: Vec<_> =
            consumer.lookup(&wanting("")).await.unwrap().iter().map(Url::to_full_string).collect();
        let mut expected: Vec<_> = urls.iter().map(Url::to_full_string).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }

    pub async fn unregister_takes_exactly_this_url_back(fixture: &dyn RegistryFixture) {
        let ((provider, _f), (consumer, _g)) = (fixture.open("").await, fixture.open("").await);
        provider.register(&at(1, "timestamp=1")).await.unwrap();
        provider.register(&at(1, "timestamp=2")).await.unwrap();
        provider.unregister(&at(1, "timestamp=1")).await.unwrap();
        let left = consumer.lookup(&wanting("")).await.unwrap();
        assert_eq!(left.iter().map(|url| url.param("timestamp")).collect::<Vec<_>>(), [Some("2")]);
    }

    pub async fn unregistering_what_is_not_registered_is_no_error(fixture: &dyn RegistryFixture) {
        let ((one, _f), (other, _g)) = (fixture.open("").await, fixture.open("").await);
        one.register(&at(1, "")).await.unwrap();
        other.unregister(&at(1, "")).await.unwrap();
        other.unregister(&at(2, "")).await.unwrap();
        assert_eq!(hosts(&other.lookup(&wanting("")).await.unwrap()), [1], "only its own are taken back");
    }

    pub async fn registering_twice_is_registering_once(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        registry.register(&at(1, "")).await.unwrap();
        registry.register(&at(1, "")).await.unwrap();
        registry.unregister(&at(1, "")).await.unwrap();
        assert!(registry.lookup(&wanting("")).await.unwrap().is_empty());
    }

    pub async fn a_static_registration_outlives_its_registry_and_a_dynamic_one_does_not(
        fixture: &dyn RegistryFixture,
    ) {
        let ((provider, _f), (consumer, _g)) = (fixture.open("").await, fixture.open("").await);
        provider.register(&at(1, "dynamic=false")).await.unwrap();
        provider.register(&at(2, "dynamic=true")).await.unwrap();
        provider.register(&at(3, "")).await.unwrap();
        within(provider.close()).await;
        assert_eq!(hosts(&consumer.lookup(&wanting("")).await.unwrap()), [1]);
    }

    pub async fn a_url_without_an_interface_is_refused(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        let nameless = url("dubbo://192.0.2.1:20880");
        assert!(matches!(registry.register(&nameless).await, Err(RegistryError::Invalid(_))));
        assert!(matches!(registry.subscribe(&nameless).await, Err(RegistryError::Invalid(_))));
        assert!(matches!(registry.lookup(&nameless).await, Err(RegistryError::Invalid(_))));
    }

    // C06
    pub async fn a_subscription_starts_with_all_its_categories(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        let view = registry.subscribe(&wanting(&format!("category={ALL}"))).await.unwrap().view();
        for category in [&view.configurators, &view.routers, &view.providers] {
            assert!(
                matches!(category, Category::Known { urls, total: 0 } if urls.is_empty()),
                "{category:?}"
            );
        }
        assert_eq!((view.from_cache, &view.trouble), (false, &None));
    }

    pub async fn categories_that_were_not_asked_for_stay_unknown(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        let view = registry.subscribe(&wanting("")).await.unwrap().view();
        assert!(view.providers.urls().is_some(), "providers are what is meant by default");
        assert!(matches!(view.configurators, Category::Unknown));
        assert!(matches!(view.routers, Category::Unknown));
    }

    pub async fn rules_and_providers_come_in_one_view(fixture: &dyn RegistryFixture) {
        let ((ruler, _f), (consumer, _g)) = (fixture.open("").await, fixture.open("").await);
        let rule = url("override://0.0.0.0/demo.Foo?category=configurators&dynamic=false&timeout=5");
        let route =
            url("condition://0.0.0.0/demo.Foo?category=routers&dynamic=false&rule=%3D%3E+host+%3D+192.0.2.1");
        for url in [&rule, &route, &at(1, "")] {
            ruler.register(url).await.unwrap();
        }
        let mut subscription = consumer.subscribe(&wanting(&format!("category={ALL}"))).await.unwrap();
        let view = subscription.view();
        assert_eq!(texts(&view.configurators), [rule.to_full_string()]);
        assert_eq!(texts(&view.routers), [route.to_full_string()]);
        assert_eq!(numbers(&view.providers), [1]);
        ruler.unregister(&rule).await.unwrap();
        let view = until(&mut subscription, |view| texts(&view.configurators).is_empty()).await;
        assert_eq!(numbers(&view.providers), [1]);
    }

    pub async fn a_subscription_follows_those_who_join_and_leave(fixture: &dyn RegistryFixture) {
        let ((provider, _f), (consumer, _g)) = (fixture.open("").await, fixture.open("").await);
        let mut subscription = consumer.subscribe(&wanting("")).await.unwrap();
        provider.register(&at(1, "")).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [1]).await;
        provider.register(&at(2, "")).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [1, 2]).await;
        provider.unregister(&at(1, "")).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [2]).await;
        within(provider.close()).await;
        until(&mut subscription, |view| numbers(&view.providers).is_empty()).await;
    }

    // C35
    pub async fn the_last_to_leave_leaves_an_explicit_empty_list(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        registry.register(&at(1, "")).await.unwrap();
        let mut subscription = registry.subscribe(&wanting("")).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [1]).await;
        registry.unregister(&at(1, "")).await.unwrap();
        let view = until(&mut subscription, |view| numbers(&view.providers).is_empty()).await;
        assert!(matches!(view.providers, Category::Known { total: 0, .. }));
        registry.register(&at(2, "")).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [2]).await;
    }

    // C35
    pub async fn nobody_for_this_version_is_not_nobody(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        let mut subscription = registry.subscribe(&wanting("version=2")).await.unwrap();
        registry.register(&at(1, "version=1")).await.unwrap();
        let some = |view: &ServiceView| matches!(view.providers, Category::Known { total: 1, .. });
        let view = until(&mut subscription, some).await;
        assert!(numbers(&view.providers).is_empty());
    }

    // C43
    pub async fn several_groups_are_a_list(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        for (number, params) in
            [(1, "group=g1"), (2, "group=g2"), (3, "group=g3"), (4, ""), (5, "group=g1g2")]
        {
            registry.register(&at(number, params)).await.unwrap();
        }
        let view = registry.subscribe(&wanting("group=g1,g2")).await.unwrap().view();
        assert_eq!(numbers(&view.providers), [1, 2]);
        let view = registry.subscribe(&wanting("")).await.unwrap().view();
        assert_eq!(numbers(&view.providers), [4]);
    }

    // C43
    pub async fn any_group_and_any_version_match_a_star(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        for (number, params) in [(1, "group=g1&version=1"), (2, "group=g2&version=2"), (3, "")] {
            registry.register(&at(number, params)).await.unwrap();
        }
        let view = registry.subscribe(&wanting("group=*&version=*")).await.unwrap().view();
        assert_eq!(numbers(&view.providers), [1, 2, 3]);
        let view = registry.subscribe(&wanting("group=*&version=2")).await.unwrap().view();
        assert_eq!(numbers(&view.providers), [2]);
    }

    // C41
    pub async fn old_parameters_with_default_prefix_count(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        let old = at(1, "default.version=1.0.0&default.group=g&default.timeout=2000");
        registry.register(&old).await.unwrap();
        registry.register(&at(2, "default.version=1.0.0&version=2&default.group=g")).await.unwrap();
        let view = registry.subscribe(&wanting("version=1.0.0&group=g")).await.unwrap().view();
        assert_eq!(numbers(&view.providers), [1]);
        assert_eq!(view.providers.urls().unwrap()[0].param("timeout"), Some("2000"));
        let view = registry.subscribe(&wanting("version=2&group=g")).await.unwrap().view();
        assert_eq!(numbers(&view.providers), [2]);
    }

    // C41
    pub async fn disabled_providers_are_left_out(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        registry.register(&at(1, "enabled=false")).await.unwrap();
        registry.register(&at(2, "enabled=true")).await.unwrap();
        let view = registry.subscribe(&wanting("")).await.unwrap().view();
        assert_eq!(numbers(&view.providers), [2]);
    }

    // C43
    pub async fn every_interface_is_one_view_of_all(fixture: &dyn RegistryFixture) {
        let ((provider, _f), (admin, _g)) = (fixture.open("").await, fixture.open("").await);
        let of = |number: u8, interface: &str| {
            url(&format!("dubbo://192.0.2.{number}:20880/{interface}?version=1"))
        };
        provider.register(&of(1, "demo.A")).await.unwrap();
        let everything = url("admin://192.0.2.9/*?interface=*&group=*&version=*&category=*&check=false");
        let mut subscription = admin.subscribe(&everything).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [1]).await;
        provider.register(&of(2, "demo.B")).await.unwrap();
        provider.register(&of(3, "demo.A")).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [1, 2, 3]).await;
        let found = admin.lookup(&everything).await.unwrap();
        assert_eq!(hosts(&found), [1, 2, 3]);
        provider.unregister(&of(1, "demo.A")).await.unwrap();
        provider.unregister(&of(2, "demo.B")).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [3]).await;
    }

    // C95
    pub async fn unchanged_addresses_and_lists_are_the_same_values(fixture: &dyn RegistryFixture) {
        let (registry, _f) = fixture.open("").await;
        registry.register(&at(1, "")).await.unwrap();
        registry
            .register(&url("override://0.0.0.0/demo.Foo?category=configurators&timeout=5"))
            .await
            .unwrap();
        let mut subscription = registry.subscribe(&wanting(&format!("category={ALL}"))).await.unwrap();
        let before = subscription.view();
        registry.register(&at(2, "")).await.unwrap();
        let after = until(&mut subscription, |view| numbers(&view.providers) == [1, 2]).await;
        let find = |view: &ServiceView| {
            view.providers.urls().unwrap().iter().find(|url| url.host() == "192.0.2.1").unwrap().clone()
        };
        assert!(find(&before).ptr_eq(&find(&after)));
        let rules = |view: &ServiceView| Arc::clone(view.configurators.urls().unwrap());
        assert!(Arc::ptr_eq(&rules(&before), &rules(&after)));
    }

    // C97
    pub async fn many_changes_end_with_the_last_state(fixture: &dyn RegistryFixture) {
        let ((provider, _f), (consumer, _g)) = (fixture.open("").await, fixture.open("").await);
        let mut subscription = consumer.subscribe(&wanting("delay-notification=500")).await.unwrap();
        let all: Vec<Url> = (1..=100).map(|number| at(number, "")).collect();
        for url in &all {
            provider.register(url).await.unwrap();
        }
        until(&mut subscription, |view| numbers(&view.providers).len() == 100).await;
        for url in &all[1..] {
            provider.unregister(url).await.unwrap();
        }
        until(&mut subscription, |view| numbers(&view.providers) == [1]).await;
    }

    // C20
    pub async fn an_outage_keeps_every_address(fixture: &dyn RegistryFixture) {
        let ((provider, _f), (consumer, faults)) = (fixture.open("").await, fixture.open("").await);
        provider.register(&at(1, "")).await.unwrap();
        provider.register(&at(2, "")).await.unwrap();
        let mut subscription = consumer.subscribe(&wanting(&format!("category={ALL}"))).await.unwrap();
        let before = until(&mut subscription, |view| numbers(&view.providers) == [1, 2]).await;
        assert!(consumer.is_available());
        faults.cut().await;
        let during = until(&mut subscription, |view| view.trouble.is_some()).await;
        assert!(Arc::ptr_eq(before.providers.urls().unwrap(), during.providers.urls().unwrap()));
        assert!(!consumer.is_available());
        faults.restore().await;
        let after = until(&mut subscription, |view| view.trouble.is_none()).await;
        assert!(Arc::ptr_eq(before.providers.urls().unwrap(), after.providers.urls().unwrap()));
    }

    // C20
    pub async fn what_changed_during_an_outage_is_seen_after_it(fixture: &dyn RegistryFixture) {
        let ((provider, _f), (consumer, faults)) = (fixture.open("").await, fixture.open("").await);
        provider.register(&at(1, "")).await.unwrap();
        provider.register(&at(2, "")).await.unwrap();
        let mut subscription = consumer.subscribe(&wanting("")).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [1, 2]).await;
        faults.cut().await;
        until(&mut subscription, |view| view.trouble.is_some()).await;
        provider.register(&at(3, "")).await.unwrap();
        provider.unregister(&at(2, "")).await.unwrap();
        assert_eq!(numbers(&subscription.view().providers), [1, 2]);
        faults.restore().await;
        until(&mut subscription, |view| numbers(&view.providers) == [1, 3] && view.trouble.is_none()).await;
    }

    // C02
    pub async fn subscriptions_survive_a_new_session(fixture: &dyn RegistryFixture) {
        let ((provider, _f), (consumer, faults)) = (fixture.open("").await, fixture.open("").await);
        provider.register(&at(1, "")).await.unwrap();
        let mut subscription = consumer.subscribe(&wanting(&format!("category={ALL}"))).await.unwrap();
        for number in 2..=4 {
            faults.expire().await;
            provider.register(&at(number, "")).await.unwrap();
            provider.unregister(&at(number - 1, "")).await.unwrap();
            until(&mut subscription, |view| numbers(&view.providers) == [number] && view.trouble.is_none())
                .await;
        }
    }

    // C02
    pub async fn registrations_are_made_again_in_a_new_session(fixture: &dyn RegistryFixture) {
        let ((provider, faults), (consumer, _g)) = (fixture.open("").await, fixture.open("").await);
        for number in 1..=3 {
            provider.register(&at(number, "")).await.unwrap();
        }
        let mut subscription = consumer.subscribe(&wanting("")).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [1, 2, 3]).await;
        for _ in 0..2 {
            faults.expire().await;
            // The mark tells that the new session is at work.
            let mark = at(9, "");
            within(provider.register(&mark)).await.unwrap();
            until(&mut subscription, |view| numbers(&view.providers) == [1, 2, 3, 9]).await;
            within(provider.unregister(&mark)).await.unwrap();
            until(&mut subscription, |view| numbers(&view.providers) == [1, 2, 3]).await;
        }
        within(provider.close()).await;
        until(&mut subscription, |view| numbers(&view.providers).is_empty()).await;
    }

    // C25
    pub async fn unregistering_during_an_outage_is_carried_out_after_it(fixture: &dyn RegistryFixture) {
        let ((provider, faults), (consumer, _g)) = (fixture.open("").await, fixture.open("").await);
        provider.register(&at(1, "")).await.unwrap();
        provider.register(&at(2, "dynamic=false")).await.unwrap();
        provider.register(&at(3, "")).await.unwrap();
        let mut subscription = consumer.subscribe(&wanting("")).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [1, 2, 3]).await;
        let mut own = provider.subscribe(&wanting("")).await.unwrap();
        faults.cut().await;
        until(&mut own, |view| view.trouble.is_some()).await;
        within(provider.unregister(&at(1, ""))).await.unwrap();
        within(provider.unregister(&at(2, "dynamic=false"))).await.unwrap();
        faults.restore().await;
        until(&mut subscription, |view| numbers(&view.providers) == [3]).await;
        faults.expire().await;
        within(provider.register(&at(4, ""))).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [3, 4]).await;
    }

    pub async fn registering_unchecked_during_an_outage_is_carried_out_after_it(
        fixture: &dyn RegistryFixture,
    ) {
        let ((provider, faults), (consumer, _g)) =
            (fixture.open("check=false").await, fixture.open("").await);
        let mut own = provider.subscribe(&wanting("")).await.unwrap();
        let mut subscription = consumer.subscribe(&wanting("")).await.unwrap();
        faults.cut().await;
        until(&mut own, |view| view.trouble.is_some()).await;
        within(provider.register(&at(1, ""))).await.unwrap();
        faults.restore().await;
        until(&mut subscription, |view| numbers(&view.providers) == [1]).await;
    }

    pub async fn registering_checked_during_an_outage_fails_and_leaves_nothing(
        fixture: &dyn RegistryFixture,
    ) {
        let ((provider, faults), (consumer, _g)) =
            (fixture.open("timeout=500").await, fixture.open("").await);
        let mut own = provider.subscribe(&wanting("")).await.unwrap();
        let mut subscription = consumer.subscribe(&wanting("")).await.unwrap();
        faults.cut().await;
        until(&mut own, |view| view.trouble.is_some()).await;
        let refused = within(provider.register(&at(1, ""))).await;
        assert!(matches!(refused, Err(RegistryError::Failed { action: "register", .. })), "{refused:?}");
        within(provider.register(&at(2, "check=false"))).await.unwrap();
        faults.restore().await;
        until(&mut subscription, |view| !numbers(&view.providers).is_empty()).await;
        within(provider.register(&at(3, "check=false"))).await.unwrap();
        until(&mut subscription, |view| numbers(&view.providers) == [2, 3]).await;
    }

    // C103
    pub async fn a_consumer_never_fails_to_register(fixture: &dyn RegistryFixture) {
        let ((registry, faults), (other, _g)) = (fixture.open("timeout=500").await, fixture.open("").await);
        let mut own = registry.subscribe(&wanting("")).await.unwrap();
        faults.cut().await;
        until(&mut own, |view| view.trouble.is_some()).await;
        within(registry.register(&wanting("category=consumers"))).await.unwrap();
        faults.restore().await;
        let mut consumers = other.subscribe(&wanting("category=consumers")).await.unwrap();
        until(&mut consumers, |view| texts(&view.consumers).len() == 1).await;
    }

    pub async fn subscribing_unchecked_during_an_outage_is_made_good_after_it(fixture: &dyn RegistryFixture) {
        let ((consumer, faults), (provider, _g)) =
            (fixture.open("check=false&timeout=500").await, fixture.open("").await);
        let mut own = consumer.subscribe(&wanting("")).await.unwrap();
        provider.register(&url("dubbo://192.0.2.1:20880/demo.Bar")).await.unwrap();
        faults.cut().await;
        until(&mut own, |view| view.trouble.is_some()).await;
        let mut subscription =
            within(consumer.subscribe(&url("consumer://192.0.2.99/demo.Bar"))).await.unwrap();
        let view = subscription.view();
        assert!(view.trouble.is_some());
        assert!(matches!(view.providers, Category::Unknown), "an outage is not an empty list");
        faults.restore().await;
        until(&mut subscription, |view| numbers(&view.providers) == [1] && view.trouble.is_none()).await;
    }

    pub async fn subscribing_checked_during_an_outage_fails(fixture: &dyn RegistryFixture) {
        let (consumer, faults) = fixture.open("timeout=500").await;
        let mut own = consumer.subscribe(&wanting("")).await.unwrap();
        faults.cut().await;
        until(&mut own, |view| view.trouble.is_some()).await;
        let refused = within(consumer.subscribe(&url("consumer://192.0.2.99/demo.Bar"))).await;
        assert!(matches!(refused, Err(RegistryError::Failed { action: "subscribe", .. })), "{refused:?}");
        faults.restore().await;
    }

    // C103
    pub async fn a_consumer_is_seen_among_the_consumers(fixture: &dyn RegistryFixture) {
        let ((consumer, _f), (admin, _g)) = (fixture.open("").await, fixture.open("").await);
        let me = wanting("category=consumers&check=false&side=consumer");
        consumer.register(&me).await.unwrap();
        let seen = admin.lookup(&wanting("category=consumers")).await.unwrap();
        assert_eq!(seen.iter().map(Url::to_full_string).collect::<Vec<_>>(), [me.to_full_string()]);
        within(consumer.close()).await;
        assert!(admin.lookup(&wanting("category=consumers")).await.unwrap().is_empty());
    }

    // C93
    pub async fn close_unregisters_and_ends_everything(fixture: &dyn RegistryFixture) {
        let ((registry, _f), (other, _g)) = (fixture.open("").await, fixture.open("").await);
        registry.register(&at(1, "")).await.unwrap();
        let mut subscription = registry.subscribe(&wanting("")).await.unwrap();
        within(registry.close()).await;
        within(registry.close()).await;
        assert!(other.lookup(&wanting("")).await.unwrap().is_empty());
        while within(subscription.changed()).await {
            subscription.view();
        }
        assert!(!registry.is_available());
        assert!(matches!(registry.register(&at(2, "")).await, Err(RegistryError::Closed(_))));
        assert!(matches!(registry.subscribe(&wanting("")).await, Err(RegistryError::Closed(_))));
        assert!(matches!(registry.lookup(&wanting("")).await, Err(RegistryError::Closed(_))));
    }
}
pub use promises::*;

async fn within<T>(work: impl Future<Output = T>) -> T {
    timeout(PATIENCE, work).await.expect("it ends in time")
}

/// Waits for a view that fits.
async fn until(subscription: &mut Subscription, fits: impl Fn(&ServiceView) -> bool) -> Arc<ServiceView> {
    let found = timeout(PATIENCE, async {
        loop {
            let view = subscription.view();
            if fits(&view) {
                return view;
            }
            assert!(subscription.changed().await, "the subscription goes on");
        }
    });
    match found.await {
        Ok(view) => view,
        Err(_) => panic!("the view that was waited for did not come: {:?}", subscription.view()),
    }
}

fn url(text: &str) -> Url {
    Url::parse(text).expect("a url of this file")
}

/// Provider number `number`.
fn at(number: u8, params: &str) -> Url {
    url(&format!("dubbo://192.0.2.{number}:20880/demo.Foo?interface=demo.Foo&{params}"))
}

/// A consumer.
fn wanting(params: &str) -> Url {
    url(&format!("consumer://192.0.2.99/demo.Foo?interface=demo.Foo&{params}"))
}

/// The last numbers of the addresses, sorted.
fn hosts(urls: &[Url]) -> Vec<u8> {
    let number = |url: &Url| url.host().rsplit('.').next().and_then(|number| number.parse().ok());
    let mut numbers: Vec<u8> = urls.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

fn numbers(category: &Category) -> Vec<u8> {
    hosts(category.urls().map_or(&[], |urls| urls))
}

fn texts(category: &Category) -> Vec<String> {
    category.urls().into_iter().flat_map(|urls| urls.iter().map(Url::to_full_string)).collect()
}

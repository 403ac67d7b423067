//! Addresses share what is equal, and nothing stays behind when they go.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::{Url, UrlFactory, encode};

fn child(service: usize, host: usize, started: usize) -> String {
    encode(&format!(
        "dubbo://192.0.2.{host}:20880/demo.Service{service}?anyhost=true&application=shop&deprecated=false&dubbo=2.0.2\
         &dynamic=true&generic=false&interface=demo.Service{service}&methods=sayHello,add&pid={started}&release=3.1.11\
         &side=provider&timestamp={started}"
    ))
}

#[test]
fn two_addresses_of_one_service_share_their_parameters() {
    let factory = UrlFactory::new();
    let first = factory.parse_encoded(&child(1, 1, 100)).unwrap();
    let second = factory.parse_encoded(&child(1, 2, 200)).unwrap();
    assert_ne!(first, second);
    assert!(first.shared_params().ptr_eq(second.shared_params()));
    assert!(std::ptr::eq(first.param("methods").unwrap(), second.param("methods").unwrap()));
    let other = factory.parse_encoded(&child(2, 1, 100)).unwrap();
    assert!(std::ptr::eq(first.param("methods").unwrap(), other.param("methods").unwrap()));
}

#[test]
fn a_provider_that_registers_again_is_the_same_address_with_a_new_start() {
    let factory = UrlFactory::new();
    let before = factory.parse_encoded(&child(1, 1, 100)).unwrap();
    let after = factory.parse_encoded(&child(1, 1, 200)).unwrap();
    assert_eq!(before, after);
    assert_eq!((before.param("timestamp"), after.param("timestamp")), (Some("100"), Some("200")));
    assert_eq!(after.param("pid"), None);
}

#[test]
fn only_whole_parameters_named_pid_or_timestamp_are_taken_apart() {
    let factory = UrlFactory::new();
    let text = "dubbo://192.0.2.1:20880/demo.Foo?a=1&remote.timestamp=5&timestamp=7&xpid=3";
    let url = factory.parse_encoded(&encode(text)).unwrap();
    assert_eq!(url.to_full_string(), text);
    assert!(url.shared_params().get("timestamp").is_none());
    let names: Vec<&str> = url.params().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "remote.timestamp", "timestamp", "xpid"]);
}

// C94
#[test]
fn fifty_restarts_of_all_providers_leave_nothing_behind() {
    let factory = UrlFactory::new();
    let notified = |round: usize| -> Vec<Url> {
        (0..300)
            .flat_map(|service| (0..5).map(move |host| child(service, host, 1_000_000 + round)))
            .map(|name| factory.parse_encoded(&name).unwrap())
            .collect()
    };
    let mut addresses = notified(0);
    let baseline = factory.interned();
    assert_eq!(baseline.param_sets, 300);
    for round in 1..=50 {
        addresses = notified(round);
        assert_eq!(addresses.len(), 1_500);
    }
    assert_eq!(factory.interned(), baseline);
    drop(addresses);
    let emptied = factory.interned();
    assert_eq!((emptied.strings, emptied.param_sets, emptied.services), (0, 0, 0));
}

// C94
#[test]
fn restarts_of_one_instance_leave_no_place_behind() {
    let factory = UrlFactory::new();
    let held: Vec<Url> = (0..20_000)
        .map(|started| {
            factory.adopt_all(
                &Url::parse(&format!("tri://192.0.2.1:50051/demo.Foo?timestamp={started}")).unwrap(),
            )
        })
        .filter(|url| url.param("timestamp") == Some("7"))
        .collect();
    let shown = format!("{factory:?}");
    let places = shown.split("places: ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    assert!(places.parse::<usize>().unwrap() < 2_500, "{shown}");
    assert_eq!((factory.interned().places, held.len()), (1, 1));
}

#[test]
fn urls_of_many_services_at_one_address_share_the_address() {
    let factory = UrlFactory::new();
    let adopted = |text: &str| factory.adopt_all(&Url::parse(text).unwrap());
    let first = adopted("tri://user:secret@192.0.2.1:50051/demo.Foo?a=1&pid=3&timestamp=7");
    let second = adopted("tri://user:secret@192.0.2.1:50051/demo.Bar?a=1&pid=3&timestamp=7");
    assert!(std::ptr::eq(first.host(), second.host()));
    assert!(first.shared_params().ptr_eq(second.shared_params()));
    assert_eq!((factory.interned().services, factory.interned().places), (2, 1));
    assert_eq!(second.to_full_string(), "tri://user:secret@192.0.2.1:50051/demo.Bar?a=1&pid=3&timestamp=7");

    let again = adopted("tri://user:secret@192.0.2.1:50051/demo.Foo?a=1&pid=3&timestamp=8");
    assert_eq!(again, first);
    assert_eq!((again.param("timestamp"), first.param("timestamp")), (Some("8"), Some("7")));
    for other in [
        "tri://192.0.2.1:50051/demo.Foo?a=1&pid=3&timestamp=7",
        "tri://user:secret@192.0.2.1:50051/demo.Foo?a=1&pid=3",
    ] {
        assert_ne!(adopted(other), first, "{other}");
    }
    drop((first, second, again));
    assert_eq!((factory.interned().services, factory.interned().places), (0, 0));
}

#[test]
fn a_url_that_is_built_without_a_change_is_the_same_value_and_any_change_shows() {
    let url = Url::parse("tri://user:secret@192.0.2.1:50051/demo.Foo?a=1&pid=3&timestamp=7").unwrap();
    assert!(url.to_builder().param("a", 1).param("timestamp", 7).without_param("b").build().ptr_eq(&url));
    let changes = [
        (
            url.to_builder().protocol("dubbo").build(),
            "dubbo://user:secret@192.0.2.1:50051/demo.Foo?a=1&pid=3&timestamp=7",
        ),
        (
            url.to_builder().user("me").build(),
            "tri://me:secret@192.0.2.1:50051/demo.Foo?a=1&pid=3&timestamp=7",
        ),
        (url.to_builder().password("").build(), "tri://user@192.0.2.1:50051/demo.Foo?a=1&pid=3&timestamp=7"),
        (
            url.to_builder().host("::1").build(),
            "tri://user:secret@[::1]:50051/demo.Foo?a=1&pid=3&timestamp=7",
        ),
        (url.to_builder().port(0).build(), "tri://user:secret@192.0.2.1/demo.Foo?a=1&pid=3&timestamp=7"),
        (url.to_builder().path("").build(), "tri://user:secret@192.0.2.1:50051?a=1&pid=3&timestamp=7"),
        (
            url.to_builder().param("a", 2).build(),
            "tri://user:secret@192.0.2.1:50051/demo.Foo?a=2&pid=3&timestamp=7",
        ),
        (
            url.to_builder().param("pid", 4).build(),
            "tri://user:secret@192.0.2.1:50051/demo.Foo?a=1&pid=4&timestamp=7",
        ),
        (
            url.to_builder().param("timestamp", 8).build(),
            "tri://user:secret@192.0.2.1:50051/demo.Foo?a=1&pid=3&timestamp=8",
        ),
        (
            url.to_builder().without_param("pid").build(),
            "tri://user:secret@192.0.2.1:50051/demo.Foo?a=1&timestamp=7",
        ),
        (
            url.to_builder().without_param("timestamp").build(),
            "tri://user:secret@192.0.2.1:50051/demo.Foo?a=1&pid=3",
        ),
        (
            url.to_builder().retain_params(|name, _| name == "pid").build(),
            "tri://user:secret@192.0.2.1:50051/demo.Foo?pid=3",
        ),
        (url.to_builder().clear_params().build(), "tri://user:secret@192.0.2.1:50051/demo.Foo"),
    ];
    for (changed, text) in changes {
        assert_eq!(changed.to_full_string(), text);
        let read = Url::parse(text).unwrap();
        assert_eq!(changed, read);
        assert_eq!(changed == url, text.contains("a=1&pid=3&timestamp=8"), "{text}");
    }
}

// C94
#[test]
fn unused_entries_are_swept_without_being_asked() {
    let factory = UrlFactory::new();
    let held = factory.parse_encoded(&child(0, 0, 0)).unwrap();
    for version in 0..20_000 {
        factory.parse(&format!("dubbo://192.0.2.1:20880/demo.Foo?version={version}")).unwrap();
    }
    let shown = format!("{factory:?}");
    let strings: usize = shown.split(&[' ', ','][..]).nth(3).unwrap().parse().unwrap();
    assert!(strings < 2_500, "{shown}");
    assert_eq!(held.param("application"), Some("shop"));
}

// C95
#[test]
fn the_same_notification_again_adds_nothing() {
    let factory = UrlFactory::new();
    let names: Vec<String> = (0..100).map(|host| child(1, host, 100)).collect();
    let read = || -> Vec<Url> { names.iter().map(|name| factory.parse_encoded(name).unwrap()).collect() };
    let first = read();
    let before = factory.interned();
    let second = read();
    assert_eq!(factory.interned(), before);
    assert_eq!(first, second);
}

#[test]
fn a_change_to_one_address_leaves_the_shared_parameters_alone() {
    let factory = UrlFactory::new();
    let url = factory.parse_encoded(&child(1, 1, 100)).unwrap();
    let moved = url.with_host("192.0.2.77").with_param("timestamp", 5);
    assert!(moved.shared_params().ptr_eq(url.shared_params()));
    let heavy = url.with_param("weight", 5);
    assert_eq!(url.param("weight"), None);
    let adopted = factory.adopt(&heavy);
    assert!(adopted.shared_params().ptr_eq(factory.adopt(&url.with_param("weight", 5)).shared_params()));
    assert_eq!(adopted, heavy);
}

use std::time::Duration;

use dubhe_core::discovery::ENDPOINTS;
use tokio::time::Instant;

use super::*;
use crate::doubles::{World, instance, service};

const FOO: &str = "a.Foo";

fn world() -> World {
    let world = World::new();
    for revision in ["r1", "r2"] {
        world.answers.offers(revision, [service(FOO), service("a.Bar")]);
    }
    world
}

fn follow(world: &World, params: &str) -> MappedService {
    follow_of(world, params, "")
}

fn follow_of(world: &World, params: &str, of_registry: &str) -> MappedService {
    let consumer = Url::parse(&format!("consumer://192.0.2.9/{FOO}?interface={FOO}{params}")).unwrap();
    let registry = Url::parse(&format!("zookeeper://192.0.2.1:2181?x=y{of_registry}")).unwrap();
    MappedService::follow(&consumer, &registry, &*world.mapping, Arc::clone(&world.listeners))
}

/// `number@application:port`.
fn shown(addresses: &ServiceAddresses) -> Option<Vec<String>> {
    let known = addresses.known.as_ref()?.iter();
    Some(
        known
            .map(|one| {
                format!(
                    "{}@{}:{}",
                    one.instance.host.rsplit('.').next().unwrap(),
                    one.instance.application,
                    one.port
                )
            })
            .collect(),
    )
}

async fn sees(service: &mut MappedService, wanted: &[&str]) {
    sees_by(service, wanted, |_| {}).await;
}

/// Looks at everything on the way.
async fn sees_by(service: &mut MappedService, wanted: &[&str], mut look: impl FnMut(&ServiceAddresses)) {
    look(service.addresses());
    while shown(service.addresses()).is_none_or(|shown| shown != wanted) {
        assert!(service.changed().await);
        look(service.addresses());
    }
}

fn applications_of(service: &MappedService) -> Vec<&str> {
    service.addresses().applications.iter().map(|name| &**name).collect()
}

// C12
#[tokio::test(start_paused = true)]
async fn an_added_application_is_followed_and_a_removed_one_left() {
    let world = world();
    world.mapping.set(FOO, &["app-a"]);
    world.discovery.set("app-a", [instance(1, "r1")]);
    world.discovery.set("app-b", [instance(2, "r2")]);
    let mut service = follow(&world, "");
    sees(&mut service, &["1@app-a:20880"]).await;
    world.mapping.set(FOO, &["app-b", "app-a"]);
    sees(&mut service, &["1@app-a:20880", "2@app-b:20880"]).await;
    assert_eq!(world.discovery.asked("app-a"), 1, "followed on, not anew");
    world.mapping.set(FOO, &["app-b"]);
    sees(&mut service, &["2@app-b:20880"]).await;
    assert_eq!(applications_of(&service), ["app-b"]);
    assert_eq!((world.discovery.asked("app-a"), world.discovery.asked("app-b")), (1, 1));
    while world.listeners.listening() > 1 {
        tokio::task::yield_now().await;
    }
}

// C12
#[tokio::test(start_paused = true)]
async fn moving_to_another_application_leaves_no_moment_without_a_provider() {
    let world = world();
    world.mapping.set(FOO, &["x"]);
    world.discovery.set("x", [instance(1, "r1")]);
    world.answers.fails("r3");
    let mut service = follow(&world, "");
    sees(&mut service, &["1@x:20880"]).await;
    let is_there = |now: &ServiceAddresses| assert!(shown(now).is_some_and(|shown| !shown.is_empty()));
    // Not read, without instances, with unknown metadata: x stays.
    world.mapping.set(FOO, &["y"]);
    while applications_of(&service) != ["x", "y"] {
        service.changed().await;
        is_there(service.addresses());
    }
    world.discovery.set("y", []);
    world.discovery.set("y", [instance(2, "r3")]);
    while service.addresses().failure.is_none() {
        service.changed().await;
        is_there(service.addresses());
    }
    assert_eq!(shown(service.addresses()).unwrap(), ["1@x:20880"]);
    world.answers.offers("r3", [self::service(FOO)]);
    sees_by(&mut service, &["2@y:20880"], is_there).await;
    assert_eq!(applications_of(&service), ["y"]);
}

#[tokio::test(start_paused = true)]
async fn a_mapping_that_goes_there_and_back_is_followed() {
    let world = world();
    world.discovery.set("x", [instance(1, "r1")]);
    world.discovery.set("y", [instance(2, "r1")]);
    world.mapping.set(FOO, &["x"]);
    let (mut one, mut other) = (follow(&world, ""), follow(&world, ""));
    for _ in 0..2 {
        for (name, wanted) in [("x", "1@x:20880"), ("y", "2@y:20880"), ("x", "1@x:20880")] {
            world.mapping.set(FOO, &[name]);
            sees(&mut one, &[wanted]).await;
            sees(&mut other, &[wanted]).await;
            assert_eq!(applications_of(&one), [name]);
        }
    }
    world.discovery.set("x", [instance(3, "r1")]);
    sees(&mut one, &["3@x:20880"]).await;
    sees(&mut other, &["3@x:20880"]).await;
}

#[tokio::test(start_paused = true)]
async fn back_before_the_move_was_over_is_no_move() {
    let world = world();
    world.discovery.set("x", [instance(1, "r1")]);
    world.mapping.set(FOO, &["x"]);
    let mut service = follow(&world, "");
    sees(&mut service, &["1@x:20880"]).await;
    world.mapping.set(FOO, &["y"]);
    while applications_of(&service) != ["x", "y"] {
        service.changed().await;
    }
    world.mapping.set(FOO, &["x"]);
    world.discovery.set("y", []);
    while applications_of(&service) != ["x"] {
        service.changed().await;
    }
    assert_eq!(shown(service.addresses()).unwrap(), ["1@x:20880"]);
    assert_eq!(world.discovery.asked("x"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_application_without_instances_is_left_for_another_without() {
    let world = world();
    world.discovery.set("x", [instance(1, "r1")]);
    world.discovery.set("y", []);
    world.mapping.set(FOO, &["x"]);
    let mut service = follow(&world, "");
    sees(&mut service, &["1@x:20880"]).await;
    world.mapping.set(FOO, &["y"]);
    world.discovery.set("x", []);
    sees(&mut service, &[]).await;
    assert_eq!(applications_of(&service), ["y"]);
}

// C33
#[tokio::test(start_paused = true)]
async fn an_interface_that_nobody_mapped_has_no_address_until_somebody_does() {
    let world = world();
    let mut service = follow(&world, "");
    assert_eq!(shown(service.addresses()), None, "not read yet");
    world.mapping.set(FOO, &[]);
    sees(&mut service, &[]).await;
    assert_eq!((service.addresses().listed, &service.addresses().trouble), (0, &None));
    world.discovery.set("app-a", [instance(1, "r1")]);
    world.mapping.set(FOO, &["app-a"]);
    sees(&mut service, &["1@app-a:20880"]).await;
    // As when its node is emptied.
    world.mapping.set(FOO, &[]);
    world.discovery.set("app-a", [instance(2, "r1")]);
    sees(&mut service, &["2@app-a:20880"]).await;
}

#[tokio::test(start_paused = true)]
async fn given_applications_need_no_mapping() {
    let world = world();
    world.discovery.set("app-a", [instance(1, "r1")]);
    world.discovery.set("app-b", [instance(2, "r1")]);
    let mut service = follow(&world, "&provided-by=app-b, app-a");
    sees(&mut service, &["1@app-a:20880", "2@app-b:20880"]).await;
    assert!(!world.mapping.is_watched(FOO));
}

#[tokio::test(start_paused = true)]
async fn the_registrys_applications_count_until_the_mapping_knows_better() {
    let world = world();
    world.discovery.set("app-a", [instance(1, "r1")]);
    world.discovery.set("app-b", [instance(2, "r1")]);
    let mut service = follow_of(&world, "", "&subscribed-services=app-a");
    assert_eq!(shown(service.addresses()), None);
    world.mapping.set(FOO, &[]);
    sees(&mut service, &["1@app-a:20880"]).await;
    world.mapping.set(FOO, &["app-b"]);
    sees(&mut service, &["2@app-b:20880"]).await;
}

// C30
#[tokio::test(start_paused = true)]
async fn each_protocol_has_the_port_of_its_endpoint() {
    let world = world();
    let endpoints = r#"[{"port":20880,"protocol":"dubbo"},{"port":10800,"protocol":"tri"}]"#;
    let of = |protocol: &str, port| ServiceInfo { protocol: protocol.to_owned(), port, ..service(FOO) };
    world.answers.offers("r7", [of("dubbo", 20880), of("tri", 10800)]);
    world.answers.offers("r8", [of("dubbo", -1), of("tri", 0), of("rest", -1)]);
    world.discovery.set(
        "app",
        [
            instance(1, "r7").with(ENDPOINTS, endpoints),
            instance(2, "r8").with(ENDPOINTS, endpoints),
            instance(3, "r8"),
        ],
    );
    world.mapping.set(FOO, &["app"]);
    let rows = [
        ("&protocol=tri", vec!["1@app:10800", "2@app:10800", "3@app:20880"]),
        ("&protocol=dubbo", vec!["1@app:20880", "2@app:20880", "3@app:20880"]),
        ("&protocol=rest", vec!["2@app:20880", "3@app:20880"]),
        (
            "&protocol=tri,dubbo",
            vec!["1@app:20880", "1@app:10800", "2@app:20880", "2@app:10800", "3@app:20880", "3@app:20880"],
        ),
    ];
    for (params, wanted) in rows {
        sees(&mut follow(&world, params), &wanted).await;
    }
}

// C03
#[tokio::test(start_paused = true)]
async fn a_service_is_not_emptied_for_metadata_that_fails() {
    let world = world();
    world.mapping.set(FOO, &["app"]);
    world.discovery.set("app", [instance(1, "r1")]);
    let mut service = follow(&world, "");
    sees(&mut service, &["1@app:20880"]).await;
    world.answers.fails("r3");
    world.discovery.set("app", [instance(2, "r3")]);
    while service.addresses().failure.is_none() {
        service.changed().await;
    }
    assert_eq!(shown(service.addresses()).unwrap(), ["1@app:20880"]);
    let failed = Instant::now();
    world.answers.offers("r3", [self::service(FOO)]);
    sees(&mut service, &["2@app:20880"]).await;
    assert!(failed.elapsed() <= Duration::from_secs(10));
    world.answers.offers("r4", [self::service("a.Other")]);
    world.discovery.set("app", [instance(2, "r4")]);
    sees(&mut service, &[]).await;
    assert_eq!(service.addresses().listed, 1, "it is there, and does not have the service");
}

// C10
#[tokio::test(start_paused = true)]
async fn nothing_left_is_an_explicit_empty_list_and_trouble_is_none() {
    let world = world();
    world.mapping.set(FOO, &["app"]);
    let mut service = follow(&world, "");
    assert_eq!(shown(service.addresses()), None);
    world.discovery.set("app", [instance(1, "r1")]);
    sees(&mut service, &["1@app:20880"]).await;
    world.discovery.trouble("app", Some("lost"));
    service.changed().await;
    assert_eq!(shown(service.addresses()).unwrap(), ["1@app:20880"]);
    assert_eq!(service.addresses().trouble.as_deref(), Some("lost"));
    world.discovery.trouble("app", None);
    world.discovery.set("app", []);
    sees(&mut service, &[]).await;
}

// C111
#[tokio::test(start_paused = true)]
async fn plain_instances_are_used_by_who_says_protocol_and_application() {
    let world = world();
    let plain = |number: u8| {
        let mut instance = instance(number, "");
        instance.metadata.clear();
        instance
    };
    world.discovery.set("boot", [plain(1), plain(2)]);
    let mut service = follow(&world, "&provided-by=boot&protocol=dubbo&version=1");
    sees(&mut service, &["1@boot:20880", "2@boot:20880"]).await;
    let presumed = Arc::clone(&service.addresses().known.as_ref().unwrap()[0].service);
    assert_eq!((presumed.service_key(), &*presumed.protocol), (format!("{FOO}:1"), "dubbo"));
    world.discovery.set("boot", [plain(1), ServiceInstance { enabled: false, ..plain(2) }]);
    sees(&mut service, &["1@boot:20880"]).await;
    let mut without_protocol = follow(&world, "&provided-by=boot");
    sees(&mut without_protocol, &[]).await;
    world.mapping.set(FOO, &["boot"]);
    sees(&mut follow(&world, "&protocol=dubbo"), &[]).await;
    // The same application's web server and Dubbo server, in one folder.
    let version_1 = ServiceInfo { version: Some("1".to_owned()), ..self::service(FOO) };
    world.answers.offers("r3", [version_1]);
    world.discovery.set("boot", [plain(1), instance(3, "r3")]);
    sees(&mut service, &["3@boot:20880"]).await;
    world.discovery.set("boot", [plain(1)]);
    sees(&mut service, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn the_services_of_an_instance_share_it() {
    let world = world();
    world.discovery.set("app", [instance(1, "r1")]);
    let mut foo = follow(&world, "&provided-by=app");
    let consumer = Url::parse("consumer://192.0.2.9/a.Bar?interface=a.Bar&provided-by=app").unwrap();
    let registry = Url::parse("zookeeper://192.0.2.1:2181").unwrap();
    let mut bar = MappedService::follow(&consumer, &registry, &*world.mapping, Arc::clone(&world.listeners));
    sees(&mut foo, &["1@app:20880"]).await;
    sees(&mut bar, &["1@app:20880"]).await;
    let of = |service: &MappedService| Arc::clone(&service.addresses().known.as_ref().unwrap()[0].instance);
    assert!(Arc::ptr_eq(&of(&foo), &of(&bar)));
    assert_eq!(world.discovery.asked("app"), 1);
    assert_eq!(world.answers.asked(), ["1@r1"]);
}

// C12
#[tokio::test(start_paused = true)]
async fn what_was_mapped_after_a_cold_start_is_left_for_what_is_mapped_then() {
    let world = world();
    world.discovery.set("a", [instance(1, "r1")]);
    world.discovery.set("b", [instance(2, "r1")]);
    let mut service = follow(&world, "&protocol=dubbo");
    world.mapping.set(FOO, &[]);
    sees(&mut service, &[]).await;
    world.mapping.set(FOO, &["a"]);
    sees(&mut service, &["1@a:20880"]).await;
    world.mapping.set(FOO, &["b"]);
    sees(&mut service, &["2@b:20880"]).await;
    assert_eq!(applications_of(&service), ["b"]);
    world.discovery.set("a", [instance(3, "r1")]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.listeners.listening(), 1, "nobody listens to a any more");
    sees(&mut service, &["2@b:20880"]).await;
}

#[tokio::test(start_paused = true)]
async fn while_the_mapping_cannot_be_read_the_registrys_applications_count() {
    let world = world();
    world.discovery.set("app-a", [instance(1, "r1")]);
    world.discovery.set("app-b", [instance(2, "r1")]);
    let mut service = follow_of(&world, "", "&subscribed-services=app-a");
    world.mapping.trouble(FOO, Some("denied"));
    sees(&mut service, &["1@app-a:20880"]).await;
    assert_eq!(service.addresses().trouble.as_deref(), Some("denied"));
    world.discovery.set("app-a", []);
    while service.addresses().listed > 0 {
        service.changed().await;
    }
    assert_eq!(shown(service.addresses()).unwrap(), ["1@app-a:20880"], "the mapping may know others");
    world.mapping.set(FOO, &["app-b"]);
    world.mapping.trouble(FOO, None);
    sees(&mut service, &["2@app-b:20880"]).await;
    assert_eq!(applications_of(&service), ["app-b"]);
}

// C03
#[tokio::test(start_paused = true)]
async fn an_application_whose_metadata_fails_takes_nothing_from_another() {
    let world = world();
    world.mapping.set(FOO, &["a", "b"]);
    world.answers.fails("r3");
    world.discovery.set("a", [instance(1, "r3")]);
    world.discovery.set("b", [instance(2, "r1"), instance(3, "r1")]);
    let mut service = follow(&world, "");
    sees(&mut service, &["2@b:20880", "3@b:20880"]).await;
    world.discovery.set("b", [instance(3, "r2")]);
    sees(&mut service, &["3@b:20880"]).await;
    while service.addresses().failure.is_none() {
        service.changed().await;
    }
    assert_eq!((service.addresses().doubt(), service.addresses().is_kept), (None, false));
    // Now there is nothing but what cannot be known.
    world.discovery.set("b", []);
    while !service.addresses().is_kept {
        service.changed().await;
    }
    assert_eq!(shown(service.addresses()).unwrap(), ["3@b:20880"]);
    assert!(service.addresses().doubt().unwrap().contains("connection refused"));
    world.answers.offers("r3", [self::service(FOO)]);
    sees(&mut service, &["1@a:20880"]).await;
    assert_eq!((service.addresses().doubt(), service.addresses().is_kept), (None, false));
}

#[tokio::test(start_paused = true)]
async fn a_consumer_sees_its_groups_and_versions_only() {
    let world = World::new();
    let of = |group: &str, version: &str| {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        ServiceInfo { group: text(group), version: text(version), ..self::service(FOO) }
    };
    world.answers.offers("r1", [of("", ""), of("g", "1"), of("h", "2")]);
    world.discovery.set("app", [instance(1, "r1")]);
    let rows: [(&str, &[&str]); 8] = [
        ("", &["a.Foo"]),
        ("&version=1", &[]),
        ("&group=g&version=1", &["g/a.Foo:1"]),
        ("&group=g,h&version=*", &["g/a.Foo:1", "h/a.Foo:2"]),
        ("&group=*&version=2", &["h/a.Foo:2"]),
        ("&group=*&version=*", &["a.Foo", "g/a.Foo:1", "h/a.Foo:2"]),
        ("&group=,g&version=1,", &["a.Foo", "g/a.Foo:1"]),
        ("&group=g", &[]),
    ];
    for (params, wanted) in rows {
        let mut service = follow(&world, &format!("&provided-by=app{params}"));
        while service.addresses().known.is_none() {
            service.changed().await;
        }
        let known = service.addresses().known.clone().unwrap();
        let keys: Vec<String> = known.iter().map(|one| one.service.service_key()).collect();
        assert_eq!(keys, wanted, "{params}");
    }
}

/// Whatever happens in whatever order, in the end it is as the registry says last.
#[tokio::test(start_paused = true)]
async fn no_change_is_lost_whatever_comes_between() {
    const NAMES: [&str; 3] = ["x", "y", "z"];
    const REVISIONS: [&str; 4] = ["r1", "r2", "r3", "r4"];
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let world = world();
        let mut service = follow(&world, "");
        for _ in 0..80 {
            let name = NAMES[random.usize(..3)];
            match random.u8(..8) {
                0..=1 => {
                    let chosen: Vec<&str> = NAMES.into_iter().filter(|_| random.bool()).collect();
                    world.mapping.set(FOO, &chosen);
                }
                2..=4 => {
                    let revision = REVISIONS[random.usize(..4)];
                    let instances: Vec<_> = (1..6).filter(|_| random.bool()).collect();
                    world.discovery.set(name, instances.into_iter().map(|number| instance(number, revision)));
                }
                5 => world.answers.fails(REVISIONS[random.usize(..4)]),
                6 => world.discovery.trouble(name, random.bool().then_some("lost")),
                _ => {
                    let _ =
                        tokio::time::timeout(Duration::from_millis(random.u64(..3_000)), service.changed())
                            .await;
                }
            }
            for _ in 0..random.usize(..4) {
                tokio::task::yield_now().await;
            }
        }
        for revision in REVISIONS {
            world.answers.offers(revision, [self::service(FOO)]);
        }
        for name in NAMES {
            world.discovery.trouble(name, None);
            world.discovery.set(name, [instance(9, REVISIONS[random.usize(..4)])]);
        }
        let last = NAMES[random.usize(..3)];
        world.mapping.set(FOO, &[last]);
        let wanted = format!("9@{last}:20880");
        let settling = async {
            while applications_of(&service) != [last]
                || shown(service.addresses()) != Some(vec![wanted.clone()])
            {
                assert!(service.changed().await);
            }
        };
        let settled = tokio::time::timeout(Duration::from_secs(60), settling).await;
        assert!(settled.is_ok(), "seed {seed}: {wanted} never came");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(world.listeners.listening(), 1, "seed {seed}");
    }
}

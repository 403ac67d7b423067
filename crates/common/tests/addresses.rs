//! Hosts, ports and server lists, IPv6 above all.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::address::{connect_host, to_real_registry_url, to_registry_url};
use dubhe_common::{Url, UrlError, UrlFactory, encode, parse_registry_address};

fn no_defaults() -> Url {
    Url::builder("", "", 0).build()
}

// C48
#[test]
fn reads_a_bracketed_ipv6_provider_and_registers_it_back_with_brackets() {
    let text = "dubbo://[2001:db8::1]:20880/demo.Foo";
    let url = Url::parse(text).unwrap();
    assert_eq!((url.host(), url.connect_host(), url.port()), ("[2001:db8::1]", "2001:db8::1", 20880));
    assert_eq!(url.to_full_string(), text);
    assert_eq!(url.encoded(), encode(text));
    assert_eq!(Url::parse_encoded(&url.encoded()).unwrap(), url);
}

// C48
#[test]
fn puts_brackets_around_an_ipv6_address_given_to_a_builder() {
    let url = Url::builder("dubbo", "2001:db8::1", 20880).path("demo.Foo").build();
    assert_eq!(url.to_full_string(), "dubbo://[2001:db8::1]:20880/demo.Foo");
    assert_eq!(url.with_host("fd00::2").address(), "[fd00::2]:20880");
}

// C48
#[test]
fn strips_the_scope_of_a_link_local_address_for_connecting() {
    for (text, host, port) in [
        ("dubbo://[fe80::1%25en0]:20880/demo.Foo", "fe80::1", 20880),
        ("dubbo://[fe80::1%25en0]/demo.Foo", "fe80::1", 0),
        ("dubbo://fe80:0:0:0:894:aeec:f37d:23e1%en0/demo.Foo", "fe80:0:0:0:894:aeec:f37d:23e1", 0),
        ("dubbo://2001:db8::1%eth0:20880/demo.Foo", "2001:db8::1", 20880),
    ] {
        let url = Url::parse(text).unwrap();
        assert_eq!((url.connect_host(), url.port(), url.path()), (host, port, Some("demo.Foo")), "{text}");
    }
    assert_eq!(connect_host("provider%1.example"), "provider%1.example");
}

// C48
#[test]
fn takes_an_address_that_starts_with_a_hex_letter_for_a_host() {
    for text in ["fd00::1", "dubbo://fd00::1", "dubbo://fd00::1/demo.Foo", "dubbo://[fd00::1]/demo.Foo"] {
        let url = Url::parse(text).unwrap();
        assert_eq!((url.connect_host(), url.port()), ("fd00::1", 0), "{text}");
    }
    let full = Url::parse("dubbo://2001:db8:0:0:0:0:0:1/demo.Foo").unwrap();
    assert_eq!((full.host(), full.port()), ("2001:db8:0:0:0:0:0:1", 0));
    let with_port = Url::parse("dubbo://fd00::1:20880/demo.Foo").unwrap();
    assert_eq!((with_port.host(), with_port.port()), ("fd00::1", 20880));
}

// C48
#[test]
fn a_bad_child_fails_alone() {
    let factory = UrlFactory::new();
    let children = [
        "dubbo://192.0.2.1:20880/demo.Foo?side=elsewhere",
        "dubbo://192.0.2.2:port/demo.Foo",
        "dubbo://[2001:db8::3]:20880/demo.Foo",
    ];
    let read: Vec<_> = children.iter().map(|child| factory.parse_encoded(&encode(child))).collect();
    assert_eq!(read.iter().filter(|url| url.is_ok()).count(), 2);
    assert_eq!(read[0].as_ref().unwrap().side(), Some("elsewhere"));
    assert_eq!(read[2].as_ref().unwrap().connect_host(), "2001:db8::3");
}

#[test]
fn says_what_is_wrong_with_a_port_and_where() {
    let error = Url::parse("dubbo://admin:secret@192.0.2.1:abc/demo.Foo").unwrap_err();
    assert!(matches!(&error, UrlError::BadPort { port, offset: 31, .. } if port == "abc"), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("`abc` at offset 31") && text.contains("from 0 to 65535"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn never_shows_a_password_in_messages_or_logs() {
    let url = Url::parse("dubbo://admin:secret@192.0.2.1:20880/demo.Foo").unwrap();
    let shown = [format!("{url}"), format!("{url:?}"), format!("{:?}", url.to_builder())];
    let long = "p".repeat(500);
    let errors = [
        Url::parse("://admin:secret@h"),
        Url::parse("admin:secret@h:x"),
        Url::parse_encoded("dubbo%3A%2F%2Fadmin%3Asecret%40h%3Ax"),
        Url::parse(&format!("dubbo://{long}:secret@h:x")),
        Url::parse(&format!("dubbo://admin:secret@h?{}", "a=1&".repeat(300_000))),
        Url::parse("dubbo://h:x/p?token=secret"),
    ]
    .map(|result| result.unwrap_err().to_string());
    for text in shown.iter().chain(&errors) {
        assert!(!text.contains("secret") && !text.contains("ppp"), "{text}");
    }
}

// C49
#[test]
fn every_spelling_of_a_server_list_names_all_servers() {
    let defaults = Url::builder("zookeeper", "", 2181).build();
    for text in [
        "zookeeper://192.0.2.1:2181?backup=192.0.2.2:2181,192.0.2.3",
        "192.0.2.1:2181?backup=192.0.2.2:2181,192.0.2.3",
        "192.0.2.1:2181,192.0.2.2:2181,192.0.2.3",
        "zookeeper://192.0.2.1:2181,192.0.2.2:2181,192.0.2.3",
        "192.0.2.1 , 192.0.2.2 , 192.0.2.3",
        "zookeeper://192.0.2.1,192.0.2.2:2181?backup=192.0.2.2:2181,192.0.2.3",
    ] {
        let urls = parse_registry_address(text, &defaults).unwrap();
        assert_eq!(urls.len(), 1, "{text}");
        assert_eq!(urls[0].protocol(), "zookeeper", "{text}");
        assert_eq!(
            urls[0].backup_addresses(2181),
            ["192.0.2.1:2181", "192.0.2.2:2181", "192.0.2.3:2181"],
            "{text}"
        );
    }
}

// C49
#[test]
fn a_backup_list_is_not_appended_twice() {
    let defaults = Url::builder("zookeeper", "", 2181).param("backup", "192.0.2.9:2181").build();
    let text = "zookeeper://192.0.2.1:2181?backup=192.0.2.2:2181,192.0.2.2:2181";
    let once = parse_registry_address(text, &defaults).unwrap();
    assert_eq!(once[0].param("backup"), Some("192.0.2.2:2181"));
    let twice = parse_registry_address(&once[0].to_full_string(), &defaults).unwrap();
    assert_eq!(twice, once);
}

// C48, C49
#[test]
fn a_server_list_may_hold_ipv6_addresses() {
    let urls = parse_registry_address("[2001:db8::1]:2181,fd00::2,[fd00::3]", &no_defaults().with_port(2181))
        .unwrap();
    assert_eq!(urls[0].backup_addresses(2181), ["[2001:db8::1]:2181", "[fd00::2]:2181", "[fd00::3]:2181"]);
    let urls = parse_registry_address("zookeeper://fd00::1", &no_defaults()).unwrap();
    assert_eq!(urls[0].address(), "[fd00::1]:9090");
}

#[test]
fn what_a_registry_address_says_wins_over_the_configuration() {
    let defaults = Url::builder("zookeeper", "", 2181)
        .user("config-user")
        .password("config-password")
        .path("root")
        .param("timeout", 1)
        .param("session", 2)
        .build();
    let urls =
        parse_registry_address("nacos://u:p,w@192.0.2.1:8848/x?timeout=9|192.0.2.2", &defaults).unwrap();
    assert_eq!(urls[0].to_full_string(), "nacos://u:p,w@192.0.2.1:8848/x?session=2&timeout=9");
    assert_eq!(
        urls[1].to_full_string(),
        "zookeeper://config-user:config-password@192.0.2.2:2181/root?session=2&timeout=1"
    );
    assert_eq!(
        parse_registry_address("192.0.2.1", &no_defaults()).unwrap()[0].to_full_string(),
        "dubbo://192.0.2.1:9090"
    );
}

#[test]
fn no_registry_is_not_an_error_but_an_empty_address_is() {
    assert_eq!(parse_registry_address("n/a", &no_defaults()).unwrap(), []);
    for text in ["", "  ", "zookeeper://", "zookeeper://?backup=192.0.2.1:2181", "zookeeper://,"] {
        let error = parse_registry_address(text, &no_defaults()).unwrap_err();
        assert!(matches!(error, UrlError::EmptyAddress { .. }), "{text}: {error}");
        assert!(error.to_string().contains("names no server"), "{error}");
    }
}

#[test]
fn a_password_without_a_user_is_an_error_of_the_builder() {
    let builder = Url::builder("dubbo", "192.0.2.1", 20880).password("p");
    assert!(matches!(builder.clone().try_build(), Err(UrlError::PasswordWithoutUser { .. })));
    assert_eq!(builder.build().to_full_string(), "dubbo://192.0.2.1:20880");
}

#[test]
fn a_registry_url_says_how_to_discover_and_keeps_the_real_protocol() {
    for (address, protocol) in [
        ("zookeeper://192.0.2.1:2181", "registry"),
        ("zookeeper://192.0.2.1:2181?registry-type=service", "service-discovery-registry"),
        ("zookeeper://192.0.2.1:2181?registry-protocol-type=xds", "xds"),
    ] {
        let url = to_registry_url(&Url::parse(address).unwrap());
        assert_eq!((url.protocol(), url.param("registry")), (protocol, Some("zookeeper")), "{address}");
        assert_eq!(url.path(), Some("org.apache.dubbo.registry.RegistryService"));
        assert_eq!(to_real_registry_url(&url).protocol(), "zookeeper");
        assert_eq!(to_real_registry_url(&url).param("registry"), None);
    }
}

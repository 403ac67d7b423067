//! A name whose parameters were read before is not read again, and gives the same URL all the same.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use dubhe_common::defaults::MAX_URL_PARAMS;
use dubhe_common::{Url, UrlError, UrlFactory, encode};
use proptest::prelude::*;
use proptest::sample::{Index, select};

const SEPARATORS: [&str; 7] = ["%26", "%26", "%26", "%3B", "%3b", "&", ";"];
const EQUALS: [&str; 6] = ["%3D", "%3D", "%3d", "=", "", "%3D%3D"];
const NAMES: [&str; 22] = [
    "pid",
    "pid",
    "timestamp",
    "timestamp",
    "xpid",
    "pidx",
    "remote.timestamp",
    "timestamp.x",
    "default.pid",
    "default.timestamp",
    "%70id",
    "timestam%70",
    "%3Dpid",
    "=timestamp",
    "%3D%3Dtimestamp",
    "+pid",
    "%26pid",
    "%pid",
    "side",
    "timeout",
    "default.timeout",
    "",
];

/// One escaped parameter with its separator; `#` stands for what differs between starts.
fn parameter() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("#".to_owned()),
        Just("#".to_owned()),
        Just("%253F#".to_owned()),
        Just("timestamp%3D#".to_owned()),
        Just("%3F#".to_owned()),
        Just("?".to_owned()),
        "[a-z%+ \u{e9}\u{4e2d}]{0,4}",
    ];
    (select(&SEPARATORS[..]), select(&NAMES[..]), select(&EQUALS[..]), value)
        .prop_map(|(separator, name, equals, value)| format!("{separator}{name}{equals}{value}"))
}

/// A name as a registry holds it, mostly.
fn template() -> impl Strategy<Value = String> {
    let mark = select(&["%3F", "%3F", "%3f", "?", "%3Fa%3D1", ""][..]);
    let body = select(
        &[
            "dubbo%3A%2F%2F192.0.2.#%3A20880%2Fdemo.Foo",
            "dubbo%3A%2F%2Fu%3Ap%40h%3A#",
            "dubbo://h:1/p",
            "h",
            "",
        ][..],
    );
    let parameters = prop::collection::vec(parameter(), 0..8).prop_map(|all| all.concat());
    (body, mark, parameters, any::<bool>()).prop_map(|(body, mark, parameters, whole)| {
        let first = if whole { "side%3Dprovider" } else { "" };
        format!("{body}{mark}{first}{parameters}")
    })
}

/// Cut or changed at one place.
fn damaged(name: &str, at: Index, how: u8) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    if letters.is_empty() {
        return String::new();
    }
    let at = at.index(letters.len());
    match how {
        0 => letters.truncate(at),
        1 => drop(letters.remove(at)),
        2 => letters[at] = '%',
        3 => letters.insert(at, '&'),
        _ => {}
    }
    letters.into_iter().collect()
}

fn text_of(read: Result<Url, UrlError>) -> Result<String, String> {
    read.map(|url| url.without_param("pid").to_full_string()).map_err(|error| error.to_string())
}

/// How many texts a factory keeps.
fn texts(factory: &UrlFactory) -> usize {
    let shown = format!("{factory:?}");
    shown.split("texts: ").nth(1).unwrap().trim_end_matches([' ', '}']).parse().unwrap()
}

proptest! {
    // Failing cases are fixed and kept as tests of their own.
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_known_text_gives_what_reading_it_gives(
        templates in prop::collection::vec(template(), 1..4),
        at in any::<Index>(),
        how in 0..8_u8,
    ) {
        let factory = UrlFactory::new();
        for start in [1, 22, 333, 4, 22] {
            for template in &templates {
                let name = damaged(&template.replace('#', &start.to_string()), at, how);
                for _ in 0..2 {
                    let read = factory.parse_encoded(&name);
                    let fresh = Url::parse_encoded(&name).map(|url| url.without_param("pid"));
                    if let (Ok(read), Ok(fresh)) = (&read, &fresh) {
                        prop_assert_eq!(read, fresh);
                        prop_assert_eq!(read.raw_param("timestamp"), fresh.raw_param("timestamp"));
                        prop_assert_eq!(read.raw_param("pid"), None);
                    }
                    prop_assert_eq!(text_of(read), text_of(fresh), "{}", name);
                }
            }
        }
    }
}

fn name(host: usize, params: &str) -> String {
    encode(&format!("dubbo://192.0.2.{host}:20880/demo.Foo?{params}"))
}

#[test]
fn the_text_of_a_set_is_kept_from_the_second_time_on_and_goes_with_its_last_url() {
    let factory = UrlFactory::new();
    let read = |host: usize| {
        factory.parse_encoded(&name(host, &format!("a=1&pid={host}&side=provider&timestamp={host}"))).unwrap()
    };
    let first = read(1);
    assert_eq!(texts(&factory), 0, "a set that is never met again costs no text");
    let urls: Vec<Url> = (2..100).map(read).collect();
    assert_eq!(texts(&factory), 1);
    assert!(urls.iter().all(|url| url.shared_params().ptr_eq(first.shared_params())));
    drop(urls);
    factory.sweep();
    assert_eq!(texts(&factory), 1);
    drop(first);
    let left = factory.interned();
    assert_eq!((left.strings, left.param_sets, texts(&factory)), (0, 0, 0));
}

#[test]
fn many_spellings_of_one_set_keep_one_text() {
    let factory = UrlFactory::new();
    let urls: Vec<Url> = (0..2_000)
        .map(|number| name(1, &format!("a=1{}side=provider", "&".repeat(number % 1_000 + 1))))
        .flat_map(|name| [factory.parse_encoded(&name).unwrap(), factory.parse_encoded(&name).unwrap()])
        .collect();
    assert!(urls.iter().all(|url| *url == urls[0]));
    assert_eq!(texts(&factory), 1);
}

#[test]
fn other_spellings_of_the_names_that_differ_are_still_read() {
    let factory = UrlFactory::new();
    for start in 1..5 {
        for params in
            ["a%3D1%26%70id%3D{}%26timestam%70%3D{}", "a%3D1%26%3Dtimestamp%3D{}", "default.timestamp%3D{}"]
        {
            let name = format!("dubbo%3A%2F%2Fh%3A1%2Fp%3F{}", params.replace("{}", &start.to_string()));
            let url = factory.parse_encoded(&name).unwrap();
            assert_eq!(
                (url.param("timestamp"), url.param("pid")),
                (Some(&*start.to_string()), None),
                "{name}"
            );
        }
    }
    assert_eq!(texts(&factory), 0);
    // The text of the second is that of the first, but what stands in for a missing `timestamp` differs.
    for (params, timestamp) in
        [("a=1&default.timestamp=5&timestamp=7", "7"), ("a=1&default.timestamp=5", "5")].repeat(3)
    {
        assert_eq!(factory.parse_encoded(&name(1, params)).unwrap().param("timestamp"), Some(timestamp));
    }
}

#[test]
fn too_many_parameters_are_an_error_each_time() {
    let factory = UrlFactory::new();
    let most: String = (1..MAX_URL_PARAMS).map(|number| format!("{number}&")).collect();
    for _ in 0..3 {
        assert!(factory.parse_encoded(&name(1, &format!("{most}pid=1"))).is_ok());
        assert!(matches!(
            factory.parse_encoded(&name(1, &format!("{most}pid=1&timestamp=2"))),
            Err(UrlError::TooManyParams { .. })
        ));
    }
}

//! A provider's services as metadata, and their revision (`MetadataInfo`, `DefaultMetadataParamsFilter`).

use std::collections::BTreeMap;
use std::fmt::Write;

use dubhe_common::{Url, keys};
use dubhe_core::discovery::NO_SERVICES;
use dubhe_core::metadata::ServiceInfo;
use md5::{Digest, Md5};

/// Parameters that metadata leaves out beside [`keys::MACHINE_LOCAL`]: they concern the process or the instance as a whole.
const OF_INSTANCE: [&str; 4] = [keys::PID, keys::TIMESTAMP, keys::HEARTBEAT_TIMEOUT, keys::IPV6];

/// A registered provider URL as metadata.
pub fn service_info(url: &Url) -> ServiceInfo {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    ServiceInfo {
        name: url.service_interface().to_owned(),
        group: owned(url.group()),
        version: owned(url.version()),
        protocol: url.protocol().to_owned(),
        port: i32::from(url.port()),
        path: owned(url.path()),
        params: url
            .params()
            .filter(|(name, _)| !is_left_out(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    }
}

/// Also a method's parameter of that name (`say.timestamp`) is left out.
fn is_left_out(name: &str) -> bool {
    keys::MACHINE_LOCAL.iter().chain(&OF_INSTANCE).any(|left_out| {
        let is_of_a_part = name.match_indices(left_out).any(|(at, _)| name[..at].ends_with('.'));
        name.eq_ignore_ascii_case(left_out) || is_of_a_part
    })
}

/// The revision of an application's services: the MD5 of a text that Java prints, as consumers may compare it with one
/// of Java's. `0` without services.
///
/// No time, process or host is in it, unless a parameter says one.
pub fn revision(application: Option<&str>, services: &BTreeMap<String, ServiceInfo>) -> String {
    if services.is_empty() {
        return NO_SERVICES.to_owned();
    }
    hex::encode(Md5::digest(description(application, services)))
}

fn description(application: Option<&str>, services: &BTreeMap<String, ServiceInfo>) -> String {
    let mut text = application.unwrap_or("null").to_owned();
    for (_, service) in in_javas_order(services) {
        let path = service.path.as_deref().unwrap_or("null");
        // Writing to a string does not fail.
        let _ = write!(text, "{}{}{path}{{", service.match_key(), service.port);
        for (at, (name, value)) in in_javas_order(&service.params).into_iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let _ = write!(text, "{comma}{name}={value}");
        }
        text.push('}');
    }
    text
}

/// Java sorts by UTF-16 units, which differs from the order of bytes beyond the basic plane.
fn in_javas_order<V>(entries: &BTreeMap<String, V>) -> Vec<(&String, &V)> {
    let mut entries: Vec<(&String, &V)> = entries.iter().collect();
    if entries.iter().any(|(key, _)| !key.is_ascii()) {
        entries.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded;
    use dubhe_core::metadata::MetadataInfo;

    fn of(url: &str) -> (String, ServiceInfo) {
        let info = service_info(&Url::parse(url).unwrap());
        (info.match_key(), info)
    }

    // C102
    #[test]
    fn the_check_value_of_the_specification_comes_out() {
        let one = of(
            "tri://192.0.2.1:50051/com.x.S?application=app-a&group=g1&interface=com.x.S&side=provider&version=1.0.0",
        );
        let services = BTreeMap::from([one]);
        assert_eq!(
            description(Some("app-a"), &services),
            "app-ag1/com.x.S:1.0.0:tri50051com.x.S{application=app-a, group=g1, interface=com.x.S, side=provider, version=1.0.0}"
        );
        assert_eq!(revision(Some("app-a"), &services), "0a3f56be410d9a46518fbf05abc86bb8");
    }

    // C102
    #[test]
    fn recorded_services_have_the_recorded_revisions() {
        let captured =
            recorded::captures().into_iter().map(|capture| (capture.revision, capture.metadata_info));
        let stored = recorded::nodes().into_iter().filter_map(|node| {
            let revision = node.path.strip_prefix("/dubbo/metadata/demo-provider/")?.to_owned();
            Some((revision, serde_json::from_str(&node.data).unwrap()))
        });
        let all: Vec<(String, MetadataInfo)> = captured.chain(stored).collect();
        assert_eq!(all.len(), 6, "four answers of 3.1, a stored one of 3.1 and one of 3.3");
        for (expected, info) in all {
            assert_eq!(revision(info.app.as_deref(), &info.services), expected);
            assert_eq!(info.revision.as_deref(), Some(&*expected));
            assert!(info.services.iter().all(|(key, service)| *key == service.match_key()));
        }
    }

    // C102
    #[test]
    fn the_revision_of_a_restarted_provider_is_the_same() {
        let url = |pid: u32| {
            format!(
                "dubbo://192.0.2.1:20880/demo.Foo?interface=demo.Foo&pid={pid}&timestamp={pid}&ipv6=::{pid}&bind.ip=x{pid}&\
                 bind.port={pid}&qos.port={pid}&say.timestamp={pid}&Monitor=m{pid}&a.validation={pid}&heartbeat.timeout={pid}"
            )
        };
        let (one, other) = (BTreeMap::from([of(&url(1))]), BTreeMap::from([of(&url(2))]));
        assert_eq!(revision(Some("a"), &one), revision(Some("a"), &other));
        let changed = BTreeMap::from([of(&format!("{}&timeout=5", url(1)))]);
        assert_ne!(revision(Some("a"), &one), revision(Some("a"), &changed));
        assert_ne!(revision(Some("a"), &one), revision(Some("b"), &one));
    }

    #[test]
    fn an_application_without_services_has_revision_zero() {
        assert_eq!(revision(Some("a"), &BTreeMap::new()), "0");
    }

    #[test]
    fn what_is_missing_is_printed_as_java_prints_it() {
        let bare = ServiceInfo {
            name: "a.B".to_owned(),
            protocol: "tri".to_owned(),
            port: -1,
            ..Default::default()
        };
        let services = BTreeMap::from([("a.B:tri".to_owned(), bare)]);
        assert_eq!(description(None, &services), "nulla.B:tri-1null{}");
    }

    #[test]
    fn services_and_parameters_are_in_javas_order() {
        let service = |name: &str| {
            let params = ["\u{ffff}", "\u{10000}", "a"].map(|name| (name.to_owned(), String::new()));
            ServiceInfo { name: name.to_owned(), params: params.into(), ..Default::default() }
        };
        let services: BTreeMap<String, ServiceInfo> =
            ["\u{ffff}", "\u{10000}"].map(|name| (name.to_owned(), service(name))).into();
        let text = description(Some(""), &services);
        assert!(text.starts_with("\u{10000}:0null{a=, \u{10000}=, \u{ffff}=}\u{ffff}"), "{text}");
    }

    #[test]
    fn only_whole_parts_of_names_are_left_out() {
        for (name, left_out) in [
            ("pid", true),
            ("PID", true),
            ("say.pid", true),
            ("say.pidx", true),
            ("apid", false),
            ("pidx", false),
            ("say.Pid", false),
            ("qos.enable", true),
            ("x.qos.enable", true),
        ] {
            assert_eq!(is_left_out(name), left_out, "{name}");
        }
    }
}

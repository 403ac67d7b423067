//! Whether a service is one that a consumer asks for (`ServiceKey.Matcher`, `ProtocolServiceKey.Matcher`).

use dubhe_common::{Url, keys};
use dubhe_core::metadata::ServiceInfo;

/// Services that their provider offers at one more protocol say so. Origin: `CommonConstants.IS_EXTRA` of 3.3.
const IS_EXTRA: &str = "isExtra";

/// What a consumer asks for: an interface, and groups, versions and protocols.
///
/// Group and version: `*` is any, a comma list any of its items, nothing is nothing: who asks for no version does not
/// see versioned services. Protocol: nothing is any, but for extra ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceMatch {
    interface: String,
    group: String,
    version: String,
    protocol: String,
}

impl ServiceMatch {
    /// What `consumer` asks for. The protocol is its `protocol`, else that of the URL unless it is `consumer`.
    pub fn of(consumer: &Url) -> Self {
        let scheme = Some(consumer.protocol()).filter(|name| *name != keys::protocol::CONSUMER);
        Self {
            interface: consumer.service_interface().to_owned(),
            group: consumer.group().unwrap_or_default().to_owned(),
            version: consumer.version().unwrap_or_default().to_owned(),
            protocol: consumer.param(keys::PROTOCOL).or(scheme).unwrap_or_default().to_owned(),
        }
    }

    /// The interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Whether this is one of the services asked for.
    pub fn matches(&self, service: &ServiceInfo) -> bool {
        let is_wanted_protocol = match self.protocol.as_str() {
            "" => !service.params.get(IS_EXTRA).is_some_and(|extra| extra.eq_ignore_ascii_case("true")),
            wanted => is_one_of(wanted, &service.protocol),
        };
        self.interface == service.name
            && is_one_of(&self.group, service.group.as_deref().unwrap_or_default())
            && is_one_of(&self.version, service.version.as_deref().unwrap_or_default())
            && is_wanted_protocol
    }

    /// The service that an instance without metadata is taken to offer: known only when the consumer says the protocol.
    /// It has no port of its own and no parameters.
    pub fn presumed(&self) -> Option<ServiceInfo> {
        let protocol = self.protocol.split(',').map(str::trim).find(|name| !name.is_empty())?;
        let exact = |text: &str| {
            (!text.is_empty() && text != keys::ANY && !text.contains(',')).then(|| text.to_owned())
        };
        (protocol != keys::ANY).then(|| ServiceInfo {
            name: self.interface.clone(),
            group: exact(&self.group),
            version: exact(&self.version),
            protocol: protocol.to_owned(),
            port: -1,
            ..ServiceInfo::default()
        })
    }
}

/// An empty item of a list stands for nothing.
fn is_one_of(wanted: &str, value: &str) -> bool {
    wanted == keys::ANY
        || wanted == value
        || wanted.contains(',') && wanted.split(',').any(|item| item.trim() == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(params: &str) -> ServiceMatch {
        ServiceMatch::of(&Url::parse(&format!("consumer://192.0.2.9/a.A?interface=a.A{params}")).unwrap())
    }

    fn service(group: &str, version: &str, protocol: &str) -> ServiceInfo {
        let text = |text: &str| Some(text).filter(|text| !text.is_empty()).map(str::to_owned);
        ServiceInfo {
            name: "a.A".to_owned(),
            group: text(group),
            version: text(version),
            protocol: protocol.to_owned(),
            ..ServiceInfo::default()
        }
    }

    #[test]
    fn group_version_and_protocol_are_matched_as_in_dubbo() {
        let rows = [
            ("", ("", "", "dubbo"), true),
            ("", ("", "1", "dubbo"), false),
            ("", ("g", "", "dubbo"), false),
            ("&version=1", ("", "1", "tri"), true),
            ("&version=1", ("", "", "tri"), false),
            ("&version=*&group=*", ("g", "1", "tri"), true),
            ("&version=*", ("g", "1", "tri"), false),
            ("&group=a, b", ("b", "", "tri"), true),
            ("&group=a,b", ("ab", "", "tri"), false),
            ("&version=1,2", ("", "2", "tri"), true),
            ("&version=1,", ("", "", "tri"), true),
            ("&protocol=tri", ("", "", "dubbo"), false),
            ("&protocol=*", ("", "", "dubbo"), true),
            ("&protocol=tri,dubbo", ("", "", "dubbo"), true),
        ];
        for (asked, (group, version, protocol), expected) in rows {
            assert_eq!(
                asks(asked).matches(&service(group, version, protocol)),
                expected,
                "{asked} {group} {version}"
            );
        }
        let other = ServiceInfo { name: "a.B".to_owned(), ..service("", "", "dubbo") };
        assert!(!asks("").matches(&other));
    }

    #[test]
    fn an_extra_protocol_is_only_for_those_who_ask_for_it() {
        let mut extra = service("", "", "tri");
        extra.params.insert(IS_EXTRA.to_owned(), "true".to_owned());
        assert!(!asks("").matches(&extra));
        assert!(asks("&protocol=tri").matches(&extra));
    }

    #[test]
    fn a_service_is_presumed_only_of_a_protocol_that_was_said() {
        assert_eq!(asks("").presumed(), None);
        assert_eq!(asks("&protocol=*").presumed(), None);
        let presumed = asks("&protocol=tri,dubbo&version=1&group=*").presumed().unwrap();
        assert_eq!(
            (&*presumed.protocol, presumed.version.as_deref(), presumed.group),
            ("tri", Some("1"), None)
        );
    }
}

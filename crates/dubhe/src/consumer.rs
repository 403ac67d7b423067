//! The URL of a consumer.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use dubhe_common::{Url, defaults, keys};
use dubhe_config::{DubboConfig, ReferenceConfig};

/// `release` of the URLs that Dubhe makes. Java peers read the leading numbers to know what a peer can do: Dubhe does what
/// Dubbo 3.3.6 does on the dubbo protocol.
pub(crate) const RELEASE: &str = "3.3.6-dubhe";

/// The consumer's URL: what all its settings come from, later ones over earlier ones: application, defaults of all references,
/// this reference.
pub(crate) fn url(
    config: &DubboConfig,
    reference: &ReferenceConfig,
    interface: &str,
    methods: &[&str],
    host: &str,
    generic: bool,
) -> Url {
    let mut params: BTreeMap<String, String> = config.application.url_params();
    params.extend(config.consumer.url_params());
    params.extend(reference.url_params());
    let mut url = Url::builder(keys::protocol::CONSUMER, host, 0)
        .path(interface)
        .param(keys::BACKGROUND, false)
        .param(keys::STICKY, false)
        .param(keys::UNLOAD_CLUSTER_RELATED, false)
        .params(params)
        .params(runtime())
        .param(keys::SIDE, keys::side::CONSUMER)
        .param(keys::INTERFACE, interface);
    if generic {
        url = url.param(keys::GENERIC, true);
    } else if !methods.is_empty() {
        url = url.param(keys::METHODS, method_list(methods));
    }
    with_revision(url.build())
}

/// `revision` is the version of the artifact that holds the interface; where nobody knows that, Dubbo takes the service's.
pub(crate) fn with_revision(url: Url) -> Url {
    match url.version() {
        Some(version)
            if version != keys::ANY && url.param(keys::GENERIC).is_none_or(|generic| generic == "false") =>
        {
            let version = version.to_owned();
            url.with_param_if_absent(keys::REVISION, version)
        }
        _ => url,
    }
}

/// The parameters that tell who made a URL, and when.
pub(crate) fn runtime() -> [(&'static str, String); 4] {
    [
        (keys::DUBBO, defaults::DUBBO_VERSION.to_owned()),
        (keys::RELEASE, RELEASE.to_owned()),
        (keys::PID, std::process::id().to_string()),
        (keys::TIMESTAMP, now_millis().to_string()),
    ]
}

/// Milliseconds since 1970.
pub(crate) fn now_millis() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Method names, sorted, once each.
fn method_list(methods: &[&str]) -> String {
    let mut names = methods.to_vec();
    names.sort_unstable();
    names.dedup();
    names.join(",")
}

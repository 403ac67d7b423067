//! What is the same in every request of an invoker, encoded once.

use std::collections::HashMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dubhe_common::defaults::DEFAULT_TIMEOUT;
use dubhe_common::{Url, keys};
use dubhe_core::serialize::{Serialization, SerializeError};

/// Attachments that belong to the provider called: what the caller set under these names is not sent.
pub(crate) const OWN: [&str; 7] = [
    keys::PATH,
    keys::INTERFACE,
    keys::VERSION,
    keys::GROUP,
    keys::TOKEN,
    keys::TIMEOUT,
    keys::REMOTE_APPLICATION,
];

/// Version of a service whose URL names none.
pub(crate) const NO_VERSION: &str = "0.0.0";

/// The fixed part of an invoker's requests.
#[derive(Debug)]
pub(crate) struct Constants {
    /// Second field of the body.
    pub(crate) interface: Box<str>,
    pub(crate) version: Box<str>,
    /// Attachments without the timeout, for calls that have their own.
    pub(crate) attachments: Bytes,
    /// Methods without parameters of their own.
    usual: PerMethod,
    named: HashMap<Box<str>, PerMethod>,
}

/// What parameters say about the calls of one method.
#[derive(Debug)]
pub(crate) struct PerMethod {
    pub(crate) timeout: Duration,
    /// Attachments with that timeout.
    pub(crate) attachments: Bytes,
    pub(crate) one_way: bool,
    /// Whether the provider is told how much time is left (`_TO`).
    pub(crate) countdown: bool,
}

impl Constants {
    /// `application` is the caller's name; without it the URL's.
    pub(crate) fn new(
        url: &Url,
        application: Option<&str>,
        serialization: &dyn Serialization,
    ) -> Result<Self, SerializeError> {
        let interface = match url.service_interface() {
            "" => url.path().unwrap_or(""),
            interface => interface,
        };
        let path = url.path().unwrap_or(interface);
        let version = url.version().unwrap_or(NO_VERSION);
        // In the order in which Java's map iterates, so that frames can be compared byte by byte.
        let before = [
            (keys::PATH, Some(path)),
            (keys::REMOTE_APPLICATION, application.or(url.application())),
            (keys::INTERFACE, Some(interface)),
            (keys::VERSION, Some(version)),
        ];
        let after = [(keys::GROUP, url.group()), (keys::TOKEN, url.param(keys::TOKEN))];
        let encode = |timeout: Option<Duration>| {
            let millis = timeout.map(|timeout| timeout.as_millis().to_string());
            let timeout = [(keys::TIMEOUT, millis.as_deref())];
            let all = before.iter().chain(&timeout).chain(&after);
            encode_strings(serialization, all.filter_map(|(key, value)| Some((*key, (*value)?))))
        };
        let per_method = |method: &str| -> Result<PerMethod, SerializeError> {
            let timeout = url.method_duration(method, keys::TIMEOUT, DEFAULT_TIMEOUT);
            let countdown = url.method_bool(method, keys::ENABLE_TIMEOUT_COUNTDOWN, false);
            let wants_answer = url.method_bool(method, keys::RETURN, true);
            Ok(PerMethod { timeout, attachments: encode(Some(timeout))?, one_way: !wants_answer, countdown })
        };
        let named = methods_with_parameters(url).map(|name| Ok((name.into(), per_method(name)?)));
        Ok(Self {
            attachments: encode(None)?,
            // No method has an empty name: this reads the parameters of the service.
            usual: per_method("")?,
            named: named.collect::<Result<_, SerializeError>>()?,
            interface: interface.into(),
            version: version.into(),
        })
    }

    pub(crate) fn of(&self, method: &str) -> &PerMethod {
        if self.named.is_empty() {
            return &self.usual;
        }
        self.named.get(method).unwrap_or(&self.usual)
    }
}

/// Methods that have parameters which matter here.
fn methods_with_parameters(url: &Url) -> impl Iterator<Item = &str> {
    const KEYS: [&str; 3] = [keys::TIMEOUT, keys::RETURN, keys::ENABLE_TIMEOUT_COUNTDOWN];
    let names = url.params().filter(|_| url.has_method_params()).filter_map(|(name, _)| name.split_once('.'));
    names.filter(|(_, key)| KEYS.contains(key)).map(|(method, _)| method)
}

/// Key and value strings for [`dubhe_core::serialize::ObjectWriter::write_attachments_with`].
pub(crate) fn encode_strings<'a>(
    serialization: &dyn Serialization,
    pairs: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Bytes, SerializeError> {
    let pairs: Vec<_> = pairs.collect();
    let mut out = BytesMut::new();
    serialization.encode(&mut out, &mut |writer| {
        for (key, value) in &pairs {
            writer.write_str(key)?;
            writer.write_str(value)?;
        }
        Ok(())
    })?;
    Ok(out.freeze())
}

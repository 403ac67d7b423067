//! Version 2 of the service, in protobuf.

use std::collections::BTreeMap;

use bytes::BytesMut;
use dubhe_common::Url;
use dubhe_core::error::RpcError;
use dubhe_core::metadata::{MetadataInfo, ServiceInfo};
use dubhe_core::serialize::SerializeError;

use crate::malformed;
use crate::protobuf::{Field, Fields, put_bytes};
use crate::unary::{Call, Caller};

const PATH: &str = "/org.apache.dubbo.metadata.MetadataServiceV2/GetMetadataInfo";
const VERSION: &str = "2.0.0";

pub(crate) async fn ask(
    caller: &mut Caller,
    url: &Url,
    application: &str,
    revision: &str,
) -> Result<Option<MetadataInfo>, RpcError> {
    // MetadataRequest: 1 revision.
    let mut request = BytesMut::new();
    put_bytes(&mut request, 1, revision.as_bytes());
    let call = Call { path: PATH, group: url.group(), version: VERSION, application };
    let answer = caller.call(&call, &request).await?;
    let info = read_info(&answer.message).map_err(|error| malformed(url, revision, &error))?;
    // Null is an empty message here.
    Ok((info != MetadataInfo::default()).then_some(info))
}

/// `MetadataInfoV2`: 1 `app`, 2 `version` (the revision), 3 `services`.
fn read_info(message: &[u8]) -> Result<MetadataInfo, SerializeError> {
    let mut info = MetadataInfo::default();
    for field in Fields::of(message) {
        match field? {
            (1, app) => info.app = text(app)?,
            (2, revision) => info.revision = text(revision)?,
            (3, entry) => {
                let (key, service) = read_entry(entry)?;
                info.services.insert(key, read_service(service)?);
            }
            _ => {}
        }
    }
    Ok(info)
}

/// `ServiceInfoV2`: 1 `name`, 2 `group`, 3 `version`, 4 `protocol`, 5 `port`, 6 `path`, 7 `params`.
fn read_service(message: &[u8]) -> Result<ServiceInfo, SerializeError> {
    let mut service = ServiceInfo {
        name: String::new(),
        group: None,
        version: None,
        protocol: String::new(),
        port: UNKNOWN_PORT,
        path: None,
        params: BTreeMap::new(),
    };
    for field in Fields::of(message) {
        match field? {
            (1, name) => service.name = name.text()?,
            (2, group) => service.group = text(group)?,
            (3, version) => service.version = text(version)?,
            (4, protocol) => service.protocol = protocol.text()?,
            (5, port) => service.port = port.int32()?,
            (6, path) => service.path = text(path)?,
            (7, entry) => {
                let (key, value) = read_entry(entry)?;
                service.params.insert(key, Field::Bytes(value).text()?);
            }
            _ => {}
        }
    }
    Ok(service)
}

const UNKNOWN_PORT: i32 = -1;

/// An entry of a map: 1 the key, 2 the value; what is missing is empty.
fn read_entry(entry: Field<'_>) -> Result<(String, &[u8]), SerializeError> {
    let (mut key, mut value) = (String::new(), &[][..]);
    for field in Fields::of(entry.bytes()?) {
        match field? {
            (1, text) => key = text.text()?,
            (2, bytes) => value = bytes.bytes()?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// Empty stands for null.
fn text(field: Field<'_>) -> Result<Option<String>, SerializeError> {
    Ok(Some(field.text()?).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service `S` with a parameter, under the key `k`.
    const INFO: &[u8] = b"\x0a\x01a\x12\x01r\x1a\x17\x0a\x01k\x12\x12\x0a\x01S\x22\x01p\x28\x80\x80\x01\x3a\x06\x0a\x01n\x12\x01v";

    #[test]
    fn empty_text_is_null_and_what_is_missing_has_its_default() {
        let info = read_info(b"\x0a\0\x12\x01r\x1a\0\x1a\x09\x0a\x01k\x12\x04\x12\0\x32\0").unwrap();
        assert_eq!((info.app, info.revision.as_deref()), (None, Some("r")));
        assert_eq!(info.services.keys().collect::<Vec<_>>(), ["", "k"]);
        let service = &info.services["k"];
        assert_eq!((service.port, service.group.as_ref(), service.path.as_ref()), (-1, None, None));
    }

    #[test]
    fn no_message_makes_reading_panic() {
        assert_eq!(read_info(INFO).unwrap().services["k"].params["n"], "v");
        for at in 0..INFO.len() {
            let _ = read_info(&INFO[..at]);
            let mut changed = INFO.to_vec();
            for byte in 0..=u8::MAX {
                changed[at] = byte;
                let _ = read_info(&changed);
            }
        }
    }
}

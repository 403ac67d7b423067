//! Version 1 of the service: values of a Dubbo serialization, wrapped in messages of Triple.

use bytes::{Bytes, BytesMut};
use dubhe_common::Url;
use dubhe_core::error::RpcError;
use dubhe_core::metadata::MetadataInfo;
use dubhe_core::serialize::{Serialization, SerializeError};
use dubhe_core::value::from_value;

use crate::malformed;
use crate::protobuf::{Fields, put_bytes};
use crate::unary::{Answer, Call, Caller};

const METHOD: &str = "getMetadataInfo";
/// Where the URL says nothing.
const SERVICE: &str = "org.apache.dubbo.metadata.MetadataService";
const VERSION: &str = "1.0.0";

/// Triple's name for a serialization, where it is another than in URLs. Origin: `TripleConstants.HESSIAN4`.
const OTHER_NAMES: [(&str, &str); 1] = [("hessian2", "hessian4")];

pub(crate) async fn ask(
    caller: &mut Caller,
    url: &Url,
    application: &str,
    serialization: &dyn Serialization,
    revision: &str,
) -> Result<Option<MetadataInfo>, RpcError> {
    let path = format!("/{}/{METHOD}", url.path().unwrap_or(SERVICE));
    let version = url.version().unwrap_or(VERSION);
    let call = Call { path: &path, group: url.group(), version, application };
    let malformed = |error: SerializeError| malformed(url, revision, &error);
    let request = request(serialization, revision).map_err(malformed)?;
    let Answer { message, is_exception } = caller.call(&call, &request).await?;
    let body = result(serialization, &message).map_err(malformed)?;
    let mut reader = serialization.reader(body);
    if is_exception {
        return Err(RpcError::business(reader.read_exception().map_err(malformed)?));
    }
    reader.read_value().and_then(from_value).map_err(malformed)
}

/// `TripleRequestWrapper` with the one argument.
fn request(serialization: &dyn Serialization, revision: &str) -> Result<BytesMut, SerializeError> {
    let mut argument = BytesMut::new();
    serialization.encode(&mut argument, &mut |writer| writer.write_str(revision))?;
    let mut out = BytesMut::new();
    put_bytes(&mut out, 1, triple_name(serialization.name()).as_bytes());
    put_bytes(&mut out, 2, &argument);
    put_bytes(&mut out, 3, b"java.lang.String");
    Ok(out)
}

/// What is in a `TripleResponseWrapper`: 1 `serializeType`, 2 `data`, 3 `type`.
fn result(serialization: &dyn Serialization, message: &Bytes) -> Result<Bytes, SerializeError> {
    let mut data = None;
    for field in Fields::of(message) {
        match field? {
            (1, name) => {
                let (name, own) = (name.text()?, serialization.name());
                if name != own && name != triple_name(own) {
                    return Err(SerializeError::new(format!(
                        "it is serialized with {name:.64}, not with {own}"
                    )));
                }
            }
            (2, bytes) => data = Some(message.slice_ref(bytes.bytes()?)),
            _ => {}
        }
    }
    data.ok_or_else(|| SerializeError::new("there is no data in it"))
}

fn triple_name(name: &str) -> &str {
    OTHER_NAMES.iter().find(|(own, _)| *own == name).map_or(name, |(_, other)| other)
}

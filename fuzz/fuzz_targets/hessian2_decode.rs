//! Any bytes as a Hessian2 body: reading must not panic, and what was read must survive writing and reading again.

#![no_main]

use std::collections::HashMap;

use bytes::{Bytes, BytesMut};
use dubhe_core::serialize::{ObjectWriter, Serialization};
use dubhe_core::value::Value;
use dubhe_core::value::java::{BigInteger, Date, JavaBytes, LocalDateTime};
use dubhe_serialize_hessian2::Hessian2;
use libfuzzer_sys::fuzz_target;

/// A type with something of everything.
#[derive(serde::Deserialize)]
#[serde(default)]
#[derive(Default)]
#[allow(dead_code, reason = "only read")]
struct Everything {
    a: Option<Box<Everything>>,
    b: Vec<Everything>,
    c: HashMap<String, Value>,
    d: Option<JavaBytes>,
    e: Option<Date>,
    f: Option<BigInteger>,
    g: Option<LocalDateTime>,
    h: (i8, u16, i64, f32, bool, char),
    i: Kind,
}

#[derive(Default, serde::Deserialize)]
enum Kind {
    #[default]
    One,
    Two,
}

fuzz_target!(|data: &[u8]| {
    let codec = Hessian2::new();
    let body = Bytes::copy_from_slice(data);
    let _ = codec.reader(body.clone()).read_as::<Everything>();
    let _ = codec.reader(body.clone()).read_as::<serde::de::IgnoredAny>();
    let _ = codec.reader(body.clone()).read_exception();
    let _ = codec.reader(body.clone()).read_attachments();

    let mut reader = codec.reader(body);
    let mut values = Vec::new();
    while reader.remaining() > 0 {
        match reader.read_value() {
            Ok(value) => values.push(value),
            Err(_) => return,
        }
    }
    let mut out = BytesMut::new();
    let mut write =
        |writer: &mut dyn ObjectWriter| values.iter().try_for_each(|value| writer.write_value(value));
    // Shared parts may multiply over the limit when they are written out.
    if codec.encode(&mut out, &mut write).is_ok() {
        let mut reader = codec.reader(out.freeze());
        for value in &values {
            assert_eq!(reader.read_value().expect("what was written can be read"), *value);
        }
        assert_eq!(reader.remaining(), 0);
    }
});

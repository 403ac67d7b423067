//! Every recorded encoding of hessian-lite 3.2.13 (Dubbo 3.1) and 4.0.4 (Dubbo 3.3) reads as the value that Java read
//! from it, and is written in the same bytes wherever Java has only one form.

mod support;

use bytes::Bytes;
use dubhe_serialize_hessian2::Hessian2;
use serde_json::Value as Json;
use support::{compare, compare_exception, read_value, read_values, reader, write_values};

const VECTORS: [&str; 2] = [include_str!("vectors/hessian2.json"), include_str!("vectors/hessian2-3.3.json")];

/// Cases in which an object occurs twice: Java writes a reference, this crate the object again.
const SHARED: [&str; 7] = [
    "same User twice",
    "same list twice",
    "same int[] twice",
    "same enum twice",
    "same BigDecimal twice",
    "two objects one stream",
    "exception with cause",
];

/// Cases in which this crate writes other bytes on purpose: variable-length lists are never written, binary data has
/// chunks as large as they can be and no empty one at its end.
fn written_otherwise(name: &str, body: &[u8]) -> bool {
    matches!(name, "iterator" | "InputStream") || name.starts_with("byte[] ") && body.first() == Some(&b'A')
}

fn cases() -> Vec<(String, Json)> {
    VECTORS
        .iter()
        .flat_map(|text| {
            let file: Json = serde_json::from_str(text).expect("vectors are JSON");
            file["cases"].as_array().cloned().expect("vectors have cases")
        })
        .map(|case| (case["name"].as_str().expect("cases have names").to_owned(), case))
        .collect()
}

/// The whole stream of a case. Long ones are given by their ends and chunks, and rebuilt from the description.
fn stream(case: &Json) -> Option<Bytes> {
    if let Some(hex_text) = case["hex"].as_str() {
        return Some(support::bytes(hex_text));
    }
    let first = support::bytes(case["hex_first_64_bytes"].as_str()?);
    let last = support::bytes(case["hex_last_32_bytes"].as_str()?);
    let content = content(case["java"].as_str()?);
    let (mut whole, mut rest) = (Vec::new(), content.as_slice());
    for chunk in case["chunks"].as_array()? {
        assert_eq!(chunk["offset"].as_u64(), Some(whole.len() as u64));
        let tag = support::bytes(chunk["tag_hex"].as_str()?)[0];
        whole.push(tag);
        let (units, bytes) = match (chunk["chars_utf16"].as_u64(), chunk["bytes"].as_u64()) {
            (Some(units), _) => (units as usize, utf8_of_units(rest, units as usize)),
            (None, Some(bytes)) => (bytes as usize, bytes as usize),
            (None, None) => panic!("a chunk without a length"),
        };
        match tag {
            0x30..=0x37 => whole.push(units as u8),
            b'A' | b'B' | b'R' | b'S' => whole.extend_from_slice(&(units as u16).to_be_bytes()),
            _ => {}
        }
        whole.extend_from_slice(&rest[..bytes]);
        rest = &rest[bytes..];
    }
    assert!(rest.is_empty());
    assert_eq!(Some(whole.len() as u64), case["length"].as_u64(), "{}", case["name"]);
    assert!(whole.starts_with(&first) && whole.ends_with(&last), "{}", case["name"]);
    Some(whole.into())
}

/// The encoded characters or bytes that a case's description names.
fn content(java: &str) -> Vec<u8> {
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).find_map(|part| part.parse().ok());
    let emoji = [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80];
    match java {
        _ if java.starts_with("String of length") => {
            (0..number(java).expect("a length")).map(|index: usize| b'a' + (index % 26) as u8).collect()
        }
        _ if java.starts_with("byte[] of length") => {
            (0..number(java).expect("a length")).map(|index: usize| index as u8).collect()
        }
        _ if java.starts_with("'a' x 32767 then U+1F600") => {
            [vec![b'a'; 32_767], emoji.to_vec(), vec![b'b']].concat()
        }
        _ if java.starts_with("U+4E2D x 40000") => "中".repeat(40_000).into_bytes(),
        _ if java.starts_with("U+1F600 x 20000") => emoji.repeat(20_000),
        other => panic!("unknown description {other}"),
    }
}

fn utf8_of_units(bytes: &[u8], units: usize) -> usize {
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80).map(|(at, _)| at);
    starts.chain([bytes.len()]).nth(units).expect("enough characters")
}

#[test]
fn every_java_encoding_reads_as_the_value_that_java_read() {
    let (mut compared, mut only_read) = (0, 0);
    for (name, case) in cases() {
        let Some(body) = stream(&case) else {
            assert!(case["java_encode_error"].is_string(), "{name} has no bytes");
            continue;
        };
        let values = read_values(body.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = &case["java_decodes_to"];
        let result = match expected {
            // What Java itself cannot read back is only read here.
            _ if case["java_decode_error"].is_string() => {
                only_read += 1;
                Ok(())
            }
            Json::Object(object) if object.contains_key("stackTraceElements") => {
                let exception =
                    reader(body).read_exception().unwrap_or_else(|error| panic!("{name}: {error}"));
                compare_exception(&exception, expected)
            }
            Json::Array(all) if values.len() == all.len() => {
                values.iter().zip(all).try_for_each(|(value, json)| compare(value, json))
            }
            // Its two fields of one name: the test below.
            _ if name == "Derived" => Ok(()),
            // Java resolves it to its content.
            _ if name == "InetAddress" => compare(values[0].field("holder").unwrap(), expected),
            _ => {
                assert_eq!(values.len(), 1, "{name}");
                compare(&values[0], expected)
            }
        };
        compared += 1;
        result.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!((compared, only_read), (321, 6), "cases that were compared, and that could only be read");
}

#[test]
fn every_java_encoding_survives_writing_and_reading_again() {
    for (name, case) in cases() {
        let Some(body) = stream(&case) else { continue };
        let values = read_values(body).unwrap();
        let again = read_values(write_values(&values)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(values, again, "{name}");
    }
}

#[test]
fn values_are_written_in_the_bytes_of_java() {
    let mut same = 0;
    for (name, case) in cases() {
        let Some(body) = stream(&case) else { continue };
        let written = write_values(&read_values(body.clone()).unwrap());
        if written_otherwise(&name, &body) || SHARED.contains(&name.as_str()) {
            assert_ne!(written, body, "{name} is the same as in Java after all");
        } else {
            assert_eq!(hex::encode(&written), hex::encode(&body), "{name}");
            same += 1;
        }
    }
    assert_eq!(same, 286);
}

#[test]
fn with_sharing_repeated_objects_are_written_in_the_bytes_of_java_too() {
    let mut same = 0;
    for (name, case) in cases() {
        let Some(body) = stream(&case) else { continue };
        // Sharing goes as far as one value.
        if written_otherwise(&name, &body) || name == "two objects one stream" {
            continue;
        }
        let values = read_values(body.clone()).unwrap();
        let codec = Hessian2::new().with_sharing(true);
        let written =
            support::write_with(&codec, |writer| values.iter().try_for_each(|v| writer.write_value(v)));
        assert_eq!(hex::encode(written.unwrap()), hex::encode(&body), "{name}");
        same += 1;
    }
    assert_eq!(same, 297);
}

#[test]
fn negative_zero_keeps_its_sign() {
    let zero = write_values(&[(-0.0).into()]);
    assert_eq!(hex::encode(&zero), "448000000000000000");
    assert_eq!(read_value(zero).unwrap(), (-0.0).into());
}

#[test]
fn a_field_that_hides_one_of_the_superclass_wins() {
    #[derive(Debug, serde::Deserialize, PartialEq)]
    struct Derived {
        x: i32,
        y: i32,
        shared: String,
    }

    let (_, case) = cases().into_iter().find(|(name, _)| name == "Derived").expect("the case is there");
    let body = support::bytes(case["hex"].as_str().unwrap());
    let derived: Derived = support::read_as(body).unwrap();
    assert_eq!(derived, Derived { x: 1, y: 2, shared: "derived".into() });
}

//! The header and the decoder, against recorded frames and against garbage.

use bytes::{Bytes, BytesMut};

use super::end::frame;
use crate::frame::{Decoded, Decoder, FrameError, HEADER_LENGTH, Header};

fn recorded() -> Vec<(serde_json::Value, Vec<u8>)> {
    let all: serde_json::Value =
        serde_json::from_str(include_str!("../../tests/vectors/frames.json")).unwrap();
    let sections = all.as_object().unwrap().values().filter_map(|section| section.as_array());
    let frames: Vec<_> = sections
        .flatten()
        .filter_map(|frame| Some((frame["header"].clone(), hex::decode(frame["hex"].as_str()?).unwrap())))
        .collect();
    assert!(frames.len() > 150, "{}", frames.len());
    frames
}

fn all(decoder: &mut Decoder, buffer: &mut BytesMut) -> Vec<Decoded> {
    std::iter::from_fn(|| decoder.decode(buffer).unwrap()).collect()
}

fn one(bytes: &[u8]) -> Decoded {
    let mut decoder = Decoder::new(0);
    let mut buffer = BytesMut::from(bytes);
    let step = decoder.decode(&mut buffer).unwrap().expect("a whole frame");
    assert!(buffer.is_empty());
    step
}

#[test]
fn the_header_of_every_recorded_frame_is_read_and_written_back() {
    for (said, bytes) in recorded() {
        let Decoded::Frame(header, body) = one(&bytes) else { panic!("{said}") };
        assert_eq!(header.request, said["kind"] == "request", "{said}");
        assert_eq!(header.two_way, said["two_way"] == true, "{said}");
        assert_eq!(header.event, said["event"] == true, "{said}");
        assert_eq!(u64::from(header.serialization), said["serialization_id"].as_u64().unwrap());
        let status = said["status"].as_str().unwrap().split(' ').next().unwrap();
        assert_eq!(header.status.to_string(), status, "{said}");
        assert_eq!(format!("{:016x}", header.id), said["request_id_hex"].as_str().unwrap());
        assert_eq!(u64::from(header.length), said["body_length"].as_u64().unwrap());
        assert!(frame(header, &body)[..] == bytes[..], "{said}");
    }
}

#[test]
fn frames_that_come_in_byte_by_byte_are_the_same() {
    let (mut decoder, mut buffer) = (Decoder::new(0), BytesMut::new());
    let mut decoded = Vec::new();
    let frames = recorded();
    for (_, bytes) in &frames {
        for byte in bytes {
            buffer.extend_from_slice(&[*byte]);
            decoded.extend(all(&mut decoder, &mut buffer));
        }
    }
    let at_once: Vec<_> = frames.iter().map(|(_, bytes)| one(bytes)).collect();
    assert!(decoded == at_once);
}

#[test]
fn many_frames_in_one_read_come_out_in_order() {
    let (mut decoder, mut buffer) = (Decoder::new(0), BytesMut::new());
    for id in 0..3 {
        buffer.extend_from_slice(&frame(Header::request(id, 2, true), b"x"));
    }
    let ids: Vec<_> = all(&mut decoder, &mut buffer)
        .into_iter()
        .map(|step| match step {
            Decoded::Frame(header, _) => header.id,
            Decoded::TooLarge(_) => panic!(),
        })
        .collect();
    assert_eq!(ids, [0, 1, 2]);
}

#[test]
fn half_a_magic_waits_and_anything_else_fails_at_once() {
    let mut decoder = Decoder::new(0);
    assert_eq!(decoder.decode(&mut BytesMut::from(&b"\xda"[..])), Ok(None));
    for garbage in [&b"G"[..], b"GET / HTTP/1.1\r\n\r\n", b"\xda\xbc", b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"]
    {
        let failed = decoder.decode(&mut BytesMut::from(garbage));
        assert!(matches!(failed, Err(FrameError::Magic(_))), "{failed:?}");
    }
}

// C77
#[test]
fn a_body_over_the_limit_is_skipped_to_its_last_byte_and_the_next_frame_is_read() {
    let large = Header::response(7, 2, 20);
    let small = Header::response(8, 2, 20);
    // A frame inside the large body must not be taken for one.
    let mut inside = frame(Header::response(9, 2, 20), b"trap").to_vec();
    inside.resize(101, 0xda);
    for step in [1, 3, 16, 1_000] {
        let (mut decoder, mut buffer) = (Decoder::new(100), BytesMut::new());
        let stream = [frame(large, &inside), frame(small, b"ok")].concat();
        let mut decoded = Vec::new();
        for part in stream.chunks(step) {
            buffer.extend_from_slice(part);
            decoded.extend(all(&mut decoder, &mut buffer));
        }
        let [Decoded::TooLarge(first), Decoded::Frame(second, body)] = &decoded[..] else {
            panic!("{decoded:?}")
        };
        assert_eq!((first.id, first.length, second.id, &body[..]), (7, 101, 8, &b"ok"[..]));
    }
}

// C77
#[test]
fn a_negative_length_fails_and_names_the_request() {
    let mut bytes = frame(Header::request(5, 2, true), b"").to_vec();
    bytes[12..16].copy_from_slice(&(-1_i32).to_be_bytes());
    let failed = Decoder::new(0).decode(&mut BytesMut::from(&bytes[..]));
    assert_eq!(failed, Err(FrameError::Length { id: 5, length: -1 }));
}

#[test]
fn a_long_event_is_skipped() {
    let (mut decoder, mut buffer) = (Decoder::new(0), BytesMut::new());
    buffer.extend_from_slice(&frame(Header::request(1, 2, true).of_event(), &[b'N'; 16]));
    buffer.extend_from_slice(&frame(Header::request(2, 2, true).of_event(), &[b'N'; 15]));
    let decoded = all(&mut decoder, &mut buffer);
    assert!(matches!(decoded[..], [Decoded::TooLarge(_), Decoded::Frame(_, _)]), "{decoded:?}");
}

#[test]
fn a_claimed_length_reserves_nothing() {
    let mut bytes = frame(Header::request(1, 2, true), b"").to_vec();
    bytes[12..16].copy_from_slice(&i32::MAX.to_be_bytes());
    let mut buffer = BytesMut::from(&bytes[..]);
    assert_eq!(Decoder::new(0).decode(&mut buffer), Ok(None));
    assert!(buffer.capacity() < 1_024);
}

#[test]
fn no_bytes_make_the_decoder_panic_or_stand_still() {
    let mut random = fastrand::Rng::with_seed(77);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..random.usize(..64)).map(|_| random.u8(..)).collect();
        if random.bool() && bytes.len() >= 2 {
            bytes[..2].copy_from_slice(&[0xda, 0xbb]);
        }
        let (mut decoder, mut buffer) = (Decoder::new(30), BytesMut::from(&bytes[..]));
        let mut steps = 0;
        while let Ok(Some(_)) = decoder.decode(&mut buffer) {
            steps += 1;
            assert!(steps <= bytes.len() / HEADER_LENGTH, "a step takes a header at least");
        }
    }
}

#[test]
fn a_frame_without_room_for_the_header_becomes_one_without_a_body() {
    let mut short = BytesMut::from(&b"abc"[..]);
    Header::request(1, 2, true).write(&mut short);
    assert_eq!(one(&short), Decoded::Frame(Header::request(1, 2, true), Bytes::new()));
}

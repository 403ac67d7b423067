//! Any text as a URL and as a registry's child name: reading must not panic, and what was read must be read again as the same.

#![no_main]

use dubhe_common::{Url, UrlFactory, decode, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    if let Ok(url) = Url::parse(data) {
        let again = Url::parse_encoded(&url.encoded()).expect("what is written is readable");
        assert_eq!(again.to_full_string(), url.to_full_string());
    }
    let _ = Url::parse_encoded(data);
    let _ = UrlFactory::new().parse_encoded(data);
    assert_eq!(decode(&encode(data)), data);
});

//! Which peers can read attachments in responses.

/// First protocol version with attachments in responses.
const FIRST: u32 = 2_00_02_00;
/// First version that is the version of a jar: from 2.0.10 to 2.6.2 peers sent that instead of the protocol's, and read
/// no attachments. The reference (3.1) answers up to 2.0.99 with them; without is always understood.
const FIRST_JAR: u32 = 2_00_10_00;

/// Whether the peer that sent `version` as the first field of its request reads attachments in responses.
pub(crate) fn reads_response_attachments(version: Option<&str>) -> bool {
    version.and_then(number).is_some_and(|number| (FIRST..FIRST_JAR).contains(&number))
}

/// `2.0.2` as 2000200: two digits per part, four parts. `None` for what is no version.
fn number(version: &str) -> Option<u32> {
    let parts: Vec<&str> = version.split('.').collect();
    if !(3..=4).contains(&parts.len()) {
        return None;
    }
    let mut number = 0;
    for at in 0..4 {
        let part = match parts.get(at) {
            Some(part) => {
                let digits = part.bytes().take_while(u8::is_ascii_digit).count();
                part[..digits].parse::<u32>().ok().filter(|part| *part < 100)?
            }
            None => 0,
        };
        number = number * 100 + part;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    // C74
    #[test]
    fn only_protocol_versions_from_2_0_2_on_read_attachments() {
        for yes in ["2.0.2", "2.0.3", "2.0.9"] {
            assert!(reads_response_attachments(Some(yes)), "{yes}");
        }
        let no = [
            "2.0.1",
            "2.0.0",
            "2.0.10",
            "2.6.2",
            "2.7.0",
            "2.7.15",
            "2.8.4",
            "3.1.0",
            "",
            " ",
            "\"\"",
            "\"2.0.2\"",
            "client",
            "2.0",
            "2",
            "...",
            "2.0.x",
            "99999999999.0.2",
            "2.0.2.1.1",
            "-2.0.2",
            "²",
            "null",
        ];
        for no in no {
            assert!(!reads_response_attachments(Some(no)), "{no}");
        }
        assert!(!reads_response_attachments(None));
    }
}

use std::net::IpAddr;

/// Why an address pattern cannot be compared with a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressPatternError {
    /// The host is IPv4 and the pattern has not four parts.
    #[error("The host is ipv4, but the pattern is not ipv4 pattern : {0}")]
    NotIpv4(String),
    /// The host is IPv6 and a pattern with `*` or `-` has not eight parts.
    #[error("an IPv6 pattern with `*` or `-` needs eight parts, like 234e:0:4567:0:0:0:3d:*: `{0}` has not")]
    NotIpv6(String),
    /// After `/` is no number of bits that the address has, or before it no address.
    #[error("`{0}` is no network: write it like 192.0.2.0/24")]
    NotANetwork(String),
    /// Around `-` are no numbers.
    #[error("`{0}` is no range: write it like 192.0.2.1-20")]
    NotARange(String),
}

/// Whether an address fits a pattern of a tag rule: `192.0.2.11`, `192.0.2.*:20880`, `192.0.2.1-20`, `192.0.2.0/24`, `*`, `[2001:db8::1]:20880`.
///
/// As `NetUtils.matchIpExpression` of Dubbo, but without resolving names: a host or pattern that is a name fits nothing but `*`.
///
/// # Errors
/// The pattern is malformed for a host of that kind.
pub fn address_fits(pattern: &str, host: &str, port: u16) -> Result<bool, AddressPatternError> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if matches!(pattern, "*" | "*.*.*.*") {
        return Ok(true);
    }
    let Ok(host) = host.parse::<IpAddr>() else { return Ok(false) };
    if pattern.contains('/') {
        return network_holds(pattern, host);
    }
    let (pattern, wanted_port) = split_port(pattern, host);
    let is_expression = pattern.contains(['*', '-']);
    match host {
        IpAddr::V4(_) if pattern.split('.').count() != 4 => {
            return Err(AddressPatternError::NotIpv4(pattern.to_owned()));
        }
        IpAddr::V6(_) if is_expression && pattern.split(':').count() != 8 => {
            return Err(AddressPatternError::NotIpv6(pattern.to_owned()));
        }
        _ => {}
    }
    if wanted_port.is_some_and(|wanted| wanted != port.to_string()) {
        return Ok(false);
    }
    if !is_expression {
        return Ok(pattern.parse::<IpAddr>().is_ok_and(|wanted| wanted == host));
    }
    let (separator, radix, parts): (char, u32, Vec<u32>) = match host {
        IpAddr::V4(host) => ('.', 10, host.octets().map(u32::from).to_vec()),
        IpAddr::V6(host) => (':', 16, host.segments().map(u32::from).to_vec()),
    };
    for (wanted, part) in pattern.split(separator).zip(parts) {
        if !part_fits(wanted, part, radix)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn part_fits(wanted: &str, part: u32, radix: u32) -> Result<bool, AddressPatternError> {
    let number = |text: &str| u32::from_str_radix(text, radix);
    if wanted == "*" {
        return Ok(true);
    }
    let Some((from, to)) = wanted.split_once('-') else {
        return Ok(number(wanted).is_ok_and(|wanted| wanted == part));
    };
    match (number(from), number(to)) {
        (Ok(from), Ok(to)) => Ok((from..=to).contains(&part)),
        _ => Err(AddressPatternError::NotARange(wanted.to_owned())),
    }
}

fn split_port(pattern: &str, host: IpAddr) -> (&str, Option<&str>) {
    if let Some(rest) = pattern.strip_prefix('[') {
        return match rest.split_once(']') {
            Some((inner, after)) => (inner, after.strip_prefix(':')),
            None => (rest, None),
        };
    }
    match pattern.split_once(':') {
        Some((address, port)) if host.is_ipv4() => (address, Some(port)),
        _ => (pattern, None),
    }
}

fn network_holds(pattern: &str, host: IpAddr) -> Result<bool, AddressPatternError> {
    let refused = || AddressPatternError::NotANetwork(pattern.to_owned());
    let (network, bits) = pattern.split_once('/').ok_or_else(refused)?;
    let network: IpAddr = network.parse().map_err(|_| refused())?;
    let bits: u32 = bits.parse().map_err(|_| refused())?;
    let (network, host, width) = match (network, host) {
        (IpAddr::V4(network), IpAddr::V4(host)) => (network.to_bits().into(), host.to_bits().into(), 32),
        (IpAddr::V6(network), IpAddr::V6(host)) => (network.to_bits(), host.to_bits(), 128),
        _ => return Ok(false),
    };
    let free = u32::checked_sub(width, bits).ok_or_else(refused)?;
    Ok(u128::checked_shr(network ^ host, free).unwrap_or(0) == 0)
}

//! Addresses that servers listen on.

use std::net::IpAddr;

/// True if nobody but this machine reaches the address.
pub(super) fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_16_only_addresses_of_this_machine_are_loopback() {
        let cases = [
            ("127.0.0.1:11253", true),
            ("[::1]:11253", true),
            ("localhost:0", true),
            (":11253", false),
            ("0.0.0.0:11253", false),
            ("[::]:11253", false),
            ("10.0.0.1:11253", false),
            ("localhost.example.org:1", false),
        ];
        for (address, expected) in cases {
            assert_eq!(is_loopback(address), expected, "{address}");
        }
    }
}

//! Names of this machine. Without this rule a page in a browser on this machine could read what a
//! server on it serves: it resolves a name of its own to 127.0.0.1 (DNS rebinding), and the browser
//! then sends that name as `Host`.

use std::net::IpAddr;

/// True if the value of a header `Host` is `localhost` or an IP address, with or without a port.
pub fn is_local_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_not_local() {
        let cases = [
            ("127.0.0.1:8001", true),
            ("127.0.0.1", true),
            ("localhost:8001", true),
            ("LocalHost", true),
            ("[::1]:8001", true),
            ("10.1.2.3:8001", true),
            ("evil.example:8001", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example:8001", false),
            ("[evil.example]:8001", false),
            ("", false),
        ];
        for (host, is_local) in cases {
            assert_eq!(is_local_host(host), is_local, "{host}");
        }
    }
}

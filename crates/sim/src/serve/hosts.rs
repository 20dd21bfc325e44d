//! The names under which the server may be addressed: a page of others in a browser on this machine
//! must not read and change the cluster.

use axum::http::{HeaderMap, header};
use vc_http::is_local_host;

use super::refused::Refused;

/// Names that a request's `Host` may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hosts {
    /// `localhost` and IP addresses.
    Local,
    /// Any name: `--allow-remote`.
    Any,
}

impl Hosts {
    /// # Errors
    /// `ForeignHost`: the request was sent to a name of somebody else. A request without `Host` comes
    /// from no browser and is let through.
    pub(super) fn check(self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(host) = headers.get(header::HOST).filter(|_| self == Hosts::Local) else {
            return Ok(());
        };
        match host.to_str().is_ok_and(is_local_host) {
            true => Ok(()),
            false => Err(Refused::ForeignHost(String::from_utf8_lossy(host.as_bytes()).into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_host_is_refused() {
        let cases = [("127.0.0.1:8001", true), ("evil.example:8001", false), ("", false)];
        for (host, is_allowed) in cases {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            assert_eq!(Hosts::Local.check(&headers).is_ok(), is_allowed, "{host}");
            assert!(Hosts::Any.check(&headers).is_ok());
        }
        assert!(Hosts::Local.check(&HeaderMap::new()).is_ok());
    }
}

//! The version of the API server, asked once at start: it decides the defaults of Kubernetes'
//! feature gates. Specification: core.md 1.3 (C-04).

use kube::Client;

use crate::call::{CallError, call, insist};

/// `major.minor` of the server; compares as one expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion {
    pub major: u32,
    pub minor: u32,
}

/// Asks with a growing pause for a minute.
///
/// # Errors
/// The last failure.
pub async fn server_version(client: &Client) -> Result<ServerVersion, CallError> {
    let ask = || call(client.apiserver_version());
    let info = insist("version of the API server", ask).await?;
    Ok(read(&info.major, &info.minor))
}

/// A suffix as in `32+` is ignored.
fn read(major: &str, minor: &str) -> ServerVersion {
    let number = |text: &str| {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..digits].parse().unwrap_or(0)
    };
    ServerVersion { major: number(major), minor: number(minor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_of_the_minor_version_is_ignored() {
        assert_eq!(read("1", "32+"), ServerVersion { major: 1, minor: 32 });
        assert!(read("1", "33") < read("1", "34+"));
        assert_eq!(read("", "x"), ServerVersion { major: 0, minor: 0 });
    }
}

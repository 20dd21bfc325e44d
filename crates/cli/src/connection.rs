//! Flags about the connection, as kubectl has them. Specification: answers.md 13 (ANS-86).

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::error::ErrorKind;
use vc_kube::{ConnectionFlags, GivenCredentials, Impersonation};
use vc_objects::duration::parse_micros;

/// Title of these flags in the help.
const HEADING: &str = "Connection";

/// What the command line says about the connection.
#[derive(Args)]
pub(crate) struct ConnectionWords {
    /// Cluster of the kubeconfig; absent: that of the context.
    #[arg(long, value_name = "NAME", global = true, help_heading = HEADING)]
    cluster: Option<String>,
    /// User of the kubeconfig; absent: that of the context.
    #[arg(long, value_name = "NAME", global = true, help_heading = HEADING)]
    user: Option<String>,
    /// Bearer token in place of the user's credentials.
    #[arg(long, value_name = "TOKEN", global = true, help_heading = HEADING)]
    token: Option<String>,
    /// Client certificate in place of the user's credentials; with --client-key.
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    client_certificate: Option<PathBuf>,
    /// Key of --client-certificate.
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    client_key: Option<PathBuf>,
    /// User to impersonate: the API server's group answers as this user, and the lists are those of this user.
    /// No other way is taken.
    #[arg(long = "as", value_name = "USER", value_parser = header_text, global = true, help_heading = HEADING)]
    as_user: Option<String>,
    /// Group of the user of --as; may be given several times.
    #[arg(long, value_name = "GROUP", value_parser = header_text, global = true, help_heading = HEADING)]
    as_group: Vec<String>,
    /// Unique id of the user of --as.
    #[arg(long, value_name = "UID", value_parser = header_text, global = true, help_heading = HEADING)]
    as_uid: Option<String>,
    /// CA of --server, else of the API server.
    #[arg(long, value_name = "FILE", global = true, help_heading = HEADING)]
    certificate_authority: Option<PathBuf>,
    /// Believe whoever answers at --server, else at the address of the API server.
    #[arg(long, global = true, help_heading = HEADING)]
    insecure_skip_tls_verify: bool,
    /// Name that the certificate of --server, else of the API server, has to have.
    #[arg(long, value_name = "NAME", value_parser = server_name, global = true, help_heading = HEADING)]
    tls_server_name: Option<String>,
    /// How long the answer to one request may take: 5s, 1m, or a number of seconds; 0: no limit.
    #[arg(long, value_name = "DURATION", value_parser = request_timeout, global = true, help_heading = HEADING)]
    request_timeout: Option<Duration>,
}

impl ConnectionWords {
    /// Returns what is wrong with flags that clap takes one by one. It knows no flag of the other side of the verb.
    pub(crate) fn problem(&self) -> Option<(ErrorKind, &'static str)> {
        let has_certificate = self.client_certificate.is_some();
        let names_no_user =
            self.as_user.is_none() && (self.as_uid.is_some() || !self.as_group.is_empty());
        let is_no_token = self.token.as_ref().is_some_and(|token| !is_token(token));
        let problems = [
            (
                names_no_user,
                ErrorKind::MissingRequiredArgument,
                "--as-group and --as-uid are about the user of --as\nhint: give --as USER, too",
            ),
            (
                has_certificate != self.client_key.is_some(),
                ErrorKind::MissingRequiredArgument,
                "--client-certificate needs --client-key, and the other way round\nhint: give both",
            ),
            (
                has_certificate && self.token.is_some(),
                ErrorKind::ArgumentConflict,
                "--token and --client-certificate both say who asks\nhint: leave one of them out",
            ),
            (
                self.certificate_authority.is_some() && self.insecure_skip_tls_verify,
                ErrorKind::ArgumentConflict,
                "with --insecure-skip-tls-verify no CA verifies anything\n\
                 hint: leave it out, or --certificate-authority",
            ),
            // The text does not repeat the token, as clap's own would.
            (
                is_no_token,
                ErrorKind::ValueValidation,
                "--token: it is empty, or has spaces or other characters that no token has\n\
                 hint: give the token alone, without \"Bearer\" before it",
            ),
        ];
        let problem = problems.into_iter().find(|(is_wrong, ..)| *is_wrong);
        problem.map(|(_, kind, text)| (kind, text))
    }

    /// Returns what is said in place of the kubeconfig.
    pub(crate) fn flags(&self) -> ConnectionFlags {
        let files = self.client_certificate.clone().zip(self.client_key.clone());
        let certificate =
            files.map(|(certificate, key)| GivenCredentials::Certificate { certificate, key });
        let impersonation = self.as_user.clone().map(|user| {
            let (uid, groups) = (self.as_uid.clone(), self.as_group.clone());
            Impersonation { user, uid, groups }
        });
        ConnectionFlags {
            cluster: self.cluster.clone(),
            user: self.user.clone(),
            credentials: self.token.clone().map(GivenCredentials::Token).or(certificate),
            impersonation,
            authority: self.certificate_authority.clone(),
            is_insecure: self.insecure_skip_tls_verify,
            tls_server_name: self.tls_server_name.clone(),
            request_timeout: self.request_timeout.filter(|limit| !limit.is_zero()),
        }
    }
}

/// True for what a header can carry as a token.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic())
}

/// Reads a text that goes into a header. An empty user would be nobody, and the request that of the real user.
fn header_text(text: &str) -> Result<String, String> {
    let is_printable = text.chars().all(|letter| letter == ' ' || letter.is_ascii_graphic());
    match is_printable && !text.is_empty() && text.trim() == text {
        true => Ok(text.to_owned()),
        false => {
            Err("give printable ASCII without spaces around it, as a header holds it".to_owned())
        }
    }
}

/// Reads a name or an IP address of a certificate.
fn server_name(text: &str) -> Result<String, String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-._:".contains(letter);
    match !text.is_empty() && text.chars().all(is_part) {
        true => Ok(text.to_owned()),
        false => Err("give a DNS name or an IP address".to_owned()),
    }
}

/// Reads a duration as kubectl does: a number is one of seconds.
fn request_timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<u64>().ok().map(Duration::from_secs);
    let micros = || parse_micros(text).and_then(|micros| u64::try_from(micros).ok());
    let limit = seconds.or_else(|| micros().map(Duration::from_micros));
    limit.ok_or_else(|| "write it like 5s, 1m or 1m30s, or as a number of seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_86_a_timeout_is_written_as_for_kubectl() {
        let cases = [
            ("0", Some(0)),
            ("0s", Some(0)),
            ("5", Some(5_000)),
            ("5s", Some(5_000)),
            ("1m30s", Some(90_000)),
            ("250ms", Some(250)),
            ("", None),
            ("-1", None),
            ("-5s", None),
            ("soon", None),
            ("1d", None),
        ];
        for (text, millis) in cases {
            let limit = request_timeout(text).ok();
            assert_eq!(limit, millis.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn ans_86_what_no_header_holds_is_no_name_and_no_token() {
        for text in ["jane", "system:serviceaccount:ml:runner", "Jane Doe", "https://id#jo"] {
            assert_eq!(header_text(text).as_deref(), Ok(text));
        }
        for text in ["", " ", " jane", "jane ", "ja\nne", "ja\tne", "jané"] {
            assert!(header_text(text).is_err(), "{text:?}");
        }
        assert!(is_token("eyJ.a-b_c~d+e/f=="));
        for text in ["", "Bearer a", "a\n", "ä"] {
            assert!(!is_token(text), "{text:?}");
        }
        for (text, is_name) in
            [("kubernetes.default.svc", true), ("::1", true), ("", false), ("a b", false)]
        {
            assert_eq!(server_name(text).is_ok(), is_name, "{text:?}");
        }
    }
}

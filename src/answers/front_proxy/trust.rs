//! Which client certificates are the front proxy's: ConfigMap `extension-apiserver-authentication`, as kube-apiserver
//! writes it from its flags `--requestheader-...`. Specification: answers.md 12 (ANS-80).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use axum::http::HeaderName;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;

use super::common_name::common_name;
use super::headers::UserHeaders;

/// The ConfigMap.
pub(super) const NAMESPACE: &str = "kube-system";
pub(super) const NAME: &str = "extension-apiserver-authentication";

/// Keys of the ConfigMap: certificates in PEM, then lists of texts in JSON.
const AUTHORITY: &str = "requestheader-client-ca-file";
const ALLOWED_NAMES: &str = "requestheader-allowed-names";
const USERNAME_HEADERS: &str = "requestheader-username-headers";
const UID_HEADERS: &str = "requestheader-uid-headers";
const GROUP_HEADERS: &str = "requestheader-group-headers";
const EXTRA_PREFIXES: &str = "requestheader-extra-headers-prefix";

/// Who writes the ConfigMap, and what to do without it.
const HINT: &str = "hint: kube-apiserver writes it, out of --requestheader-client-ca-file and the like: give it \
    these and --proxy-client-cert-file, or leave out --answers-aggregated";

/// Why no front proxy can be known.
#[derive(Debug, thiserror::Error)]
pub(super) enum TrustError {
    #[error("there is no ConfigMap {NAMESPACE}/{NAME}\n{HINT}")]
    MissingConfigMap,
    #[error("ConfigMap {NAMESPACE}/{NAME} has no key {0}, or it is empty\n{HINT}")]
    MissingKey(&'static str),
    #[error("ConfigMap {NAMESPACE}/{NAME}, key {key}: no JSON list of texts: {error}\n{HINT}")]
    BadList { key: &'static str, error: serde_json::Error },
    #[error("ConfigMap {NAMESPACE}/{NAME}, key {key}: {name:?} is no name of a header\n{HINT}")]
    BadHeader { key: &'static str, name: String },
    #[error(
        "ConfigMap {NAMESPACE}/{NAME}, key {AUTHORITY}: no CA certificates in PEM: {0}\n{HINT}"
    )]
    BadAuthority(String),
}

/// What makes a client certificate that of the front proxy, and where it names the user.
pub(super) struct ProxyTrust {
    verifier: Arc<dyn ClientCertVerifier>,
    n_authorities: usize,
    /// Common names. Empty: any certificate of the CAs.
    allowed_names: Vec<String>,
    pub(super) headers: UserHeaders,
}

/// The text is for the log.
impl fmt::Display for ProxyTrust {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = match &self.allowed_names[..] {
            [] => "with any name".to_owned(),
            names => format!("named {}", names.join(" or ")),
        };
        let authorities = match self.n_authorities {
            1 => "the CA".to_owned(),
            n => format!("the {n} CAs"),
        };
        write!(to, "client certificates {names} of {authorities} of ConfigMap {NAMESPACE}/{NAME}")
    }
}

impl ProxyTrust {
    /// Reads the values of the ConfigMap. `None`: there is none.
    ///
    /// # Errors
    /// They name no CA, or no header with the user, or are not what kube-apiserver writes.
    pub(super) fn read(values: Option<&BTreeMap<String, String>>) -> Result<Self, TrustError> {
        let values = values.ok_or(TrustError::MissingConfigMap)?;
        let authority = values.get(AUTHORITY).filter(|text| !text.trim().is_empty());
        let roots = roots(authority.ok_or(TrustError::MissingKey(AUTHORITY))?)?;
        // A list without names lets any name in; no text may be half of a ConfigMap.
        let allowed = values.get(ALLOWED_NAMES).filter(|text| !text.trim().is_empty());
        let allowed = allowed.ok_or(TrustError::MissingKey(ALLOWED_NAMES))?;
        let headers = UserHeaders {
            names: header_names(values, USERNAME_HEADERS)?,
            uids: header_names(values, UID_HEADERS)?,
            groups: header_names(values, GROUP_HEADERS)?,
            extra_prefixes: texts(values, EXTRA_PREFIXES)?
                .into_iter()
                .map(|prefix| prefix.to_ascii_lowercase())
                .collect(),
        };
        if headers.names.is_empty() {
            return Err(TrustError::MissingKey(USERNAME_HEADERS));
        }
        let n_authorities = roots.len();
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build();
        let verifier = verifier.map_err(|error| TrustError::BadAuthority(error.to_string()))?;
        Ok(Self { verifier, n_authorities, allowed_names: list(ALLOWED_NAMES, allowed)?, headers })
    }

    /// True if the chain of a client is that of the front proxy at this time. The client is known to have the key of the
    /// first certificate.
    pub(super) fn is_front_proxy(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> bool {
        let Some((own, intermediates)) = chain.split_first() else { return false };
        self.is_name_allowed(own)
            && self.verifier.verify_client_cert(own, intermediates, now).is_ok()
    }

    fn is_name_allowed(&self, certificate: &CertificateDer<'_>) -> bool {
        let is_allowed = |name: String| self.allowed_names.contains(&name);
        self.allowed_names.is_empty() || common_name(certificate).is_some_and(is_allowed)
    }
}

fn roots(pem: &str) -> Result<RootCertStore, TrustError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let certificates = certificates.map_err(|error| TrustError::BadAuthority(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let added = roots.add(certificate);
        added.map_err(|error| TrustError::BadAuthority(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(TrustError::BadAuthority("there is none".to_owned())),
        false => Ok(roots),
    }
}

/// Returns the texts of a list that are not empty. Returns none if the list is absent, empty text or `null`.
fn texts(values: &BTreeMap<String, String>, key: &'static str) -> Result<Vec<String>, TrustError> {
    let Some(text) = values.get(key).filter(|text| !text.is_empty()) else { return Ok(Vec::new()) };
    Ok(list(key, text)?.into_iter().filter(|text| !text.is_empty()).collect())
}

fn list(key: &'static str, text: &str) -> Result<Vec<String>, TrustError> {
    let read: Result<Option<Vec<String>>, _> = serde_json::from_str(text);
    Ok(read.map_err(|error| TrustError::BadList { key, error })?.unwrap_or_default())
}

fn header_names(
    values: &BTreeMap<String, String>,
    key: &'static str,
) -> Result<Vec<HeaderName>, TrustError> {
    let read = |name: String| {
        let invalid = |_| TrustError::BadHeader { key, name: name.clone() };
        HeaderName::from_bytes(name.as_bytes()).map_err(invalid)
    };
    texts(values, key)?.into_iter().map(read).collect()
}

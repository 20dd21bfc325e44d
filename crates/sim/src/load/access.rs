//! Where the API server of a load is and who we are: a plain HTTP address, as `vcsim serve` has, or
//! a kubeconfig with certificates or a token.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::LoadError;

/// An API server and our credentials.
#[derive(Clone)]
pub struct LoadAccess {
    /// `127.0.0.1:8001`.
    pub(super) authority: String,
    /// Absent: plain HTTP.
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// The value of the header `Authorization`.
    pub(super) authorization: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    current_context: String,
    clusters: Vec<NamedEntry>,
    contexts: Vec<NamedEntry>,
    users: Vec<NamedEntry>,
}

/// An element of one of the lists; only the field of its list is there.
#[derive(Deserialize)]
struct NamedEntry {
    name: String,
    #[serde(default)]
    cluster: KubeconfigCluster,
    #[serde(default)]
    context: KubeconfigContext,
    #[serde(default)]
    user: KubeconfigUser,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct KubeconfigCluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct KubeconfigContext {
    cluster: String,
    user: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct KubeconfigUser {
    token: Option<String>,
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
}

impl LoadAccess {
    /// A server on plain HTTP that asks for no credentials.
    ///
    /// # Errors
    /// It is no such address.
    pub fn plain(url: &str) -> Result<LoadAccess, LoadError> {
        let authority = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let authority = authority.filter(|rest| !rest.is_empty() && !rest.contains('/'));
        let authority = authority.ok_or_else(|| LoadError::Address(url.to_owned()))?.to_owned();
        Ok(LoadAccess { authority, tls: None, authorization: None })
    }

    /// What the current context of a kubeconfig says.
    ///
    /// # Errors
    /// It is unreadable, or names what it does not have.
    pub fn of_kubeconfig(path: &Path) -> Result<LoadAccess, LoadError> {
        let failed = |why| LoadError::Kubeconfig { path: path.to_owned(), why };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let config: Kubeconfig =
            serde_yaml::from_str(&text).map_err(|error| failed(error.to_string()))?;
        config.access().map_err(failed)
    }
}

impl Kubeconfig {
    fn access(&self) -> Result<LoadAccess, String> {
        let find = |list: &'static str, elements: &'_ [NamedEntry], name: &str| {
            let found = elements.iter().position(|element| element.name == name);
            found.ok_or_else(|| format!("{list}: there is none named {name:?}"))
        };
        let context = find("contexts", &self.contexts, &self.current_context)?;
        let context = &self.contexts[context].context;
        let cluster = &self.clusters[find("clusters", &self.clusters, &context.cluster)?].cluster;
        let user = &self.users[find("users", &self.users, &context.user)?].user;
        let authorization = user.token.as_ref().map(|token| format!("Bearer {token}"));
        if let Some(authority) = cluster.server.strip_prefix("https://") {
            let tls = Some(Arc::new(tls(cluster, user)?));
            return Ok(LoadAccess { authority: with_port(authority, 443), tls, authorization });
        }
        let access = LoadAccess::plain(&cluster.server).map_err(|error| error.to_string())?;
        Ok(LoadAccess { authorization, ..access })
    }
}

fn with_port(authority: &str, default: u16) -> String {
    let authority = authority.trim_end_matches('/');
    match authority.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => authority.to_owned(),
        _ => format!("{authority}:{default}"),
    }
}

fn tls(cluster: &KubeconfigCluster, user: &KubeconfigUser) -> Result<ClientConfig, String> {
    let authority = pem(
        "certificate-authority",
        &cluster.certificate_authority_data,
        &cluster.certificate_authority,
    )?
    .ok_or("the cluster has no certificate-authority")?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&authority)? {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let certificate =
        pem("client-certificate", &user.client_certificate_data, &user.client_certificate)?;
    let key = pem("client-key", &user.client_key_data, &user.client_key)?;
    let (Some(certificate), Some(key)) = (certificate, key) else {
        return Ok(builder.with_no_client_auth());
    };
    let key =
        PrivateKeyDer::from_pem_slice(&key).map_err(|error| format!("client-key: {error}"))?;
    builder
        .with_client_auth_cert(certificates(&certificate)?, key)
        .map_err(|error| error.to_string())
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("certificate: {error}"))
}

/// What is given in the file itself wins over the path of another one, as for kubectl.
fn pem(
    field: &str,
    given: &Option<String>,
    path: &Option<PathBuf>,
) -> Result<Option<Vec<u8>>, String> {
    if let Some(text) = given {
        let text = STANDARD.decode(text.trim());
        return text.map(Some).map_err(|error| format!("{field}-data: {error}"));
    }
    let Some(path) = path else { return Ok(None) };
    let read = std::fs::read(path);
    read.map(Some).map_err(|error| format!("{field}: {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<LoadAccess, String> {
        let config: Kubeconfig = serde_yaml::from_str(text).unwrap();
        config.access()
    }

    #[test]
    fn addresses() {
        let authority = |url: &str| LoadAccess::plain(url).map(|access| access.authority).ok();
        assert_eq!(authority("http://127.0.0.1:8001/").as_deref(), Some("127.0.0.1:8001"));
        for wrong in ["127.0.0.1:8001", "https://a:1", "http://", "http://a/b"] {
            assert_eq!(authority(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_kubeconfig_names_server_and_token() {
        let text = "current-context: c\n\
            contexts: [{name: c, context: {cluster: k, user: u}}]\n\
            clusters: [{name: k, cluster: {server: 'http://127.0.0.1:8001'}}]\n\
            users: [{name: u, user: {token: t}}]\n";
        let access = of(text).unwrap();
        assert_eq!(access.authority, "127.0.0.1:8001");
        assert_eq!(access.authorization.as_deref(), Some("Bearer t"));
        assert!(access.tls.is_none());
        let missing = of(&text.replace("user: u}", "user: v}")).err();
        assert_eq!(missing.as_deref(), Some("users: there is none named \"v\""));
        let unsafe_one = of(&text.replace("http:", "https:")).err();
        assert_eq!(unsafe_one.as_deref(), Some("the cluster has no certificate-authority"));
    }
}

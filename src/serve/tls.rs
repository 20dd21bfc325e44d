//! TLS of the health port and of metrics: 1.2 or newer, a client certificate is verified if there is
//! one.
//! Specification: core.md 1.1, 1.8.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use crate::flags::TlsFiles;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: {error}\nhint: give PEM files that the process may read", path.display())]
    Unreadable { path: PathBuf, error: pem::Error },
    #[error("TLS: {0}\nhint: do certificate and key belong together?")]
    Mismatch(#[from] rustls::Error),
    #[error("CA of clients: {0}")]
    Authority(#[from] VerifierBuilderError),
}

/// Certificate, key and the CA of the clients, as read at the start.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl Tls {
    /// From the files of `--ca-cert-file`, `--tls-cert-file` and `--tls-private-key-file`.
    ///
    /// # Errors
    /// One is unreadable, or they do not fit together.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let TlsFiles { authority, certificate, key } = files;
        let provider = Arc::new(ring::default_provider());
        let clients = match authority {
            Some(authority) => verifier(authority, provider.clone())?,
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// What shakes hands with clients.
    pub(super) fn acceptor(self) -> TlsAcceptor {
        self.0
    }
}

/// Verifies the certificates of clients that have one.
fn verifier(
    authority: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate)?;
    }
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    Ok(clients.allow_unauthenticated().build()?)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_file_iter(path).map_err(unreadable(path))?;
    certificates.collect::<Result<_, _>>().map_err(unreadable(path))
}

fn unreadable(path: &Path) -> impl Fn(pem::Error) -> TlsError {
    let path = path.to_owned();
    move |error| TlsError::Unreadable { path: path.clone(), error }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::ClientConfig;
    use tokio_rustls::rustls::pki_types::ServerName;

    use super::*;
    use crate::fatal::Fatal;
    use crate::serve::{health, serve};

    fn file(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
    }

    fn files(names: [&str; 3]) -> TlsFiles {
        let [authority, certificate, key] = names.map(file);
        TlsFiles { authority: Some(authority), certificate, key }
    }

    fn client(identity: Option<&str>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(certificates(&file("ca.pem")).unwrap().remove(0)).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some(name) => {
                let chain = certificates(&file(&format!("{name}.pem"))).unwrap();
                let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key"))).unwrap();
                config.with_client_auth_cert(chain, key).unwrap()
            }
        };
        TlsConnector::from(Arc::new(config))
    }

    async fn livez(
        connector: TlsConnector,
        address: std::net::SocketAddr,
    ) -> std::io::Result<String> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = connector.connect(name, stream).await?;
        let request = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    #[tokio::test]
    async fn a_client_certificate_is_verified_if_there_is_one() {
        let files = files(["ca.pem", "server.pem", "server.key"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = health::routes(Arc::default());
        let tls = Tls::read(&files).unwrap();
        let server = tokio::spawn(serve(listener, Some(tls), routes));
        for identity in [None, Some("client")] {
            let answer = livez(client(identity), address).await.unwrap();
            assert!(
                answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("ok"),
                "{answer}"
            );
        }
        assert!(livez(client(Some("stranger")), address).await.is_err());
        server.abort();
        // Without a CA nobody is asked for a certificate.
        let tls = Tls::read(&TlsFiles { authority: None, ..files }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, Some(tls), health::routes(Arc::default())));
        for identity in [None, Some("stranger")] {
            let answer = livez(client(identity), address).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        }
        server.abort();
    }

    #[test]
    fn files_that_cannot_be_used_are_fatal() {
        let error = |names: [&str; 3]| Tls::read(&files(names)).err().unwrap();
        let missing = error(["ca.pem", "nothing.pem", "server.key"]);
        let text = missing.to_string();
        assert!(text.contains("tests/tls/nothing.pem: ") && text.contains("hint: "), "{text}");
        assert_eq!(Fatal::from(missing).code(), 255);
        let swapped = error(["ca.pem", "server.pem", "client.key"]).to_string();
        assert!(swapped.starts_with("TLS: "), "{swapped}");
    }
}

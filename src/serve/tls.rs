//! TLS of the servers: 1.2 or newer. A client certificate is verified if there is one and a CA is given. The files
//! are read again once a minute, because certificates are replaced while the process runs.
//! Specification: core.md 1.1, 1.8; answers.md 11.

mod any_client;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use crate::fatal::Fatal;
use crate::flags::{ClientCertificates, TlsFiles};
use any_client::AnyClient;

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

impl From<TlsError> for Fatal {
    fn from(error: TlsError) -> Self {
        Self::Tls(Box::new(error))
    }
}

/// Pause before the files are read again.
const READ_AGAIN: Duration = Duration::from_secs(60);

/// Certificate, key and the CA of the clients, as they were read last.
pub struct Tls {
    /// `None`: the certificate is the process's own, and never replaced.
    files: Option<TlsFiles>,
    /// The files when an acceptor was made of them last, or could not be made.
    contents: Contents,
    acceptor: watch::Sender<TlsAcceptor>,
}

/// The bytes of certificate, key and CA. `None`: the file cannot be read, or none is given.
type Contents = [Option<Vec<u8>>; 3];

impl Tls {
    /// From files, for example those of `--tls-cert-file` and `--tls-private-key-file`.
    ///
    /// # Errors
    /// One is unreadable, or they do not fit together.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let (contents, acceptor) = (contents(files), acceptor(files)?);
        let acceptor = watch::Sender::new(acceptor);
        Ok(Self { files: Some(files.clone()), contents, acceptor })
    }

    /// With a certificate that is in no file.
    ///
    /// # Errors
    /// Certificate and key do not fit together.
    pub(crate) fn own(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        clients: &ClientCertificates,
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let clients = verifier(clients, provider.clone())?;
        let acceptor = accept(provider, clients, chain, key)?;
        let acceptor = watch::Sender::new(acceptor);
        Ok(Self { files: None, contents: Contents::default(), acceptor })
    }

    /// Returns what shakes hands with clients, as it is from now on.
    pub(crate) fn acceptor(&self) -> watch::Receiver<TlsAcceptor> {
        self.acceptor.subscribe()
    }

    /// Reads the files again once a minute, for ever.
    pub(super) async fn follow_files(mut self) {
        loop {
            tokio::time::sleep(READ_AGAIN).await;
            self.read_again();
        }
    }

    /// Uses the files for new connections if they have changed. Files that cannot be used are logged
    /// once, and what was read before stays in use.
    fn read_again(&mut self) {
        let Some(files) = &self.files else { return };
        let contents = contents(files);
        if contents == self.contents {
            return;
        }
        self.contents = contents;
        let certificate = files.certificate.display();
        match acceptor(files) {
            Ok(acceptor) => {
                self.acceptor.send_replace(acceptor);
                tracing::info!("certificate {certificate} was read again: it has changed");
            }
            Err(error) => tracing::error!(
                "certificate {certificate} has changed and cannot be used, the one before stays in \
                 use: {error}"
            ),
        }
    }
}

fn contents(files: &TlsFiles) -> Contents {
    let TlsFiles { clients, certificate, key } = files;
    let authority = match clients {
        ClientCertificates::OfAuthority(authority) => Some(authority),
        ClientCertificates::NotAsked | ClientCertificates::Any => None,
    };
    [Some(certificate), Some(key), authority]
        .map(|path| path.and_then(|path| std::fs::read(path).ok()))
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
    let TlsFiles { clients, certificate, key } = files;
    let provider = Arc::new(ring::default_provider());
    let clients = verifier(clients, provider.clone())?;
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?;
    accept(provider, clients, chain, key)
}

fn accept(
    provider: Arc<CryptoProvider>,
    clients: Arc<dyn ClientCertVerifier>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<TlsAcceptor, TlsError> {
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// What the handshake does with the certificates of clients that have one.
fn verifier(
    clients: &ClientCertificates,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let authority = match clients {
        ClientCertificates::NotAsked => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientCertificates::Any => return Ok(Arc::new(AnyClient::new(&provider))),
        ClientCertificates::OfAuthority(authority) => authority,
    };
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
        TlsFiles { clients: ClientCertificates::OfAuthority(authority), certificate, key }
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
        let server = tokio::spawn(serve(listener, vc_http::ServerLimits::SMALL, Some(tls), routes));
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
        let clients = ClientCertificates::NotAsked;
        let tls = Tls::read(&TlsFiles { clients, ..files }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(
            listener,
            vc_http::ServerLimits::SMALL,
            Some(tls),
            health::routes(Arc::default()),
        ));
        for identity in [None, Some("stranger")] {
            let answer = livez(client(identity), address).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        }
        server.abort();
    }

    /// Copies the files of this certificate over those in the folder.
    fn replace(folder: &Path, certificate: &str, key: &str) {
        std::fs::copy(file(certificate), folder.join("tls.crt")).unwrap();
        std::fs::copy(file(key), folder.join("tls.key")).unwrap();
    }

    #[tokio::test]
    async fn new_connections_use_a_certificate_that_was_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
        replace(folder.path(), "stranger.pem", "stranger.key");
        let clients = ClientCertificates::NotAsked;
        let mut tls = Tls::read(&TlsFiles { clients, certificate, key }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_running, stop) = watch::channel(false);
        let routes = health::routes(Arc::default());
        let acceptor = Some(tls.acceptor());
        let server = vc_http::serve(listener, vc_http::ServerLimits::SMALL, acceptor, routes, stop);
        let server = tokio::spawn(server);
        assert!(livez(client(None), address).await.is_err(), "the client does not know that CA");
        replace(folder.path(), "server.pem", "server.key");
        tls.read_again();
        assert!(livez(client(None), address).await.is_ok());
        // The new key is there already, its certificate not yet.
        replace(folder.path(), "server.pem", "stranger.key");
        tls.read_again();
        assert!(livez(client(None), address).await.is_ok());
        replace(folder.path(), "stranger.pem", "stranger.key");
        tls.read_again();
        assert!(livez(client(None), address).await.is_err());
        server.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn the_files_are_read_again_once_a_minute() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
        replace(folder.path(), "stranger.pem", "stranger.key");
        let clients = ClientCertificates::NotAsked;
        let tls = Tls::read(&TlsFiles { clients, certificate, key }).unwrap();
        let mut acceptor = tls.acceptor();
        let (start, following) = (tokio::time::Instant::now(), tokio::spawn(tls.follow_files()));
        replace(folder.path(), "server.pem", "server.key");
        acceptor.changed().await.unwrap();
        assert_eq!(start.elapsed(), READ_AGAIN);
        following.abort();
    }

    #[tokio::test]
    async fn ans_11_a_certificate_of_our_own_is_good_for_localhost() {
        let (chain, key) = crate::answers::own_certificate().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(chain[0].clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let tls = Tls::own(chain, key, &ClientCertificates::NotAsked).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(
            listener,
            vc_http::ServerLimits::SMALL,
            Some(tls),
            health::routes(Arc::default()),
        ));
        let trusting = TlsConnector::from(Arc::new(config));
        let answer = livez(trusting, address).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(livez(client(None), address).await.is_err(), "nobody else knows it");
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

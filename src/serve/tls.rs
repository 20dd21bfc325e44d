//! TLS of the health port: 1.2 or newer, a client certificate is verified if there is one.
//! Specification: core.md 1.1, 1.8.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{}: {error}\nhint: give PEM files that the process may read", path.display())]
    Unreadable { path: PathBuf, error: pem::Error },
    #[error("TLS of the health port: {0}\nhint: do certificate and key belong together?")]
    Mismatch(#[from] rustls::Error),
    #[error("CA of the health port: {0}")]
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
    pub fn read([authority, certificate, key]: &[PathBuf; 3]) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authority)? {
            roots.add(certificate)?;
        }
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?;
        let provider = Arc::new(ring::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients.allow_unauthenticated().build()?)
            .with_single_cert(chain, key)?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    pub(super) async fn accept<S>(&self, stream: S) -> std::io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.0.accept(stream).await
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_file_iter(path).map_err(unreadable(path))?;
    certificates.collect::<Result<_, _>>().map_err(unreadable(path))
}

fn unreadable(path: &Path) -> impl Fn(pem::Error) -> TlsError {
    let path = path.to_owned();
    move |error| TlsError::Unreadable { path: path.clone(), error }
}

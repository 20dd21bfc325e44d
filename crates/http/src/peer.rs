//! The certificates that a client has shown, for routes that know clients by them.

use std::sync::Arc;

use tokio_rustls::rustls::pki_types::CertificateDer;

/// The certificate chain of the client of a connection, its own certificate first. The handshake has proved that the
/// client has the key of the first one. Who signed the chain is known only if the acceptor verifies it: whoever
/// believes a certificate has to know that, or to verify the chain itself.
///
/// It is an extension of each request of the connection. Requests of a client that has shown none lack it.
#[derive(Clone, Debug)]
pub struct PeerCertificates(pub Arc<[CertificateDer<'static>]>);

impl PeerCertificates {
    /// Returns `None` for a client that has shown no certificate.
    pub(crate) fn new(shown: Option<&[CertificateDer<'static>]>) -> Option<Self> {
        shown.filter(|chain| !chain.is_empty()).map(|chain| Self(chain.into()))
    }
}

//! A handshake that takes the certificate of every client. Specification: answers.md 12 (ANS-80).
//!
//! The port of the answers asks for a certificate, so that the front proxy of the API server can show one. Clients with
//! certificates of other CAs ask there too, with a token. Two reasons to verify the chain after the handshake, by
//! [`FrontProxy`](crate::answers::FrontProxy):
//! - A handshake that verifies chains refuses those clients.
//! - The CA of the front proxy is replaced while connections are open. A chain that is verified with each request is
//!   believed only as long as its CA is.

use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// Certificates between that of a client and its CA, at most.
const MOST_INTERMEDIATES: usize = 3;

/// Takes any certificate whose key the client has, and none as well.
#[derive(Debug)]
pub(super) struct AnyClient(WebPkiSupportedAlgorithms);

impl AnyClient {
    pub(super) fn new(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// No hints: with them some clients would show no certificate after the CA was replaced.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // Chains are verified with each request, which takes long for many certificates of one name.
        match intermediates.len() <= MOST_INTERMEDIATES {
            true => Ok(ClientCertVerified::assertion()),
            false => Err(Error::General("the client shows too many certificates".to_owned())),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

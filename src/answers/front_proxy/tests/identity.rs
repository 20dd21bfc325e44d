//! Certificates of tests.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A CA.
pub(super) struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// Certificates that a client shows, and the key of the first one.
pub(super) struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Identity {
    pub(super) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let (params, key) = (authority_params(name), KeyPair::generate().unwrap());
        let certificate = params.self_signed(&key).unwrap();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// A CA below this one.
    pub(super) fn authority(&self, name: &str) -> Self {
        let (params, key) = (authority_params(name), KeyPair::generate().unwrap());
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// A certificate with this common name.
    pub(super) fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let (mut params, key) = (params(name), KeyPair::generate().unwrap());
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Identity { chain: vec![certificate.der().clone()], key }
    }

    pub(super) fn der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    pub(super) fn pem(&self) -> String {
        let text = BASE64_STANDARD.encode(self.certificate.der());
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    }
}

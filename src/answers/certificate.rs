//! A certificate that the process makes itself, for whoever gives it none. Specification:
//! answers.md 11.

use std::io;

use rcgen::{CertificateParams, KeyPair};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Variables with a name or address of the pod, as the chart sets them.
const NAMES: [&str; 3] = ["POD_NAME", "POD_IP", "HOSTNAME"];

/// Returns a certificate for this pod with its key. Clients cannot verify it: the API server does
/// not verify what it proxies to.
///
/// # Errors
/// A name cannot be in a certificate.
pub(crate) fn own_certificate() -> io::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>
{
    let named = NAMES.iter().filter_map(|name| std::env::var(name).ok());
    let named =
        named.filter(|name| !name.is_empty() && name.is_ascii()).chain(["localhost".to_owned()]);
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let params = CertificateParams::new(named.collect::<Vec<_>>()).map_err(io::Error::other)?;
    let certificate = params.self_signed(&key).map_err(io::Error::other)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(io::Error::other)?;
    Ok((vec![certificate.der().clone()], key))
}

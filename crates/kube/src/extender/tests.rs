//! The service over HTTPS, with an authority of the test.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use vc_engine::{SessionInfo, SessionView};

use super::*;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
/// Long enough for every answer that comes at all.
const LONG: Duration = Duration::from_secs(60);

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls").join(name)
}

/// Starts a server that answers one request on each connection over TLS.
fn serve_secured() -> String {
    let chain = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (tell, port) = channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap().port()).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                // A client that does not trust us goes away.
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let _n_read = stream.read(&mut [0; 65_536]).await;
                let _sent = stream.write_all(ANSWER).await;
                let _closed = stream.shutdown().await;
            }
        });
    });
    format!("https://localhost:{}/hook", port.recv().unwrap())
}

#[test]
fn https_needs_a_trusted_certificate() {
    let url = serve_secured();
    let authority = CertificateDer::from_pem_file(file("ca.pem")).unwrap().to_vec();
    let stranger = CertificateDer::from_pem_file(file("stranger.pem")).unwrap().to_vec();
    let with = |root: Vec<u8>| HttpExtender { roots: Some(vec![root]), ..HttpExtender::default() };
    let (cluster, info) = (Cluster::default(), SessionInfo::default());
    let view = SessionView { cluster: &cluster, info: &info };
    let query = ExtenderQuery::SessionClose;
    let request = ExtenderRequest { url: &url, timeout: LONG, view, query };
    assert_eq!(with(authority).exchange(&request), Ok(ExtenderAnswer::default()));
    match with(stranger).exchange(&request) {
        Err(ExtenderError::Unreachable(text)) => assert!(text.contains("certificate"), "{text}"),
        other => panic!("{other:?}"),
    }
}

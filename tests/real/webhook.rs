//! A validating webhook over TLS that refuses what it is asked about, while it is told to.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// It ends with this value.
pub(crate) struct Webhook {
    /// How `clientConfig` names it.
    pub(crate) client: Value,
    n_refused: Arc<AtomicUsize>,
    server: JoinHandle<()>,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Webhook {
    /// With the certificate that the API server of this folder has for itself: same host, same CA.
    pub(crate) async fn start(dir: &Path, message: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/refuse", listener.local_addr().unwrap());
        let client = json!({"url": url, "caBundle": authority(dir)});
        let (acceptor, n_refused) = (acceptor(dir), Arc::new(AtomicUsize::new(0)));
        let counter = n_refused.clone();
        let server = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, counter) = (acceptor.clone(), counter.clone());
                tokio::spawn(async move {
                    // A connection that is cut is the API server's affair.
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let _ = answer(stream, message, &counter).await;
                });
            }
        });
        Self { client, n_refused, server }
    }

    pub(crate) fn n_refused(&self) -> usize {
        self.n_refused.load(Ordering::Relaxed)
    }
}

/// In base64, as the administrator's kubeconfig has it.
fn authority(dir: &Path) -> Value {
    let text = fs::read_to_string(dir.join("admin.kubeconfig")).unwrap();
    let config: Value = serde_yaml::from_str(&text).unwrap();
    config["clusters"][0]["cluster"]["certificate-authority-data"].clone()
}

fn acceptor(dir: &Path) -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(dir.join("server.crt")).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(dir.join("server.key")).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// One request a connection.
async fn answer(
    mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin,
    message: &str,
    n_refused: &AtomicUsize,
) -> std::io::Result<()> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    let review: Value = loop {
        let n_read = stream.read(&mut part).await?;
        if n_read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&part[..n_read]);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        // The body is whole when it is JSON.
        if let Some(review) = end.and_then(|end| serde_json::from_slice(&bytes[end + 4..]).ok()) {
            break review;
        }
    };
    n_refused.fetch_add(1, Ordering::Relaxed);
    let status = json!({"code": 403, "message": message});
    let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": false, "status": status}});
    let body = body.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

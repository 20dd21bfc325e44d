//! Over TLS the clients of the writes use HTTP/2 if the server has it, on one connection, but not for
//! binds and evictions; nothing else changes. Specification: core.md 1.9, rust-ecosystem.md 3.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response, Version};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use vc_kube::{Clients, ServerAccess};

use crate::fake::unobserved;

/// What came: number of the connection, version, head.
type Asked = (usize, Version, String);

/// Answers `{}` to everything but `/hang`, and tells what was asked and which answers nobody wanted.
struct Server {
    url: String,
    asked: mpsc::UnboundedReceiver<Asked>,
    given_up: mpsc::UnboundedReceiver<()>,
    n_connections: Arc<AtomicUsize>,
    connections: mpsc::UnboundedReceiver<AbortHandle>,
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls").join(name)
}

pub(crate) fn acceptor(alpn: &[&str]) -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// Tells that it was dropped.
struct Wanted(mpsc::UnboundedSender<()>);

impl Drop for Wanted {
    fn drop(&mut self) {
        let _nobody_asks = self.0.send(());
    }
}

impl Server {
    /// `streams`: of one connection at once.
    async fn start(alpn: &'static [&'static str], streams: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let (tell, asked) = mpsc::unbounded_channel();
        let (give_up, given_up) = mpsc::unbounded_channel();
        let (opened, connections) = mpsc::unbounded_channel();
        let n_connections = Arc::new(AtomicUsize::new(0));
        let (acceptor, counter) = (acceptor(alpn), n_connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = counter.fetch_add(1, Ordering::Relaxed);
                let (tell, give_up, acceptor) = (tell.clone(), give_up.clone(), acceptor.clone());
                let connection = tokio::spawn(async move {
                    let stream = TokioIo::new(acceptor.accept(stream).await.unwrap());
                    let answer = service_fn(move |request: Request<Incoming>| {
                        let head = format!("{} {:?}", request.uri(), request.headers());
                        tell.send((number, request.version(), head)).unwrap();
                        let wanted = Wanted(give_up.clone());
                        async move {
                            if request.uri().path() == "/hang" {
                                std::future::pending::<()>().await;
                            }
                            std::mem::forget(wanted);
                            Ok::<_, std::convert::Infallible>(Response::new(Full::from("{}")))
                        }
                    });
                    serve(stream, streams, answer).await;
                });
                opened.send(connection.abort_handle()).unwrap();
            }
        });
        Self { url, asked, given_up, n_connections, connections }
    }

    async fn clients(&self) -> Clients {
        let path = std::env::temp_dir().join(format!("vc-kube-http2-{}", std::process::id()));
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: c, \
             clusters: [{{name: k, cluster: {{server: {}, certificate-authority: {}}}}}], \
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}], \
             users: [{{name: u, user: {{token: t}}}}]}}",
            self.url,
            file("ca.pem").display()
        );
        let path = path.with_extension(self.url.rsplit(':').next().unwrap());
        std::fs::write(&path, text).unwrap();
        let kubeconfig = path.to_str().unwrap().to_owned();
        let access = ServerAccess { master: String::new(), kubeconfig, qps: -1.0, burst: 0 };
        let clients = Clients::connect(&access, &unobserved()).await.unwrap();
        std::fs::remove_file(path).unwrap();
        clients.for_writes().unwrap()
    }

    fn n_connections(&self) -> usize {
        self.n_connections.load(Ordering::Relaxed)
    }
}

async fn serve<S>(
    stream: TokioIo<tokio_rustls::server::TlsStream<tokio::net::TcpStream>>,
    streams: u32,
    answer: S,
) where
    S: hyper::service::HttpService<Incoming, ResBody = Full<Bytes>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Future: Send + 'static,
{
    // The client may be gone first.
    let _ended = match stream.inner().get_ref().1.alpn_protocol() {
        Some(b"h2") => {
            hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .max_concurrent_streams(streams)
                .serve_connection(stream, answer)
                .await
        }
        _ => hyper::server::conn::http1::Builder::new().serve_connection(stream, answer).await,
    };
}

async fn ask(client: &Client, path: &str) -> kube::Result<String> {
    client.request_text(Request::get(path).body(Vec::new()).unwrap()).await
}

/// So many requests at once, of both purposes.
async fn ask_all(clients: &Clients, n_requests: usize) {
    let mut requests = JoinSet::new();
    for number in 0..n_requests {
        let client = [&clients.volcano, &clients.events][number % 2].clone();
        requests.spawn(async move { ask(&client, &format!("/{number}")).await.unwrap() });
    }
    assert!(requests.join_all().await.iter().all(|answer| answer == "{}"));
}

#[tokio::test]
async fn http2_is_used_if_the_server_has_it() {
    let cases: [(&[&str], Version); 3] = [
        (&["h2", "http/1.1"], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ];
    for (alpn, wanted) in cases {
        let mut server = Server::start(alpn, 100).await;
        let clients = server.clients().await;
        ask_all(&clients, 20).await;
        for _ in 0..20 {
            let (_, version, head) = server.asked.recv().await.unwrap();
            assert_eq!(version, wanted, "{alpn:?}");
            assert!(head.contains("Bearer t") && head.contains("vc-scheduler/"), "{head}");
        }
        assert_eq!(server.n_connections() == 1, wanted == Version::HTTP_2, "{alpn:?}");
        ask(&clients.core, "/bind").await.unwrap();
        assert_eq!(server.asked.recv().await.unwrap().1, Version::HTTP_11, "{alpn:?}");
    }
}

/// A server may allow fewer streams than the client begins with, and closes idle connections.
#[tokio::test]
async fn what_the_server_has_not_looked_at_is_sent_again() {
    let mut server = Server::start(&["h2"], 1).await;
    let clients = server.clients().await;
    ask_all(&clients, 40).await;
    let mut paths = Vec::new();
    for _ in 0..40 {
        paths.push(server.asked.recv().await.unwrap().2);
    }
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 40);
    assert!(server.asked.try_recv().is_err(), "something was asked twice");
}

#[tokio::test]
async fn a_lost_connection_is_replaced() {
    let mut server = Server::start(&["h2"], 100).await;
    let clients = server.clients().await;
    let hanging = tokio::spawn({
        let client = clients.volcano.clone();
        async move { ask(&client, "/hang").await }
    });
    assert_eq!(server.asked.recv().await.unwrap().0, 0);
    server.connections.recv().await.unwrap().abort();
    assert!(hanging.await.unwrap().is_err(), "its outcome is unknown");
    ask(&clients.volcano, "/again").await.unwrap();
    assert_eq!(server.asked.recv().await.unwrap().0, 1);
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_the_connection_to_the_others() {
    let mut server = Server::start(&["h2"], 100).await;
    let clients = server.clients().await;
    let client = clients.volcano.clone();
    let hanging = tokio::spawn(async move { ask(&client, "/hang").await });
    server.asked.recv().await.unwrap();
    hanging.abort();
    server.given_up.recv().await.unwrap();
    ask(&clients.volcano, "/next").await.unwrap();
    assert_eq!(server.n_connections(), 1);
}

//! Servers with TLS, and the end of a tunnel as an API server and a kubelet open it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::extract::connect_info::Connected;
use axum::http::Response;
use axum::serve::{IncomingStream, Listener};
use futures::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

/// A file of `tests/tls`.
pub(crate) fn tls_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls").join(name)
}

/// TLS of a server with a certificate that no CA knows, as a scheduler makes it.
pub(crate) fn self_made() -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// TLS of a server of the CA of the tests, which asks for certificates of this CA and serves those without, too.
pub(crate) fn asks_for_certificates() -> TlsAcceptor {
    let certificates = |name: &str| {
        let read = CertificateDer::pem_file_iter(tls_file(name)).unwrap();
        read.collect::<Result<Vec<_>, _>>().unwrap()
    };
    let mut roots = RootCertStore::empty();
    certificates("ca.pem").into_iter().for_each(|root| roots.add(root).unwrap());
    let provider = Arc::new(default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let verifier = verifier.allow_unauthenticated().build().unwrap();
    let key = PrivateKeyDer::from_pem_file(tls_file("server.key")).unwrap();
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_client_cert_verifier(verifier);
    let config = builder.with_single_cert(certificates("server.pem"), key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// A port with TLS.
struct TlsListener {
    tcp: TcpListener,
    tls: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            // A client that is refused is no matter of the server.
            if let Ok(stream) = self.tls.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// True if the client of a connection has shown a certificate.
#[derive(Clone, Copy)]
pub(crate) struct HasCertificate(pub(crate) bool);

impl Connected<IncomingStream<'_, TlsListener>> for HasCertificate {
    fn connect_info(stream: IncomingStream<'_, TlsListener>) -> Self {
        let (_, connection) = stream.io().get_ref();
        Self(connection.peer_certificates().is_some())
    }
}

/// Serves routes with TLS; returns the address.
pub(crate) async fn serve_tls(tls: TlsAcceptor, routes: Router) -> SocketAddr {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let routes = routes.into_make_service_with_connect_info::<HasCertificate>();
    tokio::spawn(async move { axum::serve(TlsListener { tcp, tls }, routes).await });
    address
}

/// Serves routes without TLS; returns the address.
pub(crate) async fn serve_plain(routes: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

/// Opens a tunnel to `target`, as an API server does it for `pods/NAME/portforward?ports=PORT` (WebSocket, subprotocol
/// v4: channel 0 has the bytes, channel 1 an error).
pub(crate) fn open_tunnel(request: Request, target: SocketAddr) -> Response<Body> {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let port: u16 = query.rsplit_once("ports=").unwrap().1.parse().unwrap();
    let header = |name: &str| request.headers()[name].to_str().unwrap().to_owned();
    assert!(header("sec-websocket-protocol").contains("v4.channel.k8s.io"));
    let accept = derive_accept_key(header("sec-websocket-key").as_bytes());
    tokio::spawn(async move {
        let upgraded = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
        pass_bytes(socket, port, target).await;
    });
    Response::builder()
        .status(101)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-accept", accept)
        .header("sec-websocket-protocol", "v4.channel.k8s.io")
        .body(Body::empty())
        .unwrap()
}

/// Passes bytes on until one of both sides ends.
async fn pass_bytes(
    mut socket: WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>,
    port: u16,
    target: SocketAddr,
) {
    let [low, high] = port.to_le_bytes();
    for channel in [0, 1] {
        socket.send(Message::binary(vec![channel, low, high])).await.unwrap();
    }
    let mut pod = match TcpStream::connect(target).await {
        Ok(pod) => pod,
        Err(error) => {
            let text = format!("error forwarding port {port} to pod abc: {error}");
            let message = [&[1], text.as_bytes()].concat();
            socket.send(Message::binary(message)).await.unwrap();
            // The client has read it when it hangs up.
            while socket.next().await.is_some_and(|message| message.is_ok()) {}
            return;
        }
    };
    let mut buffer = vec![0; 1 << 14];
    loop {
        tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Binary(bytes))) => {
                    assert_eq!(bytes[0], 0, "a client writes to channel 0 alone");
                    pod.write_all(&bytes[1..]).await.unwrap();
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return,
            },
            read = pod.read(&mut buffer) => match read {
                Ok(n_bytes) if n_bytes > 0 => {
                    let message = [&[0], &buffer[..n_bytes]].concat();
                    if socket.send(Message::binary(message)).await.is_err() {
                        return;
                    }
                }
                _ => return drop(socket.close(None).await),
            },
        }
    }
}

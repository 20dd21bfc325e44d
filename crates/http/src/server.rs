//! Accepts connections and answers them within [`ServerLimits`].

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::serve::Listener;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::connections::{ConnectionPlace, Connections};
use crate::{PeerCertificates, ServerLimits};

/// Answers connections of `listener` with `routes`, over TLS if there is an acceptor, until `stop`
/// is true or its sender is gone. Then requests under way are answered, and it returns. Each new
/// connection uses the acceptor of that moment, so that certificates can be replaced.
pub async fn serve<L: Listener>(
    mut listener: L,
    limits: ServerLimits,
    tls: Option<watch::Receiver<TlsAcceptor>>,
    routes: Router,
    mut stop: watch::Receiver<bool>,
) {
    let connections = Arc::new(Connections::default());
    let mut tasks = JoinSet::new();
    loop {
        let stream = tokio::select! {
            (stream, _) = listener.accept() => stream,
            Some(_) = tasks.join_next() => continue,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let (place, closed) = connections.enter(limits.connections);
        let acceptor = tls.as_ref().map(|acceptor| acceptor.borrow().clone());
        let (routes, stop) = (routes.clone(), stop.clone());
        tasks.spawn(async move {
            let answered = connect(stream, limits, acceptor, place, routes, stop);
            tokio::select! { () = answered => {}, () = end(closed) => {} }
        });
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

/// Returns when the other end is dropped.
async fn end(closed: oneshot::Receiver<()>) {
    drop(closed.await);
}

/// Shakes hands, if there is TLS, and answers.
async fn connect(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    limits: ServerLimits,
    tls: Option<TlsAcceptor>,
    place: ConnectionPlace,
    routes: Router,
    stop: watch::Receiver<bool>,
) {
    let mut stream = TimeoutStream::new(stream);
    // The connection of a client that does not read is closed after this time.
    stream.set_write_timeout(Some(limits.write));
    let (stream, head) = (Box::pin(stream), limits.head(place.open));
    match tls {
        None => answer(stream, limits, head, Client { place, peer: None }, routes, stop).await,
        Some(tls) => {
            // A client that cannot shake hands is gone.
            if let Ok(Ok(stream)) = timeout(head, tls.accept(stream)).await {
                let peer = PeerCertificates::new(stream.get_ref().1.peer_certificates());
                answer(stream, limits, head, Client { place, peer }, routes, stop).await;
            }
        }
    }
}

/// The client of one connection.
struct Client {
    place: ConnectionPlace,
    /// `None`: there is no TLS, or the client has shown no certificate.
    peer: Option<PeerCertificates>,
}

/// Answers the requests of one connection until it ends; after `stop` the one under way.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    limits: ServerLimits,
    head: Duration,
    client: Client,
    routes: Router,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(|request| respond(&client, routes.clone(), request));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(head).max_buf_size(limits.buffer);
    let mut connection = std::pin::pin!(server.serve_connection(TokioIo::new(stream), service));
    let served = async {
        tokio::select! {
            // What the client does wrong is its own affair.
            ended = connection.as_mut() => return drop(ended),
            _ = stop.wait_for(|stop| *stop) => {}
        }
        connection.as_mut().graceful_shutdown();
        drop(connection.await);
    };
    match limits.connection {
        Some(limit) => drop(timeout(limit, served).await),
        None => served.await,
    }
}

/// The answer to one request. The connection counts as busy until the whole body is handed over.
async fn respond(
    client: &Client,
    routes: Router,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, std::convert::Infallible> {
    let answering = client.place.answer();
    if let Some(peer) = &client.peer {
        request.extensions_mut().insert(peer.clone());
    }
    let response = routes.oneshot(request.map(Body::new)).await?;
    Ok(response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _busy = &answering;
            frame
        }))
    }))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Bytes;
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

    struct Bed {
        address: std::net::SocketAddr,
        stop: watch::Sender<bool>,
        server: JoinHandle<()>,
    }

    /// A server that answers "ok" on /, the length of the body on /length, and never ends to answer on
    /// /endless.
    async fn start(limits: ServerLimits) -> Bed {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let endless = || async {
            let piece = Ok::<_, Infallible>(Bytes::from(vec![b'x'; 16 * 1024]));
            Body::from_stream(futures::stream::repeat(piece))
        };
        let length = |body: Bytes| async move { body.len().to_string() };
        let routes = Router::new()
            .route("/", get(async || "ok"))
            .route("/length", post(length))
            .route("/endless", get(endless));
        let server = tokio::spawn(serve(listener, limits, None, routes, stopped));
        Bed { address, stop, server }
    }

    impl Bed {
        async fn connect(&self) -> TcpStream {
            TcpStream::connect(self.address).await.unwrap()
        }
    }

    /// The answer to a request on a connection that stays open.
    async fn ask(stream: &mut TcpStream) -> String {
        stream.write_all(REQUEST).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nok") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "closed");
        }
        String::from_utf8(answer).unwrap()
    }

    /// Waits until the server has closed the connection.
    async fn closed(stream: &mut TcpStream) {
        let mut rest = Vec::new();
        // Closed with a reset if something was not read.
        drop(stream.read_to_end(&mut rest).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_closed() {
        let bed = start(ServerLimits::SMALL).await;
        let start = Instant::now();
        let mut silent = bed.connect().await;
        closed(&mut silent).await;
        assert!(start.elapsed() <= ServerLimits::SMALL.head * 2, "{:?}", start.elapsed());
        bed.server.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_less_time_when_places_are_short() {
        let bed = start(ServerLimits { connections: 4, ..ServerLimits::SMALL }).await;
        let mut first = Vec::new();
        for _ in 0..3 {
            first.push(bed.connect().await);
            ask(first.last_mut().unwrap()).await;
        }
        let start = Instant::now();
        let mut slow = bed.connect().await;
        slow.write_all(&REQUEST[..20]).await.unwrap();
        closed(&mut slow).await;
        assert!(start.elapsed() <= ServerLimits::SMALL.short_head * 2, "{:?}", start.elapsed());
        bed.server.abort();
    }

    #[tokio::test]
    async fn ans_74_a_large_head_is_refused_and_a_large_body_is_read() {
        let limits = ServerLimits { buffer: 16 * 1024, ..ServerLimits::SMALL };
        let bed = start(limits).await;
        let asked = async |request: Vec<u8>| {
            let mut stream = bed.connect().await;
            stream.write_all(&request).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            String::from_utf8(answer).unwrap()
        };
        let head = |n_bytes: usize| {
            let line = "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-large: ";
            let mut head = line.as_bytes().to_vec();
            head.resize(n_bytes, b'x');
            head
        };
        let small = asked([&head(15 * 1024)[..], b"\r\n\r\n"].concat()).await;
        assert!(small.starts_with("HTTP/1.1 200 "), "{small}");
        // Not one byte more: nothing is left unread, and the connection ends without a reset.
        let large = asked(head(16 * 1024)).await;
        assert!(large.starts_with("HTTP/1.1 431 "), "{large}");
        let start = "POST /length HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
            content-length: 100000\r\n\r\n";
        let read = asked([start.as_bytes(), &[b'x'; 100_000]].concat()).await;
        assert!(read.ends_with("\r\n\r\n100000"), "{read}");
        bed.server.abort();
    }

    #[tokio::test]
    async fn a_new_client_is_answered_however_many_are_silent() {
        let hour = Duration::from_secs(3600);
        let limits =
            ServerLimits { connections: 8, head: hour, short_head: hour, ..ServerLimits::SMALL };
        let bed = start(limits).await;
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(bed.connect().await);
        }
        for _ in 0..3 {
            assert!(ask(&mut bed.connect().await).await.starts_with("HTTP/1.1 200 OK\r\n"));
        }
        // The first ones have given up their places.
        closed(&mut silent[0]).await;
        assert!(ask(&mut silent[7]).await.starts_with("HTTP/1.1 200 OK\r\n"));
        bed.server.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_closed() {
        let bed = start(ServerLimits::SMALL).await;
        let mut reader = bed.connect().await;
        reader.write_all(b"GET /endless HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        tokio::time::sleep(ServerLimits::SMALL.write * 3).await;
        // What the system had taken is read, and no more comes.
        closed(&mut reader).await;
        bed.server.abort();
    }

    #[tokio::test]
    async fn a_stop_ends_kept_connections() {
        let bed = start(ServerLimits::SMALL).await;
        let mut kept = bed.connect().await;
        ask(&mut kept).await;
        bed.stop.send_replace(true);
        bed.server.await.unwrap();
        closed(&mut kept).await;
    }
}

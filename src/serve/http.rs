//! Accepts connections and answers them; slow and silent ones are cut off. Specification: core.md
//! 1.8 (time-outs), rust-ecosystem.md 9.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::tls::Tls;

/// For the head of a request, and for a TLS handshake; an idle connection is closed after it.
const HEAD: Duration = Duration::from_secs(5);
/// A whole connection of an HTTP client that keeps it open gets no longer than this.
const CONNECTION: Duration = Duration::from_secs(600);
/// Connections at once; more have to wait.
const CONNECTIONS: usize = 64;
/// Pause when the process has run out of file descriptors.
const EXHAUSTED: Duration = Duration::from_secs(1);

/// Answers TCP connections for ever.
pub(super) async fn serve(listener: TcpListener, tls: Option<Tls>, routes: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = places.clone().acquire_owned().await;
        let Some(stream) = accepted(listener.accept().await).await else { continue };
        let (tls, routes) = (tls.clone(), routes.clone());
        tokio::spawn(async move {
            let _place = place;
            match tls {
                None => answer(stream, routes).await,
                Some(tls) => {
                    // Whoever cannot shake hands is gone.
                    if let Ok(Ok(stream)) = timeout(HEAD, tls.accept(stream)).await {
                        answer(stream, routes).await;
                    }
                }
            }
        });
    }
}

/// Answers connections to a socket of the file system for ever.
pub(super) async fn serve_unix(listener: UnixListener, routes: Router) {
    loop {
        if let Some(stream) = accepted(listener.accept().await).await {
            tokio::spawn(answer(stream, routes.clone()));
        }
    }
}

async fn accepted<S, A>(accepted: io::Result<(S, A)>) -> Option<S> {
    match accepted {
        Ok((stream, _)) => Some(stream),
        Err(error) => {
            tracing::debug!(%error, "no connection");
            sleep(EXHAUSTED).await;
            None
        }
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, routes: Router) {
    let service = TowerToHyperService::new(routes);
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    // What the client does wrong is its own affair.
    drop(timeout(CONNECTION, connection).await);
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpStream;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_is_cut_off() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, None, Router::new()));
        let start = Instant::now();
        let mut silent = TcpStream::connect(address).await.unwrap();
        let mut answer = Vec::new();
        let read = timeout(CONNECTION, silent.read_to_end(&mut answer)).await;
        assert!(read.is_ok() && start.elapsed() <= HEAD * 2, "{:?}", start.elapsed());
        server.abort();
    }
}

//! Writes of PodGroups, queues and events share one HTTP/2 connection if the server has that, as
//! client-go's do: what many requests send and are answered at about the same time is one packet, one record of
//! TLS and one wake-up.
//! Specification: core.md 1.9; rust-ecosystem.md 3 (K-01: what the server says that it has not looked
//! at is no retry).

use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceExt};

use crate::stack::{HttpVersions, ServiceStack, connector, stack};

/// Silence after which the server is asked whether it is there, and for how long: as client-go. A
/// connection that a network has swallowed would hold every write until its own time is over.
const SILENCE: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(15);
/// For a connection whose configuration names no limit.
const CONNECT: Duration = Duration::from_secs(30);
/// Connections that are tried with a request that the server has not looked at.
const ATTEMPTS: u32 = 3;

/// The way to a server over TLS; clones share the connection.
#[derive(Clone)]
pub(crate) struct Http2 {
    link: Arc<Http2Connection>,
    stack: Arc<Mutex<ServiceStack>>,
    /// For a server that has no HTTP/2.
    http1: Client,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum Http2Error {
    #[error("no connection within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("no connection")]
    Refused(#[source] BoxError),
    /// It had when it was asked first.
    #[error("the server has no HTTP/2 any more")]
    Lost,
}

/// The connection, and how to make another one.
struct Http2Connection {
    connector: HttpsConnector<HttpConnector>,
    config: Config,
    builder: Builder<TokioExecutor>,
    state: Mutex<ConnectionState>,
}

#[derive(Clone)]
enum ConnectionState {
    Closed,
    Open(SendRequest<Body>),
    /// The server has chosen HTTP/1.1; it is not asked again.
    Http1,
}

impl Http2 {
    /// `None`: not for this configuration, which has no TLS or a proxy.
    ///
    /// # Errors
    /// Certificates are unreadable, or a header is none.
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, kube::Error> {
        if config.cluster_url.scheme_str() != Some("https") || config.proxy_url.is_some() {
            return Ok(None);
        }
        let http1 = ClientBuilder::try_from(config.clone())?.build();
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(SILENCE)
            .keep_alive_timeout(PATIENCE)
            .keep_alive_while_idle(true);
        let state = Mutex::new(ConnectionState::Closed);
        let connector = connector(config, HttpVersions::All)?;
        let link = Arc::new(Http2Connection { connector, config: config.clone(), builder, state });
        let stack = stack(config, Http2Service(link.clone()))?;
        Ok(Some(Self { link, stack: Arc::new(Mutex::new(stack)), http1 }))
    }
}

impl Service<Request<Body>> for Http2 {
    type Response = Response<Either<Incoming, Body>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { link, stack, http1 } = self.clone();
        Box::pin(async move {
            match link.sender().await? {
                Some(_) => {
                    let answer = stack.lock().await.ready().await?.call(request);
                    Ok(answer.await?.map(Either::Left))
                }
                None => Ok(http1.send(request).await?.map(Either::Right)),
            }
        })
    }
}

impl Http2Connection {
    /// Where to put requests; `None`: the server has no HTTP/2. Who waits for a connection that
    /// another request makes takes over when that is given up.
    async fn sender(&self) -> Result<Option<SendRequest<Body>>, Http2Error> {
        let mut state = self.state.lock().await;
        match &*state {
            ConnectionState::Open(sender) if !sender.is_closed() => {
                return Ok(Some(sender.clone()));
            }
            ConnectionState::Http1 => return Ok(None),
            _ => *state = ConnectionState::Closed,
        }
        let limit = self.config.connect_timeout.unwrap_or(CONNECT);
        let made = timeout(limit, self.connect()).await;
        let sender = made.map_err(|_| Http2Error::TimedOut(limit))?.map_err(Http2Error::Refused)?;
        *state = match &sender {
            Some(sender) => ConnectionState::Open(sender.clone()),
            None => ConnectionState::Http1,
        };
        Ok(sender)
    }

    async fn connect(&self) -> Result<Option<SendRequest<Body>>, BoxError> {
        let stream = self.connector.clone().oneshot(self.config.cluster_url.clone()).await?;
        if !stream.connected().is_negotiated_h2() {
            return Ok(None);
        }
        let (sender, connection) = self.builder.handshake(stream).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(v = 3, %error, "connection of the writes lost");
            }
        });
        Ok(Some(sender))
    }
}

/// Sends what has its address and credentials.
#[derive(Clone)]
struct Http2Service(Arc<Http2Connection>);

impl Service<Request<Body>> for Http2Service {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self(link) = self.clone();
        Box::pin(async move {
            let mut request = request;
            let mut attempt = 1;
            loop {
                let again = same(&request).filter(|_| attempt < ATTEMPTS);
                let mut sender = link.sender().await?.ok_or(Http2Error::Lost)?;
                match sender.try_send_request(request).await {
                    Ok(answer) => return Ok(answer),
                    Err(mut failed) => {
                        let unsent = failed.take_message().is_some();
                        let error = failed.into_error();
                        request = again.filter(|_| unsent || unseen(&error)).ok_or(error)?;
                    }
                }
                attempt += 1;
            }
        })
    }
}

/// A copy, if the body can be had twice.
fn same(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

/// The server has said that it did not process the request: it closes the connection in good order,
/// or has too many requests of this connection (RFC 9113, 6.8 and 8.7).
fn unseen(error: &hyper::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let reason = error.reason();
            return error.is_remote()
                && (reason == Some(h2::Reason::REFUSED_STREAM)
                    || error.is_go_away() && reason == Some(h2::Reason::NO_ERROR));
        }
        cause = error.source();
    }
    false
}

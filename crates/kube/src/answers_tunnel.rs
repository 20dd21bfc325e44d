//! Questions to a pod through a tunnel that the API server opens to its port, as `kubectl port-forward` does.
//! Specification: answers.md 13 (ANS-88).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::Pod;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Api, Client, Config};
use tokio::io::DuplexStream;
use tokio::time::timeout;
use tower::{BoxError, Service};

use crate::answers_client::in_words;
use crate::answers_way::AnswersPod;
use crate::stack::stack;

/// How long a tunnel and the handshake inside it may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Host in the URL of every request. The tunnel leads to the pod whatever the name is.
const HOST: &str = "answers";

/// Returns a client whose connections are tunnels that `api` opens to the pod, with TLS inside. The certificate is not verified, as
/// the API server does not verify that of a Service: a scheduler makes it itself. The credentials of the
/// kubeconfig go to the API server alone.
///
/// # Errors
/// TLS cannot be set up.
pub(crate) fn tunnel_client(
    api: Client,
    namespace: &str,
    pod: &AnswersPod,
) -> Result<Client, kube::Error> {
    let address = format!("https://{HOST}:{}", pod.port);
    let mut inside = Config::new(
        address
            .parse()
            .map_err(|error: http::uri::InvalidUri| kube::Error::Service(Box::new(error)))?,
    );
    inside.accept_invalid_certs = true;
    // Nothing is verified, so the certificates of the system need not be there.
    inside.root_cert = Some(Vec::new());
    let pods = Api::namespaced(api, &pod.namespace);
    let connector = TunnelConnector { pods, pod: pod.clone() };
    let connector = with_tls(&inside, connector, pod.port)?;
    let client: legacy::Client<_, Body> =
        legacy::Builder::new(TokioExecutor::new()).build(connector);
    Ok(ClientBuilder::new(stack(&inside, client)?, namespace).build())
}

/// Why there is no tunnel.
#[derive(Debug, thiserror::Error)]
enum TunnelError {
    /// The words of the API server.
    #[error("{0}")]
    Refused(String),
    #[error("no tunnel with TLS to port {port} after {PATIENCE:?}")]
    TimedOut { port: u16 },
    #[error("the tunnel has no port {port}")]
    NoPort { port: u16 },
}

/// Returns a connector with TLS inside the connections of another one, which gives up after [`PATIENCE`].
fn with_tls<C>(
    inside: &Config,
    connector: C,
    port: u16,
) -> Result<TimedConnector<HttpsConnector<C>>, kube::Error>
where
    C: Service<Uri> + Send + 'static,
    C::Response: Connection + Read + Write + Unpin + Send,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    Ok(TimedConnector { connector: inside.rustls_https_connector_with_connector(connector)?, port })
}

/// Gives up connections that take too long.
#[derive(Clone)]
struct TimedConnector<C> {
    connector: C,
    port: u16,
}

impl<C> Service<Uri> for TimedConnector<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<C::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let port = self.port;
        let connection = timeout(PATIENCE, self.connector.call(uri));
        connection
            .map(move |connected| match connected {
                Ok(connected) => connected.map_err(Into::into),
                Err(_) => Err(TunnelError::TimedOut { port }.into()),
            })
            .boxed()
    }
}

/// Opens tunnels to the port of a pod.
#[derive(Clone)]
struct TunnelConnector {
    pods: Api<Pod>,
    pod: AnswersPod,
}

impl Service<Uri> for TunnelConnector {
    type Response = TunnelStream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<TunnelStream, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { pods, pod } = self.clone();
        Box::pin(async move { Ok(open_tunnel(&pods, &pod).await?) })
    }
}

async fn open_tunnel(pods: &Api<Pod>, pod: &AnswersPod) -> Result<TunnelStream, TunnelError> {
    let port = pod.port;
    let opened = pods.portforward(&pod.name, &[port]).await;
    let mut opened = opened.map_err(|error| TunnelError::Refused(in_words(&error)))?;
    let stream = opened.take_stream(port).ok_or(TunnelError::NoPort { port })?;
    let failure = opened.take_error(port).map(|failure| failure.boxed());
    Ok(TunnelStream { stream: TokioIo::new(stream), failure })
}

/// Bytes of a tunnel.
struct TunnelStream {
    stream: TokioIo<DuplexStream>,
    /// Resolves when the node of the pod says why the port cannot be used. `None`: it can say no more.
    failure: Option<BoxFuture<'static, Option<String>>>,
}

impl Connection for TunnelStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for TunnelStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(failure) = &mut self.failure
            && let Poll::Ready(text) = failure.as_mut().poll(context)
        {
            self.failure = None;
            if let Some(text) = text {
                return Poll::Ready(Err(io::Error::other(text.trim().to_owned())));
            }
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for TunnelStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use tower::service_fn;

    use super::*;

    /// How long the test would wait, in the time of a paused clock.
    const DAY: Duration = Duration::from_secs(86_400);

    fn inside() -> (Config, Uri) {
        let uri: Uri = "https://answers:8443".parse().unwrap();
        let mut inside = Config::new(uri.clone());
        (inside.accept_invalid_certs, inside.root_cert) = (true, Some(Vec::new()));
        (inside, uri)
    }

    #[tokio::test(start_paused = true)]
    async fn ans_88_a_tunnel_that_nobody_opens_is_given_up() {
        let (inside, uri) = inside();
        let never = service_fn(|_: Uri| std::future::pending::<Result<TunnelStream, Infallible>>());
        let mut connector = with_tls(&inside, never, 8443).unwrap();
        let connected = timeout(DAY, connector.call(uri)).await.unwrap();
        let error = connected.map(drop).unwrap_err();
        assert_eq!(error.to_string(), "no tunnel with TLS to port 8443 after 10s");
    }

    #[tokio::test(start_paused = true)]
    async fn ans_88_a_pod_that_does_not_speak_is_given_up() {
        let (inside, uri) = inside();
        let ends = Arc::new(Mutex::new(Vec::new()));
        let silent = {
            let ends = ends.clone();
            service_fn(move |_: Uri| {
                let (near, far) = tokio::io::duplex(1 << 16);
                ends.lock().unwrap().push(far);
                let stream = TunnelStream { stream: TokioIo::new(near), failure: None };
                async move { Ok::<_, Infallible>(stream) }
            })
        };
        let mut connector = with_tls(&inside, silent, 8443).unwrap();
        let connected = timeout(DAY, connector.call(uri)).await.unwrap();
        let error = connected.map(drop).unwrap_err();
        assert_eq!(error.to_string(), "no tunnel with TLS to port 8443 after 10s");
        assert_eq!(ends.lock().unwrap().len(), 1);
    }
}

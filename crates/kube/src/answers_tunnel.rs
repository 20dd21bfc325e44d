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

/// How long the API server may take to open a tunnel.
const PATIENCE: Duration = Duration::from_secs(10);
/// Host in the URL of every request. The tunnel leads to the pod whatever the name is.
const HOST: &str = "answers";

/// Returns a client whose connections are tunnels to the pod, with TLS inside. The certificate is not verified, as
/// the API server does not verify that of a Service: a scheduler makes it itself. The credentials of the
/// kubeconfig go to the API server alone.
///
/// # Errors
/// The kubeconfig cannot be used.
pub(crate) fn tunnel_client(config: Config, pod: &AnswersPod) -> Result<Client, kube::Error> {
    let address = format!("https://{HOST}:{}", pod.port);
    let mut inside = Config::new(
        address
            .parse()
            .map_err(|error: http::uri::InvalidUri| kube::Error::Service(Box::new(error)))?,
    );
    inside.accept_invalid_certs = true;
    // Nothing is verified, so the certificates of the system need not be there.
    inside.root_cert = Some(Vec::new());
    let namespace = config.default_namespace.clone();
    let pods = Api::namespaced(Client::try_from(config)?, &pod.namespace);
    let connector = TunnelConnector { pods, pod: pod.clone() };
    let connector = inside.rustls_https_connector_with_connector(connector)?;
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
    #[error("no tunnel to port {port} after {PATIENCE:?}")]
    TimedOut { port: u16 },
    #[error("the tunnel has no port {port}")]
    NoPort { port: u16 },
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
    let opened = timeout(PATIENCE, pods.portforward(&pod.name, &[port])).await;
    let opened = opened.map_err(|_| TunnelError::TimedOut { port })?;
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

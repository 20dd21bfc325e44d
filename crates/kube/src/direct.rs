//! The writes that every pod costs (bind, PodGroup, events): as kube's client sends them, but without
//! the queue and the task that kube puts in front of its connections, and without the layers that
//! only an answer with a type needs. Specification: rust-ecosystem.md 3 (K-01, K-04), 5.3.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::core::response::Status;
use tokio::sync::Mutex;
use tower::{BoxError, Service, ServiceExt};

/// Sends requests to the API server; clones share the connections.
#[derive(Clone)]
pub(crate) struct DirectClient(Arc<dyn RequestTransport>);

type PendingResponse<'a> = BoxFuture<'a, Result<(StatusCode, Bytes), BoxError>>;

trait RequestTransport: Send + Sync {
    /// The whole answer.
    fn send(&self, request: Request<Body>) -> PendingResponse<'_>;
}

impl DirectClient {
    /// The service is asked for one request after another; they are answered side by side.
    pub(crate) fn of<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Arc::new(SharedService(Mutex::new(service))))
    }

    /// The text of the answer.
    ///
    /// # Errors
    /// As kube's own: the server's refusal as a `Status`, made up of the text if it sends none.
    pub(crate) async fn request(&self, request: Request<Vec<u8>>) -> kube::Result<String> {
        let (code, text) = self.0.send(request.map(Body::from)).await.map_err(failed)?;
        let text = String::from_utf8(text.into()).map_err(kube::Error::FromUtf8)?;
        match code.is_client_error() || code.is_server_error() {
            true => Err(kube::Error::Api(refusal(code, &text).boxed())),
            false => Ok(text),
        }
    }
}

fn failed(error: BoxError) -> kube::Error {
    let error = match error.downcast::<kube::Error>() {
        Ok(error) => return *error,
        Err(error) => error,
    };
    match error.downcast::<hyper::Error>() {
        Ok(error) => kube::Error::HyperError(*error),
        Err(error) => kube::Error::Service(error),
    }
}

/// A proxy in between answers with words or a page of its own.
pub(crate) fn refusal(code: StatusCode, text: &str) -> Status {
    let words = || Status::failure(text.trim(), "not a Status").with_code(code.as_u16());
    serde_json::from_str(text).unwrap_or_else(|_| words())
}

/// A service that is not shared while it gets ready, which may take its time (a rate limit).
struct SharedService<S>(Mutex<S>);

impl<S, B> RequestTransport for SharedService<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn send(&self, request: Request<Body>) -> PendingResponse<'_> {
        Box::pin(async move {
            let answer = self.0.lock().await.ready().await?.call(request);
            let (head, body) = answer.await?.into_parts();
            Ok((head.status, body.collect().await.map_err(Into::into)?.to_bytes()))
        })
    }
}

impl RequestTransport for Client {
    fn send(&self, request: Request<Body>) -> PendingResponse<'_> {
        Box::pin(async move {
            let (head, body) = Client::send(self, request).await?.into_parts();
            Ok((head.status, body.collect().await?.to_bytes()))
        })
    }
}

impl From<Client> for DirectClient {
    fn from(client: Client) -> Self {
        Self(Arc::new(client))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    async fn answered(code: u16, text: &'static str) -> kube::Result<String> {
        let answer = move |_| async move {
            let body = http_body_util::Full::new(Bytes::from_static(text.as_bytes()));
            Ok::<_, Infallible>(Response::builder().status(code).body(body).expect("an answer"))
        };
        let service = tower::service_fn(answer).map_err(|never: Infallible| match never {});
        DirectClient::of(service).request(Request::post("/x").body(Vec::new()).unwrap()).await
    }

    #[tokio::test]
    async fn refusals_are_told_with_code_and_words() {
        assert_eq!(answered(201, "{}").await.unwrap(), "{}");
        let status = r#"{"kind":"Status","status":"Failure","code":409,"reason":"Conflict",
            "message":"changed"}"#;
        let cases = [(409, status, "changed", "Conflict"), (502, " <p> ", "<p>", "not a Status")];
        for (code, text, message, reason) in cases {
            let Err(kube::Error::Api(status)) = answered(code, text).await else {
                panic!("{code}")
            };
            assert_eq!((status.code, &*status.message, &*status.reason), (code, message, reason));
        }
    }

    #[tokio::test]
    async fn what_goes_wrong_underneath_keeps_its_kind() {
        let service = |error: fn() -> BoxError| {
            let fails = tower::service_fn(move |_| async move {
                Err::<Response<http_body_util::Full<Bytes>>, _>(error())
            });
            DirectClient::of(fails)
        };
        let request = || Request::post("/x").body(Vec::new()).unwrap();
        let known = service(|| kube::Error::LinesCodecMaxLineLengthExceeded.into());
        let error = known.request(request()).await.unwrap_err();
        assert!(matches!(error, kube::Error::LinesCodecMaxLineLengthExceeded), "{error}");
        let other = service(|| "down".into());
        let error = other.request(request()).await.unwrap_err();
        assert!(matches!(&error, kube::Error::Service(inner) if inner.to_string() == "down"));
    }
}

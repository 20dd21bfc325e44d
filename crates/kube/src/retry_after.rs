//! How long to wait after a refusal: an API server that has no time says it in the header
//! `Retry-After` alone, with plain text as the body; kube and those who call it read the `Status` of the
//! body. Here the one is put into the other. Specification: rust-ecosystem.md 3 (K-01: whoever calls
//! decides whether to repeat).

use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Either, Full};
use tower::{BoxError, Layer, Service};

use crate::direct::refusal;

/// Puts [`RetryAfterService`] around a client.
#[derive(Clone, Copy)]
pub(crate) struct RetryAfterLayer;

impl<S> Layer<S> for RetryAfterLayer {
    type Service = RetryAfterService<S>;

    fn layer(&self, inner: S) -> RetryAfterService<S> {
        RetryAfterService(inner)
    }
}

/// A service whose refusals say in their body how long to wait.
#[derive(Clone)]
pub(crate) struct RetryAfterService<S>(S);

impl<S, R, B> Service<Request<R>> for RetryAfterService<S>
where
    S: Service<Request<R>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Either<B, Full<Bytes>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            let code = answer.status();
            let refused = code.is_client_error() || code.is_server_error();
            let Some(seconds) = seconds(answer.headers()).filter(|_| refused) else {
                return Ok(answer.map(Either::Left));
            };
            let (mut head, body) = answer.into_parts();
            let text = body.collect().await.map_err(Into::into)?.to_bytes();
            let status = refusal(code, &String::from_utf8_lossy(&text));
            let mut status = serde_json::to_value(status)?;
            let named = &mut status["details"]["retryAfterSeconds"];
            *named = named.as_u64().unwrap_or(0).max(seconds.into()).into();
            head.headers.remove(CONTENT_LENGTH);
            let text = serde_json::to_vec(&status)?;
            Ok(Response::from_parts(head, Either::Right(Full::from(text))))
        })
    }
}

/// What the header says, if it counts seconds; an API server does, and a date would need a clock.
fn seconds(headers: &HeaderMap) -> Option<u32> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

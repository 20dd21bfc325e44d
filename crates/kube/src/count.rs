//! Counts every request that changes something, by verb, resource and status of the answer; a
//! request that was given up counts as 0. Issue "Metrics": `volcano_api_writes_total`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use tower::{Layer, Service};

use crate::observe::Observer;

/// Puts [`Counted`] around a client.
#[derive(Clone)]
pub(crate) struct CountLayer(pub(crate) Arc<dyn Observer>);

impl<S> Layer<S> for CountLayer {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, observer: self.0.clone() }
    }
}

/// A service whose writes are counted.
#[derive(Clone)]
pub(crate) struct Counted<S> {
    inner: S,
    observer: Arc<dyn Observer>,
}

impl<S, B, R> Service<Request<B>> for Counted<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut write = Write::of(&request, &self.observer);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if let (Some(write), Ok(answer)) = (&mut write, &answer) {
                write.code = answer.status().as_u16();
            }
            answer
        })
    }
}

/// A write in flight; it is told when it ends, in whatever way.
struct Write {
    observer: Arc<dyn Observer>,
    verb: &'static str,
    resource: String,
    code: u16,
}

impl Write {
    fn of<B>(request: &Request<B>, observer: &Arc<dyn Observer>) -> Option<Self> {
        let verb = match *request.method() {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => return None,
        };
        let resource = resource(request.uri().path());
        Some(Self { observer: observer.clone(), verb, resource, code: 0 })
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        self.observer.api_write(self.verb, &self.resource, self.code);
    }
}

/// `pods/binding` of `/api/v1/namespaces/a/pods/b/binding`.
fn resource(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').skip(1).collect();
    let n_prefix = if parts.first() == Some(&"api") { 2 } else { 3 };
    parts.drain(..n_prefix.min(parts.len()));
    if parts.first() == Some(&"namespaces") && 2 < parts.len() {
        parts.drain(..2);
    }
    match parts[..] {
        [resource, _, subresource, ..] => format!("{resource}/{subresource}"),
        [resource, ..] => resource.to_owned(),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_of_paths() {
        let cases = [
            ("/api/v1/namespaces/a/pods/b/binding", "pods/binding"),
            ("/api/v1/namespaces/a/pods/b", "pods"),
            ("/api/v1/namespaces/a/events", "events"),
            ("/api/v1/namespaces/a", "namespaces"),
            ("/apis/scheduling.volcano.sh/v1beta1/queues/root/status", "queues/status"),
            ("/apis/coordination.k8s.io/v1/namespaces/n/leases/l", "leases"),
            ("/version", ""),
        ];
        for (path, wanted) in cases {
            assert_eq!(resource(path), wanted, "{path}");
        }
    }
}

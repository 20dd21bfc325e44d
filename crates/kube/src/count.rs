//! Counts the requests of a client and how long their answers take; those that change something
//! also by verb and resource. A request that was given up has the code 0. Specification: core.md 9
//! (`rest_client_*`), issue "Metrics": `volcano_api_writes_total`.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

use http::{Method, Request, Response};
use tower::{Layer, Service};

use crate::observe::Observer;
use crate::skew::ClockSkew;

/// Puts [`CountService`] around a client.
#[derive(Clone)]
pub(crate) struct CountLayer {
    pub(crate) observer: Arc<dyn Observer>,
    /// Of the API server: a request does not name it yet.
    pub(crate) host: Arc<str>,
    pub(crate) skew: Arc<ClockSkew>,
}

impl<S> Layer<S> for CountLayer {
    type Service = CountService<S>;

    fn layer(&self, inner: S) -> CountService<S> {
        CountService { inner, layer: self.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Clone)]
pub(crate) struct CountService<S> {
    inner: S,
    layer: CountLayer,
}

impl<S, B, R> Service<Request<B>> for CountService<S>
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
        let mut counted = InFlightRequest::of(&request, &self.layer);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if let Ok(answer) = &answer {
                counted.answered(answer.status().as_u16());
                let CountLayer { observer, skew, .. } = &counted.layer;
                skew.look(answer.headers(), SystemTime::now(), &**observer);
            }
            answer
        })
    }
}

/// A request; it is told when it ends, in whatever way.
struct InFlightRequest {
    layer: CountLayer,
    method: Method,
    /// Verb and resource of a write.
    write: Option<(&'static str, Cow<'static, str>)>,
    start: Instant,
    code: u16,
}

impl InFlightRequest {
    fn of<B>(request: &Request<B>, layer: &CountLayer) -> Self {
        let verb = match *request.method() {
            Method::POST => Some("create"),
            Method::PUT => Some("update"),
            Method::PATCH => Some("patch"),
            Method::DELETE => Some("delete"),
            _ => None,
        };
        Self {
            layer: layer.clone(),
            method: request.method().clone(),
            write: verb.map(|verb| (verb, resource(request.uri().path()))),
            start: Instant::now(),
            code: 0,
        }
    }
}

impl InFlightRequest {
    /// A method, so that the whole of it moves into the future that waits for the answer.
    fn answered(&mut self, code: u16) {
        self.code = code;
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        let CountLayer { observer, host, .. } = &self.layer;
        observer.request(self.method.as_str(), host, self.code, self.start.elapsed());
        if let Some((verb, resource)) = &self.write {
            observer.api_write(verb, resource, self.code);
        }
    }
}

/// What is written for every pod: no text of its own.
const FREQUENT: [(&str, Option<&str>, &str); 4] = [
    ("pods", Some("binding"), "pods/binding"),
    ("pods", Some("status"), "pods/status"),
    ("podgroups", None, "podgroups"),
    ("events", None, "events"),
];

/// `pods/binding` of `/api/v1/namespaces/a/pods/b/binding`.
fn resource(path: &str) -> Cow<'static, str> {
    let all = path.split('/').skip(1);
    let n_prefix = if all.clone().next() == Some("api") { 2 } else { 3 };
    let mut parts = [None; 5];
    parts.iter_mut().zip(all.skip(n_prefix)).for_each(|(place, part)| *place = Some(part));
    let (resource, subresource) = match parts {
        [Some("namespaces"), _, Some(resource), _, subresource] => (resource, subresource),
        [resource, _, subresource, ..] => (resource.unwrap_or_default(), subresource),
    };
    let is_it = |known: &&(&str, _, _)| (known.0, known.1) == (resource, subresource);
    match (FREQUENT.iter().find(is_it), subresource) {
        (Some((_, _, both)), _) => Cow::Borrowed(both),
        (None, Some(subresource)) => Cow::Owned(format!("{resource}/{subresource}")),
        (None, None) => Cow::Owned(resource.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;

    #[test]
    fn resources_of_paths() {
        let cases = [
            ("/api/v1/namespaces/a/pods/b/binding", "pods/binding"),
            ("/api/v1/namespaces/a/pods/b", "pods"),
            ("/api/v1/namespaces/a/events", "events"),
            ("/api/v1/namespaces/a", "namespaces"),
            ("/api/v1/namespaces/a/pods/b/status", "pods/status"),
            ("/apis/g/v1/namespaces/a/podgroups/b", "podgroups"),
            ("/apis/scheduling.volcano.sh/v1beta1/queues/root/status", "queues/status"),
            ("/apis/coordination.k8s.io/v1/namespaces/n/leases/l", "leases"),
            ("/version", ""),
        ];
        for (path, wanted) in cases {
            assert_eq!(resource(path), wanted, "{path}");
        }
    }

    #[derive(Default)]
    struct ReportedRequests(Mutex<Vec<String>>);

    impl Observer for ReportedRequests {
        fn api_write(&self, verb: &str, resource: &str, code: u16) {
            self.0.lock().unwrap().push(format!("{verb} {resource} {code}"));
        }

        fn request(&self, method: &str, host: &str, code: u16, _: Duration) {
            self.0.lock().unwrap().push(format!("{method} {host} {code}"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_counted_and_so_is_none() {
        let reported = Arc::new(ReportedRequests::default());
        let skew = Arc::default();
        let layer = CountLayer { observer: reported.clone(), host: "h".into(), skew };
        let inner = |request: Request<()>| async move {
            if request.uri().path() == "/api/v1/nodes" {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(Response::builder().status(409).body(()).unwrap())
        };
        let mut client = layer.layer(tower::service_fn(inner));
        let post = Request::post("/api/v1/namespaces/a/pods/b/binding").body(()).unwrap();
        client.call(post).await.unwrap();
        let get = client.call(Request::get("/api/v1/nodes").body(()).unwrap());
        assert!(tokio::time::timeout(Duration::from_secs(1), get).await.is_err());
        let wanted = ["POST h 409", "create pods/binding 409", "GET h 0"];
        assert_eq!(*reported.0.lock().unwrap(), wanted);
    }
}

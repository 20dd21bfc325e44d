//! A `kube::Client` whose API server is a function: no socket, works under paused time
//! (rust-ecosystem.md 5.9). Every request is written down.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use vc_kube::{Observer, Unobserved};

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// `GET /api/v1/pods`.
    pub(crate) line: String,
    pub(crate) query: String,
    pub(crate) body: Value,
    /// Requests of the same line before this one.
    pub(crate) before: usize,
}

impl Seen {
    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }

    pub(crate) fn is_streaming_list(&self) -> bool {
        self.query.contains("sendInitialEvents=true")
    }
}

/// The requests so far.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|seen| seen.line.clone()).collect()
    }

    /// Requests whose line begins so.
    pub(crate) fn of(&self, line: &str) -> Vec<Seen> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|seen| seen.line.starts_with(line)).cloned().collect()
    }

    fn add(&self, parts: &http::request::Parts, body: &[u8]) -> Seen {
        let mut all = self.0.lock().unwrap();
        let line = format!("{} {}", parts.method, parts.uri.path());
        let before = all.iter().filter(|seen| seen.line == line).count();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let body = serde_json::from_slice(body).unwrap_or(Value::Null);
        let seen = Seen { line, query, body, before };
        all.push(seen.clone());
        seen
    }
}

/// `None` from the handler: no answer ever comes. It is not asked for the newest version.
pub(crate) fn client(
    handle: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
) -> (Client, Log) {
    crate::log_lines::listen_everywhere();
    let (handle, log) = (Arc::new(handle), Log::default());
    let written = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (handle, log) = (handle.clone(), log.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            if let Some(query) = parts.uri.query().filter(|query| is_for_newest(query)) {
                return Ok(newest(query));
            }
            match handle(&log.add(&parts, &body)) {
                Some(answer) => Ok::<_, Infallible>(answer),
                None => std::future::pending().await,
            }
        }
    });
    (Client::new(service, "default"), written)
}

/// The newest version of the server, which is asked for where a watch has ended before its time.
pub(crate) const NEWEST: u64 = 100_000;

fn is_for_newest(query: &str) -> bool {
    query == "limit=1" || query.starts_with("limit=1&")
}

/// Of the object that was seen last, which is asked for by name, it has nothing but [`OLDER`].
fn newest(query: &str) -> Answer {
    let metadata = json!({"resourceVersion": NEWEST.to_string()});
    let older = json!({"metadata": {"resourceVersion": "1"}});
    let items = if query.contains(OLDER) { vec![older] } else { Vec::new() };
    json_answer(200, json!({"metadata": metadata, "items": items})).unwrap()
}

/// Name of an object that has gone back to version 1.
pub(crate) const OLDER: &str = "gone-back";

/// Nobody counts.
pub(crate) fn unobserved() -> Arc<dyn Observer> {
    Arc::new(Unobserved)
}

pub(crate) fn json_answer(code: u16, body: Value) -> Option<Answer> {
    let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
    Some(Response::builder().status(code).body(body).unwrap())
}

/// A failure as the API server words it.
pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> Option<Answer> {
    json_answer(
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
            "reason": reason, "message": message}),
    )
}

pub(crate) fn not_found() -> Option<Answer> {
    refusal(404, "NotFound", "not found")
}

/// A watch that delivers `lines` and then stays open.
pub(crate) fn watch(lines: Vec<Value>) -> Option<Answer> {
    watch_texts(lines.iter().map(Value::to_string).collect())
}

/// The same of lines as they come over the wire.
pub(crate) fn watch_texts(lines: Vec<String>) -> Option<Answer> {
    let frame = |line: String| Ok(Frame::data(Bytes::from(format!("{line}\n"))));
    let frames = stream::iter(lines.into_iter().map(frame));
    Some(Response::new(StreamBody::new(frames.chain(stream::pending())).boxed_unsync()))
}

/// A watch that delivers some lines, after a while others, and then stays open.
pub(crate) fn watch_then(lines: Vec<Value>, pause: Duration, others: Vec<Value>) -> Option<Answer> {
    let text = |lines: Vec<Value>| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let frame = |text: String| Ok(Frame::data(Bytes::from(text)));
    let (first, then) = (text(lines), text(others));
    let later = stream::once(async move {
        tokio::time::sleep(pause).await;
        frame(then)
    });
    let frames = stream::once(async move { frame(first) }).chain(later).chain(stream::pending());
    Some(Response::new(StreamBody::new(frames).boxed_unsync()))
}

/// The same, but it ends behind them.
pub(crate) fn ended(lines: Vec<Value>) -> Option<Answer> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Some(Response::new(Full::new(Bytes::from(text)).boxed_unsync()))
}

pub(crate) fn added(object: &Value) -> Value {
    json!({"type": "ADDED", "object": object})
}

/// The bookmark that ends a streaming list.
pub(crate) fn end_of_list(version: &str) -> Value {
    json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {
        "resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}}})
}

pub(crate) fn list(items: &[Value]) -> Option<Answer> {
    json_answer(
        200,
        json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "10"},
            "items": items}),
    )
}

pub(crate) fn pod(name: &str) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"),
            "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "c"}]},
        "status": {"phase": "Pending"}})
}

//! The service of the plugin `extender` over HTTP and HTTPS.
//! Specification: plugins-jobs-queues.md 15.2.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use vc_engine::{ExtenderAnswer, ExtenderClient, ExtenderError, ExtenderQuery, ExtenderRequest};
use vc_model::{Cluster, TaskId};
use vc_wire::{
    ExtenderAnswerFields, ExtenderFields, extender_job, extender_node, extender_queue,
    extender_session, extender_task, read_extender_answer,
};

use crate::stack::{HttpVersions, connector};

/// Largest answer that is read, in bytes.
const MOST_BYTES: usize = 10 << 20;
/// Requests that are under way together.
const MOST_AT_ONCE: usize = 16;
/// Time after which an unused connection is closed. Many servers close theirs after 5 s.
const IDLE: Duration = Duration::from_secs(4);
const AGENT: &str = concat!("vc-scheduler/", env!("CARGO_PKG_VERSION"));

type HttpClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client that blocks the thread of the engine until there is an answer, or the time is over. It
/// must not be called inside of a runtime. Connections are driven by one thread of its own, which
/// starts with the first request.
#[derive(Default)]
pub struct HttpExtender {
    runtime: OnceLock<Result<OwnRuntime, String>>,
    plain: OnceLock<Result<HttpClient, String>>,
    secured: OnceLock<Result<HttpClient, String>>,
    /// Certificates of trusted authorities, in DER. `None`: those of the system.
    roots: Option<Vec<Vec<u8>>>,
}

/// A runtime that can be dropped anywhere.
struct OwnRuntime(Option<Runtime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for HttpExtender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("HttpExtender")
    }
}

impl ExtenderClient for HttpExtender {
    fn exchange(&self, request: &ExtenderRequest<'_>) -> Result<ExtenderAnswer, ExtenderError> {
        let none = || Err(ExtenderError::BadAnswer("no result".to_owned()));
        self.exchange_all(std::slice::from_ref(request)).pop().unwrap_or_else(none)
    }

    /// After a request without any answer, those that have not been sent fail with the same error.
    fn exchange_all(
        &self,
        requests: &[ExtenderRequest<'_>],
    ) -> Vec<Result<ExtenderAnswer, ExtenderError>> {
        let runtime = match self.runtime() {
            Ok(runtime) => runtime,
            Err(error) => return vec![Err(error); requests.len()],
        };
        let unreachable: RefCell<Option<ExtenderError>> = RefCell::default();
        let exchanges = stream::iter(requests).map(|request| async {
            if let Some(error) = &*unreachable.borrow() {
                return Err(error.clone());
            }
            let result = self.send(request).await;
            if let Err(error @ ExtenderError::Unreachable(_)) = &result {
                unreachable.replace(Some(error.clone()));
            }
            result
        });
        runtime.block_on(exchanges.buffered(MOST_AT_ONCE).collect())
    }
}

impl HttpExtender {
    fn runtime(&self) -> Result<&Runtime, ExtenderError> {
        let start = || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let builder = builder.worker_threads(1).thread_name("extender").enable_all();
            let runtime = builder.build().map_err(|error| format!("no thread: {error}"))?;
            Ok(OwnRuntime(Some(runtime)))
        };
        let failed = |error: &String| ExtenderError::Unreachable(error.clone());
        let own = self.runtime.get_or_init(start).as_ref().map_err(failed)?;
        own.0.as_ref().ok_or_else(|| ExtenderError::Unreachable("shutting down".to_owned()))
    }

    /// Returns the client for addresses of a scheme. The trust store is read for HTTPS only.
    fn client(&self, uri: &Uri) -> Result<&HttpClient, ExtenderError> {
        let is_secured = uri.scheme_str() == Some("https");
        let place = if is_secured { &self.secured } else { &self.plain };
        let client = place.get_or_init(|| {
            let mut config = Config::new(uri.clone());
            config.root_cert = if is_secured { self.roots.clone() } else { Some(Vec::new()) };
            // The time of the request counts for all of the exchange.
            config.connect_timeout = None;
            let connector = connector(&config, HttpVersions::Http1);
            let connector = connector.map_err(|error| format!("certificates: {error}"))?;
            let mut builder = Builder::new(TokioExecutor::new());
            builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
            Ok(builder.build(connector))
        });
        client.as_ref().map_err(|error| ExtenderError::Unreachable(error.clone()))
    }

    async fn send(&self, request: &ExtenderRequest<'_>) -> Result<ExtenderAnswer, ExtenderError> {
        let exchange = self.exchange_whole(request);
        timeout(request.timeout, exchange).await.unwrap_or_else(|_| {
            let text = format!("no answer within {:?}", request.timeout);
            Err(ExtenderError::Unreachable(text))
        })
    }

    async fn exchange_whole(
        &self,
        request: &ExtenderRequest<'_>,
    ) -> Result<ExtenderAnswer, ExtenderError> {
        let bad = ExtenderError::BadAnswer;
        let uri: Uri = request.url.parse().map_err(|_| bad("the address is no URL".to_owned()))?;
        let body = body(request.view.cluster, request).to_string();
        let sent = Request::post(uri.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, AGENT)
            .body(Full::from(body));
        let sent = sent.map_err(|error| bad(format!("the address is no URL: {error}")))?;
        let response = self.client(&uri)?.request(sent).await.map_err(|error| failure(&error))?;
        if response.status() != StatusCode::OK {
            return Err(bad(format!("status {}, expected 200", response.status())));
        }
        let Some(fields) = fields(&request.query) else { return Ok(ExtenderAnswer::default()) };
        let whole = Limited::new(response.into_body(), MOST_BYTES).collect().await;
        let whole = whole.map_err(|error| match error.is::<LengthLimitError>() {
            true => bad("the answer is larger than 10 MiB".to_owned()),
            false => bad(format!("the answer broke off: {}", innermost(&*error))),
        })?;
        let read = read_extender_answer(&whole.to_bytes(), fields);
        let read = read.map_err(|error| bad(error.to_string()))?;
        let ExtenderAnswerFields { message, code, is_true, scores, victims } = read;
        Ok(ExtenderAnswer { message, code, is_true, scores, victims })
    }
}

/// Returns the error of a request that got no response. Only a connection that cannot be made
/// counts as a service that does not answer at all.
fn failure(error: &hyper_util::client::legacy::Error) -> ExtenderError {
    let why = innermost(error);
    match error.is_connect() {
        true => ExtenderError::Unreachable(format!("no connection: {why}")),
        false => ExtenderError::BadAnswer(format!("the connection broke: {why}")),
    }
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

/// Returns the fields of the answer. Returns `None` if the answer is ignored.
fn fields(query: &ExtenderQuery<'_>) -> Option<ExtenderFields> {
    Some(match query {
        ExtenderQuery::SessionOpen | ExtenderQuery::SessionClose => return None,
        ExtenderQuery::Predicate { .. } => ExtenderFields::Predicate,
        ExtenderQuery::Prioritize { .. } => ExtenderFields::Prioritize,
        ExtenderQuery::Preemptable { .. } | ExtenderQuery::Reclaimable { .. } => {
            ExtenderFields::Victims
        }
        ExtenderQuery::JobEnqueueable(_) => ExtenderFields::Vote,
        ExtenderQuery::JobEnqueued(_) => ExtenderFields::Nothing,
        ExtenderQuery::QueueOverused(_) => ExtenderFields::Overused,
        ExtenderQuery::JobReady(_) => ExtenderFields::Ready,
        ExtenderQuery::Allocate { .. } | ExtenderQuery::Deallocate(_) => ExtenderFields::Event,
    })
}

/// Returns the body of a request.
fn body(cluster: &Cluster, request: &ExtenderRequest<'_>) -> Value {
    let task = |task: TaskId| extender_task(cluster, task, None);
    let evict = |evictor: TaskId, evictees: &[TaskId]| {
        let evictees: Vec<Value> = evictees.iter().map(|&evictee| task(evictee)).collect();
        json!({"evictor": task(evictor), "evictees": evictees})
    };
    match request.query {
        ExtenderQuery::SessionOpen => {
            let jobs: Vec<_> = request.view.all_jobs().collect();
            let info = request.view.info;
            extender_session(cluster, &info.nodes, &jobs, &info.queues)
        }
        ExtenderQuery::SessionClose => json!({}),
        ExtenderQuery::Predicate { task: of, node } => {
            json!({"task": task(of), "node": extender_node(cluster, node)})
        }
        ExtenderQuery::Prioritize { task: of, nodes } => {
            let nodes: Vec<Value> =
                nodes.iter().map(|&node| extender_node(cluster, node)).collect();
            json!({"task": task(of), "nodes": nodes})
        }
        ExtenderQuery::Preemptable { evictor, evictees }
        | ExtenderQuery::Reclaimable { evictor, evictees } => evict(evictor, evictees),
        ExtenderQuery::JobEnqueueable(job)
        | ExtenderQuery::JobEnqueued(job)
        | ExtenderQuery::JobReady(job) => json!({"job": extender_job(cluster, job)}),
        ExtenderQuery::QueueOverused(queue) => json!({"queue": extender_queue(cluster, queue)}),
        ExtenderQuery::Allocate { task: of, placed } => {
            json!({"task": extender_task(cluster, of, placed)})
        }
        ExtenderQuery::Deallocate(of) => json!({"task": task(of)}),
    }
}

#[cfg(test)]
mod tests;

//! Every call but a watch ends: the client itself has no read timeout (K-02), and retries nothing
//! (K-01). Specification: rust-ecosystem.md 3, 5.3.

use std::error::Error;
use std::fmt::Debug;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use vc_text::escape;

use crate::connect_error::advice_on_refusal;
use crate::direct::DirectClient;

/// Longest wait for the answer of one call.
const LIMIT: Duration = Duration::from_secs(30);

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The outcome of a write is unknown: believe the watch, not the call.
    #[error("no answer within {} s", seconds(.0))]
    TimedOut(Duration),
    /// The server's own words, without those of the client around them.
    #[error("{}", words(.0))]
    Refused(kube::Error),
    /// Somebody else decided meanwhile what we were about to write.
    #[error("{0}")]
    Overtaken(&'static str),
    /// The object that was to be changed does not exist any more.
    #[error("the object is gone")]
    Gone,
}

/// Whole seconds, and a fraction where it matters.
fn seconds(time: &Duration) -> String {
    let seconds = (time.as_secs_f64() * 10.0).round() / 10.0;
    seconds.to_string()
}

impl CallError {
    /// HTTP status of the refusal; 0 when there was none.
    pub fn code(&self) -> u16 {
        match self {
            Self::Refused(kube::Error::Api(status)) => status.code,
            _ => 0,
        }
    }

    /// 409 in both of its meanings: changed since, or exists (K-15).
    pub(crate) fn is_conflict(&self) -> bool {
        match self {
            Self::Refused(kube::Error::Api(status)) => {
                status.is_conflict() || status.is_already_exists() || status.code == 409
            }
            _ => false,
        }
    }

    /// 409 for a new object, because there is one of this name. Another 409 (a webhook, a proxy, a quota that
    /// was changed at the same time) does not say so.
    pub(crate) fn is_already_exists(&self) -> bool {
        match self {
            Self::Refused(kube::Error::Api(status)) => {
                status.code == 409 && status.reason == "AlreadyExists"
            }
            _ => false,
        }
    }

    /// The same write would fail again, so that it is repeated after a pause (core.md 7.2). False:
    /// somebody else wrote at the same time, or the server has no time now.
    pub(crate) fn pauses(&self) -> bool {
        let is_overtaken = matches!(self, Self::Overtaken(_));
        !is_overtaken && !self.is_conflict() && self.code() != 429
    }

    /// The object is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_not_found() || matches!(self, Self::Gone)
    }

    /// `retryAfterSeconds` of a refusal, or what its header said
    /// ([`RetryAfterLayer`](crate::retry_after::RetryAfterLayer)).
    fn pause(&self) -> Duration {
        let Self::Refused(kube::Error::Api(status)) = self else { return PAUSE };
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        Duration::from_secs(seconds.into()).max(PAUSE)
    }

    pub(crate) fn is_not_found(&self) -> bool {
        self.code() == 404
    }
}

/// The server may repeat texts of users, and webhooks have texts of their own.
fn words(error: &kube::Error) -> String {
    let mut text = match error {
        kube::Error::Api(status) if !status.message.is_empty() => {
            let message = escape(status.message.trim_end());
            return match advice_on_refusal(&message) {
                Some(advice) => format!("{message} {advice}"),
                None => message.into_owned(),
            };
        }
        kube::Error::Service(inner) => inner.to_string(),
        other => other.to_string(),
    };
    let mut cause = error.source();
    while let Some(inner) = cause {
        let word = inner.to_string();
        if !text.contains(&word) {
            text = format!("{text}: {word}");
        }
        cause = inner.source();
    }
    escape(&text).into_owned()
}

/// The answer, or [`CallError::TimedOut`] after 30 s.
pub(crate) async fn call<T>(
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(LIMIT, request).await {
        Ok(answer) => answer.map_err(CallError::Refused),
        Err(_) => Err(CallError::TimedOut(LIMIT)),
    }
}

/// How long a question that must be answered before anything else is repeated.
const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Asks again after pauses that double, until the next pause would end later than a minute after the
/// first question.
///
/// # Errors
/// The last failure.
pub(crate) async fn insist<T, F>(what: &str, mut ask: impl FnMut() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let give_up = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if give_up <= Instant::now() + pause {
            return Err(error);
        }
        tracing::warn!(%error, "{what} not read");
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

/// Attempts at a write for which the server has no time.
const ATTEMPTS: u32 = 10;
/// Pause after a 429 that does not say how long.
const PAUSE: Duration = Duration::from_secs(1);

/// Repeats what was refused with 429 after the time that the server names. Meanwhile the write takes
/// one of the places of writes in flight, so that all together ask less.
pub(crate) async fn patiently<T, F>(mut request: impl FnMut() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut attempt = 1;
    loop {
        match request().await {
            Err(error) if error.code() == 429 && attempt < ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(error.pause()).await;
            }
            answer => return answer,
        }
    }
}

/// The object, or `None` for 404 whatever its body says: kube's own `get_opt` goes by the reason
/// alone.
pub(crate) async fn get<K>(api: &Api<K>, name: &str) -> Result<Option<K>, CallError>
where
    K: Clone + DeserializeOwned + Debug,
{
    match call(api.get(name)).await {
        Err(error) if error.is_not_found() => Ok(None),
        answer => answer.map(Some),
    }
}

/// The object at a path, or `None` for 404; only what its type names is decoded.
pub(crate) async fn read<T: DeserializeOwned>(
    client: &Client,
    path: &str,
) -> Result<Option<T>, CallError> {
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
    match call(async { client.request(request?).await }).await {
        Err(error) if error.is_not_found() => Ok(None),
        answer => answer.map(Some),
    }
}

/// POSTs what nothing needs the answer of: it is not decoded.
pub(crate) async fn post(
    way: &DirectClient,
    path: &str,
    object: &impl Serialize,
) -> Result<(), CallError> {
    send(way, http::Request::post(path), object).await.map(drop)
}

/// PUTs an object and answers the text of what the server made of it.
pub(crate) async fn put(
    way: &DirectClient,
    path: &str,
    object: &impl Serialize,
) -> Result<String, CallError> {
    send(way, http::Request::put(path), object).await
}

async fn send(
    way: &DirectClient,
    request: http::request::Builder,
    object: &impl Serialize,
) -> Result<String, CallError> {
    let text = serde_json::to_vec(object).map_err(kube::Error::SerdeError);
    let text = text.map_err(CallError::Refused)?;
    let request = request.header(CONTENT_TYPE, "application/json").body(text);
    let request = request.map_err(|error| CallError::Refused(kube::Error::HttpError(error)))?;
    call(way.request(request)).await
}

/// Pods untyped: what is sent back with PUT must be whole (rust-ecosystem.md 6).
pub(crate) fn pods(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource("", "v1", "Pod", "pods"))
}

pub(crate) fn queues(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &queue_resource())
}

pub(crate) fn node_shards(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &node_shard_resource())
}

pub(crate) fn node_shard_resource() -> ApiResource {
    resource("shard.volcano.sh", "v1alpha1", "NodeShard", "nodeshards")
}

pub(crate) fn queue_resource() -> ApiResource {
    resource("scheduling.volcano.sh", "v1beta1", "Queue", "queues")
}

pub(crate) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() { version.into() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.into(),
        version: version.into(),
        api_version,
        kind: kind.into(),
        plural: plural.into(),
    }
}

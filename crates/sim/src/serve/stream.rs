//! List and watch. Both bodies are made while they are sent: a list of 100,000 pods is never one
//! text in memory, and a watch is an endless list of event lines.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{StatusCode, header},
    response::Response,
};
use futures::stream;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{
    kinds::ServedKind,
    log::{Change, Event, Subscription},
    object::{Key, Object},
    refused::Refused,
    request::AnswerFormat,
    routes::{Call, json_response},
    selector::ObjectFilter,
    store::ListingPage,
    table::table,
};

/// Objects per piece of a body: some ten kilobytes, which stay in a core's cache on their way.
const CHUNK: usize = 16;
/// At least as many bytes as a line of a watch has beside its object.
const LINE_AROUND: usize = 40;
/// How often a quiet watch tells its version to a client that allows bookmarks.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// How far the watch cache of the server is behind its store: an extension of a request. A request
/// that any version satisfies (`resourceVersion=0`) is answered from the cache, every other one
/// from the store. Without the extension the cache is as new as the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheLag {
    /// Number of versions that the cache lacks. It is no older than the events that are kept.
    pub(crate) versions: u64,
    /// Time until the cache shows anything newer.
    pub(crate) time: Duration,
}

impl CacheLag {
    /// Returns how far the answer to a call is behind. `None`: it is not.
    fn of(call: &Call) -> Option<CacheLag> {
        call.cache_lag.filter(|_| call.params.get("resourceVersion") == "0")
    }
}

/// GET of a collection.
pub(super) fn list(call: &Call) -> Result<Response, Refused> {
    let (kind, params) = (call.target.kind, &call.params);
    let filter = call.filter()?;
    let token = ContinueToken::parse(params.get("continue"))?;
    if let Some(token) = &token {
        call.app.store.check_revision(kind, token.revision)?;
        let oldest = call.app.store.revision();
        if oldest < token.revision {
            return Err(Refused::Expired { asked: token.revision, oldest });
        }
    }
    let limit = params.number("limit")?.filter(|limit| *limit != 0);
    let (begun, after) = token.map(|token| (token.revision, token.after)).unzip();
    let cached = || Some(call.app.store.cached_revision(kind, CacheLag::of(call)?.versions));
    let page = ListingPage {
        at: begun.or_else(cached),
        after,
        limit: limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
    };
    let listing = call.app.store.page(kind, &filter, &page)?;
    // Later pages keep the first one's version: a watch from it sees all that happened meanwhile.
    let revision = listing.revision;
    if params.get("resourceVersionMatch") == "Exact"
        && let Some(asked) = params.number("resourceVersion")?.filter(|v| *v != revision)
    {
        return Err(Refused::Expired { asked, oldest: revision });
    }
    let mut metadata = json!({ "resourceVersion": revision.to_string() });
    if let Some(last) = listing.objects.last().filter(|_| listing.more) {
        let after = Key::of(&last.value);
        metadata["continue"] = ContinueToken { revision, after }.to_string().into();
    }
    Ok(match call.format {
        AnswerFormat::Json => list_response(kind, listing.objects, metadata),
        AnswerFormat::Table(row) => {
            let mut table = table(kind, &listing.objects, row, "");
            table["metadata"] = metadata;
            json_response(StatusCode::OK, table.to_string())
        }
    })
}

/// A `...List` of objects.
pub(super) fn list_response(
    kind: &ServedKind,
    objects: Vec<Arc<Object>>,
    metadata: Value,
) -> Response {
    let head = format!(
        r#"{{"kind":"{}List","apiVersion":"{}","metadata":{metadata},"items":["#,
        kind.kind,
        kind.api_version(),
    );
    let mut rest = objects.into_iter();
    let mut separator = "";
    let pieces = std::iter::from_fn(move || {
        let texts: Vec<Bytes> = rest.by_ref().take(CHUNK).map(|object| object.json()).collect();
        let mut piece = Vec::with_capacity(texts.iter().map(|text| text.len() + 1).sum());
        for text in &texts {
            piece.extend_from_slice(separator.as_bytes());
            piece.extend_from_slice(text);
            separator = ",";
        }
        (!piece.is_empty()).then(|| Bytes::from(piece))
    });
    let whole = std::iter::once(Bytes::from(head)).chain(pieces).chain([Bytes::from_static(b"]}")]);
    body_response(Body::from_stream(stream::iter(whole.map(Ok::<_, Infallible>))))
}

fn body_response(body: Body) -> Response {
    let mut response = Response::new(body);
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Where a list goes on: opaque to clients, `<version>:<namespace>/<name>`.
struct ContinueToken {
    revision: u64,
    after: Key,
}

impl ContinueToken {
    fn parse(text: &str) -> Result<Option<ContinueToken>, Refused> {
        if text.is_empty() {
            return Ok(None);
        }
        let parse = || {
            let (revision, key) = text.split_once(':')?;
            let (namespace, name) = key.split_once('/')?;
            let after = Key::new(namespace, name);
            Some(ContinueToken { revision: revision.parse().ok()?, after })
        };
        let unreadable = || Refused::BadRequest("continue key is not valid".to_owned());
        parse().map(Some).ok_or_else(unreadable)
    }
}

impl std::fmt::Display for ContinueToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}/{}", self.revision, self.after.namespace, self.after.name)
    }
}

/// GET of a collection with `watch=true`.
pub(super) fn watch(call: &Call) -> Result<Response, Refused> {
    let (kind, params, store) = (call.target.kind, &call.params, &call.app.store);
    let filter = call.filter()?;
    let streaming_list = params.is_set("sendInitialEvents");
    if streaming_list && params.get("resourceVersionMatch") != "NotOlderThan" {
        let field = "resourceVersionMatch".to_owned();
        let why = "must be NotOlderThan with sendInitialEvents".to_owned();
        return Err(Refused::Invalid { kind, name: String::new(), field, why });
    }
    let asked = params.number("resourceVersion")?.unwrap_or(0);
    let deadline = params.number("timeoutSeconds")?.filter(|seconds| *seconds != 0);
    let mut initial = VecDeque::new();
    let mut expired = None;
    let lag = CacheLag::of(call);
    let seen = if asked == 0 || streaming_list {
        let listing = match lag {
            Some(lag) => store.cached(kind, &filter, lag.versions)?,
            None => store.all(kind, &filter),
        };
        initial = listing.objects.into();
        listing.revision
    } else {
        expired = store.check_revision(kind, asked).err();
        asked
    };
    let watch = WatchStream {
        kind,
        filter,
        format: call.format,
        initial,
        initial_end: streaming_list,
        expired,
        over: false,
        held_until: lag.map(|lag| Instant::now() + lag.time),
        events: store.subscribe_after(kind, seen),
        bookmarks: params.is_set("allowWatchBookmarks"),
        bookmark_at: Instant::now() + BOOKMARK_PERIOD,
        deadline: deadline.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        stop: call.app.stop.clone(),
    };
    Ok(body_response(Body::from_stream(stream::unfold(watch, WatchStream::next))))
}

/// An open watch.
struct WatchStream {
    kind: &'static ServedKind,
    filter: ObjectFilter,
    format: AnswerFormat,
    /// Objects still to be sent as if they were new.
    initial: VecDeque<Arc<Object>>,
    /// Whether the end of those is still to be told.
    initial_end: bool,
    /// An error to be told, after which it is over.
    expired: Option<Refused>,
    over: bool,
    /// Until then the cache shows nothing newer than the list. Absent: it does.
    held_until: Option<Instant>,
    events: Subscription,
    bookmarks: bool,
    bookmark_at: Instant,
    /// Absent: until the client goes.
    deadline: Option<Instant>,
    stop: watch::Receiver<bool>,
}

impl WatchStream {
    /// The next piece of the body; `None` at its end.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, WatchStream)> {
        let piece = if !self.initial.is_empty() {
            self.initial_events()
        } else if std::mem::take(&mut self.initial_end) {
            self.bookmark(json!({ "k8s.io/initial-events-end": "true" }))
        } else {
            self.live_events().await?
        };
        Some((Ok(Bytes::from(piece)), self))
    }

    fn initial_events(&mut self) -> Vec<u8> {
        let count = self.initial.len().min(CHUNK);
        let render = |object| self.format.render(self.kind, object);
        let texts: Vec<Bytes> = self.initial.drain(..count).map(render).collect();
        let room = texts.iter().map(|text| text.len() + LINE_AROUND).sum();
        let mut piece = Vec::with_capacity(room);
        for text in &texts {
            write_line(&mut piece, "ADDED", text);
        }
        piece
    }

    /// Waits for something to tell. `None`: the deadline, the server's stop, or after an error.
    async fn live_events(&mut self) -> Option<Vec<u8>> {
        while !self.over {
            if let Some(error) = self.expired.take() {
                self.over = true;
                let mut piece = Vec::new();
                write_line(&mut piece, "ERROR", error.status().to_string().as_bytes());
                return Some(piece);
            }
            let events = tokio::select! {
                biased;
                () = passed(self.held_until) => {
                    self.held_until = None;
                    continue;
                }
                events = self.events.next(), if self.held_until.is_none() => events,
                () = tokio::time::sleep_until(self.bookmark_at), if self.bookmarks => {
                    self.bookmark_at = Instant::now() + BOOKMARK_PERIOD;
                    if self.events.is_ahead() {
                        continue;
                    }
                    return Some(self.bookmark(Value::Null));
                }
                () = passed(self.deadline) => return None,
                () = stopped(&mut self.stop) => return None,
            };
            let mut piece = Vec::new();
            match events {
                Ok(events) => events.iter().for_each(|event| self.write_event(&mut piece, event)),
                Err(error) => self.expired = Some(error),
            }
            if !piece.is_empty() {
                return Some(piece);
            }
        }
        None
    }

    /// What the event is to somebody who sees only what the filter selects.
    fn write_event(&self, piece: &mut Vec<u8>, event: &Event) {
        let now = event.change != Change::Deleted && self.filter.matches(&event.object.value);
        let previous = event.previous.as_ref();
        let before = previous.filter(|object| self.filter.matches(&object.value));
        let (label, object) = match (before, now) {
            (None, false) => return,
            (None, true) => ("ADDED", event.object.clone()),
            (Some(_), true) => ("MODIFIED", event.object.clone()),
            (Some(before), false) => ("DELETED", last_state(before, event)),
        };
        write_line(piece, label, &self.format.render(self.kind, object));
    }

    fn bookmark(&self, annotations: Value) -> Vec<u8> {
        let mut bookmark = json!({
            "kind": self.kind.kind, "apiVersion": self.kind.api_version(),
            "metadata": { "resourceVersion": self.events.seen().to_string() },
        });
        if !annotations.is_null() {
            bookmark["metadata"]["annotations"] = annotations;
        }
        let mut piece = Vec::new();
        write_line(&mut piece, "BOOKMARK", bookmark.to_string().as_bytes());
        piece
    }
}

/// The state in which an object left the filter, with the version of the event.
fn last_state(before: &Arc<Object>, event: &Event) -> Arc<Object> {
    if event.change == Change::Deleted {
        return event.object.clone();
    }
    let mut value = before.value.clone();
    value["metadata"]["resourceVersion"] = event.object.revision.to_string().into();
    Arc::new(Object::new(value, event.object.revision))
}

impl AnswerFormat {
    fn render(self, kind: &ServedKind, object: Arc<Object>) -> Bytes {
        match self {
            AnswerFormat::Json => object.json(),
            AnswerFormat::Table(row) => {
                let version = object.revision.to_string();
                Bytes::from(table(kind, &[object], row, &version).to_string())
            }
        }
    }
}

fn write_line(piece: &mut Vec<u8>, label: &str, object: &[u8]) {
    piece.extend_from_slice(br#"{"type":""#);
    piece.extend_from_slice(label.as_bytes());
    piece.extend_from_slice(br#"","object":"#);
    piece.extend_from_slice(object);
    piece.extend_from_slice(b"}\n");
}

/// Returns at this time; never without one.
async fn passed(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns when the server stops or is dropped.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _closed = stop.wait_for(|stop| *stop).await.is_err();
}

#[cfg(test)]
mod tests {
    use axum::{Router, extract::Request};
    use futures::StreamExt;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::serve::{DeleteOptions, LOG_CAPACITY, QUEUES, Store, in_process};

    const LAG: CacheLag = CacheLag { versions: 2, time: Duration::from_secs(5) };

    /// A server whose queues have changed: `a` and `b` came, then `a` got another weight, and `b`
    /// was deleted. Returns the version before the last two changes, too.
    fn changed_queues() -> (Router, Arc<Store>, u64) {
        let (router, store) = in_process(1, |_| LOG_CAPACITY);
        for name in ["a", "b"] {
            let queue = json!({
                "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                "metadata": { "name": name }, "spec": { "weight": 1 },
            });
            store.create(&QUEUES, &queue).unwrap();
        }
        let before = store.revision();
        let weigh = |queue: &mut Value| {
            queue["spec"]["weight"] = 7.into();
            Ok(())
        };
        store.update(&QUEUES, &Key::new("", "a"), weigh).unwrap();
        store.delete(&QUEUES, &Key::new("", "b"), &DeleteOptions::now()).unwrap();
        assert_eq!(store.revision(), before + 2);
        (router, store, before)
    }

    /// Asks for the queues. `lag`: how far the cache is behind.
    async fn ask(router: &Router, query: &str, lag: Option<CacheLag>) -> Body {
        let mut request = Request::new(Body::empty());
        let uri = format!("/apis/scheduling.volcano.sh/v1beta1/queues?{query}");
        *request.uri_mut() = uri.parse().unwrap();
        if let Some(lag) = lag {
            request.extensions_mut().insert(lag);
        }
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        answer.into_body()
    }

    /// Name and weight of each queue that is listed, `a` and `b` only, and the version of the list.
    async fn listed(router: &Router, query: &str, lag: Option<CacheLag>) -> (Vec<String>, Value) {
        let bytes = ask(router, query, lag).await.collect().await.unwrap().to_bytes();
        let list: Value = serde_json::from_slice(&bytes).unwrap();
        let text = |queue: &Value| {
            let name = queue["metadata"]["name"].as_str().unwrap();
            (name.len() == 1).then(|| format!("{name} {}", queue["spec"]["weight"]))
        };
        let queues = list["items"].as_array().unwrap().iter().filter_map(text).collect();
        (queues, list["metadata"].clone())
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_of_any_version_comes_from_a_cache_that_may_be_behind() {
        let (router, store, before) = changed_queues();
        let (newest, old): (&[&str], &[&str]) = (&["a 7"], &["a 1", "b 1"]);
        for (query, lag, expected, version) in [
            ("resourceVersion=0", Some(LAG), old, before),
            ("resourceVersion=0", None, newest, before + 2),
            ("limit=500", Some(LAG), newest, before + 2),
        ] {
            let (queues, metadata) = listed(&router, query, lag).await;
            assert_eq!(queues, expected, "{query} {lag:?}");
            assert_eq!(metadata["resourceVersion"], version.to_string(), "{query} {lag:?}");
        }
        // The next page is of the version of the first one.
        let (first, metadata) = listed(&router, "resourceVersion=0&limit=1", Some(LAG)).await;
        assert_eq!(first, ["a 1"]);
        let token = metadata["continue"].as_str().unwrap();
        let (next, _) = listed(&router, &format!("limit=500&continue={token}"), Some(LAG)).await;
        assert_eq!(next, ["b 1"]);
        store.compact();
        let (queues, _) = listed(&router, "resourceVersion=0", Some(LAG)).await;
        assert_eq!(queues, newest, "what was compacted is not in the cache");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_behind_an_old_list_shows_later_what_has_happened_since() {
        let (router, _store, before) = changed_queues();
        let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&\
            allowWatchBookmarks=true&resourceVersion=0";
        let start = Instant::now();
        let mut pieces = ask(&router, query, Some(LAG)).await.into_data_stream();
        let (mut seen, mut versions) = (Vec::new(), Vec::new());
        while seen.len() < 5 {
            let piece = pieces.next().await.unwrap().unwrap();
            for line in piece.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let event: Value = serde_json::from_slice(line).unwrap();
                let metadata = &event["object"]["metadata"];
                let name = metadata["name"].as_str().unwrap_or_default();
                if name.len() < 2 {
                    let label = event["type"].as_str().unwrap();
                    seen.push(format!("{} {label} {name}", start.elapsed().as_secs()));
                    versions.push(metadata["resourceVersion"].clone());
                }
            }
        }
        let expected = ["0 ADDED a", "0 ADDED b", "0 BOOKMARK ", "5 MODIFIED a", "5 DELETED b"];
        assert_eq!(seen, expected);
        assert_eq!(versions[2], before.to_string());
    }
}

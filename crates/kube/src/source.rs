//! Lists a kind and watches it: what came, in batches, as the network delivers it. Streaming lists
//! where the server has them, else pages; a watch goes on from the last version that was seen. What
//! comes in bulk is decoded by several tasks, and handed on in its order all the same.
//! Specification: core.md 4.1; rust-ecosystem.md 3 (K-06 to K-09, K-13, K-14, K-18).

use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt, TryStreamExt};
use http::{HeaderValue, Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio::time::{Instant, timeout};

use crate::lines::{LineBuffer, LineChunk};
use crate::restored::{RestoreNotice, RestoreNotices, SeenObject, is_restored};
use crate::slim::{DecodedObject, Slim, collection};

/// The server ends a watch after so many seconds.
const WATCH_SECONDS: u64 = 290;
/// A watch on which nothing has come for so long may be dead: a server tells its version about once a
/// minute. To go on from there on another connection costs one request.
const IDLE: Duration = Duration::from_secs(90);
/// Who ends a watch sooner, before anything has come, would be asked without end.
const SHORT: Duration = Duration::from_secs(1);
/// For the start of an answer; the server itself gives up after 60 s.
pub(crate) const START: Duration = Duration::from_secs(70);
/// Objects of a page of a list.
const PAGE: usize = 500;
/// Objects after which a batch is handed on, although more have arrived.
const BATCH: usize = 256;
/// Chunks that are decoded at once at most.
const AT_ONCE: usize = 4;
/// Bytes of a chunk that is worth a task of its own.
const BULK: usize = 16 * 1024;
/// First parameter of every watch, streaming lists included.
const WATCH: &str = "watch=true";
/// In the bookmark that ends a streaming list.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// Something that happened to the objects of a kind.
#[derive(Debug)]
pub(crate) enum ObjectChange {
    /// A list begins: what it does not name is gone. `is_restored`: the server was restored from a
    /// backup since the list before.
    Begun {
        is_restored: bool,
    },
    Applied(DecodedObject),
    Deleted(DecodedObject),
    /// The list has ended.
    Listed,
}

/// Why a list or a watch does not go on. It is started again by the next call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    /// `verb` is that of RBAC rules: `list` or `watch`.
    #[error("{code}: {message}")]
    Refused { verb: &'static str, code: u16, message: String },
    /// Said inside of a watch.
    #[error("{code}: {message}")]
    ErrorEvent { code: u16, message: String },
    #[error("{0}")]
    Client(#[from] kube::Error),
    #[error("no answer within {} s", START.as_secs())]
    TimedOut,
    /// By the server, or by somebody in between.
    #[error("ended before its time")]
    Cut,
    /// A line or a page that is not what it should be.
    #[error("unreadable: {0}")]
    Unreadable(#[from] serde_json::Error),
}

impl SourceError {
    /// Verb and HTTP status if the server says that we may not read the kind, or that it has none.
    /// `None`: it says something else.
    pub(crate) fn unreadable_kind(&self) -> Option<(&'static str, u16)> {
        match self {
            Self::Refused { verb, code: code @ (403 | 404), .. } => Some((verb, *code)),
            _ => None,
        }
    }

    /// HTTP status with which the server refused a list or the start of a watch.
    pub(crate) fn refusal(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// What the server said, at the start or in the middle.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } | Self::ErrorEvent { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// The objects of a kind, for the life of the process.
pub(crate) struct ObjectSource<S> {
    client: Client,
    /// Where bulk is decoded: there may be more threads than here.
    bulk: Handle,
    /// The server has streaming lists, as far as we know (K-07).
    streaming: bool,
    state: WatchState,
    restore: RestoreNotice,
    slim: PhantomData<fn() -> S>,
}

enum WatchState {
    /// Nothing is listed.
    Start,
    /// The list goes on behind this token.
    Page(String),
    /// Everything up to this version was seen.
    Resume(SeenVersion),
    Open(Box<OpenWatch>),
}

/// Where a watch goes on.
#[derive(Clone)]
struct SeenVersion {
    version: String,
    /// The watch before has ended before its time: the server may have been restored from a backup.
    is_suspect: bool,
    /// The object that was seen last, if a watch has shown one.
    last: Option<SeenObject>,
}

/// An open watch.
struct OpenWatch {
    /// In the order of the body.
    chunks: Pin<Box<dyn Stream<Item = Result<Vec<WatchLine>, SourceError>> + Send>>,
    /// Everything up to here was seen; empty while it lists.
    version: String,
    /// It still lists what was there before.
    listing: bool,
    opened: Instant,
    /// Nothing has come.
    silent: bool,
    /// The object that was seen last, after the list.
    last: Option<SeenObject>,
}

impl<S: Slim> ObjectSource<S> {
    pub(crate) fn new(client: Client, bulk: Handle, restores: &RestoreNotices) -> Self {
        let (state, restore) = (WatchState::Start, RestoreNotice::new(restores));
        Self { client, bulk, streaming: true, state, restore, slim: PhantomData }
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Without streaming lists from now on; false if it was so before.
    pub(crate) fn use_pages(&mut self) -> bool {
        std::mem::replace(&mut self.streaming, false)
    }

    /// Everything is listed again.
    pub(crate) fn restart(&mut self) {
        self.state = WatchState::Start;
    }

    /// True while a watch is open, streaming lists included.
    pub(crate) fn is_watching(&self) -> bool {
        matches!(self.state, WatchState::Open(_))
    }

    /// What comes next belongs to a list.
    pub(crate) fn is_listing(&self) -> bool {
        match &self.state {
            WatchState::Start | WatchState::Page(_) => true,
            WatchState::Open(watch) => watch.listing,
            WatchState::Resume(_) => false,
        }
    }

    /// Waits for something and adds it to the changes; they hold whole objects also when there is an
    /// error.
    ///
    /// # Errors
    /// The next call starts where this one ended.
    pub(crate) async fn next(
        &mut self,
        changes: &mut Vec<ObjectChange>,
    ) -> Result<(), SourceError> {
        let state = std::mem::replace(&mut self.state, WatchState::Start);
        if self.restore.is_noticed_by_others() {
            return Ok(());
        }
        match state {
            WatchState::Start if self.streaming => {
                let watch = watch::<S>(&self.client, &self.bulk, String::new()).await?;
                changes.push(self.begun());
                self.state = WatchState::Open(watch);
            }
            WatchState::Start => {
                changes.push(self.begun());
                self.page(None, changes).await?;
            }
            WatchState::Page(token) => self.page(Some(token), changes).await?,
            WatchState::Resume(seen) => {
                // An answer that does not come is asked for again.
                self.state = WatchState::Resume(seen.clone());
                let SeenVersion { version, is_suspect, last } = seen;
                if is_suspect && is_restored::<S>(&self.client, &version, last.as_ref()).await? {
                    tracing::warn!("{}: the API server was restored from a backup", S::NAME);
                    // Another source may have noticed it meanwhile; those that list already need not do so twice.
                    if !self.restore.is_noticed_by_others() {
                        self.restore.noticed();
                    }
                    self.state = WatchState::Start;
                    return Ok(());
                }
                let mut watch = watch::<S>(&self.client, &self.bulk, version).await?;
                watch.last = last;
                self.state = WatchState::Open(watch);
            }
            WatchState::Open(mut watch) => {
                let outcome = tokio::select! {
                    biased;
                    outcome = watch.next(changes) => outcome,
                    () = self.restore.by_others() => Ok(true),
                };
                self.state = match &outcome {
                    Ok(true) | Err(SourceError::Unreadable(_)) => WatchState::Open(watch),
                    Err(SourceError::ErrorEvent { code: 410, .. }) => WatchState::Start,
                    _ => watch.resume(),
                };
                outcome?;
            }
        }
        Ok(())
    }

    fn begun(&mut self) -> ObjectChange {
        ObjectChange::Begun { is_restored: self.restore.take() }
    }

    /// One page of the list.
    async fn page(
        &mut self,
        token: Option<String>,
        changes: &mut Vec<ObjectChange>,
    ) -> Result<(), SourceError> {
        let mut query = format!("limit={PAGE}");
        if let Some(token) = &token {
            query.push_str("&continue=");
            query.push_str(&escaped(token));
        }
        let page: ListPage<S> = list::<S, _>(&self.client, &query).await?;
        let objects = page.items.into_iter().flatten().map(DecodedObject::of);
        changes.extend(objects.map(ObjectChange::Applied));
        let ListMetadata { resource_version, token } = page.metadata;
        self.state = match token.filter(|token| !token.is_empty()) {
            Some(token) => WatchState::Page(token),
            None => {
                let seen = resource_version.filter(|version| !version.is_empty());
                let missing = || serde::de::Error::custom("a list without resourceVersion");
                let seen = seen.ok_or_else(|| SourceError::Unreadable(missing()))?;
                changes.push(ObjectChange::Listed);
                WatchState::Resume(SeenVersion { version: seen, is_suspect: false, last: None })
            }
        };
        Ok(())
    }
}

/// A page of the kind's list. `T` stands for the objects.
pub(crate) async fn list<S: Slim, T: DeserializeOwned>(
    client: &Client,
    query: &str,
) -> Result<ListPage<T>, SourceError> {
    let body = get::<S>(client, query).await?;
    let bytes = timeout(START, body.collect()).await.map_err(|_| SourceError::TimedOut)??;
    Ok(serde_json::from_slice(&bytes.to_bytes())?)
}

/// A watch from this version on; from none: a streaming list first.
async fn watch<S: Slim>(
    client: &Client,
    bulk: &Handle,
    version: String,
) -> Result<Box<OpenWatch>, SourceError> {
    let listing = version.is_empty();
    let from = match listing {
        true => "0&resourceVersionMatch=NotOlderThan&sendInitialEvents=true",
        false => &version,
    };
    let query = format!(
        "{WATCH}&timeoutSeconds={WATCH_SECONDS}&allowWatchBookmarks=true&\
         resourceVersion={from}"
    );
    let pieces = get::<S>(client, &query).await?.into_data_stream();
    let chunks = Box::pin(decoded::<S>(pieces, bulk.clone()));
    Ok(Box::new(OpenWatch {
        chunks,
        version,
        listing,
        opened: Instant::now(),
        silent: true,
        last: None,
    }))
}

/// The lines of a body as they come, decoded.
fn decoded<S: Slim>(
    pieces: impl Stream<Item = Result<Bytes, kube::Error>>,
    bulk: Handle,
) -> impl Stream<Item = Result<Vec<WatchLine>, SourceError>> {
    let mut lines = LineBuffer::default();
    let chunks = pieces.map_ok(move |piece| lines.split(piece));
    let decode = move |chunk: Result<LineChunk, kube::Error>| {
        let bulk = bulk.clone();
        async move { read_chunk::<S>(chunk?, &bulk).await }
    };
    chunks.map(decode).buffered(AT_ONCE)
}

async fn read_chunk<S: Slim>(
    chunk: LineChunk,
    bulk: &Handle,
) -> Result<Vec<WatchLine>, SourceError> {
    if chunk.len() < BULK {
        return Ok(read_all::<S>(&chunk));
    }
    let task = bulk.spawn(async move { read_all::<S>(&chunk) });
    match task.await.map_err(JoinError::try_into_panic) {
        Ok(lines) => Ok(lines),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The process ends.
        Err(Err(_)) => std::future::pending().await,
    }
}

fn read_all<S: Slim>(chunk: &LineChunk) -> Vec<WatchLine> {
    chunk.lines().map(read::<S>).collect()
}

async fn get<S: Slim>(client: &Client, query: &str) -> Result<Body, SourceError> {
    let mut request = Request::new(Body::empty());
    let path = format!("{}?{query}", collection::<S>());
    *request.uri_mut() = path.parse().expect("made of names and escaped text");
    // Servers from 1.37 on compress watches event by event (K-18).
    let identity = HeaderValue::from_static("identity");
    request.headers_mut().insert(header::ACCEPT_ENCODING, identity);
    let answer = timeout(START, client.send(request)).await;
    let answer = answer.map_err(|_| SourceError::TimedOut)??;
    let (code, body) = (answer.status(), answer.into_body());
    if code.is_success() {
        return Ok(body);
    }
    let bytes = timeout(START, body.collect()).await.map_err(|_| SourceError::TimedOut)??;
    let status: Value = serde_json::from_slice(&bytes.to_bytes()).unwrap_or_default();
    let message = status["message"].as_str().unwrap_or(code.canonical_reason().unwrap_or(""));
    let verb = if query.starts_with(WATCH) { "watch" } else { "list" };
    Err(SourceError::Refused { verb, code: code.as_u16(), message: message.to_owned() })
}

/// A page of a list.
#[derive(Deserialize)]
#[serde(bound = "S: DeserializeOwned")]
pub(crate) struct ListPage<S> {
    pub(crate) metadata: ListMetadata,
    pub(crate) items: Option<Vec<S>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListMetadata {
    pub(crate) resource_version: Option<String>,
    #[serde(rename = "continue")]
    token: Option<String>,
}

impl OpenWatch {
    /// Waits for a chunk and takes what else is there already. `Ok(false)`: the watch has ended.
    async fn next(&mut self, changes: &mut Vec<ObjectChange>) -> Result<bool, SourceError> {
        let Ok(chunk) = timeout(IDLE, self.chunks.next()).await else { return Ok(false) };
        let mut chunk = chunk;
        loop {
            let Some(lines) = chunk.transpose()? else { return self.ended() };
            self.silent &= lines.is_empty();
            let taken = self.take(lines, changes);
            if !self.listing {
                self.last = changes.last().and_then(SeenObject::of).or(self.last.take());
            }
            taken?;
            if BATCH <= changes.len() {
                return Ok(true);
            }
            match self.chunks.next().now_or_never() {
                Some(next) => chunk = next,
                None => return Ok(true),
            }
        }
    }

    /// A list that ends early, and a watch that ends at once, are not begun again without a pause.
    fn ended(&self) -> Result<bool, SourceError> {
        match self.listing || (self.silent && self.opened.elapsed() < SHORT) {
            true => Err(SourceError::Cut),
            false => Ok(false),
        }
    }

    /// After an error the rest of the lines is taken all the same.
    fn take(
        &mut self,
        lines: Vec<WatchLine>,
        changes: &mut Vec<ObjectChange>,
    ) -> Result<(), SourceError> {
        let mut failed = Ok(());
        for line in lines {
            let taken = line.and_then(|event| self.take_event(event, changes));
            if failed.is_ok() {
                failed = taken;
            }
        }
        failed
    }

    fn take_event(
        &mut self,
        event: WatchEvent,
        changes: &mut Vec<ObjectChange>,
    ) -> Result<(), SourceError> {
        match event {
            WatchEvent::Applied(object) => {
                self.see(&object);
                changes.push(ObjectChange::Applied(object));
            }
            WatchEvent::Deleted(object) => {
                self.see(&object);
                changes.push(ObjectChange::Deleted(object));
            }
            WatchEvent::Bookmark { seen, ends_list } => {
                if ends_list && std::mem::take(&mut self.listing) {
                    changes.push(ObjectChange::Listed);
                }
                if !self.listing && !seen.is_empty() {
                    self.version = seen;
                }
            }
            WatchEvent::Error { code, message } => {
                return Err(SourceError::ErrorEvent { code, message });
            }
        }
        Ok(())
    }

    /// In a list the versions are in no order.
    fn see(&mut self, object: &DecodedObject) {
        if let Some(seen) = object.version.as_deref().filter(|_| !self.listing) {
            self.version.clear();
            self.version.push_str(seen);
        }
    }

    /// Where to go on after its end: a list that did not end is made again.
    fn resume(self) -> WatchState {
        let is_suspect = self.opened.elapsed() < Duration::from_secs(WATCH_SECONDS);
        match self.listing {
            true => WatchState::Start,
            false => {
                let (version, last) = (self.version, self.last);
                WatchState::Resume(SeenVersion { version, is_suspect, last })
            }
        }
    }
}

type WatchLine = Result<WatchEvent, SourceError>;

/// A line of a watch.
enum WatchEvent {
    Applied(DecodedObject),
    Deleted(DecodedObject),
    Bookmark { seen: String, ends_list: bool },
    Error { code: u16, message: String },
}

fn read<S: Slim>(line: &[u8]) -> WatchLine {
    if let Ok(text) = std::str::from_utf8(line)
        && let Some((label @ ("ADDED" | "MODIFIED" | "DELETED"), object)) = parts(text)
        && let Some(slim) = S::read(object)
    {
        return Ok(event(label, DecodedObject::with_text(slim, object)));
    }
    let whole: Value = serde_json::from_slice(line)?;
    let object = &whole["object"];
    match whole["type"].as_str() {
        Some("ERROR") => Ok(WatchEvent::Error {
            code: object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
            message: object["message"].as_str().unwrap_or_default().to_owned(),
        }),
        Some("BOOKMARK") => {
            let metadata = &object["metadata"];
            Ok(WatchEvent::Bookmark {
                seen: metadata["resourceVersion"].as_str().unwrap_or_default().to_owned(),
                ends_list: metadata["annotations"][INITIAL_END].is_string(),
            })
        }
        label => Ok(event(label.unwrap_or(""), DecodedObject::of(S::deserialize(object)?))),
    }
}

fn event(label: &str, object: DecodedObject) -> WatchEvent {
    if label == "DELETED" { WatchEvent::Deleted(object) } else { WatchEvent::Applied(object) }
}

/// Label and object of a line as API servers write it; `None`: it is written otherwise.
fn parts(line: &str) -> Option<(&str, &str)> {
    let (label, rest) = line.strip_prefix(r#"{"type":""#)?.split_once('"')?;
    Some((label, rest.strip_prefix(r#","object":"#)?.strip_suffix('}')?))
}

/// A token of a list as it may stand in a query.
pub(crate) fn escaped(token: &str) -> String {
    let mut text = String::with_capacity(token.len());
    for byte in token.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use vc_wire::SlimPod;

    use super::*;

    fn text(lines: impl IntoIterator<Item = WatchLine>) -> Vec<String> {
        let text = |line: WatchLine| match line {
            Ok(WatchEvent::Applied(object)) => {
                format!("+ {:?} {:?}", object.identity, object.version)
            }
            Ok(WatchEvent::Deleted(object)) => {
                format!("- {:?} {:?}", object.identity, object.version)
            }
            Ok(WatchEvent::Bookmark { seen, ends_list }) => format!("{seen} {ends_list}"),
            Ok(WatchEvent::Error { code, message }) => format!("{code} {message}"),
            Err(error) => error.to_string(),
        };
        lines.into_iter().map(text).collect()
    }

    /// The tasks end in no order.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn what_comes_in_bulk_is_handed_on_in_order() {
        let mut body = String::new();
        for number in 0..2000 {
            let label = ["ADDED", "DELETED"][number % 5 / 4];
            let padding = "x".repeat(number * 31 % 1500);
            body.push_str(&match number % 97 {
                13 => "{\"type\":\"ADDED\",\"object\":\n".to_owned(),
                14 => format!(r#"{{"type":"ERROR","object":{{"code":{number}}}}}"#) + "\n",
                _ => {
                    format!(r#"{{"type":"{label}","object":{{"metadata":{{"name":"p{number}","#)
                        + &format!(r#""uid":"{padding}","resourceVersion":"{number}"}}}}}}"#)
                        + "\n"
                }
            });
        }
        let whole = LineBuffer::default().split(body.clone().into());
        let wanted = text(read_all::<SlimPod>(&whole));
        assert_eq!(wanted.len(), 2000);
        for size in [1000, BULK, 70_000] {
            let pieces: Vec<Bytes> =
                body.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
            let pieces = futures::stream::iter(pieces.into_iter().map(Ok));
            let chunks: Vec<Vec<WatchLine>> =
                decoded::<SlimPod>(pieces, Handle::current()).try_collect().await.unwrap();
            assert_eq!(text(chunks.into_iter().flatten()), wanted, "pieces of {size}");
        }
    }
}

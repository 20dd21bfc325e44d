//! Lists a kind and watches it: what came, in batches, as the network delivers it. Streaming lists
//! where the server has them, else pages; a watch goes on from the last version that was seen, and a list
//! at the page that has failed. Specification: core.md 4.1; rust-ecosystem.md 3 (K-06 to K-09, K-13, K-14, K-18).

use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use http::{HeaderValue, Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use crate::restored::{RestoreNotice, RestoreNotices, SeenObject, is_restored};
use crate::slim::{DecodedObject, Slim, collection};
use crate::watch_event::{WatchEvent, WatchLine, decoded};

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
/// A page that has failed so many times in a row is not asked for again: the list begins anew.
const ATTEMPTS: u32 = 5;
/// Objects after which a batch is handed on, although more have arrived.
const BATCH: usize = 256;
/// First parameter of every watch, streaming lists included.
const WATCH: &str = "watch=true";

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
    /// The list goes on here.
    Page(ListPosition),
    /// Everything up to this version was seen.
    Resume(SeenVersion),
    Open(Box<OpenWatch>),
}

/// Where a list goes on.
struct ListPosition {
    token: String,
    /// Pages that have come.
    n_pages: usize,
    /// How many times in a row the page behind the token has failed.
    n_failures: u32,
    /// A page of the list has failed: the server may have been restored from a backup meanwhile.
    is_suspect: bool,
}

/// Where a watch goes on.
#[derive(Clone)]
struct SeenVersion {
    version: String,
    /// The watch or the list before was cut: the server may have been restored from a backup.
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

    /// Returns the number of pages that the unfinished list has brought, 0 if no list is unfinished.
    pub(crate) fn n_pages(&self) -> usize {
        match &self.state {
            WatchState::Page(position) => position.n_pages,
            _ => 0,
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
            WatchState::Page(position) => self.page(Some(position), changes).await?,
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

    /// One page of the list. After an error the same page is asked for again: a list that began anew each time
    /// would never come to its end where one page of it is likely to fail.
    async fn page(
        &mut self,
        position: Option<ListPosition>,
        changes: &mut Vec<ObjectChange>,
    ) -> Result<(), SourceError> {
        let mut query = format!("limit={PAGE}");
        if let Some(ListPosition { token, .. }) = &position {
            query.push_str("&continue=");
            query.push_str(&escaped(token));
        }
        let is_suspect = position.as_ref().is_some_and(|position| position.is_suspect);
        let n_pages = position.as_ref().map_or(0, |position| position.n_pages) + 1;
        let page: Result<ListPage<S>, _> = list::<S, _>(&self.client, &query).await;
        if page.is_err() {
            self.state =
                position.and_then(ListPosition::after_failure).unwrap_or(WatchState::Start);
        }
        let page = page?;
        let objects = page.items.into_iter().flatten().map(DecodedObject::of);
        changes.extend(objects.map(ObjectChange::Applied));
        let ListMetadata { resource_version, token } = page.metadata;
        self.state = match token.filter(|token| !token.is_empty()) {
            Some(token) => {
                WatchState::Page(ListPosition { token, n_pages, n_failures: 0, is_suspect })
            }
            None => {
                let seen = resource_version.filter(|version| !version.is_empty());
                let missing = || serde::de::Error::custom("a list without resourceVersion");
                let seen = seen.ok_or_else(|| SourceError::Unreadable(missing()))?;
                changes.push(ObjectChange::Listed);
                WatchState::Resume(SeenVersion { version: seen, is_suspect, last: None })
            }
        };
        Ok(())
    }
}

impl ListPosition {
    /// Where the list goes on after another failure of its page. `None`: it begins anew.
    fn after_failure(self) -> Option<WatchState> {
        let n_failures = self.n_failures + 1;
        let position = Self { n_failures, is_suspect: true, ..self };
        (n_failures < ATTEMPTS).then_some(WatchState::Page(position))
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

/// A watch from this version on; from none: a streaming list first. No version is asked of the list,
/// so that it is as new as the store: with `0` it may come from a cache that is behind, also behind what this
/// process or its predecessor has seen and decided.
async fn watch<S: Slim>(
    client: &Client,
    bulk: &Handle,
    version: String,
) -> Result<Box<OpenWatch>, SourceError> {
    let listing = version.is_empty();
    let from = match listing {
        true => "resourceVersionMatch=NotOlderThan&sendInitialEvents=true".to_owned(),
        false => format!("resourceVersion={version}"),
    };
    let query = format!("{WATCH}&timeoutSeconds={WATCH_SECONDS}&allowWatchBookmarks=true&{from}");
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

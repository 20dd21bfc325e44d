//! Follows one kind for the life of the process. A restarted watch lists again: what is missing
//! from the list then is gone. Specification: core.md 4.1, rust-ecosystem.md 5.2 and K-07, K-08,
//! K-13.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendError;
use vc_model::{ClusterEvent, Id, Index, ObjectKey, ReadAfter, Table};
use vc_wire::Metadata;

use crate::discovery::is_unknown;
use crate::event_batch::EventCopies;
use crate::failure_log::FailureLog;
use crate::inbox::EngineMessage;
use crate::observe::Observer;
use crate::pod_group_cache::PodGroupCache;
use crate::restart::RestartBackoff;
use crate::slim::{DecodedObject, Slim};
use crate::source::{ObjectChange, ObjectSource, SourceError};
use crate::unreadable::{ASK_AGAIN, Readability};
use crate::wall_clock::since;

/// Pause before a list that replaces an expired watch.
const RESTART: Duration = Duration::from_secs(1);
/// Messages that are handed on at once at most; more could not wait together.
const AT_ONCE: usize = 256;

/// Sends every event of the kind, and `Synced` after its first list; texts of objects may be kept
/// besides. Ends when the receiver is gone.
pub(crate) async fn feed<S: Slim>(
    mut source: ObjectSource<S>,
    pod_group_cache: Option<Arc<PodGroupCache>>,
    inbox: mpsc::Sender<EngineMessage>,
    mut rows: KnownObjects,
) {
    let client = source.client();
    let mut pauses = RestartBackoff::default();
    let (mut changes, mut messages) = (Vec::new(), Vec::new());
    let mut progress = ListProgress::default();
    loop {
        let outcome = source.next(&mut changes).await;
        if progress.is_made(&changes, &source) {
            pauses.reset();
        }
        pod_group_cache.iter().for_each(|pod_group_cache| {
            changes.iter_mut().for_each(|change| pod_group_cache.see(change))
        });
        changes.drain(..).for_each(|change| rows.take::<S>(change, &mut messages));
        if source.is_watching() {
            rows.readability.readable::<S>();
        }
        let pause = match outcome {
            Ok(()) => None,
            Err(error) if rows.counts_as_none::<S>(&error, &client).await => {
                Some(rows.none(&mut source, &mut messages))
            }
            Err(error) => rows.failed(&error, &mut source, &mut pauses),
        };
        if hand_on(&inbox, &mut messages).await.is_err() {
            return;
        }
        // A long list need not be counted object by object.
        if rows.synced {
            rows.observer.objects(S::PLURAL, rows.known.len());
        }
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
}

/// How far the lists since the last complete one have come.
#[derive(Debug, Default)]
struct ListProgress {
    most_pages: usize,
}

impl ListProgress {
    /// True if something new has come: what a watch shows, the end of a list, or a page behind the first one that no
    /// list has reached since the last complete one. A list that begins again and again is no progress.
    fn is_made<S: Slim>(&mut self, changes: &[ObjectChange], source: &ObjectSource<S>) -> bool {
        let n_pages = source.n_pages();
        let comes_further = self.most_pages.max(1) < n_pages;
        self.most_pages = self.most_pages.max(n_pages);
        let is_listed = changes.iter().any(|change| matches!(change, ObjectChange::Listed));
        if is_listed {
            self.most_pages = 0;
        }
        let is_object =
            |change| matches!(change, &ObjectChange::Applied(_) | &ObjectChange::Deleted(_));
        is_listed || comes_further || (!source.is_listing() && changes.iter().any(is_object))
    }
}

/// As many at once as there is room for: lists are long.
///
/// # Errors
/// Nobody listens any more.
async fn hand_on(
    inbox: &mpsc::Sender<EngineMessage>,
    messages: &mut Vec<EngineMessage>,
) -> Result<(), SendError<()>> {
    let most = AT_ONCE.min(inbox.max_capacity());
    let mut messages = messages.drain(..);
    while 0 < messages.len() {
        let room = inbox.reserve_many(messages.len().min(most)).await?;
        room.zip(&mut messages).for_each(|(place, message)| place.send(message));
    }
    Ok(())
}

/// What is known to exist, stamped with the list that saw it last.
pub(crate) struct KnownObjects {
    observer: Arc<dyn Observer>,
    failures: Arc<FailureLog>,
    event_copies: EventCopies,
    readability: Readability,
    generation: u32,
    /// The first list since the server was restored from a backup, while none has come to its end. `None`: it was
    /// not restored, or everything was listed since.
    restored_since: Option<u32>,
    synced: bool,
    /// True if the last list has come. False before the first one, and while the kind counts as none.
    is_complete: bool,
    known: Table<KnownObjectId, KnownObject>,
    by_key: Index<KnownObjectId>,
}

#[derive(Clone)]
struct KnownObject {
    key: ObjectKey,
    uid: Arc<str>,
    generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KnownObjectId(u32);

impl Id for KnownObjectId {
    fn new(index: u32) -> Self {
        Self(index)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

impl KnownObjects {
    pub(crate) fn new(
        observer: Arc<dyn Observer>,
        failures: Arc<FailureLog>,
        event_copies: EventCopies,
    ) -> Self {
        let (known, by_key) = (Table::default(), Index::default());
        let readability = Readability::new(observer.clone());
        let (synced, is_complete) = (false, false);
        Self {
            observer,
            failures,
            event_copies,
            readability,
            generation: 0,
            restored_since: None,
            synced,
            is_complete,
            known,
            by_key,
        }
    }

    fn take<S: Slim>(&mut self, change: ObjectChange, messages: &mut Vec<EngineMessage>) {
        match change {
            ObjectChange::Begun { is_restored } => {
                self.generation = self.generation.wrapping_add(1);
                if is_restored {
                    self.restored_since = Some(self.generation);
                }
            }
            ObjectChange::Applied(object) => self.applied::<S>(object, messages),
            ObjectChange::Deleted(object) => {
                if let Some((key, uid)) = object.identity {
                    if let Some(row) = self.row(&key) {
                        self.forget(row);
                    }
                    messages.push(self.gone::<S>(key, uid));
                }
            }
            ObjectChange::Listed => {
                self.restored_since = None;
                self.listed::<S>(true, messages);
            }
        }
    }

    /// True if there are no objects of the kind as far as we are concerned: it is optional, and the
    /// server refuses it or does not have it. A 404 takes away what is known only if discovery
    /// confirms it: it may be the word of a proxy.
    async fn counts_as_none<S: Slim>(&mut self, error: &SourceError, client: &Client) -> bool {
        let Some((verb, code)) = error.unreadable_kind() else { return false };
        let are_known = !self.known.is_empty();
        if S::WITHOUT.is_none() {
            self.readability.required::<S>(verb, code);
            return false;
        }
        if code == 404 && are_known && !is_unknown::<S>(client).await {
            return false;
        }
        self.readability.optional::<S>(verb, code, are_known)
    }

    /// What an error means for the kind, and how long to wait before the next attempt.
    fn failed<S: Slim>(
        &mut self,
        error: &SourceError,
        source: &mut ObjectSource<S>,
        pauses: &mut RestartBackoff,
    ) -> Option<Duration> {
        match error.refusal() {
            // The server has no streaming lists (K-07).
            Some(422) if source.use_pages() => None,
            // The version is too old (K-08).
            Some(410) => {
                source.restart();
                self.observer.watch_restart(S::PLURAL);
                Some(RESTART)
            }
            _ => {
                self.observer.watch_restart(S::PLURAL);
                // The others are logged by `Readability`.
                if error
                    .unreadable_kind()
                    .is_none_or(|(_, code)| S::WITHOUT.is_some() && code == 404)
                {
                    self.failures.warn("watch interrupted", S::NAME, error);
                }
                Some(pauses.after(error.status()))
            }
        }
    }

    /// There is no object of the kind; answers when it is asked for again.
    fn none<S: Slim>(
        &mut self,
        source: &mut ObjectSource<S>,
        messages: &mut Vec<EngineMessage>,
    ) -> Duration {
        source.restart();
        self.generation = self.generation.wrapping_add(1);
        self.listed::<S>(false, messages);
        ASK_AGAIN
    }

    /// A successor of the same name is another object: the one before it is deleted first.
    fn applied<S: Slim>(&mut self, mut object: DecodedObject, messages: &mut Vec<EngineMessage>) {
        let identity = object.identity.take();
        let event = object.event::<S>(&*self.observer);
        let is_first = identity.as_ref().is_some_and(|(key, _)| self.is_first_since_restore(key));
        if let Some((key, uid)) = identity {
            let row = KnownObject { key, uid, generation: self.generation };
            match self.row(&row.key) {
                None => {
                    if let Some(ClusterEvent::PodApplied(pod)) = &event
                        && pod.node_name.is_none()
                    {
                        self.observer.watched(&pod.scheduler_name, since(pod.created_micros));
                    }
                    self.learn(row);
                }
                Some(id) => {
                    let is_forgotten = is_first && event.as_ref().is_some_and(holds_no_room);
                    let is_another = self.known[id].uid != row.uid || is_forgotten;
                    let before = std::mem::replace(&mut self.known[id], row);
                    messages.extend(is_another.then(|| self.gone::<S>(before.key, before.uid)));
                }
            }
        }
        let undone = event.as_ref().filter(|_| is_first).and_then(undo_eviction);
        let events = event.into_iter().chain(undone);
        messages.extend(events.map(|event| self.event_copies.message(event)));
    }

    /// True if the server was restored since the object was seen last. A list may break off and begin again: what
    /// was written since it has named the object is not lost.
    fn is_first_since_restore(&self, key: &ObjectKey) -> bool {
        let is_older = |since| self.row(key).is_some_and(|id| self.known[id].generation < since);
        self.restored_since.is_some_and(is_older)
    }

    fn row(&self, key: &ObjectKey) -> Option<KnownObjectId> {
        self.by_key.get(key, |row| self.known[row].key == *key)
    }

    fn learn(&mut self, row: KnownObject) {
        let id = self.known.insert(row);
        self.by_key.insert(&self.known[id].key, id);
    }

    fn forget(&mut self, id: KnownObjectId) -> Option<KnownObject> {
        let row = self.known.remove(id)?;
        self.known.recycle();
        self.by_key.remove(&row.key, id);
        Some(row)
    }

    /// Takes away what the list lacks. `is_complete`: the list has come; false: the kind counts as none.
    fn listed<S: Slim>(&mut self, is_complete: bool, messages: &mut Vec<EngineMessage>) {
        let generation = self.generation;
        let is_missing = |(_, row): &(KnownObjectId, &KnownObject)| row.generation != generation;
        let missing: Vec<KnownObjectId> =
            self.known.iter().filter(is_missing).map(|(id, _)| id).collect();
        let missing = missing.into_iter().filter_map(|id| self.forget(id));
        let mut missing: Vec<KnownObject> = missing.collect();
        missing.sort_by(|left, right| left.key.cmp(&right.key));
        messages.extend(missing.into_iter().map(|row| self.gone::<S>(row.key, row.uid)));
        if std::mem::replace(&mut self.is_complete, is_complete) != is_complete {
            let event = S::list_event(is_complete);
            messages.extend(event.map(|event| self.event_copies.message(event)));
        }
        if !std::mem::replace(&mut self.synced, true) {
            messages.push(EngineMessage::Synced(S::KIND));
        }
    }

    fn gone<S: Slim>(&self, key: ObjectKey, uid: Arc<str>) -> EngineMessage {
        let ObjectKey { namespace, name } = key;
        let metadata = Metadata { namespace, name, uid, ..Metadata::default() };
        self.event_copies.message(vc_wire::deleted(S::KIND, metadata))
    }
}

/// True for pods without a node and PodGroups: what we have written to them since the backup is lost.
/// They are new once more, or the engine would wait for the echo of its writes.
fn holds_no_room(event: &ClusterEvent) -> bool {
    match event {
        ClusterEvent::PodApplied(pod) => pod.node_name.is_none(),
        ClusterEvent::PodGroupApplied(_) => true,
        _ => false,
    }
}

/// Returns an event that ends the eviction of a pod which has a node, for what was written since the backup is
/// lost. `None`: it is another event, or the pod has no node and is new once more. An eviction that was
/// decided after the restore and before the pod was listed is undone too, and decided again.
fn undo_eviction(event: &ClusterEvent) -> Option<ClusterEvent> {
    let ClusterEvent::PodApplied(pod) = event else { return None };
    pod.node_name.as_ref()?;
    Some(ClusterEvent::PodRead { pod: pod.clone(), after: ReadAfter::Eviction })
}

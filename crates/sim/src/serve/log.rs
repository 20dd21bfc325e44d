//! The bounded event log of one kind and its readers. A reader keeps the version it has seen and
//! reads on from there, so a slow one costs nothing until the log no longer reaches back to it:
//! then it is told `Expired` (410) and has to list again.

use std::{collections::VecDeque, pin::pin, sync::Arc};

use tokio::sync::Notify;

use super::{
    kinds::ServedKind,
    object::{Key, Object},
    refused::Refused,
    store::Store,
};

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It has a new version.
    Modified,
    /// It is gone; the event carries its last state.
    Deleted,
}

/// One entry of the log.
#[derive(Debug)]
pub struct Event {
    /// What happened.
    pub change: Change,
    /// The object after it.
    pub object: Arc<Object>,
    /// The version before it; absent for a new object.
    pub previous: Option<Arc<Object>>,
}

impl Event {
    /// The object's key.
    pub fn key(&self) -> Key {
        Key::of(&self.object.value)
    }
}

/// Entries in order of their version; the oldest go first when the log is full.
#[derive(Debug)]
pub(super) struct EventLog {
    entries: VecDeque<Arc<Event>>,
    capacity: usize,
    /// The version of the newest entry that was dropped: reading on from an older one has a gap.
    compacted: u64,
}

impl EventLog {
    pub(super) fn new(capacity: usize) -> EventLog {
        EventLog { entries: VecDeque::new(), capacity, compacted: 0 }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.entries.push_back(Arc::new(event));
        if self.capacity < self.entries.len() {
            self.drop_oldest();
        }
    }

    pub(super) fn compact(&mut self) {
        while !self.entries.is_empty() {
            self.drop_oldest();
        }
    }

    /// Forgets everything: what was before this version is compacted.
    pub(super) fn begin_at(&mut self, revision: u64) {
        self.entries.clear();
        self.compacted = revision;
    }

    /// At most `limit` events after version `seen`, oldest first.
    pub(super) fn after(&self, seen: u64, limit: usize) -> Result<Vec<Arc<Event>>, Refused> {
        if seen < self.compacted {
            return Err(Refused::Expired { asked: seen, oldest: self.compacted });
        }
        let start = self.entries.partition_point(|event| event.object.revision <= seen);
        Ok(self.entries.range(start..).take(limit).cloned().collect())
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The version of the newest event, kept or dropped; 0 while there was none.
    pub(super) fn newest(&self) -> u64 {
        self.entries.back().map_or(self.compacted, |event| event.object.revision)
    }

    /// The version of the newest dropped event; 0 while nothing was dropped.
    pub(super) fn compacted(&self) -> u64 {
        self.compacted
    }

    fn drop_oldest(&mut self) {
        if let Some(event) = self.entries.pop_front() {
            self.compacted = event.object.revision;
        }
    }
}

/// A reader of one kind's log.
pub struct Subscription {
    store: Arc<Store>,
    kind: &'static ServedKind,
    /// Everything up to this version has been returned.
    seen: u64,
    /// How often the objects had been replaced by those of a backup when it began.
    n_restores: u64,
    /// Woken with every change of the kind. Readers are woken in the order in which they wait, so that a
    /// simulation is the same again.
    changed: Arc<Notify>,
}

impl Subscription {
    pub(super) fn new(
        store: Arc<Store>,
        kind: &'static ServedKind,
        (seen, n_restores): (u64, u64),
        changed: Arc<Notify>,
    ) -> Subscription {
        Subscription { store, kind, seen, n_restores, changed }
    }

    /// The version up to which this reader has seen its kind.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// True if it waits for a version that the server does not have yet.
    pub(super) fn is_ahead(&self) -> bool {
        self.store.revision() < self.seen
    }

    /// Waits for events and returns them, oldest first, never an empty list. May be dropped and
    /// called again at any time without a loss.
    ///
    /// # Errors
    /// `Expired` when events were dropped before this reader saw them.
    pub async fn next(&mut self) -> Result<Vec<Arc<Event>>, Refused> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            let (events, revision) =
                self.store.events_after(self.kind, self.seen, self.n_restores)?;
            if let Some(last) = events.last() {
                self.seen = last.object.revision;
                return Ok(events);
            }
            self.seen = self.seen.max(revision);
            changed.await;
        }
    }
}

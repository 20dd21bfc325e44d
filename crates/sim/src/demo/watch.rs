//! The API server's events of the kinds that the demo shows, with the time at which each came.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::serve::{Change, HYPER_NODES, NODES, POD_GROUPS, PODS, QUEUES, ServedKind, Store};

static WATCHED: [ServedKind; 5] = [NODES, HYPER_NODES, QUEUES, POD_GROUPS, PODS];
/// Events on their way; more wait in the log of the server.
const CAPACITY: usize = 4096;

/// Something that happened at the API server.
pub(super) struct ObservedEvent {
    pub(super) kind: &'static ServedKind,
    pub(super) change: Change,
    pub(super) object: Value,
    pub(super) at: Instant,
}

/// The stream of events; it ends with this value.
pub(super) struct ApiWatch {
    events: Receiver<ObservedEvent>,
    _readers: JoinSet<()>,
}

impl ApiWatch {
    /// Everything that exists, then everything that happens.
    pub(super) fn start(store: &Arc<Store>) -> ApiWatch {
        let (sender, events) = mpsc::channel(CAPACITY);
        let mut readers = JoinSet::new();
        for kind in &WATCHED {
            readers.spawn(read(store.clone(), kind, sender.clone()));
        }
        ApiWatch { events, _readers: readers }
    }

    /// The next event. May be dropped and called again without a loss.
    pub(super) async fn next(&mut self) -> ObservedEvent {
        match self.events.recv().await {
            Some(seen) => seen,
            // The readers live as long as this value.
            None => std::future::pending().await,
        }
    }
}

/// Reads one kind. A reader that was too slow for the server's log starts over.
async fn read(store: Arc<Store>, kind: &'static ServedKind, sender: Sender<ObservedEvent>) {
    loop {
        let mut events = store.subscribe(kind);
        for object in store.list(kind, None).objects {
            let (change, object, at) = (Change::Added, object.value.clone(), Instant::now());
            if sender.send(ObservedEvent { kind, change, object, at }).await.is_err() {
                return;
            }
        }
        while let Ok(batch) = events.next().await {
            let at = Instant::now();
            for event in batch {
                let (change, object) = (event.change, event.object.value.clone());
                if sender.send(ObservedEvent { kind, change, object, at }).await.is_err() {
                    return;
                }
            }
        }
    }
}

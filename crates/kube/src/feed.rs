//! Follows one kind for the life of the process. A restarted watch lists again: what is missing
//! from the list then is gone. Specification: core.md 4.1, rust-ecosystem.md 5.2 and K-07, K-08,
//! K-13.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher::{self, Config, Error, Event, InitialListStrategy, watcher};
use kube::{Api, Client};
use tokio::sync::mpsc;
use vc_model::{ClusterEvent, ObjectKey};
use vc_wire::Metadata;

use crate::inbox::Incoming;
use crate::observe::{Observer, since};
use crate::restart::Pauses;
use crate::watched::{Slim, Watched};

/// Pause before a list that replaces an expired watch.
const RESTART: Duration = Duration::from_secs(1);
/// Pause before an optional kind that the server does not know is looked for again (C-06).
const UNKNOWN_KIND: Duration = Duration::from_secs(60);

/// Sends every event of the kind, and `Synced` after its first list. Ends when the receiver is
/// gone.
pub(crate) async fn feed<S: Slim>(
    client: Client,
    inbox: mpsc::Sender<Incoming>,
    observer: Arc<dyn Observer>,
) {
    let api: Api<Watched<S>> = Api::all(client);
    let mut config = Config::default().streaming_lists();
    let (mut rows, mut pauses) = (Rows::new(observer), Pauses::default());
    loop {
        let mut events = pin!(watcher(api.clone(), config.clone()));
        loop {
            let error = match events.next().await {
                Some(Ok(event)) => {
                    // Said before anything is asked for.
                    if !matches!(event, Event::Init) {
                        pauses.reset();
                    }
                    for message in rows.take(event) {
                        if inbox.send(message).await.is_err() {
                            return;
                        }
                    }
                    // A long list need not be counted object by object.
                    if rows.synced {
                        rows.observer.objects(S::PLURAL, rows.known.len());
                    }
                    continue;
                }
                Some(Err(error)) => error,
                None => break,
            };
            match refusal(&error) {
                // The server has no streaming lists; kube would repeat the same request for ever.
                Some(422) if config.initial_list_strategy == InitialListStrategy::StreamingList => {
                    config.initial_list_strategy = InitialListStrategy::ListWatch;
                    break;
                }
                Some(404) if S::OPTIONAL => {
                    for message in rows.none::<S>() {
                        if inbox.send(message).await.is_err() {
                            return;
                        }
                    }
                    tokio::time::sleep(UNKNOWN_KIND).await;
                    break;
                }
                // kube keeps the expired version when 410 is the HTTP status; start over instead.
                Some(410) => {
                    rows.observer.watch_restart(S::PLURAL);
                    tokio::time::sleep(RESTART).await;
                    break;
                }
                _ => {
                    rows.observer.watch_restart(S::PLURAL);
                    tracing::warn!(kind = S::NAME, %error, "watch interrupted");
                    tokio::time::sleep(pauses.after(refusal(&error))).await;
                }
            }
        }
    }
}

/// HTTP status with which the server refused to list or to start a watch.
fn refusal(error: &watcher::Error) -> Option<u16> {
    match error {
        Error::InitialListFailed(kube::Error::Api(status))
        | Error::WatchStartFailed(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

/// What is known to exist, stamped with the list that saw it last.
struct Rows {
    observer: Arc<dyn Observer>,
    generation: u32,
    synced: bool,
    known: HashMap<ObjectKey, Row>,
}

struct Row {
    uid: Arc<str>,
    generation: u32,
}

impl Rows {
    fn new(observer: Arc<dyn Observer>) -> Self {
        Self { observer, generation: 0, synced: false, known: HashMap::new() }
    }

    fn take<S: Slim>(&mut self, event: Event<Watched<S>>) -> Vec<Incoming> {
        match event {
            Event::Init => {
                self.generation = self.generation.wrapping_add(1);
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => self.applied(object),
            Event::Delete(object) => self.deleted(object),
            Event::InitDone => self.listed::<S>(),
        }
    }

    /// The server does not know the kind: there is no object of it.
    fn none<S: Slim>(&mut self) -> Vec<Incoming> {
        self.generation = self.generation.wrapping_add(1);
        self.listed::<S>()
    }

    /// A successor of the same name is another object: the one before it is deleted first.
    fn applied<S: Slim>(&mut self, object: Watched<S>) -> Vec<Incoming> {
        let identity = object.identity();
        let event = object.event(&*self.observer).map(Incoming::Event);
        let Some((key, uid)) = identity else {
            return Vec::from_iter(event);
        };
        let row = Row { uid: uid.clone(), generation: self.generation };
        let before = self.known.insert(key.clone(), row);
        if let (None, Some(Incoming::Event(ClusterEvent::PodApplied(pod)))) = (&before, &event)
            && pod.node_name.is_none()
        {
            self.observer.task_stage("Watched", since(pod.created_micros));
        }
        let gone = before.filter(|row| row.uid != uid).map(|row| gone::<S>(key, row.uid));
        gone.into_iter().chain(event).collect()
    }

    fn deleted<S: Slim>(&mut self, object: Watched<S>) -> Vec<Incoming> {
        let Some((key, uid)) = object.identity() else {
            return Vec::new();
        };
        self.known.remove(&key);
        vec![gone::<S>(key, uid)]
    }

    fn listed<S: Slim>(&mut self) -> Vec<Incoming> {
        let generation = self.generation;
        let mut missing: Vec<(ObjectKey, Row)> =
            self.known.extract_if(|_, row| row.generation != generation).collect();
        missing.sort_by(|left, right| left.0.cmp(&right.0));
        let mut messages: Vec<Incoming> =
            missing.into_iter().map(|(key, row)| gone::<S>(key, row.uid)).collect();
        if !std::mem::replace(&mut self.synced, true) {
            messages.push(Incoming::Synced(S::KIND));
        }
        messages
    }
}

fn gone<S: Slim>(key: ObjectKey, uid: Arc<str>) -> Incoming {
    let ObjectKey { namespace, name } = key;
    let metadata = Metadata { namespace, name, uid, ..Metadata::default() };
    let event: ClusterEvent = vc_wire::deleted(S::KIND, metadata);
    Incoming::Event(event)
}

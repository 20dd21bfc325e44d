//! Core/v1 events. They are worth less than a decision: the queue is bounded, what does not fit is
//! dropped, few are in flight at a time, and they yield to decisions that wait to be written.
//! Specification: core.md 7.9, rust-ecosystem.md 5.8 (K-20).

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use rustc_hash::FxHashSet;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, interval, timeout};

use crate::backlog::{Backlog, RequestSlots};
use crate::call::{CallError, call, post};
use crate::correlate::{CorrelatedEvent, Correlator, EventKey, EventNote, EventSubject};
use crate::debounce::Debounce;
use crate::direct::DirectClient;
use crate::event_text::{EventText, event_name, namespace};
use crate::failed::caught;
use crate::failure_log::{FailureLog, PERIOD};
use crate::observe::{Observer, Unobserved};
use crate::pauses::Pauses;
use crate::simulated::of_this_process;
use crate::status::now;
use crate::wall_clock::timestamp;

/// Events that wait at most: those of one burst of binds. client-go has 1,000, and loses the rest.
const QUEUE: usize = 16_384;
/// So many wait when one that says no more than the object itself is dropped: client-go's limit.
const BUSY: usize = 1000;
/// Events that are written at once: what comes together costs less than one by one.
const IN_FLIGHT: usize = 32;
/// How long an event yields to decisions: as long as there are always some, this is its pace.
const YIELD: Duration = Duration::from_millis(50);

/// Takes events without waiting, from any thread.
#[derive(Clone)]
pub(crate) struct EventRecorder(mpsc::Sender<EventNote>);

impl EventRecorder {
    /// The recorder and the writer behind it, which ends when the last recorder is gone.
    /// `component` is what `kubectl describe` shows as the source, `busy` whether decisions wait.
    pub(crate) fn new(
        (client, way): (Client, DirectClient),
        component: String,
        busy: watch::Receiver<bool>,
        (backlog, failures): (Backlog, Arc<FailureLog>),
        observer: Arc<dyn Observer>,
    ) -> (Self, impl Future<Output = ()>) {
        let (sender, notes) = mpsc::channel(QUEUE);
        let writer = EventWriter {
            poster: Arc::new(EventPoster { client, way, component }),
            busy,
            debounce: Debounce::default(),
            memory: Correlator::default(),
            in_flight: JoinSet::new(),
            about: FxHashSet::default(),
            places: RequestSlots::of(backlog),
            pauses: Pauses::default(),
            failures,
            observer,
        };
        (Self(sender), writer.run(notes))
    }

    /// Drops the event when too many wait. In a burst of small gangs those of the PodGroups give way
    /// to those of the pods, which nothing else tells.
    pub(crate) fn record(&self, note: EventNote) {
        if note.repeats_status() && self.0.capacity() <= QUEUE - BUSY {
            return tracing::debug!(v = 4, about = %note.about.name, "event left out");
        }
        if let Err(error) = self.0.try_send(note) {
            tracing::debug!(v = 4, %error, "event dropped");
        }
    }
}

/// Writes a single event, without what others have told about the object before.
pub(crate) async fn record_one(client: Client, component: String, note: EventNote) {
    let client = (client.clone(), client.into());
    let calm = watch::channel(false).1;
    let observer = Arc::new(Unobserved);
    let (recorder, writer) =
        EventRecorder::new(client, component, calm, Default::default(), observer);
    recorder.record(note);
    drop(recorder);
    writer.await;
}

struct EventWriter {
    poster: Arc<EventPoster>,
    busy: watch::Receiver<bool>,
    debounce: Debounce,
    memory: Correlator,
    in_flight: JoinSet<(EventSubject, StoredEvent)>,
    /// The objects of those: one event of each at a time, or a repetition would overtake the first.
    about: FxHashSet<EventSubject>,
    places: RequestSlots,
    /// Objects about which events were refused; further ones are dropped for a while.
    pauses: Pauses<EventSubject, ()>,
    failures: Arc<FailureLog>,
    observer: Arc<dyn Observer>,
}

/// An event that is stored now, and under which name.
type CreatedEvent = (EventKey, String);
/// What came of an event. `None`: nothing is new.
type StoredEvent = Result<Option<CreatedEvent>, CallError>;
type FinishedEvent = Result<(EventSubject, StoredEvent), JoinError>;

impl EventWriter {
    async fn run(mut self, mut notes: mpsc::Receiver<EventNote>) {
        let mut open = true;
        let mut minute = interval(PERIOD);
        while open {
            let note = tokio::select! {
                biased;
                note = notes.recv() => match note {
                    Some(note) => self.debounce.take_in(note, Instant::now()),
                    None => {
                        open = false;
                        None
                    }
                },
                note = self.debounce.rested() => Some(note),
                _ = minute.tick() => {
                    self.tell_sizes();
                    None
                }
            };
            if let Some(note) = note {
                self.record_note(note).await;
            }
        }
        while let Some(note) = self.debounce.first() {
            self.record_note(note).await;
        }
        while let Some(done) = self.in_flight.join_next().await {
            self.written(done);
        }
    }

    /// Tells how much is kept.
    fn tell_sizes(&self) {
        let own = [
            ("events.resting", self.debounce.n_entries()),
            ("events.in_flight", self.about.len()),
            ("events.pauses", self.pauses.len()),
        ];
        let sizes = self.memory.table_sizes().into_iter().chain(own);
        sizes.for_each(|(table, size)| self.observer.table_size(table, size));
    }

    /// Starts to write it when there is room and time for it.
    async fn record_note(&mut self, note: EventNote) {
        while IN_FLIGHT <= self.in_flight.len() || self.about.contains(&note.about) {
            self.places.taken(self.in_flight.len(), IN_FLIGHT <= self.in_flight.len());
            let done = self.in_flight.join_next().await;
            done.into_iter().for_each(|done| self.written(done));
        }
        // Whoever knew of decisions may be gone: then there are none.
        drop(timeout(YIELD, self.busy.wait_for(|busy| !busy)).await);
        self.start(note);
        self.places.taken(self.in_flight.len(), false);
    }

    fn start(&mut self, note: EventNote) {
        if self.pauses.until(&note.about, &(), Instant::now()).is_some() {
            return tracing::debug!(v = 4, about = %note.about.name, "event left out");
        }
        let verdict = self.memory.judge(note, Instant::now());
        let (CorrelatedEvent::Create(note, _) | CorrelatedEvent::Repeat { note, .. }) = &verdict
        else {
            return;
        };
        let subject = note.about.clone();
        self.about.insert(subject.clone());
        let (poster, observer) = (self.poster.clone(), self.observer.clone());
        self.in_flight.spawn(of_this_process(Box::pin(async move {
            let written = caught(&*observer, "event", poster.write(verdict)).await;
            (subject, written.unwrap_or(Ok(None)))
        })));
    }

    fn written(&mut self, done: FinishedEvent) {
        self.places.answered();
        let (subject, stored) = done.expect("panics are caught in it, and nobody aborts it");
        self.about.remove(&subject);
        match stored {
            Ok(created) => {
                self.pauses.accepted(&subject);
                created.into_iter().for_each(|(key, name)| self.memory.created(key, name));
            }
            Err(error) => {
                let EventSubject { kind, namespace, name, .. } = &subject;
                let about = format!("{kind} {namespace}/{name}");
                self.failures.warn("event not written", about, &error);
                if error.pauses() {
                    self.pauses.refused(subject, (), Instant::now());
                }
            }
        }
    }
}

struct EventPoster {
    client: Client,
    way: DirectClient,
    component: String,
}

impl EventPoster {
    /// Answers what is new.
    async fn write(&self, verdict: CorrelatedEvent) -> Result<Option<CreatedEvent>, CallError> {
        match verdict {
            CorrelatedEvent::Drop => Ok(None),
            CorrelatedEvent::Create(note, key) => self.create(note, key).await.map(Some),
            CorrelatedEvent::Repeat { name, count, note, key } => {
                match self.repeat(&name, count, &note).await {
                    Err(error) if error.is_not_found() => self.create(note, key).await.map(Some),
                    answer => answer.map(|()| None),
                }
            }
        }
    }

    async fn create(&self, note: EventNote, key: EventKey) -> Result<CreatedEvent, CallError> {
        let (name, time) = (event_name(&note.about.name, timestamp()), now());
        let path = format!("/api/v1/namespaces/{}/events", namespace(&note.about));
        let text = EventText::of(&note, &name, &self.component, &time);
        post(&self.way, &path, &text).await?;
        Ok((key, name))
    }

    async fn repeat(&self, name: &str, count: i32, note: &EventNote) -> Result<(), CallError> {
        let change = json!({"count": count, "lastTimestamp": now(), "message": &*note.message});
        let api = self.events(namespace(&note.about));
        call(api.patch(name, &PatchParams::default(), &Patch::Merge(change))).await.map(drop)
    }

    fn events(&self, namespace: &str) -> Api<Event> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What waits after so many gangs of one pod were bound at once.
    #[tokio::test]
    async fn in_a_burst_events_of_pods_come_first() {
        let (sender, mut notes) = mpsc::channel(QUEUE);
        let recorder = EventRecorder(sender);
        let note = |kind| {
            let (api_version, name) = ("v1", Arc::<str>::from("a"));
            let (namespace, uid) = (name.clone(), name.clone());
            let about = EventSubject { api_version, kind, namespace, name, uid };
            EventNote { about, warning: false, reason: "Scheduled", message: "m".into() }
        };
        for _ in 0..3 * BUSY {
            recorder.record(note("PodGroup"));
            recorder.record(note("Pod"));
        }
        let mut n_reported = std::collections::BTreeMap::new();
        while let Ok(note) = notes.try_recv() {
            *n_reported.entry(note.about.kind).or_insert(0) += 1;
        }
        assert_eq!(n_reported, [("Pod", 3 * BUSY), ("PodGroup", BUSY / 2)].into());
    }
}

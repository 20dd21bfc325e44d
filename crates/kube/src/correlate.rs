//! What becomes of an event before it is written: a repetition raises a count, many similar ones
//! are merged, a noisy object is cut off. Specification: core.md 7.9 (as client-go aggregates),
//! rust-ecosystem.md 5.8.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use tokio::time::Instant;
use vc_engine::About;
use vc_model::ObjectKey;

/// Distinct messages of one object and reason that are still told apart.
const SIMILAR: usize = 10;
/// How long similar events are counted together.
const WINDOW: Duration = Duration::from_secs(600);
/// Events of one object that pass at once, and how often one more does.
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);
/// Entries that each memory holds at most.
const REMEMBERED: usize = 4096;

/// An event as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EventNote {
    pub(crate) about: EventSubject,
    pub(crate) warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: Arc<str>,
}

impl EventNote {
    /// The phase and the conditions of the PodGroup say that it is ready.
    pub(crate) fn repeats_status(&self) -> bool {
        !self.warning && self.reason == "Scheduled" && self.about.kind == "PodGroup"
    }
}

/// The object of an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EventSubject {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) uid: Arc<str>,
}

impl From<About> for EventSubject {
    fn from(about: About) -> Self {
        const VOLCANO: &str = "scheduling.volcano.sh/v1beta1";
        const TOPOLOGY: &str = "topology.volcano.sh/v1alpha1";
        let (api_version, kind, key, uid) = match about {
            About::Pod { key, uid } => ("v1", "Pod", key, uid),
            About::PodGroup { key, uid } => (VOLCANO, "PodGroup", key, uid),
            About::Queue { name, uid } => {
                (VOLCANO, "Queue", ObjectKey { name, ..ObjectKey::default() }, uid)
            }
            About::HyperNode { name, uid } => {
                (TOPOLOGY, "HyperNode", ObjectKey { name, ..ObjectKey::default() }, uid)
            }
        };
        Self { api_version, kind, namespace: key.namespace, name: key.name, uid }
    }
}

/// What to write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CorrelatedEvent {
    /// A new object; [`Correlator::created`] remembers its name.
    Create(EventNote, EventKey),
    /// One more of the object of that name.
    Repeat { name: String, count: i32, note: EventNote, key: EventKey },
    /// The object has had its share.
    Drop,
}

/// Memory of what was written lately.
#[derive(Default)]
pub(crate) struct Correlator {
    similar: RecentMap<EventKind, SimilarEvents>,
    written: RecentMap<EventKey, WrittenEvent>,
    allowance: RecentMap<EventSubject, SpamBucket>,
}

/// What similar events have in common: object, type, reason.
type EventKind = (EventSubject, bool, &'static str);
/// What one stored event stands for: one message of the kind, or (`None`) all that were merged.
pub(crate) type EventKey = (EventKind, Option<Arc<str>>);

struct SimilarEvents {
    messages: FxHashSet<Arc<str>>,
    last: Instant,
}

struct WrittenEvent {
    name: String,
    count: i32,
}

struct SpamBucket {
    tokens: f64,
    filled: Instant,
}

impl Correlator {
    /// Returns how much is remembered, by table.
    pub(crate) fn table_sizes(&self) -> [(&'static str, usize); 3] {
        [
            ("cache.similar_events", self.similar.len()),
            ("cache.written_events", self.written.len()),
            ("cache.event_allowances", self.allowance.len()),
        ]
    }

    pub(crate) fn judge(&mut self, note: EventNote, now: Instant) -> CorrelatedEvent {
        if !self.allows(&note.about, now) {
            return CorrelatedEvent::Drop;
        }
        let (note, key) = self.merge(note, now);
        match self.written.get(&key) {
            None => CorrelatedEvent::Create(note, key),
            Some(written) => {
                written.count = written.count.saturating_add(1);
                CorrelatedEvent::Repeat {
                    name: written.name.clone(),
                    count: written.count,
                    note,
                    key,
                }
            }
        }
    }

    /// The event is stored under this name.
    pub(crate) fn created(&mut self, key: EventKey, name: String) {
        self.written.insert(key, WrittenEvent { name, count: 1 });
    }

    fn allows(&mut self, about: &EventSubject, now: Instant) -> bool {
        if self.allowance.get(about).is_none() {
            self.allowance.insert(about.clone(), SpamBucket { tokens: BURST, filled: now });
        }
        let bucket = self.allowance.get(about).expect("inserted above");
        let earned = (now - bucket.filled).as_secs_f64() / REFILL.as_secs_f64();
        bucket.tokens = (bucket.tokens + earned).min(BURST);
        bucket.filled = now;
        let allowed = 1.0 <= bucket.tokens;
        bucket.tokens -= if allowed { 1.0 } else { 0.0 };
        allowed
    }

    /// From the eleventh distinct message on all of them count as one event.
    fn merge(&mut self, mut note: EventNote, now: Instant) -> (EventNote, EventKey) {
        let kind = (note.about.clone(), note.warning, note.reason);
        if self.similar.get(&kind).is_none_or(|similar| WINDOW < now - similar.last) {
            self.similar
                .insert(kind.clone(), SimilarEvents { messages: FxHashSet::default(), last: now });
        }
        let similar = self.similar.get(&kind).expect("inserted above");
        similar.last = now;
        if similar.messages.len() < SIMILAR {
            similar.messages.insert(note.message.clone());
        }
        if similar.messages.contains(&note.message) {
            let key = (kind, Some(note.message.clone()));
            return (note, key);
        }
        note.message = format!("(combined from similar events): {}", note.message).into();
        (note, (kind, None))
    }
}

/// A map that forgets what was not used lately: two halves, the older of which is dropped when the
/// younger is full.
struct RecentMap<K, V> {
    young: FxHashMap<K, V>,
    old: FxHashMap<K, V>,
}

impl<K, V> Default for RecentMap<K, V> {
    fn default() -> Self {
        Self { young: FxHashMap::default(), old: FxHashMap::default() }
    }
}

impl<K: Clone + Eq + Hash, V> RecentMap<K, V> {
    fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    fn get(&mut self, key: &K) -> Option<&mut V> {
        if let Some((key, value)) = self.old.remove_entry(key) {
            self.insert(key, value);
        }
        self.young.get_mut(key)
    }

    fn insert(&mut self, key: K, value: V) {
        if REMEMBERED / 2 <= self.young.len() {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(pod: &str, message: &str) -> EventNote {
        let about = EventSubject {
            api_version: "v1",
            kind: "Pod",
            namespace: "ns".into(),
            name: pod.into(),
            uid: pod.into(),
        };
        EventNote { about, warning: true, reason: "FailedScheduling", message: message.into() }
    }

    /// `create NAME MESSAGE`, `repeat COUNT MESSAGE`, `drop`; a created event is named after its
    /// message.
    fn judged(memory: &mut Correlator, note: EventNote, now: Instant) -> String {
        match memory.judge(note, now) {
            CorrelatedEvent::Drop => "drop".into(),
            CorrelatedEvent::Repeat { name, count, note, .. } => {
                format!("{name} x{count}: {}", note.message)
            }
            CorrelatedEvent::Create(note, key) => {
                let name = note.message.to_string();
                memory.created(key, name.clone());
                format!("create {name}")
            }
        }
    }

    #[tokio::test]
    async fn a_repetition_counts_up() {
        let (mut memory, now) = (Correlator::default(), Instant::now());
        assert_eq!(judged(&mut memory, note("p", "m"), now), "create m");
        assert_eq!(judged(&mut memory, note("p", "m"), now), "m x2: m");
        assert_eq!(judged(&mut memory, note("q", "m"), now), "create m");
        assert_eq!(judged(&mut memory, note("p", "m"), now), "m x3: m");
    }

    #[tokio::test]
    async fn the_eleventh_message_is_combined() {
        let (mut memory, now) = (Correlator::default(), Instant::now());
        for index in 0..10 {
            let text = format!("m{index}");
            assert_eq!(judged(&mut memory, note("p", &text), now), format!("create {text}"));
        }
        let first = "(combined from similar events): m10";
        assert_eq!(judged(&mut memory, note("p", "m10"), now), format!("create {first}"));
        let second = format!("{first} x2: (combined from similar events): m11");
        assert_eq!(judged(&mut memory, note("p", "m11"), now), second);
        assert_eq!(judged(&mut memory, note("p", "m3"), now), "m3 x2: m3");
        let later = now + WINDOW + Duration::from_secs(1);
        assert_eq!(judged(&mut memory, note("p", "m12"), later), "create m12");
    }

    #[tokio::test]
    async fn a_noisy_object_gets_25_and_then_one_per_five_minutes() {
        let (mut memory, now) = (Correlator::default(), Instant::now());
        let mut passed = |at| judged(&mut memory, note("p", "m"), at) != "drop";
        assert_eq!((0..100).filter(|_| passed(now)).count(), 25);
        let later = now + REFILL;
        assert_eq!((0..100).filter(|_| passed(later)).count(), 1);
    }

    #[test]
    fn memory_is_bounded_and_keeps_what_is_used() {
        let mut recent = RecentMap::default();
        for key in 0..100_000 {
            recent.insert(key, ());
            assert!(recent.get(&0).is_some());
        }
        assert!(recent.young.len() + recent.old.len() <= REMEMBERED);
        assert!(recent.get(&1).is_none());
    }
}

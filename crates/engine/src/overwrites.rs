//! Conditions of ours that somebody else overwrites: what the watch shows is not what was written
//! last. A second scheduler for the same pods does that, and each would write its own text again in
//! every cycle. Such a condition is written again a minute after it was written last, at the
//! earliest: until then the state shows ours. Specification: core.md 7.6.
//!
//! Exact about our own writes: events of one object come in the order of its versions, so what
//! comes before the echo of the last write is older than that write, and says nothing about others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use vc_framework::{Effect, Sample};
use vc_model::{
    Cluster, ClusterEvent, ObjectKey, PodCondition, PodGroupCondition, PodGroupRecord, PodRecord,
};

const MICROS_PER_SECOND: i64 = 1_000_000;
/// How long the same condition is not written again.
const REWRITE_MICROS: i64 = 60 * MICROS_PER_SECOND;
/// How long a write is remembered: another scheduler answers it within its next cycles.
const REMEMBERED_MICROS: i64 = 2 * REWRITE_MICROS;
/// Overwritten conditions in [`COUNTED_MICROS`] that are reported to people. A leader that has just
/// ended may have left one write behind.
const MANY: usize = 2;
const COUNTED_MICROS: i64 = 600 * MICROS_PER_SECOND;
/// How long the warning is not repeated.
const WARNED_MICROS: i64 = 3_600 * MICROS_PER_SECOND;

/// Types of the PodGroup conditions that this scheduler writes. Those of controllers are theirs.
const OWN_KINDS: [&str; 2] = ["Scheduled", "Unschedulable"];

const HINT: &str = "hint: does another scheduler serve the same schedulerName? Several replicas need \
    --leader-elect=true and the same Lease";

/// The object of a condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Uid of a pod.
    Pod(Arc<str>),
    PodGroup(ObjectKey),
}

/// Conditions as they are compared: a pod has one at most.
#[derive(Clone, Debug)]
enum Content {
    Pod(Arc<PodCondition>),
    PodGroup(Vec<PodGroupCondition>),
}

/// The last write of the conditions of an object.
#[derive(Debug)]
struct Written {
    content: Content,
    /// What was written before that.
    earlier: Option<Content>,
    /// Microseconds since 1970.
    sent_micros: i64,
    /// The watch has shown it.
    is_shown: bool,
    /// What somebody else wrote over it, which the state does not show. `None`: nothing.
    foreign: Option<Content>,
}

/// What was written in the last minutes, and who overwrote it.
#[derive(Debug, Default)]
pub(crate) struct Overwrites {
    written: BTreeMap<Key, Written>,
    /// Our writes by time. An entry is stale if its object was written again since.
    order: VecDeque<(i64, Key)>,
    /// When the state shows what somebody else wrote.
    ends: BTreeSet<(i64, Key)>,
    /// Overwritten conditions since the last report: of pods, of PodGroups.
    n_news: [u32; 2],
    /// The text about the last one.
    example: String,
    /// Times of those of the last minutes.
    times: VecDeque<i64>,
    warned_micros: Option<i64>,
}

impl Overwrites {
    /// These effects are sent.
    pub(crate) fn sent(&mut self, effects: &[Effect], now_micros: i64) {
        for effect in effects {
            match effect {
                Effect::PodCondition { uid, reason, message, .. } => {
                    let (reason, message) = (reason.clone(), message.clone());
                    let condition = PodCondition { status: "False".into(), reason, message };
                    let content = Content::Pod(Arc::new(condition));
                    self.note(Key::Pod(uid.clone()), content, now_micros);
                }
                Effect::PodGroupStatus { pod_group, status, .. } => {
                    let own = owned(&status.conditions);
                    if !own.is_empty() {
                        let key = Key::PodGroup(pod_group.clone());
                        self.note(key, Content::PodGroup(own), now_micros);
                    }
                }
                _ => {}
            }
        }
        while let Some((sent_micros, _)) = self.order.front()
            && REMEMBERED_MICROS <= now_micros.saturating_sub(*sent_micros)
            && let Some((sent_micros, key)) = self.order.pop_front()
        {
            if self.written.get(&key).is_some_and(|row| row.sent_micros == sent_micros) {
                self.forget(&key);
            }
        }
    }

    fn note(&mut self, key: Key, content: Content, now_micros: i64) {
        let before = self.forget(&key);
        let earlier = match before {
            // The status was written for another reason, and the conditions with it.
            Some(row) if row.content.is(&content) => row.earlier,
            before => before.map(|row| row.content),
        };
        let row =
            Written { content, earlier, sent_micros: now_micros, is_shown: false, foreign: None };
        self.written.insert(key.clone(), row);
        self.order.push_back((now_micros, key));
    }

    fn forget(&mut self, key: &Key) -> Option<Written> {
        let row = self.written.remove(key)?;
        self.ends.remove(&(row.sent_micros.saturating_add(REWRITE_MICROS), key.clone()));
        Some(row)
    }

    /// Compares an event with what was written. Answers the object whose condition somebody else
    /// has overwritten: [`Overwrites::hide`] is due when the event is applied.
    pub(crate) fn see(&mut self, event: &ClusterEvent) -> Option<Hidden> {
        if self.written.is_empty() {
            return None;
        }
        let (key, seen) = match event {
            ClusterEvent::PodApplied(pod) => (Key::Pod(pod.uid.clone()), of_pod(pod)),
            ClusterEvent::PodGroupApplied(group) => {
                (Key::PodGroup(group.key.clone()), of_group(group))
            }
            ClusterEvent::PodDeleted { uid, .. } | ClusterEvent::PodStatusFailed { uid } => {
                self.forget(&Key::Pod(uid.clone()));
                return None;
            }
            ClusterEvent::PodGroupDeleted { key } | ClusterEvent::PodGroupFailed { key } => {
                self.forget(&Key::PodGroup(key.clone()));
                return None;
            }
            _ => return None,
        };
        let row = self.written.get_mut(&key)?;
        let Some(seen) = seen else {
            self.forget(&key);
            return None;
        };
        if row.content.is_in(&seen) {
            (row.is_shown, row.foreign) = (true, None);
            return None;
        }
        let is_stale = row.earlier.as_ref().is_some_and(|earlier| earlier.is_in(&seen));
        if !row.is_shown || is_stale || !row.content.is_contradicted_by(&seen) {
            return None;
        }
        if row.foreign.is_none() {
            self.n_news[usize::from(matches!(key, Key::PodGroup(_)))] += 1;
            self.example = example(&event_name(event), &row.content, &seen);
        }
        row.foreign = Some(seen);
        let until_micros = row.sent_micros.saturating_add(REWRITE_MICROS);
        self.ends.insert((until_micros, key.clone()));
        Some(Hidden(key))
    }

    /// Makes the state show our conditions instead of those that have just come.
    pub(crate) fn hide(&self, cluster: &mut Cluster, Hidden(key): &Hidden) {
        if let Some(row) = self.written.get(key) {
            show(cluster, key, &row.content);
        }
    }

    /// Makes the state show what others wrote, where our condition may be written again.
    pub(crate) fn end(&mut self, cluster: &mut Cluster, now_micros: i64) {
        while let Some((until_micros, _)) = self.ends.first()
            && *until_micros <= now_micros
            && let Some((_, key)) = self.ends.pop_first()
        {
            let row = self.written.get_mut(&key);
            if let Some(foreign) = row.and_then(|row| row.foreign.take()) {
                show(cluster, &key, &foreign);
            }
        }
    }

    /// Forgets all writes: the clock was set.
    pub(crate) fn forget_all(&mut self, cluster: &mut Cluster) {
        self.end(cluster, i64::MAX);
        *self = Self::default();
    }

    /// When a condition may be written again, in microseconds since 1970; `None`: none waits.
    pub(crate) fn due_micros(&self) -> Option<i64> {
        self.ends.first().map(|&(until_micros, _)| until_micros)
    }

    /// Numbers for metrics, and the warning for people if it is due.
    pub(crate) fn report(&mut self, now_micros: i64) -> (Vec<Sample>, Option<String>) {
        let news = std::mem::take(&mut self.n_news);
        let samples = ["Pod", "PodGroup"].into_iter().zip(news).filter(|&(_, count)| 0 < count);
        let samples: Vec<Sample> = samples
            .map(|(kind, n_conditions)| Sample::ConditionsOverwritten { kind, n_conditions })
            .collect();
        if samples.is_empty() {
            return (samples, None);
        }
        let n_new = news.iter().sum::<u32>().min(MANY as u32);
        self.times.extend((0..n_new).map(|_| now_micros));
        self.times.retain(|&then| now_micros.saturating_sub(then) < COUNTED_MICROS);
        while MANY < self.times.len() {
            self.times.pop_front();
        }
        let is_quiet =
            self.warned_micros.is_none_or(|then| WARNED_MICROS <= now_micros.saturating_sub(then));
        if self.times.len() < MANY || !is_quiet {
            return (samples, None);
        }
        self.warned_micros = Some(now_micros);
        (samples, Some(format!("{}\n{HINT}", self.example)))
    }
}

/// An object whose foreign condition is not shown yet.
#[derive(Debug)]
pub(crate) struct Hidden(Key);

impl Content {
    /// Both say the same.
    fn is(&self, other: &Self) -> bool {
        self.is_in(other) && other.is_in(self)
    }

    /// Every condition of ours is among these.
    fn is_in(&self, seen: &Self) -> bool {
        match (self, seen) {
            (Self::Pod(own), Self::Pod(seen)) => own == seen,
            (Self::PodGroup(own), Self::PodGroup(seen)) => {
                own.iter().all(|own| seen.iter().any(|seen| seen.same_content(own)))
            }
            _ => false,
        }
    }

    /// A condition of ours says something else there. One that is missing was not overwritten.
    fn is_contradicted_by(&self, seen: &Self) -> bool {
        match (self, seen) {
            (Self::Pod(own), Self::Pod(seen)) => own != seen,
            (Self::PodGroup(own), Self::PodGroup(seen)) => own.iter().any(|own| {
                seen.iter().any(|seen| seen.kind == own.kind && !seen.same_content(own))
            }),
            _ => false,
        }
    }

    /// What people read of it.
    fn text(&self) -> String {
        match self {
            Self::Pod(condition) => format!("{}: {}", condition.reason, condition.message),
            Self::PodGroup(conditions) => {
                let text = |of: &PodGroupCondition| {
                    format!("{}={} {}: {}", of.kind, of.status, of.reason, of.message)
                };
                conditions.iter().map(text).collect::<Vec<_>>().join("; ")
            }
        }
    }
}

/// `None`: the pod has a node, or nobody says that it waits, so that the condition is no longer
/// ours.
fn of_pod(pod: &PodRecord) -> Option<Content> {
    let condition = pod.scheduled_condition.as_ref().filter(|_| pod.node_name.is_none())?;
    (&*condition.status == "False").then(|| Content::Pod(Arc::new(condition.clone())))
}

fn of_group(group: &PodGroupRecord) -> Option<Content> {
    Some(Content::PodGroup(owned(&group.status.conditions)))
}

fn owned(conditions: &[PodGroupCondition]) -> Vec<PodGroupCondition> {
    let is_own = |condition: &&PodGroupCondition| OWN_KINDS.contains(&&*condition.kind);
    conditions.iter().filter(is_own).cloned().collect()
}

fn show(cluster: &mut Cluster, key: &Key, content: &Content) {
    match (key, content) {
        (Key::Pod(uid), Content::Pod(condition)) => cluster.show_condition(uid, condition.clone()),
        (Key::PodGroup(key), Content::PodGroup(conditions)) => {
            cluster.show_group_conditions(key, conditions);
        }
        _ => {}
    }
}

/// The object of an event, for people.
fn event_name(event: &ClusterEvent) -> String {
    match event {
        ClusterEvent::PodApplied(pod) => format!("pod {}", pod.key),
        ClusterEvent::PodGroupApplied(group) => format!("PodGroup {}", group.key),
        _ => String::new(),
    }
}

fn example(object: &str, own: &Content, seen: &Content) -> String {
    let (own, seen) = (own.text(), seen.text());
    format!("{object}: somebody else overwrites its condition: {seen:?} instead of {own:?}")
}

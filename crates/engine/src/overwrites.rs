//! Conditions of ours that another writer overwrites: the watch shows another text than we wrote
//! last. This happens with a second scheduler for the same pods; each would write its own text in
//! every cycle. Such a condition is rewritten a minute after our last write at the earliest. Until
//! then the state shows ours. Specification: core.md 7.6.
//!
//! Exact about our own writes because
//! - events of one object come in the order of its versions,
//! - an event before the echo of the last write is older than that write, and is not compared.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize, Serializer};
use vc_framework::{Effect, Sample};
use vc_model::{
    Cluster, ClusterEvent, ObjectKey, PodCondition, PodGroupCondition, PodGroupRecord, PodRecord,
};

const MICROS_PER_SECOND: i64 = 1_000_000;
/// Minimum time between two writes of the same condition.
const REWRITE_MICROS: i64 = 60 * MICROS_PER_SECOND;
/// Time for which a write is remembered. Another scheduler answers it within its next cycles.
const REMEMBERED_MICROS: i64 = 2 * REWRITE_MICROS;
/// Number of overwritten conditions within [`COUNTED_MICROS`] from which a warning is written. A
/// leader that has just ended may cause a single one.
const MANY: usize = 2;
const COUNTED_MICROS: i64 = 600 * MICROS_PER_SECOND;
/// Minimum time between two warnings.
const WARNED_MICROS: i64 = 3_600 * MICROS_PER_SECOND;

/// Types of the PodGroup conditions that this scheduler writes. Conditions of other types belong to
/// controllers.
const OWN_KINDS: [&str; 2] = ["Scheduled", "Unschedulable"];

const HINT: &str = "hint: does another scheduler serve the same schedulerName? Several replicas need \
    --leader-elect=true and the same Lease";

/// The object of a condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum ConditionOwner {
    /// Uid of a pod.
    Pod(Arc<str>),
    PodGroup(ObjectKey),
}

/// Conditions in the form in which they are compared. A pod has at most one.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum ConditionContent {
    Pod(Arc<PodCondition>),
    PodGroup(Box<[PodGroupCondition]>),
}

/// The last write of the conditions of an object.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WrittenConditions {
    content: ConditionContent,
    /// Content of the write before the last one.
    earlier: Option<ConditionContent>,
    /// Microseconds since 1970.
    sent_micros: i64,
    /// True once the watch has shown the write.
    is_shown: bool,
    /// Conditions of another writer, which the state does not show. `None` if there are none.
    foreign: Option<ConditionContent>,
}

/// Our writes of the last minutes, and what has overwritten them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ConditionOverwrites {
    /// Looked up by key only.
    #[serde(serialize_with = "in_order")]
    written: FxHashMap<ConditionOwner, WrittenConditions>,
    /// Our writes by time. An entry is stale if its object was written again since.
    order: VecDeque<(i64, ConditionOwner)>,
    /// Objects by the time from which the state shows the conditions of the other writer.
    ends: BTreeSet<(i64, ConditionOwner)>,
    /// Overwritten conditions since the last report: of pods, of PodGroups.
    n_news: [u32; 2],
    /// Text about the last overwritten condition.
    example: String,
    /// Times of the overwritten conditions of the last minutes.
    times: VecDeque<i64>,
    warned_micros: Option<i64>,
    /// True in a copy for questions, in which nobody else writes: nothing is remembered.
    #[serde(skip)]
    is_disabled: bool,
}

/// Writes the map in the order of its keys, so that equal maps have equal texts.
fn in_order<S: Serializer>(
    written: &FxHashMap<ConditionOwner, WrittenConditions>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    written.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
}

impl ConditionOverwrites {
    /// Returns one that remembers nothing, for a copy in which nobody else writes.
    pub(crate) fn disabled() -> Self {
        Self { is_disabled: true, ..Self::default() }
    }

    /// Records the conditions in effects that are sent.
    pub(crate) fn sent(&mut self, effects: &[Effect], now_micros: i64) {
        if self.is_disabled {
            return;
        }
        let is_condition = |effect: &&Effect| matches!(effect, Effect::PodCondition { .. });
        let n_conditions = effects.iter().filter(is_condition).count();
        self.written.reserve(n_conditions);
        self.order.reserve(n_conditions);
        for effect in effects {
            match effect {
                Effect::PodCondition { uid, condition, .. } => {
                    let content = ConditionContent::Pod(condition.clone());
                    self.note(ConditionOwner::Pod(uid.clone()), content, now_micros);
                }
                Effect::PodGroupStatus { pod_group, status, .. } => {
                    let own = owned(&status.conditions);
                    if !own.is_empty() {
                        let key = ConditionOwner::PodGroup(pod_group.clone());
                        self.note(key, ConditionContent::PodGroup(own), now_micros);
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

    fn note(&mut self, key: ConditionOwner, content: ConditionContent, now_micros: i64) {
        let before = self.forget(&key);
        let earlier = match before {
            // The status was written for another reason, with unchanged conditions.
            Some(row) if row.content.is(&content) => row.earlier,
            before => before.map(|row| row.content),
        };
        let row = WrittenConditions {
            content,
            earlier,
            sent_micros: now_micros,
            is_shown: false,
            foreign: None,
        };
        self.written.insert(key.clone(), row);
        self.order.push_back((now_micros, key));
    }

    fn forget(&mut self, key: &ConditionOwner) -> Option<WrittenConditions> {
        let row = self.written.remove(key)?;
        if !self.ends.is_empty() {
            self.ends.remove(&(row.sent_micros.saturating_add(REWRITE_MICROS), key.clone()));
        }
        Some(row)
    }

    /// Compares an event with our last write. Returns the object if another writer has overwritten
    /// its condition. Then [`ConditionOverwrites::hide`] must follow after the event was applied.
    pub(crate) fn see(&mut self, event: &ClusterEvent) -> Option<HiddenCondition> {
        if self.written.is_empty() {
            return None;
        }
        let (key, seen) = match event {
            ClusterEvent::PodApplied(pod) => (ConditionOwner::Pod(pod.uid.clone()), of_pod(pod)),
            ClusterEvent::PodGroupApplied(group) => {
                (ConditionOwner::PodGroup(group.key.clone()), of_group(group))
            }
            ClusterEvent::PodDeleted { uid, .. } | ClusterEvent::PodStatusFailed { uid } => {
                self.forget(&ConditionOwner::Pod(uid.clone()));
                return None;
            }
            ClusterEvent::PodGroupDeleted { key } | ClusterEvent::PodGroupFailed { key, .. } => {
                self.forget(&ConditionOwner::PodGroup(key.clone()));
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
            self.n_news[usize::from(matches!(key, ConditionOwner::PodGroup(_)))] += 1;
            self.example = example(&event_name(event), &row.content, &seen);
        }
        row.foreign = Some(seen);
        let until_micros = row.sent_micros.saturating_add(REWRITE_MICROS);
        self.ends.insert((until_micros, key.clone()));
        Some(HiddenCondition(key))
    }

    /// Makes the state show our conditions in place of those that the event brought.
    pub(crate) fn hide(&self, cluster: &mut Cluster, HiddenCondition(key): &HiddenCondition) {
        if let Some(row) = self.written.get(key) {
            show(cluster, key, &row.content);
        }
    }

    /// Makes the state show the conditions of other writers, where ours may be written again.
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

    /// Drops all recorded writes, after the clock was set.
    pub(crate) fn forget_all(&mut self, cluster: &mut Cluster) {
        self.end(cluster, i64::MAX);
        *self = Self { is_disabled: self.is_disabled, ..Self::default() };
    }

    /// Returns the time when a condition may be written again, in microseconds since 1970. Returns
    /// `None` if no condition waits.
    pub(crate) fn due_micros(&self) -> Option<i64> {
        self.ends.first().map(|&(until_micros, _)| until_micros)
    }

    /// Returns samples for metrics, and the warning if it is due.
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

/// An object whose state still hides the condition of another writer.
#[derive(Debug)]
pub(crate) struct HiddenCondition(ConditionOwner);

impl ConditionContent {
    /// True if both have the same conditions.
    fn is(&self, other: &Self) -> bool {
        self.is_in(other) && other.is_in(self)
    }

    /// True if every condition of ours is in `seen`.
    fn is_in(&self, seen: &Self) -> bool {
        match (self, seen) {
            (Self::Pod(own), Self::Pod(seen)) => own == seen,
            (Self::PodGroup(own), Self::PodGroup(seen)) => {
                own.iter().all(|own| seen.iter().any(|seen| seen.same_content(own)))
            }
            _ => false,
        }
    }

    /// True if a condition of ours has another content in `seen`. A missing condition was not
    /// overwritten.
    fn is_contradicted_by(&self, seen: &Self) -> bool {
        match (self, seen) {
            (Self::Pod(own), Self::Pod(seen)) => own != seen,
            (Self::PodGroup(own), Self::PodGroup(seen)) => own.iter().any(|own| {
                seen.iter().any(|seen| seen.kind == own.kind && !seen.same_content(own))
            }),
            _ => false,
        }
    }

    /// Returns the conditions as text for users.
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

/// Returns the condition of a pod. Returns `None` if the pod has a node, or if its condition does
/// not say that it waits.
fn of_pod(pod: &PodRecord) -> Option<ConditionContent> {
    let condition = pod.scheduled_condition.as_ref().filter(|_| pod.node_name.is_none())?;
    (&*condition.status == "False").then(|| ConditionContent::Pod(Arc::new(condition.clone())))
}

fn of_group(group: &PodGroupRecord) -> Option<ConditionContent> {
    Some(ConditionContent::PodGroup(owned(&group.status.conditions)))
}

fn owned(conditions: &[PodGroupCondition]) -> Box<[PodGroupCondition]> {
    let is_own = |condition: &&PodGroupCondition| OWN_KINDS.contains(&&*condition.kind);
    conditions.iter().filter(is_own).cloned().collect()
}

fn show(cluster: &mut Cluster, key: &ConditionOwner, content: &ConditionContent) {
    match (key, content) {
        (ConditionOwner::Pod(uid), ConditionContent::Pod(condition)) => {
            cluster.show_condition(uid, condition.clone())
        }
        (ConditionOwner::PodGroup(key), ConditionContent::PodGroup(conditions)) => {
            cluster.show_group_conditions(key, conditions);
        }
        _ => {}
    }
}

/// Returns the object of an event as text for users.
fn event_name(event: &ClusterEvent) -> String {
    match event {
        ClusterEvent::PodApplied(pod) => format!("pod {}", pod.key),
        ClusterEvent::PodGroupApplied(group) => format!("PodGroup {}", group.key),
        _ => String::new(),
    }
}

fn example(object: &str, own: &ConditionContent, seen: &ConditionContent) -> String {
    let (own, seen) = (own.text(), seen.text());
    format!("{object}: somebody else overwrites its condition: {seen:?} instead of {own:?}")
}

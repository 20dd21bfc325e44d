//! The difference between cycles with the changes and without. Specification: answers.md 9 (ANS-49,
//! ANS-50).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_engine::QueueUse;
use vc_model::{Cluster, JobId, ObjectKey};

use super::baseline::Baseline;
use super::changes::ChangeNotes;
use super::question::WhatIfBound;
use super::run::{BoundPod, GonePod, SupposedRun};
use super::waiting_keys;
use crate::code::WaitCode;
use crate::explain::{AnswerState, explain_jobs};
use crate::explanation::AnswerTime;

/// Rows of each list.
const MOST_ROWS: usize = 500;

/// A pod with its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedPod {
    /// The pod.
    pub pod: ObjectKey,
    /// Its PodGroup. `None` if it has none.
    pub pod_group: Option<ObjectKey>,
    /// Name of the node.
    pub node: Arc<str>,
}

/// A pod that gets another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedPod {
    /// The pod.
    pub pod: ObjectKey,
    /// Its PodGroup. `None` if it has none.
    pub pod_group: Option<ObjectKey>,
    /// Name of its node without the changes.
    pub from: Arc<str>,
    /// Name of its node with the changes.
    pub to: Arc<str>,
}

/// A pod that has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictedPod {
    /// The pod.
    pub pod: ObjectKey,
    /// Its PodGroup. `None` if it has none.
    pub pod_group: Option<ObjectKey>,
    /// The action, or `drain` if its node is removed.
    pub action: &'static str,
    /// The PodGroup for which it goes. `None` if there is none.
    pub for_group: Option<ObjectKey>,
    /// The plugins that granted it, in order.
    pub plugins: Vec<&'static str>,
}

/// A job that waits at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingJob {
    /// PodGroup, or the pod if it has none.
    pub key: ObjectKey,
    /// Why it waits.
    pub code: WaitCode,
    /// The same in one line.
    pub text: String,
}

/// A queue that holds something else, or has another share.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueDifference {
    /// Name.
    pub queue: Arc<str>,
    /// Resources of which it and the queues below it hold another amount: without the changes, and with them.
    pub allocated: Vec<(String, [String; 2])>,
    /// Its share without and with the changes, if they differ. An unknown share is `None`.
    pub share: Option<[Option<f64>; 2]>,
}

/// What differs with the changes.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIfResult {
    /// The state before the changes.
    pub as_of: AnswerTime,
    /// The bounds at which something was left out. Empty if the answer is complete.
    pub left_out: Vec<WhatIfBound>,
    /// Number of cycles with the changes.
    pub cycles: u32,
    /// True if the last cycle decided nothing.
    pub is_settled: bool,
    /// Pods that get a node with the changes only.
    pub placed: Vec<PlacedPod>,
    /// Pods that get a node without the changes only.
    pub not_placed: Vec<PlacedPod>,
    /// Pods that get another node.
    pub moved: Vec<MovedPod>,
    /// Pods that have to go with the changes only.
    pub evicted: Vec<EvictedPod>,
    /// Pods that have to go without the changes only.
    pub spared: Vec<EvictedPod>,
    /// Jobs that wait at the end, if the changes name them or they do not wait without the changes.
    pub waiting: Vec<WaitingJob>,
    /// Queues that differ, by name.
    pub queues: Vec<QueueDifference>,
    /// Pods that the changes apply and that have no node at the end.
    pub unplaced_applied: Vec<ObjectKey>,
    /// What the answer does not take into account.
    pub warnings: Vec<String>,
    /// Full lengths of lists that end at 500 rows, by name.
    pub truncated: Vec<(&'static str, usize)>,
}

impl WhatIfResult {
    /// True if nothing was left out for lack of budget.
    pub fn is_complete(&self) -> bool {
        self.left_out.is_empty()
    }
}

/// Compares a run with what happens without the changes.
pub(super) fn difference(
    with: &SupposedRun,
    without: &Baseline,
    notes: &ChangeNotes,
    as_of: AnswerTime,
) -> WhatIfResult {
    let mut truncated = Vec::new();
    let placed = limited(newly_placed(&with.bound, &without.bound), "placed", &mut truncated);
    let not_placed = newly_placed(&without.bound, &with.bound);
    let not_placed = limited(not_placed, "notPlaced", &mut truncated);
    let moved = limited(moved(&with.bound, &without.bound), "moved", &mut truncated);
    let evicted = newly_evicted(&with.evicted, &without.evicted);
    let evicted = limited(evicted, "evicted", &mut truncated);
    let spared = newly_evicted(&without.evicted, &with.evicted);
    let spared = limited(spared, "spared", &mut truncated);
    let waiting = waiting(with, without, notes, &mut truncated);
    let unplaced = notes.pods.iter().filter(|pod| !has_node(with.cluster(), pod));
    let unplaced = limited(unplaced.cloned().collect(), "unplaced", &mut truncated);
    let queues = queues(&without.queues, &with.report().queues);
    let queues = limited(queues, "queues", &mut truncated);
    WhatIfResult {
        as_of,
        left_out: notes.left_out.iter().copied().collect(),
        cycles: with.n_cycles(),
        is_settled: false,
        placed,
        not_placed,
        moved,
        evicted,
        spared,
        waiting,
        queues,
        unplaced_applied: unplaced,
        warnings: notes.warnings.iter().cloned().collect(),
        truncated,
    }
}

/// Ends a list at [`MOST_ROWS`] and notes how long it was.
fn limited<T>(
    mut rows: Vec<T>,
    name: &'static str,
    truncated: &mut Vec<(&'static str, usize)>,
) -> Vec<T> {
    if MOST_ROWS < rows.len() {
        truncated.push((name, rows.len()));
        rows.truncate(MOST_ROWS);
    }
    rows
}

/// Returns the pods that are bound in one run and not in the other.
fn newly_placed(
    one: &BTreeMap<ObjectKey, BoundPod>,
    other: &BTreeMap<ObjectKey, BoundPod>,
) -> Vec<PlacedPod> {
    one.iter().filter(|(pod, _)| !other.contains_key(*pod)).map(placed).collect()
}

/// Returns the pods that have to go in one run and not in the other.
fn newly_evicted(
    one: &BTreeMap<ObjectKey, GonePod>,
    other: &BTreeMap<ObjectKey, GonePod>,
) -> Vec<EvictedPod> {
    one.iter().filter(|(pod, _)| !other.contains_key(*pod)).map(evicted).collect()
}

fn placed((pod, bound): (&ObjectKey, &BoundPod)) -> PlacedPod {
    let (pod_group, node) = (bound.pod_group.clone(), bound.node.clone());
    PlacedPod { pod: pod.clone(), pod_group, node }
}

fn evicted((pod, gone): (&ObjectKey, &GonePod)) -> EvictedPod {
    EvictedPod {
        pod: pod.clone(),
        pod_group: gone.pod_group.clone(),
        action: gone.action,
        for_group: gone.for_group.clone(),
        plugins: gone.plugins.clone(),
    }
}

fn moved(
    with: &BTreeMap<ObjectKey, BoundPod>,
    without: &BTreeMap<ObjectKey, BoundPod>,
) -> Vec<MovedPod> {
    let of_pod = |(pod, to): (&ObjectKey, &BoundPod)| {
        let from = without.get(pod).filter(|from| from.node != to.node)?;
        let (from, to, pod_group) = (from.node.clone(), to.node.clone(), to.pod_group.clone());
        Some(MovedPod { pod: pod.clone(), pod_group, from, to })
    };
    with.iter().filter_map(of_pod).collect()
}

/// Explains the jobs that wait at the end and that the changes name, or that do not wait without
/// the changes.
fn waiting(
    with: &SupposedRun,
    without: &Baseline,
    notes: &ChangeNotes,
    truncated: &mut Vec<(&'static str, usize)>,
) -> Vec<WaitingJob> {
    let is_asked = |key: &ObjectKey| !without.waiting.contains(key) || notes.jobs.contains(key);
    let keys: Vec<ObjectKey> = waiting_keys(with.cluster()).into_iter().filter(is_asked).collect();
    let keys = limited(keys, "waiting", truncated);
    let jobs: BTreeSet<JobId> = keys.iter().filter_map(|key| with.cluster().job(key)).collect();
    if jobs.is_empty() {
        return Vec::new();
    }
    let mut state = AnswerState::new(with.engine(), with.report());
    if let Some(is_due) = with.stop().condition() {
        state.stop_if(is_due);
    }
    let explained = explain_jobs(&mut state, jobs.into_iter().collect());
    let row = |it: crate::explanation::Explanation| WaitingJob {
        key: it.subject.key,
        code: it.verdict.code,
        text: it.verdict.text,
    };
    let mut rows: Vec<WaitingJob> = explained.into_iter().map(row).collect();
    rows.sort_by(|l, r| l.key.cmp(&r.key));
    rows
}

fn has_node(cluster: &Cluster, pod: &ObjectKey) -> bool {
    cluster.task_named(pod).is_some_and(|task| cluster.tasks[task].node.is_some())
}

/// Returns the queues that differ. A queue that one side does not have holds nothing there.
fn queues(without: &[QueueUse], with: &[QueueUse]) -> Vec<QueueDifference> {
    let by_name = |list: &'_ [QueueUse]| -> BTreeMap<Arc<str>, QueueUse> {
        list.iter().map(|queue| (queue.queue.clone(), queue.clone())).collect()
    };
    let (without, with) = (by_name(without), by_name(with));
    let names: BTreeSet<&Arc<str>> = without.keys().chain(with.keys()).collect();
    let differences = names.into_iter().map(|name| queue(name, without.get(name), with.get(name)));
    let is_one = |it: &QueueDifference| !it.allocated.is_empty() || it.share.is_some();
    differences.filter(is_one).collect()
}

fn queue(name: &Arc<str>, without: Option<&QueueUse>, with: Option<&QueueUse>) -> QueueDifference {
    let held = |queue: Option<&QueueUse>| -> BTreeMap<String, String> {
        queue.iter().flat_map(|queue| queue.allocated.iter().cloned()).collect()
    };
    let (before, after) = (held(without), held(with));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let amount = |of: &BTreeMap<String, String>, name: &str| {
        of.get(name).cloned().unwrap_or_else(|| "0".to_owned())
    };
    let amounts =
        names.into_iter().map(|name| (name.clone(), [amount(&before, name), amount(&after, name)]));
    let share = |queue: Option<&QueueUse>| queue?.share.filter(|share| share.is_finite());
    let shares = [share(without), share(with)];
    QueueDifference {
        queue: name.clone(),
        allocated: amounts.filter(|(_, [l, r])| l != r).collect(),
        share: (shares[0] != shares[1]).then_some(shares),
    }
}

//! Pauses after binds and evictions that the API server refused. Before a write is repeated the pod
//! pauses for 1 s, doubling to 1 min. The count starts again when the pod changes or, after a bind,
//! when the chosen node changes. A pause is part of the state ([`Task::pause`]) and ends before a
//! cycle, so sessions need no clock for it. Specification: core.md 7.2.
//!
//! [`Task::pause`]: vc_model::Task::pause

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_framework::rfc3339;
use vc_model::{Cluster, TaskId};

const MICROS_PER_SECOND: i64 = 1_000_000;
/// The first pause, and the longest one.
const FIRST_SECONDS: i64 = 1;
const LONGEST_SECONDS: i64 = 60;
/// Time after which a refusal no longer counts.
const REMEMBERED_MICROS: i64 = 600 * MICROS_PER_SECOND;

/// Greatest number of refusals in a row for which a member of a broken gang keeps its place. Their
/// pauses last 123 seconds together. A pod that is always refused must not hold room for ever.
const REFUSALS_WITH_PLACE: u32 = 7;

/// Consecutive refusals of one pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RefusalRow {
    /// The chosen node. `None` if an eviction was refused.
    node: Option<Arc<str>>,
    n_refusals: u32,
    /// End of the last pause, in microseconds since 1970.
    until_micros: i64,
    /// True if the pause is over; the write may have been repeated since.
    is_over: bool,
}

/// A pod that has the first turn on its place, and the name of the node. It has kept the place while it
/// paused, or its bind has failed.
#[derive(Debug)]
pub(crate) struct KeptPlace {
    pub(crate) task: TaskId,
    pub(crate) node: Arc<str>,
}

/// The pods whose writes were refused, by uid.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PodPauses {
    rows: BTreeMap<Arc<str>, RefusalRow>,
    /// The pods that pause now, by the end of the pause.
    ends: BTreeSet<(i64, Arc<str>)>,
    /// Time of the last removal of rows of missing pods, in microseconds since 1970.
    swept_micros: i64,
}

impl PodPauses {
    /// Records a refused write of a pod: a bind to this node, or an eviction if `node` is `None`.
    /// Returns the sentence that says when the write is repeated. Returns `None` if the pod has
    /// changed since the decision, so that it does not pause.
    pub(crate) fn refuse(
        &mut self,
        cluster: &Cluster,
        task: TaskId,
        node: Option<Arc<str>>,
        now_micros: i64,
    ) -> Option<String> {
        let uid = cluster.tasks[task].uid.clone();
        let before = self.forget(&uid);
        cluster.tasks[task].pause.as_ref()?;
        // A write before the end of its pause was about a changed pod or node, so it does not
        // count.
        let earlier = before.filter(|row| row.is_over && row.node.is_some() == node.is_some());
        let n_refusals = earlier.map_or(0, |row| row.n_refusals).saturating_add(1);
        let seconds = (FIRST_SECONDS << (n_refusals - 1).min(6)).min(LONGEST_SECONDS);
        let until_micros = now_micros.saturating_add(seconds * MICROS_PER_SECOND);
        self.rows
            .insert(uid.clone(), RefusalRow { node, n_refusals, until_micros, is_over: false });
        self.ends.insert((until_micros, uid));
        // Whole seconds, rounded up so that the text never names a time before the end.
        let reported_micros = until_micros.saturating_add(MICROS_PER_SECOND - 1);
        Some(format!(
            ". It is tried again after {seconds} s, at {}, or when the pod or the node changes",
            rfc3339(reported_micros)
        ))
    }

    /// Ends the pauses whose time is over. Returns the pods that have kept their place until now.
    pub(crate) fn end(&mut self, cluster: &mut Cluster, now_micros: i64) -> Vec<KeptPlace> {
        let mut kept = Vec::new();
        while let Some((until_micros, _)) = self.ends.first()
            && *until_micros <= now_micros
            && let Some((_, uid)) = self.ends.pop_first()
        {
            kept.extend(lift(cluster, &uid));
            self.rows.get_mut(&uid).into_iter().for_each(|row| row.is_over = true);
        }
        self.sweep(cluster, now_micros);
        kept
    }

    /// Gives up the places of pods whose gang needs them no more: it has its minimum without them, or
    /// none of its pods got a node, or the bind was refused too often.
    pub(crate) fn give_up_places(&self, cluster: &mut Cluster) {
        for (uid, row) in self.rows.iter().filter(|(_, row)| !row.is_over) {
            let task = cluster.task(uid).filter(|&task| cluster.tasks[task].keeps_place);
            let Some(task) = task else { continue };
            if REFUSALS_WITH_PLACE < row.n_refusals || !is_gang_broken(cluster, task) {
                cluster.give_up_place(task);
            }
        }
    }

    /// Ends all pauses, because their times are meaningless after the clock was set.
    pub(crate) fn end_all(&mut self, cluster: &mut Cluster) {
        self.ends.iter().for_each(|(_, uid)| drop(lift(cluster, uid)));
        *self = Self::default();
    }

    /// Ends the pauses of the pods for which this node was chosen, and drops their refusals.
    pub(crate) fn node_changed(&mut self, cluster: &mut Cluster, name: &str) {
        let is_meant = |(_, row): &(_, &RefusalRow)| row.node.as_deref() == Some(name);
        let pods = self.rows.iter().filter(is_meant).map(|(uid, _)| uid.clone());
        for uid in pods.collect::<Vec<_>>() {
            drop(lift(cluster, &uid));
            self.forget(&uid);
        }
    }

    /// True if no write was refused lately.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the end of the next pause, in microseconds since 1970. Returns `None` if no pod
    /// pauses.
    pub(crate) fn next_end_micros(&self) -> Option<i64> {
        self.ends.first().map(|&(until_micros, _)| until_micros)
    }

    fn forget(&mut self, uid: &Arc<str>) -> Option<RefusalRow> {
        let row = self.rows.remove(uid)?;
        self.ends.remove(&(row.until_micros, uid.clone()));
        Some(row)
    }

    /// Removes rows of pods that are gone, or whose last refusal is long past.
    fn sweep(&mut self, cluster: &Cluster, now_micros: i64) {
        if now_micros - self.swept_micros < REMEMBERED_MICROS {
            return;
        }
        self.swept_micros = now_micros;
        self.rows.retain(|uid, row| {
            let is_recent = now_micros - row.until_micros < REMEMBERED_MICROS;
            !row.is_over || (is_recent && cluster.task(uid).is_some())
        });
    }
}

/// True if some pods of the gang have a node, or may have one, but fewer than the gang needs. Pods
/// that keep their places do not count.
pub(crate) fn is_gang_broken(cluster: &Cluster, task: TaskId) -> bool {
    let Some(job) = cluster.tasks[task].job.map(|job| &cluster.jobs[job]) else { return false };
    let has_node = |&&task: &&TaskId| {
        let row = &cluster.tasks[task];
        row.node.is_some() && !row.keeps_place
    };
    let n_placed = job.tasks.iter().filter(has_node).count();
    0 < n_placed && i32::try_from(n_placed).is_ok_and(|n_placed| n_placed < job.min_available)
}

/// Ends the pause of a pod, which waits from then on. Returns the place that it has kept.
fn lift(cluster: &mut Cluster, uid: &str) -> Option<KeptPlace> {
    let task = cluster.task(uid).filter(|&task| cluster.tasks[task].pause.is_some())?;
    cluster.set_pause(task, None);
    let row = &cluster.tasks[task];
    let node = row.node.filter(|_| row.keeps_place)?;
    let node = cluster.nodes[node].name.clone();
    cluster.give_up_place(task);
    Some(KeptPlace { task, node })
}

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

    /// Ends the pauses whose time is over.
    pub(crate) fn end(&mut self, cluster: &mut Cluster, now_micros: i64) {
        while let Some((until_micros, _)) = self.ends.first()
            && *until_micros <= now_micros
            && let Some((_, uid)) = self.ends.pop_first()
        {
            lift(cluster, &uid);
            self.rows.get_mut(&uid).into_iter().for_each(|row| row.is_over = true);
        }
        self.sweep(cluster, now_micros);
    }

    /// Ends all pauses, because their times are meaningless after the clock was set.
    pub(crate) fn end_all(&mut self, cluster: &mut Cluster) {
        self.ends.iter().for_each(|(_, uid)| lift(cluster, uid));
        *self = Self::default();
    }

    /// Ends the pauses of the pods for which this node was chosen, and drops their refusals.
    pub(crate) fn node_changed(&mut self, cluster: &mut Cluster, name: &str) {
        let is_meant = |(_, row): &(_, &RefusalRow)| row.node.as_deref() == Some(name);
        let pods = self.rows.iter().filter(is_meant).map(|(uid, _)| uid.clone());
        for uid in pods.collect::<Vec<_>>() {
            lift(cluster, &uid);
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

fn lift(cluster: &mut Cluster, uid: &str) {
    let task = cluster.task(uid).filter(|&task| cluster.tasks[task].pause.is_some());
    task.into_iter().for_each(|task| cluster.set_pause(task, None));
}

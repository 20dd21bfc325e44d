//! Binds and evictions that the API server has refused: the pod pauses for 1 s, doubling to 1 min,
//! before the write is repeated. The count begins anew when the pod changes or, after a bind, the
//! node that was chosen. A pause is part of the state ([`Task::pause`]) and ends before a cycle, so
//! that sessions need no clock for it. Specification: core.md 7.2.
//!
//! [`Task::pause`]: vc_model::Task::pause

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::rfc3339;
use vc_model::{Cluster, TaskId};

const MICROS_PER_SECOND: i64 = 1_000_000;
/// First and longest pause.
const FIRST_SECONDS: i64 = 1;
const LONGEST_SECONDS: i64 = 60;
/// A refusal that lies further back than this no longer counts.
const REMEMBERED_MICROS: i64 = 600 * MICROS_PER_SECOND;

/// The refusals in a row of one pod.
#[derive(Debug)]
struct Row {
    /// The node that was chosen. `None`: an eviction was refused.
    node: Option<Arc<str>>,
    n_refusals: u32,
    /// End of the last pause, in microseconds since 1970.
    until_micros: i64,
    /// The pause is over; the write may have been repeated since.
    is_over: bool,
}

/// The pods whose writes were refused, by uid.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    rows: BTreeMap<Arc<str>, Row>,
    /// Those that pause now, by the end of the pause.
    ends: BTreeSet<(i64, Arc<str>)>,
    /// When rows of pods that are gone were removed last, in microseconds since 1970.
    swept_micros: i64,
}

impl Pauses {
    /// A write of a pod was refused, a bind to this node, or without a node an eviction. Answers
    /// the sentence that says when it is repeated. `None`: the pod has changed since the write was
    /// decided, so that it does not pause.
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
        // What was repeated before the pause was over was about another pod or node.
        let earlier = before.filter(|row| row.is_over && row.node.is_some() == node.is_some());
        let n_refusals = earlier.map_or(0, |row| row.n_refusals).saturating_add(1);
        let seconds = (FIRST_SECONDS << (n_refusals - 1).min(6)).min(LONGEST_SECONDS);
        let until_micros = now_micros.saturating_add(seconds * MICROS_PER_SECOND);
        self.rows.insert(uid.clone(), Row { node, n_refusals, until_micros, is_over: false });
        self.ends.insert((until_micros, uid));
        // A time without fraction, and never before the end.
        let told_micros = until_micros.saturating_add(MICROS_PER_SECOND - 1);
        Some(format!(
            ". It is tried again after {seconds} s, at {}, or when the pod or the node changes",
            rfc3339(told_micros)
        ))
    }

    /// Ends the pauses that are over at this time.
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

    /// Ends all pauses: nobody knows how long they last, because the clock was set.
    pub(crate) fn end_all(&mut self, cluster: &mut Cluster) {
        self.ends.iter().for_each(|(_, uid)| lift(cluster, uid));
        *self = Self::default();
    }

    /// Ends the pauses of the pods for which this node was chosen, and forgets their refusals.
    pub(crate) fn node_changed(&mut self, cluster: &mut Cluster, name: &str) {
        let is_meant = |(_, row): &(_, &Row)| row.node.as_deref() == Some(name);
        let pods = self.rows.iter().filter(is_meant).map(|(uid, _)| uid.clone());
        for uid in pods.collect::<Vec<_>>() {
            lift(cluster, &uid);
            self.forget(&uid);
        }
    }

    /// True: no write was refused lately.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// When the next pause ends, in microseconds since 1970; `None`: no pod pauses.
    pub(crate) fn next_end_micros(&self) -> Option<i64> {
        self.ends.first().map(|&(until_micros, _)| until_micros)
    }

    fn forget(&mut self, uid: &Arc<str>) -> Option<Row> {
        let row = self.rows.remove(uid)?;
        self.ends.remove(&(row.until_micros, uid.clone()));
        Some(row)
    }

    /// Removes what is remembered of pods that are gone or were refused nothing for long.
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

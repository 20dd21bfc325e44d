//! Candidates of nodes with many, in eviction order, as they stood for the task before: only those
//! whose jobs have changed since are put in place again. Exact, because the order among pods of one
//! queue reads the two pods and their jobs alone, no two pods are equal in it, and it holds among
//! three where it holds between two. The last is so only where all pods have an index or none has
//! (core.md 5.4): among others each may come before the next, and a part of a sorted list is not
//! what sorting the part gives. There, and where others are candidates now, all are sorted.
//! `many_candidates_are_sorted_once`, `where_names_are_mixed_all_candidates_are_sorted` and the
//! worlds of the engine's tests compare the two. Specification: actions.md 2.9, 12.2 S9.

use rustc_hash::{FxHashMap, FxHashSet};
use vc_framework::Session;
use vc_model::{ChangeReader, JobId, NodeId, TaskId};

use super::Phase;
use crate::victims::{candidates, in_eviction_order};

/// Fewer are sorted as quickly.
const MANY: usize = 64;

/// By node.
#[derive(Debug, Default)]
pub(super) struct Lineups(FxHashMap<NodeId, Lineup>);

#[derive(Debug)]
struct Lineup {
    changed_jobs: ChangeReader<JobId>,
    tasks: Vec<TaskId>,
}

impl Lineups {
    /// The candidates of a node, the one to be evicted first first.
    pub(super) fn candidates(
        &mut self,
        session: &mut Session<'_>,
        preemptor: TaskId,
        node: NodeId,
        phase: Phase,
    ) -> Vec<TaskId> {
        let sorted = |session: &Session<'_>| {
            candidates(session, preemptor, node, |task| phase.admits(session, preemptor, task))
        };
        if session.nodes[node].tasks.len() < MANY {
            return sorted(session);
        }
        let known =
            self.0.get(&node).and_then(|lineup| lineup.now(session, preemptor, node, phase));
        session.hits.n_lined_up += u64::from(known.is_some());
        let tasks = known.unwrap_or_else(|| sorted(session));
        let changed_jobs = ChangeReader::at_end(session.job_changes());
        match are_alike(session, &tasks) {
            true => self.0.insert(node, Lineup { changed_jobs, tasks: tasks.clone() }),
            false => self.0.remove(&node),
        };
        tasks
    }
}

/// Whether all have a pod index or none has.
fn are_alike(session: &Session<'_>, tasks: &[TaskId]) -> bool {
    let has_index = |task: TaskId| session.tasks[task].index.is_some();
    tasks.windows(2).all(|pair| has_index(pair[0]) == has_index(pair[1]))
}

impl Lineup {
    /// `None`: others are candidates now, or their order is none.
    fn now(
        &self,
        session: &Session<'_>,
        preemptor: TaskId,
        node: NodeId,
        phase: Phase,
    ) -> Option<Vec<TaskId>> {
        let changed = self.changed_jobs.unread(session.job_changes())?;
        let changed: FxHashSet<JobId> = changed.collect();
        let has_changed =
            |task: TaskId| session.tasks[task].job.is_none_or(|job| changed.contains(&job));
        let is_one = |task: TaskId| {
            session.tasks[task].node == Some(node) && phase.admits(session, preemptor, task)
        };
        let of_node = session.nodes[node].tasks.iter().copied().filter(|&task| is_one(task));
        let (mut moved, stay): (Vec<TaskId>, Vec<TaskId>) =
            of_node.partition(|&task| has_changed(task));
        let kept = self.tasks.iter().copied();
        let kept: Vec<TaskId> = kept.filter(|&it| !has_changed(it) && is_one(it)).collect();
        if kept.len() != stay.len() {
            return None;
        }
        in_eviction_order(session, preemptor, &mut moved);
        let all = merged(kept, moved, |l, r| {
            let job = session.tasks[preemptor].job;
            session.hooks().victim_order(session.ask(), job, l, r).is_lt()
        });
        are_alike(session, &all).then_some(all)
    }
}

/// Both lists, each in order, as one; the second one is short.
fn merged(
    long: Vec<TaskId>,
    short: Vec<TaskId>,
    before: impl Fn(TaskId, TaskId) -> bool,
) -> Vec<TaskId> {
    let mut all = Vec::with_capacity(long.len() + short.len());
    let mut start = 0;
    for task in short {
        let end = start + long[start..].partition_point(|&other| before(other, task));
        all.extend_from_slice(&long[start..end]);
        all.push(task);
        start = end;
    }
    all.extend_from_slice(&long[start..]);
    all
}

#[cfg(test)]
mod tests {
    use vc_model::Id;

    use super::*;

    #[test]
    fn two_lists_in_order_are_merged() {
        let tasks =
            |ids: &[u32]| -> Vec<TaskId> { ids.iter().map(|&id| TaskId::new(id)).collect() };
        let cases: [(&[u32], &[u32]); 5] = [
            (&[], &[]),
            (&[1, 4, 6], &[]),
            (&[], &[2, 3]),
            (&[1, 4, 6], &[0, 2, 3, 7]),
            (&[1], &[9]),
        ];
        for (long, short) in cases {
            let mut expected = [long, short].concat();
            expected.sort_unstable();
            let all = merged(tasks(long), tasks(short), |l, r| l.index() < r.index());
            assert_eq!(all, tasks(&expected));
        }
    }
}

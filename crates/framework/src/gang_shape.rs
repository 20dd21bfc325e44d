//! What an attempt to place a gang, or to make room for it, reads of its job: gangs of one shape end
//! alike in one and the same state. Specification: actions.md 12.2 S1, S7.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{Counts, Job, JobId, STATUSES, TaskId};

use crate::asker::Asker;
use crate::session::Session;

/// See the module. Which queue it is of, and its priority, is part of each [`Asker`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GangShape {
    /// Those that are to be placed, in their order, each with its role; so many in a row are alike.
    members: Vec<(Asker, Arc<str>, u32)>,
    /// What JobPipelined reads besides.
    marks: u64,
    min_available: i32,
    counts: Numbers,
    roles: Vec<(Arc<str>, Numbers)>,
    role_minimums: BTreeMap<Arc<str>, i32>,
    sub_jobs: Vec<(i32, Numbers)>,
}

/// Tasks by status, those that are best effort, and those that leave a node.
type Numbers = ([u32; STATUSES.len()], u32, u32);

impl GangShape {
    /// The shape of the job with these tasks to be placed, in this session. `None`: more is read of one
    /// than `asker` says, of the job than its row and marks, or a place depends on other pods, volumes, devices or a nomination.
    pub(crate) fn of(
        session: &Session<'_>,
        job: JobId,
        tasks: &[TaskId],
        mut asker: impl FnMut(TaskId) -> Option<Asker>,
    ) -> Option<Self> {
        let marks = session.hooks().pipeline_marks(session.ask(), job)?;
        let mut members: Vec<(Asker, Arc<str>, u32)> = Vec::new();
        let mut before: Option<TaskId> = None;
        for &task in tasks {
            let role = &session.tasks[task].role;
            let is_next = |&before: &TaskId| {
                session.tasks[before].role == *role && session.asks_as(task, before)
            };
            match members.last_mut().filter(|_| before.as_ref().is_some_and(is_next)) {
                Some((.., n_alike)) => *n_alike += 1,
                None => {
                    let asker = asker(task).filter(|_| session.is_plain(task))?;
                    members.push((asker, role.clone(), 1));
                }
            }
            before = Some(task);
        }
        let Job { min_available, counts, roles, task_min_available, sub_jobs, .. } =
            &session.jobs[job];
        let sub_jobs = sub_jobs.iter();
        Some(Self {
            members,
            marks,
            min_available: *min_available,
            counts: numbers(counts),
            roles: roles.iter().map(|(role, counts)| (role.clone(), numbers(counts))).collect(),
            role_minimums: task_min_available.clone(),
            sub_jobs: sub_jobs.map(|sub| (sub.min_available, numbers(&sub.counts))).collect(),
        })
    }
}

impl GangShape {
    /// What JobPipelined reads besides the row of the job.
    pub(crate) fn marks(&self) -> u64 {
        self.marks
    }
}

impl Session<'_> {
    /// What an attempt to make room for these tasks of the job reads of it, given what matters of a
    /// class. `None`: something else is read.
    pub fn gang_shape(
        &self,
        job: JobId,
        tasks: &[TaskId],
        mut asker: impl FnMut(TaskId) -> Option<Asker>,
    ) -> Option<GangShape> {
        let (row, hooks) = (&self.jobs[job], self.hooks());
        let is_plain = row.policies().is_empty() && !self.has_claim(job);
        if !self.is_fast() || !is_plain || !hooks.judges_rows() {
            return None;
        }
        GangShape::of(self, job, tasks, &mut asker)
    }
}

fn numbers(counts: &Counts) -> Numbers {
    let by_status = STATUSES.map(|status| counts.of(status));
    (by_status, counts.pending_best_effort, counts.releasing_on_node)
}

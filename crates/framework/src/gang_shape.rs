//! Gang shapes: all that an attempt to place a gang, or to make room for it, reads of its job.
//! Gangs of one shape end alike in the same state.
//! Specification: actions.md 12.2 S1, S7.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{Counts, Job, JobId, STATUSES, TaskId};
use vc_resource::{Dim, Resource};

use crate::pod_signature::PodSignature;
use crate::session::SessionState;

/// The shape of a gang. Queue and priority are part of each [`PodSignature`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GangShape {
    /// Members to be placed in their order.
    members: Vec<GangMember>,
    /// What JobPipelined reads besides the row of the job.
    marks: u64,
    min_available: i32,
    counts: Numbers,
    roles: Vec<(Arc<str>, Numbers)>,
    role_minimums: Arc<BTreeMap<Arc<str>, i32>>,
    sub_jobs: Vec<(i32, Numbers)>,
    /// `spec.minResources`, which decides about HyperNodes.
    min_resources: Vec<(Dim, i64)>,
}

/// Equal members in a row: their signature and role, and how many they are.
pub(crate) type GangMember = (PodSignature, Arc<str>, u32);

/// Counts: tasks by status, best-effort tasks, and tasks that leave a node.
type Numbers = ([u32; STATUSES.len()], u32, u32);

impl GangShape {
    /// Returns the shape of the job with these tasks to be placed, in this session.
    ///
    /// Returns `None` in three cases:
    /// - more is read of a task than `signature` covers;
    /// - more is read of the job than its row and marks;
    /// - a placement depends on other pods, volumes, devices or a nomination.
    pub(crate) fn of(
        session: &SessionState<'_>,
        job: JobId,
        tasks: &[TaskId],
        mut signature: impl FnMut(TaskId) -> Option<PodSignature>,
    ) -> Option<Self> {
        let marks = session.plugins().pipeline_marks(session.view(), job)?;
        let plain = |task| signature(task).filter(|_| session.is_plain(task));
        let members = members(session, tasks.iter().copied(), plain)?;
        let Job { min_available, counts, roles, task_min_available, sub_jobs, .. } =
            &session.jobs[job];
        let sub_jobs = sub_jobs.iter();
        let asked = match session.view().is_in_hyper_nodes(job) {
            true => session.jobs[job].min_resources(),
            false => Resource::default(),
        };
        Some(Self {
            members,
            marks,
            min_available: *min_available,
            counts: numbers(counts),
            roles: roles.iter().map(|(role, counts)| (role.clone(), numbers(counts))).collect(),
            role_minimums: task_min_available.clone(),
            sub_jobs: sub_jobs.map(|sub| (sub.min_available, numbers(&sub.counts))).collect(),
            min_resources: asked.dims().map(|dim| (dim, asked.get(dim))).collect(),
        })
    }
}

impl GangShape {
    /// Returns what JobPipelined reads besides the row of the job.
    pub(crate) fn marks(&self) -> u64 {
        self.marks
    }
}

impl SessionState<'_> {
    /// Returns what an attempt to make room for these tasks reads of the job; `signature` gives the
    /// signature of a task. Returns `None` if more is read.
    pub fn gang_shape(
        &self,
        job: JobId,
        tasks: &[TaskId],
        signature: impl FnMut(TaskId) -> Option<PodSignature>,
    ) -> Option<GangShape> {
        if !self.is_fast || !self.has_gang_shape(job) {
            return None;
        }
        GangShape::of(self, job, tasks, signature)
    }

    /// Returns what an attempt to place these tasks reads of the job, with either evaluator. Fit errors
    /// of earlier attempts are not part of it. Returns `None` if more is read.
    pub fn trial_shape(&self, job: JobId, tasks: &[TaskId]) -> Option<GangShape> {
        let signature = |task| {
            let signature = self.signature_of(task, |_| self.class_signature(task))?;
            Some(signature.before_attempt())
        };
        self.has_gang_shape(job).then(|| GangShape::of(self, job, tasks, signature))?
    }

    fn has_gang_shape(&self, job: JobId) -> bool {
        self.jobs[job].policies().is_empty()
            && !self.has_eviction_hold(job)
            && !self.view().is_in_hyper_nodes(job)
            && self.plugins().reads_job_rows_only()
    }
}

/// Returns tasks as members in their order. Returns `None` if a task has no signature.
pub(crate) fn members(
    session: &SessionState<'_>,
    tasks: impl Iterator<Item = TaskId>,
    mut signature: impl FnMut(TaskId) -> Option<PodSignature>,
) -> Option<Vec<GangMember>> {
    let mut members: Vec<GangMember> = Vec::new();
    let mut before: Option<TaskId> = None;
    for task in tasks {
        let role = &session.tasks[task].role;
        let is_next = |&before: &TaskId| {
            session.tasks[before].role == *role && session.has_same_signature(task, before)
        };
        match members.last_mut().filter(|_| before.as_ref().is_some_and(is_next)) {
            Some((.., n_equal)) => *n_equal += 1,
            None => members.push((signature(task)?, role.clone(), 1)),
        }
        before = Some(task);
    }
    Some(members)
}

fn numbers(counts: &Counts) -> Numbers {
    let by_status = STATUSES.map(|status| counts.of(status));
    (by_status, counts.pending_best_effort, counts.releasing_on_node)
}

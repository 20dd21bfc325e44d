//! Reclaim for a job that must stay in a HyperNode: one HyperNode after the other is tried, and the
//! first one in which the job becomes pipelined is taken.
//! Specification: actions.md 7.3, A39.

use std::collections::{BTreeMap, BTreeSet};

use vc_framework::{Cause, GradientPurpose, GradientQuery, Session, SessionState, Statement};
use vc_model::{HyperNodeId, HyperNodeTree, JobId, NodeId, QueueId, TaskId};

use super::{NAME, commit, place};
use crate::search::{FreedNodes, SearchCaches};
use crate::starving::pending;

/// True if the job or a sub-job must stay in a HyperNode below the root.
pub(super) fn is_bound(session: &SessionState<'_>, job: JobId) -> bool {
    let view = session.view();
    let (_, root) = session.info().hyper_nodes.tiers();
    let is_below_root = |tier: Option<i32>| tier.is_some_and(|tier| tier < root);
    let n_sub_jobs = session.jobs[job].sub_jobs.len();
    view.is_in_hyper_nodes(job)
        && (is_below_root(view.highest_tier(job))
            || (0..n_sub_jobs).any(|index| is_below_root(view.highest_tier_of_sub_job(job, index))))
}

/// Reclaims for the job in the first HyperNode that suffices. Otherwise nothing is evicted, and the
/// causes are those of the widest one.
pub(super) fn reclaim(
    session: &mut Session<'_>,
    queue: QueueId,
    job: JobId,
    caches: &mut SearchCaches,
) {
    let domains = match domains(session, job, None, HyperNodeTree::ROOT) {
        Ok(domains) => domains,
        Err(why) => {
            return session.outcome.causes.note_job(job, NAME, Cause::Topology(why.into()));
        }
    };
    for (index, domain) in domains.into_iter().enumerate() {
        let mut statement = session.evicting_statement();
        let mut attempt = DomainAttempt {
            queue,
            job,
            freed: FreedNodes::default(),
            is_first: index == 0,
            caches,
        };
        attempt.place_all(&mut statement, domain);
        let is_pipelined = statement.plugins().job_pipelined(statement.view(), job);
        if !is_pipelined && index != 0 {
            statement.discard();
        } else if commit(statement, job) {
            return;
        }
    }
}

/// Returns the HyperNodes to try, widest first.
///
/// # Errors
/// Why there is none.
fn domains(
    session: &SessionState<'_>,
    job: JobId,
    sub_job: Option<usize>,
    under: HyperNodeId,
) -> Result<Vec<HyperNodeId>, String> {
    let purpose = GradientPurpose::Evict { may_suffice: &|_| true };
    let query = GradientQuery { job, sub_job, under, purpose };
    let gradient = session.plugins().gradient(session.view(), query);
    match gradient.problem {
        Some(problem) => Err(problem.text),
        None => Ok(gradient.groups.into_iter().flatten().collect()),
    }
}

/// An attempt to place the job in one domain.
struct DomainAttempt<'a> {
    queue: QueueId,
    job: JobId,
    freed: FreedNodes,
    /// True if the causes are noted.
    is_first: bool,
    caches: &'a mut SearchCaches,
}

impl DomainAttempt<'_> {
    /// Places Pending tasks while the job starves, sub-job by sub-job.
    fn place_all(&mut self, statement: &mut Statement<'_, '_>, domain: HyperNodeId) {
        let mut by_sub_job: BTreeMap<usize, Vec<TaskId>> = BTreeMap::new();
        for task in pending(statement, self.job) {
            by_sub_job.entry(statement.tasks[task].sub_job).or_default().push(task);
        }
        for (sub_job, tasks) in by_sub_job {
            let ids = domains(statement, self.job, Some(sub_job), domain).unwrap_or_default();
            let _ = ids.into_iter().any(|id| self.place_sub_job(statement, sub_job, &tasks, id));
        }
    }

    /// Places tasks of a sub-job, the last one first, in a HyperNode. Returns false if the sub-job
    /// does not become pipelined; then nothing is changed.
    fn place_sub_job(
        &mut self,
        statement: &mut Statement<'_, '_>,
        sub_job: usize,
        tasks: &[TaskId],
        id: HyperNodeId,
    ) -> bool {
        let job = self.job;
        let nodes: BTreeSet<NodeId> =
            statement.info().hyper_nodes[id].nodes.iter().copied().collect();
        let (mark, freed) = (statement.mark(), self.freed.clone());
        for &task in tasks.iter().rev() {
            if !statement.plugins().job_starving(statement.view(), job) {
                break;
            }
            let asked = (self.queue, task);
            let is_placed = place(statement, asked, &mut self.freed, Some(&nodes), self.caches);
            match is_placed || !self.is_first {
                true => statement.outcome().causes.drop_task(),
                false => statement.outcome().causes.end_task(job, NAME),
            }
        }
        let (view, plugins) = (statement.view(), statement.plugins());
        let is_complete = plugins.sub_job_ready(view, job, sub_job)
            || plugins.sub_job_pipelined(view, job, sub_job);
        if !is_complete {
            statement.roll_back(mark);
            self.freed = freed;
        }
        is_complete
    }
}

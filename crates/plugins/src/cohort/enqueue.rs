//! Admission of PodGroups: a group is admitted if it fits the quota, or would fit after evictions.
//! Specification: cohort.md B.5.1 (Q7).

use vc_cohort::{
    AssignmentMode, EvictionTarget, GroupAssessment, GroupId, QuotaDemand, QuotaNode,
    QuotaPreemptor, SearchEnvironment, Slot,
};
use vc_framework::{Admission, PluginSet, SessionView};
use vc_model::{Cluster, Job, JobId, TaskId};

use super::arguments::CohortArguments;
use super::overview::amount_text;
use super::quota_ledger::{QuotaLedger, Reason};
use super::targets::is_candidate;
use crate::rules::min_resources;

/// Returns the demand of a waiting group without its gated pods.
pub(super) fn demand(quota_ledger: &QuotaLedger, job: &Job) -> QuotaDemand {
    let asked = min_resources(job);
    asked.map_or_else(QuotaDemand::default, |asked| quota_ledger.demand(&job.minus_gated(asked)))
}

/// Decides the admission of a job. `QuotaLedger` must show the state of enqueue.
pub(super) fn admission(
    quota_ledger: &mut QuotaLedger,
    (view, plugins): (SessionView<'_>, &PluginSet),
    job: JobId,
    settings: &CohortArguments,
) -> Admission {
    quota_ledger.forget_admission();
    let row = &view.cluster.jobs[job];
    let queue = &view.cluster.queues[row.queue];
    let Some(node) = quota_ledger.leaf(row.queue).filter(|_| queue.is_open()) else {
        return Admission::Reject(None);
    };
    let demand = demand(quota_ledger, row);
    let (mode, found) = quota_ledger.without_reservations(|quota_ledger| {
        let class = quota_ledger.forest().classify(node, &demand, settings.is_fair());
        let found = match class.mode {
            AssignmentMode::Preempt => {
                targets(quota_ledger, (view, plugins), job, (node, &demand), &class, settings)
            }
            AssignmentMode::Fit => Some(Vec::new()),
            AssignmentMode::NoFit => None,
        };
        (class.mode, found)
    });
    let is_without_targets = mode == AssignmentMode::Preempt && found.is_none();
    if let Some(targets) = found.filter(|targets| quota_ledger.has_room(node, &demand, targets)) {
        quota_ledger.note_admission(job, targets);
        return Admission::Permit;
    }
    let why_not = quota_ledger.without_reservation(node, |quota_ledger| {
        why_not(quota_ledger, view.cluster, node, &demand)
    });
    if is_without_targets {
        quota_ledger.reserve(node, job, demand, Reason::Refused);
    }
    Admission::Reject(why_not)
}

/// Counts an admitted group, and no longer the groups that would be evicted for it.
pub(super) fn admit(quota_ledger: &mut QuotaLedger, view: SessionView<'_>, job: JobId) {
    let row = &view.cluster.jobs[job];
    let Some(node) = quota_ledger.leaf(row.queue) else { return };
    let demand = demand(quota_ledger, row);
    let targets = quota_ledger.take_admission(job);
    quota_ledger.admit(job, node, demand, &targets);
}

/// Returns the groups that would be evicted if placement always succeeded. Returns `None` if the
/// search fails, so that the group does not fit.
fn targets(
    quota_ledger: &mut QuotaLedger,
    (view, plugins): (SessionView<'_>, &PluginSet),
    job: JobId,
    (queue, demand): (QuotaNode, &QuotaDemand),
    class: &GroupAssessment,
    settings: &CohortArguments,
) -> Option<Vec<GroupId>> {
    let row = &view.cluster.jobs[job];
    let created_micros = row.pod_group.as_ref().map_or(0, |group| group.created_micros);
    let demand = demand.clone();
    let preemptor = QuotaPreemptor { queue, priority: row.priority, created_micros, demand };
    let mut search = settings.search;
    search.own &= view.info.sides.own;
    search.others &= view.info.sides.others;
    if quota_ledger.is_known_to_fail(&preemptor, &class.need) {
        return None;
    }
    let (groups, jobs) = quota_ledger.split();
    let mut around = AdmissionCandidates { view, plugins, jobs, own: row.queue };
    match search.run(groups, &preemptor, &class.need, &mut around) {
        Ok(found) => Some(found.into_iter().map(|target| target.group).collect()),
        Err(refusal) => {
            quota_ledger.note_failure(&preemptor, &class.need, refusal);
            None
        }
    }
}

/// Restricts a search to groups that the rules of eviction permit (section B.4). Placement always
/// succeeds.
struct AdmissionCandidates<'a> {
    view: SessionView<'a>,
    plugins: &'a PluginSet,
    jobs: &'a [JobId],
    own: vc_model::QueueId,
}

impl AdmissionCandidates<'_> {
    /// Returns the tasks of a group that hold quota.
    fn members(&self, group: GroupId) -> impl Iterator<Item = TaskId> + '_ {
        let job = self.jobs.get(group.index());
        let tasks = job.into_iter().flat_map(|&job| &self.view.cluster.jobs[job].tasks);
        tasks.copied().filter(|&task| self.view.cluster.tasks[task].status.is_allocated())
    }
}

impl SearchEnvironment for AdmissionCandidates<'_> {
    fn may_take(&mut self, taken: &[EvictionTarget], group: GroupId) -> bool {
        let Some(&job) = self.jobs.get(group.index()) else { return false };
        if !is_candidate(self.view.cluster, self.own, job) {
            return false;
        }
        let gone = || taken.iter().flat_map(|target| self.members(target.group)).collect();
        let group: Vec<TaskId> = self.members(group).collect();
        let is_own = self.view.cluster.jobs[job].queue == self.own;
        self.plugins.lets_go(self.view, is_own, &gone, &group)
    }
}

fn why_not(
    quota_ledger: &QuotaLedger,
    cluster: &Cluster,
    node: QuotaNode,
    demand: &QuotaDemand,
) -> Option<String> {
    let forest = quota_ledger.forest();
    let (queue, dims) = (forest.name(node), &cluster.dims);
    let text = |slot: Slot, amount| amount_text(amount, forest.slots().dim(slot), dims);
    let name = |slot: Slot| dims.name(forest.slots().dim(slot));
    let too_large = demand.iter().find(|&(slot, amount)| forest.potential(node, slot) < amount);
    if let Some((slot, amount)) = too_large {
        return Some(format!(
            "insufficient quota for {} in queue {queue}: request {} > maximum capacity {}",
            name(slot),
            text(slot, amount),
            text(slot, forest.potential(node, slot))
        ));
    }
    let (slot, amount) =
        demand.iter().find(|&(slot, amount)| forest.available(node, slot) < amount)?;
    Some(format!(
        "insufficient unused quota for {} in queue {queue}: {} more needed",
        name(slot),
        text(slot, amount - forest.available(node, slot))
    ))
}

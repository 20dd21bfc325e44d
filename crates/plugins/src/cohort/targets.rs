//! Selects the groups that are evicted for a job: assignment mode, then the search with placement
//! tests, or the refusal.
//! Specification: cohort.md B.4 (candidates), B.5.4, B.6, B.8 (why-not).

use vc_cohort::{
    AssignmentMode, Backoff, EvictionTarget, GroupAssessment, GroupId, QuotaDemand, QuotaNode,
    QuotaPreemptor, SearchEnvironment as Asked, SearchRefusal, Slot,
};
use vc_framework::{PreemptionRequest, QuotaRefusal, Surroundings, TargetGroup, Targets};
use vc_model::{Cluster, JobId, QueueId, TaskStatus};

use super::arguments::CohortArguments;
use super::overview::amount_text;
use super::quota_ledger::QuotaLedger;
use super::report_log::{EvictionParties, message};

/// True if no task of the group is in flight, all its tasks that hold quota may be evicted, and its
/// queue gives to others (section B.4). Victim filters are asked elsewhere.
pub(super) fn is_candidate(cluster: &Cluster, own: QueueId, job: JobId) -> bool {
    let row = &cluster.jobs[job];
    let in_flight = [TaskStatus::Allocated, TaskStatus::Pipelined, TaskStatus::Binding];
    if in_flight.iter().any(|&status| 0 < row.counts.of(status)) {
        return false;
    }
    let gives = row.queue == own || cluster.queues[row.queue].reclaimable;
    let may_go = |task| {
        let task: &vc_model::Task = &cluster.tasks[task];
        task.can_be_evicted() || !task.status.is_allocated()
    };
    gives && row.tasks.iter().all(|&task| may_go(task))
}

/// Returns the groups to evict for a job. The list is empty if the job fits without evictions.
pub(super) fn find(
    quota_ledger: &mut QuotaLedger,
    settings: &CohortArguments,
    backoff: &Backoff,
    wanted: &PreemptionRequest<'_>,
    around: &mut dyn Surroundings,
) -> Result<Targets, QuotaRefusal> {
    let view = around.view();
    let row = &view.cluster.jobs[wanted.job];
    let queue = &view.cluster.queues[row.queue];
    let Some(node) = quota_ledger.leaf(row.queue).filter(|_| queue.is_open()) else {
        return refuse("nofit", format!("queue {} takes no jobs", queue.name));
    };
    let group = row.pod_group.as_ref();
    let now = view.now_micros();
    if group.is_some_and(|group| backoff.waits_until(&group.uid, now).is_some()) {
        return refuse("backoff", "it was evicted after it had others evicted".to_owned());
    }
    let preemptor = QuotaPreemptor {
        queue: node,
        priority: row.priority,
        created_micros: group.map_or(0, |group| group.created_micros),
        demand: quota_ledger.demand_of(view.cluster, wanted.tasks),
    };
    let found = quota_ledger.without_reservations(|quota_ledger| {
        quota_ledger.without_claim(wanted.job, node, |quota_ledger| {
            TargetSearch { quota_ledger, settings, wanted, preemptor: &preemptor, around }.run()
        })
    })?;
    let targets: Vec<GroupId> =
        found.groups.iter().filter_map(|group| quota_ledger.group_of(group.job)).collect();
    let has_room = quota_ledger.without_claim(wanted.job, node, |quota_ledger| {
        quota_ledger.has_room(node, &preemptor.demand, &targets)
    });
    match has_room {
        true => Ok(found),
        false => refuse("not_enough", KEPT.to_owned()),
    }
}

/// Message of a job that waits because idle quota is reserved for other queues (A.11 step 3).
const KEPT: &str = "not enough: the idle quota is kept for groups of other queues that wait for it";

fn refuse<T>(cause: &'static str, text: String) -> Result<T, QuotaRefusal> {
    Err(QuotaRefusal { cause, text })
}

struct TargetSearch<'a> {
    quota_ledger: &'a mut QuotaLedger,
    settings: &'a CohortArguments,
    wanted: &'a PreemptionRequest<'a>,
    preemptor: &'a QuotaPreemptor,
    around: &'a mut dyn Surroundings,
}

impl TargetSearch<'_> {
    fn run(self) -> Result<Targets, QuotaRefusal> {
        let QuotaPreemptor { queue, demand, .. } = self.preemptor;
        let class = self.quota_ledger.forest().classify(*queue, demand, self.settings.is_fair());
        if class.mode == AssignmentMode::NoFit {
            return self.no_fit(*queue, demand);
        }
        let sides = self.wanted.sides;
        let mut search = self.settings.search;
        search.own &= sides.own;
        search.others &= sides.others;
        let may_evict =
            (search.own || search.others) && self.quota_ledger.forest().may_evict(*queue);
        if !may_evict && class.mode == AssignmentMode::Preempt {
            return self.why_not(SearchRefusal::NoCandidates, &class, &class.need);
        }
        let placed = self.around.has_place(&[]);
        if placed && class.mode == AssignmentMode::Fit {
            return Ok(Targets::default());
        }
        // Without a placement, nodes are short too, so the whole demand is contested.
        let need: Vec<Slot> = if placed { class.need.clone() } else { demand.slots().collect() };
        // The state differs for a job with an eviction hold, so its failures are not shared.
        let is_alone = self.quota_ledger.has_claim(self.wanted.job);
        let known = || self.quota_ledger.known_failure(self.preemptor, &need);
        if let Some(refusal) = (!is_alone).then(known).flatten() {
            return self.why_not(refusal, &class, &need);
        }
        let own = self.around.view().cluster.jobs[self.wanted.job].queue;
        let (groups, jobs) = self.quota_ledger.split();
        if let Some(by_usage) = self.around.plugins().usage_order(self.around.view()) {
            groups.order_within_queues(|l, r| by_usage(jobs[l.index()], jobs[r.index()]));
        }
        let mut trial = CandidateTrial { jobs, own, around: &mut *self.around };
        let found = search.run(groups, self.preemptor, &need, &mut trial);
        groups.forget_order();
        match found {
            Ok(found) => Ok(self.targets(&found)),
            Err(refusal) => {
                if !is_alone {
                    self.quota_ledger.note_failure(self.preemptor, &need, refusal);
                }
                self.why_not(refusal, &class, &need)
            }
        }
    }

    fn targets(&self, found: &[EvictionTarget]) -> Targets {
        let cluster = self.around.view().cluster;
        let group = |target: &EvictionTarget| {
            let job = self.quota_ledger.job_of(target.group)?;
            let (forest, preemptor) = (self.quota_ledger.forest(), self.wanted.job);
            let of = EvictionParties { cluster, forest, preemptor, own: self.preemptor.queue };
            let message = message(&of, job, self.quota_ledger.node(cluster, job)?, target.reason);
            Some(TargetGroup { job, reason: target.reason.as_str(), message: message.into() })
        };
        Targets { groups: found.iter().filter_map(group).collect() }
    }

    fn no_fit<T>(&self, queue: QuotaNode, demand: &QuotaDemand) -> Result<T, QuotaRefusal> {
        let forest = self.quota_ledger.forest();
        let name = forest.name(queue);
        let beyond = |(slot, amount)| forest.potential(queue, slot) < amount;
        match demand.iter().find(|&entry| beyond(entry)) {
            Some((slot, _)) => {
                let resource = self.resource(slot);
                refuse("nofit", format!("more {resource} than queue {name} can ever have"))
            }
            None => refuse("nofit", format!("larger than nominal quota of queue {name}")),
        }
    }

    fn resource(&self, slot: Slot) -> &str {
        let dim = self.quota_ledger.forest().slots().dim(slot);
        self.around.view().cluster.dims.name(dim)
    }

    fn why_not(
        &self,
        refusal: SearchRefusal,
        class: &GroupAssessment,
        need: &[Slot],
    ) -> Result<Targets, QuotaRefusal> {
        let cluster = self.around.view().cluster;
        match refusal {
            SearchRefusal::NoCandidates
                if !self.quota_ledger.forest().may_evict(self.preemptor.queue) =>
            {
                refuse("no_candidates", "queue policy Never".to_owned())
            }
            SearchRefusal::NoCandidates => {
                let contested = if class.need.is_empty() { need } else { &class.need };
                let names: Vec<&str> = contested.iter().map(|&slot| self.resource(slot)).collect();
                let names = names.join(", ");
                refuse("no_candidates", format!("no queue is over its quota in {names}"))
            }
            SearchRefusal::NotEnough(None) => refuse(
                "not_enough",
                "not enough: the candidates that may go leave too little".into(),
            ),
            SearchRefusal::NotEnough(Some(short)) => {
                let dim = self.quota_ledger.forest().slots().dim(short.slot);
                let amount = amount_text(short.amount, dim, &cluster.dims);
                let (resource, count) = (self.resource(short.slot), short.n_candidates);
                let text = format!(
                    "not enough: {resource} short by {amount} with all {count} candidates gone"
                );
                refuse("not_enough", text)
            }
            SearchRefusal::Unplaceable => {
                refuse("unplaceable", "quota would do, but no placement".to_owned())
            }
            SearchRefusal::WouldReturn(group) => {
                let key =
                    self.quota_ledger.job_of(group).map(|job| cluster.jobs[job].key.to_string());
                let key = key.unwrap_or_default();
                refuse("would_return", format!("would be taken back by {key}"))
            }
        }
    }
}

/// Passes the calls of a search to [`Surroundings`], with jobs in place of groups.
struct CandidateTrial<'a> {
    jobs: &'a [JobId],
    own: QueueId,
    around: &'a mut dyn Surroundings,
}

impl CandidateTrial<'_> {
    fn names(&self, taken: &[EvictionTarget]) -> Vec<JobId> {
        let job = |target: &EvictionTarget| self.jobs.get(target.group.index()).copied();
        taken.iter().filter_map(job).collect()
    }
}

impl Asked for CandidateTrial<'_> {
    fn may_take(&mut self, taken: &[EvictionTarget], group: GroupId) -> bool {
        let Some(&job) = self.jobs.get(group.index()) else { return false };
        is_candidate(self.around.view().cluster, self.own, job) && {
            let taken = self.names(taken);
            self.around.may_take(&taken, job)
        }
    }

    fn has_place(&mut self, taken: &[EvictionTarget]) -> bool {
        let taken = self.names(taken);
        self.around.has_place(&taken)
    }
}

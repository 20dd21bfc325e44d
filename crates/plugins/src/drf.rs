//! Plugin `drf`: dominant resource fairness. The job with the smallest share is served first, and
//! preemption moves jobs toward equal shares. With `enableHierarchy` it also orders queues and
//! reclaims between them.
//! Specification: plugins-jobs-queues.md 4, D9.

mod hierarchy;

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use vc_conf::{QueueRule, Switch};
use vc_framework::{
    CacheKeys, Depends, GangEviction, Inputs, Outbox, Plugin, PluginEntry, Points, QueueUsageStamp,
    Records, ReportLog, Sample, SessionView, VictimVote,
};
use vc_model::reads::{self, Read};
use vc_model::{Column, JobId, QueueId, TaskId};
use vc_resource::{Fractional, Resource};

use crate::rules::{dominant_share, is_in_session, session_job};
use hierarchy::Tree;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("drf", |option, _| {
    let hierarchy = option.switches.on(Switch::Hierarchy);
    Box::new(Drf { tree: hierarchy.then(Mutex::default), ..Drf::default() })
})
.queue_rule(QueueRule::Shares { switch: Switch::Hierarchy, excludes: "proportion" });

const FLAT: Points = Points::JOB_ORDER.and(Points::PREEMPTABLE).and(Points::EVENT_HANDLERS);
/// Extension points with `enableHierarchy`. D3: UnifiedEvictable protects shares.
const HIERARCHICAL: Points =
    FLAT.and(Points::QUEUE_ORDER).and(Points::RECLAIMABLE).and(Points::UNIFIED_EVICTABLE);

/// Largest difference at which two shares count as equal for preemption.
const SHARE_DELTA: f64 = 1e-6;

#[derive(Default)]
struct Drf {
    /// Sum of allocatable over the nodes of the session.
    total: Fractional,
    /// True if `total` differs from the previous session.
    is_rescaled: bool,
    /// Shares of the jobs that hold something.
    jobs: Column<JobId, JobShare>,
    /// The queue hierarchy; `None` without `enableHierarchy`. It is behind a lock because rules
    /// simulate changes in it.
    tree: Option<Mutex<Tree>>,
    /// The shares that were last written to metrics.
    reported: ReportLog<JobId, f64>,
}

/// The share of a job; by default that of a job that holds nothing.
#[derive(Clone, Default)]
struct JobShare {
    /// Sum of the allocated tasks and, within the session, the pipelined ones.
    allocated: Arc<Resource>,
    share: f64,
}

#[derive(Clone, Copy)]
enum ShareChange {
    Add,
    Subtract,
}

/// The state that each extension point reads.
const FLAT_READS: &[(Points, Inputs)] = &[
    (Points::JOB_ORDER, Inputs::JOB_COUNTS.and(Inputs::CLUSTER_TOTAL)),
    (Points::PREEMPTABLE, Inputs::POD_SIGNATURE.and(Inputs::JOB_COUNTS).and(VICTIMS)),
    (Points::EVENT_HANDLERS, Inputs::NONE),
];
/// Additional reads with `enableHierarchy`.
const TREE_READS: &[(Points, Inputs)] = &[
    (Points::QUEUE_ORDER, TREE.and(Inputs::QUEUE_OBJECT).and(Inputs::CLUSTER_TOTAL)),
    (Points::RECLAIMABLE, Inputs::POD_SHAPE.and(Inputs::JOB_ROW).and(BRANCHES).and(VICTIMS)),
    (Points::UNIFIED_EVICTABLE, Inputs::JOB_ROW.and(TREE).and(VICTIMS)),
];
/// The parts of the tree above the reclaimer and above a candidate. What the whole cluster has left is
/// part of [`CacheKeys::own_queue_usage`].
const BRANCHES: Inputs =
    Inputs::JOB_COUNTS.and(Inputs::OWN_QUEUE_USAGE).and(Inputs::CANDIDATE_QUEUE_USAGE);
const VICTIMS: Inputs = Inputs::CANDIDATE_ROW.and(Inputs::QUEUE_OBJECT).and(Inputs::CLUSTER_TOTAL);
const TREE: Inputs = BRANCHES.and(Inputs::OTHER_QUEUE_USAGE);

impl Plugin for Drf {
    fn points(&self) -> Points {
        if self.tree.is_some() { HIERARCHICAL } else { FLAT }
    }

    fn depends(&self) -> Depends {
        match self.tree.is_some() {
            true => Depends::of(&[FLAT_READS, TREE_READS].concat()),
            false => Depends::of(FLAT_READS),
        }
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        self.tree.is_some().then_some(self as &dyn CacheKeys)
    }

    /// Keeps shares across sessions. Only jobs that changed are recomputed, unless the size of the
    /// cluster has changed.
    fn open(&mut self, view: SessionView<'_>) {
        self.is_rescaled = self.total != *view.total();
        match view.info.active_jobs.changed().filter(|_| !self.is_rescaled) {
            Some(changed) => changed.iter().for_each(|&job| self.enter(view, job)),
            None => {
                self.total = view.total().clone();
                self.jobs = Column::default();
                view.all_jobs_by_id().for_each(|job| self.enter(view, job));
            }
        }
        if let Some(tree) = &mut self.tree {
            // A poisoned lock is safe to use: the tree is built anew.
            let tree = tree.get_mut().unwrap_or_else(PoisonError::into_inner);
            *tree = Tree::of_session(view, tree);
        }
    }

    fn close(&mut self, view: SessionView<'_>, _records: &Records, out: &mut Outbox) {
        for &job in view.info.active_jobs.gone() {
            self.reported.forget(job);
        }
        match self.is_rescaled {
            true => view.all_jobs().for_each(|job| self.tell(view, job, out)),
            false => view.info.to_close.iter().for_each(|&job| self.tell(view, job, out)),
        }
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.change(view, task, ShareChange::Add);
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.change(view, task, ShareChange::Subtract);
    }

    fn job_order(&self, _view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        self.share(l).total_cmp(&self.share(r))
    }

    fn order_value(&self, _view: SessionView<'_>, job: JobId) -> Option<String> {
        Some(format!("{:.2}", self.share(job)))
    }

    fn preemptable(
        &self,
        view: SessionView<'_>,
        preemptor: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        let Some((own, _)) = session_job(view.cluster, preemptor) else {
            return VictimVote::Victims(Vec::new());
        };
        let mut with_preemptor = self.allocated(own);
        with_preemptor.add(view.cluster.request(preemptor));
        let own_share = dominant_share(&with_preemptor, &self.total);
        let mut left: FxHashMap<JobId, Resource> = FxHashMap::default();
        let mut may_go = |&task: &TaskId| {
            let Some((job, _)) = session_job(view.cluster, task) else {
                return false;
            };
            let left = left.entry(job).or_insert_with(|| self.allocated(job));
            // The request is subtracted even if the candidate is refused (section 4.2).
            left.sub(view.cluster.request(task));
            let share = dominant_share(left, &self.total);
            own_share < share || (own_share - share).abs() <= SHARE_DELTA
        };
        VictimVote::Victims(candidates.iter().copied().filter(|task| may_go(task)).collect())
    }

    fn queue_order(&self, _view: SessionView<'_>, l: QueueId, r: QueueId) -> Ordering {
        self.tree().map_or(Ordering::Equal, |tree| tree.compare(l, r))
    }

    fn reclaimable(
        &self,
        view: SessionView<'_>,
        reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        let Some(mut tree) = self.branches() else {
            return VictimVote::Abstain;
        };
        let Some((job, _)) = session_job(view.cluster, reclaimer) else {
            return VictimVote::Victims(Vec::new());
        };
        let request = view.cluster.request(reclaimer);
        VictimVote::Victims(tree.reclaimable(view, job, request, candidates))
    }

    fn unified_evictable(
        &self,
        view: SessionView<'_>,
        initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> VictimVote {
        let Some(mut tree) = self.tree() else {
            return VictimVote::Abstain;
        };
        match kind {
            GangEviction::Preempt => VictimVote::Victims(candidates.to_vec()),
            GangEviction::Reclaim => {
                let request = &view.cluster.jobs[initiator].pending_request;
                VictimVote::Victims(tree.reclaimable(view, initiator, request, candidates))
            }
        }
    }
}

impl CacheKeys for Drf {
    fn has_total_order_key(&self, _view: SessionView<'_>, queue: QueueId) -> bool {
        self.branches().is_some_and(|tree| tree.is_deepest(queue))
    }

    fn queue_order_revision(&self) -> u64 {
        self.branches().map_or(0, |tree| tree.left_revision())
    }

    fn queue_usage(&self, _view: SessionView<'_>, queue: QueueId) -> Option<QueueUsageStamp> {
        Some(self.branches()?.queue_usage(queue))
    }

    fn queues_that_move(&self, queue: QueueId) -> Vec<QueueId> {
        self.branches().map_or_else(Vec::new, |tree| tree.queues_beside(queue).to_vec())
    }

    fn own_queue_usage(&self, view: SessionView<'_>, task: TaskId) -> Option<QueueUsageStamp> {
        let (job, of) = session_job(view.cluster, task)?;
        self.branches()?.own_usage((job, of.queue, view.cluster.request(task)))
    }
}

impl Drf {
    fn tree(&self) -> Option<MutexGuard<'_, Tree>> {
        reads::note(Read::QueueUsages);
        self.branches()
    }

    /// The tree for questions about the queue of a pod and about those of candidates.
    fn branches(&self) -> Option<MutexGuard<'_, Tree>> {
        // A poisoned lock is safe to use: the next session rebuilds the tree.
        Some(self.tree.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn enter(&mut self, view: SessionView<'_>, id: JobId) {
        let job = view.cluster.jobs.get(id).filter(|job| is_in_session(view.cluster, job));
        let Some(job) = job.filter(|job| !job.allocated.is_all_zero()) else {
            self.jobs.take(id);
            return;
        };
        // Shares the amounts of `ActiveJobs`. `Arc::make_mut` copies them if the job changes in
        // this session.
        let listed = view.info.active_jobs.allocated_at_open(id);
        let same = listed.filter(|listed| ***listed == job.allocated);
        let allocated = same.cloned().unwrap_or_else(|| Arc::new(job.allocated.clone()));
        let share = dominant_share(&allocated, &self.total);
        *self.jobs.place(id) = Some(JobShare { allocated, share });
    }

    fn tell(&mut self, view: SessionView<'_>, id: JobId, out: &mut Outbox) {
        let (job, share) = (&view.cluster.jobs[id], self.share(id));
        // A pod without PodGroup has no series of its own.
        if !job.bare && self.reported.record_if_new(id, share) {
            out.samples.push(Sample::JobShare { job: job.key.clone(), share });
        }
    }

    fn known(&self, job: JobId) -> Option<&JobShare> {
        self.jobs.get(job)
    }

    fn allocated(&self, job: JobId) -> Resource {
        self.known(job).map_or_else(Resource::default, |job| Resource::clone(&job.allocated))
    }

    fn share(&self, job: JobId) -> f64 {
        self.known(job).map_or(0.0, |job| job.share)
    }

    fn change(&mut self, view: SessionView<'_>, task: TaskId, change: ShareChange) {
        let Some((id, _)) = session_job(view.cluster, task) else {
            return;
        };
        let job = self.jobs.place(id).get_or_insert_default();
        let request = view.cluster.request(task);
        change.apply(Arc::make_mut(&mut job.allocated), request);
        job.share = dominant_share(&job.allocated, &self.total);
        if let Some(mut tree) = self.tree() {
            tree.follow(id, request, change);
        }
    }
}

impl ShareChange {
    /// Returns the change that takes this one back.
    fn undone(self) -> Self {
        match self {
            ShareChange::Add => ShareChange::Subtract,
            ShareChange::Subtract => ShareChange::Add,
        }
    }

    fn apply(self, amount: &mut Resource, by: &Resource) {
        match self {
            ShareChange::Add => amount.add(by),
            ShareChange::Subtract => amount.sub(by),
        }
    }
}

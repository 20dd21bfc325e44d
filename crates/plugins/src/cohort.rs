//! Plugin `cohort`: quota between queues as in Kueue. Queues borrow and lend nominal quota in
//! trees. Placement and reclaim are decided together.
//! Specification: cohort.md Part B.

mod arguments;
mod enqueue;
mod failures;
mod gauges;
mod limits;
mod overview;
mod published;
mod queue_ranking;
mod queues;
mod quota_ledger;
mod report_log;
mod targets;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vc_cohort::{Backoff, QueueSpec, QuotaForest, QuotaNode, Slots, TreeRules};
use vc_conf::{EnqueueVote, PluginOption, QueueRule, Warning};
use vc_framework::{
    Admission, CacheKeys, Clock, Depends, EarlierMemory, Inputs, Notice, Outbox, Plugin,
    PluginEntry, PluginMemory, PluginSet, Points, PreemptionRequest, QueueHeads, QueueLimit,
    QueueShare, QuotaPlugin, QuotaRefusal, QuotaUse, Records, SessionView, Surroundings, Targets,
};
use vc_model::{JobId, QueueId, TaskId};
use vc_resource::Dim;

use arguments::CohortArguments;
use queue_ranking::{NextQueueQuery, QueueRanking};
use queues::QueueSpecProblem;
use quota_ledger::{QuotaLedger, Reason};
use report_log::CohortReportLog;

pub(crate) const ENTRY: PluginEntry =
    PluginEntry::new("cohort", |option, warnings| Box::new(cohort(option, warnings)))
        .arguments(arguments::ALL)
        .enqueue_vote(EnqueueVote::CountsEvictions)
        .queue_rule(QueueRule::ExclusiveQuota);

const POINTS: Points = Points::QUEUE_ORDER
    .and(Points::NEXT_QUEUE)
    .and(Points::ALLOCATABLE)
    .and(Points::JOB_ENQUEUEABLE)
    .and(Points::JOB_ENQUEUED)
    .and(Points::PREEMPT_TARGETS)
    .and(Points::EVENT_HANDLERS);

struct Cohort {
    settings: CohortArguments,
    /// The quota trees, built from the queues of the last session. `None` if they were never built.
    trees: Option<QuotaTrees>,
    /// The quota in use. It is behind a lock because read-only rules simulate changes in it and
    /// revert them.
    quota_ledger: Mutex<QuotaLedger>,
    /// Ranking of the queue heads that an action passed last.
    ranking: Mutex<QueueRanking>,
    backoff: Backoff,
    reported: CohortReportLog,
    gauges: gauges::CohortGauges,
    published: published::Published,
    /// True once the warning that no queue permits evictions was considered.
    never_reported: bool,
}

/// The quota trees with the input from which they were built.
struct QuotaTrees {
    /// [`vc_model::Cluster::queue_version`] for which the trees are valid.
    version: u64,
    specs: Vec<QueueSpec>,
    rules: TreeRules,
    slots: Slots,
    /// Problems found while the annotations were read.
    unreadable: Vec<QueueSpecProblem>,
    built: QuotaForest,
    problems: BTreeSet<QueueSpecProblem>,
}

fn cohort(option: &PluginOption, warnings: &mut Vec<Warning>) -> Cohort {
    let settings = CohortArguments::new(option, warnings);
    Cohort {
        backoff: Backoff::new(settings.backoff_micros),
        settings,
        trees: None,
        quota_ledger: Mutex::new(QuotaLedger::empty()),
        ranking: Mutex::default(),
        reported: CohortReportLog::default(),
        gauges: gauges::CohortGauges::default(),
        published: published::Published::default(),
        never_reported: false,
    }
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::QUEUE_ORDER.and(Points::NEXT_QUEUE), LINE),
    (Points::ALLOCATABLE, FOREST.and(Inputs::JOB_ROW).and(Inputs::POD_SHAPE).and(Inputs::IDENTITY)),
    (Points::JOB_ENQUEUEABLE, Inputs::EVERYTHING),
    (Points::PREEMPT_TARGETS, Inputs::EVERYTHING),
    (Points::EVENT_HANDLERS, Inputs::NONE),
];

/// The quota trees and their usage.
const FOREST: Inputs = Inputs::QUEUE_OBJECT
    .and(Inputs::CLUSTER_TOTAL)
    .and(Inputs::OWN_QUEUE_USAGE)
    .and(Inputs::OTHER_QUEUE_USAGE);
/// The heads of the queues and what they lack.
const LINE: Inputs = FOREST
    .and(Inputs::JOB_ROW)
    .and(Inputs::JOB_COUNTS)
    .and(Inputs::IDENTITY)
    .and(Inputs::OTHER_PODS);

impl Plugin for Cohort {
    fn points(&self) -> Points {
        POINTS
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    fn as_quota(&self) -> Option<&dyn QuotaPlugin> {
        Some(self)
    }

    fn as_quota_mut(&mut self) -> Option<&mut dyn QuotaPlugin> {
        Some(self)
    }

    /// Returns the backoff (jobs in backoff stay there under a new configuration, section B.7), what is
    /// reported, and when shares were written.
    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        let reported = self.reported.problems.clone();
        Some(Box::new((self.backoff.clone(), reported, self.published.clone())))
    }

    fn take_over(&mut self, memory: EarlierMemory) {
        let Some((backoff, reported, published)) = memory.read() else { return };
        self.backoff = Backoff::with_first(backoff, self.settings.backoff_micros);
        (self.reported.problems, self.published) = (reported, published);
    }

    fn open(&mut self, view: SessionView<'_>) {
        let is_grown = self.grow(view);
        let Some(trees) = &self.trees else { return };
        let quota_ledger = own(&mut self.quota_ledger);
        match view.info.active_jobs.changed().filter(|_| !is_grown) {
            Some(changed) => quota_ledger.reopen(view, changed),
            None => *quota_ledger = QuotaLedger::open(view, &trees.built),
        }
        *own(&mut self.ranking) = QueueRanking::default();
    }

    fn close(&mut self, view: SessionView<'_>, _records: &Records, out: &mut Outbox) {
        let quota_ledger = own(&mut self.quota_ledger);
        quota_ledger.leave_ledger();
        quota_ledger.drop_reservations(|_| true);
        self.tell_queues(view, out);
        self.reported.close(view, &mut self.backoff, out);
        let quota_ledger = own(&mut self.quota_ledger);
        self.gauges.tell(view, quota_ledger, &self.settings, out);
        let period = self.settings.share_period_micros;
        if self.settings.is_fair() && 0 < period {
            self.published.write(view, quota_ledger, period, out);
        }
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        own(&mut self.quota_ledger).allocated(view.cluster, task);
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        own(&mut self.quota_ledger).deallocated(view.cluster, task);
    }

    fn queue_order(&self, view: SessionView<'_>, l: QueueId, r: QueueId) -> Ordering {
        let mut quota_ledger = lock(&self.quota_ledger);
        let (Some(node_l), Some(node_r)) = (quota_ledger.leaf(l), quota_ledger.leaf(r)) else {
            return quota_ledger.leaf(r).is_some().cmp(&quota_ledger.leaf(l).is_some());
        };
        if l == r {
            return Ordering::Equal;
        }
        debug_assert!(view.cluster.queues[l].present, "it has a node");
        let ranking = lock(&self.ranking);
        let pair = [ranking.head(l, node_l), ranking.head(r, node_r)];
        match quota_ledger.groups().next_head(&pair, self.settings.is_fair()) {
            Some(0) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }

    fn allocatable(&self, view: SessionView<'_>, queue: QueueId, task: TaskId) -> bool {
        let mut quota_ledger = lock(&self.quota_ledger);
        let Some(node) = quota_ledger.leaf(queue) else { return false };
        view.cluster.queues[queue].is_open()
            && lacks(&mut quota_ledger, view, node, task).is_empty()
    }

    fn allocatable_lacks(&self, view: SessionView<'_>, queue: QueueId, task: TaskId) -> Vec<Dim> {
        let mut quota_ledger = lock(&self.quota_ledger);
        let node = quota_ledger.leaf(queue).filter(|_| view.cluster.queues[queue].is_open());
        node.map_or_else(Vec::new, |node| lacks(&mut quota_ledger, view, node, task))
    }

    fn queue_limit(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        tasks: &[TaskId],
    ) -> Option<QueueLimit> {
        limits::of_tasks(&mut lock(&self.quota_ledger), view, queue, tasks)
    }

    fn admission_limit(&self, view: SessionView<'_>, job: JobId) -> Option<QueueLimit> {
        limits::of_admission(&mut lock(&self.quota_ledger), view, job)
    }

    fn job_enqueued(&mut self, view: SessionView<'_>, job: JobId) {
        let quota_ledger = own(&mut self.quota_ledger);
        quota_ledger.enter_ledger(view);
        enqueue::admit(quota_ledger, view, job);
    }
}

impl CacheKeys for Cohort {
    fn clock(&self, view: SessionView<'_>) -> Clock {
        if self.settings.is_fair() && 0 < self.settings.share_period_micros {
            return Clock::Reads;
        }
        let next = self.backoff.next_until(view.now_micros());
        next.map_or(Clock::Ignores, Clock::Until)
    }

    /// True if an eviction hold keeps quota for the job of the task.
    fn has_own_state(&self, view: SessionView<'_>, task: TaskId) -> bool {
        view.cluster.tasks[task].job.is_some_and(|job| lock(&self.quota_ledger).has_claim(job))
    }
}

impl QuotaPlugin for Cohort {
    fn on_notice(&mut self, view: SessionView<'_>, notice: &Notice<'_>) {
        let quota_ledger = own(&mut self.quota_ledger);
        match *notice {
            Notice::NotPlaced { job, tasks } => {
                reserve(
                    quota_ledger,
                    view,
                    (job, tasks),
                    self.settings.is_fair(),
                    Reason::NotPlaced,
                );
            }
            Notice::MayNotPreempt { job, tasks } => {
                reserve(quota_ledger, view, (job, tasks), self.settings.is_fair(), |_| {
                    Reason::Refused
                });
            }
            Notice::AllocateEnds => {
                quota_ledger.drop_reservations(|reason| reason != Reason::Refused);
            }
            Notice::EvictionHoldEnds(job) => quota_ledger.end_eviction_hold(job),
            Notice::Preempted { job, groups } => self.reported.preempted(view, job, groups),
        }
    }

    fn next_queue(
        &self,
        view: SessionView<'_>,
        heads: &QueueHeads<'_>,
        wanted: &dyn Fn(JobId) -> Vec<TaskId>,
    ) -> Option<QueueId> {
        let is_fair = self.settings.is_fair();
        let mut asked =
            NextQueueQuery { quota_ledger: &mut lock(&self.quota_ledger), view, wanted, is_fair };
        lock(&self.ranking).next(&mut asked, heads)
    }

    fn job_enqueueable_among(
        &self,
        view: SessionView<'_>,
        job: JobId,
        plugins: &PluginSet,
    ) -> Admission {
        let mut quota_ledger = lock(&self.quota_ledger);
        quota_ledger.enter_ledger(view);
        enqueue::admission(&mut quota_ledger, (view, plugins), job, &self.settings)
    }

    fn preempt_targets(
        &mut self,
        wanted: &PreemptionRequest<'_>,
        around: &mut dyn Surroundings,
    ) -> Result<Targets, QuotaRefusal> {
        let quota_ledger = own(&mut self.quota_ledger);
        quota_ledger.leave_ledger();
        quota_ledger.drop_reservations(|reason| reason == Reason::HasTargets);
        let found = targets::find(quota_ledger, &self.settings, &self.backoff, wanted, around);
        if let Err(refusal) = &found {
            let waits = (wanted.job, wanted.tasks);
            reserve(quota_ledger, around.view(), waits, self.settings.is_fair(), |_| {
                Reason::Refused
            });
            let cluster = around.view().cluster;
            let queue = &cluster.queues[cluster.jobs[wanted.job].queue].name;
            self.gauges.refused(queue, refusal.cause);
        }
        found
    }

    fn queue_share(&self, _view: SessionView<'_>, queue: QueueId) -> Option<QueueShare> {
        let mut quota_ledger = lock(&self.quota_ledger);
        quota_ledger.leave_ledger();
        let node = quota_ledger.role(queue).node()?;
        Some(
            quota_ledger.without_reservations(|quota_ledger| {
                gauges::queue_share(quota_ledger.forest(), node)
            }),
        )
    }

    fn quota_use(&self, view: SessionView<'_>) -> Vec<QuotaUse> {
        let mut quota_ledger = lock(&self.quota_ledger);
        quota_ledger.leave_ledger();
        let is_fair = self.settings.is_fair();
        quota_ledger.without_reservations(|quota_ledger| {
            overview::quota_use(view, quota_ledger.forest(), is_fair)
        })
    }
}

impl Cohort {
    /// Rebuilds the trees if their input has changed. Returns true if `self.trees` may have been
    /// replaced.
    fn grow(&mut self, view: SessionView<'_>) -> bool {
        let version = view.cluster.queue_version();
        let slots = queues::slots(view.cluster);
        let owns_cluster = self.settings.root_owns_cluster;
        let cluster = owns_cluster.then(|| queues::of_cluster(view, &slots));
        let rules = TreeRules { without_root: self.settings.without_root, cluster };
        let on_same = |trees: &&mut QuotaTrees| trees.rules == rules && trees.slots == slots;
        let mut known = self.trees.as_mut().filter(on_same);
        if known.as_ref().is_some_and(|trees| trees.version == version) {
            return false;
        }
        let mut unreadable = Vec::new();
        let specs = queues::specs(view, &slots, &self.settings, &mut unreadable);
        let is_same =
            |trees: &&mut &mut QuotaTrees| trees.specs == specs && trees.unreadable == unreadable;
        if let Some(trees) = known.as_mut().filter(is_same) {
            trees.version = version;
            return false;
        }
        match vc_cohort::build(slots.clone(), &specs, &rules) {
            Ok(built) => {
                let mut problems: BTreeSet<QueueSpecProblem> = unreadable.iter().cloned().collect();
                problems.extend(queues::faults(&view.cluster.dims, &slots, &specs, &built));
                let trees =
                    QuotaTrees { version, specs, rules, slots, unreadable, built, problems };
                self.trees = Some(trees);
            }
            Err(error) => tracing::error!("the quota trees stay as they are: {error}"),
        }
        self.gauges.forget_nodes();
        true
    }

    /// Reports problems of the queues, and once that no queue permits evictions.
    fn tell_queues(&mut self, view: SessionView<'_>, out: &mut Outbox) {
        let Some(trees) = &self.trees else { return };
        self.reported.queues(view, &trees.problems, out);
        if !self.never_reported && !view.info.queues.is_empty() {
            self.never_reported = true;
            let sides = view.info.sides;
            let forest = &trees.built.forest;
            let may = |node| forest.may_evict(node);
            if (sides.own || sides.others) && !forest.nodes().any(may) {
                out.warnings.push(NEVER.to_owned());
            }
        }
    }
}

/// Warning, once per configuration, that preempt and reclaim have no effect (section B.1).
const NEVER: &str = "cohort: every queue says Never: nobody is ever evicted for quota\n\
    hint: set withinClusterQueue or reclaimWithinCohort, as argument or as annotation of queues";

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own<T>(of: &mut Mutex<T>) -> &mut T {
    of.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the resources of which the queue has too little for the task (section B.5.3). Quota
/// reserved for the queue or held for the task's job counts as free.
fn lacks(
    quota_ledger: &mut QuotaLedger,
    view: SessionView<'_>,
    node: QuotaNode,
    task: TaskId,
) -> Vec<Dim> {
    quota_ledger.leave_ledger();
    let demand = quota_ledger.demand(view.cluster.request(task));
    let lacking = |quota_ledger: &mut QuotaLedger| {
        let forest = quota_ledger.forest();
        let short = demand.iter().filter(|&(slot, amount)| forest.available(node, slot) < amount);
        short.map(|(slot, _)| forest.slots().dim(slot)).collect()
    };
    quota_ledger.without_reservation(node, |quota_ledger| match view.cluster.tasks[task].job {
        Some(job) => quota_ledger.without_claim(job, node, lacking),
        None => lacking(quota_ledger),
    })
}

/// Reserves quota for the first job of a queue that waits for other jobs to end (A.11 step 3).
/// `reason` receives the borrowing level of the job.
fn reserve(
    quota_ledger: &mut QuotaLedger,
    view: SessionView<'_>,
    (job, tasks): (JobId, &[TaskId]),
    is_fair: bool,
    reason: impl Fn(u32) -> Reason,
) {
    use vc_cohort::AssignmentMode;
    let Some(node) = quota_ledger.leaf(view.cluster.jobs[job].queue) else { return };
    if quota_ledger.has_reserved(node) || tasks.is_empty() {
        return;
    }
    quota_ledger.leave_ledger();
    let demand = quota_ledger.demand_of(view.cluster, tasks);
    let class = quota_ledger.without_reservations(|quota_ledger| {
        quota_ledger.without_claim(job, node, |quota_ledger| {
            quota_ledger.forest().classify(node, &demand, is_fair)
        })
    });
    if class.mode == AssignmentMode::Preempt {
        quota_ledger.reserve(node, job, demand, reason(class.level));
    }
}

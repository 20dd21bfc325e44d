//! Dominant resource fairness: the job with the smallest share first, preemption toward equal
//! shares; with `enableHierarchy` also order and reclaim between queues. Specification:
//! plugins-jobs-queues.md 4, D9.

mod hierarchy;

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use vc_conf::Switch;
use vc_framework::{
    Ask, Clock, GangEviction, Latest, Outbox, Plugin, PluginEntry, Points, Records, Sample, Verdict,
};
use vc_model::{JobId, QueueId, TaskId};
use vc_resource::{Fractional, Resource};

use crate::rules::{dominant_share, is_in_session, session_job};
use hierarchy::Tree;

pub(crate) const ENTRY: PluginEntry = PluginEntry {
    name: "drf",
    build: |option, _| {
        let hierarchy = option.switches.on(Switch::Hierarchy);
        Box::new(Drf { tree: hierarchy.then(Mutex::default), ..Drf::default() })
    },
};

const FLAT: Points = Points::JOB_ORDER.and(Points::PREEMPTABLE).and(Points::EVENT_HANDLERS);
/// UnifiedEvictable is D3.
const HIERARCHICAL: Points =
    FLAT.and(Points::QUEUE_ORDER).and(Points::RECLAIMABLE).and(Points::UNIFIED_EVICTABLE);

/// Shares that differ by no more are equal for preemption.
const SHARE_DELTA: f64 = 1e-6;

#[derive(Default)]
struct Drf {
    /// Σ allocatable of the session.
    total: Fractional,
    /// It is another than in the session before.
    is_rescaled: bool,
    /// Looked up only, never walked.
    jobs: FxHashMap<JobId, JobShare>,
    /// With `enableHierarchy`; behind a lock, because what would be is tried out in it.
    tree: Option<Mutex<Tree>>,
    /// What was handed out for metrics.
    told: Latest<JobId, f64>,
}

struct JobShare {
    /// Allocated and, within the session, Pipelined tasks.
    allocated: Arc<Resource>,
    share: f64,
}

#[derive(Clone, Copy)]
enum Change {
    Add,
    Subtract,
}

impl Plugin for Drf {
    fn points(&self) -> Points {
        if self.tree.is_some() { HIERARCHICAL } else { FLAT }
    }

    fn eases_by_evictions(&self) -> bool {
        true
    }

    fn clock(&self, _ask: Ask<'_>) -> Clock {
        Clock::Ignores
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    /// The tree divides among jobs by their place in it.
    fn reads_jobs(&self, _ask: Ask<'_>) -> bool {
        self.tree.is_some()
    }

    /// Shares are kept from session to session: only those of jobs that changed are new, unless the
    /// cluster has become larger or smaller.
    fn open(&mut self, ask: Ask<'_>) {
        self.is_rescaled = self.total != ask.facts.total;
        match ask.facts.roster.changed().filter(|_| !self.is_rescaled) {
            Some(changed) => changed.iter().for_each(|&job| self.enter(ask, job)),
            None => {
                self.total = ask.facts.total.clone();
                self.jobs.clear();
                self.jobs.reserve(ask.facts.roster.n_jobs());
                ask.all_jobs().for_each(|job| self.enter(ask, job));
            }
        }
        if let Some(tree) = &mut self.tree {
            *tree = Mutex::new(Tree::of_session(ask));
        }
    }

    fn close(&mut self, ask: Ask<'_>, _records: &Records, out: &mut Outbox) {
        for &job in ask.facts.roster.gone() {
            self.told.forget(job);
        }
        match self.is_rescaled {
            true => ask.all_jobs().for_each(|job| self.tell(ask, job, out)),
            false => ask.facts.to_close.iter().for_each(|&job| self.tell(ask, job, out)),
        }
    }

    fn on_allocate(&mut self, ask: Ask<'_>, task: TaskId) {
        self.change(ask, task, Change::Add);
    }

    fn on_deallocate(&mut self, ask: Ask<'_>, task: TaskId) {
        self.change(ask, task, Change::Subtract);
    }

    fn job_order(&self, _ask: Ask<'_>, l: JobId, r: JobId) -> Ordering {
        self.share(l).total_cmp(&self.share(r))
    }

    fn preemptable(&self, ask: Ask<'_>, preemptor: TaskId, candidates: &[TaskId]) -> Verdict {
        let own = session_job(ask.cluster, preemptor).and_then(|(job, _)| self.jobs.get(&job));
        let Some(own) = own else {
            return Verdict::Victims(Vec::new());
        };
        let mut with_preemptor = Resource::clone(&own.allocated);
        with_preemptor.add(ask.cluster.request(preemptor));
        let own_share = dominant_share(&with_preemptor, &self.total);
        let mut left: FxHashMap<JobId, Resource> = FxHashMap::default();
        let mut may_go = |&task: &TaskId| {
            let Some((job, _)) = session_job(ask.cluster, task) else {
                return false;
            };
            let Some(known) = self.jobs.get(&job) else {
                return false;
            };
            let left = left.entry(job).or_insert_with(|| Resource::clone(&known.allocated));
            // Subtracted also when the candidate is refused (4.2).
            left.sub(ask.cluster.request(task));
            let share = dominant_share(left, &self.total);
            own_share < share || (own_share - share).abs() <= SHARE_DELTA
        };
        Verdict::Victims(candidates.iter().copied().filter(|task| may_go(task)).collect())
    }

    fn queue_order(&self, _ask: Ask<'_>, l: QueueId, r: QueueId) -> Ordering {
        self.tree().map_or(Ordering::Equal, |tree| tree.compare(l, r))
    }

    fn reclaimable(&self, ask: Ask<'_>, reclaimer: TaskId, candidates: &[TaskId]) -> Verdict {
        let Some(mut tree) = self.tree() else {
            return Verdict::Abstain;
        };
        let Some((job, _)) = session_job(ask.cluster, reclaimer) else {
            return Verdict::Victims(Vec::new());
        };
        let request = ask.cluster.request(reclaimer);
        Verdict::Victims(tree.reclaimable(ask, job, request, candidates))
    }

    fn unified_evictable(
        &self,
        ask: Ask<'_>,
        initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> Verdict {
        let Some(mut tree) = self.tree() else {
            return Verdict::Abstain;
        };
        match kind {
            GangEviction::Preempt => Verdict::Victims(candidates.to_vec()),
            GangEviction::Reclaim => {
                let request = &ask.cluster.jobs[initiator].pending_request;
                Verdict::Victims(tree.reclaimable(ask, initiator, request, candidates))
            }
        }
    }
}

impl Drf {
    fn tree(&self) -> Option<MutexGuard<'_, Tree>> {
        // What somebody left behind who panicked is made anew by the next session.
        Some(self.tree.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn enter(&mut self, ask: Ask<'_>, id: JobId) {
        let known = ask.cluster.jobs.get(id).filter(|job| is_in_session(ask.cluster, job));
        let Some(job) = known else {
            self.jobs.remove(&id);
            return;
        };
        // As it stands in the roster; a job that moves in this session gets amounts of its own.
        let listed = ask.facts.roster.allocated_at_open(id);
        let same = listed.filter(|listed| ***listed == job.allocated);
        let allocated = same.cloned().unwrap_or_else(|| Arc::new(job.allocated.clone()));
        let share = dominant_share(&allocated, &self.total);
        self.jobs.insert(id, JobShare { allocated, share });
    }

    fn tell(&mut self, ask: Ask<'_>, id: JobId, out: &mut Outbox) {
        let (job, share) = (&ask.cluster.jobs[id], self.share(id));
        // A pod without PodGroup has no series of its own.
        if !job.bare && self.told.is_news(id, share) {
            out.samples.push(Sample::JobShare { job: job.key.clone(), share });
        }
    }

    fn share(&self, job: JobId) -> f64 {
        self.jobs.get(&job).map_or(0.0, |job| job.share)
    }

    fn change(&mut self, ask: Ask<'_>, task: TaskId, change: Change) {
        let Some((id, _)) = session_job(ask.cluster, task) else {
            return;
        };
        let Some(job) = self.jobs.get_mut(&id) else {
            return;
        };
        let request = ask.cluster.request(task);
        change.apply(Arc::make_mut(&mut job.allocated), request);
        job.share = dominant_share(&job.allocated, &self.total);
        if let Some(mut tree) = self.tree() {
            tree.change(id, request, change);
        }
    }
}

impl Change {
    fn apply(self, amount: &mut Resource, by: &Resource) {
        match self {
            Change::Add => amount.add(by),
            Change::Subtract => amount.sub(by),
        }
    }
}

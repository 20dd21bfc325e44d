//! Quota in use in a session: the quota trees with the groups in them, eviction holds and
//! reservations. It follows every operation and is kept across sessions. Only jobs that changed are
//! read again.
//! Specification: cohort.md B.4, B.5.1, B.5.3, B.7, B.11.

mod reservations;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_cohort::{
    Flavor, Forest, Group, GroupId, Groups, QuotaDemand, QuotaForest, QuotaNode, QuotaPreemptor,
    SearchRefusal, Slot,
};
use vc_framework::SessionView;
use vc_model::reads::{self, Read};
use vc_model::{Cluster, Id, Job, JobId, QueueId, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

use super::failures::FailedTargetSearches;
use crate::rules::session_job;
use reservations::QuotaReservation;
pub(super) use reservations::Reason;

/// The role of a queue in the quota trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum QuotaRole {
    /// The queue has no children and places jobs.
    Leaf(QuotaNode),
    /// The queue has children. Its running jobs count, but it places none.
    Inner(QuotaNode),
    /// The queue is on or below a cycle of parents, or not in the session (section B.9).
    #[default]
    Inactive,
}

impl QuotaRole {
    pub(super) fn node(self) -> Option<QuotaNode> {
        match self {
            Self::Leaf(node) | Self::Inner(node) => Some(node),
            Self::Inactive => None,
        }
    }
}

/// Quota that an eviction hold keeps for a job until its tasks are placed.
#[derive(Clone, Debug, Default)]
struct HeldDemand {
    tasks: Vec<TaskId>,
    /// Demand of the tasks that are still Pending.
    rest: QuotaDemand,
    node: Option<QuotaNode>,
}

/// Changes that enqueue sees on top of the quota in use (section B.5.1).
#[derive(Clone, Debug, Default)]
struct AdmissionLedger {
    kept: Vec<(QuotaNode, QuotaDemand)>,
    taken: Vec<GroupId>,
    /// The last job that was found to have room, with the groups that would be evicted for it.
    admission: Option<(JobId, Vec<GroupId>)>,
}

/// The quota of a session.
#[derive(Clone, Debug)]
pub(super) struct QuotaLedger {
    groups: Groups,
    /// Role of each queue.
    roles: Vec<QuotaRole>,
    /// Queue of each node. `None` for a cohort that is not a queue.
    queues: Vec<Option<QueueId>>,
    /// Slot of each dimension.
    slots: Vec<Option<Slot>>,
    /// Group of each job. `None` if the job has held no quota yet.
    of_job: Vec<Option<GroupId>>,
    /// Job of each group.
    jobs: Vec<JobId>,
    /// Amounts held by each group.
    held: Vec<Resource>,
    claims: BTreeMap<JobId, HeldDemand>,
    /// Reservation of each queue.
    reservations: BTreeMap<QuotaNode, QuotaReservation>,
    /// The changes for enqueue, while its state is shown. `None` while the real state is shown.
    ledger: Option<AdmissionLedger>,
    /// Target searches that failed in the current state.
    failures: FailedTargetSearches,
    /// Jobs whose held quota changed since the last `take_touched`.
    touched: BTreeSet<JobId>,
    /// Number that changes with every change of the quota in use.
    pub(super) version: u64,
}

impl QuotaLedger {
    /// Creates a ledger without queues and usage.
    pub(super) fn empty() -> Self {
        let forest = Forest::new(vc_cohort::Slots::default(), &[]).expect("nothing is no cycle");
        Self::of_groups(Groups::new(forest))
    }

    fn of_groups(groups: Groups) -> Self {
        Self {
            groups,
            roles: Vec::new(),
            queues: Vec::new(),
            slots: Vec::new(),
            of_job: Vec::new(),
            jobs: Vec::new(),
            held: Vec::new(),
            claims: BTreeMap::new(),
            reservations: BTreeMap::new(),
            ledger: None,
            failures: FailedTargetSearches::default(),
            touched: BTreeSet::new(),
            version: 0,
        }
    }

    /// Builds the ledger of a session from the trees and the jobs.
    pub(super) fn open(view: SessionView<'_>, built: &QuotaForest) -> Self {
        let mut quota_ledger = Self::of_groups(Groups::new(built.forest.clone()));
        let slots = built.forest.slots();
        let dims = view.cluster.dims.in_report_order();
        let last = dims.iter().map(|dim| dim.index()).max().unwrap_or(0);
        quota_ledger.slots = vec![None; last + 1];
        for &dim in dims {
            quota_ledger.slots[dim.index()] = slots.get(Flavor::default(), dim);
        }
        quota_ledger.place_queues(view, built);
        view.all_jobs().for_each(|job| quota_ledger.read(view.cluster, job));
        quota_ledger.claim(view);
        quota_ledger
    }

    /// Updates the ledger to the next session on the same trees. Only the jobs in `changed` are
    /// read.
    pub(super) fn reopen(&mut self, view: SessionView<'_>, changed: &[JobId]) {
        self.leave_ledger();
        self.drop_reservations(|_| true);
        for claim in std::mem::take(&mut self.claims).into_values() {
            claim.node.iter().for_each(|&node| self.groups.let_go(node, &claim.rest));
        }
        for &job in changed {
            let id = self.of_job.get_mut(job.index()).and_then(Option::take);
            id.iter().for_each(|&id| self.groups.remove(id));
            if view.has_job(job) {
                self.read(view.cluster, job);
            }
        }
        self.claim(view);
        self.touched.clear();
        self.version += 1;
    }

    /// Adds the quota that the job holds according to its row.
    fn read(&mut self, cluster: &Cluster, job: JobId) {
        let row = &cluster.jobs[job];
        if row.counts.allocated() != 0 {
            self.change(cluster, job, |held| held.add(&row.allocated));
        }
    }

    fn claim(&mut self, view: SessionView<'_>) {
        for (job, tasks) in &view.info.claimed {
            let node = self.leaf(view.cluster.jobs[*job].queue);
            let (tasks, rest) = (tasks.clone(), QuotaDemand::default());
            self.claims.insert(*job, HeldDemand { tasks, rest, node });
            self.refresh_claim(view.cluster, *job);
        }
    }

    fn place_queues(&mut self, view: SessionView<'_>, built: &QuotaForest) {
        self.queues = vec![None; built.forest.len()];
        for &queue in &view.info.queues {
            if self.roles.len() <= queue.index() {
                self.roles.resize(queue.index() + 1, QuotaRole::default());
            }
            let node = built.by_name.get(&view.cluster.queues[queue].name);
            node.iter().for_each(|node| self.queues[node.index()] = Some(queue));
            let role = |&node: &QuotaNode| match built.forest.is_queue(node) {
                true => QuotaRole::Leaf(node),
                false => QuotaRole::Inner(node),
            };
            self.roles[queue.index()] = node.map_or(QuotaRole::Inactive, role);
        }
    }

    pub(super) fn role(&self, queue: QueueId) -> QuotaRole {
        self.roles.get(queue.index()).copied().unwrap_or_default()
    }

    /// Returns the node of a queue that places jobs. Returns `None` for other queues.
    pub(super) fn leaf(&self, queue: QueueId) -> Option<QuotaNode> {
        match self.role(queue) {
            QuotaRole::Leaf(node) => Some(node),
            _ => None,
        }
    }

    /// Returns the queue of a node. Returns `None` for a cohort that is not a queue.
    pub(super) fn queue(&self, node: QuotaNode) -> Option<QueueId> {
        self.queues.get(node.index()).copied().flatten()
    }

    pub(super) fn forest(&self) -> &Forest {
        reads::note(Read::QueueUsages);
        self.groups.forest()
    }

    pub(super) fn groups(&mut self) -> &mut Groups {
        reads::note(Read::QueueUsages);
        &mut self.groups
    }

    /// Returns what a search needs: the groups, and the job of each.
    pub(super) fn split(&mut self) -> (&mut Groups, &[JobId]) {
        (&mut self.groups, &self.jobs)
    }

    /// Returns the node at which the usage of a job counts.
    pub(super) fn node(&self, cluster: &Cluster, job: JobId) -> Option<QuotaNode> {
        self.role(cluster.jobs[job].queue).node()
    }

    pub(super) fn job_of(&self, group: GroupId) -> Option<JobId> {
        self.jobs.get(group.index()).copied()
    }

    /// Returns the group of a job. Returns `None` if it has held no quota yet.
    pub(super) fn group_of(&self, job: JobId) -> Option<GroupId> {
        self.of_job.get(job.index()).copied().flatten()
    }

    pub(super) fn slot(&self, dim: Dim) -> Option<Slot> {
        self.slots.get(dim.index()).copied().flatten()
    }

    /// Converts an amount to slots.
    pub(super) fn demand(&self, amount: &Resource) -> QuotaDemand {
        let of_dim = |dim: Dim| Some((self.slot(dim)?, amount.exact(dim)));
        QuotaDemand::new(amount.dims().filter_map(of_dim))
    }

    /// Returns the sum of the tasks' requests by slot.
    pub(super) fn demand_of(&self, cluster: &Cluster, tasks: &[TaskId]) -> QuotaDemand {
        let mut sum = Resource::default();
        tasks.iter().for_each(|&task| sum.add(cluster.request(task)));
        self.demand(&sum)
    }

    /// Counts a task that was placed, or whose eviction was undone.
    pub(super) fn allocated(&mut self, cluster: &Cluster, task: TaskId) {
        self.note(cluster, task, Resource::add);
    }

    /// Stops counting a task that lost its place.
    pub(super) fn deallocated(&mut self, cluster: &Cluster, task: TaskId) {
        self.note(cluster, task, Resource::sub);
    }

    fn note(&mut self, cluster: &Cluster, task: TaskId, change: fn(&mut Resource, &Resource)) {
        let Some((job, _)) = session_job(cluster, task) else { return };
        self.leave_ledger();
        self.change(cluster, job, |held| change(held, cluster.request(task)));
        self.refresh_reservation(cluster, job);
        self.refresh_claim(cluster, job);
        self.touched.insert(job);
    }

    /// Returns the jobs whose held quota changed since the last call.
    pub(super) fn take_touched(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.touched)
    }

    fn change(&mut self, cluster: &Cluster, job: JobId, change: impl FnOnce(&mut Resource)) {
        self.version += 1;
        let id = match self.of_job.get(job.index()).copied().flatten() {
            Some(id) => id,
            None => {
                let queue = cluster.jobs[job].queue;
                let Some(node) = self.role(queue).node() else { return };
                self.enter(cluster, job, node)
            }
        };
        let held = &mut self.held[id.index()];
        change(held);
        let demand = self.demand(&self.held[id.index()].clone());
        self.groups.change(id, demand);
    }

    fn enter(&mut self, cluster: &Cluster, job: JobId, node: QuotaNode) -> GroupId {
        let id = self.groups.insert(group(cluster, &cluster.jobs[job], node));
        if self.of_job.len() <= job.index() {
            self.of_job.resize(job.index() + 1, None);
        }
        self.of_job[job.index()] = Some(id);
        // A freed group id is used again.
        match self.jobs.get_mut(id.index()) {
            Some(of_group) => *of_group = job,
            None => self.jobs.push(job),
        }
        match self.held.get_mut(id.index()) {
            Some(held) => *held = Resource::default(),
            None => self.held.push(Resource::default()),
        }
        id
    }

    /// Recomputes what is kept for a job: the requests of the held tasks that are still Pending.
    fn refresh_claim(&mut self, cluster: &Cluster, job: JobId) {
        let Some(claim) = self.claims.get(&job) else { return };
        let waits = |task: &&TaskId| cluster.tasks[**task].status == TaskStatus::Pending;
        let waiting: Vec<TaskId> = claim.tasks.iter().filter(waits).copied().collect();
        let rest = self.demand_of(cluster, &waiting);
        self.keep_for(job, rest);
    }

    fn keep_for(&mut self, job: JobId, rest: QuotaDemand) {
        let Some(claim) = self.claims.get_mut(&job) else { return };
        let Some(node) = claim.node else { return };
        let before = std::mem::replace(&mut claim.rest, rest.clone());
        self.groups.let_go(node, &before);
        self.groups.keep(node, &rest);
        self.version += 1;
    }

    /// Ends the eviction hold of the job.
    pub(super) fn end_eviction_hold(&mut self, job: JobId) {
        self.leave_ledger();
        self.keep_for(job, QuotaDemand::default());
        self.claims.remove(&job);
    }

    pub(super) fn has_claim(&self, job: JobId) -> bool {
        self.claims.contains_key(&job)
    }

    /// Runs `query` as if the job's own eviction hold kept nothing.
    pub(super) fn without_claim<T>(
        &mut self,
        job: JobId,
        node: QuotaNode,
        query: impl FnOnce(&mut Self) -> T,
    ) -> T {
        reads::note(Read::OwnState);
        let rest = self.claims.get(&job).map(|claim| claim.rest.clone()).unwrap_or_default();
        self.groups.let_go(node, &rest);
        let answer = query(self);
        self.groups.keep(node, &rest);
        answer
    }

    /// Returns the refusal that a search for this preemptor would give in this state. Returns
    /// `None` if it is unknown.
    pub(super) fn known_failure(
        &self,
        preemptor: &QuotaPreemptor,
        need: &[Slot],
    ) -> Option<SearchRefusal> {
        self.failures.answer(self.version, preemptor, need)
    }

    /// True if a search for this preemptor is known to fail in this state.
    pub(super) fn is_known_to_fail(&self, preemptor: &QuotaPreemptor, need: &[Slot]) -> bool {
        self.failures.is_known(self.version, preemptor, need)
    }

    /// Caches the refusal of a search in this state.
    pub(super) fn note_failure(
        &mut self,
        preemptor: &QuotaPreemptor,
        need: &[Slot],
        refusal: SearchRefusal,
    ) {
        self.failures.note(self.version, preemptor, need, refusal);
    }

    /// Shows the state of enqueue: admitted groups count with what they still have to get.
    pub(super) fn enter_ledger(&mut self, view: SessionView<'_>) {
        if self.ledger.is_some() {
            return;
        }
        self.refresh_reservations(|quota_ledger| {
            let mut ledger = AdmissionLedger::default();
            for &job in &view.info.jobs {
                let row = &view.cluster.jobs[job];
                let Some(node) = quota_ledger.leaf(row.queue) else { continue };
                if let Some(rest) = quota_ledger.admitted_rest(row, job) {
                    quota_ledger.groups.keep(node, &rest);
                    ledger.kept.push((node, rest));
                }
            }
            quota_ledger.ledger = Some(ledger);
        });
        self.version += 1;
    }

    /// Returns what an admitted group still has to get, beyond its eviction hold, which is counted
    /// already. Returns `None` if that is nothing.
    fn admitted_rest(&self, row: &Job, job: JobId) -> Option<QuotaDemand> {
        use vc_model::PodGroupPhase::Inqueue;
        let asked = crate::rules::min_resources(row).filter(|_| row.phase() == Inqueue)?;
        let rest = self.demand(&row.minus_gated(&asked.excess(&row.allocated)));
        let claimed = self.claims.get(&job).map(|claim| &claim.rest);
        let beyond = |(slot, amount): (Slot, vc_cohort::QuotaAmount)| {
            let counted = claimed.map_or(0, |claimed| claimed.get(slot));
            (slot, amount - counted)
        };
        let rest = QuotaDemand::new(rest.iter().map(beyond));
        (!rest.is_empty()).then_some(rest)
    }

    /// Records that the job has room once the targets are evicted.
    pub(super) fn note_admission(&mut self, job: JobId, targets: Vec<GroupId>) {
        if let Some(ledger) = &mut self.ledger {
            ledger.admission = Some((job, targets));
        }
    }

    pub(super) fn forget_admission(&mut self) {
        self.ledger.iter_mut().for_each(|ledger| ledger.admission = None);
    }

    /// Takes the targets recorded for the job. The list is empty if none were recorded.
    pub(super) fn take_admission(&mut self, job: JobId) -> Vec<GroupId> {
        let noted = self.ledger.as_mut().and_then(|ledger| ledger.admission.take());
        noted.filter(|(other, _)| *other == job).map(|(_, targets)| targets).unwrap_or_default()
    }

    /// Counts an admitted group instead of its targets. Its demand stays reserved until they are
    /// evicted.
    pub(super) fn admit(
        &mut self,
        job: JobId,
        node: QuotaNode,
        demand: QuotaDemand,
        targets: &[GroupId],
    ) {
        if self.ledger.is_none() {
            return;
        }
        self.refresh_reservations(|quota_ledger| {
            let Some(ledger) = &mut quota_ledger.ledger else { return };
            targets.iter().for_each(|&target| quota_ledger.groups.take(target));
            ledger.taken.extend(targets);
            quota_ledger.groups.keep(node, &demand);
            ledger.kept.push((node, demand.clone()));
        });
        if !targets.is_empty() {
            self.reserve(node, job, demand, Reason::HasTargets);
        }
        self.version += 1;
    }

    /// Shows the real state again.
    pub(super) fn leave_ledger(&mut self) {
        if self.ledger.is_none() {
            return;
        }
        self.refresh_reservations(|quota_ledger| {
            let Some(ledger) = quota_ledger.ledger.take() else { return };
            ledger.taken.into_iter().for_each(|target| quota_ledger.groups.put_back(target));
            for (node, demand) in ledger.kept.into_iter().rev() {
                quota_ledger.groups.let_go(node, &demand);
            }
        });
        self.version += 1;
    }
}

/// Creates a group that holds nothing yet.
fn group(cluster: &Cluster, job: &Job, queue: QuotaNode) -> Group {
    let pod_group = job.pod_group.as_ref();
    let evicted = pod_group.is_some_and(|group| {
        let mut conditions = group.status.conditions.iter();
        conditions.any(|condition| &*condition.kind == "Evicted" && &*condition.status == "True")
    });
    Group {
        queue,
        priority: job.priority,
        created_micros: pod_group.map_or(0, |group| group.created_micros),
        admitted_micros: admitted_micros(cluster, job),
        uid: pod_group.map_or_else(|| Arc::from(""), |group| group.uid.clone()),
        evicting: evicted,
        holds: QuotaDemand::default(),
    }
}

/// Returns when the first task that holds quota was placed, in microseconds (section B.4).
fn admitted_micros(cluster: &Cluster, job: &Job) -> i64 {
    let tasks = job.tasks.iter().map(|&task| &cluster.tasks[task]);
    let holding = tasks.filter(|task| task.status.is_allocated());
    let placed = holding
        .map(|task| task.scheduled_micros.or(task.started_micros).unwrap_or(task.created_micros));
    placed.min().unwrap_or(i64::MAX)
}

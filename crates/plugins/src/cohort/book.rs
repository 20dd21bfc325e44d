//! Who holds how much quota in a session: the trees with the groups in them, what is kept for
//! claims and reservations, kept up to date with every operation and from session to session: only
//! jobs that changed are read again. Specification: cohort.md B.4, B.5.1, B.5.3, B.7, B.11.

mod reservations;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_cohort::{
    Built, Demand, Flavor, Forest, Group, GroupId, Groups, Preemptor, QuotaNode, Refusal, Slot,
};
use vc_framework::Ask;
use vc_model::{Cluster, Id, Job, JobId, QueueId, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

use super::failures::Failures;
use crate::rules::session_job;
pub(super) use reservations::Reason;
use reservations::Reservation;

/// Whether jobs of a queue take part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// They do.
    Leaf(QuotaNode),
    /// It has children: what runs there counts, nothing else.
    Inner(QuotaNode),
    /// On a cycle of parents or below one, or not in the session (B.9).
    #[default]
    Inactive,
}

impl Standing {
    pub(super) fn node(self) -> Option<QuotaNode> {
        match self {
            Self::Leaf(node) | Self::Inner(node) => Some(node),
            Self::Inactive => None,
        }
    }
}

/// What is kept for a job until its tasks have it.
#[derive(Clone, Debug, Default)]
struct Claimed {
    tasks: Vec<TaskId>,
    /// Of those that are still Pending, and where it is kept.
    rest: Demand,
    node: Option<QuotaNode>,
}

/// What enqueue counts besides what is held (B.5.1).
#[derive(Clone, Debug, Default)]
struct Ledger {
    kept: Vec<(QuotaNode, Demand)>,
    taken: Vec<GroupId>,
    /// The job that was found to have room last, with those that would go for it.
    admission: Option<(JobId, Vec<GroupId>)>,
}

/// The quota of a session.
#[derive(Clone, Debug)]
pub(super) struct Book {
    groups: Groups,
    /// By queue.
    standings: Vec<Standing>,
    /// By node; `None`: a cohort that no queue is.
    queues: Vec<Option<QueueId>>,
    /// By dimension.
    slots: Vec<Option<Slot>>,
    /// By job; `None`: it has held nothing yet.
    of_job: Vec<Option<GroupId>>,
    /// By group.
    jobs: Vec<JobId>,
    /// What the jobs hold, by group.
    held: Vec<Resource>,
    claims: BTreeMap<JobId, Claimed>,
    /// By queue.
    reservations: BTreeMap<QuotaNode, Reservation>,
    /// In the state that enqueue sees; `None`: in the real one.
    ledger: Option<Ledger>,
    /// Searches that found nobody in this very state.
    failures: Failures,
    /// Jobs that hold something else than when this was asked.
    touched: BTreeSet<JobId>,
    /// Counts changes of what is in use.
    pub(super) version: u64,
}

impl Book {
    /// Nothing is in use.
    pub(super) fn empty() -> Self {
        let forest = Forest::new(vc_cohort::Slots::default(), &[]).expect("nothing is no cycle");
        Self::of_groups(Groups::new(forest))
    }

    fn of_groups(groups: Groups) -> Self {
        Self {
            groups,
            standings: Vec::new(),
            queues: Vec::new(),
            slots: Vec::new(),
            of_job: Vec::new(),
            jobs: Vec::new(),
            held: Vec::new(),
            claims: BTreeMap::new(),
            reservations: BTreeMap::new(),
            ledger: None,
            failures: Failures::default(),
            touched: BTreeSet::new(),
            version: 0,
        }
    }

    /// The trees with what the jobs of the session hold.
    pub(super) fn open(ask: Ask<'_>, built: &Built) -> Self {
        let mut book = Self::of_groups(Groups::new(built.forest.clone()));
        let slots = built.forest.slots();
        let dims = ask.cluster.dims.in_report_order();
        let last = dims.iter().map(|dim| dim.index()).max().unwrap_or(0);
        book.slots = vec![None; last + 1];
        for &dim in dims {
            book.slots[dim.index()] = slots.get(Flavor::default(), dim);
        }
        book.place_queues(ask, built);
        ask.all_jobs().for_each(|job| book.read(ask.cluster, job));
        book.claim(ask);
        book
    }

    /// The same in the session after that on the same trees, where no other jobs have changed.
    pub(super) fn reopen(&mut self, ask: Ask<'_>, changed: &[JobId]) {
        self.leave_ledger();
        self.drop_reservations(|_| true);
        for claim in std::mem::take(&mut self.claims).into_values() {
            claim.node.iter().for_each(|&node| self.groups.let_go(node, &claim.rest));
        }
        for &job in changed {
            let id = self.of_job.get_mut(job.index()).and_then(Option::take);
            id.iter().for_each(|&id| self.groups.remove(id));
            if ask.has_job(job) {
                self.read(ask.cluster, job);
            }
        }
        self.claim(ask);
        self.touched.clear();
        self.version += 1;
    }

    /// Enters what the job holds, as its row says.
    fn read(&mut self, cluster: &Cluster, job: JobId) {
        let row = &cluster.jobs[job];
        if row.counts.allocated() != 0 {
            self.change(cluster, job, |held| held.add(&row.allocated));
        }
    }

    fn claim(&mut self, ask: Ask<'_>) {
        for (job, tasks) in &ask.facts.claimed {
            let node = self.leaf(ask.cluster.jobs[*job].queue);
            let (tasks, rest) = (tasks.clone(), Demand::default());
            self.claims.insert(*job, Claimed { tasks, rest, node });
            self.refresh_claim(ask.cluster, *job);
        }
    }

    fn place_queues(&mut self, ask: Ask<'_>, built: &Built) {
        self.queues = vec![None; built.forest.len()];
        for &queue in &ask.facts.queues {
            if self.standings.len() <= queue.index() {
                self.standings.resize(queue.index() + 1, Standing::default());
            }
            let node = built.by_name.get(&ask.cluster.queues[queue].name);
            node.iter().for_each(|node| self.queues[node.index()] = Some(queue));
            let standing = |&node: &QuotaNode| match built.forest.is_queue(node) {
                true => Standing::Leaf(node),
                false => Standing::Inner(node),
            };
            self.standings[queue.index()] = node.map_or(Standing::Inactive, standing);
        }
    }

    pub(super) fn standing(&self, queue: QueueId) -> Standing {
        self.standings.get(queue.index()).copied().unwrap_or_default()
    }

    /// The node of a queue in which jobs are served.
    pub(super) fn leaf(&self, queue: QueueId) -> Option<QuotaNode> {
        match self.standing(queue) {
            Standing::Leaf(node) => Some(node),
            _ => None,
        }
    }

    /// The queue that is this node.
    pub(super) fn queue(&self, node: QuotaNode) -> Option<QueueId> {
        self.queues.get(node.index()).copied().flatten()
    }

    pub(super) fn forest(&self) -> &Forest {
        self.groups.forest()
    }

    pub(super) fn groups(&mut self) -> &mut Groups {
        &mut self.groups
    }

    /// What a search needs: the groups, and the job of each.
    pub(super) fn split(&mut self) -> (&mut Groups, &[JobId]) {
        (&mut self.groups, &self.jobs)
    }

    /// Where the use of a job counts.
    pub(super) fn node(&self, cluster: &Cluster, job: JobId) -> Option<QuotaNode> {
        self.standing(cluster.jobs[job].queue).node()
    }

    pub(super) fn job_of(&self, group: GroupId) -> Option<JobId> {
        self.jobs.get(group.index()).copied()
    }

    /// The group of a job; `None`: it has held nothing yet.
    pub(super) fn group_of(&self, job: JobId) -> Option<GroupId> {
        self.of_job.get(job.index()).copied().flatten()
    }

    pub(super) fn slot(&self, dim: Dim) -> Option<Slot> {
        self.slots.get(dim.index()).copied().flatten()
    }

    /// An amount as the trees count it.
    pub(super) fn demand(&self, amount: &Resource) -> Demand {
        let of_dim = |dim: Dim| Some((self.slot(dim)?, amount.exact(dim)));
        Demand::new(amount.dims().filter_map(of_dim))
    }

    /// What the tasks ask for together.
    pub(super) fn demand_of(&self, cluster: &Cluster, tasks: &[TaskId]) -> Demand {
        let mut sum = Resource::default();
        tasks.iter().for_each(|&task| sum.add(cluster.request(task)));
        self.demand(&sum)
    }

    /// A task has got a place, or its eviction was taken back.
    pub(super) fn allocated(&mut self, cluster: &Cluster, task: TaskId) {
        self.note(cluster, task, Resource::add);
    }

    /// A task has lost its place.
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

    /// The jobs that hold something else than when this was called last.
    pub(super) fn take_touched(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.touched)
    }

    fn change(&mut self, cluster: &Cluster, job: JobId, change: impl FnOnce(&mut Resource)) {
        self.version += 1;
        let id = match self.of_job.get(job.index()).copied().flatten() {
            Some(id) => id,
            None => {
                let queue = cluster.jobs[job].queue;
                let Some(node) = self.standing(queue).node() else { return };
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
        // A number that was given up is used again.
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

    /// What is kept for a job is what its claimed tasks have yet to get.
    fn refresh_claim(&mut self, cluster: &Cluster, job: JobId) {
        let Some(claim) = self.claims.get(&job) else { return };
        let waits = |task: &&TaskId| cluster.tasks[**task].status == TaskStatus::Pending;
        let waiting: Vec<TaskId> = claim.tasks.iter().filter(waits).copied().collect();
        let rest = self.demand_of(cluster, &waiting);
        self.keep_for(job, rest);
    }

    fn keep_for(&mut self, job: JobId, rest: Demand) {
        let Some(claim) = self.claims.get_mut(&job) else { return };
        let Some(node) = claim.node else { return };
        let before = std::mem::replace(&mut claim.rest, rest.clone());
        self.groups.let_go(node, &before);
        self.groups.keep(node, &rest);
        self.version += 1;
    }

    /// Nothing is kept for the job any longer.
    pub(super) fn end_claim(&mut self, job: JobId) {
        self.leave_ledger();
        self.keep_for(job, Demand::default());
        self.claims.remove(&job);
    }

    pub(super) fn has_claim(&self, job: JobId) -> bool {
        self.claims.contains_key(&job)
    }

    /// Answers a question of a job, which its own claim does not concern.
    pub(super) fn without_claim<T>(
        &mut self,
        job: JobId,
        node: QuotaNode,
        ask: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let rest = self.claims.get(&job).map(|claim| claim.rest.clone()).unwrap_or_default();
        self.groups.let_go(node, &rest);
        let answer = ask(self);
        self.groups.keep(node, &rest);
        answer
    }

    /// What a search for this preemptor has said in this state, or would say.
    pub(super) fn known_failure(&self, preemptor: &Preemptor, need: &[Slot]) -> Option<Refusal> {
        self.failures.answer(self.version, preemptor, need)
    }

    /// The same, where only the fact counts.
    pub(super) fn is_known_to_fail(&self, preemptor: &Preemptor, need: &[Slot]) -> bool {
        self.failures.is_known(self.version, preemptor, need)
    }

    /// Remembers that nobody was found.
    pub(super) fn note_failure(&mut self, preemptor: &Preemptor, need: &[Slot], refusal: Refusal) {
        self.failures.note(self.version, preemptor, need, refusal);
    }

    /// Shows the state that enqueue sees: admitted groups count with what they have yet to get.
    pub(super) fn enter_ledger(&mut self, ask: Ask<'_>) {
        if self.ledger.is_some() {
            return;
        }
        self.refresh_reservations(|book| {
            let mut ledger = Ledger::default();
            for &job in &ask.facts.jobs {
                let row = &ask.cluster.jobs[job];
                let Some(node) = book.leaf(row.queue) else { continue };
                if let Some(rest) = book.admitted_rest(row, job) {
                    book.groups.keep(node, &rest);
                    ledger.kept.push((node, rest));
                }
            }
            book.ledger = Some(ledger);
        });
        self.version += 1;
    }

    /// What is not counted yet of an admitted group: its claim is counted already.
    fn admitted_rest(&self, row: &Job, job: JobId) -> Option<Demand> {
        use vc_model::PodGroupPhase::Inqueue;
        let asked = crate::rules::min_resources(row).filter(|_| row.phase() == Inqueue)?;
        let rest = self.demand(&row.minus_gated(&asked.excess(&row.allocated)));
        let claimed = self.claims.get(&job).map(|claim| &claim.rest);
        let beyond = |(slot, amount): (Slot, vc_cohort::Amount)| {
            let counted = claimed.map_or(0, |claimed| claimed.get(slot));
            (slot, amount - counted)
        };
        let rest = Demand::new(rest.iter().map(beyond));
        (!rest.is_empty()).then_some(rest)
    }

    /// The job has room if these go.
    pub(super) fn note_admission(&mut self, job: JobId, targets: Vec<GroupId>) {
        if let Some(ledger) = &mut self.ledger {
            ledger.admission = Some((job, targets));
        }
    }

    pub(super) fn forget_admission(&mut self) {
        self.ledger.iter_mut().for_each(|ledger| ledger.admission = None);
    }

    /// Those that would go for the job; nobody if it was admitted without a question for room.
    pub(super) fn take_admission(&mut self, job: JobId) -> Vec<GroupId> {
        let noted = self.ledger.as_mut().and_then(|ledger| ledger.admission.take());
        noted.filter(|(other, _)| *other == job).map(|(_, targets)| targets).unwrap_or_default()
    }

    /// A group was admitted in the place of these. Until they go, what it waits for is kept.
    pub(super) fn admit(
        &mut self,
        job: JobId,
        node: QuotaNode,
        demand: Demand,
        targets: &[GroupId],
    ) {
        if self.ledger.is_none() {
            return;
        }
        self.refresh_reservations(|book| {
            let Some(ledger) = &mut book.ledger else { return };
            targets.iter().for_each(|&target| book.groups.take(target));
            ledger.taken.extend(targets);
            book.groups.keep(node, &demand);
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
        self.refresh_reservations(|book| {
            let Some(ledger) = book.ledger.take() else { return };
            ledger.taken.into_iter().for_each(|target| book.groups.put_back(target));
            for (node, demand) in ledger.kept.into_iter().rev() {
                book.groups.let_go(node, &demand);
            }
        });
        self.version += 1;
    }
}

/// A group that holds nothing yet.
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
        holds: Demand::default(),
    }
}

/// When the first of its tasks that hold quota was placed (B.4).
fn admitted_micros(cluster: &Cluster, job: &Job) -> i64 {
    let tasks = job.tasks.iter().map(|&task| &cluster.tasks[task]);
    let holding = tasks.filter(|task| task.status.is_allocated());
    let placed = holding
        .map(|task| task.scheduled_micros.or(task.started_micros).unwrap_or(task.created_micros));
    placed.min().unwrap_or(i64::MAX)
}

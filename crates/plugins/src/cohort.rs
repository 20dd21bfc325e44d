//! Quota between queues as Kueue has it: nominal quota, borrowing and lending in trees, and who may
//! take back from whom, decided together with placement. Specification: cohort.md Part B.

mod arguments;
mod book;
mod enqueue;
mod failures;
mod gauges;
mod limits;
mod line;
mod overview;
mod published;
mod queues;
mod targets;
mod told;

use std::any::Any;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vc_cohort::{Backoff, Built, QueueSpec, QuotaNode, Slots, TreeRules};
use vc_conf::{PluginOption, Warning};
use vc_framework::{
    Admission, Ask, Clock, Dispatch, Heads, Notice, Outbox, Plugin, PluginEntry, Points,
    QueueLimit, QueueShare, QuotaRefusal, QuotaUse, Records, Surroundings, Targets, Wanted,
};
use vc_model::{JobId, QueueId, TaskId};
use vc_resource::Dim;

use arguments::Settings;
use book::{Book, Reason};
use line::{Asked, Line};
use queues::Problem;
use told::Told;

pub(crate) const ENTRY: PluginEntry =
    PluginEntry { name: "cohort", build: |option, warnings| Box::new(cohort(option, warnings)) };

const POINTS: Points = Points::QUEUE_ORDER
    .and(Points::NEXT_QUEUE)
    .and(Points::ALLOCATABLE)
    .and(Points::JOB_ENQUEUEABLE)
    .and(Points::JOB_ENQUEUED)
    .and(Points::PREEMPT_TARGETS)
    .and(Points::EVENT_HANDLERS);

struct Cohort {
    settings: Settings,
    /// The trees as the queues of the last session make them.
    trees: Option<Trees>,
    /// Rules look at it and try something in it, which they take back.
    book: Mutex<Book>,
    /// The heads of the queues as an action named them last.
    line: Mutex<Line>,
    backoff: Backoff,
    told: Told,
    gauges: gauges::Gauges,
    published: published::Published,
    /// It was said that no queue lets anybody be evicted.
    never_told: bool,
}

/// What the trees were built of, and the trees.
struct Trees {
    /// [`vc_model::Cluster::queue_version`] of what follows.
    version: u64,
    specs: Vec<QueueSpec>,
    rules: TreeRules,
    slots: Slots,
    /// As the annotations showed them.
    unreadable: Vec<Problem>,
    built: Built,
    problems: BTreeSet<Problem>,
}

fn cohort(option: &PluginOption, warnings: &mut Vec<Warning>) -> Cohort {
    let settings = Settings::new(option, warnings);
    Cohort {
        backoff: Backoff::new(settings.backoff_micros),
        settings,
        trees: None,
        book: Mutex::new(Book::empty()),
        line: Mutex::default(),
        told: Told::default(),
        gauges: gauges::Gauges::default(),
        published: published::Published::default(),
        never_told: false,
    }
}

impl Plugin for Cohort {
    fn points(&self) -> Points {
        POINTS
    }

    /// Who waits does so under another configuration, too (B.7).
    fn hand_over(&mut self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(std::mem::take(&mut self.backoff)))
    }

    fn take_over(&mut self, memory: Box<dyn Any + Send>) {
        if let Ok(backoff) = memory.downcast::<Backoff>() {
            self.backoff = backoff.with_first(self.settings.backoff_micros);
        }
    }

    /// All but what is kept for its job.
    fn knows_askers(&self, ask: Ask<'_>, task: TaskId) -> bool {
        let job = ask.cluster.tasks[task].job;
        !job.is_some_and(|job| lock(&self.book).has_claim(job))
    }

    fn open(&mut self, ask: Ask<'_>) {
        let is_grown = self.grow(ask);
        let Some(trees) = &self.trees else { return };
        let book = own(&mut self.book);
        match ask.facts.roster.changed().filter(|_| !is_grown) {
            Some(changed) => book.reopen(ask, changed),
            None => *book = Book::open(ask, &trees.built),
        }
        *own(&mut self.line) = Line::default();
    }

    fn close(&mut self, ask: Ask<'_>, _records: &Records, out: &mut Outbox) {
        let book = own(&mut self.book);
        book.leave_ledger();
        book.drop_reservations(|_| true);
        self.tell_queues(ask, out);
        self.told.close(ask, &mut self.backoff, out);
        let book = own(&mut self.book);
        self.gauges.tell(ask, book, &self.settings, out);
        let period = self.settings.share_period_micros;
        if self.settings.is_fair() && 0 < period {
            self.published.write(ask, book, period, out);
        }
    }

    fn clock(&self, ask: Ask<'_>) -> Clock {
        if self.settings.is_fair() && 0 < self.settings.share_period_micros {
            return Clock::Reads;
        }
        let next = self.backoff.next_until(ask.facts.now_micros);
        next.map_or(Clock::Ignores, Clock::Until)
    }

    fn on_allocate(&mut self, ask: Ask<'_>, task: TaskId) {
        own(&mut self.book).allocated(ask.cluster, task);
    }

    fn on_deallocate(&mut self, ask: Ask<'_>, task: TaskId) {
        own(&mut self.book).deallocated(ask.cluster, task);
    }

    fn on_notice(&mut self, ask: Ask<'_>, notice: &Notice<'_>) {
        let book = own(&mut self.book);
        match *notice {
            Notice::NotPlaced { job, tasks } => {
                reserve(book, ask, (job, tasks), self.settings.is_fair(), Reason::NotPlaced);
            }
            Notice::MayNotPreempt { job, tasks } => {
                reserve(book, ask, (job, tasks), self.settings.is_fair(), |_| Reason::Refused);
            }
            Notice::AllocateEnds => {
                book.drop_reservations(|reason| reason != Reason::Refused);
            }
            Notice::ClaimEnds(job) => book.end_claim(job),
            Notice::Preempted { job, groups } => self.told.preempted(ask, job, groups),
        }
    }

    fn next_queue(
        &self,
        ask: Ask<'_>,
        heads: &Heads<'_>,
        wanted: &dyn Fn(JobId) -> Vec<TaskId>,
    ) -> Option<QueueId> {
        let is_fair = self.settings.is_fair();
        let mut asked = Asked { book: &mut lock(&self.book), ask, wanted, is_fair };
        lock(&self.line).next(&mut asked, heads)
    }

    fn queue_order(&self, ask: Ask<'_>, l: QueueId, r: QueueId) -> Ordering {
        let mut book = lock(&self.book);
        let (Some(node_l), Some(node_r)) = (book.leaf(l), book.leaf(r)) else {
            return book.leaf(r).is_some().cmp(&book.leaf(l).is_some());
        };
        if l == r {
            return Ordering::Equal;
        }
        debug_assert!(ask.cluster.queues[l].present, "it has a node");
        let line = lock(&self.line);
        let pair = [line.head(l, node_l), line.head(r, node_r)];
        match book.groups().next_head(&pair, self.settings.is_fair()) {
            Some(0) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }

    fn allocatable(&self, ask: Ask<'_>, queue: QueueId, task: TaskId) -> bool {
        let mut book = lock(&self.book);
        let Some(node) = book.leaf(queue) else { return false };
        ask.cluster.queues[queue].is_open() && lacks(&mut book, ask, node, task).is_empty()
    }

    fn allocatable_lacks(&self, ask: Ask<'_>, queue: QueueId, task: TaskId) -> Vec<Dim> {
        let mut book = lock(&self.book);
        let node = book.leaf(queue).filter(|_| ask.cluster.queues[queue].is_open());
        node.map_or_else(Vec::new, |node| lacks(&mut book, ask, node, task))
    }

    fn queue_limit(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> Option<QueueLimit> {
        limits::of_tasks(&mut lock(&self.book), ask, queue, tasks)
    }

    fn admission_limit(&self, ask: Ask<'_>, job: JobId) -> Option<QueueLimit> {
        limits::of_admission(&mut lock(&self.book), ask, job)
    }

    fn job_enqueueable_among(&self, ask: Ask<'_>, job: JobId, hooks: &Dispatch) -> Admission {
        let mut book = lock(&self.book);
        book.enter_ledger(ask);
        enqueue::admission(&mut book, (ask, hooks), job, &self.settings)
    }

    fn job_enqueued(&mut self, ask: Ask<'_>, job: JobId) {
        let book = own(&mut self.book);
        book.enter_ledger(ask);
        enqueue::admit(book, ask, job);
    }

    fn preempt_targets(
        &mut self,
        wanted: &Wanted<'_>,
        around: &mut dyn Surroundings,
    ) -> Result<Targets, QuotaRefusal> {
        let book = own(&mut self.book);
        book.leave_ledger();
        book.drop_reservations(|reason| reason == Reason::HasTargets);
        let found = targets::find(book, &self.settings, &self.backoff, wanted, around);
        if let Err(refusal) = &found {
            let waits = (wanted.job, wanted.tasks);
            reserve(book, around.ask(), waits, self.settings.is_fair(), |_| Reason::Refused);
            let cluster = around.ask().cluster;
            let queue = &cluster.queues[cluster.jobs[wanted.job].queue].name;
            self.gauges.refused(queue, refusal.cause);
        }
        found
    }

    fn queue_share(&self, _ask: Ask<'_>, queue: QueueId) -> Option<QueueShare> {
        let mut book = lock(&self.book);
        book.leave_ledger();
        let node = book.standing(queue).node()?;
        Some(book.without_reservations(|book| gauges::queue_share(book.forest(), node)))
    }

    fn quota_use(&self, ask: Ask<'_>) -> Vec<QuotaUse> {
        let mut book = lock(&self.book);
        book.leave_ledger();
        let is_fair = self.settings.is_fair();
        book.without_reservations(|book| overview::quota_use(ask, book.forest(), is_fair))
    }
}

impl Cohort {
    /// Builds the trees anew if something of what they are made of has changed. Whether.
    fn grow(&mut self, ask: Ask<'_>) -> bool {
        let version = ask.cluster.queue_version();
        let slots = queues::slots(ask.cluster);
        let owns_cluster = self.settings.root_owns_cluster;
        let cluster = owns_cluster.then(|| queues::of_cluster(ask, &slots));
        let rules = TreeRules { without_root: self.settings.without_root, cluster };
        let on_same = |trees: &&mut Trees| trees.rules == rules && trees.slots == slots;
        let mut known = self.trees.as_mut().filter(on_same);
        if known.as_ref().is_some_and(|trees| trees.version == version) {
            return false;
        }
        let mut unreadable = Vec::new();
        let specs = queues::specs(ask, &slots, &self.settings, &mut unreadable);
        let is_same =
            |trees: &&mut &mut Trees| trees.specs == specs && trees.unreadable == unreadable;
        if let Some(trees) = known.as_mut().filter(is_same) {
            trees.version = version;
            return false;
        }
        match vc_cohort::build(slots.clone(), &specs, &rules) {
            Ok(built) => {
                let mut problems: BTreeSet<Problem> = unreadable.iter().cloned().collect();
                problems.extend(queues::faults(&ask.cluster.dims, &slots, &specs, &built));
                let trees = Trees { version, specs, rules, slots, unreadable, built, problems };
                self.trees = Some(trees);
            }
            Err(error) => tracing::error!("the quota trees stay as they are: {error}"),
        }
        self.gauges.forget_nodes();
        true
    }

    /// What users should know about their queues.
    fn tell_queues(&mut self, ask: Ask<'_>, out: &mut Outbox) {
        let Some(trees) = &self.trees else { return };
        self.told.queues(ask, &trees.problems, out);
        if !self.never_told && !ask.facts.queues.is_empty() {
            self.never_told = true;
            let sides = ask.facts.sides;
            let forest = &trees.built.forest;
            let may = |node| forest.may_evict(node);
            if (sides.own || sides.others) && !forest.nodes().any(may) {
                out.warnings.push(NEVER.to_owned());
            }
        }
    }
}

/// Once per configuration: preempt or reclaim has nothing to do (B.1).
const NEVER: &str = "cohort: every queue says Never: nobody is ever evicted for quota\n\
    hint: set withinClusterQueue or reclaimWithinCohort, as argument or as annotation of queues";

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own<T>(of: &mut Mutex<T>) -> &mut T {
    of.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// The resources of which the queue has too little for the task (B.5.3).
fn lacks(book: &mut Book, ask: Ask<'_>, node: QuotaNode, task: TaskId) -> Vec<Dim> {
    book.leave_ledger();
    let demand = book.demand(ask.cluster.request(task));
    let lacking = |book: &mut Book| {
        let forest = book.forest();
        let short = demand.iter().filter(|&(slot, amount)| forest.available(node, slot) < amount);
        short.map(|(slot, _)| forest.slots().dim(slot)).collect()
    };
    book.without_reservation(node, |book| match ask.cluster.tasks[task].job {
        Some(job) => book.without_claim(job, node, lacking),
        None => lacking(book),
    })
}

/// Quota is reserved for the first job of a queue that waits for others to end (A.11 step 3).
/// `reason` gets its borrowing level.
fn reserve(
    book: &mut Book,
    ask: Ask<'_>,
    (job, tasks): (JobId, &[TaskId]),
    is_fair: bool,
    reason: impl Fn(u32) -> Reason,
) {
    use vc_cohort::Mode;
    let Some(node) = book.leaf(ask.cluster.jobs[job].queue) else { return };
    if book.has_reserved(node) || tasks.is_empty() {
        return;
    }
    book.leave_ledger();
    let demand = book.demand_of(ask.cluster, tasks);
    let class = book.without_reservations(|book| {
        book.without_claim(job, node, |book| book.forest().classify(node, &demand, is_fair))
    });
    if class.mode == Mode::Preempt {
        book.reserve(node, job, demand, reason(class.level));
    }
}

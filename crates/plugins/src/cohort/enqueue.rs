//! Admission of PodGroups: what fits the quota, and what would fit if others went. Specification:
//! cohort.md B.5.1 (Q7).

use vc_cohort::{Class, Demand, GroupId, Mode, Preemptor, QuotaNode, Slot, Surroundings, Target};
use vc_framework::{Admission, Ask, Dispatch};
use vc_model::{Cluster, Job, JobId, TaskId};

use super::arguments::Settings;
use super::book::{Book, Reason};
use super::overview::amount_text;
use super::targets::is_candidate;
use crate::rules::min_resources;

/// What a waiting group asks for, gated pods left out.
pub(super) fn demand(book: &Book, job: &Job) -> Demand {
    let asked = min_resources(job);
    asked.map_or_else(Demand::default, |asked| book.demand(&job.minus_gated(asked)))
}

/// The book shows the ledger.
pub(super) fn admission(
    book: &mut Book,
    (ask, hooks): (Ask<'_>, &Dispatch),
    job: JobId,
    settings: &Settings,
) -> Admission {
    book.forget_admission();
    let row = &ask.cluster.jobs[job];
    let queue = &ask.cluster.queues[row.queue];
    let Some(node) = book.leaf(row.queue).filter(|_| queue.is_open()) else {
        return Admission::Reject(None);
    };
    let demand = demand(book, row);
    let (mode, found) = book.without_reservations(|book| {
        let class = book.forest().classify(node, &demand, settings.is_fair());
        let found = match class.mode {
            Mode::Preempt => targets(book, (ask, hooks), job, (node, &demand), &class, settings),
            Mode::Fit => Some(Vec::new()),
            Mode::NoFit => None,
        };
        (class.mode, found)
    });
    let is_without_targets = mode == Mode::Preempt && found.is_none();
    if let Some(targets) = found.filter(|targets| book.has_room(node, &demand, targets)) {
        book.note_admission(job, targets);
        return Admission::Permit;
    }
    let why_not = book.without_reservation(node, |book| why_not(book, ask.cluster, node, &demand));
    if is_without_targets {
        book.reserve(node, job, demand, Reason::Refused);
    }
    Admission::Reject(why_not)
}

/// The group counts from now on; those that would go for it do not.
pub(super) fn admit(book: &mut Book, ask: Ask<'_>, job: JobId) {
    let row = &ask.cluster.jobs[job];
    let Some(node) = book.leaf(row.queue) else { return };
    let demand = demand(book, row);
    let targets = book.take_admission(job);
    book.admit(job, node, demand, &targets);
}

/// Who would go if there was a place for everybody; `None`: nobody, and the group does not fit.
fn targets(
    book: &mut Book,
    (ask, hooks): (Ask<'_>, &Dispatch),
    job: JobId,
    (queue, demand): (QuotaNode, &Demand),
    class: &Class,
    settings: &Settings,
) -> Option<Vec<GroupId>> {
    let row = &ask.cluster.jobs[job];
    let created_micros = row.pod_group.as_ref().map_or(0, |group| group.created_micros);
    let demand = demand.clone();
    let preemptor = Preemptor { queue, priority: row.priority, created_micros, demand };
    let mut search = settings.search;
    search.own &= ask.facts.sides.own;
    search.others &= ask.facts.sides.others;
    if book.is_known_to_fail(&preemptor, &class.need) {
        return None;
    }
    let (groups, jobs) = book.split();
    let mut around = Candidates { ask, hooks, jobs, own: row.queue };
    match search.run(groups, &preemptor, &class.need, &mut around) {
        Ok(found) => Some(found.into_iter().map(|target| target.group).collect()),
        Err(refusal) => {
            book.note_failure(&preemptor, &class.need, refusal);
            None
        }
    }
}

/// Who may be taken at all, by the same rules as when it is done (B.4); everything has a place.
struct Candidates<'a> {
    ask: Ask<'a>,
    hooks: &'a Dispatch,
    jobs: &'a [JobId],
    own: vc_model::QueueId,
}

impl Candidates<'_> {
    /// The tasks of a group that hold quota.
    fn members(&self, group: GroupId) -> impl Iterator<Item = TaskId> + '_ {
        let job = self.jobs.get(group.index());
        let tasks = job.into_iter().flat_map(|&job| &self.ask.cluster.jobs[job].tasks);
        tasks.copied().filter(|&task| self.ask.cluster.tasks[task].status.is_allocated())
    }
}

impl Surroundings for Candidates<'_> {
    fn may_take(&mut self, taken: &[Target], group: GroupId) -> bool {
        let Some(&job) = self.jobs.get(group.index()) else { return false };
        if !is_candidate(self.ask.cluster, self.own, job) {
            return false;
        }
        let gone = || taken.iter().flat_map(|target| self.members(target.group)).collect();
        let group: Vec<TaskId> = self.members(group).collect();
        let is_own = self.ask.cluster.jobs[job].queue == self.own;
        self.hooks.lets_go(self.ask, is_own, &gone, &group)
    }
}

fn why_not(book: &Book, cluster: &Cluster, node: QuotaNode, demand: &Demand) -> Option<String> {
    let forest = book.forest();
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

//! Which groups go for a job: mode, then the search with placement in between, and why nobody goes.
//! Specification: cohort.md B.4 (candidates), B.5.4, B.6, B.8 (why-not).

use vc_cohort::{
    Backoff, Class, Demand, GroupId, Mode, Preemptor, QuotaNode, Refusal, Slot,
    Surroundings as Asked, Target,
};
use vc_framework::{QuotaRefusal, Surroundings, TargetGroup, Targets, Wanted};
use vc_model::{Cluster, JobId, QueueId, TaskStatus};

use super::arguments::Settings;
use super::book::Book;
use super::overview::amount_text;
use super::told::{Parties, message};

/// Nothing of the group is in flight, every task of it that holds quota may go, and its queue gives
/// to others (B.4). Protecting plugins are asked elsewhere.
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

/// The groups that go for a job, none if it fits as it is.
pub(super) fn find(
    book: &mut Book,
    settings: &Settings,
    backoff: &Backoff,
    wanted: &Wanted<'_>,
    around: &mut dyn Surroundings,
) -> Result<Targets, QuotaRefusal> {
    let ask = around.ask();
    let row = &ask.cluster.jobs[wanted.job];
    let queue = &ask.cluster.queues[row.queue];
    let Some(node) = book.leaf(row.queue).filter(|_| queue.is_open()) else {
        return refuse("nofit", format!("queue {} takes no jobs", queue.name));
    };
    let group = row.pod_group.as_ref();
    let now = ask.facts.now_micros;
    if group.is_some_and(|group| backoff.waits_until(&group.uid, now).is_some()) {
        return refuse("backoff", "it was evicted after it had others evicted".to_owned());
    }
    let preemptor = Preemptor {
        queue: node,
        priority: row.priority,
        created_micros: group.map_or(0, |group| group.created_micros),
        demand: book.demand_of(ask.cluster, wanted.tasks),
    };
    let found = book.without_reservations(|book| {
        book.without_claim(wanted.job, node, |book| {
            Attempt { book, settings, wanted, preemptor: &preemptor, around }.run()
        })
    })?;
    let targets: Vec<GroupId> =
        found.groups.iter().filter_map(|group| book.group_of(group.job)).collect();
    let has_room = book
        .without_claim(wanted.job, node, |book| book.has_room(node, &preemptor.demand, &targets));
    match has_room {
        true => Ok(found),
        false => refuse("not_enough", KEPT.to_owned()),
    }
}

/// Why a job that would have room waits all the same (A.11 step 3).
const KEPT: &str = "not enough: the idle quota is kept for groups of other queues that wait for it";

fn refuse<T>(cause: &'static str, text: String) -> Result<T, QuotaRefusal> {
    Err(QuotaRefusal { cause, text })
}

struct Attempt<'a> {
    book: &'a mut Book,
    settings: &'a Settings,
    wanted: &'a Wanted<'a>,
    preemptor: &'a Preemptor,
    around: &'a mut dyn Surroundings,
}

impl Attempt<'_> {
    fn run(self) -> Result<Targets, QuotaRefusal> {
        let Preemptor { queue, demand, .. } = self.preemptor;
        let class = self.book.forest().classify(*queue, demand, self.settings.is_fair());
        if class.mode == Mode::NoFit {
            return self.no_fit(*queue, demand);
        }
        let sides = self.wanted.sides;
        let mut search = self.settings.search;
        search.own &= sides.own;
        search.others &= sides.others;
        let may_evict = (search.own || search.others) && self.book.forest().may_evict(*queue);
        if !may_evict && class.mode == Mode::Preempt {
            return self.why_not(Refusal::NoCandidates, &class, &class.need);
        }
        let placed = self.around.has_place(&[]);
        if placed && class.mode == Mode::Fit {
            return Ok(Targets::default());
        }
        // Nodes are short, not only quota: whatever is asked for is contested.
        let need: Vec<Slot> = if placed { class.need.clone() } else { demand.slots().collect() };
        // Of a job with a claim the state is another one than of the others.
        let is_alone = self.book.has_claim(self.wanted.job);
        let known = || self.book.known_failure(self.preemptor, &need);
        if let Some(refusal) = (!is_alone).then(known).flatten() {
            return self.why_not(refusal, &class, &need);
        }
        let own = self.around.ask().cluster.jobs[self.wanted.job].queue;
        let (groups, jobs) = self.book.split();
        let mut trial = Trial { jobs, own, around: &mut *self.around };
        match search.run(groups, self.preemptor, &need, &mut trial) {
            Ok(found) => Ok(self.targets(&found)),
            Err(refusal) => {
                if !is_alone {
                    self.book.note_failure(self.preemptor, &need, refusal);
                }
                self.why_not(refusal, &class, &need)
            }
        }
    }

    fn targets(&self, found: &[Target]) -> Targets {
        let cluster = self.around.ask().cluster;
        let group = |target: &Target| {
            let job = self.book.job_of(target.group)?;
            let (forest, preemptor) = (self.book.forest(), self.wanted.job);
            let of = Parties { cluster, forest, preemptor, own: self.preemptor.queue };
            let message = message(&of, job, self.book.node(cluster, job)?, target.reason);
            Some(TargetGroup { job, reason: target.reason.as_str(), message: message.into() })
        };
        Targets { groups: found.iter().filter_map(group).collect() }
    }

    fn no_fit<T>(&self, queue: QuotaNode, demand: &Demand) -> Result<T, QuotaRefusal> {
        let forest = self.book.forest();
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
        let dim = self.book.forest().slots().dim(slot);
        self.around.ask().cluster.dims.name(dim)
    }

    fn why_not(
        &self,
        refusal: Refusal,
        class: &Class,
        need: &[Slot],
    ) -> Result<Targets, QuotaRefusal> {
        let cluster = self.around.ask().cluster;
        match refusal {
            Refusal::NoCandidates if !self.book.forest().may_evict(self.preemptor.queue) => {
                refuse("no_candidates", "queue policy Never".to_owned())
            }
            Refusal::NoCandidates => {
                let contested = if class.need.is_empty() { need } else { &class.need };
                let names: Vec<&str> = contested.iter().map(|&slot| self.resource(slot)).collect();
                let names = names.join(", ");
                refuse("no_candidates", format!("no queue is over its quota in {names}"))
            }
            Refusal::NotEnough(None) => refuse(
                "not_enough",
                "not enough: the candidates that may go leave too little".into(),
            ),
            Refusal::NotEnough(Some(short)) => {
                let dim = self.book.forest().slots().dim(short.slot);
                let amount = amount_text(short.amount, dim, &cluster.dims);
                let (resource, count) = (self.resource(short.slot), short.n_candidates);
                let text = format!(
                    "not enough: {resource} short by {amount} with all {count} candidates gone"
                );
                refuse("not_enough", text)
            }
            Refusal::Unplaceable => {
                refuse("unplaceable", "quota would do, but no placement".to_owned())
            }
            Refusal::WouldReturn(group) => {
                let key = self.book.job_of(group).map(|job| cluster.jobs[job].key.to_string());
                let key = key.unwrap_or_default();
                refuse("would_return", format!("would be taken back by {key}"))
            }
        }
    }
}

/// Passes the questions of a search on, with jobs in the place of groups.
struct Trial<'a> {
    jobs: &'a [JobId],
    own: QueueId,
    around: &'a mut dyn Surroundings,
}

impl Trial<'_> {
    fn names(&self, taken: &[Target]) -> Vec<JobId> {
        let job = |target: &Target| self.jobs.get(target.group.index()).copied();
        taken.iter().filter_map(job).collect()
    }
}

impl Asked for Trial<'_> {
    fn may_take(&mut self, taken: &[Target], group: GroupId) -> bool {
        let Some(&job) = self.jobs.get(group.index()) else { return false };
        is_candidate(self.around.ask().cluster, self.own, job) && {
            let taken = self.names(taken);
            self.around.may_take(&taken, job)
        }
    }

    fn has_place(&mut self, taken: &[Target]) -> bool {
        let taken = self.names(taken);
        self.around.has_place(&taken)
    }
}

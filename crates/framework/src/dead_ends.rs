//! Searches for victims that lead nowhere, kept from cycle to cycle: what every node lacks for tasks of
//! a kind is known until the node changes, so that a search which failed is repeated by looking at the
//! nodes that changed since. Specification: actions.md 12.2 S7, S9.
//!
//! Exact, because a search that fails leaves nothing but causes, counted by node, and what is said of a
//! node follows from
//! * what plugins read of the task, its [`Asker`] but for the nodes on which eviction cannot help:
//!   these are compared, and what differs is looked at again;
//! * the row of the node and the rows of the pods there, their jobs and queues: the logs of changed
//!   nodes and jobs name them, and any change of the object of a queue, or of the pods that budgets
//!   cover, ends everything;
//! * how queues stand to their shares ([`Stake`]), for votes that read it: the queues of the pods on
//!   the node, whose stakes are compared;
//! * whether the queue of the task has room for it, and what votes read of that queue: asked at each
//!   search, and another answer ends what is known of the kind;
//! * votes that read more than that ([`crate::Plugin::votes_by_queue`] is false, and a candidate is one
//!   of those that [`crate::Plugin::concerns`] names): asked at each search, in one state once for all
//!   kinds that they tell nothing of;
//! * the clock, for some plugins: what was found holds until the time that they name.
//!
//! A node on which the task may find a place ends the look, and the search itself runs. So it does for
//! tasks whose filters read more than rows, for best-effort pods, and in a dry run. The engine's
//! `dead_ends.rs` and the random stories compare with the plain search.

mod ballots;
mod changed;
mod dead_end;
mod stakes;

use vc_model::{ByteLruCache, NodeId, TaskId};

use crate::asker::{Asker, AskerClass};
use crate::cause::Cause;
use crate::plugin::Clock;
use crate::points::Points;
use crate::ruling::{Question, Ruling};
use crate::session::Session;
use ballots::Ballots;
use changed::Changed;
use dead_end::{DeadEnd, Summary};
use stakes::Stakes;

pub use ballots::{Ballot, Lasts};
pub use stakes::Stake;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hunt {
    /// Pods of other jobs of the queue.
    BetweenJobs,
    /// Pods of the same job.
    InsideJob,
    /// Pods of other queues.
    Reclaim,
}

/// Why a task finds no place on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortfall {
    /// With how often each counts.
    pub causes: Vec<(Cause, u32)>,
    /// What it adds to the attempts that are counted.
    pub n_attempts: u32,
    /// How long the node lacks it.
    pub lasts: Lasts,
}

/// A search that finds nothing; its causes are noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// No filter left a node to look at.
    pub nowhere: bool,
}

/// Whether what a search finds is kept for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Only what was kept before is asked.
    No,
    /// The search has just failed.
    Yes,
}

/// How a node is looked at for a task.
pub trait Look {
    /// Who may go there. No filter rules the node out.
    fn vote(&self, session: &Session<'_>, node: NodeId) -> Ballot;
    /// What the node lacks by that, given whether the queue of the task has room for it. `None`: the
    /// task may find a place there.
    fn shortfall(
        &self,
        session: &Session<'_>,
        node: NodeId,
        ballot: &Ballot,
        has_quota: bool,
    ) -> Option<Shortfall>;
}

/// What a search reads of its task, and whether allocate has looked for a place for it: of those for
/// which it has not, eviction may help on any node.
type Kind = (Asker, Hunt, bool);

/// Everything that is known of such searches.
#[derive(Debug, Default)]
pub(crate) struct DeadEnds {
    /// Counts sessions.
    session: u64,
    by_kind: ByteLruCache<Kind, DeadEnd>,
    /// By what [`Asker::of_vote`] leaves of the tasks.
    by_voter: ByteLruCache<(Asker, Hunt), Ballots>,
    /// What was found holds before this time, in microseconds since 1970.
    until_micros: i64,
    /// Of the queues, and [`vc_model::Budgets::coverage`].
    versions: (u64, u64),
    changed: Changed,
    stakes: Stakes,
}

impl DeadEnds {
    /// A session begins.
    pub(crate) fn begin(&mut self, now_micros: i64) {
        self.session += 1;
        if self.until_micros <= now_micros {
            self.forget();
        }
    }

    fn forget(&mut self) {
        (self.by_kind, self.by_voter) = Default::default();
    }

    /// The session ends; `until_micros` says how long what was found holds.
    pub(crate) fn end(&mut self, until_micros: impl FnOnce() -> i64) {
        let session = self.session;
        while self.by_kind.oldest().is_some_and(|oldest| 1 + oldest.last_use < session) {
            self.by_kind.pop_oldest();
        }
        while self.by_voter.oldest().is_some_and(|oldest| 1 + oldest.last_use < session) {
            self.by_voter.pop_oldest();
        }
        if self.by_kind.is_empty() {
            // Nothing need be followed.
            *self = Self { session, ..Self::default() };
            return;
        }
        self.until_micros = until_micros();
    }

    fn follow(&mut self, session: &Session<'_>) {
        if self.by_kind.is_empty() {
            self.forget();
            self.changed = Changed::from_now(session.cluster, &session.facts().nodes);
        }
        let is_known = self.changed.follow(session.cluster, &session.facts().nodes);
        let versions = (session.queue_version(), session.budgets.coverage());
        if !is_known || self.versions != versions {
            self.versions = versions;
            self.forget();
        }
        self.changed.note_queues(self.stakes.changed(session));
    }

    /// Whether there is something to ask for the kind, or it may be entered. Nothing is evicted for a
    /// new kind: all are asked for in the same order in every cycle, so that the oldest is the next.
    fn knows(&self, kind: &Kind, voter: &(Asker, Hunt), (keep, most): (Keep, usize)) -> bool {
        if self.by_kind.contains(kind) {
            return true;
        }
        // Where votes are known a look at all nodes costs less than the search.
        let is_asked = keep == Keep::Yes || self.by_voter.contains(voter);
        let n_bytes = self.by_kind.n_bytes() + self.by_voter.n_bytes();
        is_asked && n_bytes + DeadEnd::bytes_for(self.changed.n_nodes()) <= most
    }

    fn ask(
        &mut self,
        session: &Session<'_>,
        (task, hunt): (TaskId, Hunt),
        keep: Keep,
        look: &dyn Look,
    ) -> Option<Summary> {
        if self.by_kind.is_empty() && keep == Keep::No {
            return None;
        }
        let (hooks, ask) = (session.hooks(), session.ask());
        let row = &session.tasks[task];
        let shape = |_| AskerClass::Shape(session.classes.serial(row.class));
        let asker = session.asker(task, shape).filter(|_| !row.best_effort)?.of_attempt();
        let reads_rows = hooks.filters_read_rows(ask, task);
        if !reads_rows || hooks.pre_predicate(ask, task).is_err() {
            return None;
        }
        self.follow(session);
        let was_tried = session.records.fit_errors.contains_key(&task);
        let (kind, voter) = ((asker.clone(), hunt, was_tried), (asker.of_vote(), hunt));
        if !self.knows(&kind, &voter, (keep, session.walk_bytes)) {
            return None;
        }
        let mut dead_end = self.by_kind.take(&kind).unwrap_or_default();
        let mut ballots = self.by_voter.take(&voter).unwrap_or_default();
        let now = (self.session, session.version());
        let around = (&mut self.changed, &mut ballots);
        let summary = dead_end.ask(session, (task, hunt), around, now, look);
        (dead_end.last_use, ballots.last_use) = (self.session, self.session);
        let n_bytes = (dead_end.n_bytes(), ballots.n_bytes());
        self.by_kind.put(kind, dead_end, n_bytes.0);
        self.by_voter.put(voter, ballots, n_bytes.1);
        summary
    }
}

impl Session<'_> {
    /// Whether the search for victims for the task fails, by what is known of searches of its kind and
    /// a look at the nodes that changed since; then its causes are noted. `None`: the search is to
    /// be run.
    pub fn fails_to_find(
        &mut self,
        task: TaskId,
        hunt: Hunt,
        keep: Keep,
        look: &dyn Look,
    ) -> Option<Failed> {
        let mut dead_ends = self.dead_ends.take()?;
        let summary = dead_ends.ask(self, (task, hunt), keep, look);
        self.dead_ends = Some(dead_ends);
        let Summary { causes, n_attempts, n_looked_at, nowhere } = summary?;
        for (cause, count) in causes {
            self.causes.add_times(cause, count);
        }
        self.out.n_preemption_attempts += n_attempts;
        if keep == Keep::No {
            self.hits.n_dead_ends += 1;
            self.hits.n_looked_at += n_looked_at;
        }
        Some(Failed { nowhere })
    }

    /// How long these votes about the candidates hold.
    pub fn votes_last(&self, question: Question, candidates: &[TaskId], ruling: &Ruling) -> Lasts {
        let (hooks, ask) = (self.hooks(), self.ask());
        let tier = ruling.rule.as_ref().and_then(|rule| rule.tier);
        if hooks.vote_by_job(ask, question, tier, candidates) {
            return Lasts::WhileRows;
        }
        let has_stake = |&candidate: &TaskId| {
            let queue = self.tasks[candidate].job.map(|job| self.jobs[job].queue);
            let has =
                |queue| hooks.stakeholders(ask).all(|plugin| plugin.stake(ask, queue).is_some());
            queue.is_some_and(has)
        };
        let by_queue = hooks.vote_by_queue(ask, question, tier, candidates);
        match by_queue && candidates.iter().all(has_stake) {
            true => Lasts::WhileStakes,
            false => Lasts::Now,
        }
    }

    /// Whether these votes follow from the candidates and the state, whatever the task asks for.
    pub fn votes_are_shared(&self, question: Question) -> bool {
        self.hooks.vote_for_any_class(self.ask(), question)
    }

    /// Until when what filters and votes said holds if no object changes, in microseconds since 1970.
    pub(crate) fn votes_until_micros(&self) -> i64 {
        let points = [Points::PREDICATE, Points::PREEMPTABLE, Points::RECLAIMABLE];
        let asked = points.into_iter().flat_map(|point| self.hooks.all(point));
        let clock = asked.map(|plugin| plugin.clock(self.ask())).min();
        match clock.unwrap_or(Clock::Ignores) {
            Clock::Reads => i64::MIN,
            Clock::Until(until_micros) => until_micros,
            Clock::Ignores => i64::MAX,
        }
    }
}

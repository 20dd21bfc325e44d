//! Searches for victims that lead nowhere, kept from cycle to cycle: what every node lacks for tasks of
//! a kind is known until the node changes, so that a search which failed is repeated by looking at the
//! nodes that changed since. Specification: actions.md 12.2 S7, S9.
//!
//! Exact, because a search that fails leaves nothing but causes, counted by node, and what is said of a
//! node follows from
//! * what plugins read of the task, its [`Asker`] but for the nodes on which eviction cannot help:
//!   these are compared, and what differs is looked at again;
//! * the row of the node and the rows of the pods there, their jobs and queues: the logs of changed
//!   nodes and jobs name them, and any change of a queue ends everything;
//! * whether the queue of the task has room for it: asked at each search, and another answer ends what
//!   is known of the kind;
//! * votes that read more than that ([`crate::Plugin::votes_by_job`] is false): asked at each search, in
//!   one state once for all kinds that they tell nothing of;
//! * the clock, for some plugins: what was found holds until the time that they name.
//!
//! A node on which the task may find a place ends the look, and the search itself runs. So it does for
//! tasks whose filters read more than rows, for best-effort pods, and in a dry run. The engine's
//! `dead_ends.rs` and the random stories compare with the plain search.

mod ballots;
mod dead_end;

use rustc_hash::{FxHashMap, FxHashSet};
use vc_model::{Cluster, Id, JobId, NodeId, TaskId};

use crate::asker::{Asker, AskerClass};
use crate::cause::Cause;
use crate::plugin::Clock;
use crate::points::Points;
use crate::ruling::{Question, Ruling};
use crate::session::Session;
use ballots::Ballots;
use dead_end::{DeadEnd, Summary};

pub use ballots::Ballot;

/// Bytes that all may take together; further ones are not kept.
const MOST_BYTES: usize = 64 << 20;

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
    /// Whether it follows from the row of the node and from the pods there and their jobs alone.
    pub lasts: bool,
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

/// Everything that is known of such searches.
#[derive(Debug, Default)]
pub(crate) struct DeadEnds {
    /// Counts sessions.
    session: u64,
    by_kind: FxHashMap<(Asker, Hunt), DeadEnd>,
    /// By what [`Asker::of_vote`] leaves of the tasks.
    by_voter: FxHashMap<(Asker, Hunt), Ballots>,
    /// What was found holds before this time, in microseconds since 1970.
    until_micros: i64,
    queue_version: u64,
    changed: Changed,
}

/// Nodes of which something else may be said than before, in the order in which they changed.
#[derive(Debug, Default)]
struct Changed {
    /// Position of the first one.
    start: u64,
    log: Vec<NodeId>,
    /// In the logs of the cluster.
    seen_nodes: u64,
    seen_jobs: u64,
    set_version: Option<u64>,
    /// Those of the session, by index.
    nodes: Vec<bool>,
    places: Places,
}

/// Where the pods of a job are.
#[derive(Debug, Default)]
struct Places {
    by_job: FxHashMap<JobId, Vec<NodeId>>,
    n_entries: usize,
    /// When they were entered anew.
    n_entries_then: usize,
    /// By index of the node: it is entered for the jobs of all its pods.
    entered: Vec<bool>,
}

impl Places {
    fn is_entered(&self, node: NodeId) -> bool {
        self.entered.get(node.index()).is_some_and(|&is_in| is_in)
    }

    fn enter(&mut self, cluster: &Cluster, node: NodeId) {
        if self.is_entered(node) {
            return;
        }
        if 2 * self.n_entries_then + 1024 < self.n_entries {
            self.enter_anew(cluster);
        }
        if self.entered.len() <= node.index() {
            self.entered.resize(node.index() + 1, false);
        }
        self.entered[node.index()] = true;
        self.note(cluster, node);
    }

    fn note(&mut self, cluster: &Cluster, node: NodeId) {
        let tasks = cluster.nodes.get(node).into_iter().flat_map(|row| &row.tasks);
        let jobs = tasks.filter_map(|&task| cluster.tasks[task].job);
        for job in jobs.collect::<FxHashSet<JobId>>() {
            self.by_job.entry(job).or_default().push(node);
            self.n_entries += 1;
        }
    }

    /// A node that changes is entered again, for jobs that stay a second time.
    fn enter_anew(&mut self, cluster: &Cluster) {
        self.by_job.clear();
        self.n_entries = 0;
        let nodes = (0..self.entered.len() as u32).map(NodeId::new);
        for node in nodes.filter(|&node| self.is_entered(node)).collect::<Vec<_>>() {
            self.note(cluster, node);
        }
        self.n_entries_then = self.n_entries;
    }

    /// Of this node nothing is known any more.
    fn leave(&mut self, node: NodeId) {
        if let Some(is_in) = self.entered.get_mut(node.index()) {
            *is_in = false;
        }
    }

    /// The nodes on which pods of the job are, some twice.
    fn take(&mut self, job: JobId) -> Vec<NodeId> {
        let nodes = self.by_job.remove(&job).unwrap_or_default();
        self.n_entries -= nodes.len();
        nodes
    }
}

impl Changed {
    /// Nobody has seen anything yet.
    fn from_now(cluster: &Cluster, nodes: &[NodeId]) -> Self {
        let (of_nodes, of_jobs) = (cluster.node_changes(), cluster.job_changes());
        let (seen_nodes, seen_jobs) = (of_nodes.end(), of_jobs.end());
        let mut changed = Self { seen_nodes, seen_jobs, ..Self::default() };
        changed.follow(cluster, nodes);
        changed
    }

    fn end(&self) -> u64 {
        self.start + self.log.len() as u64
    }

    /// `None`: too long ago.
    fn since(&self, position: u64) -> Option<&[NodeId]> {
        self.log.get(usize::try_from(position.checked_sub(self.start)?).ok()?..)
    }

    fn push(&mut self, node: NodeId) {
        self.places.leave(node);
        self.log.push(node);
    }

    /// Takes over what changed. Whether it is known what did.
    fn follow(&mut self, cluster: &Cluster, nodes: &[NodeId]) -> bool {
        let (of_nodes, of_jobs) = (cluster.node_changes(), cluster.job_changes());
        let changed = of_nodes.since(self.seen_nodes).zip(of_jobs.since(self.seen_jobs));
        let is_known = changed.is_some();
        if let Some((nodes, jobs)) = changed {
            nodes.iter().for_each(|&node| self.push(node));
            for &job in jobs {
                self.places.take(job).into_iter().for_each(|node| self.push(node));
            }
        }
        (self.seen_nodes, self.seen_jobs) = (of_nodes.end(), of_jobs.end());
        if self.set_version != Some(of_nodes.set_version()) {
            self.set_version = Some(of_nodes.set_version());
            self.take_set(nodes);
        }
        is_known
    }

    /// Nodes come and go.
    fn take_set(&mut self, nodes: &[NodeId]) {
        let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        let mut present = vec![false; n_ids.max(self.nodes.len())];
        nodes.iter().for_each(|node| present[node.index()] = true);
        self.nodes.resize(present.len(), false);
        let differs = |&index: &usize| present[index] != self.nodes[index];
        let different: Vec<usize> = (0..present.len()).filter(differs).collect();
        different.into_iter().for_each(|index| self.push(NodeId::new(index as u32)));
        self.nodes = present;
    }

    fn has(&self, node: NodeId) -> bool {
        self.nodes.get(node.index()).is_some_and(|&is_in| is_in)
    }

    /// Forgets what is longer ago than looking at every node is worth.
    fn shorten(&mut self) {
        if 4 * self.nodes.len() + 1024 < self.log.len() {
            self.start = self.end();
            self.log = Vec::new();
        }
    }
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
        self.by_kind.clear();
        self.by_voter.clear();
    }

    /// The session ends; `until_micros` says how long what was found holds.
    pub(crate) fn end(&mut self, until_micros: impl FnOnce() -> i64) {
        let session = self.session;
        self.by_kind.retain(|_, dead_end| session <= 1 + dead_end.last_use);
        self.by_voter.retain(|_, ballots| session <= 1 + ballots.last_use);
        if self.by_kind.is_empty() {
            // Nothing need be followed.
            *self = Self { session, ..Self::default() };
            return;
        }
        self.until_micros = until_micros();
        self.changed.shorten();
    }

    fn follow(&mut self, session: &Session<'_>) {
        if self.by_kind.is_empty() {
            self.by_voter.clear();
            self.changed = Changed::from_now(session.cluster, &session.facts().nodes);
        }
        let is_known = self.changed.follow(session.cluster, &session.facts().nodes);
        if !is_known || self.queue_version != session.queue_version() {
            self.queue_version = session.queue_version();
            self.forget();
        }
    }

    fn n_bytes(&self) -> usize {
        let kinds = self.by_kind.values().map(DeadEnd::n_bytes).sum::<usize>();
        kinds + self.by_voter.values().map(Ballots::n_bytes).sum::<usize>()
    }

    /// Whether there is something to ask for the kind, or it may be entered.
    fn knows(&self, kind: &(Asker, Hunt), voter: &(Asker, Hunt), keep: Keep) -> bool {
        if self.by_kind.contains_key(kind) {
            return true;
        }
        // Where votes are known a look at all nodes costs less than the search.
        let is_asked = keep == Keep::Yes || self.by_voter.contains_key(voter);
        let n_bytes = || self.n_bytes() + DeadEnd::bytes_for(self.changed.nodes.len());
        is_asked && n_bytes() <= MOST_BYTES
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
        let (kind, voter) = ((asker.clone(), hunt), (asker.of_vote(), hunt));
        if !self.knows(&kind, &voter, keep) {
            return None;
        }
        let mut dead_end = self.by_kind.remove(&kind).unwrap_or_default();
        let mut ballots = self.by_voter.remove(&voter).unwrap_or_default();
        let now = (self.session, session.version());
        let around = (&mut self.changed, &mut ballots);
        let summary = dead_end.ask(session, task, around, now, look);
        (dead_end.last_use, ballots.last_use) = (self.session, self.session);
        self.by_kind.insert(kind, dead_end);
        self.by_voter.insert(voter, ballots);
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

    /// Whether these votes follow from the candidates and their jobs alone.
    pub fn votes_last(&self, question: Question, ruling: &Ruling) -> bool {
        let tier = ruling.rule.as_ref().and_then(|rule| rule.tier);
        self.hooks.vote_by_job(self.ask(), question, tier)
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

//! Victim searches that failed, cached across cycles. The failure of every node is kept per search
//! key until the node changes. A failed search is then repeated by checking only changed nodes.
//! Specification: actions.md 12.2 S7, S9.
//!
//! Exact because a failed search leaves only causes, counted by node, and the causes of a node
//! depend only on:
//! - the [`PodSignature`] of the task. Its unresolvable nodes are compared, and a difference makes
//!   those nodes be checked again;
//! - the rows of the node, its pods, their jobs and queues. The logs of changed nodes and jobs name
//!   them. A change of a queue object or of budget coverage drops everything;
//! - the usage of the queues of pods on the node ([`QueueUsageStamp`]), for votes that read it. The
//!   stamps are compared;
//! - what votes read of the task's job and queue, which is part of the search key;
//! - room in the task's queue. It is read at each search, and a difference drops the search key's
//!   results;
//! - votes that declare to read more ([`crate::Depends`]), if a candidate is named by
//!   [`crate::CacheKeys::concerns`]. They are asked at each search, once per state if they do not
//!   read the request;
//! - the clock, for some plugins. Results hold until the time that they name.
//!
//! If a node may have room after all, the search itself runs. It also runs for tasks whose filters
//! read more than rows, for best-effort pods, and in a dry run. The engine's
//! `failed_preemption_cache.rs` and the random stories compare with the plain search.

mod changed_nodes;
mod evictable_sets;
mod failed_preemption;
mod queue_usage;

use smallvec::SmallVec;
use vc_model::{ByteLruCache, NodeId, TaskId};

use crate::cause::Cause;
use crate::plugin::Clock;
use crate::pod_signature::{ClassSignature, PodSignature};
use crate::points::Points;
use crate::session::{Session, SessionState};
use crate::victim_selection::{Question, VictimSelection};
use changed_nodes::ChangedNodes;
use evictable_sets::EvictableSets;
use failed_preemption::{FailedPreemption, FailureSummary, NodeVotes};
use queue_usage::QueueUsageStamps;

pub use evictable_sets::{DependsOn, EvictableSet};
pub use queue_usage::QueueUsageStamp;

/// Which pods a victim search may evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreemptionKind {
    /// Pods of other jobs of the queue.
    BetweenJobs,
    /// Pods of the same job.
    InsideJob,
    /// Pods of other queues.
    Reclaim,
}

/// The causes for which a task fails on a node, each with its count. There are two in most cases.
pub type NodeCauses = SmallVec<[(Cause, u32); 2]>;

/// Why a task fails on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFailure {
    /// The causes.
    pub causes: NodeCauses,
    /// Number of preemption attempts that the node adds to the metric.
    pub n_attempts: u32,
    /// What ends this answer.
    pub depends_on: DependsOn,
}

/// A search that is known to fail. Its causes are noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InfeasibleSearch {
    /// True if filters rule out every node.
    pub nowhere: bool,
}

/// Whether the result of a search is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCaching {
    /// The search has not run yet. Cached node failures and votes may make it unnecessary.
    No,
    /// The search has just failed, so its result may be stored.
    Yes,
}

/// Computes why a node fails for a task.
pub trait NodeProbe {
    /// Returns the candidates of the node that the plugins let go. The caller has checked that
    /// filters leave the node open.
    fn vote(&self, session: &SessionState<'_>, node: NodeId) -> EvictableSet;
    /// Returns why the node fails with these victims. `has_quota` says whether the task's queue has
    /// room for it. Returns `None` if the task may be placed there.
    fn node_failure(
        &self,
        session: &SessionState<'_>,
        node: NodeId,
        evictable_set: &EvictableSet,
        has_quota: bool,
    ) -> Option<NodeFailure>;
}

/// Key of a search: what it reads of its task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SearchKey {
    signature: PodSignature,
    kind: PreemptionKind,
    /// True if allocate has tried the task. Without that attempt no node is known to be
    /// unresolvable.
    was_tried: bool,
    /// What votes read of the task's job and of the queues above it, by plugin. An entry is `None`
    /// if the plugin cannot state it; then results hold in this state only.
    own_usage: Vec<Option<QueueUsageStamp>>,
}

/// Key of votes on victims: what they read of the preemptor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum VoterKey {
    /// The part of the signature that [`PodSignature::for_vote`] leaves.
    Signature(PodSignature, PreemptionKind),
    /// Reclaim where no vote reads more (`PluginSet::reclaim_votes_by_request`). Tasks of different
    /// queues share such votes, but for nodes with pods of their own queue.
    Request {
        /// The class. `Shape(0)` if no vote reads it.
        class: ClassSignature,
        own_usage: Vec<Option<QueueUsageStamp>>,
    },
}

impl VoterKey {
    fn by_signature(key: &SearchKey) -> Self {
        Self::Signature(key.signature.clone().for_vote(), key.kind)
    }

    /// Returns the key of votes that tasks of different queues share. `None` if there are none.
    fn by_request(session: &SessionState<'_>, task: TaskId, key: &SearchKey) -> Option<Self> {
        let is_shared = key.kind == PreemptionKind::Reclaim
            && key.has_own_usage()
            && session.plugins().reclaim_votes_by_request();
        let class = match session.votes_are_shared(Question::Reclaim(task)) {
            true => ClassSignature::Shape(0),
            false => key.signature.class(),
        };
        is_shared.then(|| Self::Request { class, own_usage: key.own_usage.clone() })
    }
}

impl SearchKey {
    /// True if every plugin states what it reads of the task's job and queue.
    fn has_own_usage(&self) -> bool {
        self.own_usage.iter().all(Option::is_some)
    }

    /// True if each placement of the job may give another key.
    fn moves_with_job(&self) -> bool {
        self.own_usage.iter().any(|stamp| matches!(stamp, Some(QueueUsageStamp::Numbers(_))))
    }

    fn n_bytes(&self) -> usize {
        let of_stamp = |stamp: &Option<QueueUsageStamp>| match stamp {
            Some(QueueUsageStamp::Numbers(numbers)) => size_of_val(&**numbers),
            _ => 0,
        };
        size_of_val(&*self.own_usage) + self.own_usage.iter().map(of_stamp).sum::<usize>()
    }
}

/// All failed searches, with the victim votes that they share.
#[derive(Debug, Default)]
pub(crate) struct FailedPreemptionCache {
    /// Number of sessions so far.
    session: u64,
    by_key: ByteLruCache<SearchKey, FailedPreemption>,
    by_voter: ByteLruCache<VoterKey, EvictableSets>,
    /// All results hold until this time, in microseconds since 1970.
    until_micros: i64,
    /// Version of the queues, and [`vc_model::Budgets::coverage`].
    versions: (u64, u64),
    changed: ChangedNodes,
    queue_usages: QueueUsageStamps,
}

impl FailedPreemptionCache {
    /// Returns the bytes of the parts.
    pub(crate) fn sizes(&self) -> [(&'static str, usize); 2] {
        [
            ("failed_preemption_bytes", self.by_key.n_bytes()),
            ("victim_vote_bytes", self.by_voter.n_bytes()),
        ]
    }

    /// Begins a session. Drops everything if the results are out of date.
    pub(crate) fn begin(&mut self, now_micros: i64) {
        self.session += 1;
        if self.until_micros <= now_micros {
            self.forget();
        }
    }

    fn forget(&mut self) {
        (self.by_key, self.by_voter) = Default::default();
    }

    /// Ends the session. Drops entries that were not used in the last two sessions. `until_micros`
    /// returns how long the results hold.
    pub(crate) fn end(&mut self, until_micros: impl FnOnce() -> i64) {
        let session = self.session;
        while self.by_key.oldest().is_some_and(|oldest| 1 + oldest.last_use < session) {
            self.by_key.pop_oldest();
        }
        while self.by_voter.oldest().is_some_and(|oldest| 1 + oldest.last_use < session) {
            self.by_voter.pop_oldest();
        }
        if self.by_key.is_empty() {
            // Without entries no changes have to be followed.
            *self = Self { session, ..Self::default() };
            return;
        }
        self.until_micros = until_micros();
    }

    fn follow(&mut self, session: &SessionState<'_>) {
        if self.by_key.is_empty() {
            self.forget();
            self.changed = ChangedNodes::from_now(session.cluster, &session.info().nodes);
        }
        let is_known = self.changed.follow(session.cluster, &session.info().nodes);
        let versions = (session.queue_version(), session.budgets.coverage());
        if !is_known || self.versions != versions {
            self.versions = versions;
            self.forget();
            // What is unread may have moved pods between queues.
            self.changed.forget_places();
        }
        self.changed.note_queues(session, self.queue_usages.changed(session));
    }

    /// True if the key is stored, or may be added within `most` bytes. Nothing is evicted for a new
    /// key: keys come in the same order in every cycle, so the oldest key is needed next.
    fn knows(
        &self,
        key: &SearchKey,
        voters: [Option<&VoterKey>; 2],
        (caching, most): (FailureCaching, usize),
    ) -> bool {
        if self.by_key.contains(key) {
            return true;
        }
        // With cached votes, checking all nodes costs less than the search.
        let is_voter = |voter: &VoterKey| self.by_voter.contains(voter);
        let is_asked = caching == FailureCaching::Yes || voters.into_iter().flatten().any(is_voter);
        let n_bytes = self.by_key.n_bytes() + self.by_voter.n_bytes();
        is_asked && n_bytes + FailedPreemption::bytes_for(self.changed.n_nodes()) <= most
    }

    fn query(
        &mut self,
        session: &SessionState<'_>,
        (task, preemption_kind): (TaskId, PreemptionKind),
        caching: FailureCaching,
        probe: &dyn NodeProbe,
    ) -> Option<FailureSummary> {
        if self.by_key.is_empty() && caching == FailureCaching::No {
            return None;
        }
        let (plugins, view) = (session.plugins(), session.view());
        let row = &session.tasks[task];
        let shape = |_| ClassSignature::Shape(session.classes.shape_id(row.class));
        let signature =
            session.pod_signature(task, shape).filter(|_| !row.best_effort)?.before_attempt();
        let reads_rows = plugins.filters_read_rows(view, task);
        if !reads_rows || plugins.pre_predicate(view, task).is_err() {
            return None;
        }
        self.follow(session);
        let key = SearchKey {
            signature,
            kind: preemption_kind,
            was_tried: session.records.fit_errors.get(task).is_some(),
            own_usage: plugins.own_queue_usages(view, (task, preemption_kind)).collect(),
        };
        let voter = VoterKey::by_signature(&key);
        let by_request = VoterKey::by_request(session, task, &key);
        let voters = [Some(&voter), by_request.as_ref()];
        if !self.knows(&key, voters, (caching, session.victim_index_bytes)) {
            return None;
        }
        let stored = self.by_key.take(&key);
        // What has only begun to be checked is not worth its bytes, if the next task of the job has
        // another key.
        let is_stored = stored.is_some() || caching == FailureCaching::Yes || !key.moves_with_job();
        let mut failed_preemption = stored.unwrap_or_default();
        let mut votes = NodeVotes {
            by_signature: self.by_voter.take(&voter).unwrap_or_default(),
            by_request: by_request
                .as_ref()
                .map(|voter| self.by_voter.take(voter).unwrap_or_default()),
        };
        let now = (self.session, session.version());
        let around = (&mut self.changed, &mut votes);
        let summary = failed_preemption.query(session, (task, &key), around, now, probe);
        failed_preemption.last_use = self.session;
        if is_stored || summary.is_some() {
            let n_bytes = failed_preemption.n_bytes() + key.n_bytes();
            self.by_key.put(key, failed_preemption, n_bytes);
        }
        self.put_votes(voter, votes.by_signature);
        if let Some((voter, sets)) = by_request.zip(votes.by_request) {
            self.put_votes(voter, sets);
        }
        summary
    }

    fn put_votes(&mut self, voter: VoterKey, mut sets: EvictableSets) {
        sets.last_use = self.session;
        let n_bytes = sets.n_bytes();
        self.by_voter.put(voter, sets, n_bytes);
    }
}

impl Session<'_> {
    /// Returns the failure of a victim search, from cached results and a check of the nodes that
    /// changed since. The causes are noted. Returns `None` if the search has to run.
    pub(crate) fn known_infeasible(
        &mut self,
        task: TaskId,
        preemption_kind: PreemptionKind,
        caching: FailureCaching,
        probe: &dyn NodeProbe,
    ) -> Option<InfeasibleSearch> {
        let Self { state, caches, outcome } = self;
        if !state.is_fast {
            return None;
        }
        let failed_preemptions = &mut caches.failed_preemptions;
        let summary = failed_preemptions.query(state, (task, preemption_kind), caching, probe);
        let FailureSummary { causes, n_attempts, n_probed, nowhere } = summary?;
        for (cause, count) in causes {
            outcome.causes.add_times(cause, count);
        }
        outcome.out.n_preemption_attempts += n_attempts;
        if caching == FailureCaching::No {
            caches.stats.n_known_infeasible += 1;
            caches.stats.n_probed += n_probed;
        }
        Some(InfeasibleSearch { nowhere })
    }
}

impl SessionState<'_> {
    /// Returns what ends the result of these votes about the candidates.
    pub fn votes_depend_on(
        &self,
        question: Question,
        candidates: &[TaskId],
        selection: &VictimSelection,
    ) -> DependsOn {
        let (plugins, view) = (self.plugins(), self.view());
        let tier = selection.rule.as_ref().and_then(|rule| rule.tier);
        if plugins.vote_by_job(view, question, tier, candidates) {
            return DependsOn::Rows;
        }
        let has_queue_usage = |&candidate: &TaskId| {
            let queue = self.tasks[candidate].job.map(|job| self.jobs[job].queue);
            let has =
                |queue| plugins.queue_usages(view, queue).all(|queue_usage| queue_usage.is_some());
            queue.is_some_and(has)
        };
        let by_queue = plugins.vote_by_queue(view, question, tier, candidates);
        match by_queue && candidates.iter().all(has_queue_usage) {
            true => DependsOn::QueueUsage,
            false => DependsOn::State,
        }
    }

    /// True if these votes depend only on the candidates and the state, whatever the task requests.
    pub fn votes_are_shared(&self, question: Question) -> bool {
        self.plugins.vote_for_any_class(question)
    }

    /// Returns the time until which filters, votes and the order of candidates hold if no object
    /// changes, in microseconds since 1970.
    pub(crate) fn votes_until_micros(&self) -> i64 {
        let points =
            [Points::PREDICATE, Points::PREEMPTABLE, Points::RECLAIMABLE, Points::JOB_ORDER];
        let clocks = points.map(|point| self.plugins.clock_at(self.view(), point));
        match clocks.into_iter().min().unwrap_or(Clock::Ignores) {
            Clock::Reads => i64::MIN,
            Clock::Until(until_micros) => until_micros,
            Clock::Ignores => i64::MAX,
        }
    }
}

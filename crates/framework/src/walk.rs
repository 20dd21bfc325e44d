//! Where victims may be worth a look: what the row of a node says about it is kept until the row
//! changes, so that the search for the next task of a gang goes on where the last one has stopped.
//! Exact, because only nodes are left out that the plain search would pass over for what their row
//! says: a filter that eviction cannot cure, no candidate, or too little room even with all
//! candidates gone; or for votes that are the same again. Where one plugin filters, it is asked about
//! a node once: what eviction cannot cure ([`Code`]) comes from no placement, which eviction would take
//! back, and so it is there from before allocate to the end of the action. Of several the first one
//! with a finding hides what the others say: they are asked again about a node that changed, and a task
//! for which allocate has ruled out a node that is open now is left to the plain search. Why nodes are
//! passed over is not said: where nothing is found, the plain search says it. Nor does it matter which
//! walks are kept: one that had to go is begun anew and looks at every node. The engine's `evictions`
//! tests compare them. Specification: actions.md 2.6, 12.2 S2, S8, S9.

mod ranking;

use rustc_hash::{FxHashMap, FxHashSet};
use vc_model::{
    ByteLruCache, ChangeReader, Code, Counts, Id, JobId, NodeId, QueueId, Revision, TaskId,
    TaskStatus,
};

use crate::dispatch::NodeRules;
use crate::fast::blocks::NONE;
use crate::ruling::{Question, Ruling};
use crate::scan::Filter;
use crate::session::Session;
use ranking::Ranking;

/// What one look at a node has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prospect {
    /// The task has room there as it is.
    pub has_room: bool,
    /// It would have if all candidates were gone.
    pub may_suffice: bool,
    /// Somebody is a candidate.
    pub has_candidates: bool,
}

/// Tasks that see the same prospects in the same state: what filters read of them, what says who is
/// a candidate, and what votes about victims read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Seeker {
    serial: u64,
    queue: QueueId,
    best_effort: bool,
    /// The job, where its own pods are another matter than those of others.
    job: Option<JobId>,
    priorities: (i32, i32, i32),
    /// Of the task, what it says, and of its PodGroup.
    preemptable: (bool, bool, bool),
    any_revocable_zone: bool,
}

impl Seeker {
    fn of(session: &Session<'_>, task: TaskId, own: Option<JobId>) -> Option<Self> {
        let row = &session.tasks[task];
        let job = &session.jobs[row.job?];
        let group = job.pod_group.as_ref()?;
        Some(Self {
            serial: session.classes.serial(row.class),
            queue: job.queue,
            best_effort: row.best_effort,
            job: own,
            priorities: (row.priority, row.pod_priority, job.priority),
            preemptable: (row.preemptable, row.marked_preemptable, group.preemptable),
            any_revocable_zone: session.classes[row.class].any_revocable_zone,
        })
    }
}

/// The jobs of the candidates of a node that were too few, as they stood then.
type Rejection = Vec<(JobId, Counts)>;

/// Bytes that the walks of one action may take together: so many that those of some dozen shapes are
/// kept on 20,000 nodes.
pub(crate) const MOST_BYTES: usize = 64 << 20;

/// The walks of one action.
#[derive(Debug, Default)]
pub struct Walks {
    by_seeker: ByteLruCache<Seeker, Walk>,
    /// Those for whom a search was run.
    met: FxHashSet<Seeker>,
    positions: Positions,
    n_forgotten: u64,
}

/// What is known about every node for some tasks.
#[derive(Debug)]
pub struct Walk {
    changed_nodes: ChangeReader<NodeId>,
    /// By position in name order.
    prospects: Vec<Prospect>,
    /// Where votes left too few of the candidates.
    rejections: Vec<Option<Rejection>>,
    /// Jobs in them.
    n_rejecting: usize,
    /// Those that no filter rules out; of them those with room and those that may be worth evictions.
    open: Places,
    /// The open ones stay the same to the end.
    is_settled: bool,
    with_room: Places,
    worth_it: Places,
    ranking: Ranking,
    parked: Parked,
}

/// Where a node stands in name order.
#[derive(Debug, Default)]
struct Positions {
    by_node: Vec<u32>,
    /// Of the set of nodes, which stays the same within a cycle.
    node_set: Option<Revision>,
}

impl Positions {
    fn follow(&mut self, session: &Session<'_>) {
        let node_set = Some(session.node_set_revision());
        if self.node_set == node_set {
            return;
        }
        let nodes = &session.facts().nodes;
        let n_ids = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        self.by_node = vec![u32::MAX; n_ids];
        for (position, node) in nodes.iter().enumerate() {
            self.by_node[node.index()] = position as u32;
        }
        self.node_set = node_set;
    }

    fn of(&self, node: NodeId) -> Option<usize> {
        self.by_node.get(node.index()).filter(|&&at| at != u32::MAX).map(|&at| at as usize)
    }
}

/// A set of positions, one bit each.
#[derive(Clone, Debug, Default)]
struct Places(Vec<u64>);

impl Places {
    fn set(&mut self, place: usize, is_in: bool) {
        let bit = 1 << (place % 64);
        match is_in {
            true => self.0[place / 64] |= bit,
            false => self.0[place / 64] &= !bit,
        }
    }

    fn n_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    fn has(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|bits| bits & (1 << (place % 64)) != 0)
    }

    /// The first one from here on.
    fn next(&self, from: usize) -> Option<usize> {
        let first = self.0.get(from / 64)? & (u64::MAX << (from % 64));
        let words = self.0[from / 64..].iter().enumerate().map(|(word, &bits)| (word, bits));
        let mut words = words.map(|(word, bits)| (word, if word == 0 { first } else { bits }));
        let (word, bits) = words.find(|(_, bits)| *bits != 0)?;
        Some(64 * (from / 64 + word) + bits.trailing_zeros() as usize)
    }
}

/// Nodes on which nothing can be done before certain jobs have changed.
#[derive(Debug, Default)]
struct Parked {
    places: Places,
    /// Some of them may be back already.
    by_job: FxHashMap<JobId, Vec<usize>>,
    n_entries: usize,
    changed_jobs: ChangeReader<JobId>,
}

impl Parked {
    fn new(session: &Session<'_>, n_words: usize) -> Self {
        let changed_jobs = ChangeReader::at_end(session.job_changes());
        Self { places: Places(vec![0; n_words]), changed_jobs, ..Self::default() }
    }

    fn enter(&mut self, place: usize, jobs: &[(JobId, Counts)]) {
        self.places.set(place, true);
        self.n_entries += jobs.len();
        jobs.iter().for_each(|(job, _)| self.by_job.entry(*job).or_default().push(place));
    }

    /// Lets those go whose jobs have changed. The log is not shortened within a cycle.
    fn release(&mut self, session: &Session<'_>, mut released: impl FnMut(usize)) {
        let changed = self.changed_jobs.read(session.job_changes());
        for job in changed.into_iter().flatten() {
            let of_job = self.by_job.remove(&job).unwrap_or_default();
            self.n_entries -= of_job.len();
            for place in of_job {
                if self.places.has(place) {
                    self.places.set(place, false);
                    released(place);
                }
            }
        }
    }
}

/// Of a table of jobs, for each.
const BYTES_OF_ENTRY: usize = 2 * size_of::<(JobId, Vec<usize>)>();

impl Parked {
    /// No job is entered without a place.
    fn n_bytes(&self) -> usize {
        self.places.n_bytes()
            + self.n_entries * 2 * size_of::<usize>()
            + self.by_job.len() * BYTES_OF_ENTRY
    }
}

impl Walks {
    /// What is known for the task, brought up to date; `own` is its job if that decides who is a
    /// candidate, `look` looks at the row of a node that no filter rules out. `None`: only the
    /// plain search can tell.
    pub fn of(
        &mut self,
        session: &Session<'_>,
        task: TaskId,
        own: Option<JobId>,
        look: impl Fn(NodeId) -> Prospect,
    ) -> Option<&mut Walk> {
        let seeker = Seeker::of(session, task, own)?;
        let (hooks, ask) = (session.hooks(), session.ask());
        if !session.is_fast() || hooks.pre_predicate(ask, task).is_err() {
            return None;
        }
        if !hooks.filters_read_rows(ask, task) {
            return None;
        }
        // It pays from the second task on, and one that is alone in its job may be the last.
        let job = session.tasks[task].job.map(|job| &session.jobs[job]);
        let is_alone = job.is_some_and(|job| job.counts.of(TaskStatus::Pending) == 1);
        if is_alone && !self.by_seeker.contains(&seeker) && self.met.insert(seeker) {
            return None;
        }
        self.positions.follow(session);
        let eyes = Eyes { session, task, look };
        // The most recently used walk may have grown since it was counted.
        self.by_seeker.recount_newest(Walk::n_bytes);
        let mut walk = self.by_seeker.take(&seeker).unwrap_or_else(|| Walk::new(&eyes));
        walk.catch_up(&eyes, &self.positions);
        let agrees = || walk.agrees(session, task, &self.positions);
        debug_assert!(!walk.is_settled || agrees());
        let is_sure = walk.is_settled || agrees();
        let n_bytes = walk.n_bytes();
        self.by_seeker.put(seeker, walk, n_bytes);
        while session.walk_bytes < self.by_seeker.n_bytes() && 1 < self.by_seeker.len() {
            self.by_seeker.pop_oldest();
            self.n_forgotten += 1;
        }
        self.by_seeker.get_mut(&seeker).filter(|_| is_sure)
    }

    /// How many walks had to go since this was asked last.
    pub fn take_forgotten(&mut self) -> u64 {
        std::mem::take(&mut self.n_forgotten)
    }
}

/// How a node is looked at.
struct Eyes<'a, 'c, F> {
    session: &'a Session<'c>,
    task: TaskId,
    look: F,
}

impl<F> Eyes<'_, '_, F> {
    fn rules(&self) -> NodeRules<'_> {
        self.session.hooks().node_rules(self.session.ask(), self.task)
    }

    /// Whether no filter rules the node out.
    fn is_open(&self, rules: &NodeRules<'_>, node: NodeId) -> bool {
        let mut findings = Vec::new();
        match self.session.unusable(self.task, node, Filter::Preempt) {
            Some(finding) => findings.push(finding),
            None => rules.find(node, &mut findings),
        }
        findings.iter().all(|finding| finding.code == Code::Unschedulable)
    }
}

impl Walk {
    fn new<F: Fn(NodeId) -> Prospect>(eyes: &Eyes<'_, '_, F>) -> Self {
        let nodes = &eyes.session.facts().nodes;
        let n_words = nodes.len().div_ceil(64);
        let mut walk = Self {
            changed_nodes: ChangeReader::at_end(eyes.session.node_changes()),
            prospects: vec![Prospect::default(); nodes.len()],
            rejections: vec![None; nodes.len()],
            n_rejecting: 0,
            open: Places(vec![0; n_words]),
            is_settled: eyes.session.hooks().n_filters() <= 1,
            with_room: Places(vec![0; n_words]),
            worth_it: Places(vec![0; n_words]),
            ranking: Ranking::default(),
            parked: Parked::new(eyes.session, n_words),
        };
        let rules = eyes.rules();
        for (place, &node) in nodes.iter().enumerate() {
            if eyes.is_open(&rules, node) {
                walk.open.set(place, true);
                walk.enter(place, (eyes.look)(node));
            }
        }
        walk
    }

    fn enter(&mut self, place: usize, prospect: Prospect) {
        self.ranking.outdate(place);
        self.parked.places.set(place, false);
        self.prospects[place] = prospect;
        self.set_rejection(place, None);
        self.with_room.set(place, prospect.has_room);
        self.worth_it.set(place, prospect.may_suffice);
    }

    /// Looks again at the open nodes whose row changed.
    fn catch_up<F: Fn(NodeId) -> Prospect>(
        &mut self,
        eyes: &Eyes<'_, '_, F>,
        positions: &Positions,
    ) {
        let Self { parked, ranking, .. } = &mut *self;
        parked.release(eyes.session, |place| ranking.outdate(place));
        let changed: Vec<usize> = match self.changed_nodes.read(eyes.session.node_changes()) {
            Some(changed) => changed.filter_map(|node| positions.of(node)).collect(),
            None => (0..self.prospects.len()).collect(),
        };
        for place in changed {
            let node = eyes.session.facts().nodes[place];
            let is_open = || eyes.is_open(&eyes.rules(), node);
            debug_assert!(!self.is_settled || self.open.has(place) == is_open());
            if !self.is_settled {
                self.open.set(place, is_open());
                self.enter(place, Prospect::default());
            }
            if self.open.has(place) {
                self.enter(place, (eyes.look)(node));
            }
        }
    }

    /// The first node from this position on, in name order, that no filter rules out.
    pub fn next_open(&self, from: usize) -> Option<usize> {
        self.open.next(from)
    }

    /// The first from this position on, in name order, on which the task has room.
    pub fn next_with_room(&self, from: usize) -> Option<usize> {
        self.with_room.next(from)
    }

    /// The first from this position on, in name order, on which victims may be enough.
    pub fn next_worth_it(&self, from: usize) -> Option<usize> {
        self.worth_it.next(from)
    }

    /// Whether no node is open on which eviction cannot help by what allocate has found.
    fn agrees(&self, session: &Session<'_>, task: TaskId, positions: &Positions) -> bool {
        let errors = session.records.fit_errors.get(&task);
        let hopeless = errors.into_iter().flat_map(|errors| errors.unresolvable().iter());
        let mut places = hopeless.filter_map(|node| positions.of(node));
        places.all(|place| !self.open.has(place))
    }

    /// Takes over groups and scores of the nodes as they are now.
    pub(crate) fn rank(&mut self, n_nodes: usize, result: impl Fn(usize) -> (u8, f64)) {
        let Self { ranking, worth_it, parked, .. } = self;
        let of_worthy = |at| match worth_it.has(at) && !parked.places.has(at) {
            true => result(at),
            false => (NONE, 0.0),
        };
        ranking.follow(n_nodes, of_worthy);
    }

    /// The best of the nodes on which victims may be enough, after those that were taken since they
    /// were ranked ([`Session::rank_remembered`]).
    pub fn take_best(&mut self) -> Option<usize> {
        self.ranking.take_best()
    }

    /// Leaves a node out of the order, if it is rejected, until one of the jobs changes whose pods are
    /// candidates there.
    pub fn park(&mut self, place: usize) {
        let rejection = self.rejections[place].as_ref().filter(|_| self.ranking.is_known());
        let Some(jobs) = rejection else { return };
        self.parked.enter(place, jobs);
        self.ranking.drop_taken(place);
    }

    /// Nodes that are left out.
    pub fn n_parked(&self) -> u64 {
        self.parked.places.count()
    }

    /// Remembers that the votes left too few of these candidates, if they read no more than the
    /// candidates and their jobs ([`crate::Plugin::votes_by_job`]); `ruling` is what they left.
    pub fn reject(
        &mut self,
        session: &Session<'_>,
        place: usize,
        question: Question,
        candidates: &[TaskId],
        ruling: &Ruling,
    ) {
        self.set_rejection(place, None);
        let tier = ruling.rule.as_ref().and_then(|rule| rule.tier);
        if !session.hooks().vote_by_job(session.ask(), question, tier, candidates) {
            return;
        }
        let mut jobs: Vec<JobId> =
            candidates.iter().filter_map(|&candidate| session.tasks[candidate].job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let stand = |job: JobId| (job, session.jobs[job].counts.clone());
        self.set_rejection(place, Some(jobs.into_iter().map(stand).collect()));
    }

    fn set_rejection(&mut self, place: usize, rejection: Option<Rejection>) {
        let n_jobs = |rejection: &Option<Rejection>| rejection.as_ref().map_or(0, Vec::len);
        self.n_rejecting += n_jobs(&rejection);
        let before = std::mem::replace(&mut self.rejections[place], rejection);
        self.n_rejecting -= n_jobs(&before);
    }

    /// About, and at no cost by node.
    fn n_bytes(&self) -> usize {
        let sets = [&self.open, &self.with_room, &self.worth_it];
        size_of_val(&*self.prospects)
            + size_of_val(&*self.rejections)
            + self.n_rejecting * size_of::<(JobId, Counts)>()
            + sets.iter().map(|set| set.n_bytes()).sum::<usize>()
            + self.ranking.n_bytes()
            + self.parked.n_bytes()
    }

    /// Whether the votes leave too few of the candidates still: neither the row of the node nor the
    /// jobs of the candidates have changed.
    pub fn is_rejected(&self, session: &Session<'_>, place: usize) -> bool {
        self.rejections[place].as_ref().is_some_and(|jobs| {
            jobs.iter().all(|(job, counts)| session.jobs[*job].counts == *counts)
        })
    }

    /// What the row of the node at this position says.
    pub fn prospect(&self, place: usize) -> Prospect {
        self.prospects[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_order() {
        let mut places = Places(vec![0; 3]);
        for place in [0, 5, 63, 64, 130, 5] {
            places.set(place, true);
        }
        places.set(63, false);
        let all = std::iter::successors(places.next(0), |&last| places.next(last + 1));
        assert_eq!(all.collect::<Vec<_>>(), [0, 5, 64, 130]);
        assert_eq!((places.next(131), places.next(1000)), (None, None));
        assert_eq!(Places::default().next(0), None);
    }
}

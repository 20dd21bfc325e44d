//! What the nodes lack for tasks of one kind. Specification: actions.md 12.2 S7.

use vc_model::{Code, FitErrors, Id, NodeId, NodeSet, QueueId, TaskId};

use super::ballots::{Ballots, Lasts};
use super::changed::{Changed, Reader};
use super::stakes::Stake;
use super::{Hunt, Kind as KindOfTask, Look, Shortfall};
use crate::cause::{Cause, Tally};
use crate::dispatch::NodeRules;
use crate::scan::Filter;
use crate::session::Session;

/// Nothing counts of this node: eviction cannot help there, as allocate has found, or it is gone.
const NOTHING: u16 = 0;
/// It is among those that are to be looked at.
const UNKNOWN: u16 = u16::MAX;

/// Nodes that lack so many different things are not told apart quickly.
const MOST_KINDS: usize = 256;

/// Counts of the causes of a search that finds nothing.
pub(super) struct Summary {
    pub(super) causes: Tally,
    pub(super) n_attempts: u32,
    pub(super) n_looked_at: u64,
    /// No filter left a node to look at.
    pub(super) nowhere: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct DeadEnd {
    /// The session that asked last.
    pub(super) last_use: u64,
    reader: Reader,
    /// By index of the node: `NOTHING`, `UNKNOWN`, or one more than the place of its kind.
    of_node: Vec<u16>,
    kinds: Vec<Kind>,
    /// Those that are `UNKNOWN`, and those to be looked at again at each search.
    to_look_at: Vec<NodeId>,
    fleeting: Vec<NodeId>,
    terms: Terms,
}

/// What nodes of a kind lack.
#[derive(Debug)]
struct Kind {
    shortfall: Shortfall,
    is_open: bool,
    n_nodes: u32,
}

/// What is not a matter of one node.
#[derive(Clone, Debug, Default, PartialEq)]
struct Terms {
    /// The queue has room for the task.
    has_quota: bool,
    /// Allocate has ruled out every node; it is worked out again why.
    none_is_worth_it: bool,
    /// Nodes on which eviction cannot help, as allocate has found.
    hopeless: NodeSet,
    /// What votes read of the queues above the task.
    stakes: Vec<Stake>,
}

impl Terms {
    fn now(session: &Session<'_>, task: TaskId) -> Self {
        let queue = session.tasks[task].job.map(|job| session.jobs[job].queue);
        let allocatable = |queue| session.hooks().allocatable(session.ask(), queue, task).is_ok();
        let errors = session.records.fit_errors.get(&task);
        let hopeless = errors.map(|errors| errors.unresolvable().clone()).unwrap_or_default();
        let nodes = &session.facts().nodes;
        let none_is_worth_it =
            errors.is_some_and(|errors| nodes.iter().all(|&node| errors.is_unresolvable(node)));
        let has_quota = queue.is_some_and(allocatable);
        let voters = session.hooks().stakeholders(session.ask());
        let stakes = voters.map(|plugin| plugin.own_stake(session.ask(), task)).collect();
        Self { has_quota, none_is_worth_it, hopeless, stakes }
    }
}

impl DeadEnd {
    pub(super) fn bytes_for(n_nodes: usize) -> usize {
        2 * size_of::<(KindOfTask, Self)>() + n_nodes * (size_of::<u16>() + size_of::<NodeId>())
    }

    pub(super) fn n_bytes(&self) -> usize {
        Self::bytes_for(self.of_node.len()) + self.kinds.len() * size_of::<Kind>()
    }

    /// Looks at what changed. `None`: a node may have a place.
    pub(super) fn ask(
        &mut self,
        session: &Session<'_>,
        (task, hunt): (TaskId, Hunt),
        (changed, ballots): (&mut Changed, &mut Ballots),
        now: (u64, u64),
        look: &dyn Look,
    ) -> Option<Summary> {
        let own = session.tasks[task].job.map(|job| session.jobs[job].queue);
        // Of which queues candidates are.
        let reads = |queue: QueueId| (Some(queue) == own) == (hunt != Hunt::Reclaim);
        self.catch_up(session, task, changed, reads);
        ballots.catch_up(changed, reads, now);
        let rules = || session.hooks().node_rules(session.ask(), task);
        let n_looked_at = self.to_look_at.len() as u64;
        let eyes = (!self.to_look_at.is_empty()).then(|| Eyes { session, task, rules: rules() });
        while let Some((&node, eyes)) = self.to_look_at.last().zip(eyes.as_ref()) {
            // Votes are kept, whatever is found.
            changed.places.enter(session, node);
            let found = match changed.has(node) {
                true => eyes.see(node, &self.terms, (ballots, look))?,
                false => None,
            };
            if MOST_KINDS <= self.kinds.len() {
                return None;
            }
            self.to_look_at.pop();
            self.note(node, found);
        }
        Some(Summary { n_looked_at, ..self.summary() })
    }

    /// Takes over what changed since the last search.
    fn catch_up(
        &mut self,
        session: &Session<'_>,
        task: TaskId,
        changed: &Changed,
        reads: impl Fn(QueueId) -> bool,
    ) {
        let terms = Terms::now(session, task);
        let before = std::mem::replace(&mut self.terms, terms);
        let is_kept = before.has_quota == self.terms.has_quota
            && before.none_is_worth_it == self.terms.none_is_worth_it
            && before.stakes == self.terms.stakes;
        match changed.read(&mut self.reader).filter(|_| is_kept) {
            Some(news) => {
                news.nodes.for_each(|node| self.outdate(node));
                let queues = news.queues.filter(|&queue| reads(queue));
                let nodes = queues.flat_map(|queue| changed.places.of_queue(queue));
                nodes.for_each(|&node| self.outdate_stakes(node));
            }
            None => self.start(&session.facts().nodes),
        }
        if before.hopeless != self.terms.hopeless {
            let now = self.terms.hopeless.clone();
            let differs = |node: &NodeId| before.hopeless.contains(*node) != now.contains(*node);
            let different = before.hopeless.iter().chain(now.iter()).filter(differs);
            different.for_each(|node| self.outdate(node));
        }
        for node in std::mem::take(&mut self.fleeting) {
            self.outdate(node);
        }
    }

    /// Nothing is known.
    fn start(&mut self, nodes: &[NodeId]) {
        self.of_node.fill(NOTHING);
        self.kinds.clear();
        self.fleeting.clear();
        self.to_look_at.clear();
        // The last one is looked at first.
        nodes.iter().rev().for_each(|&node| self.outdate(node));
    }

    fn outdate(&mut self, node: NodeId) {
        if self.of_node.len() <= node.index() {
            self.of_node.resize(node.index() + 1, NOTHING);
        }
        let before = std::mem::replace(&mut self.of_node[node.index()], UNKNOWN);
        match before {
            UNKNOWN => return,
            NOTHING => {}
            kind => self.kinds[usize::from(kind) - 1].n_nodes -= 1,
        }
        self.to_look_at.push(node);
    }

    /// A queue of which votes about the node may read stands otherwise.
    fn outdate_stakes(&mut self, node: NodeId) {
        let kind =
            self.of_node.get(node.index()).filter(|&&kind| kind != NOTHING && kind != UNKNOWN);
        let kind = kind.map(|&kind| &self.kinds[usize::from(kind) - 1]);
        if kind.is_some_and(|kind| kind.shortfall.lasts == Lasts::WhileStakes) {
            self.outdate(node);
        }
    }

    fn note(&mut self, node: NodeId, found: Option<(Shortfall, bool)>) {
        let kind = found.map_or(NOTHING, |(shortfall, is_open)| {
            if shortfall.lasts == Lasts::Now {
                self.fleeting.push(node);
            }
            self.kind(shortfall, is_open)
        });
        self.of_node[node.index()] = kind;
    }

    /// One node more of the kind; its number.
    fn kind(&mut self, shortfall: Shortfall, is_open: bool) -> u16 {
        let is_it = |kind: &Kind| kind.is_open == is_open && kind.shortfall == shortfall;
        let place = self.kinds.iter().position(is_it).unwrap_or_else(|| {
            let unused = self.kinds.iter().position(|kind| kind.n_nodes == 0);
            let kind = Kind { shortfall, is_open, n_nodes: 0 };
            match unused {
                Some(place) => self.kinds[place] = kind,
                None => self.kinds.push(kind),
            }
            unused.unwrap_or(self.kinds.len() - 1)
        });
        self.kinds[place].n_nodes += 1;
        (place + 1) as u16
    }

    fn summary(&self) -> Summary {
        let mut causes = Tally::new();
        let mut n_attempts = 0;
        for kind in self.kinds.iter().filter(|kind| 0 < kind.n_nodes) {
            n_attempts += kind.n_nodes * kind.shortfall.n_attempts;
            for (cause, count) in &kind.shortfall.causes {
                *causes.entry(cause.clone()).or_default() += kind.n_nodes * count;
            }
        }
        let is_open = |kind: &Kind| kind.is_open && 0 < kind.n_nodes;
        let nowhere = !self.kinds.iter().any(is_open);
        Summary { causes, n_attempts, n_looked_at: 0, nowhere }
    }
}

/// How a node is looked at.
struct Eyes<'a, 'c> {
    session: &'a Session<'c>,
    task: TaskId,
    rules: NodeRules<'a>,
}

impl Eyes<'_, '_> {
    /// What the node lacks, and that no filter rules it out; `None` inside: it does not count. `None`:
    /// the task may find a place there.
    fn see(
        &self,
        node: NodeId,
        terms: &Terms,
        (ballots, look): (&mut Ballots, &dyn Look),
    ) -> Option<Option<(Shortfall, bool)>> {
        if terms.hopeless.contains(node) && !terms.none_is_worth_it {
            return Some(None);
        }
        let mut findings = Vec::new();
        match self.session.unusable(self.task, node, Filter::Preempt) {
            Some(finding) => findings.push(finding),
            None => self.rules.find(node, &mut findings),
        }
        if findings.iter().any(|finding| finding.code != Code::Unschedulable) {
            let mut errors = FitErrors::default();
            errors.add(node, &findings);
            let reasons = errors.reasons.into_iter();
            let causes = reasons.map(|(reason, count)| (Cause::Filter(reason), count)).collect();
            let lack = Shortfall { causes, n_attempts: 0, lasts: Lasts::WhileRows };
            return Some(Some((lack, false)));
        }
        if terms.none_is_worth_it {
            return Some(None);
        }
        let ballot = ballots.of(node, || look.vote(self.session, node));
        let lack = look.shortfall(self.session, node, &ballot, terms.has_quota)?;
        Some(Some((lack, true)))
    }
}

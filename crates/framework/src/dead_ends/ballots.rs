//! Who may go on each node for tasks that agree in what says who is a candidate and in what votes
//! read: kinds that differ in what they ask for share it. Of a node only the sums are kept, so that the
//! pods of a node are walked once for all kinds. Specification: actions.md 12.2 S8.

use rustc_hash::FxHashMap;
use vc_model::{Id, NodeId, QueueId};
use vc_resource::Resource;

use super::changed::{Changed, Reader};

/// What the candidates of a node would leave, and what votes leave of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ballot {
    /// There are candidates, and together they hold so much.
    pub candidates: Option<Resource>,
    /// There are victims, and together they hold so much.
    pub victims: Option<Resource>,
    /// As in [`crate::Ruling`].
    pub refused_by: Option<&'static str>,
    /// How long the votes hold.
    pub lasts: Lasts,
    /// They follow from the candidates and the state, whatever the task asks for.
    pub is_shared: bool,
}

/// How long something that is said of a node holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lasts {
    /// In this state.
    #[default]
    Now,
    /// Until the row of the node, a pod there or its job changes, or the [`super::Stake`] of a queue of
    /// such a pod.
    WhileStakes,
    /// Until the row of the node, a pod there or its job changes.
    WhileRows,
}

/// Nothing is known of the node.
const UNKNOWN: u32 = 0;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ballots {
    /// The session that asked last.
    pub(super) last_use: u64,
    reader: Reader,
    /// By index of the node: one more than the place of what is known, or `UNKNOWN`.
    of_node: Vec<u32>,
    /// The same of votes that hold in this state only: the session, and the number of the state in it.
    now: (u64, u64),
    of_node_now: Vec<u32>,
    known: Vec<Ballot>,
    places: FxHashMap<Ballot, u32>,
}

impl Ballots {
    pub(super) fn n_bytes(&self) -> usize {
        let of_ballot = 2 * (size_of::<Ballot>() + size_of::<u32>());
        let n_nodes = self.of_node.len() + self.of_node_now.len();
        size_of::<Self>() + n_nodes * size_of::<u32>() + self.known.len() * of_ballot
    }

    /// Forgets what changed since the last search.
    pub(super) fn catch_up(
        &mut self,
        changed: &Changed,
        reads: impl Fn(QueueId) -> bool,
        now: (u64, u64),
    ) {
        let news = changed.read(&mut self.reader);
        // Sums that no node has any more are not looked for.
        let n_nodes = self.of_node.len().max(self.of_node_now.len());
        let is_long = 2 * n_nodes + 1024 < self.known.len();
        match news.filter(|_| !is_long) {
            Some(news) => {
                for node in news.nodes {
                    for of_node in [&mut self.of_node, &mut self.of_node_now] {
                        of_node.get_mut(node.index()).into_iter().for_each(|it| *it = UNKNOWN);
                    }
                }
                let queues = news.queues.filter(|&queue| reads(queue));
                let nodes = queues.flat_map(|queue| changed.places.of_queue(queue));
                nodes.for_each(|&node| self.forget_stakes(node));
            }
            None => {
                let Self { last_use, reader, .. } = *self;
                *self = Self { last_use, reader, ..Self::default() };
            }
        }
        if self.now != now {
            self.now = now;
            self.of_node_now.clear();
        }
    }

    fn forget_stakes(&mut self, node: NodeId) {
        let Some(of_node) = self.of_node.get_mut(node.index()) else { return };
        let place = of_node.checked_sub(1);
        let known = place.and_then(|place| self.known.get(place as usize));
        if known.is_some_and(|ballot| ballot.lasts == Lasts::WhileStakes) {
            *of_node = UNKNOWN;
        }
    }

    /// What is said of the node; `vote` says it if that is not known, or does not last.
    pub(super) fn of(&mut self, node: NodeId, vote: impl FnOnce() -> Ballot) -> Ballot {
        for of_node in [&self.of_node, &self.of_node_now] {
            let known = of_node.get(node.index()).filter(|&&known| known != UNKNOWN);
            if let Some(&known) = known {
                return self.known[known as usize - 1].clone();
            }
        }
        let ballot = vote();
        if ballot.is_shared {
            self.note(node, &ballot);
        }
        ballot
    }

    fn note(&mut self, node: NodeId, ballot: &Ballot) {
        let next = self.known.len() as u32 + 1;
        let known = match self.places.get(ballot) {
            Some(&known) => known,
            None => {
                self.known.push(ballot.clone());
                self.places.insert(ballot.clone(), next);
                next
            }
        };
        let of_node = match ballot.lasts {
            Lasts::Now => &mut self.of_node_now,
            Lasts::WhileStakes | Lasts::WhileRows => &mut self.of_node,
        };
        if of_node.len() <= node.index() {
            of_node.resize(node.index() + 1, UNKNOWN);
        }
        of_node[node.index()] = known;
    }
}

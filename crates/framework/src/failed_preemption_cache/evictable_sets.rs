//! The evictable set of each node, for all tasks for which votes read the same.
//! Only sums are kept per node, so the pods of a node are visited once for all search keys.
//! Specification: actions.md 12.2 S8.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use vc_model::{Id, NodeId, QueueId};
use vc_resource::Resource;

use super::changed_nodes::{ChangedNodes, ChangedNodesReader};

/// The candidates of a node and the victims that votes leave of them, as sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EvictableSet {
    /// Σ requests of the candidates. `None` if there is no candidate.
    pub candidates: Option<Resource>,
    /// Σ requests of the victims. `None` if there is no victim.
    pub victims: Option<Resource>,
    /// The plugin that refused, as in [`crate::VictimSelection`].
    pub refused_by: Option<&'static str>,
    /// What ends the result of the votes.
    pub depends_on: DependsOn,
    /// True if the votes depend only on the candidates and the state, whatever the task requests.
    pub is_shared: bool,
}

impl EvictableSet {
    /// True if the votes hold in other states, too, as long as what they read stays the same.
    pub(super) fn is_lasting(&self) -> bool {
        self.depends_on != DependsOn::State
    }
}

/// What ends a cached answer about a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DependsOn {
    /// The answer holds in this state only.
    #[default]
    State,
    /// The answer holds until the node, a pod there, that pod's job, or the
    /// [`super::QueueUsageStamp`] of such a pod's queue changes.
    QueueUsage,
    /// The answer holds until the node, a pod there, or that pod's job changes.
    Rows,
}

/// Entry of a node without a cached set.
const UNKNOWN: u32 = 0;

/// The evictable sets of all nodes for one vote signature.
#[derive(Debug, Default)]
pub(super) struct EvictableSets {
    /// The session of the last use.
    pub(super) last_use: u64,
    reader: ChangedNodesReader,
    /// By index of the node: one more than the index into `known`, or `UNKNOWN`.
    of_node: Vec<u32>,
    /// The state (session and version) for which `of_node_now` holds. `of_node_now` is like
    /// `of_node`, for votes that hold in one state only.
    now: (u64, u64),
    of_node_now: Vec<u32>,
    known: Vec<EvictableSet>,
    places: FxHashMap<EvictableSet, u32>,
}

impl EvictableSets {
    pub(super) fn n_bytes(&self) -> usize {
        let of_evictable_set = 2 * (size_of::<EvictableSet>() + size_of::<u32>());
        let n_nodes = self.of_node.len() + self.of_node_now.len();
        size_of::<Self>() + n_nodes * size_of::<u32>() + self.known.len() * of_evictable_set
    }

    /// Drops the sets of nodes that changed since the last search.
    pub(super) fn catch_up(
        &mut self,
        changed: &ChangedNodes,
        reads: impl Fn(QueueId) -> bool,
        now: (u64, u64),
    ) {
        let news = changed.read(&mut self.reader);
        // Unused sets are not searched for; too many of them drop everything.
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
                nodes.for_each(|&node| self.forget_queue_usage(node));
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

    fn forget_queue_usage(&mut self, node: NodeId) {
        let Some(of_node) = self.of_node.get_mut(node.index()) else { return };
        let place = of_node.checked_sub(1);
        let known = place.and_then(|place| self.known.get(place as usize));
        if known.is_some_and(|evictable_set| evictable_set.depends_on == DependsOn::QueueUsage) {
            *of_node = UNKNOWN;
        }
    }

    /// Returns the evictable set of a node. Calls `vote` if it is not cached, and caches the result if
    /// `may_cache` says so.
    pub(super) fn of(
        &mut self,
        node: NodeId,
        may_cache: impl FnOnce(&EvictableSet) -> bool,
        vote: impl FnOnce() -> EvictableSet,
    ) -> Cow<'_, EvictableSet> {
        if let Some(place) = self.place_of(node) {
            return Cow::Borrowed(&self.known[place]);
        }
        let evictable_set = vote();
        if may_cache(&evictable_set) {
            self.note(node, &evictable_set);
        }
        Cow::Owned(evictable_set)
    }

    /// Returns the index of the node's set in `known`. Returns `None` if it is not cached.
    fn place_of(&self, node: NodeId) -> Option<usize> {
        let of_node = [&self.of_node, &self.of_node_now].into_iter();
        let mut known = of_node.filter_map(|of_node| of_node.get(node.index()));
        known.find(|&&known| known != UNKNOWN).map(|&known| known as usize - 1)
    }

    fn note(&mut self, node: NodeId, evictable_set: &EvictableSet) {
        let next = self.known.len() as u32 + 1;
        let known = match self.places.get(evictable_set) {
            Some(&known) => known,
            None => {
                self.known.push(evictable_set.clone());
                self.places.insert(evictable_set.clone(), next);
                next
            }
        };
        let of_node = match evictable_set.depends_on {
            DependsOn::State => &mut self.of_node_now,
            DependsOn::QueueUsage | DependsOn::Rows => &mut self.of_node,
        };
        if of_node.len() <= node.index() {
            of_node.resize(node.index() + 1, UNKNOWN);
        }
        of_node[node.index()] = known;
    }
}

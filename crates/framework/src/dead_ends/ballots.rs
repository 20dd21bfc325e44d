//! Who may go on each node for tasks that agree in what says who is a candidate and in what votes
//! read: kinds that differ in what they ask for share it. Of a node only the sums are kept, so that the
//! pods of a node are walked once for all kinds. Specification: actions.md 12.2 S8.

use rustc_hash::FxHashMap;
use vc_model::{Id, NodeId};
use vc_resource::Resource;

use super::Changed;

/// What the candidates of a node would leave, and what votes leave of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ballot {
    /// There are candidates, and together they hold so much.
    pub candidates: Option<Resource>,
    /// There are victims, and together they hold so much.
    pub victims: Option<Resource>,
    /// As in [`crate::Ruling`].
    pub refused_by: Option<&'static str>,
    /// The votes follow from the candidates and their jobs alone.
    pub lasts: bool,
}

/// Nothing is known of the node.
const UNKNOWN: u32 = 0;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ballots {
    /// The session that asked last.
    pub(super) last_use: u64,
    /// In the log of changes.
    seen_until: Option<u64>,
    /// By index of the node: one more than the place of what is known, or `UNKNOWN`.
    of_node: Vec<u32>,
    known: Vec<Ballot>,
    places: FxHashMap<Ballot, u32>,
}

impl Ballots {
    pub(super) fn n_bytes(&self) -> usize {
        let of_ballot = 2 * (size_of::<Ballot>() + size_of::<u32>());
        size_of::<Self>() + self.of_node.len() * size_of::<u32>() + self.known.len() * of_ballot
    }

    /// Forgets what changed since the last search.
    pub(super) fn catch_up(&mut self, changed: &Changed) {
        let news = self.seen_until.and_then(|seen| changed.since(seen));
        // Sums that no node has any more are not looked for.
        let is_long = 2 * self.of_node.len() + 1024 < self.known.len();
        match news.filter(|_| !is_long) {
            Some(news) => {
                for &node in news {
                    if let Some(known) = self.of_node.get_mut(node.index()) {
                        *known = UNKNOWN;
                    }
                }
            }
            None => *self = Self { last_use: self.last_use, ..Self::default() },
        }
        self.seen_until = Some(changed.end());
    }

    /// What is said of the node; `vote` says it if that is not known, or does not last.
    pub(super) fn of(&mut self, node: NodeId, vote: impl FnOnce() -> Ballot) -> Ballot {
        let known = self.of_node.get(node.index()).filter(|&&known| known != UNKNOWN);
        if let Some(&known) = known {
            return self.known[known as usize - 1].clone();
        }
        let ballot = vote();
        if ballot.lasts {
            self.note(node, &ballot);
        }
        ballot
    }

    fn note(&mut self, node: NodeId, ballot: &Ballot) {
        if self.of_node.len() <= node.index() {
            self.of_node.resize(node.index() + 1, UNKNOWN);
        }
        let next = self.known.len() as u32 + 1;
        let known = match self.places.get(ballot) {
            Some(&known) => known,
            None => {
                self.known.push(ballot.clone());
                self.places.insert(ballot.clone(), next);
                next
            }
        };
        self.of_node[node.index()] = known;
    }
}

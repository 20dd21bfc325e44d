//! What votes read of queues, and of which queues that is something else than before. Specification:
//! actions.md 12.2 S7.

use rustc_hash::FxHashMap;
use vc_model::{ChangeReader, QueueId};
use vc_resource::{Fractional, Resource};

use crate::session::Session;

/// How a queue stands to its share, as far as it decides a vote about victims. Stakes are compared,
/// and nothing else is done with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Stake {
    /// It has no more than its share, whatever that is: nobody goes.
    #[default]
    Within,
    /// It has more, however much.
    Beyond,
    /// The amounts decide.
    Amounts {
        /// What its pods hold.
        allocated: Resource,
        /// What of it is its own.
        deserved: Fractional,
    },
}

/// The stakes of the queues, as they were seen last.
#[derive(Debug, Default)]
pub(super) struct Stakes {
    /// Of each plugin that votes by them. Looked up only, never walked.
    of_queue: FxHashMap<QueueId, Vec<Option<Stake>>>,
    moved_queues: ChangeReader<QueueId>,
    /// Σ allocatable, by which plugins measure shares.
    total: Fractional,
}

impl Stakes {
    /// The queues whose stakes are others than when this was asked last. Within a session only those
    /// are looked at whose pods were moved.
    pub(super) fn changed(&mut self, session: &Session<'_>) -> Vec<QueueId> {
        let facts = session.facts();
        if let Some(moved) = self.moved_queues.read(session.hooks().moved_queues()) {
            return moved.filter(|&queue| self.is_new(session, queue)).collect();
        }
        if self.total != facts.total {
            self.total.clone_from(&facts.total);
            self.of_queue.clear();
        }
        facts.queues.iter().copied().filter(|&queue| self.is_new(session, queue)).collect()
    }

    fn is_new(&mut self, session: &Session<'_>, queue: QueueId) -> bool {
        let voters = session.hooks().stakeholders(session.ask());
        let mut now = voters.map(|plugin| plugin.stake(session.ask(), queue));
        let known = self.of_queue.get(&queue).map_or(&[][..], Vec::as_slice);
        if known.iter().all(|known| now.next().as_ref() == Some(known)) && now.next().is_none() {
            return false;
        }
        let voters = session.hooks().stakeholders(session.ask());
        let now = voters.map(|plugin| plugin.stake(session.ask(), queue)).collect();
        self.of_queue.insert(queue, now);
        true
    }
}

//! The heads of queues in the order in which they are served, kept up to date change by change: what
//! [`Groups::next_head`] works out from all heads. Specification: cohort.md B.5.2, B.11.

mod levels;
mod tournament;

use std::cmp::Reverse;

use crate::forest::Forest;
use crate::group::Groups;
use crate::node::QuotaNode;
use crate::order::QueueHead;
use levels::BorrowingLevels;
use tournament::ShareTournament;

/// What decides last between two heads; the smaller one is first.
type Age = (Reverse<i32>, i64, u32, QuotaNode);

fn age(forest: &Forest, head: &QueueHead) -> Age {
    let name = forest.name_rank(head.queue);
    (Reverse(head.priority), head.created_micros, name, head.queue)
}

/// Higher `spec.priority` first.
fn queue_key(forest: &Forest, queue: QuotaNode) -> Reverse<i32> {
    Reverse(forest.node(queue).queue_priority)
}

/// The heads of queues. A change of use costs what depends on the nodes that it touches; the use
/// may change in any way between two questions, as long as nobody else keeps a ranking of the same
/// groups.
#[derive(Clone, Debug)]
pub struct HeadRanking {
    /// By queue.
    heads: Vec<Option<QueueHead>>,
    /// Queues with another head than before.
    renewed: Vec<QuotaNode>,
    order: RankingOrder,
}

#[derive(Clone, Debug)]
enum RankingOrder {
    Levels(BorrowingLevels),
    Shares(ShareTournament),
}

impl HeadRanking {
    /// Without heads yet.
    pub fn new(groups: &mut Groups, fair_sharing: bool) -> Self {
        let forest = groups.forest_mut();
        forest.take_changes();
        let n_nodes = forest.len();
        let order = match fair_sharing {
            false => RankingOrder::Levels(BorrowingLevels::new(forest)),
            true => RankingOrder::Shares(ShareTournament::new(n_nodes)),
        };
        Self { heads: vec![None; n_nodes], renewed: Vec::new(), order }
    }

    /// The head of a queue is this one from now on.
    pub fn enter(&mut self, head: QueueHead) {
        let queue = head.queue;
        self.heads[queue.index()] = Some(head);
        self.renewed.push(queue);
    }

    /// Nobody waits in the queue any longer.
    pub fn leave(&mut self, queue: QuotaNode) {
        self.heads[queue.index()] = None;
        self.renewed.push(queue);
    }

    /// The queue whose head is served first; `None`: there are no heads.
    pub fn next(&mut self, groups: &mut Groups) -> Option<QuotaNode> {
        let forest = groups.forest_mut();
        let changed = forest.take_changes();
        let renewed = std::mem::take(&mut self.renewed);
        match &mut self.order {
            RankingOrder::Levels(levels) => {
                levels.update(forest, &self.heads, changed, renewed);
                levels.first()
            }
            RankingOrder::Shares(tournament) => {
                tournament.update(forest, &self.heads, changed, renewed);
                tournament.first()
            }
        }
    }
}

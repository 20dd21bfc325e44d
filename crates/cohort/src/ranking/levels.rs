//! Heads by borrowing level. A level depends on the nodes that were looked at for it, from the queue
//! up to the one that holds the demand; never on the top, because nobody is above it. Specification:
//! cohort.md A.3, B.5.2.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Age, age, queue_key};
use crate::forest::Forest;
use crate::node::QuotaNode;
use crate::order::Head;

/// The smallest is first.
type Key = (Reverse<i32>, u32, Age);

/// Heads in order.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    order: BTreeSet<Key>,
    /// By queue: as it is in the order.
    keys: Vec<Option<Key>>,
    /// By cohort: the queues whose level depends on it.
    dependents: Vec<BTreeSet<QuotaNode>>,
}

impl Levels {
    pub(super) fn new(n_nodes: usize) -> Self {
        let (keys, dependents) = (vec![None; n_nodes], vec![BTreeSet::new(); n_nodes]);
        Self { order: BTreeSet::new(), keys, dependents }
    }

    pub(super) fn first(&self) -> Option<QuotaNode> {
        self.order.first().map(|(.., (.., queue))| *queue)
    }

    /// `changed`: nodes of other use; `renewed`: queues with another head.
    pub(super) fn update(
        &mut self,
        forest: &Forest,
        heads: &[Option<Head>],
        changed: Vec<QuotaNode>,
        renewed: Vec<QuotaNode>,
    ) {
        let mut stale: BTreeSet<QuotaNode> = renewed.into_iter().collect();
        for node in changed {
            match forest.is_queue(node) {
                true => stale.extend(self.keys[node.index()].map(|_| node)),
                false => stale.extend(&self.dependents[node.index()]),
            }
        }
        for queue in stale {
            self.rank(forest, queue, heads[queue.index()].as_ref());
        }
    }

    fn rank(&mut self, forest: &Forest, queue: QuotaNode, head: Option<&Head>) {
        let key = head.map(|head| {
            let level = forest.level(queue, &head.demand);
            (queue_key(forest, queue), level, age(forest, head))
        });
        let before = std::mem::replace(&mut self.keys[queue.index()], key);
        if before == key {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&before);
            looked_at(forest, queue, before.1).for_each(|node| {
                self.dependents[node.index()].remove(&queue);
            });
        }
        if let Some(key) = key {
            self.order.insert(key);
            looked_at(forest, queue, key.1).for_each(|node| {
                self.dependents[node.index()].insert(queue);
            });
        }
    }
}

/// The cohorts that a level depends on: those up to its height, without the top.
fn looked_at(
    forest: &Forest,
    queue: QuotaNode,
    level: u32,
) -> impl Iterator<Item = QuotaNode> + '_ {
    let cohorts = forest.path(queue).skip(1);
    cohorts
        .take_while(move |&node| forest.node(node).height <= level && forest.parent(node).is_some())
}

//! Which groups may be taken for a preemptor: by the policies of its queue, from queues that use
//! more than their quota, with or without the hierarchical advantage. Specification: cohort.md A.4,
//! A.8.

use crate::amount::{QuotaAmount, Slot};
use crate::forest::Forest;
use crate::group::{Group, GroupId, Groups, QuotaPreemptor};
use crate::node::QuotaNode;
use crate::policy::{ReclaimWithin, WithinQueue};

/// Groups of other queues, by whether the quota that they use is of the preemptor's side.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherQueueCandidates {
    /// It is.
    pub(crate) with_advantage: Vec<GroupId>,
    /// It is not, or not for sure.
    pub(crate) without: Vec<GroupId>,
}

/// Groups of the preemptor's queue.
pub(crate) fn own(groups: &Groups, preemptor: &QuotaPreemptor, need: &[Slot]) -> Vec<GroupId> {
    let policy = groups.forest().node(preemptor.queue).policy.within_queue;
    let may_go = |group: &Group| match policy {
        WithinQueue::Never => false,
        WithinQueue::LowerPriority => group.priority < preemptor.priority,
        WithinQueue::LowerOrNewerEqualPriority => {
            let is_newer = preemptor.created_micros < group.created_micros;
            group.priority < preemptor.priority || group.priority == preemptor.priority && is_newer
        }
    };
    of_queue(groups, preemptor.queue, need, may_go).collect()
}

/// Groups of other queues that the preemptor's queue may reclaim from, of one queue.
pub(crate) fn reclaimable<'g>(
    groups: &'g Groups,
    preemptor: &'g QuotaPreemptor,
    queue: QuotaNode,
    need: &'g [Slot],
) -> impl Iterator<Item = GroupId> + 'g {
    let forest = groups.forest();
    of_queue(groups, queue, need, move |group| may_reclaim(forest, preemptor, group))
}

/// Whether the policy of the preemptor's queue allows to take the group of another one.
pub(crate) fn may_reclaim(forest: &Forest, preemptor: &QuotaPreemptor, group: &Group) -> bool {
    match forest.node(preemptor.queue).policy.reclaim_within {
        ReclaimWithin::Never => false,
        ReclaimWithin::LowerPriority => group.priority < preemptor.priority,
        ReclaimWithin::Any => true,
    }
}

fn of_queue<'g>(
    groups: &'g Groups,
    queue: QuotaNode,
    need: &'g [Slot],
    may_go: impl Fn(&Group) -> bool + 'g,
) -> impl Iterator<Item = GroupId> + 'g {
    groups.of_queue(queue).filter(move |&id| {
        let group = groups.get(id);
        group.holds.uses_any(need) && may_go(group)
    })
}

/// Collected on the way from the preemptor's queue to the top of the tree.
pub(crate) fn others(
    groups: &Groups,
    preemptor: &QuotaPreemptor,
    need: &[Slot],
) -> OtherQueueCandidates {
    let forest = groups.forest();
    let mut found = OtherQueueCandidates::default();
    if forest.node(preemptor.queue).policy.reclaim_within == ReclaimWithin::Never {
        return found;
    }
    let mut rest: Vec<(Slot, QuotaAmount)> = preemptor.demand.iter().collect();
    let mut has_advantage = holds(forest, preemptor.queue, &mut rest);
    let mut below = preemptor.queue;
    while let Some(cohort) = forest.parent(below) {
        let list = match has_advantage {
            true => &mut found.with_advantage,
            false => &mut found.without,
        };
        for queue in borrowers(forest, cohort, below, need) {
            list.extend(reclaimable(groups, preemptor, queue, need));
        }
        has_advantage |= holds(forest, cohort, &mut rest);
        below = cohort;
    }
    found
}

/// Whether the subtree holds the rest of the demand within its own quota; what it cannot keep for
/// itself is the rest for the next one.
fn holds(forest: &Forest, node: QuotaNode, rest: &mut [(Slot, QuotaAmount)]) -> bool {
    let mut holds = true;
    for (slot, amount) in rest.iter_mut() {
        holds &= forest.usage(node, *slot) + *amount <= forest.subtree(node, *slot);
        *amount = (*amount - forest.local_available(node, *slot)).max(0);
    }
    holds
}

/// Queues below a cohort, but not below `except`, that use more than their quota in something
/// contested, and all cohorts between too.
fn borrowers(
    forest: &Forest,
    cohort: QuotaNode,
    except: QuotaNode,
    need: &[Slot],
) -> Vec<QuotaNode> {
    let mut queues = Vec::new();
    let mut open: Vec<QuotaNode> = vec![cohort];
    while let Some(node) = open.pop() {
        for &child in &forest.node(node).children {
            if child == except || forest.is_within_nominal(child, need) {
                continue;
            }
            match forest.node(child).is_queue {
                true => queues.push(child),
                false => open.push(child),
            }
        }
    }
    queues
}

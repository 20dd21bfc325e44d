//! Revisions of the branches of the tree: of the parts below the nodes right under the root. Victim
//! votes that are kept across cycles are compared by them, and the order of queues is kept from turn
//! to turn. Specification: actions.md 12.2 S7, S17.
//!
//! Exact because:
//! - a vote reads of the candidate's side only the branch of its queue, and which resources the
//!   cluster has left with the reclaimer and without the candidate: [`Tree::own_usage`] has what
//!   is left now, and how much is allocated of the resources that a request may use up or a victim
//!   may leave some of again;
//! - a branch has a revision again only with the same content: as it was when the session began, or
//!   as the last session left it;
//! - of the reclaimer's side it reads the ranks on its path after its request is added, or the
//!   whole branch;
//! - the place of a queue in the order follows from the ranks on its path: from its branch, and from
//!   which resources the cluster has left. Paths of one length are compared level by level, which is
//!   a total order.

use rustc_hash::FxHashMap;
use vc_framework::QueueUsageStamp;
use vc_model::{Id, JobId, QueueId};
use vc_resource::{Dim, Resource};

use super::{JobDemand, Reclaimer, Tree, TreeRank};
use crate::drf::ShareChange;

/// The revisions of all branches. The maps are only looked up, never iterated.
#[derive(Clone, Default)]
pub(super) struct BranchRevisions {
    /// The last revision that was given to a branch.
    last: u64,
    /// By the node right below the root.
    branches: FxHashMap<usize, Branch>,
    /// The branch of each queue that has one.
    of_queue: FxHashMap<QueueId, usize>,
    /// The resources of which the cluster had some left when the session began.
    left_at_open: Vec<Dim>,
    /// Revision of what is left. It is 0 while that is as it was when the session began.
    left: u64,
}

#[derive(Clone, Default)]
struct Branch {
    /// Revision of the content with which the session began.
    at_open: u64,
    /// Revision of the content now.
    now: u64,
    /// What jobs that hold something else now held when the session began.
    changed: FxHashMap<JobId, Resource>,
    queues: Vec<QueueId>,
}

impl BranchRevisions {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Gives a branch another revision after one of its jobs has got or lost a pod. If every job
    /// holds what it held when the session began, the branch has the revision of then.
    fn follow(&mut self, below_root: usize, job: JobId, (before, after): (Resource, &Resource)) {
        let next = self.next();
        let Some(branch) = self.branches.get_mut(&below_root) else {
            return;
        };
        let at_open = branch.changed.entry(job).or_insert(before);
        if is_same(at_open, after) {
            branch.changed.remove(&job);
        }
        branch.now = if branch.changed.is_empty() { branch.at_open } else { next };
    }

    /// Returns the branch of a queue. Queues right under the root have none.
    fn of_queue(&self, queue: QueueId) -> Option<&Branch> {
        self.of_queue.get(&queue).and_then(|node| self.branches.get(node))
    }
}

impl Tree {
    /// Gives every branch a revision: that of the last session's tree if nothing is different.
    pub(super) fn revise(&mut self, before: &Tree) {
        let (last, left_at_open) = (before.revisions.last, self.dims_left());
        let mut revisions = BranchRevisions { last, left_at_open, ..Default::default() };
        for &child in &self.nodes[0].children {
            let earlier = before.twin_of(self, child);
            let same = earlier.filter(|&other| self.is_same(child, before, other));
            let kept = same.and_then(|other| before.revisions.branches.get(&other));
            let now = kept.map_or_else(|| revisions.next(), |branch| branch.now);
            let branch = Branch { at_open: now, now, ..Branch::default() };
            revisions.branches.insert(child, branch);
        }
        for (index, path) in self.paths.iter().enumerate() {
            let queue = QueueId::new(index as u32);
            if let Some(&Some(node)) = path.as_deref().and_then(|path| path.get(1)) {
                revisions.of_queue.insert(queue, node);
                revisions.branches.entry(node).or_default().queues.push(queue);
            }
        }
        self.revisions = revisions;
    }

    /// Adds the amounts of a placed pod to its job, or takes those of a removed pod from it, and
    /// revises the branch of the job.
    pub(in crate::drf) fn follow(&mut self, job: JobId, by: &Resource, change: ShareChange) {
        let Some(&leaf) = self.leaves.get(&job) else {
            return;
        };
        let held = |tree: &Self| tree.nodes[leaf].job.as_ref().map(|job| job.allocated.clone());
        let (before, left) = (held(self), self.dims_left());
        self.change(job, by, change);
        let left_now = self.dims_left();
        if left_now != left {
            let next = self.revisions.next();
            self.revisions.left = if left_now == self.revisions.left_at_open { 0 } else { next };
        }
        if let Some((before, after)) = before.zip(held(self)) {
            self.revisions.follow(self.below_root(leaf), job, (before, &after));
        }
    }

    /// Returns the node right under the root that is in this tree what `child` is in `other`.
    fn twin_of(&self, other: &Tree, child: usize) -> Option<usize> {
        let node = &other.nodes[child];
        match &node.job {
            Some(demand) => self.leaves.get(&demand.job).copied(),
            None => self.nodes.first().and_then(|root| root.by_name.get(&node.name).copied()),
        }
    }

    /// True if both nodes have the same content: weights, jobs, and children in the same order.
    fn is_same(&self, node: usize, other: &Tree, twin: usize) -> bool {
        let mut pairs = vec![(node, twin)];
        while let Some((node, twin)) = pairs.pop() {
            let (l, r) = (&self.nodes[node], &other.nodes[twin]);
            let is_same = l.weight == r.weight
                && l.name == r.name
                && l.children.len() == r.children.len()
                && match (&l.job, &r.job) {
                    (Some(l), Some(r)) => l.is_same(r),
                    (None, None) => true,
                    _ => false,
                };
            if !is_same {
                return false;
            }
            pairs.extend(l.children.iter().copied().zip(r.children.iter().copied()));
        }
        true
    }

    /// Returns the resources of which the cluster has some left.
    fn dims_left(&self) -> Vec<Dim> {
        let is_left = |dim: &Dim| self.is_left(*dim, &self.total_allocated);
        self.total.names().filter(is_left).collect()
    }

    /// Returns a number that changes with the resources of which the cluster has some left.
    pub(in crate::drf) fn left_revision(&self) -> u64 {
        self.revisions.left
    }

    /// True if no queue has a longer path. Only queues whose paths are of one length have a total
    /// order: a queue is equal to all below it.
    pub(in crate::drf) fn is_deepest(&self, queue: QueueId) -> bool {
        self.path(queue).is_some_and(|path| path.len() == self.longest_path)
    }

    /// Returns what votes read of a candidate's queue. A queue right under the root is never behind
    /// another one, and loses no pod.
    pub(in crate::drf) fn queue_usage(&self, queue: QueueId) -> QueueUsageStamp {
        match self.revisions.of_queue(queue) {
            Some(branch) => QueueUsageStamp::Numbers(Box::new([branch.now])),
            None => QueueUsageStamp::Within,
        }
    }

    /// Returns all queues in the branch of this queue: [`Tree::queue_usage`] of each changes when a
    /// pod of any of them is placed or removed.
    pub(in crate::drf) fn queues_beside(&self, queue: QueueId) -> &[QueueId] {
        self.revisions.of_queue(queue).map_or(&[], |branch| &branch.queues)
    }

    /// Returns what votes read of the reclaimer besides its request, and of what the cluster has
    /// left. Two reclaimers with equal requests and equal results get equal votes about pods of
    /// queues that are neither one's. Returns `None` if the job is not in the tree.
    pub(in crate::drf) fn own_usage(
        &mut self,
        reclaimer: Reclaimer<'_>,
    ) -> Option<QueueUsageStamp> {
        let (job, queue, request) = reclaimer;
        let leaf = *self.leaves.get(&job)?;
        let branch = self.revisions.branches.get(&self.below_root(leaf))?;
        // A queue that shares its branch parts from others of it below the root.
        let is_alone = branch.queues.len() <= 1;
        let mut numbers = vec![if is_alone { 0 } else { 1 + queue.index() as u64 }];
        numbers.extend(self.dims_left().into_iter().map(|dim| dim.index() as u64));
        numbers.insert(1, numbers.len() as u64 - 1);
        let turning = self.may_turn(request);
        numbers.push(turning.len() as u64);
        match turning.is_empty() {
            true => {
                let own = self.own_ranks(reclaimer);
                let of_rank =
                    |rank: &TreeRank| [u64::from(rank.saturated), rank.share_by_weight.to_bits()];
                numbers.extend(own.path.iter().flat_map(of_rank));
                self.kept.reclaimer = Some(own);
            }
            // The request may use up a resource, or a victim may leave some of one again. Then the
            // saturation of all jobs changes, and the ranks of the reclaimer follow from its whole
            // branch and from how much of these resources is allocated.
            false => {
                numbers.extend([branch.now, job.index() as u64]);
                let amounts = turning.iter().map(|&dim| self.total_allocated.exact(dim));
                numbers.extend(amounts.flat_map(|amount| [amount as u64, (amount >> 64) as u64]));
            }
        }
        Some(QueueUsageStamp::Numbers(numbers.into()))
    }

    /// Returns the resources of which, with the request and without some pod of the cluster, some
    /// is left although all is used up now, or the other way round.
    fn may_turn(&self, request: &Resource) -> Vec<Dim> {
        let mut most = self.total_allocated.clone();
        most.add(request);
        let mut least = most.clone();
        least.sub(&self.largest_request);
        let turns = |dim: &Dim| match self.is_left(*dim, &self.total_allocated) {
            true => !self.is_left(*dim, &most),
            false => self.is_left(*dim, &least),
        };
        self.total.names().filter(turns).collect()
    }
}

impl JobDemand {
    fn is_same(&self, other: &Self) -> bool {
        self.job == other.job
            && is_same(&self.allocated, &other.allocated)
            && is_same(&self.request, &other.request)
    }
}

/// True if both sides have the same amounts. A scalar of 0 counts as missing, since a placement
/// that was undone leaves one.
fn is_same(l: &Resource, r: &Resource) -> bool {
    l == r || l.clone().without_zero_scalars() == r.clone().without_zero_scalars()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::TreeNode;
    use super::super::tests::{N_JOBS, amount, next, tree};
    use super::*;

    fn job(number: u64) -> JobId {
        JobId::new(number as u32)
    }

    /// The revision of each job's queue; every job has a queue of its own.
    fn revisions(tree: &Tree) -> Vec<QueueUsageStamp> {
        (0..N_JOBS).map(|number| tree.queue_usage(QueueId::new(number as u32))).collect()
    }

    #[test]
    fn a_change_that_is_undone_brings_the_revisions_back() {
        let mut tree = tree(&mut 3);
        let (at_open, by) = (revisions(&tree), amount(2, 3));
        for number in 0..N_JOBS {
            tree.follow(job(number), &by, ShareChange::Add);
            let changed = revisions(&tree);
            let moved = tree.queues_beside(QueueId::new(number as u32));
            for (other, (l, r)) in changed.iter().zip(&at_open).enumerate() {
                let is_moved = moved.contains(&QueueId::new(other as u32));
                assert_eq!(l != r, is_moved, "job {number}, queue {other}");
            }
            tree.follow(job(number), &by, ShareChange::Subtract);
            assert_eq!(revisions(&tree), at_open, "job {number}");
        }
    }

    #[test]
    fn a_branch_keeps_its_revision_into_the_next_session_as_long_as_it_is_the_same() {
        let mut before = tree(&mut 3);
        before.follow(job(0), &amount(1, 1), ShareChange::Add);
        let mut same = before.clone();
        same.revise(&before);
        assert_eq!(revisions(&same), revisions(&before));
        // In another session the same job holds more.
        let mut other = before.clone();
        other.change(job(1), &amount(1, 1), ShareChange::Add);
        other.revise(&before);
        let moved = before.queues_beside(QueueId::new(1)).to_vec();
        assert!(!moved.is_empty() && (moved.len() as u64) < N_JOBS, "{moved:?}");
        for (number, (l, r)) in revisions(&other).iter().zip(revisions(&before)).enumerate() {
            let is_moved = moved.contains(&QueueId::new(number as u32));
            assert_eq!(*l != r, is_moved, "queue {number}");
        }
    }

    /// The path below the root of the queue of a job: every second queue is alone in its branch.
    fn path(number: u64) -> Vec<String> {
        match number % 2 {
            1 => vec![format!("team{}", number % 10), format!("queue{}", number % 3)],
            _ => vec![format!("queue{}", number % 20)],
        }
    }

    /// A tree of queues that most often hold the same.
    fn flat_tree(n_cpus: u64) -> Tree {
        let mut tree = Tree {
            total: amount(n_cpus, 1_000).to_fractional(),
            largest_request: amount(2, 2),
            ..Tree::with_root()
        };
        for number in 0..N_JOBS {
            let mut nodes = vec![0];
            for name in path(number) {
                let above = nodes[nodes.len() - 1];
                let node = tree.child(above, &name).unwrap_or_else(|| {
                    let node = tree.insert(above, TreeNode::inner(name.as_str().into(), 1.0));
                    tree.nodes[above].by_name.insert(name.into(), node);
                    node
                });
                nodes.push(node);
            }
            let (allocated, request) = (Resource::default(), amount(20, 20));
            let demand = JobDemand { job: job(number), allocated, request };
            let leaf = tree.insert(nodes[nodes.len() - 1], TreeNode::leaf(demand));
            tree.leaves.insert(job(number), leaf);
            tree.set_path(queue(number), nodes.into_iter().map(Some).collect());
        }
        tree.update();
        tree.revise(&Tree::default());
        tree
    }

    /// The queue of a job: the first job with its path has the number of the queue.
    fn queue(number: u64) -> QueueId {
        let first = (0..N_JOBS).find(|&first| path(first) == path(number));
        QueueId::new(first.expect("the job itself") as u32)
    }

    /// A vote is compared with earlier ones for equal keys, which reclaimers of other queues may
    /// have got.
    #[test]
    fn equal_revisions_and_equal_ranks_give_equal_votes() {
        let mut state = 17;
        let [mut n_again, mut n_victims, mut n_asked, mut n_turning] = [0; 4];
        // 80 are used up, and some are left again.
        for n_cpus in [1_000, 80, 1_000, 80] {
            let mut tree = flat_tree(n_cpus);
            let mut known = HashMap::new();
            let mut held: Vec<(u64, Resource)> = Vec::new();
            for step in 0..300 {
                // A third of what is placed goes again at once, as in a search that fails.
                let is_full = n_cpus as i64 <= tree.total_allocated.get(Dim::CPU);
                if step % 4 == 3 || is_full {
                    let (number, by) = held.pop().expect("what came before");
                    tree.follow(job(number), &by, ShareChange::Subtract);
                } else {
                    let number = next(&mut state) % N_JOBS / 2;
                    let by = amount(1 + next(&mut state) % 2, 1);
                    tree.follow(job(number), &by, ShareChange::Add);
                    held.push((number, by));
                }
                let (own, request) = (next(&mut state) % N_JOBS, amount(1, 1));
                let reclaimer = (job(own), queue(own), &request);
                n_turning += u32::from(!tree.may_turn(&request).is_empty());
                let Some(own_usage) = tree.own_usage(reclaimer) else { continue };
                for (number, freed) in
                    held.iter().filter(|(number, _)| queue(*number) != queue(own))
                {
                    let candidate = (job(*number), queue(*number), freed);
                    let usage = tree.queue_usage(candidate.1);
                    let key = (own_usage.clone(), (*number, freed.clone(), usage));
                    let vote = tree.may_go(reclaimer, candidate);
                    let earlier = *known.entry(key).or_insert((own, vote));
                    assert_eq!(vote, earlier.1, "step {step}, jobs {own} and {}", earlier.0);
                    n_again += u32::from(queue(earlier.0) != queue(own));
                    n_victims += u32::from(vote);
                    n_asked += 1;
                }
            }
        }
        let seen = [n_again, n_victims, n_asked - n_victims];
        assert!(seen.into_iter().all(|seen| 1_000 < seen), "by others, victims, stay: {seen:?}");
        assert!(50 < n_turning, "{n_turning} times a pair may turn what is left");
    }

    /// S17: queues of one depth have a total order, and a pair keeps its order while no pod in either
    /// branch has moved and the same resources are left.
    #[test]
    fn the_order_of_the_deepest_queues_is_total_and_changes_with_their_branches() {
        let (mut state, mut n_kept, mut n_turned) = (5, 0, 0);
        let mut tree = flat_tree(80);
        let deepest: Vec<QueueId> =
            (0..N_JOBS).map(queue).filter(|&queue| tree.is_deepest(queue)).collect();
        assert!(5 < deepest.len());
        let mut held: Vec<(u64, Resource)> = Vec::new();
        for _ in 0..300 {
            let before = tree.clone();
            let is_full = 80 <= tree.total_allocated.get(Dim::CPU);
            let (change, (number, by)) = match is_full.then(|| held.pop()).flatten() {
                Some(last) => (ShareChange::Subtract, last),
                None => {
                    let by = amount(next(&mut state) % 5, 1);
                    (ShareChange::Add, (next(&mut state) % N_JOBS, by))
                }
            };
            tree.follow(job(number), &by, change);
            if matches!(change, ShareChange::Add) {
                held.push((number, by));
            }
            let moved = tree.queues_beside(queue(number));
            let is_left_same = before.left_revision() == tree.left_revision();
            n_turned += usize::from(!is_left_same);
            for (&l, &r) in deepest.iter().zip(&deepest[1..]) {
                assert_eq!(tree.compare(l, r), tree.compare(r, l).reverse());
                if is_left_same && !moved.contains(&l) && !moved.contains(&r) {
                    assert_eq!(tree.compare(l, r), before.compare(l, r));
                    n_kept += 1;
                }
            }
            for (&a, &b) in deepest.iter().zip(&deepest[1..]) {
                for &c in &deepest {
                    let is_chain = tree.compare(a, b).is_le() && tree.compare(b, c).is_le();
                    assert!(!is_chain || tree.compare(a, c).is_le(), "{a:?} {b:?} {c:?}");
                }
            }
        }
        assert!(500 < n_kept && 5 < n_turned, "{n_kept} pairs kept, {n_turned} turns");
    }
}

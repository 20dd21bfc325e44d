//! Votes of hierarchical DRF about victims, from ranks that are kept between votes. Exact because
//! - two queues are compared at the first level where their paths part: below it the reclaimer and a
//!   victim change nothing of each other, so that the ranks of each are known alone;
//! - all nodes share only which resources the cluster has left: a pair that changes this is simulated
//!   in the tree;
//! - a change of a job reaches only the nodes under its ancestor right below the root.
//!
//! A test compares the votes with those of `Tree::may_go`.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use vc_framework::SessionView;
use vc_model::reads::{self, Read};
use vc_model::{ClassId, JobId, QueueId, TaskId};
use vc_resource::Resource;

use super::{Candidate, Reclaimer, Tree, TreeRank};
use crate::drf::ShareChange;
use crate::rules::session_job;

/// Ranks from the root down to a queue, after one pod is added to a job of it or taken from it.
type PathRanks = Vec<TreeRank>;

/// The ranks that votes need. The maps are only looked up, never iterated.
#[derive(Clone, Default)]
pub(super) struct KeptRanks {
    /// Without one pod of a class of the job, by the node right below the root.
    victims: FxHashMap<usize, FxHashMap<(JobId, ClassId), PathRanks>>,
    /// Of the reclaimer that was asked about last.
    pub(super) reclaimer: Option<ReclaimerRanks>,
}

#[derive(Clone)]
pub(super) struct ReclaimerRanks {
    job: JobId,
    request: Resource,
    pub(super) path: PathRanks,
    /// True if the reclaimer and a victim of this class together change what the cluster has left.
    turns: FxHashMap<ClassId, bool>,
}

impl KeptRanks {
    /// Forgets the ranks that a change under this node right below the root concerns.
    pub(super) fn forget(&mut self, below_root: usize) {
        self.victims.remove(&below_root);
        self.reclaimer = None;
    }
}

impl Tree {
    /// Returns the candidates that may be evicted, each tested alone (`may_go`).
    pub(in crate::drf) fn reclaimable(
        &mut self,
        view: SessionView<'_>,
        reclaimer: JobId,
        request: &Resource,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        let reclaimer = (reclaimer, view.cluster.jobs[reclaimer].queue, request);
        reads::note(Read::QueueUsage(reclaimer.1));
        let mut own = self.own_ranks(reclaimer);
        let mut is_victim = |&task: &TaskId| {
            let Some((job, of)) = session_job(view.cluster, task) else {
                return false;
            };
            reads::note(Read::QueueUsage(of.queue));
            let candidate = (job, of.queue, view.cluster.request(task));
            self.is_victim(&mut own, reclaimer, candidate, view.cluster.tasks[task].class)
        };
        let found = candidates.iter().copied().filter(|task| is_victim(task)).collect();
        self.kept.reclaimer = Some(own);
        found
    }

    /// Returns what `may_go` does of a candidate of this class.
    pub(super) fn is_victim(
        &mut self,
        own: &mut ReclaimerRanks,
        reclaimer: Reclaimer<'_>,
        candidate: Candidate<'_>,
        class: ClassId,
    ) -> bool {
        let turns = || self.turns_what_is_left(reclaimer.2, candidate.2);
        match self.leaves.get(&candidate.0) {
            Some(&leaf) if !*own.turns.entry(class).or_insert_with(turns) => {
                self.compare_kept(&own.path, reclaimer.1, leaf, candidate, class).is_lt()
            }
            _ => self.may_go(reclaimer, candidate),
        }
    }

    /// Returns the ranks of the reclaimer: those kept if it was asked about last.
    pub(super) fn own_ranks(&mut self, reclaimer: Reclaimer<'_>) -> ReclaimerRanks {
        let (job, queue, request) = reclaimer;
        let kept = self.kept.reclaimer.take();
        let kept = kept.filter(|kept| kept.job == job && kept.request == *request);
        kept.unwrap_or_else(|| ReclaimerRanks {
            job,
            request: request.clone(),
            path: self.ranks_after(queue, job, request, ShareChange::Add),
            turns: FxHashMap::default(),
        })
    }

    /// Compares the reclaimer's queue with that of the candidate, each after its own change.
    fn compare_kept(
        &mut self,
        own: &[TreeRank],
        own_queue: QueueId,
        leaf: usize,
        (job, queue, freed): Candidate<'_>,
        class: ClassId,
    ) -> Ordering {
        let below_root = self.below_root(leaf);
        let of_branch = self.kept.victims.get(&below_root);
        if !of_branch.is_some_and(|kept| kept.contains_key(&(job, class))) {
            let after = self.ranks_after(queue, job, freed, ShareChange::Subtract);
            self.kept.victims.entry(below_root).or_default().insert((job, class), after);
        }
        let (Some(l), Some(r)) = (self.path(own_queue), self.path(queue)) else {
            return Ordering::Equal;
        };
        let victim = &self.kept.victims[&below_root][&(job, class)];
        let apart = l.iter().zip(r).take_while(|(l, r)| l == r).count();
        let mut levels = own.iter().zip(victim).skip(apart).map(|(l, r)| l.compare(r));
        levels.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// Returns the ranks on a queue's path after a change of one of its jobs, as long as what
    /// the cluster has left stays the same. The tree is as before afterwards.
    fn ranks_after(
        &mut self,
        queue: QueueId,
        job: JobId,
        by: &Resource,
        change: ShareChange,
    ) -> PathRanks {
        self.change_leaf(job, by, change);
        let path = self.path(queue).into_iter().flatten();
        let ranks = path.map(|&node| self.rank(node)).collect();
        self.change_leaf(job, by, change.undone());
        ranks
    }

    /// True if with this much more and less allocated the cluster has some of a resource left of
    /// which it has none now, or the other way round.
    pub(super) fn turns_what_is_left(&self, more: &Resource, less: &Resource) -> bool {
        let mut after = self.total_allocated.clone();
        after.add(more);
        after.sub(less);
        let turns = |dim| self.is_left(dim, &self.total_allocated) != self.is_left(dim, &after);
        more.dims().chain(less.dims()).any(turns)
    }

    /// Returns the ancestor right below the root, which may be the node itself.
    pub(super) fn below_root(&self, node: usize) -> usize {
        let mut at = node;
        while self.nodes[at].parent != 0 {
            at = self.nodes[at].parent;
        }
        at
    }
}

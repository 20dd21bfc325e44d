//! The order in which HyperNodes of one tier are tried: those with the highest scores first. The
//! plain evaluator tries all of them; the fast one stops as soon as none of the others can be better.
//!
//! Exact because:
//! - the score of a HyperNode for a sub-job does not depend on the trial (plugins-nodes.md 15.5);
//! - with a single sub-job left, the score of a trial is that of the HyperNode that it chooses.
//!
//! Specification: actions.md 12.2 S13.

use vc_framework::{SessionState, Statement};
use vc_model::{HyperNodeId, JobId};

use crate::sub_job_tasks::SubJobTasks;

/// HyperNodes by descending score for a sub-job.
pub(super) struct Ranked {
    order: Vec<(HyperNodeId, f64)>,
    stops_early: bool,
}

/// Present with the fast evaluator.
#[derive(Default)]
struct EarlyStop;

/// Ranks HyperNodes for a sub-job: by score, then by the share of its tasks there, then by name
/// (A17).
pub(super) fn by_score(
    session: &SessionState<'_>,
    job: JobId,
    sub_job: usize,
    group: Vec<HyperNodeId>,
) -> Ranked {
    let scores = session.plugins().hyper_node_scores(session.view(), job, sub_job, &group);
    let mut order: Vec<_> = group.into_iter().zip(scores).collect();
    order.sort_by(|(l_id, l), (r_id, r)| {
        let by_score = r.score.total_cmp(&l.score).then(r.share.total_cmp(&l.share));
        by_score.then(l_id.cmp(r_id))
    });
    let order = order.into_iter().map(|(id, score)| (id, score.score)).collect();
    Ranked { order, stops_early: session.cache::<EarlyStop>().is_some() }
}

impl Ranked {
    /// Returns the first trial that succeeds, with its score.
    pub(super) fn first_that<T>(
        self,
        statement: &mut Statement<'_, '_>,
        mut attempt: impl FnMut(&mut Statement<'_, '_>, HyperNodeId) -> Option<T>,
    ) -> Option<(T, f64)> {
        let mut first = None;
        let mut is_last = true;
        let mut order = self.order.into_iter();
        while let Some((id, score)) = order.next() {
            let found = attempt(statement, id);
            is_last = false;
            if let Some(found) = found.filter(|_| first.is_none()) {
                is_last = true;
                first = Some((id, found, score));
                if self.stops_early {
                    statement.stats().n_outscored_hyper_nodes += order.len() as u64;
                    break;
                }
            }
        }
        match first {
            // What is noted about tasks without a place is that of the chosen HyperNode.
            Some((id, _, score)) if !is_last => Some((attempt(statement, id)?, score)),
            first => first.map(|(_, found, score)| (found, score)),
        }
    }
}

/// Returns HyperNodes with upper bounds of the score of a trial, in the order of trials. Without a
/// bound it is infinite.
pub(super) fn by_bound(
    session: &SessionState<'_>,
    job: JobId,
    pending: &[SubJobTasks],
    group: Vec<HyperNodeId>,
) -> Vec<(HyperNodeId, f64)> {
    let stops_early = session.cache::<EarlyStop>().is_some();
    let (true, [entry]) = (stops_early, pending) else {
        return group.into_iter().map(|id| (id, f64::INFINITY)).collect();
    };
    let of_sub_job = (job, entry.sub_job);
    let bounds = session.plugins().highest_scores(session.view(), of_sub_job, &group);
    let mut order: Vec<(HyperNodeId, f64)> = group.into_iter().zip(bounds).collect();
    order.sort_by(|l, r| r.1.total_cmp(&l.1).then(l.0.cmp(&r.0)));
    order
}

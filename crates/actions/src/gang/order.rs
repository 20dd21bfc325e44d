//! The order in which bundles are offered, and the vote of the plugins on them.
//! Specification: actions.md 9.4.

use std::cmp::Ordering;

use rustc_hash::FxHashSet;
use vc_conf::VictimOrderPolicy;
use vc_framework::{GangEviction, Question, SessionState, Statement};
use vc_model::{JobId, QueueId, TaskId};

use super::GangEvictionAttempt;
use super::bundles::{Bundle, BundleKind};

/// Returns the bundles that plugins allow, in the order in which they are offered.
pub(super) fn allowed(
    session: &mut Statement<'_, '_>,
    attempt: &GangEvictionAttempt,
    mut bundles: Vec<Bundle>,
) -> Vec<Bundle> {
    sort(session, attempt, &mut bundles);
    let all: Vec<_> = bundles.iter().flat_map(|bundle| bundle.tasks.iter().copied()).collect();
    let granted = session.select_victims(Question::Gang(attempt.job, attempt.kind), &all).victims;
    let granted: FxHashSet<TaskId> = granted.into_iter().collect();
    let allow_whole = attempt.settings(session).allow_whole_bundle;
    bundles.retain_mut(|bundle| {
        let n_offered = bundle.tasks.len();
        bundle.tasks.retain(|task| granted.contains(task));
        match bundle.kind {
            BundleKind::Safe => !bundle.tasks.is_empty(),
            BundleKind::Whole => {
                allow_whole && bundle.tasks.len() == n_offered && !has_hold(session, bundle.job)
            }
        }
    });
    sort(session, attempt, &mut bundles);
    bundles
}

/// True if pods were evicted for the job and their room is not used yet. Breaking its gang would make
/// those evictions useless.
fn has_hold(session: &SessionState<'_>, job: JobId) -> bool {
    session.eviction_holds.of(session, job).is_some()
}

fn sort(session: &SessionState<'_>, attempt: &GangEvictionAttempt, bundles: &mut [Bundle]) {
    let policy = attempt.settings(session).victim_order_policy;
    bundles.sort_by(|l, r| {
        let by_kind = l.kind.cmp(&r.kind);
        let by_importance = importance(session, attempt, l.job, r.job);
        let first = match (policy, attempt.kind) {
            (VictimOrderPolicy::SafeFirst, _) => by_kind.then(by_importance),
            (VictimOrderPolicy::PriorityFirst, GangEviction::Preempt) => {
                by_priority(session, l.job, r.job).then(by_kind).then(by_importance)
            }
            (VictimOrderPolicy::PriorityFirst, GangEviction::Reclaim) => {
                by_importance.then(by_priority(session, l.job, r.job)).then(by_kind)
            }
        };
        first.then_with(|| r.benefit.total_cmp(&l.benefit)).then_with(|| ties(session, l, r))
    });
}

/// Compares two victim jobs by importance, less important first. gangreclaim compares their queues.
/// gangpreempt uses reverse job order, in which two jobs never tie. Benefit then decides only
/// within one job.
fn importance(
    session: &SessionState<'_>,
    attempt: &GangEvictionAttempt,
    l: JobId,
    r: JobId,
) -> Ordering {
    match attempt.kind {
        GangEviction::Preempt => session.plugins().job_order(session.view(), r, l),
        GangEviction::Reclaim => {
            let own = session.jobs[attempt.job].queue;
            by_queue(session, own, session.jobs[l].queue, session.jobs[r].queue)
        }
    }
}

/// Compares two queues as victims. Plugins are asked in both directions, and only a consistent
/// answer counts.
fn by_queue(session: &SessionState<'_>, own: QueueId, l: QueueId, r: QueueId) -> Ordering {
    if l == r {
        return Ordering::Equal;
    }
    let order = |l, r| session.plugins().victim_queue_order(session.view(), l, r, own);
    let (forth, back) = (order(l, r), order(r, l));
    if forth == back.reverse() { forth } else { Ordering::Equal }
}

fn by_priority(session: &SessionState<'_>, l: JobId, r: JobId) -> Ordering {
    session.jobs[l].priority.cmp(&session.jobs[r].priority)
}

fn ties(session: &SessionState<'_>, l: &Bundle, r: &Bundle) -> Ordering {
    let uid = |bundle: &Bundle| bundle.tasks.first().map(|&task| session.tasks[task].uid.clone());
    let by_job = session.jobs[l.job].key.cmp(&session.jobs[r.job].key);
    by_job.then_with(|| uid(l).cmp(&uid(r))).then(l.tasks.len().cmp(&r.tasks.len()))
}

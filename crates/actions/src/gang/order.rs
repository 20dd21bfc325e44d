//! Which bundle is offered first, and what plugins leave of it. Specification: actions.md 9.4.

use std::cmp::Ordering;

use rustc_hash::FxHashSet;
use vc_conf::VictimOrderPolicy;
use vc_framework::{GangEviction, Question, Session};
use vc_model::{JobId, QueueId, TaskId};

use super::Attempt;
use super::bundles::{Bundle, Kind};

/// The bundles that plugins allow, first to be offered first.
pub(super) fn allowed(
    session: &mut Session<'_>,
    attempt: &Attempt,
    mut bundles: Vec<Bundle>,
) -> Vec<Bundle> {
    sort(session, attempt, &mut bundles);
    let all: Vec<_> = bundles.iter().flat_map(|bundle| bundle.tasks.iter().copied()).collect();
    let granted = session.ruling(Question::Gang(attempt.job, attempt.kind), &all).victims;
    let granted: FxHashSet<TaskId> = granted.into_iter().collect();
    let allow_whole = attempt.settings(session).allow_whole_bundle;
    bundles.retain_mut(|bundle| {
        let n_offered = bundle.tasks.len();
        bundle.tasks.retain(|task| granted.contains(task));
        match bundle.kind {
            Kind::Safe => !bundle.tasks.is_empty(),
            Kind::Whole => allow_whole && bundle.tasks.len() == n_offered,
        }
    });
    sort(session, attempt, &mut bundles);
    bundles
}

fn sort(session: &Session<'_>, attempt: &Attempt, bundles: &mut [Bundle]) {
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

/// gangpreempt: reverse job order, in which two jobs never tie, so that benefit decides inside one
/// job only; gangreclaim: by their queues.
fn importance(session: &Session<'_>, attempt: &Attempt, l: JobId, r: JobId) -> Ordering {
    match attempt.kind {
        GangEviction::Preempt => session.hooks().job_order(session.ask(), r, l),
        GangEviction::Reclaim => {
            let own = session.jobs[attempt.job].queue;
            by_queue(session, own, session.jobs[l].queue, session.jobs[r].queue)
        }
    }
}

/// Both directions are asked; only a strict difference counts.
fn by_queue(session: &Session<'_>, own: QueueId, l: QueueId, r: QueueId) -> Ordering {
    if l == r {
        return Ordering::Equal;
    }
    let order = |l, r| session.hooks().victim_queue_order(session.ask(), l, r, own);
    let (forth, back) = (order(l, r), order(r, l));
    if forth == back.reverse() { forth } else { Ordering::Equal }
}

fn by_priority(session: &Session<'_>, l: JobId, r: JobId) -> Ordering {
    session.jobs[l].priority.cmp(&session.jobs[r].priority)
}

fn ties(session: &Session<'_>, l: &Bundle, r: &Bundle) -> Ordering {
    let uid = |bundle: &Bundle| bundle.tasks.first().map(|&task| session.tasks[task].uid.clone());
    let by_job = session.jobs[l.job].key.cmp(&session.jobs[r.job].key);
    by_job.then_with(|| uid(l).cmp(&uid(r))).then(l.tasks.len().cmp(&r.tasks.len()))
}

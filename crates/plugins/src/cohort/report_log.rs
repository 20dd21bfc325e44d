//! Conditions and events about evictions for quota, for preemptors and targets, and about problems
//! of queues.
//! Specification: cohort.md A.10, B.7 (back-off), B.8, B.9.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_cohort::{Backoff, Forest, PreemptionReason, QuotaNode};
use vc_framework::{About, Effect, Outbox, Sample, SessionView, TargetGroup, rfc3339};
use vc_model::{Cluster, JobId, PodGroupCondition};

use super::queues::QueueSpecProblem;

const UNKNOWN: &str = "UNKNOWN";
const EVICTED: &str = "Evicted";
const PREEMPTED: &str = "Preempted";
const RESERVED: &str = "QuotaReserved";

/// The preemptor of an eviction, with the state for its message.
pub(super) struct EvictionParties<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) forest: &'a Forest,
    pub(super) preemptor: JobId,
    /// The queue of the preemptor.
    pub(super) own: QuotaNode,
}

/// Returns the message of an eviction (section A.10), with the paths of both queues.
pub(super) fn message(
    of: &EvictionParties<'_>,
    target: JobId,
    node: QuotaNode,
    reason: PreemptionReason,
) -> String {
    let preemptor = &of.cluster.jobs[of.preemptor];
    let group = preemptor.pod_group.as_ref();
    let uid = group.map_or(UNKNOWN, |group| &group.uid);
    let owner = group.and_then(|group| group.controller_uid.as_deref()).unwrap_or(UNKNOWN);
    let own = of.forest.path_text(of.own);
    debug_assert!(target != of.preemptor, "a group does not go for itself");
    format!(
        "Preempted to accommodate a workload (UID: {uid}, JobUID: {owner}) due to {}; \
         preemptor path: {own}; preemptee path: {}",
        reason.why(),
        of.forest.path_text(node)
    )
}

/// One group that is evicted.
#[derive(Clone, Debug)]
struct GroupEviction {
    preemptor: JobId,
    target: TargetGroup,
}

/// Evictions to report, and problems that were already reported.
#[derive(Debug, Default)]
pub(super) struct CohortReportLog {
    evictions: Vec<GroupEviction>,
    /// Jobs in the backoff, by uid.
    jobs: BTreeMap<Arc<str>, JobId>,
    /// Problems of queues that were reported: the queue, and the text with its reason.
    pub(super) problems: BTreeSet<(Arc<str>, String)>,
}

impl CohortReportLog {
    /// Records the groups that are evicted for the job.
    pub(super) fn preempted(&mut self, _view: SessionView<'_>, job: JobId, groups: &[TargetGroup]) {
        let eviction =
            |target: &TargetGroup| GroupEviction { preemptor: job, target: target.clone() };
        self.evictions.extend(groups.iter().map(eviction));
    }

    /// Emits the conditions and events of the session, and updates the backoff.
    pub(super) fn close(&mut self, view: SessionView<'_>, backoff: &mut Backoff, out: &mut Outbox) {
        let evictions = std::mem::take(&mut self.evictions);
        for eviction in &evictions {
            let uid = uid(view.cluster, eviction.preemptor);
            if let Some(uid) = uid {
                backoff.preempted(&uid);
                self.jobs.insert(uid, eviction.preemptor);
            }
        }
        for eviction in &evictions {
            write(view, eviction, out);
            wait(view, eviction, backoff, out);
        }
        self.resolve(view, &evictions, out);
        self.forget(view, backoff);
    }

    /// Removes groups that no longer exist from the backoff.
    fn forget(&mut self, view: SessionView<'_>, backoff: &mut Backoff) {
        // The backoff may have been handed over by another configuration.
        if backoff.uids().any(|uid| !self.jobs.contains_key(uid)) {
            let of_job = |job| Some((uid(view.cluster, job)?, job));
            self.jobs = view.all_jobs().filter_map(of_job).collect();
        }
        let known: BTreeSet<&Arc<str>> = backoff.uids().collect();
        self.jobs.retain(|of, job| {
            let is_it = || uid(view.cluster, *job).is_some_and(|uid| uid == *of);
            known.contains(of) && view.has_job(*job) && is_it()
        });
        backoff.retain(|uid| self.jobs.contains_key(uid));
    }

    /// Resolves the condition of groups that are ready again.
    fn resolve(&self, view: SessionView<'_>, evictions: &[GroupEviction], out: &mut Outbox) {
        for &job in &view.info.to_close {
            let row = &view.cluster.jobs[job];
            let Some(group) = &row.pod_group else { continue };
            let stands = |condition: &&PodGroupCondition| {
                (&*condition.kind == EVICTED || &*condition.kind == PREEMPTED)
                    && &*condition.status == "True"
                    && condition.message.starts_with("Preempted to accommodate a workload")
            };
            if group.status.conditions.is_empty() || !row.is_ready() {
                continue;
            }
            if evictions.iter().any(|eviction| eviction.target.job == job) {
                continue;
            }
            for condition in group.status.conditions.iter().filter(stands) {
                let message = format!("Previously: {}", condition.message);
                let resolved = self::condition(view, &condition.kind, "False", RESERVED, &message);
                out.conditions.push((job, resolved));
            }
        }
    }

    /// Reports problems of queues, each once until it changes.
    pub(super) fn queues(
        &mut self,
        view: SessionView<'_>,
        problems: &BTreeSet<QueueSpecProblem>,
        out: &mut Outbox,
    ) {
        let key = |problem: &QueueSpecProblem| {
            (problem.queue.clone(), format!("{}: {}", problem.reason, problem.text))
        };
        for problem in problems.iter().filter(|problem| !self.problems.contains(&key(problem))) {
            let Some(queue) = view.cluster.queue(&problem.queue) else { continue };
            let (name, uid) = (problem.queue.clone(), view.cluster.queues[queue].uid.clone());
            let about = About::Queue { name, uid };
            let message = problem.text.as_str().into();
            let reason = problem.reason;
            out.effects.push(Effect::Event { about, warning: true, reason, message });
        }
        self.problems = problems.iter().map(key).collect();
    }
}

fn uid(cluster: &Cluster, job: JobId) -> Option<Arc<str>> {
    cluster.jobs[job].pod_group.as_ref().map(|group| group.uid.clone())
}

fn condition(
    view: SessionView<'_>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) -> PodGroupCondition {
    PodGroupCondition {
        kind: kind.into(),
        status: status.into(),
        transition_id: view.info.session_id.clone(),
        last_transition_time: view.info.now_text.clone(),
        reason: reason.into(),
        message: message.into(),
    }
}

fn event(
    view: SessionView<'_>,
    job: JobId,
    reason: &'static str,
    message: Arc<str>,
    out: &mut Outbox,
) {
    let row = &view.cluster.jobs[job];
    let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare) else { return };
    let about = About::PodGroup { key: row.key.clone(), uid: group.uid.clone() };
    out.effects.push(Effect::Event { about, warning: false, reason, message });
}

fn write(view: SessionView<'_>, eviction: &GroupEviction, out: &mut Outbox) {
    let GroupEviction { preemptor, target } = eviction;
    let message = &target.message;
    for (kind, reason) in [(EVICTED, PREEMPTED), (PREEMPTED, target.reason)] {
        out.conditions.push((target.job, condition(view, kind, "True", reason, message)));
    }
    let (theirs, ours) = (&view.cluster.jobs[target.job], &view.cluster.jobs[*preemptor]);
    let priorities =
        format!("; preemptor priority: {}; preemptee priority: {}", ours.priority, theirs.priority);
    event(view, target.job, PREEMPTED, format!("{message}{priorities}").into(), out);
    let uid = uid(view.cluster, target.job).unwrap_or_else(|| UNKNOWN.into());
    let queue = &view.cluster.queues[theirs.queue].name;
    let text =
        format!("Preempted workload {} (UID: {uid}) in queue {queue}{priorities}", theirs.key);
    event(view, *preemptor, "PreemptedWorkload", text.into(), out);
    out.samples.push(Sample::QuotaPreempted {
        preempting: view.cluster.queues[ours.queue].name.clone(),
        preempted: queue.clone(),
        reason: target.reason,
    });
}

/// Starts the backoff of an evicted group that had preempted others (section B.7).
fn wait(view: SessionView<'_>, eviction: &GroupEviction, backoff: &mut Backoff, out: &mut Outbox) {
    let job = eviction.target.job;
    let Some(uid) = uid(view.cluster, job) else { return };
    if let Some(until) = backoff.evicted(&uid, view.now_micros()) {
        let text = format!("it has no others evicted before {}", rfc3339(until));
        event(view, job, "PreemptionBackoff", text.into(), out);
    }
}

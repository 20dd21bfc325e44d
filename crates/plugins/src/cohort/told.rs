//! What is written to the objects: conditions and events of groups that go and of those for which
//! they do, and what is wrong with queues. Specification: cohort.md A.10, B.7 (back-off), B.8, B.9.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_cohort::{Backoff, Forest, QuotaNode, Reason};
use vc_framework::{About, Ask, Effect, Outbox, Sample, TargetGroup, rfc3339};
use vc_model::{Cluster, JobId, PodGroupCondition};

use super::queues::Problem;

const UNKNOWN: &str = "UNKNOWN";
const EVICTED: &str = "Evicted";
const PREEMPTED: &str = "Preempted";
const RESERVED: &str = "QuotaReserved";

/// Who goes for whom.
pub(super) struct Parties<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) forest: &'a Forest,
    pub(super) preemptor: JobId,
    /// Its queue.
    pub(super) own: QuotaNode,
}

/// The text of A.10, with the paths of both queues.
pub(super) fn message(of: &Parties<'_>, target: JobId, node: QuotaNode, reason: Reason) -> String {
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

/// One group that goes.
#[derive(Clone, Debug)]
struct Eviction {
    preemptor: JobId,
    target: TargetGroup,
}

/// What was said, so that it is said once.
#[derive(Debug, Default)]
pub(super) struct Told {
    evictions: Vec<Eviction>,
    /// Who is known to the back-off, by uid.
    jobs: BTreeMap<Arc<str>, JobId>,
    problems: BTreeSet<Problem>,
}

impl Told {
    /// The groups go for the job.
    pub(super) fn preempted(&mut self, _ask: Ask<'_>, job: JobId, groups: &[TargetGroup]) {
        let eviction = |target: &TargetGroup| Eviction { preemptor: job, target: target.clone() };
        self.evictions.extend(groups.iter().map(eviction));
    }

    /// Writes what has happened in the session.
    pub(super) fn close(&mut self, ask: Ask<'_>, backoff: &mut Backoff, out: &mut Outbox) {
        let evictions = std::mem::take(&mut self.evictions);
        for eviction in &evictions {
            let uid = uid(ask.cluster, eviction.preemptor);
            if let Some(uid) = uid {
                backoff.preempted(&uid);
                self.jobs.insert(uid, eviction.preemptor);
            }
        }
        for eviction in &evictions {
            write(ask, eviction, out);
            wait(ask, eviction, backoff, out);
        }
        self.resolve(ask, &evictions, out);
        self.forget(ask, backoff);
    }

    /// Groups that are gone have nothing to wait for.
    fn forget(&mut self, ask: Ask<'_>, backoff: &mut Backoff) {
        // Some are of another configuration.
        if backoff.uids().any(|uid| !self.jobs.contains_key(uid)) {
            let of_job = |job| Some((uid(ask.cluster, job)?, job));
            self.jobs = ask.all_jobs().filter_map(of_job).collect();
        }
        let known: BTreeSet<&Arc<str>> = backoff.uids().collect();
        self.jobs.retain(|of, job| {
            let is_it = || uid(ask.cluster, *job).is_some_and(|uid| uid == *of);
            known.contains(of) && ask.has_job(*job) && is_it()
        });
        backoff.retain(|uid| self.jobs.contains_key(uid));
    }

    /// A group that is ready again has its quota back.
    fn resolve(&self, ask: Ask<'_>, evictions: &[Eviction], out: &mut Outbox) {
        for &job in &ask.facts.to_close {
            let row = &ask.cluster.jobs[job];
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
                let resolved = self::condition(ask, &condition.kind, "False", RESERVED, &message);
                out.conditions.push((job, resolved));
            }
        }
    }

    /// Queues that do not mean what their authors expect: once, until they change.
    pub(super) fn queues(&mut self, ask: Ask<'_>, problems: &BTreeSet<Problem>, out: &mut Outbox) {
        for problem in problems.difference(&self.problems) {
            let Some(queue) = ask.cluster.queue(&problem.queue) else { continue };
            let (name, uid) = (problem.queue.clone(), ask.cluster.queues[queue].uid.clone());
            let about = About::Queue { name, uid };
            let message = problem.text.as_str().into();
            let reason = problem.reason;
            out.effects.push(Effect::Event { about, warning: true, reason, message });
        }
        if self.problems != *problems {
            self.problems.clone_from(problems);
        }
    }
}

fn uid(cluster: &Cluster, job: JobId) -> Option<Arc<str>> {
    cluster.jobs[job].pod_group.as_ref().map(|group| group.uid.clone())
}

fn condition(
    ask: Ask<'_>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) -> PodGroupCondition {
    PodGroupCondition {
        kind: kind.into(),
        status: status.into(),
        transition_id: ask.facts.session_id.clone(),
        last_transition_time: ask.facts.now_text.clone(),
        reason: reason.into(),
        message: message.into(),
    }
}

fn event(ask: Ask<'_>, job: JobId, reason: &'static str, message: Arc<str>, out: &mut Outbox) {
    let row = &ask.cluster.jobs[job];
    let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare) else { return };
    let about = About::PodGroup { key: row.key.clone(), uid: group.uid.clone() };
    out.effects.push(Effect::Event { about, warning: false, reason, message });
}

fn write(ask: Ask<'_>, eviction: &Eviction, out: &mut Outbox) {
    let Eviction { preemptor, target } = eviction;
    let message = &target.message;
    for (kind, reason) in [(EVICTED, PREEMPTED), (PREEMPTED, target.reason)] {
        out.conditions.push((target.job, condition(ask, kind, "True", reason, message)));
    }
    let (theirs, ours) = (&ask.cluster.jobs[target.job], &ask.cluster.jobs[*preemptor]);
    let priorities =
        format!("; preemptor priority: {}; preemptee priority: {}", ours.priority, theirs.priority);
    event(ask, target.job, PREEMPTED, format!("{message}{priorities}").into(), out);
    let uid = uid(ask.cluster, target.job).unwrap_or_else(|| UNKNOWN.into());
    let queue = &ask.cluster.queues[theirs.queue].name;
    let text =
        format!("Preempted workload {} (UID: {uid}) in queue {queue}{priorities}", theirs.key);
    event(ask, *preemptor, "PreemptedWorkload", text.into(), out);
    out.samples.push(Sample::QuotaPreempted {
        preempting: ask.cluster.queues[ours.queue].name.clone(),
        preempted: queue.clone(),
        reason: target.reason,
    });
}

/// A group that goes after it had others go waits before it does so again (B.7).
fn wait(ask: Ask<'_>, eviction: &Eviction, backoff: &mut Backoff, out: &mut Outbox) {
    let job = eviction.target.job;
    let Some(uid) = uid(ask.cluster, job) else { return };
    if let Some(until) = backoff.evicted(&uid, ask.facts.now_micros) {
        let text = format!("it has no others evicted before {}", rfc3339(until));
        event(ask, job, "PreemptionBackoff", text.into(), out);
    }
}

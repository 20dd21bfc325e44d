//! Events that tell a starving job why no pods were evicted for it, and what would unblock it.
//! Specification: actions.md 10.6, 3.3; A44 for texts that are not repeated.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_framework::{
    About, Cause, Effect, Session, SkippedAction, SkippedCause, SkippedCycle, Tally, histogram,
};
use vc_model::JobId;

use crate::report_throttle::{ReportKind, ReportThrottle};

const REASON: &str = "PreemptionSkipped";

/// Returns the jobs that still wait at the end of the actions, with what kept each action from
/// evicting.
pub(crate) fn skipped(session: &Session<'_>) -> Vec<(JobId, SkippedCycle)> {
    let mut found = starving(session);
    let outside = session.outcome.causes.outside().iter();
    found.extend(outside.map(|&(job, plugin)| (job, kept_out(session, job, plugin))));
    found.sort_by(|l, r| l.1.pod_group.cmp(&r.1.pod_group));
    found
}

/// Returns the jobs for which a report may be due. Jobs that are refused for the same reason as
/// before are left out.
fn not_reported(session: &Session<'_>) -> Vec<(JobId, SkippedCycle)> {
    let mut found = starving(session);
    let outside = session.outcome.causes.outside().iter();
    let outside = outside.filter(|(job, _)| !session.is_refused_again(*job));
    found.extend(outside.map(|&(job, plugin)| (job, kept_out(session, job, plugin))));
    found.sort_by(|l, r| l.1.pod_group.cmp(&r.1.pod_group));
    found
}

fn kept_out(session: &Session<'_>, job: JobId, plugin: &'static str) -> SkippedCycle {
    let tally = Tally::from([(Cause::NotAdmitted(plugin), 1)]);
    skipped_job(session, job, &[("enqueue", tally)])
}

fn skipped_job(
    session: &Session<'_>,
    job: JobId,
    actions: &[(&'static str, Tally)],
) -> SkippedCycle {
    let pod_group = session.jobs[job].key.clone();
    let of_action = |(action, tally): &(&'static str, Tally)| SkippedAction {
        action,
        causes: skipped_causes(session, action, tally).collect(),
    };
    SkippedCycle {
        pod_group,
        message: message(session, actions),
        actions: actions.iter().map(of_action).collect(),
        remedy: remedy(actions),
    }
}

fn skipped_causes(
    session: &Session<'_>,
    action: &str,
    tally: &Tally,
) -> impl Iterator<Item = SkippedCause> {
    tally.iter().map(move |(cause, &count)| {
        let plugin = match cause {
            Cause::Refused(plugin) => *plugin,
            Cause::NotAdmitted(plugin) => Some(*plugin),
            _ => None,
        };
        let counted_in = cause.counted_in(action);
        SkippedCause { count, counted_in, text: cause.text(session), plugin }
    })
}

fn starving(session: &Session<'_>) -> Vec<(JobId, SkippedCycle)> {
    let mut found = Vec::new();
    for (job, actions) in session.outcome.causes.iter() {
        let not_admitted = |(_, tally): &(_, Tally)| {
            tally.keys().any(|cause| matches!(cause, Cause::NotAdmitted(_)))
        };
        let waits_outside = actions.iter().any(not_admitted);
        if !waits_outside && !session.plugins().job_starving(session.view(), job) {
            continue;
        }
        found.push((job, skipped_job(session, job, actions)));
    }
    found
}

fn message(session: &Session<'_>, actions: &[(&'static str, Tally)]) -> String {
    let of_action = |(action, tally): &(&'static str, Tally)| match tally.keys().next() {
        Some(cause @ Cause::NotAdmitted(_)) => cause.text(session),
        _ => format!("{action}: {}", histogram(session, tally)),
    };
    actions.iter().map(of_action).collect::<Vec<_>>().join("; ")
}

/// Reports that are due.
pub(crate) struct DueReports {
    events: Vec<Effect>,
    /// Jobs with other causes than their pods were given. Counts are not compared.
    pub(crate) changed: BTreeSet<JobId>,
}

impl DueReports {
    /// Returns one event per PodGroup whose text is new or due.
    pub(crate) fn of(session: &Session<'_>, report_throttle: &mut ReportThrottle) -> Self {
        let (mut events, mut changed) = (Vec::new(), BTreeSet::new());
        let now_micros = session.info().now_micros;
        for (job, SkippedCycle { message, .. }) in not_reported(session) {
            let row = &session.jobs[job];
            let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare) else { continue };
            let message: Arc<str> = message.into();
            if !report_throttle.admits(&group.uid, ReportKind::Skipped, &message, now_micros) {
                continue;
            }
            let kinds: Arc<str> = kinds(session, session.outcome.causes.of(job)).into();
            if report_throttle.admits(&group.uid, ReportKind::Evictions, &kinds, now_micros) {
                changed.insert(job);
            }
            let about = About::PodGroup { key: row.key.clone(), uid: group.uid.clone() };
            events.push(Effect::Event { about, warning: false, reason: REASON, message });
        }
        Self { events, changed }
    }

    /// Sends the events.
    pub(crate) fn record(&mut self, session: &mut Session<'_>) {
        session.outcome.out.effects.append(&mut self.events);
    }
}

/// Returns the causes of evicting actions, without counts.
fn kinds(session: &Session<'_>, actions: &[(&'static str, Tally)]) -> String {
    let kind = |cause: &Cause| match cause {
        Cause::BelowMinimum { .. } => Cause::BelowMinimum { have: 0, min: 0 }.text(session),
        cause => cause.text(session),
    };
    let of_action = |(action, tally): &(&'static str, Tally)| {
        let kinds: BTreeSet<String> = tally.keys().map(kind).collect();
        format!("{action}: {}", kinds.into_iter().collect::<Vec<_>>().join(", "))
    };
    let evicting = actions.iter().filter(|(action, _)| *action != "enqueue");
    evicting.map(of_action).collect::<Vec<_>>().join("; ")
}

/// Returns the remedy for the most frequent cause; the first one of several.
fn remedy(actions: &[(&'static str, Tally)]) -> &'static str {
    let causes = actions.iter().flat_map(|(_, tally)| tally);
    let most = causes.reduce(|best, next| if best.1 < next.1 { next } else { best });
    most.map_or("", |(cause, _)| of_cause(cause))
}

fn of_cause(cause: &Cause) -> &'static str {
    match cause {
        Cause::PolicyNever => "give the pods a priority class whose preemptionPolicy is not Never",
        Cause::AwaitsVictims(_) => "nothing to do: the room is being freed",
        Cause::RoomKept(_) => "nothing to do: the room is kept until those pods are bound",
        Cause::NoCandidate => {
            "add nodes, or let pods be evicted: running, preemptable, of the same queue (preempt) \
             or of another reclaimable one (reclaim)"
        }
        Cause::Refused(plugin) => of_plugin(plugin.unwrap_or_default()),
        Cause::TooFew(_) => "ask for less, or add larger nodes",
        Cause::QueueFull(_) => "raise the share or the capability of the queue, or end its jobs",
        Cause::Filter(_) => "change the constraints of the pods, or add nodes that satisfy them",
        Cause::BelowMinimum { .. } => "lower minMember, or add nodes",
        Cause::Topology(_) => "raise highestTierAllowed, end jobs there, or use gangpreempt",
        Cause::Quota(_) => "change the quotas or the policies of the queues, or end jobs",
        Cause::NotAdmitted(_) => {
            "leave minResources unset, raise overcommit-factor or the share of the queue, or take \
             enqueue out of the actions"
        }
    }
}

fn of_plugin(plugin: &str) -> &'static str {
    match plugin {
        "gang" => {
            "all candidate gangs are at their minimum: lower their minMember, or use gangpreempt \
             or gangreclaim"
        }
        "priority" => "give the job a higher priority class",
        "drf" => "the shares leave nothing to take: end jobs, or add nodes",
        "conformance" => "critical pods are never evicted: add nodes",
        "pdb" => "wait for the disruption budgets, or relax them",
        "proportion" | "capacity" => {
            "the queues use no more than they deserve: change their shares"
        }
        "fairshare" => {
            "wait until the other namespaces have used enough more and their pods run long enough, \
             or lower fairshare.hysteresis or fairshare.minRunTime"
        }
        "" => "let a plugin of some tier grant victims",
        _ => "see the rules of this plugin",
    }
}

//! Plugin `sla`: after a waiting time a job is admitted regardless of quotas, and resources are
//! held for it.
//! Specification: plugins-jobs-queues.md 8.

use std::cmp::Ordering;

use vc_conf::{Argument, DurationRule, EnqueueVote};
use vc_framework::{
    Admission, AdmissionKey, AdmissionMark, CacheKeys, Clock, Depends, Inputs, Plugin, PluginEntry,
    Points, SessionView, Vote, rfc3339,
};
use vc_model::{JobId, go_duration_micros};

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("sla", |option, warnings| {
    Box::new(Sla { global_waiting_micros: WAITING_TIME.read(&option.arguments, warnings) })
})
.arguments(&[&WAITING_TIME])
.enqueue_vote(EnqueueVote::NeverRejects);

const POINTS: Points = Points::JOB_ORDER.and(Points::JOB_ENQUEUEABLE).and(Points::JOB_PIPELINED);

/// Without it, only jobs with an annotation have a waiting time.
const WAITING_TIME: Argument<DurationRule> = Argument::new(
    "sla-waiting-time",
    DurationRule {
        parse: |value| value.as_str().and_then(go_duration_micros).filter(|&micros| 0 < micros),
        problem: "not a positive duration",
        remedy: "write a duration in quotes, such as \"1h30m\"; until then only jobs with an \
                 annotation of their own have a waiting time",
    },
    "longest wait of a job without an annotation of its own",
)
.shown_as("none");

struct Sla {
    /// Waiting time in microseconds for jobs without a waiting time of their own.
    global_waiting_micros: Option<i64>,
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::JOB_ORDER, Inputs::JOB_ROW),
    (Points::JOB_ENQUEUEABLE, Inputs::JOB_ROW.and(Inputs::CLOCK)),
    (Points::JOB_PIPELINED, Inputs::JOB_ROW.and(Inputs::CLOCK)),
];

impl Plugin for Sla {
    fn points(&self) -> Points {
        POINTS
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    /// Orders jobs by the end of their waiting time. Jobs without one come last.
    fn job_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        match (self.due_micros(view, l), self.due_micros(view, r)) {
            (Some(l), Some(r)) => l.cmp(&r),
            (l, r) => r.is_some().cmp(&l.is_some()),
        }
    }

    fn order_value(&self, view: SessionView<'_>, job: JobId) -> Option<String> {
        let due = self.due_micros(view, job).map(rfc3339);
        Some(due.unwrap_or_else(|| "no waiting time".to_owned()))
    }

    fn job_enqueueable(&self, view: SessionView<'_>, job: JobId) -> Admission {
        match self.is_overdue(view, job) {
            true => Admission::Permit,
            false => Admission::Abstain,
        }
    }

    fn job_pipelined(&self, view: SessionView<'_>, job: JobId) -> Vote {
        match self.is_overdue(view, job) {
            true => Vote::Permit,
            false => Vote::Abstain,
        }
    }
}

impl CacheKeys for Sla {
    fn clock(&self, view: SessionView<'_>) -> Clock {
        let now = view.now_micros();
        let due = view.info.jobs.iter().filter_map(|&job| self.due_micros(view, job));
        due.filter(|&due| now < due).min().map_or(Clock::Ignores, Clock::Until)
    }

    fn admission_mark(&self, view: SessionView<'_>, job: JobId) -> AdmissionKey {
        let mark = self.is_overdue(view, job);
        let until_micros = self.due_micros(view, job).filter(|_| !mark);
        AdmissionKey::Marked(AdmissionMark { mark, until_micros })
    }

    fn pipeline_mark(&self, view: SessionView<'_>, job: JobId) -> Option<bool> {
        Some(self.is_overdue(view, job))
    }
}

impl Sla {
    /// Returns the end of the waiting time, in microseconds since 1970.
    fn due_micros(&self, view: SessionView<'_>, job: JobId) -> Option<i64> {
        let group = view.cluster.jobs[job].pod_group.as_ref()?;
        let waiting = group.sla_waiting_micros.or(self.global_waiting_micros)?;
        Some(group.created_micros.saturating_add(waiting))
    }

    fn is_overdue(&self, view: SessionView<'_>, job: JobId) -> bool {
        self.due_micros(view, job).is_some_and(|due| due <= view.now_micros())
    }
}

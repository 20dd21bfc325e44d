//! After a waiting time a job is admitted regardless of quotas, and resources are held for it.
//! Specification: plugins-jobs-queues.md 8.

use std::cmp::Ordering;

use vc_conf::{PluginOption, Warning};
use vc_framework::{Admission, Ask, Clock, Marked, Plugin, PluginEntry, Points, Vote};
use vc_model::{JobId, TaskId, go_duration_micros};

pub(crate) const ENTRY: PluginEntry = PluginEntry {
    name: "sla",
    build: |option, warnings| {
        Box::new(Sla { global_waiting_micros: global_waiting(option, warnings) })
    },
};

const POINTS: Points = Points::JOB_ORDER.and(Points::JOB_ENQUEUEABLE).and(Points::JOB_PIPELINED);

/// A duration such as `1h30m`; absent: only jobs with an annotation have a waiting time.
const WAITING_TIME: &str = "sla-waiting-time";

struct Sla {
    /// For jobs without a waiting time of their own.
    global_waiting_micros: Option<i64>,
}

fn global_waiting(option: &PluginOption, warnings: &mut Vec<Warning>) -> Option<i64> {
    let arguments = &option.arguments;
    let text = arguments.get(WAITING_TIME)?.as_str();
    let micros = text.and_then(go_duration_micros).filter(|&micros| 0 < micros);
    if micros.is_none() {
        let remedy = "write a duration in quotes, such as \"1h30m\"; until then only jobs with \
                      an annotation of their own have a waiting time";
        warnings.push(arguments.warning(WAITING_TIME, "not a positive duration", remedy));
    }
    micros
}

impl Plugin for Sla {
    fn points(&self) -> Points {
        POINTS
    }

    fn clock(&self, ask: Ask<'_>) -> Clock {
        let now = ask.facts.now_micros;
        let due = ask.facts.jobs.iter().filter_map(|&job| self.due_micros(ask, job));
        due.filter(|&due| now < due).min().map_or(Clock::Ignores, Clock::Until)
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    /// The end of the waiting time decides; a job without one comes last.
    fn job_order(&self, ask: Ask<'_>, l: JobId, r: JobId) -> Ordering {
        match (self.due_micros(ask, l), self.due_micros(ask, r)) {
            (Some(l), Some(r)) => l.cmp(&r),
            (l, r) => r.is_some().cmp(&l.is_some()),
        }
    }

    fn job_enqueueable(&self, ask: Ask<'_>, job: JobId) -> Admission {
        match self.is_overdue(ask, job) {
            true => Admission::Permit,
            false => Admission::Abstain,
        }
    }

    fn admits_alike(&self, ask: Ask<'_>, job: JobId) -> Option<Marked> {
        let mark = self.is_overdue(ask, job);
        Some(Marked { mark, until_micros: self.due_micros(ask, job).filter(|_| !mark) })
    }

    fn pipeline_mark(&self, ask: Ask<'_>, job: JobId) -> Option<bool> {
        Some(self.is_overdue(ask, job))
    }

    fn job_pipelined(&self, ask: Ask<'_>, job: JobId) -> Vote {
        match self.is_overdue(ask, job) {
            true => Vote::Permit,
            false => Vote::Abstain,
        }
    }
}

impl Sla {
    /// When the waiting time ends, in microseconds since 1970.
    fn due_micros(&self, ask: Ask<'_>, job: JobId) -> Option<i64> {
        let group = ask.cluster.jobs[job].pod_group.as_ref()?;
        let waiting = group.sla_waiting_micros.or(self.global_waiting_micros)?;
        Some(group.created_micros.saturating_add(waiting))
    }

    fn is_overdue(&self, ask: Ask<'_>, job: JobId) -> bool {
        self.due_micros(ask, job).is_some_and(|due| due <= ask.facts.now_micros)
    }
}

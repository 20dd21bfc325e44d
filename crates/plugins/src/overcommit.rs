//! A brake on admission for the whole cluster: jobs are enqueued only up to a factor of its
//! resources. Specification: plugins-jobs-queues.md 7, D20.

use vc_conf::{PluginOption, Warning};
use vc_framework::{
    Admission, Ask, Clock, LimitOwner, LimitedAmount, Marked, Plugin, PluginEntry, Points,
    QueueLimit,
};
use vc_model::{JobId, TaskId};
use vc_resource::{Fractional, Resource};

use crate::rules::min_resources;

pub(crate) const ENTRY: PluginEntry = PluginEntry {
    name: "overcommit",
    build: |option, warnings| {
        Box::new(Overcommit { factor: factor(option, warnings), ..Overcommit::default() })
    },
};

/// A number of at least 1.
const FACTOR: &str = "overcommit-factor";
const DEFAULT_FACTOR: f64 = 1.2;

#[derive(Default)]
struct Overcommit {
    factor: f64,
    /// Resources of the cluster times the factor, without what pods use; may be negative.
    idle: Fractional,
    /// What admitted jobs hold back.
    inqueue: Resource,
}

fn factor(option: &PluginOption, warnings: &mut Vec<Warning>) -> f64 {
    let arguments = &option.arguments;
    let factor = arguments.float(FACTOR, DEFAULT_FACTOR, warnings);
    if 1.0 <= factor {
        return factor;
    }
    let message = format!("{factor} is less than 1");
    let remedy = format!(
        "write a number of at least 1; until then the default {DEFAULT_FACTOR} is in force"
    );
    warnings.push(arguments.warning(FACTOR, &message, &remedy));
    DEFAULT_FACTOR
}

impl Plugin for Overcommit {
    fn points(&self) -> Points {
        Points::JOB_ENQUEUEABLE.and(Points::JOB_ENQUEUED)
    }

    fn clock(&self, _ask: Ask<'_>) -> Clock {
        Clock::Ignores
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    fn open(&mut self, ask: Ask<'_>) {
        self.idle = ask.facts.total.multi(self.factor);
        // Nobody else asks, and it takes a walk over the nodes.
        if ask.facts.jobs.iter().any(|&job| ask.cluster.jobs[job].is_pending()) {
            for &node in ask.facts.nodes.iter() {
                self.idle.sub(&ask.cluster.nodes[node].used.to_fractional());
            }
        }
        self.inqueue = Resource::default();
        for &queue in &ask.facts.queues {
            self.inqueue.add(&ask.facts.roster.sums(queue).inqueue);
        }
    }

    fn job_enqueueable(&self, ask: Ask<'_>, job: JobId) -> Admission {
        let Some(asked) = min_resources(&ask.cluster.jobs[job]) else {
            return Admission::Permit;
        };
        let mut wanted = self.inqueue.clone();
        wanted.add(asked);
        let (wanted, asked) = (wanted.to_fractional(), asked.to_fractional());
        let dims = &ask.cluster.dims;
        let Err(lacking) = wanted.less_equal_dim(&self.idle, &asked, dims) else {
            return Admission::Permit;
        };
        let name = |&dim: &_| format!("overused {}", dims.name(dim));
        let names: Vec<String> = lacking.iter().map(name).collect();
        let message = format!("resource in cluster is overused: {}", names.join(", "));
        Admission::Reject(Some(message))
    }

    fn admission_limit(&self, ask: Ask<'_>, job: JobId) -> Option<QueueLimit> {
        let asked = min_resources(&ask.cluster.jobs[job])?;
        let mut wanted = self.inqueue.to_fractional();
        wanted.add(&asked.to_fractional());
        let dims = &ask.cluster.dims;
        let lacking = wanted.less_equal_dim(&self.idle, &asked.to_fractional(), dims).err()?;
        let total = ask.facts.total.multi(self.factor);
        let amount = |dim| {
            let (limit, idle) = (total.get(dim), self.idle.get(dim));
            let used = limit - idle + self.inqueue.to_fractional().get(dim);
            let (limit, used) = (limit as i64, used as i64);
            LimitedAmount { dim, limit, set_by: FACTOR, used, asked: asked.get(dim) }
        };
        let amounts = lacking.into_iter().map(amount).collect();
        Some(QueueLimit { owner: LimitOwner::Cluster, amounts })
    }

    fn admits_alike(&self, _ask: Ask<'_>, _job: JobId) -> Option<Marked> {
        Some(Marked::default())
    }

    fn job_enqueued(&mut self, ask: Ask<'_>, job: JobId) {
        let job = &ask.cluster.jobs[job];
        if let Some(asked) = min_resources(job) {
            self.inqueue.add(&job.minus_gated(asked));
        }
    }
}

//! Plugin `overcommit`: limits admission for the whole cluster. Jobs are enqueued only up to a
//! factor of the cluster's resources.
//! Specification: plugins-jobs-queues.md 7, D20.

use vc_conf::{Argument, EnqueueVote};
use vc_framework::{
    Admission, Depends, Inputs, LimitOwner, LimitedAmount, Plugin, PluginEntry, Points, QueueLimit,
    SessionView,
};
use vc_model::JobId;
use vc_resource::{Fractional, Resource};

use crate::rules::min_resources;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("overcommit", |option, warnings| {
    let factor = FACTOR.read(&option.arguments, warnings);
    Box::new(Overcommit { factor, ..Overcommit::default() })
})
.arguments(&[&FACTOR])
.enqueue_vote(EnqueueVote::IgnoresEvictions);

const FACTOR: Argument<f64> =
    Argument::new("overcommit-factor", 1.2, "cluster size for admission").at_least(1.0);

#[derive(Default)]
struct Overcommit {
    factor: f64,
    /// Resources of the cluster times the factor, minus the usage of pods. It may be negative.
    idle: Fractional,
    /// Amounts held back for admitted jobs without pods.
    inqueue: Resource,
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[(
    Points::JOB_ENQUEUEABLE,
    Inputs::JOB_REQUEST
        .and(Inputs::CLUSTER_TOTAL)
        .and(Inputs::OTHER_PODS)
        .and(Inputs::OTHER_QUEUE_USAGE),
)];

impl Plugin for Overcommit {
    fn points(&self) -> Points {
        Points::JOB_ENQUEUEABLE.and(Points::JOB_ENQUEUED)
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn open(&mut self, view: SessionView<'_>) {
        self.idle = view.total().multi(self.factor);
        // Only pending jobs are tested against `idle`, and the sum costs a pass over all nodes.
        if view.info.jobs.iter().any(|&job| view.cluster.jobs[job].is_pending()) {
            for &node in view.info.nodes.iter() {
                self.idle.sub(&view.cluster.nodes[node].used.to_fractional());
            }
        }
        self.inqueue = Resource::default();
        for &queue in &view.info.queues {
            self.inqueue.add(&view.info.active_jobs.sums(queue).inqueue);
        }
    }

    fn job_enqueueable(&self, view: SessionView<'_>, job: JobId) -> Admission {
        let Some(asked) = min_resources(&view.cluster.jobs[job]) else {
            return Admission::Permit;
        };
        let mut wanted = self.inqueue.clone();
        wanted.add(asked);
        let (wanted, asked) = (wanted.to_fractional(), asked.to_fractional());
        let dims = &view.cluster.dims;
        let Err(lacking) = wanted.less_equal_dim(&self.idle, &asked, dims) else {
            return Admission::Permit;
        };
        let name = |&dim: &_| format!("overused {}", dims.name(dim));
        let names: Vec<String> = lacking.iter().map(name).collect();
        let message = format!("resource in cluster is overused: {}", names.join(", "));
        Admission::Reject(Some(message))
    }

    fn admission_limit(&self, view: SessionView<'_>, job: JobId) -> Option<QueueLimit> {
        let asked = min_resources(&view.cluster.jobs[job])?;
        let mut wanted = self.inqueue.to_fractional();
        wanted.add(&asked.to_fractional());
        let dims = &view.cluster.dims;
        let lacking = wanted.less_equal_dim(&self.idle, &asked.to_fractional(), dims).err()?;
        let total = view.total().multi(self.factor);
        let amount = |dim| {
            let (limit, idle) = (total.get(dim), self.idle.get(dim));
            let used = limit - idle + self.inqueue.to_fractional().get(dim);
            let (limit, used) = (limit as i64, used as i64);
            LimitedAmount { dim, limit, set_by: FACTOR.key, used, asked: asked.get(dim) }
        };
        let amounts = lacking.into_iter().map(amount).collect();
        Some(QueueLimit { owner: LimitOwner::Cluster, amounts })
    }

    fn job_enqueued(&mut self, view: SessionView<'_>, job: JobId) {
        let job = &view.cluster.jobs[job];
        if let Some(asked) = min_resources(job) {
            self.inqueue.add(&job.minus_gated(asked));
        }
    }
}

//! A job: a PodGroup with its tasks, and its sub-jobs. Specification: core.md 3.7.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_resource::Resource;

use crate::cluster::{SubJobRows, Tally};
use crate::ids::{QueueId, TaskId};
use crate::record::{
    NetworkTopology, ObjectKey, PodGroupPhase, PodGroupStatus, ResourceList, SubGroupPolicy,
};
use crate::status::Counts;
use crate::sums::{self, Seldom};

/// A PodGroup with its tasks.
#[derive(Clone, Debug)]
pub struct Job {
    /// `<namespace>/<PodGroup name>` is the job's id.
    pub key: ObjectKey,
    /// `None`: only pods name the group so far, or it was deleted.
    pub pod_group: Option<PodGroup>,
    /// A single pod without group annotation (`--bare-pods=schedule`). Its key is
    /// `<namespace>/pod:<pod name>`, its PodGroup is made up from the pod and never written.
    pub bare: bool,
    /// Of `spec.queue`; empty or without PodGroup: the default queue. May be not present.
    pub queue: QueueId,
    /// Value of the PodGroup's PriorityClass, else of the global default, else 0.
    pub priority: i32,
    /// `spec.minMember`; 0 without PodGroup.
    pub min_available: i32,
    /// `spec.minTaskMember`: minimum per role.
    pub task_min_available: BTreeMap<Arc<str>, i32>,
    /// Σ of them.
    pub task_min_available_total: i64,
    /// By (namespace, name, uid).
    pub tasks: Vec<TaskId>,
    /// The first one is the default sub-job; one without tasks does not exist for the rules.
    pub sub_jobs: Vec<SubJob>,
    /// Which of them are of policies; `None`: there never was one.
    pub(crate) sub_job_rows: Option<Box<SubJobRows>>,
    /// Counters over all tasks.
    pub counts: Counts,
    /// Counters per role; a role without tasks has no entry.
    pub roles: BTreeMap<Arc<str>, Counts>,
    /// Σ requests over allocated statuses.
    pub allocated: Resource,
    /// Σ requests over Pending tasks.
    pub pending_request: Seldom,
    /// Σ requests over the others.
    pub(crate) other_request: Seldom,
    /// Σ requests of gated tasks, but for those with only the queue allocation gate.
    pub gated: Seldom,
}

/// What a job takes from its PodGroup.
#[derive(Clone, Debug, PartialEq)]
pub struct PodGroup {
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Uid of the controlling owner; `None`: there is none.
    pub controller_uid: Option<Arc<str>>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// As last seen, with what we wrote on top until the watch shows it (core.md 11 (c)).
    pub status: PodGroupStatus,
    /// As last seen in the API.
    pub observed_status: PodGroupStatus,
    /// A status of ours is on its way.
    pub status_in_flight: bool,
    /// Version under which our last status was stored; older ones are echoes of the past. `None`:
    /// the watch has shown it, or it is not a number.
    pub written_version: Option<u64>,
    /// `metadata.resourceVersion` as last seen.
    pub resource_version: Arc<str>,
    /// `spec.priorityClassName`; empty if none.
    pub priority_class_name: Arc<str>,
    /// `spec.minResources`; `None`: admitted without questions.
    pub min_resources: Option<Arc<MinResources>>,
    /// `spec.networkTopology`; `None`: the job asks for no topology.
    pub network_topology: Option<Box<NetworkTopology>>,
    /// `spec.subGroupPolicy`.
    pub policies: Arc<[SubGroupPolicy]>,
    /// Waiting time of the job's own annotations, above 0; `None`: there is none that is valid.
    pub sla_waiting_micros: Option<i64>,
    /// Annotation, else label `volcano.sh/preemptable`; absent: false.
    pub preemptable: bool,
    /// The same annotation, else label, says something else than true: the gang actions spare the
    /// job (actions.md 9.1); absent: false.
    pub not_preemptable: bool,
    /// Annotations `volcano.sh/jdb-*`; `None`: there is none.
    pub budget: Option<Box<JobBudget>>,
}

/// `spec.minResources`, kept once for PodGroups that agree in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MinResources {
    /// What counts.
    pub amounts: Resource,
    /// As written, with names that are no dimension; what quotas count.
    pub list: ResourceList,
}

/// How many tasks of a job must run, or may be missing (plugins-jobs-queues.md 13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobBudget {
    /// `volcano.sh/jdb-min-available`.
    MinAvailable(Portion),
    /// `volcano.sh/jdb-max-unavailable`.
    MaxUnavailable(Portion),
    /// The text is neither a number nor a percentage.
    Unreadable(Arc<str>),
}

/// A number of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion {
    /// So many.
    Number(i32),
    /// So many of a hundred, rounded up.
    Percent(i32),
}

impl Portion {
    /// Of so many tasks.
    pub fn of(self, n_tasks: u32) -> i64 {
        match self {
            Self::Number(number) => number.into(),
            Self::Percent(percent) => {
                (i64::from(percent) * i64::from(n_tasks) + 99).div_euclid(100)
            }
        }
    }
}

/// A sub-group of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct SubJob {
    /// `<job>/<policy>-<values>`, or the job id for the default one.
    pub id: Arc<str>,
    /// Index into the PodGroup's policies; `None` for the default one.
    pub policy: Option<usize>,
    /// `subGroupSize`; of the default one the job's, or 1 if the job has policies.
    pub min_available: i32,
    /// First match value as a number, else 0.
    pub match_index: i64,
    /// Counters over its tasks.
    pub counts: Counts,
    /// By (namespace, name, uid).
    pub tasks: Vec<TaskId>,
}

impl Job {
    /// Phase of the PodGroup; Pending without one.
    pub fn phase(&self) -> PodGroupPhase {
        self.pod_group.as_ref().map_or(PodGroupPhase::Pending, |group| group.status.phase)
    }

    /// No PodGroup, or phase Pending or empty.
    pub fn is_pending(&self) -> bool {
        self.phase() == PodGroupPhase::Pending
    }

    /// ready + pending best effort ≥ minAvailable.
    pub fn is_ready(&self) -> bool {
        self.counts.is_ready(self.min_available)
    }

    /// The same with Pipelined tasks.
    pub fn is_pipelined(&self) -> bool {
        self.counts.is_pipelined(self.min_available)
    }

    /// waiting + ready < minAvailable.
    pub fn is_starving(&self) -> bool {
        self.counts.is_starving(self.min_available)
    }

    /// Policies of `spec.subGroupPolicy`.
    pub fn policies(&self) -> &[SubGroupPolicy] {
        self.pod_group.as_ref().map_or(&[], |group| &group.policies)
    }

    /// Role minimums count only when minAvailable covers their sum (core.md 3.7).
    pub fn enforces_roles(&self) -> bool {
        self.task_min_available_total <= i64::from(self.min_available)
    }

    fn every_role(&self, number: impl Fn(&Counts) -> u32) -> bool {
        let none = Counts::default();
        let enough = |(role, &minimum): (&Arc<str>, &i32)| {
            let counts = self.roles.get(role).unwrap_or(&none);
            i64::from(minimum) <= i64::from(number(counts))
        };
        !self.enforces_roles() || self.task_min_available.iter().all(enough)
    }

    /// CheckTaskValid.
    pub fn roles_valid(&self) -> bool {
        self.every_role(Counts::valid)
    }

    /// CheckTaskReady.
    pub fn roles_ready(&self) -> bool {
        self.every_role(|counts| counts.ready() + counts.pending_best_effort)
    }

    /// CheckTaskPipelined.
    pub fn roles_pipelined(&self) -> bool {
        self.every_role(|counts| counts.ready() + counts.waiting() + counts.pending_best_effort)
    }

    /// By counters: jobs of many sub-groups are asked for each (actions.md 12.2 S10).
    fn every_policy(&self, number: impl Fn(Tally) -> u32) -> bool {
        self.policies().iter().enumerate().all(|(index, policy)| {
            i64::from(policy.min_sub_groups) <= i64::from(number(self.tally(index)))
        })
    }

    /// Sub-jobs that have tasks.
    pub fn existing_sub_jobs(&self) -> impl Iterator<Item = &SubJob> {
        self.sub_jobs.iter().filter(|sub| !sub.tasks.is_empty())
    }

    /// Sub-jobs of a policy that have tasks.
    pub fn n_existing_sub_jobs(&self, policy: usize) -> u32 {
        self.tally(policy).n_existing
    }

    /// CheckSubJobValid.
    pub fn sub_jobs_valid(&self) -> bool {
        self.every_policy(|tally| tally.n_existing)
    }

    /// CheckSubJobReady.
    pub fn sub_jobs_ready(&self) -> bool {
        self.every_policy(|tally| tally.n_ready)
    }

    /// Sub-jobs of a policy that have their minimum, Pipelined tasks included.
    pub fn n_pipelined_sub_jobs(&self, policy: usize) -> u32 {
        self.tally(policy).n_pipelined
    }

    /// CheckSubJobPipelined.
    pub fn sub_jobs_pipelined(&self) -> bool {
        self.every_policy(|tally| tally.n_pipelined)
    }

    /// `spec.minResources`; empty if absent.
    pub fn min_resources(&self) -> Resource {
        let group = self.pod_group.as_ref();
        let min_resources = group.and_then(|group| group.min_resources.as_ref());
        min_resources.map(|asked| asked.amounts.clone()).unwrap_or_default()
    }

    /// Σ requests over all tasks.
    pub fn total_request(&self) -> Resource {
        let mut total = self.allocated.clone();
        for part in [&self.pending_request, &self.other_request] {
            sums::enter(&mut total, part);
        }
        total
    }

    /// What is allocated beyond the minimum.
    pub fn elastic(&self) -> Resource {
        self.allocated.excess(&self.min_resources())
    }

    /// What an admitted job still holds back of its `minResources`, without gated tasks (5.1, 16.1;
    /// for overcommit D20). `None`: the job is not admitted, or asks for nothing.
    pub fn reserved(&self) -> Option<Resource> {
        let min_resources = self.pod_group.as_ref()?.min_resources.as_ref()?;
        let admitted = match self.phase() {
            PodGroupPhase::Inqueue => true,
            // A finished driver may leave the group Running: what it had must not be reserved again.
            PodGroupPhase::Running => {
                i64::from(self.min_available) <= self.counts.allocated().into()
            }
            PodGroupPhase::Pending | PodGroupPhase::Unknown | PodGroupPhase::Completed => false,
        };
        admitted.then(|| self.minus_gated(&min_resources.amounts.excess(&self.allocated)))
    }

    /// An amount without what gated tasks would take of it, at least 0 (plugins-jobs-queues.md
    /// 16.1).
    pub fn minus_gated(&self, amount: &Resource) -> Resource {
        if self.gated.is_empty() {
            return amount.clone();
        }
        let mut left = amount.clone();
        for dim in amount.dims() {
            if 0 < self.gated.get(dim) {
                left.set_exact(dim, (amount.exact(dim) - self.gated.exact(dim)).max(0));
            }
        }
        left
    }
}

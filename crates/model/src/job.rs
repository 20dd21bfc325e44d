//! A job: a PodGroup with its tasks, and its sub-jobs. Specification: core.md 3.7.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_resource::Resource;

use crate::cluster::{SubJobRows, SubJobTally};
use crate::counts_by_role::CountsByRole;
use crate::group_controller::GroupController;
use crate::ids::{QueueId, TaskId};
use crate::record::{
    NetworkTopology, ObjectKey, PodGroupPhase, PodGroupStatus, ResourceList, SubGroupPolicy,
};
use crate::run_template::RunTemplate;
use crate::selector::Labels;
use crate::status::Counts;
use crate::sums::{self, Seldom};

/// A PodGroup with its tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Namespace and PodGroup name. As text, `<namespace>/<name>`, this is the id of the job.
    pub key: ObjectKey,
    /// The PodGroup. `None` if only pods name the group so far, or if it was deleted.
    pub pod_group: Option<PodGroup>,
    /// True for a single pod without group annotation (`--bare-pods=schedule`). The key of such a
    /// job is `<namespace>/pod:<pod name>`. Its PodGroup is derived from the pod and never written.
    pub bare: bool,
    /// Queue of `spec.queue`; the default queue if the name is empty or there is no PodGroup. The
    /// queue need not exist.
    pub queue: QueueId,
    /// Value of the PodGroup's PriorityClass, else of the global default, else 0.
    pub priority: i32,
    /// `spec.minMember`; 0 without PodGroup.
    pub min_available: i32,
    /// `spec.minTaskMember`: minimum per role.
    pub task_min_available: Arc<BTreeMap<Arc<str>, i32>>,
    /// Sum of the minimums of all roles.
    pub task_min_available_total: i64,
    /// Tasks ordered by (namespace, name, uid).
    pub tasks: Vec<TaskId>,
    /// Sub-jobs; the first one is the default sub-job. A sub-job without tasks does not exist for
    /// the rules.
    pub sub_jobs: Vec<SubJob>,
    /// Index of the sub-jobs of policies. `None` if there never was such a sub-job.
    pub(crate) sub_job_rows: Option<Box<SubJobRows>>,
    /// Task counts over all tasks.
    pub counts: Counts,
    /// Task counts per role. A role without tasks has no entry.
    pub roles: CountsByRole,
    /// Σ requests over allocated statuses.
    pub allocated: Resource,
    /// Σ requests over Pending tasks.
    pub pending_request: Seldom,
    /// Σ requests over tasks that are neither Pending nor in an allocated status.
    pub(crate) other_request: Seldom,
    /// Σ requests of gated tasks. Tasks whose only gate is the queue allocation gate do not count.
    pub gated: Seldom,
}

/// A status of a PodGroup that we have stored, and that the watch has not shown yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrittenStatus {
    /// `metadata.resourceVersion` of the answer.
    pub version: u64,
    /// What was stored.
    pub status: PodGroupStatus,
}

/// The data of a PodGroup that its job uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodGroup {
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// Uid of the controlling owner. `None` if there is none.
    pub controller_uid: Option<Arc<str>>,
    /// Kind of the controlling owner, as in `ReplicaSet`, if that is the first owner, whose name is
    /// known. `None` otherwise.
    pub controller_kind: Option<Arc<str>>,
    /// Name of the first owner. `None` if there is none.
    pub owner_name: Option<Arc<str>>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// Status as last seen, overlaid with our last write until the watch shows it (core.md 11 (c)).
    pub status: PodGroupStatus,
    /// `status` as last seen in the API.
    pub observed_status: PodGroupStatus,
    /// True while a status write of ours is in flight.
    pub status_in_flight: bool,
    /// Our last status write that was stored; watch events with a lower version are outdated.
    /// `None` if the watch has shown that version, or if the version is not a number.
    pub written: Option<Box<WrittenStatus>>,
    /// `metadata.resourceVersion` as last seen.
    pub resource_version: Arc<str>,
    /// `spec.priorityClassName`; empty if none.
    pub priority_class_name: Arc<str>,
    /// `spec.minResources`. `None` if absent: the job is then admitted without a resource check.
    pub min_resources: Option<Arc<MinResources>>,
    /// `spec.networkTopology`. `None` if absent.
    pub network_topology: Option<Box<NetworkTopology>>,
    /// `spec.subGroupPolicy`.
    pub policies: Arc<[SubGroupPolicy]>,
    /// Waiting time of the job's own annotations, above 0. `None` if no annotation is valid.
    pub sla_waiting_micros: Option<i64>,
    /// Annotation, else label `volcano.sh/preemptable`; absent: false.
    pub preemptable: bool,
    /// True if annotation or label `volcano.sh/preemptable` is present and not true. The gang
    /// actions do not evict such a job (actions.md 9.1).
    pub not_preemptable: bool,
    /// Annotations `volcano.sh/jdb-*`. `None` if there is none.
    pub budget: Option<Box<JobBudget>>,
    /// Annotations `volcano.sh/task-topology-*`. `None` if there is none.
    pub task_topology: Option<Box<TaskTopology>>,
    /// `metadata.labels`. PodGroups that come one after the other with equal labels share them.
    pub labels: Arc<Labels>,
    /// `metadata.annotations`, as far as they are kept, shared likewise. Empty for a bare pod.
    pub annotations: Arc<Labels>,
}

/// The annotations about which roles of a job belong together, as written (plugins-nodes.md 13.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTopology {
    /// `volcano.sh/task-topology-affinity`: groups of roles that like to share a node. Empty if
    /// absent.
    pub affinity: Arc<str>,
    /// `volcano.sh/task-topology-anti-affinity`: groups of roles that avoid each other. Empty if
    /// absent.
    pub anti_affinity: Arc<str>,
    /// `volcano.sh/task-topology-task-order`: roles, the most important first. Empty if absent.
    pub order: Arc<str>,
}

/// `spec.minResources`. PodGroups with equal content share one value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MinResources {
    /// The amounts of the names that are dimensions.
    pub amounts: Resource,
    /// The list as written, including names that are no dimension. Quotas count these.
    pub list: ResourceList,
}

/// Number of tasks of a job that must run, or that may be missing (plugins-jobs-queues.md 13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobBudget {
    /// `volcano.sh/jdb-min-available`.
    MinAvailable(Portion),
    /// `volcano.sh/jdb-max-unavailable`.
    MaxUnavailable(Portion),
    /// The text is neither a number nor a percentage.
    Unreadable(Arc<str>),
}

/// A number of tasks, absolute or in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Portion {
    /// A number of tasks.
    Number(i32),
    /// A percentage of the tasks, rounded up.
    Percent(i32),
}

impl Portion {
    /// Returns the number of tasks that the portion means for a job of `n_tasks` tasks.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubJob {
    /// `<job>/<policy>-<values>`, or the job id for the default sub-job.
    pub id: Arc<str>,
    /// Index into the policies of the PodGroup. `None` for the default sub-job.
    pub policy: Option<usize>,
    /// `subGroupSize`. The default sub-job has the minimum of the job, or 1 if the job has
    /// policies.
    pub min_available: i32,
    /// First match value as a number, else 0.
    pub match_index: i64,
    /// Task counts of the sub-job.
    pub counts: Counts,
    /// Tasks ordered by (namespace, name, uid).
    pub tasks: Vec<TaskId>,
}

impl PodGroup {
    /// Returns the controlling owner of this PodGroup, which has the key. Returns `None` if it has
    /// none.
    pub fn controller<'a>(&'a self, key: &'a ObjectKey) -> Option<GroupController<'a>> {
        let uid = self.controller_uid.as_deref()?;
        let stated = (self.controller_kind.as_deref(), self.owner_name.as_deref());
        Some(GroupController::new(key, uid, stated))
    }

    /// Returns under which name run times of its pods are learned: the annotation, or the controlling
    /// owner. Returns `None` if it has neither.
    pub fn run_template(&self) -> Option<RunTemplate> {
        let controller = self.owner_name.as_ref().filter(|_| self.controller_uid.is_some());
        RunTemplate::of(&self.annotations, controller)
    }
}

impl Job {
    /// Returns the phase of the PodGroup, or Pending without a PodGroup.
    pub fn phase(&self) -> PodGroupPhase {
        self.pod_group.as_ref().map_or(PodGroupPhase::Pending, |group| group.status.phase)
    }

    /// True if there is no PodGroup, or if its phase is Pending or empty.
    pub fn is_pending(&self) -> bool {
        self.phase() == PodGroupPhase::Pending
    }

    /// True if ready + pending best-effort tasks ≥ minAvailable.
    pub fn is_ready(&self) -> bool {
        self.counts.is_ready(self.min_available)
    }

    /// True if waiting + ready + pending best-effort tasks ≥ minAvailable.
    pub fn is_pipelined(&self) -> bool {
        self.counts.is_pipelined(self.min_available)
    }

    /// True if waiting + ready tasks < minAvailable.
    pub fn is_starving(&self) -> bool {
        self.counts.is_starving(self.min_available)
    }

    /// Returns the policies of `spec.subGroupPolicy`.
    pub fn policies(&self) -> &[SubGroupPolicy] {
        self.pod_group.as_ref().map_or(&[], |group| &group.policies)
    }

    /// True if role minimums count: minAvailable is at least their sum (core.md 3.7).
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

    /// True if each role has its minimum of valid tasks (Volcano: CheckTaskValid).
    pub fn roles_valid(&self) -> bool {
        self.every_role(Counts::valid)
    }

    /// True if each role has its minimum of ready tasks (Volcano: CheckTaskReady).
    pub fn roles_ready(&self) -> bool {
        self.every_role(|counts| counts.ready() + counts.pending_best_effort)
    }

    /// True if each role has its minimum, with Pipelined tasks (Volcano: CheckTaskPipelined).
    pub fn roles_pipelined(&self) -> bool {
        self.every_role(|counts| counts.ready() + counts.waiting() + counts.pending_best_effort)
    }

    /// True if each policy has its minimum of sub-groups. Counters are kept per policy, because
    /// jobs can have many sub-groups (actions.md 12.2 S10: sub-group counters).
    fn every_policy(&self, number: impl Fn(SubJobTally) -> u32) -> bool {
        self.policies().iter().enumerate().all(|(index, policy)| {
            i64::from(policy.min_sub_groups) <= i64::from(number(self.tally(index)))
        })
    }

    /// Returns the sub-jobs that have tasks.
    pub fn existing_sub_jobs(&self) -> impl Iterator<Item = &SubJob> {
        self.sub_jobs.iter().filter(|sub| !sub.tasks.is_empty())
    }

    /// Returns the number of sub-jobs of a policy that have tasks.
    pub fn n_existing_sub_jobs(&self, policy: usize) -> u32 {
        self.tally(policy).n_existing
    }

    /// True if each policy has enough sub-jobs with tasks (Volcano: CheckSubJobValid).
    pub fn sub_jobs_valid(&self) -> bool {
        self.every_policy(|tally| tally.n_existing)
    }

    /// True if each policy has enough ready sub-jobs (Volcano: CheckSubJobReady).
    pub fn sub_jobs_ready(&self) -> bool {
        self.every_policy(|tally| tally.n_ready)
    }

    /// Returns the number of sub-jobs of a policy that have their minimum. Pipelined tasks count.
    pub fn n_pipelined_sub_jobs(&self, policy: usize) -> u32 {
        self.tally(policy).n_pipelined
    }

    /// True if each policy has enough pipelined sub-jobs (Volcano: CheckSubJobPipelined).
    pub fn sub_jobs_pipelined(&self) -> bool {
        self.every_policy(|tally| tally.n_pipelined)
    }

    /// Returns `spec.minResources`, or an empty vector if it is absent.
    pub fn min_resources(&self) -> Resource {
        let group = self.pod_group.as_ref();
        let min_resources = group.and_then(|group| group.min_resources.as_ref());
        min_resources.map(|asked| asked.amounts.clone()).unwrap_or_default()
    }

    /// Returns Σ requests over all tasks.
    pub fn total_request(&self) -> Resource {
        let mut total = self.allocated.clone();
        for part in [&self.pending_request, &self.other_request] {
            sums::enter(&mut total, part);
        }
        total
    }

    /// Returns the allocated amounts beyond `minResources`.
    pub fn elastic(&self) -> Resource {
        self.allocated.excess(&self.min_resources())
    }

    /// Returns the part of `minResources` that an admitted job does not use yet, without gated
    /// tasks. Returns `None` if the job is not admitted or has no `minResources`. Specification:
    /// plugins-jobs-queues.md 5.1, 16.1, D20.
    pub fn reserved(&self) -> Option<Resource> {
        let min_resources = self.pod_group.as_ref()?.min_resources.as_ref()?;
        let admitted = match self.phase() {
            PodGroupPhase::Inqueue => true,
            // A group may stay Running after its driver has finished. The driver's resources must
            // not be reserved again.
            PodGroupPhase::Running => {
                i64::from(self.min_available) <= self.counts.allocated().into()
            }
            PodGroupPhase::Pending | PodGroupPhase::Unknown | PodGroupPhase::Completed => false,
        };
        admitted.then(|| self.minus_gated(&min_resources.amounts.excess(&self.allocated)))
    }

    /// Returns an amount less the requests of gated tasks, at least 0 (plugins-jobs-queues.md
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

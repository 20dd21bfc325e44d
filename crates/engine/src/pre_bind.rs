//! Binds that wait for volumes. They are sent when the gang has all of its volumes. They are
//! withdrawn as a whole when one volume fails or takes too long. Specification: plugins-nodes.md
//! 2.8, 5.7, 5.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_filters::volume_binding::{Progress, progress};
use vc_framework::{Effect, Nomination};
use vc_model::{
    BindingStage, ClaimSource, Cluster, JobId, ObjectKey, Pause, PodCondition, PodResourceClaim,
    Reservation, TaskId, TaskStatus,
};

const TOO_LATE: &str = "context deadline exceeded";
const VOLUMES: &str = "binding volumes";
const REASON: &str = "SchedulerError";

/// Pods whose volumes were not written, by uid.
pub(crate) struct LostVolumes<'a> {
    /// Errors by uid.
    pub(crate) errors: &'a BTreeMap<Arc<str>, String>,
    /// Sentences that say when the write is repeated, by uid. A pod that does not pause has none.
    pub(crate) repeats: &'a BTreeMap<Arc<str>, String>,
}

/// Sends or withdraws the binds that wait.
pub(crate) fn advance(
    cluster: &mut Cluster,
    failed: &LostVolumes<'_>,
    now_micros: i64,
    effects: &mut Vec<Effect>,
) {
    let mut gangs: BTreeMap<JobId, Vec<TaskId>> = BTreeMap::new();
    for task in cluster.volumes.held().collect::<Vec<_>>() {
        let row = &cluster.tasks[task];
        match row.job.filter(|_| row.status == TaskStatus::Binding) {
            Some(job) => gangs.entry(job).or_default().push(task),
            // The task was evicted meanwhile.
            None => cluster.release(task),
        }
    }
    for (job, tasks) in gangs {
        BindingGang { cluster, effects }.advance(job, &tasks, failed, now_micros);
    }
}

/// The tasks of a gang by the state of their volumes, each list in task order.
#[derive(Default)]
struct GangVolumes {
    ready: Vec<TaskId>,
    waiting: Vec<TaskId>,
    lost: Vec<(TaskId, String)>,
}

struct BindingGang<'a> {
    cluster: &'a mut Cluster,
    effects: &'a mut Vec<Effect>,
}

impl BindingGang<'_> {
    fn advance(mut self, job: JobId, tasks: &[TaskId], failed: &LostVolumes<'_>, now_micros: i64) {
        let mut gang = GangVolumes::default();
        for &task in tasks {
            let state = match failed.errors.get(&self.cluster.tasks[task].uid) {
                Some(error) => {
                    gang.lost.push((task, error.clone()));
                    continue;
                }
                None => progress(self.cluster, task),
            };
            match state {
                Progress::Ready => gang.ready.push(task),
                Progress::Waiting if self.is_late(task, now_micros) => {
                    gang.lost.push((task, format!("{VOLUMES}: {TOO_LATE}")));
                }
                Progress::Waiting => gang.waiting.push(task),
                Progress::Failed(error) => gang.lost.push((task, format!("{VOLUMES}: {error}"))),
            }
        }
        let lost: Vec<TaskId> = gang.lost.iter().map(|&(task, _)| task).collect();
        let missing = [&lost[..], &gang.waiting[..]].concat();
        match lost.first() {
            Some(&culprit) if !self.stands_without(job, &lost) => {
                self.withdraw_with(culprit, &[&gang.ready[..], &gang.waiting[..]].concat());
            }
            _ if self.stands_without(job, &missing) => {
                gang.ready.into_iter().for_each(|task| self.bind(task, now_micros));
            }
            _ => {}
        }
        for (task, error) in gang.lost {
            let pod = &self.cluster.tasks[task].key;
            let text = format!("execute preBind for pod {pod} failed: {error}, resync the task");
            let repeats = failed.repeats.get(&self.cluster.tasks[task].uid);
            let text = format!("{text}{}", repeats.map_or("", String::as_str));
            if repeats.is_some() {
                self.cluster.set_pause(task, Some(Pause::Bind(text.as_str().into())));
            }
            self.withdraw(task, text);
        }
    }

    /// True if the job is ready without these tasks, or if there are none.
    fn stands_without(&self, job: JobId, tasks: &[TaskId]) -> bool {
        tasks.is_empty() || self.cluster.ready_without(job, tasks)
    }

    fn withdraw_with(&mut self, culprit: TaskId, others: &[TaskId]) {
        let culprit = self.cluster.tasks[culprit].key.clone();
        for &task in others {
            let text = format!("bind withdrawn with its gang: preBind of pod {culprit} failed");
            self.withdraw(task, text);
        }
    }

    /// True if the volumes of the task have taken too long. Tasks that only wait for devices have
    /// no limit, because those writes are answered soon.
    fn is_late(&self, task: TaskId, now_micros: i64) -> bool {
        let reservation = self.cluster.volumes.reservation(task);
        let with_volumes = |promised: &&Reservation| promised.claims().next().is_some();
        let Some(reservation) = reservation.filter(with_volumes) else { return false };
        match &reservation.stage {
            BindingStage::Tentative => false,
            BindingStage::Sent { since_micros } | BindingStage::Written { since_micros, .. } => {
                since_micros.saturating_add(reservation.timeout_micros) <= now_micros
            }
        }
    }

    fn bind(&mut self, task: TaskId, now_micros: i64) {
        self.cluster.release(task);
        self.effects.extend(Effect::bind(self.cluster, task, now_micros));
    }

    /// Withdraws a bind. The volumes are free for others at once. The pod is free once it was read
    /// again.
    fn withdraw(&mut self, task: TaskId, message: String) {
        self.cluster.release(task);
        let (pod, uid) = {
            let row = &self.cluster.tasks[task];
            (row.key.clone(), row.uid.clone())
        };
        let condition = scheduler_error(self.cluster, task, message.into());
        self.effects.push(condition);
        self.effects.extend(unreserve(self.cluster, task));
        self.effects.push(Effect::Resync { pod, uid });
    }
}

/// Returns the effect that removes the pod from the claims reserved for it (plugins-nodes.md 6.7).
/// Returns `None` if no claim is reserved.
pub(crate) fn unreserve(cluster: &Cluster, task: TaskId) -> Option<Effect> {
    let row = &cluster.tasks[task];
    let name = |entry: &PodResourceClaim| match &entry.source {
        ClaimSource::Named(name) | ClaimSource::Made(name) => Some(name.clone()),
        ClaimSource::NotNeeded | ClaimSource::NotMade | ClaimSource::Unset => None,
    };
    let reserved = |name: &Arc<str>| {
        let key = ObjectKey { namespace: row.key.namespace.clone(), name: name.clone() };
        let claim = cluster.devices.claim(&key);
        claim.is_some_and(|claim| {
            let mut consumers = claim.reserved_for.iter();
            claim.allocation.is_some() && consumers.any(|consumer| consumer.uid == row.uid)
        })
    };
    let names = cluster.class(task).resource_claims.iter().filter_map(name);
    let claims: Vec<Arc<str>> = names.filter(reserved).collect();
    let (pod, uid) = (row.key.clone(), row.uid.clone());
    (!claims.is_empty()).then_some(Effect::UnreserveClaims { pod, uid, claims })
}

/// Returns the condition of a pod whose bind failed (core.md 7.3).
pub(crate) fn scheduler_error(cluster: &mut Cluster, task: TaskId, message: Arc<str>) -> Effect {
    let row = &mut cluster.tasks[task];
    let (status, reason): (Arc<str>, Arc<str>) = ("False".into(), REASON.into());
    let condition = Arc::new(PodCondition { status, reason, message });
    row.condition = Some(condition.clone());
    let (pod, uid) = (row.key.clone(), row.uid.clone());
    Effect::PodCondition { pod, uid, condition, nomination: Nomination::Keep }
}

//! The jobs and pods of controllers, found by the names of these. Specification: answers.md 2
//! (ANS-5), 9 (ANS-52).

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use vc_model::{
    Cluster, ClusterEvent, Controller, ControllerName, GroupController, Job, JobId, ObjectKey,
    SelectorKind, TaskId,
};

use crate::subject::{NameFit, SubjectQuery};

/// PodGroups or pods by namespace and name of their controllers. Those of a ReplicaSet stand below
/// the name of its Deployment, too.
type OwnedObjects = BTreeMap<ObjectKey, BTreeSet<ObjectKey>>;

/// Index of the PodGroups and pods that have controllers, by the names of these.
///
/// It tells where to look, and the rows tell what holds: entries of deleted objects may stay, and
/// what is applied has to be added. Each half is made when it is first needed.
#[derive(Default)]
pub(crate) struct ControllerIndex {
    groups: OnceCell<OwnedObjects>,
    pods: OnceCell<OwnedObjects>,
}

impl ControllerIndex {
    /// Adds the PodGroups and pods that these events apply.
    pub(crate) fn add(&mut self, events: &[ClusterEvent]) {
        for event in events {
            match event {
                ClusterEvent::PodGroupApplied(group) => {
                    let controller = group.controller().and_then(|it| it.name);
                    if let Some(groups) = self.groups.get_mut() {
                        insert(groups, &group.key, controller);
                    }
                }
                ClusterEvent::PodApplied(pod) => {
                    let controller = pod.controller.as_ref().and_then(pod_controller);
                    if let Some(pods) = self.pods.get_mut() {
                        insert(pods, &pod.key, controller);
                    }
                }
                _ => {}
            }
        }
    }

    fn groups_of(&self, cluster: &Cluster, controller: &ObjectKey) -> Option<&BTreeSet<ObjectKey>> {
        let made = || {
            let mut owned = OwnedObjects::new();
            for row in cluster.jobs_by_key().map(|job| &cluster.jobs[job]) {
                insert(&mut owned, &row.key, controller_of(row).and_then(|it| it.name));
            }
            owned
        };
        self.groups.get_or_init(made).get(controller)
    }

    fn pods_of(&self, cluster: &Cluster, controller: &ObjectKey) -> Option<&BTreeSet<ObjectKey>> {
        let made = || {
            let mut owned = OwnedObjects::new();
            for (_, task) in cluster.tasks.iter() {
                let controller = cluster.classes[task.class].controller.as_ref();
                insert(&mut owned, &task.key, controller.and_then(pod_controller));
            }
            owned
        };
        self.pods.get_or_init(made).get(controller)
    }
}

fn insert(owned: &mut OwnedObjects, key: &ObjectKey, controller: Option<ControllerName<'_>>) {
    let names = controller.map(|it| [Some(it.name), it.deployment()]);
    for name in names.into_iter().flatten().flatten() {
        let controller = ObjectKey { namespace: key.namespace.clone(), name: name.into() };
        owned.entry(controller).or_default().insert(key.clone());
    }
}

/// Returns the controller of the PodGroup of a job. Returns `None` if it has none, or there is no
/// PodGroup.
pub(crate) fn controller_of(job: &Job) -> Option<GroupController<'_>> {
    job.pod_group.as_ref()?.controller(&job.key)
}

/// Returns the controller of a pod. Of pods only ReplicaSets, StatefulSets and
/// ReplicationControllers are known.
fn pod_controller((kind, name): &Controller) -> Option<ControllerName<'_>> {
    let kind = match kind {
        SelectorKind::ReplicationController => "ReplicationController",
        SelectorKind::ReplicaSet => "ReplicaSet",
        SelectorKind::StatefulSet => "StatefulSet",
        SelectorKind::Service => return None,
    };
    Some(ControllerName { kind, name })
}

/// True if the job has a PodGroup or pods: others are rows without an object.
pub(crate) fn is_known(cluster: &Cluster, job: JobId) -> bool {
    let row = &cluster.jobs[job];
    !row.bare && (row.pod_group.is_some() || !row.tasks.is_empty())
}

/// Returns the jobs of the namespace whose PodGroups are owned by the controller with the uid that is
/// asked for, else by controllers of the name, by key.
///
/// With an index, which must be one of this cluster, not all rows are read. It does not know uids.
pub(crate) fn jobs_of_controller(
    cluster: &Cluster,
    index: Option<&ControllerIndex>,
    query: SubjectQuery<'_>,
    fit: NameFit,
) -> Vec<JobId> {
    let key = query.key();
    let owned = |job: JobId| {
        let controller = controller_of(&cluster.jobs[job]).filter(|_| is_known(cluster, job));
        controller.map(|controller| (job, controller))
    };
    let owned: Vec<(JobId, GroupController<'_>)> = match index {
        None => {
            let is_here = |job: &JobId| cluster.jobs[*job].key.namespace == key.namespace;
            cluster.jobs_by_key().filter(is_here).filter_map(owned).collect()
        }
        Some(index) => {
            let groups = index.groups_of(cluster, &key).into_iter().flatten();
            groups.filter_map(|group| cluster.job(group)).filter_map(owned).collect()
        }
    };
    query.choose_owned(&owned, fit)
}

/// Returns the pods of the namespace that belong to controllers of the name. With an index, which
/// must be one of this cluster, not all rows are read.
pub(crate) fn pods_of_controller(
    cluster: &Cluster,
    index: Option<&ControllerIndex>,
    query: SubjectQuery<'_>,
    fit: NameFit,
) -> Vec<TaskId> {
    let key = query.key();
    let is_owned = |task: &TaskId| {
        let row = &cluster.tasks[*task];
        let controller = cluster.classes[row.class].controller.as_ref();
        row.key.namespace == key.namespace
            && controller.and_then(pod_controller).is_some_and(|it| query.fits(it, fit))
    };
    match index {
        None => cluster.tasks.iter().map(|(task, _)| task).filter(is_owned).collect(),
        Some(index) => {
            let pods = index.pods_of(cluster, &key).into_iter().flatten();
            pods.filter_map(|pod| cluster.task_named(pod)).filter(is_owned).collect()
        }
    }
}

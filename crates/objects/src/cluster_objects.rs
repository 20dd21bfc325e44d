//! The rows of a cluster as objects that exist: what a scheduler knows of them.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use vc_model::{
    Cluster, ControllerName, GroupController, JobId, ObjectKey, PriorityClassRecord, QueueState,
    TaskId, TaskStatus,
};
use vc_resource::Resource;
use vc_wire::Kind;

use crate::live::{LiveIdentity, LiveObjects};
use crate::workload::WorkloadContext;

/// Uids of controllers by namespace, kind and name.
type ControllerUids<'a> = BTreeMap<(&'a str, &'a str, &'a str), &'a str>;

/// The objects of a cluster. A scheduler does not see controllers; they are known by their PodGroups.
pub struct ClusterObjects<'a> {
    cluster: &'a Cluster,
    now_micros: i64,
    pods: BTreeMap<&'a ObjectKey, TaskId>,
    /// Made when it is first needed.
    controllers: OnceCell<ControllerUids<'a>>,
}

impl<'a> ClusterObjects<'a> {
    /// Reads the rows. The time is in microseconds since 1970.
    pub fn new(cluster: &'a Cluster, now_micros: i64) -> Self {
        let pods = cluster.tasks.iter().map(|(id, task)| (&task.key, id)).collect();
        Self { cluster, now_micros, pods, controllers: OnceCell::new() }
    }

    /// Reads the controllers of all PodGroups. Of several with one name the first one counts.
    fn read_controllers(&self) -> ControllerUids<'a> {
        let cluster = self.cluster;
        let mut uids = ControllerUids::new();
        for row in self.jobs().map(|job| &cluster.jobs[job]) {
            let controller = row.pod_group.as_ref().and_then(|group| group.controller(&row.key));
            let Some(GroupController { uid, name }) = controller else { continue };
            if let Some(ControllerName { kind, name }) = name {
                uids.entry((&*row.key.namespace, kind, name)).or_insert(uid);
            }
        }
        uids
    }

    fn jobs(&self) -> impl Iterator<Item = JobId> + '_ {
        self.cluster.jobs_by_key().filter(|&job| self.cluster.jobs[job].pod_group.is_some())
    }

    fn pod_group(&self, key: &ObjectKey) -> Option<LiveIdentity> {
        let group = self.cluster.jobs[self.cluster.job(key)?].pod_group.as_ref()?;
        let status = json!({ "phase": group.status.phase.as_str() });
        Some(LiveIdentity { uid: group.uid.to_string(), status: Some(status) })
    }

    fn queue(&self, name: &str) -> Option<LiveIdentity> {
        let queue = self.cluster.queue(name).map(|id| &self.cluster.queues[id])?;
        let state = match queue.state {
            QueueState::Open => "Open",
            QueueState::Closed => "Closed",
            QueueState::Closing => "Closing",
            QueueState::Unknown => "Unknown",
        };
        let uid = queue.uid.to_string();
        queue.present.then(|| LiveIdentity { uid, status: Some(json!({ "state": state })) })
    }

    fn node(&self, name: &str) -> Option<LiveIdentity> {
        let node = self.cluster.node(name).filter(|&id| self.cluster.nodes[id].present)?;
        let row = &self.cluster.nodes[node];
        let amounts = |amounts: &Resource| -> Value {
            let texts = amounts.to_quantities(&self.cluster.dims).into_iter();
            texts.map(|(name, text)| (name, Value::from(text))).collect()
        };
        let status = json!({
            "allocatable": amounts(&row.allocatable), "capacity": amounts(&row.capacity),
        });
        Some(LiveIdentity { uid: String::new(), status: Some(status) })
    }
}

impl LiveObjects for ClusterObjects<'_> {
    fn now_micros(&self) -> i64 {
        self.now_micros
    }

    fn context(&self) -> WorkloadContext {
        let mut context = WorkloadContext::default();
        for (_, task) in self.cluster.tasks.iter() {
            let group = task.job.and_then(|job| self.cluster.jobs[job].pod_group.as_ref());
            let is_active = !matches!(
                task.status,
                TaskStatus::Succeeded | TaskStatus::Failed | TaskStatus::Releasing
            );
            let owner = group.and_then(|group| group.controller_uid.as_deref());
            let ObjectKey { namespace, name } = &task.key;
            context.add_pod(namespace, name, owner.filter(|_| is_active));
        }
        for job in self.jobs() {
            let row = &self.cluster.jobs[job];
            let owner = row.pod_group.as_ref().and_then(|group| group.controller_uid.as_deref());
            context.add_pod_group(&row.key.namespace, &row.key.name, owner);
        }
        for class in self.cluster.priority_classes() {
            context.add_priority_class(&class.name, i64::from(class.value));
        }
        context
    }

    fn priority_classes(&self) -> Vec<PriorityClassRecord> {
        self.cluster.priority_classes().cloned().collect()
    }

    fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<LiveIdentity> {
        let key = ObjectKey::new(namespace, name);
        match kind {
            Kind::Pod => {
                let uid = self.cluster.tasks[*self.pods.get(&key)?].uid.to_string();
                Some(LiveIdentity { uid, status: None })
            }
            Kind::PodGroup => self.pod_group(&key),
            Kind::Queue => self.queue(name),
            Kind::Node => self.node(name),
            _ => None,
        }
    }

    /// Only controllers that own PodGroups are known.
    fn controller_uid(&self, namespace: &str, kind: &str, name: &str) -> Option<String> {
        let controllers = self.controllers.get_or_init(|| self.read_controllers());
        controllers.get(&(namespace, kind, name)).map(|&uid| uid.to_owned())
    }
}

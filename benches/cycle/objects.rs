//! Nodes, pods and PodGroups of the shapes that all measurements share, as records.

use std::sync::Arc;

use vc_model::{
    ContainerRecord, Labels, NodeRecord, ObjectKey, PodCondition, PodGroupPhase, PodGroupRecord,
    PodGroupStatus, PodPhase, PodRecord, PriorityClassRecord, QueueRecord, ResourceList,
    TaintEffect, Toleration, TolerationOperator,
};
use vc_resource::Quantity;

const GI: i64 = 1 << 30;
const NAMESPACE: &str = "bench";
pub(crate) const QUEUE: &str = "default";

/// Millicores and GiB of a pod.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) cpu_milli: i64,
    pub(crate) memory_gi: i64,
}

/// A Job with equal pods.
pub(crate) struct Gang {
    pub(crate) number: u64,
    pub(crate) n_pods: u64,
    pub(crate) shape: Shape,
    pub(crate) phase: PodGroupPhase,
    pub(crate) created_micros: i64,
    /// Members without which the others are not started.
    pub(crate) min_member: u64,
    pub(crate) queue: &'static str,
    /// Of [`URGENT`].
    pub(crate) is_urgent: bool,
}

/// The priority class of gangs for which others go.
pub(crate) const URGENT: &str = "urgent";
const URGENT_PRIORITY: i32 = 1000;

fn milli(amount: i64) -> Quantity {
    format!("{amount}m").parse().expect("a number and a suffix make a quantity")
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect()
}

fn uid(kind: u64, number: u64) -> Arc<str> {
    format!("{kind:08x}-0000-4000-8000-{number:012x}").into()
}

/// 64 cpus, 256 GiB, 110 pods, 500 GiB of storage; ten zones, ten pools.
pub(crate) fn node(number: u64) -> NodeRecord {
    let name = format!("node-{number:05}");
    let (zone, pool) = (number % 10, number / 10 % 10);
    let amounts: ResourceList = vec![
        ("cpu".into(), Quantity::from_value(64)),
        ("memory".into(), Quantity::from_value(256 * GI)),
        ("pods".into(), Quantity::from_value(110)),
        ("ephemeral-storage".into(), Quantity::from_value(500 * GI)),
    ];
    NodeRecord {
        labels: labels(&[
            ("kubernetes.io/hostname", &name),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            ("topology.kubernetes.io/region", "region-1"),
            ("topology.kubernetes.io/zone", &format!("zone-{zone}")),
            ("node.kubernetes.io/instance-type", "type-64"),
            ("pool", &format!("pool-{pool}")),
        ]),
        name: name.into(),
        annotations: Labels::new(),
        allocatable: amounts.clone(),
        capacity: amounts,
        ..NodeRecord::default()
    }
}

/// A queue of weight 1.
pub(crate) fn queue(name: &str) -> QueueRecord {
    QueueRecord { name: name.into(), weight: 1, reclaimable: true, ..QueueRecord::default() }
}

/// The class [`URGENT`].
pub(crate) fn urgent() -> PriorityClassRecord {
    PriorityClassRecord { name: URGENT.into(), value: URGENT_PRIORITY, global_default: false }
}

impl Shape {
    pub(crate) fn requests(self, n_pods: i64) -> ResourceList {
        vec![
            ("cpu".into(), milli(self.cpu_milli * n_pods)),
            ("memory".into(), Quantity::from_value(self.memory_gi * GI * n_pods)),
        ]
    }
}

impl Gang {
    fn name(&self) -> String {
        format!("job-{:06}", self.number)
    }

    /// The PodGroup that Volcano's controller makes for the Job.
    pub(crate) fn pod_group(&self) -> PodGroupRecord {
        let n_pods = i32::try_from(self.n_pods).expect("a gang is small");
        let min_member = i32::try_from(self.min_member).expect("a gang is small");
        let n_running = if self.phase == PodGroupPhase::Running { n_pods } else { 0 };
        PodGroupRecord {
            owner_name: None,
            controller_uid: None,
            controller_kind: None,
            key: ObjectKey::new(NAMESPACE, &self.name()),
            uid: uid(1, self.number),
            resource_version: "1".into(),
            created_micros: self.created_micros,
            labels: Labels::new(),
            annotations: Labels::new(),
            min_member,
            min_task_member: [("worker".into(), min_member)].into(),
            queue: self.queue.into(),
            priority_class_name: if self.is_urgent { URGENT.into() } else { "".into() },
            min_resources: Some(self.shape.requests(n_pods.into())),
            network_topology: None,
            sub_group_policies: Vec::new(),
            status: PodGroupStatus {
                phase: self.phase,
                running: n_running,
                ..PodGroupStatus::default()
            },
        }
    }

    /// A pod of the Job, running if it has a node.
    pub(crate) fn pod(&self, index: u64, node: Option<u64>) -> PodRecord {
        let job = self.name();
        let container = ContainerRecord {
            name: "main".into(),
            requests: self.shape.requests(1),
            ..ContainerRecord::default()
        };
        PodRecord {
            key: ObjectKey::new(NAMESPACE, &format!("{job}-worker-{index}")),
            uid: uid(2, self.number << 20 | index),
            created_micros: self.created_micros,
            labels: labels(&[
                ("volcano.sh/job-name", &job),
                ("volcano.sh/job-namespace", NAMESPACE),
                ("volcano.sh/queue-name", self.queue),
                ("volcano.sh/task-spec", "worker"),
            ]),
            annotations: labels(&[
                ("scheduling.k8s.io/group-name", &job),
                ("volcano.sh/job-name", &job),
                ("volcano.sh/job-version", "0"),
                ("volcano.sh/queue-name", self.queue),
                ("volcano.sh/task-spec", "worker"),
                ("volcano.sh/template-uid", &format!("{job}-worker")),
            ]),
            scheduler_name: "volcano".into(),
            node_name: node.map(|number| format!("node-{number:05}").into()),
            phase: if node.is_some() { PodPhase::Running } else { PodPhase::Pending },
            priority: Some(if self.is_urgent { URGENT_PRIORITY } else { 0 }),
            containers: vec![container],
            tolerations: default_tolerations(),
            scheduled_condition: node.map(|_| scheduled()),
            ..PodRecord::default()
        }
    }
}

/// Those that the API server adds to every pod.
fn default_tolerations() -> Vec<Toleration> {
    let toleration = |key: &str| Toleration {
        key: key.into(),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect: Some(TaintEffect::NoExecute),
    };
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map(toleration).to_vec()
}

fn scheduled() -> PodCondition {
    PodCondition { status: "True".into(), reason: "".into(), message: "".into() }
}

//! Records with everything absent, and short ways to apply them.

use vc_model::{
    Cluster, ClusterEvent, ContainerRecord, Labels, NodeRecord, ObjectKey, PodGroupRecord,
    PodGroupStatus, PodPhase, PodRecord, ResourceList, Task, TaskId,
};

/// `cpu=1 memory=1G` as a resource list.
pub(crate) fn list(text: &str) -> ResourceList {
    let entry = |word: &str| {
        let (name, value) = word.split_once('=').expect("name=value");
        (name.into(), value.parse().expect("a quantity"))
    };
    text.split_whitespace().map(entry).collect()
}

pub(crate) fn labels(text: &str) -> Labels {
    let entry = |word: &str| {
        let (name, value) = word.split_once('=').expect("name=value");
        (name.into(), value.into())
    };
    text.split_whitespace().map(entry).collect()
}

pub(crate) fn container(requests: &str) -> ContainerRecord {
    ContainerRecord { requests: list(requests), ..ContainerRecord::default() }
}

/// A waiting pod of ours in the namespace `ns`; its uid is its name.
pub(crate) fn pod(name: &str) -> PodRecord {
    PodRecord {
        key: ObjectKey::new("ns", name),
        uid: name.into(),
        scheduler_name: "volcano".into(),
        phase: PodPhase::Pending,
        ..PodRecord::default()
    }
}

/// The same in the job `ns/<job>`.
pub(crate) fn member(name: &str, job: &str) -> PodRecord {
    let annotations = labels(&format!("scheduling.k8s.io/group-name={job}"));
    PodRecord { annotations, ..pod(name) }
}

/// The same, running on a node.
pub(crate) fn running(record: PodRecord, node: &str) -> PodRecord {
    PodRecord { phase: PodPhase::Running, node_name: Some(node.into()), ..record }
}

pub(crate) fn requesting(record: PodRecord, requests: &str) -> PodRecord {
    PodRecord { containers: vec![container(requests)], ..record }
}

pub(crate) fn node(name: &str, allocatable: &str) -> NodeRecord {
    NodeRecord {
        name: name.into(),
        allocatable: list(allocatable),
        capacity: list(allocatable),
        ..NodeRecord::default()
    }
}

/// The PodGroup `ns/<name>` of version 1.
pub(crate) fn group(name: &str, min_member: i32) -> PodGroupRecord {
    PodGroupRecord {
        key: ObjectKey::new("ns", name),
        uid: name.into(),
        resource_version: "1".into(),
        created_micros: 0,
        labels: Labels::default(),
        annotations: Labels::default(),
        owner_name: None,
        controller_uid: None,
        controller_kind: None,
        min_member,
        min_task_member: Default::default(),
        queue: "".into(),
        priority_class_name: "".into(),
        min_resources: None,
        network_topology: None,
        sub_group_policies: Vec::new(),
        status: PodGroupStatus::default(),
    }
}

pub(crate) fn apply_pod(cluster: &mut Cluster, pod: PodRecord) {
    apply(cluster, ClusterEvent::PodApplied(Box::new(pod)));
}

pub(crate) fn apply_node(cluster: &mut Cluster, node: NodeRecord) {
    apply(cluster, ClusterEvent::NodeApplied(Box::new(node)));
}

pub(crate) fn apply_group(cluster: &mut Cluster, group: PodGroupRecord) {
    apply(cluster, ClusterEvent::PodGroupApplied(Box::new(group)));
}

/// Every event leaves all sums right.
pub(crate) fn apply(cluster: &mut Cluster, event: ClusterEvent) {
    cluster.apply(event);
    assert_eq!(cluster.check(), Ok(()));
}

pub(crate) fn id(cluster: &Cluster, uid: &str) -> TaskId {
    cluster.task(uid).unwrap_or_else(|| panic!("no task: {uid}"))
}

pub(crate) fn row<'c>(cluster: &'c Cluster, uid: &str) -> &'c Task {
    &cluster.tasks[id(cluster, uid)]
}

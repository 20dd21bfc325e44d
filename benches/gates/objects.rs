//! Small clusters for the counts, and a pod as the API server writes it.

use std::sync::Arc;

use vc_conf::parse;
use vc_engine::{Engine, EngineOptions, KNOWN};
use vc_model::{
    ClusterEvent, ContainerRecord, NodeRecord, ObjectKey, PodGroupPhase, PodGroupRecord,
    PodGroupStatus, PodPhase, PodRecord, QueueRecord, ResourceList,
};
use vc_resource::Quantity;

/// 2026-06-01T00:00:00Z.
pub(crate) const START_MICROS: i64 = 1_780_272_000_000_000;
pub(crate) const N_NODES: i64 = 500;

const CONF: &str = include_str!("../../config/volcano-scheduler.conf");

fn milli(amount: i64) -> Quantity {
    format!("{amount}m").parse().expect("a number and a suffix make a quantity")
}

fn cpu(amount: i64) -> ResourceList {
    vec![("cpu".into(), milli(amount))]
}

/// With 64 cpus; ten zones.
fn node(number: i64) -> ClusterEvent {
    let mut allocatable = cpu(64_000);
    allocatable.push(("pods".into(), Quantity::from_value(110)));
    let zone = format!("zone-{}", number % 10);
    ClusterEvent::NodeApplied(Box::new(NodeRecord {
        name: format!("node-{number:05}").into(),
        labels: [("topology.kubernetes.io/zone".into(), zone.as_str().into())].into(),
        capacity: allocatable.clone(),
        allocatable,
        ..NodeRecord::default()
    }))
}

pub(crate) fn empty_nodes() -> impl Iterator<Item = ClusterEvent> {
    (0..N_NODES).map(node)
}

/// Each with a pod that leaves 2 cpus.
pub(crate) fn full_nodes() -> impl Iterator<Item = ClusterEvent> {
    let resident = |number: i64| {
        let mut pod = pod("resident", number, 62_000);
        pod.node_name = Some(format!("node-{number:05}").into());
        pod.phase = PodPhase::Running;
        ClusterEvent::PodApplied(Box::new(pod))
    };
    empty_nodes().chain((0..N_NODES).map(resident))
}

fn pod(job: &str, index: i64, cpu_milli: i64) -> PodRecord {
    let container = ContainerRecord {
        name: "main".into(),
        requests: cpu(cpu_milli),
        ..ContainerRecord::default()
    };
    PodRecord {
        key: ObjectKey::new("bench", &format!("{job}-{index}")),
        uid: format!("uid-{job}-{index}").into(),
        created_micros: START_MICROS,
        scheduler_name: "volcano".into(),
        phase: PodPhase::Pending,
        containers: vec![container],
        ..PodRecord::default()
    }
}

/// The PodGroup, which needs all its pods, and they.
pub(crate) fn gang(number: i64, n_pods: i64, cpu_milli: i64) -> Vec<ClusterEvent> {
    let name: Arc<str> = format!("job-{number}").into();
    let group = PodGroupRecord {
        owner_name: None,
        controller_uid: None,
        controller_kind: None,
        key: ObjectKey::new("bench", &name),
        uid: format!("uid-{name}").into(),
        resource_version: "1".into(),
        created_micros: START_MICROS,
        labels: Default::default(),
        annotations: Default::default(),
        min_member: i32::try_from(n_pods).expect("a gang is small"),
        min_task_member: Default::default(),
        queue: "default".into(),
        priority_class_name: "".into(),
        min_resources: None,
        network_topology: None,
        sub_group_policies: Vec::new(),
        status: PodGroupStatus { phase: PodGroupPhase::Inqueue, ..PodGroupStatus::default() },
    };
    let member = |index| {
        let mut pod = pod(&name, index, cpu_milli);
        pod.annotations.insert("scheduling.k8s.io/group-name".into(), name.clone());
        ClusterEvent::PodApplied(Box::new(pod))
    };
    let group = ClusterEvent::PodGroupApplied(Box::new(group));
    std::iter::once(group).chain((0..n_pods).map(member)).collect()
}

/// With the configuration that ships, a queue and these objects.
pub(crate) fn engine(events: impl Iterator<Item = ClusterEvent>) -> Engine {
    let config = parse("volcano-scheduler.conf", CONF, &KNOWN).expect("what ships is right").config;
    let (mut engine, _) = Engine::new(EngineOptions::default(), &config);
    let queue = QueueRecord {
        name: "default".into(),
        weight: 1,
        reclaimable: true,
        ..QueueRecord::default()
    };
    engine.apply(vec![ClusterEvent::QueueApplied(Box::new(queue))]);
    engine.apply(events.collect());
    engine
}

/// As a kubelet and the controllers leave it.
pub(crate) fn pod_json(number: u32) -> String {
    let labels = r#"{"volcano.sh/job-name":"job","volcano.sh/job-namespace":"bench",
        "volcano.sh/queue-name":"default","volcano.sh/task-spec":"worker"}"#;
    let condition = |name| {
        format!(
            r#"{{"type":"{name}","status":"True","lastProbeTime":null,
                "lastTransitionTime":"2026-05-31T00:00:00Z"}}"#
        )
    };
    let conditions =
        ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition).join(",");
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"job-worker-{number}",
        "namespace":"bench","uid":"00000002-0000-4000-8000-{number:012}","resourceVersion":"{number}",
        "creationTimestamp":"2026-05-31T00:00:00Z","labels":{labels},"annotations":
        {{"scheduling.k8s.io/group-name":"job","volcano.sh/job-name":"job",
        "volcano.sh/task-spec":"worker"}},"ownerReferences":[{{"apiVersion":"batch.volcano.sh/v1alpha1",
        "kind":"Job","name":"job","uid":"u","controller":true}}],"managedFields":[{{"manager":"x",
        "operation":"Update","fieldsV1":{{"f:spec":{{"f:nodeName":{{}}}}}}}}]}},
        "spec":{{"schedulerName":"volcano","nodeName":"node-00001","priority":0,"containers":
        [{{"name":"main","image":"registry.example.com/train:1","command":["sh","-c","train"],
        "env":[{{"name":"A","value":"1"}},{{"name":"B","value":"2"}}],"resources":{{"requests":
        {{"cpu":"2","memory":"8Gi"}},"limits":{{"cpu":"2","memory":"8Gi"}}}}}}],"tolerations":
        [{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute",
        "tolerationSeconds":300}}]}},"status":{{"phase":"Running","conditions":[{conditions}],
        "hostIP":"10.0.0.1","podIP":"10.1.0.1","startTime":"2026-05-31T00:00:00Z",
        "containerStatuses":[{{"name":"main","ready":true,"restartCount":0,"image":"x",
        "imageID":"y","state":{{"running":{{"startedAt":"2026-05-31T00:00:00Z"}}}}}}]}}}}"#
    )
}

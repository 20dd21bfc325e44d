//! Small clusters for the counts.

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

pub(crate) fn pod(job: &str, index: i64, cpu_milli: i64) -> PodRecord {
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

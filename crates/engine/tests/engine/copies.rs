//! An engine, its copies and its bundles, with events of every kind: neither side sees what is written on
//! the other, and everything comes out of a bundle. Specification: answers.md 10 (ANS-64), 15 (ANS-103).

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_bundle::{Replay, difference};
use vc_conf::Config;
use vc_engine::{CycleTime, Engine, EngineOptions};
use vc_model::{
    ClusterEvent, DeviceKind, Labels, NodeShardRecord, ObjectKey, PodGroupStatus, ReadAfter,
    SavedUsage, SelectorKind, SelectorObject, StorageKind, fixture,
};

use crate::support::*;

/// Objects of every kind that lines of text have, pods that wait, run and are about to be bound.
const CLUSTER: &str = "node n1 cpu=8 memory=8Gi zone=a\n node n2 cpu=8 memory=8Gi zone=b
    queue default\n queue q weight=2\n priorityclass high value=10
    job run queue=q min=1\n task a cpu=1 @n1 running label.app=x\n task b cpu=1 @n2 running
    job wait queue=q min=2 minres.cpu=2\n task a cpu=1 x2\n task big cpu=100
    pod default/alone cpu=1
    budget b app=x allowed=1 healthy=1\n quota r hard.cpu=20
    hypernode rack tier=1 node=n1 node=n2\n numa n1 policy=restricted cpus=8 nodes=2
    class s provisioner=d delayed\n pv v 2Gi class=s\n pvc c 1Gi class=s\n csinode n1 d=2
    csidriver d capacity\n capacity k 5Gi class=s at.zone=a\n attachment t d node=n1 volume=v
    claim device class=gpu.com count=1\n load n1 cpu=10 memory=10 at=5 interval=60";

/// Number of kinds of events.
const N_KINDS: usize = 44;

/// Numbers the kind of an event. A new kind is named here, and has an event in [`events`].
fn kind(event: &ClusterEvent) -> usize {
    match event {
        ClusterEvent::PodApplied(_) => 0,
        ClusterEvent::PodDeleted { .. } => 1,
        ClusterEvent::PodRead { .. } => 2,
        ClusterEvent::BindFailed { .. } => 3,
        ClusterEvent::EvictFailed { .. } => 4,
        ClusterEvent::PodStatusFailed { .. } => 5,
        ClusterEvent::NodeApplied(_) => 6,
        ClusterEvent::NodeDeleted { .. } => 7,
        ClusterEvent::NodeLoadsRead(_) => 8,
        ClusterEvent::DeviceReportsRead(_) => 9,
        ClusterEvent::PodGroupApplied(_) => 10,
        ClusterEvent::PodGroupDeleted { .. } => 11,
        ClusterEvent::PodGroupWritten { .. } => 12,
        ClusterEvent::PodGroupFailed { .. } => 13,
        ClusterEvent::QueueApplied(_) => 14,
        ClusterEvent::QueueDeleted { .. } => 15,
        ClusterEvent::QueueFailed { .. } => 16,
        ClusterEvent::PriorityClassApplied(_) => 17,
        ClusterEvent::PriorityClassDeleted { .. } => 18,
        ClusterEvent::NodeShardApplied(_) => 19,
        ClusterEvent::NodeShardDeleted { .. } => 20,
        ClusterEvent::NodeShardFailed { .. } => 21,
        ClusterEvent::NumaTopologyApplied(_) => 22,
        ClusterEvent::NumaTopologyDeleted { .. } => 23,
        ClusterEvent::HyperNodeApplied(_) => 24,
        ClusterEvent::HyperNodeDeleted { .. } => 25,
        ClusterEvent::HyperNodesListed { .. } => 26,
        ClusterEvent::StorageApplied(_) => 27,
        ClusterEvent::StorageDeleted { .. } => 28,
        ClusterEvent::DeviceApplied(_) => 29,
        ClusterEvent::DeviceDeleted { .. } => 30,
        ClusterEvent::VolumesWritten { .. } => 31,
        ClusterEvent::PreBindFailed { .. } => 32,
        ClusterEvent::BudgetApplied(_) => 33,
        ClusterEvent::BudgetDeleted { .. } => 34,
        ClusterEvent::QuotaApplied(_) => 35,
        ClusterEvent::QuotaDeleted { .. } => 36,
        ClusterEvent::UsageRead(_) => 37,
        ClusterEvent::UsageNotSaved => 38,
        ClusterEvent::SelectorApplied(_) => 39,
        ClusterEvent::SelectorDeleted { .. } => 40,
        ClusterEvent::NamespaceApplied { .. } => 41,
        ClusterEvent::NamespaceDeleted { .. } => 42,
        ClusterEvent::UsageUnread => 43,
    }
}

/// The objects of the cluster with other amounts.
fn changed() -> Vec<ClusterEvent> {
    fixture::events_of(
        "node n1 cpu=6 memory=8Gi zone=c\n node n3 cpu=4\n queue q weight=3\n priorityclass high value=11
        job run queue=default min=1\n task a cpu=1 @n1 running label.app=y\n job more\n task a cpu=1 pvc=c
        budget b app=y allowed=0 healthy=1\n quota r hard.cpu=10
        hypernode rack tier=2 node=n1\n numa n1 policy=none
        class s provisioner=e\n pv v 3Gi class=s\n pvc c 2Gi class=s\n csinode n1 d=1\n csidriver d
        capacity k 4Gi class=s\n attachment t d node=n2 volume=v
        claim device class=gpu.com count=2\n load n1 cpu=20 memory=20 at=9 interval=60",
    )
}

/// What the API server answered to writes.
fn answers(engine: &Engine) -> Vec<ClusterEvent> {
    let (group, error) = (ObjectKey::new("default", "wait"), "refused".to_owned());
    let status = || Box::new(PodGroupStatus { running: 7, ..PodGroupStatus::default() });
    let cluster = engine.cluster();
    let pod = |name: &str| {
        let found = fixture::events_of(CLUSTER).into_iter().find_map(|event| match event {
            ClusterEvent::PodApplied(pod) if &*pod.key.name == name => Some(pod),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no pod {name}"))
    };
    let uid = |name: &str| -> Arc<str> { cluster.tasks[fixture::task(cluster, name)].uid.clone() };
    let waits = uid("wait/a-0");
    vec![
        ClusterEvent::BindFailed {
            uid: waits.clone(),
            node: "n1".into(),
            error: error.clone(),
            pauses: true,
        },
        ClusterEvent::PodRead { pod: pod("wait-a-0"), after: ReadAfter::Bind },
        ClusterEvent::PreBindFailed { uid: uid("wait/a-1"), error: error.clone(), pauses: true },
        ClusterEvent::VolumesWritten {
            uid: waits.clone(),
            objects: Vec::new(),
            devices: Vec::new(),
        },
        ClusterEvent::EvictFailed { uid: uid("run/b"), error },
        ClusterEvent::PodStatusFailed { uid: uid("wait/big") },
        ClusterEvent::PodGroupWritten {
            key: group.clone(),
            resource_version: "7".into(),
            status: status(),
        },
        ClusterEvent::PodGroupFailed { key: group, status: status() },
        ClusterEvent::QueueFailed { name: "q".into() },
        ClusterEvent::NodeShardFailed { name: "volcano".into() },
        ClusterEvent::UsageNotSaved,
        ClusterEvent::UsageUnread,
    ]
}

/// What text has no lines for.
fn others() -> Vec<ClusterEvent> {
    let labels = |text: &str| Labels::from_iter([(text.into(), "x".into())]);
    let key = ObjectKey::new("default", "web");
    let selector = SelectorObject { kind: SelectorKind::Service, key, selector: None };
    let shard = NodeShardRecord {
        name: "volcano".into(),
        nodes_desired: vec!["n1".into()],
        ..Default::default()
    };
    vec![
        ClusterEvent::NamespaceApplied { name: "default".into(), labels: labels("team") },
        ClusterEvent::SelectorApplied(Box::new(selector)),
        ClusterEvent::NodeShardApplied(Box::new(shard)),
        ClusterEvent::DeviceReportsRead(vec![(
            "n1".into(),
            labels("volcano.sh/node-vgpu-register"),
        )]),
        ClusterEvent::UsageRead(Some(Arc::new(SavedUsage::default()))),
        ClusterEvent::HyperNodesListed { is_complete: true },
    ]
}

/// Everything goes.
fn deleted() -> Vec<ClusterEvent> {
    let key = |name: &str| ObjectKey::new("default", name);
    let none = |name: &str| ObjectKey::new("", name);
    let storage = [
        (StorageKind::Volume, none("v")),
        (StorageKind::Claim, key("c")),
        (StorageKind::Class, none("s")),
        (StorageKind::CsiNode, none("n1")),
        (StorageKind::CsiDriver, none("d")),
        (StorageKind::Capacity, key("k")),
        (StorageKind::Attachment, none("t")),
    ];
    let mut deleted: Vec<ClusterEvent> =
        storage.map(|(kind, key)| ClusterEvent::StorageDeleted { kind, key }).into();
    deleted.extend([
        ClusterEvent::PodDeleted { key: key("alone"), uid: "".into() },
        ClusterEvent::PodGroupDeleted { key: key("wait") },
        ClusterEvent::DeviceDeleted { kind: DeviceKind::Claim, key: key("device") },
        ClusterEvent::BudgetDeleted { key: key("b") },
        ClusterEvent::QuotaDeleted { key: key("r") },
        ClusterEvent::SelectorDeleted { kind: SelectorKind::Service, key: key("web") },
        ClusterEvent::NamespaceDeleted { name: "default".into() },
        ClusterEvent::HyperNodeDeleted { name: "rack".into() },
        ClusterEvent::NumaTopologyDeleted { name: "n1".into() },
        ClusterEvent::NodeShardDeleted { name: "volcano".into() },
        ClusterEvent::PriorityClassDeleted { name: "high".into() },
        ClusterEvent::QueueDeleted { name: "q".into() },
        ClusterEvent::NodeDeleted { name: "n1".into() },
    ]);
    deleted
}

fn config() -> Config {
    conf("enqueue, allocate, preempt, backfill", "priority gang | drf predicates proportion")
}

/// An engine with this cluster, which has decided what to do with it.
fn engine() -> Engine {
    let (mut engine, _warnings) = Engine::new(EngineOptions::default(), &config());
    engine.cycle(fixture::events_of(CLUSTER), CycleTime { unix_micros: START_MICROS });
    engine
}

/// One event at least of each kind.
fn events(engine: &Engine) -> Vec<ClusterEvent> {
    [answers(engine), changed(), others(), deleted()].concat()
}

#[test]
fn ans_64_every_kind_of_event_is_among_those_that_are_tried() {
    let kinds: BTreeSet<usize> = events(&engine()).iter().map(kind).collect();
    assert_eq!(kinds, (0..N_KINDS).collect());
}

#[test]
fn ans_64_neither_side_of_a_copy_sees_events_of_the_other() {
    let mut engine = engine();
    for event in events(&engine) {
        engine.share();
        let before = stored(engine.cluster());
        let (mut copy, still) = (engine.copy(), engine.copy());
        copy.apply(vec![event.clone()]);
        assert!(stored(engine.cluster()) == before, "the engine sees {event:?}");
        engine.apply(vec![event.clone()]);
        assert!(stored(still.cluster()) == before, "a copy sees {event:?}");
        assert!(
            stored(copy.cluster()) == stored(engine.cluster()),
            "the copy differs after {event:?}"
        );
        for side in [&engine, &copy, &still] {
            assert_eq!(side.cluster().check(), Ok(()), "{event:?}");
        }
    }
}

/// A twin takes tables of its own at once, while the engine goes on.
#[test]
fn ans_59_a_copy_that_takes_tables_of_its_own_sees_nothing_of_the_other_side() {
    let mut engine = engine();
    for event in events(&engine) {
        engine.share();
        let (mut early, mut late) = (engine.copy(), engine.copy());
        let before = stored(engine.cluster());
        early.unshare();
        engine.apply(vec![event.clone()]);
        late.unshare();
        for copy in [&mut early, &mut late] {
            assert!(stored(copy.cluster()) == before, "a copy sees {event:?}");
            copy.apply(vec![event.clone()]);
            assert!(
                stored(copy.cluster()) == stored(engine.cluster()),
                "the copy differs after {event:?}"
            );
            assert_eq!(copy.cluster().check(), Ok(()), "{event:?}");
        }
        assert_eq!(engine.cluster().check(), Ok(()), "{event:?}");
    }
}

/// Cycles write to the tables, too, and so do questions.
#[test]
fn ans_64_neither_side_of_a_copy_sees_cycles_of_the_other() {
    let mut engine = engine();
    let mut now_micros = START_MICROS;
    for event in events(&engine) {
        now_micros += 1_000_000;
        let now = CycleTime { unix_micros: now_micros };
        engine.share();
        let before = stored(engine.cluster());
        let (mut copy, still) = (engine.copy(), engine.copy());
        let of_copy = copy.cycle(vec![event.clone()], now).0;
        assert!(stored(engine.cluster()) == before, "the engine sees the cycle after {event:?}");
        let of_engine = engine.cycle(vec![event.clone()], now).0;
        assert!(stored(still.cluster()) == before, "a copy sees the cycle after {event:?}");
        assert_eq!(of_copy, of_engine, "{event:?}");
        assert!(
            stored(copy.cluster()) == stored(engine.cluster()),
            "the copy differs after {event:?}"
        );
    }
}

/// Half of the objects are in the checkpoint, the others in what came after it.
#[test]
fn ans_103_objects_of_every_kind_come_out_of_a_bundle() {
    let mut world = World::new(&config(), "").alone();
    fixture::events_of(CLUSTER).into_iter().for_each(|event| world.send(event));
    world.cycle_unanswered();
    let engine = engine();
    answers(&engine).into_iter().for_each(|event| world.send(event));
    world.cycle_unanswered();
    world.keep_history();
    for event in [changed(), others()].concat() {
        world.send(event);
        world.cycle_unanswered();
    }
    let bundle = world.bundle();
    let mut replay = Replay::new(&bundle, None).expect("there is a state");
    while let Some(step) = replay.step() {
        assert_eq!((difference(&step), step.is_same), ((None, None), true));
    }
    let (engine, replayed) = (world.engine.cluster(), replay.engine().cluster());
    assert_eq!(replayed.check(), Ok(()));
    assert!(sorted(engine) == sorted(replayed), "the bundle has something else than the engine");
}

//! Gangs of a thousand shapes, some of which care where their pods are: `shapes/5k-5k`.

use vc_engine::Engine;
use vc_model::{
    ClusterEvent, LabelSelector, NodeSelectorTerm, Operator, PodAffinity, PodGroupPhase, PodRecord,
    PodSelector, PodTerm, PreferredPodTerm, Requirement, SpreadConstraint, Taint, TaintEffect,
};

use vc_resource::Quantity;

use crate::cases::{Case, START_MICROS};
use crate::claims;
use crate::load::{apply, base, events, gang, running_gangs};
use crate::objects::Shape;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const JOB: &str = "volcano.sh/job-name";

/// As many shapes as gangs: every tenth wants its pods on hosts of their own, the next one over
/// zones, the next one certain nodes only, the next one its pods together, the next two a device
/// for each pod.
pub(crate) fn load(case: &Case, engine: &mut Engine) {
    let gangs = (0..case.n_pending / case.gang_size).flat_map(|number| {
        let shape = Shape {
            cpu_milli: 100 + 10 * (number % 100) as i64,
            memory_gi: 1 + (number / 100 % 10) as i64,
        };
        let created_micros = START_MICROS - 3_600_000_000 + number as i64 * 1_000;
        let phase = PodGroupPhase::Pending;
        let gang = gang(1_000_000 + number, case.gang_size, shape, phase, created_micros);
        let events = events(&gang, |_| None).into_iter();
        events.flat_map(move |event| with_wants(event, number)).collect::<Vec<_>>()
    });
    let nodes = base(case).map(in_rack).flat_map(with_devices);
    apply(engine, std::iter::once(claims::class()).chain(nodes).chain(gangs));
}

/// The same gangs where every node is full but for 2 cpus, or tainted.
pub(crate) fn load_full(case: &Case, engine: &mut Engine) {
    let running = running_gangs(case, 4, Shape { cpu_milli: 15_500, memory_gi: 62 });
    let gangs = (0..case.n_pending / case.gang_size).flat_map(|number| {
        let shape = Shape { cpu_milli: 3_000 + 250 * (number % 16) as i64, memory_gi: 4 };
        let created_micros = START_MICROS - 3_600_000_000 + number as i64 * 1_000;
        let phase = PodGroupPhase::Inqueue;
        let gang = gang(1_000_000 + number, case.gang_size, shape, phase, created_micros);
        let events = events(&gang, |_| None).into_iter();
        events.flat_map(move |event| with_wants(event, number)).collect::<Vec<_>>()
    });
    let nodes = base(case).map(in_rack).map(tainted).flat_map(with_devices);
    apply(engine, std::iter::once(claims::class()).chain(nodes).chain(running).chain(gangs));
}

/// Every second node is, and has room.
fn tainted(mut event: ClusterEvent) -> ClusterEvent {
    if let ClusterEvent::NodeApplied(node) = &mut event
        && node.name.bytes().last().is_some_and(|last| last % 2 == 0)
    {
        for (_, amount) in node.allocatable.iter_mut().filter(|(name, _)| &**name == "cpu") {
            *amount = Quantity::from_value(128);
        }
        let effect = TaintEffect::NoSchedule;
        node.taints.push(Taint { key: "dedicated".into(), value: "".into(), effect });
    }
    event
}

/// Racks of 100 nodes, by number.
fn in_rack(mut event: ClusterEvent) -> ClusterEvent {
    if let ClusterEvent::NodeApplied(node) = &mut event {
        let number = node.name.rsplit('-').next().and_then(|text| text.parse::<u32>().ok());
        let rack = number.unwrap_or(0) / 100;
        node.labels.insert("rack".into(), rack.to_string().into());
    }
    event
}

fn with_devices(event: ClusterEvent) -> Vec<ClusterEvent> {
    let slice = match &event {
        ClusterEvent::NodeApplied(node) => claims::slice(node),
        _ => None,
    };
    std::iter::once(event).chain(slice).collect()
}

/// The pod, behind its claim if it has one.
fn with_wants(mut event: ClusterEvent, number: u64) -> Vec<ClusterEvent> {
    let mut claim = None;
    if let ClusterEvent::PodApplied(pod) = &mut event {
        enter(pod, number);
        claim = matches!(number % 10, 4 | 5).then(|| claims::claim(pod));
    }
    claim.into_iter().chain([event]).collect()
}

fn enter(pod: &mut PodRecord, number: u64) {
    let mut affinity = PodAffinity::default();
    match number % 10 {
        0 => affinity.anti_required.push(own(pod, HOST)),
        1 => pod.spread.push(SpreadConstraint {
            topology_key: ZONE.into(),
            labels: own(pod, ZONE).pods.labels,
            ..SpreadConstraint::default()
        }),
        2 => {
            let match_expressions =
                vec![rule("pool", Operator::NotIn, "pool-3"), rule("rack", Operator::Gt, "4")];
            let term = NodeSelectorTerm { match_expressions, match_fields: Vec::new() };
            pod.node_affinity.required = Some(vec![term]);
        }
        3 => affinity.preferred.push(PreferredPodTerm { weight: 100, term: own(pod, ZONE) }),
        _ => {}
    }
    pod.pod_affinity = (affinity != PodAffinity::default()).then(|| affinity.into());
}

/// Pods of the same job.
fn own(pod: &PodRecord, key: &str) -> PodTerm {
    let job = pod.labels.get(JOB).map(|job| (JOB.into(), job.clone()));
    let labels =
        LabelSelector { match_labels: job.into_iter().collect(), ..LabelSelector::default() };
    let namespaces = vec![pod.key.namespace.clone()];
    let pods = PodSelector { namespaces, namespace_selector: None, labels: Some(labels) };
    PodTerm { pods, topology_key: key.into() }
}

fn rule(key: &str, operator: Operator, value: &str) -> Requirement {
    Requirement { key: key.into(), operator, values: vec![value.into()] }
}

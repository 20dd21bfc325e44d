//! What-ifs, compared with what the engine decides when the same changes really come. Specification: answers.md 20,
//! cases 53, 54.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use vc_answers::{
    Change, CycleLimit, LiveObject, NewNodes, NodePatch, PodGroupChange, QueueChange,
    SupposedKubelet, WhatIf, what_if,
};
use vc_engine::{Effect, Engine};
use vc_model::fixture::events_of;
use vc_model::{
    Cluster, ClusterEvent, JobId, NodeId, NodeRecord, PodPhase, PodRecord, Taint, TaintEffect,
    TaskId,
};

use crate::support::{Asked, conf, random_cases};
use crate::what_if::{named, placements};

/// The binds of a cycle: the nodes of pods, by name.
fn binds(effects: &[Effect]) -> BTreeMap<Arc<str>, Arc<str>> {
    let bind = |effect: &Effect| match effect {
        Effect::Bind { pod, node, .. } => Some((pod.name.clone(), node.clone())),
        _ => None,
    };
    effects.iter().filter_map(bind).collect()
}

/// How the binds of two cycles differ, as [`placements`] has it.
fn differing_binds(with: &[Effect], without: &[Effect]) -> Vec<String> {
    let (with, without) = (binds(with), binds(without));
    let placed = with.iter().filter(|(pod, _)| !without.contains_key(*pod));
    let placed = placed.map(|(pod, node)| format!("+ {pod} {node}"));
    let not = without.iter().filter(|(pod, _)| !with.contains_key(*pod));
    let not = not.map(|(pod, node)| format!("- {pod} {node}"));
    let moved = with.iter().filter_map(|(pod, to)| {
        let from = without.get(pod).filter(|from| *from != to)?;
        Some(format!("{pod} {from}>{to}"))
    });
    placed.chain(not).chain(moved).collect()
}

/// Words of a random cluster: cpus of nodes, cpus that are used, gangs of minimum and request, in
/// two queues.
fn cluster() -> impl Strategy<Value = String> {
    let nodes = prop::collection::vec((2..9_i64, 0..3_i64), 1..5);
    let jobs = prop::collection::vec((1..4_i64, 1..6_i64), 1..6);
    (nodes, jobs).prop_map(|(nodes, jobs)| {
        let queue = |at: usize| ["a", "b"][at % 2];
        let mut text = "queue a weight=2\nqueue b\n".to_owned();
        for (at, (cpu, used)) in nodes.iter().enumerate() {
            text.push_str(&format!("node n{at} cpu={cpu}\n"));
            if 0 < *used {
                let queue = queue(at);
                text.push_str(&format!("job r{at} queue={queue} running\n"));
                text.push_str(&format!(" task a cpu={used} @n{at} running\n"));
            }
        }
        for (at, (pods, cpu)) in jobs.iter().enumerate() {
            let queue = queue(at);
            text.push_str(&format!(
                "job j{at} queue={queue} min={pods}\n task a cpu={cpu} x{pods}\n"
            ));
        }
        text
    })
}

/// A change that can be supposed and really made. Nodes and jobs are given by a number, modulo how many there are.
#[derive(Clone, Debug)]
enum RealChange {
    AddNodes {
        count: u64,
        cpu: i64,
    },
    RemoveNode(usize),
    CordonNode(usize),
    TaintNode(usize),
    SetWeight {
        queue: &'static str,
        weight: i32,
    },
    /// Sets the minimum of a job that was submitted.
    SetMinimum(usize, i32),
    /// Deletes a job that was submitted.
    DeleteJob(usize),
    /// Ends a job that ran from the beginning, if there is one.
    FinishJob(usize),
    /// Applies the objects of a text.
    Apply(String),
}

fn real_change() -> impl Strategy<Value = RealChange> {
    let queue = || prop::sample::select(vec!["a", "b"]);
    prop_oneof![
        (1..4_u64, 1..9_i64).prop_map(|(count, cpu)| RealChange::AddNodes { count, cpu }),
        (0..4_usize).prop_map(RealChange::RemoveNode),
        (0..4_usize).prop_map(RealChange::CordonNode),
        (0..4_usize).prop_map(RealChange::TaintNode),
        (queue(), 1..9_i32).prop_map(|(queue, weight)| RealChange::SetWeight { queue, weight }),
        (0..5_usize, 1..4_i32).prop_map(|(job, minimum)| RealChange::SetMinimum(job, minimum)),
        (0..5_usize).prop_map(RealChange::DeleteJob),
        (0..4_usize).prop_map(RealChange::FinishJob),
        (queue(), 1..4_i64, 1..6_i64).prop_map(|(queue, pods, cpu)| {
            RealChange::Apply(format!("job k queue={queue} min={pods}\n task a cpu={cpu} x{pods}"))
        }),
    ]
}

fn node_at(cluster: &Cluster, place: usize) -> NodeId {
    let nodes = cluster.nodes_by_name();
    nodes[place % nodes.len()]
}

/// Returns a job whose name starts so. Returns `None` if there is none.
fn job_at(cluster: &Cluster, start: &str, place: usize) -> Option<JobId> {
    let is_named = |job: &JobId| cluster.jobs[*job].key.name.starts_with(start);
    let jobs: Vec<JobId> = cluster.jobs_by_key().filter(is_named).collect();
    (!jobs.is_empty()).then(|| jobs[place % jobs.len()])
}

fn taint() -> Taint {
    Taint { key: "x".into(), value: "".into(), effect: TaintEffect::NoSchedule }
}

impl RealChange {
    fn supposed(&self, cluster: &Cluster) -> Vec<Change> {
        let node = |place: &usize| named(&cluster.nodes[node_at(cluster, *place)].name);
        let key = |job: JobId| cluster.jobs[job].key.clone();
        let change = match self {
            Self::AddNodes { count, cpu } => {
                let node = node_records(&format!("node m cpu={cpu}")).remove(0);
                Change::AddNodes { nodes: NewNodes::Node(Box::new(node)), count: *count }
            }
            Self::RemoveNode(place) => Change::RemoveNodes(node(place)),
            Self::CordonNode(place) => Change::Cordon(node(place)),
            Self::TaintNode(place) => {
                let patch = NodePatch { add_taints: vec![taint()], ..NodePatch::default() };
                Change::PatchNodes(node(place), patch)
            }
            Self::SetWeight { queue, weight } => {
                let change = QueueChange { weight: Some(*weight), ..QueueChange::default() };
                Change::SetQueue((*queue).into(), Box::new(change))
            }
            Self::SetMinimum(place, minimum) => {
                let change = PodGroupChange { min_member: Some(*minimum), ..Default::default() };
                Change::SetJob(key(job_at(cluster, "j", *place).unwrap()), change)
            }
            Self::DeleteJob(place) => {
                let key = key(job_at(cluster, "j", *place).unwrap());
                Change::Delete(vec![LiveObject::Job(key)])
            }
            Self::FinishJob(place) => {
                Change::Finish(job_at(cluster, "r", *place).map(key).into_iter().collect())
            }
            Self::Apply(text) => Change::Apply(events_of(text)),
        };
        vec![change]
    }

    /// Returns the events of the same change. Pods of a node that is removed have no controller.
    fn events(&self, cluster: &Cluster, kubelets: &Kubelets) -> Vec<ClusterEvent> {
        let changed_node = |place: &usize, change: &dyn Fn(&mut NodeRecord)| {
            let mut record = cluster.node_record(node_at(cluster, *place));
            change(&mut record);
            vec![ClusterEvent::NodeApplied(Box::new(record))]
        };
        let deleted = |task: TaskId| {
            let pod = &cluster.tasks[task];
            ClusterEvent::PodDeleted { key: pod.key.clone(), uid: pod.uid.clone() }
        };
        match self {
            Self::AddNodes { count, cpu } => {
                let names = (1..*count).map(|number| format!("m-whatif-{number}"));
                let names = ["m".to_owned()].into_iter().chain(names);
                let nodes: String = names.map(|name| format!("node {name} cpu={cpu}\n")).collect();
                events_of(&nodes)
            }
            Self::RemoveNode(place) => {
                let row = &cluster.nodes[node_at(cluster, *place)];
                let pods = row.tasks.iter().copied().map(deleted);
                pods.chain([ClusterEvent::NodeDeleted { name: row.name.clone() }]).collect()
            }
            Self::CordonNode(place) => changed_node(place, &|node| node.unschedulable = true),
            Self::TaintNode(place) => changed_node(place, &|node| node.taints.push(taint())),
            Self::SetWeight { queue, weight } => {
                events_of(&format!("queue {queue} weight={weight}"))
            }
            Self::SetMinimum(place, minimum) => {
                let job = job_at(cluster, "j", *place).unwrap();
                let mut record = cluster.pod_group_record(job).unwrap();
                record.min_member = *minimum;
                // An object of the same version is known already.
                record.resource_version = Arc::default();
                vec![ClusterEvent::PodGroupApplied(Box::new(record))]
            }
            Self::DeleteJob(place) => {
                let row = &cluster.jobs[job_at(cluster, "j", *place).unwrap()];
                let group = ClusterEvent::PodGroupDeleted { key: row.key.clone() };
                row.tasks.iter().copied().map(deleted).chain([group]).collect()
            }
            Self::FinishJob(place) => {
                let job = job_at(cluster, "r", *place);
                let tasks = job.into_iter().flat_map(|job| cluster.jobs[job].tasks.iter());
                tasks.map(|&task| kubelets.ended(&cluster.tasks[task].key.name)).collect()
            }
            Self::Apply(text) => events_of(text),
        }
    }
}

fn node_records(text: &str) -> Vec<NodeRecord> {
    let record = |event: ClusterEvent| match event {
        ClusterEvent::NodeApplied(node) => *node,
        other => panic!("no node: {other:?}"),
    };
    events_of(text).into_iter().map(record).collect()
}

/// Pods by name, as they were submitted, which run as soon as they are bound.
struct Kubelets(BTreeMap<Arc<str>, PodRecord>);

impl Kubelets {
    fn new(events: Vec<ClusterEvent>) -> Self {
        let pods = events.into_iter().filter_map(|event| match event {
            ClusterEvent::PodApplied(pod) => Some((pod.key.name.clone(), *pod)),
            _ => None,
        });
        Self(pods.collect())
    }

    fn ended(&self, name: &str) -> ClusterEvent {
        let pod = PodRecord { phase: PodPhase::Succeeded, ..self.0[name].clone() };
        ClusterEvent::PodApplied(Box::new(pod))
    }

    /// Lets the pods run that these effects bind.
    fn run(&self, engine: &mut Engine, effects: &[Effect]) {
        let running = binds(effects).into_iter().map(|(name, node)| {
            let mut pod = self.0[&name].clone();
            (pod.node_name, pod.phase) = (Some(node), PodPhase::Running);
            ClusterEvent::PodApplied(Box::new(pod))
        });
        engine.apply(running.collect());
    }
}

/// Returns what cycles decide of which the first one is given these events. `kubelets` is `None` if bound pods do not run.
fn decide(
    it: &mut Asked,
    kubelets: Option<&Kubelets>,
    (events, n_cycles): (Vec<ClusterEvent>, u32),
) -> Vec<Effect> {
    let (mut events, mut effects) = (events, Vec::new());
    for _ in 0..n_cycles {
        it.cycle(std::mem::take(&mut events));
        effects.extend(it.effects.iter().cloned());
        if let Some(kubelets) = kubelets {
            kubelets.run(&mut it.engine, &it.effects);
        }
    }
    effects
}

/// A what-if decides as the engine does when the same change really comes, and the engine decides as one that was never
/// asked.
fn agree(
    text: &str,
    change: &RealChange,
    (kubelet, n_cycles): (SupposedKubelet, u32),
) -> Result<(), TestCaseError> {
    let config =
        conf("enqueue, allocate, backfill", "priority gang | predicates proportion nodeorder");
    let applied = if let RealChange::Apply(text) = change { events_of(text) } else { Vec::new() };
    let kubelets = Kubelets::new(events_of(text).into_iter().chain(applied).collect());
    let running = (kubelet == SupposedKubelet::Instant).then_some(&kubelets);
    let settled = || {
        let mut it = Asked::new(&config, text);
        if let Some(kubelets) = running {
            kubelets.run(&mut it.engine, &it.effects);
        }
        decide(&mut it, running, (Vec::new(), 3));
        it
    };
    let (mut it, mut never_asked, mut unchanged) = (settled(), settled(), settled());
    let changes = change.supposed(it.engine.cluster());
    let question = WhatIf { changes, cycles: CycleLimit::Number(n_cycles), kubelet };
    let result = what_if(&it.engine, &it.ends, &question).unwrap();
    it.why_with_start("j0");
    let events = change.events(it.engine.cluster(), &kubelets);
    let effects = decide(&mut it, running, (events.clone(), n_cycles));
    let without = decide(&mut unchanged, running, (Vec::new(), n_cycles));
    let real = differing_binds(&effects, &without);
    prop_assert_eq!(placements(&result), real, "{}\n{:?}", text, change);
    let others = decide(&mut never_asked, running, (events, n_cycles));
    prop_assert_eq!(format!("{effects:?}"), format!("{others:?}"));
    prop_assert_eq!(it.engine.cluster().check(), Ok(()));
    Ok(())
}

proptest! {
    #![proptest_config(random_cases(100))]

    /// Cases 53 and 54.
    #[test]
    fn ans_53_what_if_and_reality_agree(text in cluster(), change in real_change()) {
        agree(&text, &change, (SupposedKubelet::None, 1))?;
    }

    /// Case 53 with cycles in which pods run that earlier ones have bound.
    #[test]
    fn ans_53_what_if_and_reality_agree_over_cycles(text in cluster(), change in real_change()) {
        agree(&text, &change, (SupposedKubelet::Instant, 3))?;
    }
}

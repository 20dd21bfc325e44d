//! Filters and scores over live counts against the plain rules, after every step of random
//! histories: events, tentative operations, and their undoing.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use vc_framework::Plugin;
use vc_model::{
    ClusterEvent, InclusionPolicy, LabelSelector, Labels, NodeId, NodeRecord, ObjectKey, Operator,
    PodAffinity, PodPhase, PodRecord, PodSelector, PodTerm, PreferredPodTerm, Requirement,
    SelectorKind, SelectorObject, SpreadConstraint, Taint, TaintEffect, TaskId, TaskStatus,
    Unsatisfiable,
};

use crate::bed::{PluginFixture, node, plugin, pod};
use crate::plain::{Plain, PlainFinding};

#[derive(Clone, Debug)]
pub(crate) enum HistoryStep {
    Event(ClusterEvent),
    /// Allocated or pipelined there.
    Place(u8, u8, bool),
    Evict(u8),
    UndoLast,
}

pub(crate) const N_PODS: u8 = 7;
pub(crate) const N_NODES: u8 = 4;

fn selector() -> impl Strategy<Value = Option<LabelSelector>> {
    let rule = |operator, values: &[&str]| Requirement {
        key: "app".into(),
        operator,
        values: values.iter().map(|&value| value.into()).collect(),
    };
    (0..6u8, 0..3u8).prop_map(move |(kind, n)| {
        let app = n.to_string();
        let mut selector = LabelSelector::default();
        match kind {
            0 => return None,
            1 => {}
            2 => selector.match_expressions = vec![rule(Operator::NotIn, &[&app])],
            3 => selector.match_expressions = vec![rule(Operator::In, &[&app, "x"])],
            _ => selector.match_labels = [("app".into(), app.into())].into(),
        }
        Some(selector)
    })
}

fn key() -> impl Strategy<Value = std::sync::Arc<str>> {
    (0..3usize).prop_map(|n| ["zone", "rack", "kubernetes.io/hostname"][n].into())
}

fn term() -> impl Strategy<Value = PodTerm> {
    (selector(), key(), 0..4u8).prop_map(|(labels, topology_key, space)| {
        let prod = Requirement {
            key: "env".into(),
            operator: Operator::NotIn,
            values: vec!["prod".into()],
        };
        let by_labels = LabelSelector { match_expressions: vec![prod], ..Default::default() };
        let pods = PodSelector {
            namespaces: if space < 2 { vec!["ns".into()] } else { vec![] },
            namespace_selector: (2 <= space).then_some(by_labels),
            labels,
        };
        PodTerm { pods, topology_key }
    })
}

fn affinity() -> impl Strategy<Value = PodAffinity> {
    let some = || vec(term(), 0..3);
    (some(), some(), some(), some()).prop_map(|(required, anti_required, near, away)| {
        let weighted = |terms: Vec<PodTerm>| {
            let weighted = terms.into_iter().zip([7, 3]);
            weighted.map(|(term, weight)| PreferredPodTerm { weight, term }).collect()
        };
        PodAffinity {
            required,
            anti_required,
            preferred: weighted(near),
            anti_preferred: weighted(away),
        }
    })
}

fn spread() -> impl Strategy<Value = SpreadConstraint> {
    let policy = |honor| if honor { InclusionPolicy::Honor } else { InclusionPolicy::Ignore };
    (selector(), key(), 1..3i32, 1..5i32, [any::<bool>(), any::<bool>(), any::<bool>()]).prop_map(
        move |(labels, topology_key, max_skew, min_domains, flags)| SpreadConstraint {
            max_skew,
            topology_key,
            when: match flags[0] {
                true => Unsatisfiable::DoNotSchedule,
                false => Unsatisfiable::ScheduleAnyway,
            },
            labels,
            min_domains,
            node_affinity: policy(flags[1]),
            node_taints: policy(flags[2]),
        },
    )
}

prop_compose! {
    fn a_pod()(
        n in 0..N_PODS, app in 0..3u8, other in any::<bool>(), affinity in affinity(),
        spread in vec(spread(), 0..3), wants in 0..6u8, place in 0..2 * N_NODES,
        deleting in 0..8u8, zone in 0..4u8, controller in proptest::option::of(selecting_name()),
    ) -> PodRecord {
        let name = format!("p{n}");
        let mut record = pod(&name, &[]);
        record.key = ObjectKey::new(if other { "other" } else { "ns" }, &name);
        record.labels = Labels::from([("app".into(), app.to_string().into())]);
        record.controller = controller.map(|(kind, name)| (kind, name.into()));
        record.pod_affinity = (wants % 2 == 1).then(|| affinity.into());
        record.spread = if 2 <= wants { spread } else { vec![] };
        record.node_selector = (zone == 0).then(|| [("zone".into(), "a".into())].into());
        if place < N_NODES {
            record.node_name = Some(format!("n{place}").into());
            record.phase = PodPhase::Running;
            record.deleting = deleting == 0;
        }
        record
    }
}

prop_compose! {
    fn a_node()(n in 0..N_NODES, zone in 0..4usize, rack in 0..3usize, tainted in 0..4u8)
    -> NodeRecord {
        let name = format!("n{n}");
        let mut record = node(&name, &[]);
        let mut label = |key: &str, value: &str| {
            record.labels.insert(key.into(), value.into());
        };
        label("kubernetes.io/hostname", &name);
        if zone < 3 {
            label("zone", ["a", "b", "c"][zone]);
            label("topology.kubernetes.io/zone", ["a", "b", "c"][zone]);
        }
        if rack < 2 {
            label("rack", ["1", "2"][rack]);
        }
        if tainted == 0 {
            let effect = TaintEffect::NoSchedule;
            record.taints = vec![Taint { key: "k".into(), value: "v".into(), effect }];
        }
        record
    }
}

/// Kind and name of an object that may select pods.
fn selecting_name() -> impl Strategy<Value = (SelectorKind, &'static str)> {
    let kinds = [
        SelectorKind::Service,
        SelectorKind::ReplicationController,
        SelectorKind::ReplicaSet,
        SelectorKind::StatefulSet,
    ];
    (0..kinds.len(), 0..2usize).prop_map(move |(kind, name)| (kinds[kind], ["s0", "s1"][name]))
}

fn a_selecting() -> impl Strategy<Value = SelectorObject> {
    (selecting_name(), any::<bool>(), selector()).prop_map(|((kind, name), other, selector)| {
        let key = ObjectKey::new(if other { "other" } else { "ns" }, name);
        let by_labels = [SelectorKind::Service, SelectorKind::ReplicationController];
        let selector = selector.map(|selector| match by_labels.contains(&kind) {
            true => LabelSelector { match_expressions: Vec::new(), ..selector },
            false => selector,
        });
        SelectorObject { kind, key, selector }
    })
}

fn a_step() -> impl Strategy<Value = HistoryStep> {
    let namespace = |n: bool| if n { "ns" } else { "other" };
    prop_oneof![
        8 => a_pod().prop_map(|pod| HistoryStep::Event(ClusterEvent::PodApplied(Box::new(pod)))),
        1 => (0..N_PODS).prop_map(|n| HistoryStep::Event(ClusterEvent::PodDeleted {
            key: ObjectKey::new("ns", &format!("p{n}")),
            uid: format!("p{n}").into(),
        })),
        3 => a_node().prop_map(|node| HistoryStep::Event(ClusterEvent::NodeApplied(Box::new(node)))),
        1 => (0..N_NODES).prop_map(|n| HistoryStep::Event(ClusterEvent::NodeDeleted {
            name: format!("n{n}").into(),
        })),
        2 => (any::<bool>(), any::<bool>()).prop_map(move |(which, prod)| {
            let env = if prod { "prod" } else { "test" };
            HistoryStep::Event(ClusterEvent::NamespaceApplied {
                name: namespace(which).into(),
                labels: Labels::from([("env".into(), env.into())]),
            })
        }),
        1 => (any::<bool>()).prop_map(move |which| {
            HistoryStep::Event(ClusterEvent::NamespaceDeleted { name: namespace(which).into() })
        }),
        4 => a_selecting()
            .prop_map(|object| HistoryStep::Event(ClusterEvent::SelectorApplied(Box::new(object)))),
        1 => a_selecting().prop_map(|object| HistoryStep::Event(ClusterEvent::SelectorDeleted {
            kind: object.kind,
            key: object.key,
        })),
        8 => (0..N_PODS, 0..N_NODES, any::<bool>())
            .prop_map(|(pod, node, idle)| HistoryStep::Place(pod, node, idle)),
        3 => (0..N_PODS).prop_map(HistoryStep::Evict),
        3 => Just(HistoryStep::UndoLast),
    ]
}

/// The bed with what can be undone: task, and the status that it had.
pub(crate) struct History {
    pub(crate) bed: PluginFixture,
    undo: Vec<(TaskId, TaskStatus)>,
    selecting: Vec<SelectorObject>,
}

impl History {
    pub(crate) fn new(bed: PluginFixture) -> Self {
        Self { bed, undo: Vec::new(), selecting: Vec::new() }
    }

    pub(crate) fn take(&mut self, step: HistoryStep) {
        let task = |bed: &PluginFixture, n: u8| bed.cluster.task(&format!("p{n}"));
        match step {
            // Nothing is tentative between cycles.
            HistoryStep::Event(event) => {
                while !self.undo.is_empty() {
                    self.undo_last();
                }
                self.note(&event);
                self.bed.apply(event);
            }
            HistoryStep::Place(pod, node, idle) => {
                let node = self.bed.cluster.node(&format!("n{node}"));
                let (Some(task), Some(node)) = (task(&self.bed, pod), node) else { return };
                if self.bed.cluster.tasks[task].status == TaskStatus::Pending
                    && self.bed.cluster.nodes[node].present
                {
                    let status = if idle { TaskStatus::Allocated } else { TaskStatus::Pipelined };
                    self.bed.cluster.set_task(task, status, Some(node));
                    self.undo.push((task, TaskStatus::Pending));
                }
            }
            HistoryStep::Evict(pod) => {
                let Some(task) = task(&self.bed, pod) else { return };
                let status = self.bed.cluster.tasks[task].status;
                if status.is_preemptable() {
                    self.bed.cluster.evict_task(task);
                    self.undo.push((task, status));
                }
            }
            HistoryStep::UndoLast => self.undo_last(),
        }
    }

    fn note(&mut self, event: &ClusterEvent) {
        let (kind, key, now) = match event {
            ClusterEvent::SelectorApplied(object) => (object.kind, &object.key, Some(object)),
            ClusterEvent::SelectorDeleted { kind, key } => (*kind, key, None),
            _ => return,
        };
        self.selecting.retain(|object| (object.kind, &object.key) != (kind, key));
        self.selecting.extend(now.map(|object| (**object).clone()));
    }

    fn undo_last(&mut self) {
        match self.undo.pop() {
            Some((task, TaskStatus::Pending)) => {
                self.bed.cluster.set_task(task, TaskStatus::Pending, None);
            }
            Some((task, status)) => self.bed.cluster.unevict_task(task, status),
            None => {}
        }
    }
}

/// `predicates` with these filters alone.
fn only(filter: &str) -> Box<dyn Plugin> {
    let switches = [
        "predicate.NodeAffinityEnable",
        "predicate.NodePortsEnable",
        "predicate.TaintTolerationEnable",
        "predicate.PodAffinityEnable",
        "predicate.PodTopologySpreadEnable",
    ];
    let arguments = switches.map(|switch| (switch, json!(switch == filter)));
    plugin("predicates", &arguments)
}

/// `nodeorder` with this scorer alone.
fn scoring(weight: &str) -> Box<dyn Plugin> {
    let others = [
        "leastrequested.weight",
        "balancedresource.weight",
        "nodeaffinity.weight",
        "tainttoleration.weight",
        "podaffinity.weight",
        "podtopologyspread.weight",
        "imagelocality.weight",
    ];
    let arguments: Vec<(&str, Value)> =
        others.iter().map(|&key| (key, json!(u8::from(key == weight)))).collect();
    plugin("nodeorder", &arguments)
}

pub(crate) fn found(
    bed: &PluginFixture,
    plugin: &dyn Plugin,
    task: TaskId,
    node: NodeId,
) -> Vec<(vc_model::Code, String)> {
    let mut findings = Vec::new();
    plugin.predicate(bed.view(), task, node, &mut findings);
    let dims = &bed.cluster.dims;
    findings.iter().map(|finding| (finding.code, finding.reason.text(dims))).collect()
}

fn text(found: PlainFinding) -> Vec<(vc_model::Code, String)> {
    found.map(|(code, text)| (code, text.to_owned())).into_iter().collect()
}

struct Plugins {
    affinity: Box<dyn Plugin>,
    spread: Box<dyn Plugin>,
    affinity_score: Box<dyn Plugin>,
    spread_score: Box<dyn Plugin>,
}

impl Plugins {
    fn compare(&self, history: &History) -> Result<(), TestCaseError> {
        let History { bed, selecting, .. } = history;
        prop_assert_eq!(bed.cluster.check(), Ok(()));
        let plain = Plain(&bed.cluster);
        let nodes = bed.cluster.nodes_by_name().to_vec();
        let pending = bed.cluster.tasks.iter().filter(|(_, task)| task.node.is_none());
        for (task, row) in pending {
            for &node in &nodes {
                let what = format!("{} on {}", row.key, bed.cluster.nodes[node].name);
                let affinity = found(bed, &*self.affinity, task, node);
                prop_assert_eq!(affinity, text(plain.pod_affinity(task, node)), "{}", what);
                let spread = found(bed, &*self.spread, task, node);
                prop_assert_eq!(spread, text(plain.spread(task, node)), "{}", what);
            }
            let scores = |plugin: &dyn Plugin| {
                let mut scores = vec![0.0; nodes.len()];
                let done = plugin.batch_node_order(bed.view(), task, &nodes, &mut scores);
                assert_eq!(done, Ok(()));
                scores.into_iter().map(|score| score as i64).collect::<Vec<i64>>()
            };
            let expected = plain.affinity_scores(task, &nodes);
            prop_assert_eq!(scores(&*self.affinity_score), expected, "{}", row.key);
            let expected = plain.spread_scores(task, &nodes, selecting);
            prop_assert_eq!(scores(&*self.spread_score), expected, "{}", row.key);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn counts_say_what_the_plain_rules_say(
        nodes in vec(a_node(), 2..5),
        steps in vec(a_step(), 1..50),
    ) {
        let plugins = Plugins {
            affinity: only("predicate.PodAffinityEnable"),
            spread: only("predicate.PodTopologySpreadEnable"),
            affinity_score: scoring("podaffinity.weight"),
            spread_score: scoring("podtopologyspread.weight"),
        };
        let mut history = History::new(PluginFixture::new(nodes, vec![]));
        for step in steps {
            history.take(step);
            plugins.compare(&history)?;
        }
    }
}

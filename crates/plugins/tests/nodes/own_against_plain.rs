//! The filters that read a node and its pods alone (plugins-nodes.md 2.4, 4.1-4.4) against the
//! rules as they read, after every step of random histories.

use proptest::collection::vec;
use proptest::prelude::*;
use vc_model::{
    Class, ClusterEvent, Code, HostPort, Node, NodeAffinity, NodeRecord, NodeSelectorTerm,
    ObjectKey, Operator, PodPhase, PodRecord, Protocol, Requirement, Taint, TaintEffect, TaskId,
    Toleration, TolerationOperator,
};
use vc_resource::Dim;

use crate::against_plain::{History, HistoryStep, N_NODES, N_PODS, found};
use crate::bed::{PluginFixture, node, plugin, pod};
use crate::plain::Plain;

fn a_port() -> impl Strategy<Value = HostPort> {
    (0..2usize, any::<bool>(), 0..3usize).prop_map(|(port, udp, ip)| HostPort {
        port: [80, 81][port],
        protocol: if udp { Protocol::Udp } else { Protocol::Tcp },
        ip: ["0.0.0.0", "127.0.0.1", "::"][ip].into(),
    })
}

fn a_rule() -> impl Strategy<Value = Requirement> {
    let operators = [
        Operator::In,
        Operator::NotIn,
        Operator::Exists,
        Operator::DoesNotExist,
        Operator::Gt,
        Operator::Lt,
        Operator::Unknown,
    ];
    (0..operators.len(), 0..2usize, vec(0..4usize, 0..3)).prop_map(
        move |(operator, key, values)| {
            let values = values.into_iter().map(|value| ["a", "1", "5", "+7"][value].into());
            Requirement {
                key: ["zone", "size"][key].into(),
                operator: operators[operator],
                values: values.collect(),
            }
        },
    )
}

fn a_term() -> impl Strategy<Value = NodeSelectorTerm> {
    (vec(a_rule(), 0..3), proptest::option::weighted(0.2, (0..N_NODES, any::<bool>()))).prop_map(
        |(match_expressions, field)| {
            let by_name = |(n, inside): (u8, bool)| Requirement {
                key: "metadata.name".into(),
                operator: if inside { Operator::In } else { Operator::NotIn },
                values: vec![format!("n{n}").into()],
            };
            NodeSelectorTerm {
                match_expressions,
                match_fields: field.map(by_name).into_iter().collect(),
            }
        },
    )
}

fn an_effect() -> impl Strategy<Value = TaintEffect> {
    let effects = [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];
    (0..effects.len()).prop_map(move |n| effects[n])
}

fn a_toleration() -> impl Strategy<Value = Toleration> {
    let operators =
        [TolerationOperator::Equal, TolerationOperator::Exists, TolerationOperator::Other];
    let effect = proptest::option::of(an_effect());
    (0..3usize, 0..operators.len(), 0..2usize, effect).prop_map(
        move |(key, operator, value, effect)| Toleration {
            key: ["", "k", CORDON][key].into(),
            operator: operators[operator],
            value: ["", "v"][value].into(),
            effect,
        },
    )
}

const CORDON: &str = "node.kubernetes.io/unschedulable";

prop_compose! {
    fn a_pod()(
        n in 0..N_PODS, ports in vec(a_port(), 0..3), terms in proptest::option::of(vec(a_term(), 0..3)),
        selector in proptest::option::weighted(0.3, proptest::option::of(0..2usize)),
        tolerations in vec(a_toleration(), 0..3), place in 0..2 * N_NODES,
    ) -> PodRecord {
        let mut record = pod(&format!("p{n}"), &[]);
        record.containers[0].host_ports = ports;
        record.node_affinity = NodeAffinity { required: terms, ..NodeAffinity::default() };
        record.node_selector = selector.map(|zone| {
            zone.map(|zone| ("zone".into(), ["a", "b"][zone].into())).into_iter().collect()
        });
        record.tolerations = tolerations;
        if place < N_NODES {
            record.node_name = Some(format!("n{place}").into());
            record.phase = PodPhase::Running;
        }
        record
    }
}

prop_compose! {
    fn a_node()(
        n in 0..N_NODES, zone in 0..3usize, size in 0..5usize, unschedulable in prop::bool::weighted(0.2),
        taints in vec((any::<bool>(), any::<bool>(), an_effect()), 0..3), pods in 0..4u8,
    ) -> NodeRecord {
        let mut record = node(&format!("n{n}"), &[("pods", &pods.to_string())]);
        let mut label = |key: &str, value: Option<&&str>| {
            record.labels.extend(value.map(|&value| (key.into(), value.into())));
        };
        label("zone", ["a", "b"].get(zone));
        label("size", ["1", "5", "6", "+7"].get(size));
        record.unschedulable = unschedulable;
        let taint = |(k, v, effect): (bool, bool, TaintEffect)| Taint {
            key: if k { "k" } else { "l" }.into(),
            value: if v { "v" } else { "" }.into(),
            effect,
        };
        record.taints = taints.into_iter().map(taint).collect();
        record
    }
}

fn a_step() -> impl Strategy<Value = HistoryStep> {
    prop_oneof![
        6 => a_pod().prop_map(|pod| HistoryStep::Event(ClusterEvent::PodApplied(Box::new(pod)))),
        1 => (0..N_PODS).prop_map(|n| HistoryStep::Event(ClusterEvent::PodDeleted {
            key: ObjectKey::new("ns", &format!("p{n}")),
            uid: format!("p{n}").into(),
        })),
        3 => a_node().prop_map(|node| HistoryStep::Event(ClusterEvent::NodeApplied(Box::new(node)))),
        1 => (0..N_NODES).prop_map(|n| HistoryStep::Event(ClusterEvent::NodeDeleted {
            name: format!("n{n}").into(),
        })),
        8 => (0..N_PODS, 0..N_NODES, any::<bool>())
            .prop_map(|(pod, node, idle)| HistoryStep::Place(pod, node, idle)),
        3 => (0..N_PODS).prop_map(HistoryStep::Evict),
        3 => Just(HistoryStep::UndoLast),
    ]
}

/// A base-10 integer as Go reads one.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn holds(rule: &Requirement, text: Option<&str>) -> bool {
    let listed = text.is_some_and(|text| rule.values.iter().any(|value| **value == *text));
    let numbers = || {
        let [value] = rule.values.as_slice() else { return None };
        Some((integer(text?)?, integer(value)?))
    };
    match rule.operator {
        Operator::In => !rule.values.is_empty() && listed,
        Operator::NotIn => !rule.values.is_empty() && !listed,
        Operator::Exists => rule.values.is_empty() && text.is_some(),
        Operator::DoesNotExist => rule.values.is_empty() && text.is_none(),
        Operator::Gt => numbers().is_some_and(|(label, value)| value < label),
        Operator::Lt => numbers().is_some_and(|(label, value)| label < value),
        Operator::Unknown => false,
    }
}

fn matches(pod: &Class, node: &Node) -> bool {
    let label = |key: &str| node.labels.get(key).map(|value| &**value);
    let selected = pod.node_selector.iter().flatten();
    let mut selected = selected.map(|(key, value)| label(key) == Some(&**value));
    let term = |term: &NodeSelectorTerm| {
        let fields = term.match_fields.iter().all(|rule| holds(rule, Some(&node.name)));
        let labels = term.match_expressions.iter().all(|rule| holds(rule, label(&rule.key)));
        let is_empty = term.match_fields.is_empty() && term.match_expressions.is_empty();
        !is_empty && fields && labels
    };
    let required = pod.node_affinity.required.as_ref();
    selected.all(|equal| equal) && required.is_none_or(|terms| terms.iter().any(term))
}

fn tolerates(pod: &Class, key: &str, value: &str, effect: TaintEffect) -> bool {
    pod.tolerations.iter().any(|toleration| {
        let is_any = toleration.operator == TolerationOperator::Exists;
        let by_key = toleration.key.is_empty() || *toleration.key == *key;
        let by_value = is_any
            || toleration.operator == TolerationOperator::Equal && *toleration.value == *value;
        toleration.effect.is_none_or(|own| own == effect) && by_key && by_value
    })
}

fn conflict(wanted: &HostPort, used: &HostPort) -> bool {
    let any = "0.0.0.0";
    let same = wanted.ip == used.ip || &*wanted.ip == any || &*used.ip == any;
    wanted.port == used.port && wanted.protocol == used.protocol && same
}

/// All reasons, by 2.4.
fn expected(bed: &PluginFixture, task: TaskId, node: &Node) -> Vec<(Code, String)> {
    let pod = bed.cluster.class(task);
    let existing = Plain(&bed.cluster).existing();
    let here: Vec<&Class> = existing
        .iter()
        .filter(|(_, _, place)| place.name == node.name)
        .map(|(_, other, _)| *other)
        .collect();
    let mut found = Vec::new();
    let mut tell = |code, text: &str| found.push((code, text.to_owned()));
    if node.allocatable.get(Dim::PODS) <= here.len() as i64 {
        tell(Code::Unschedulable, "node(s) pod number exceeded");
    }
    let hard = |taint: &&Taint| taint.effect != TaintEffect::PreferNoSchedule;
    let mut taints = node.taints.iter().filter(hard);
    if node.unschedulable && !tolerates(pod, CORDON, "", TaintEffect::NoSchedule) {
        tell(Code::Unresolvable, "node(s) were unschedulable");
    } else if !matches(pod, node) {
        tell(Code::Unresolvable, "node(s) didn't match Pod's node affinity/selector");
    } else if !taints.all(|taint| tolerates(pod, &taint.key, &taint.value, taint.effect)) {
        tell(Code::Unresolvable, "node(s) had untolerated taint(s)");
    } else if here
        .iter()
        .flat_map(|other| &other.host_ports)
        .any(|used| pod.host_ports.iter().any(|wanted| conflict(wanted, used)))
    {
        tell(Code::Unschedulable, "node(s) didn't have free ports for the requested pod ports");
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn filters_of_a_node_say_what_the_rules_say(
        nodes in vec(a_node(), 2..5),
        steps in vec(a_step(), 1..50),
    ) {
        let predicates = plugin("predicates", &[]);
        let mut history = History::new(PluginFixture::new(nodes, vec![]));
        for step in steps {
            history.take(step);
            let bed = &history.bed;
            prop_assert_eq!(bed.cluster.check(), Ok(()));
            let pending = bed.cluster.tasks.iter().filter(|(_, task)| task.node.is_none());
            for (task, row) in pending {
                for &node in bed.cluster.nodes_by_name() {
                    let place = &bed.cluster.nodes[node];
                    let reported = found(bed, &*predicates, task, node);
                    prop_assert_eq!(
                        reported, expected(bed, task, place), "{} on {}", row.key, place.name
                    );
                }
            }
        }
    }
}

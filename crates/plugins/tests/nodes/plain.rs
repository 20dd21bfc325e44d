//! InterPodAffinity and PodTopologySpread as the rules read (plugins-nodes.md 4.5, 4.8, 7.7, 7.8):
//! every pod and every node looked at, nothing counted before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_model::node_selector::required_matches;
use vc_model::{
    Class, Cluster, Code, InclusionPolicy, LabelSelector, Labels, Node, NodeId, Operator,
    PodAffinity, PodTerm, Requirement, SelectorKind, SelectorObject, SpreadConstraint, TaintEffect,
    Task, TaskId, TaskStatus, Unsatisfiable, any_tolerates,
};

pub(crate) type PlainFinding = Option<(Code, &'static str)>;

/// A topology key and a value of it.
type Pair = (Arc<str>, Arc<str>);

/// Everything that can be seen of the cluster.
pub(crate) struct Plain<'a>(pub(crate) &'a Cluster);

impl<'a> Plain<'a> {
    fn class(&self, task: TaskId) -> &'a Class {
        self.0.class(task)
    }

    /// The pods that filters see, with their nodes.
    pub(crate) fn existing(&self) -> Vec<(&'a Task, &'a Class, &'a Node)> {
        let cluster = self.0;
        let seen = cluster.tasks.iter().filter_map(|(id, task)| {
            let gone = task.hidden || task.status.is_terminated();
            let node = task.node.filter(|_| !gone)?;
            Some((task, cluster.class(id), &cluster.nodes[node]))
        });
        seen.collect()
    }

    fn nodes(&self) -> impl Iterator<Item = &'a Node> {
        self.0.nodes_by_name().iter().map(|&node| &self.0.nodes[node])
    }

    fn matches(&self, term: &PodTerm, pod: &Class) -> bool {
        let none = Labels::new();
        let namespace = self.0.namespace_labels(&pod.namespace).unwrap_or(&none);
        term.pods.matches(&pod.namespace, namespace, &pod.labels)
    }

    pub(crate) fn pod_affinity(&self, task: TaskId, node: NodeId) -> PlainFinding {
        let (pod, node) = (self.class(task), &self.0.nodes[node]);
        let none = PodAffinity::default();
        let own = pod.pod_affinity.as_deref().unwrap_or(&none);
        let mut near: BTreeSet<Pair> = BTreeSet::new();
        let mut away: BTreeSet<Pair> = BTreeSet::new();
        let mut against: BTreeSet<Pair> = BTreeSet::new();
        for (_, other, place) in self.existing() {
            if own.required.iter().all(|term| self.matches(term, other)) {
                near.extend(own.required.iter().filter_map(|term| pair(term, place)));
            }
            let refused = own.anti_required.iter().filter(|term| self.matches(term, other));
            away.extend(refused.filter_map(|term| pair(term, place)));
            let theirs = other.pod_affinity.iter().flat_map(|theirs| &theirs.anti_required);
            let theirs = theirs.filter(|term| self.matches(term, pod));
            against.extend(theirs.filter_map(|term| pair(term, place)));
        }
        let has_keys = own.required.iter().all(|term| pair(term, node).is_some());
        let is_near = own.required.iter().all(|term| is_in(&near, term, node));
        let is_first = near.is_empty() && own.required.iter().all(|term| self.matches(term, pod));
        if !own.required.is_empty() && !(has_keys && (is_near || is_first)) {
            return Some((Code::Unresolvable, "node(s) didn't match pod affinity rules"));
        }
        if own.anti_required.iter().any(|term| is_in(&away, term, node)) {
            return Some((Code::Unschedulable, "node(s) didn't match pod anti-affinity rules"));
        }
        let repels =
            |(key, value): (&Arc<str>, &Arc<str>)| against.contains(&(key.clone(), value.clone()));
        let text = "node(s) didn't satisfy existing pods anti-affinity rules";
        node.labels.iter().any(repels).then_some((Code::Unschedulable, text))
    }

    /// Pods of each domain, over the nodes that count. `keys`: a node must have all of them.
    fn domains(
        &self,
        pod: &Class,
        constraint: &SpreadConstraint,
        keys: &[&Arc<str>],
    ) -> BTreeMap<Arc<str>, i64> {
        let counts = |node: &Node| {
            let usable = constraint.node_affinity == InclusionPolicy::Ignore
                || required_matches(
                    pod.node_selector.as_ref(),
                    pod.node_affinity.required.as_deref(),
                    node,
                );
            let tolerated = constraint.node_taints == InclusionPolicy::Ignore
                || node.taints.iter().all(|taint| {
                    let taint = (&*taint.key, &*taint.value, taint.effect);
                    taint.2 == TaintEffect::PreferNoSchedule
                        || any_tolerates(&pod.tolerations, taint)
                });
            node.present
                && usable
                && tolerated
                && keys.iter().all(|&key| node.labels.contains_key(key))
        };
        let mut domains = BTreeMap::new();
        for node in self.nodes().filter(|node| counts(node)) {
            let here = self.existing();
            let here = here.iter().filter(|(_, _, place)| place.name == node.name);
            let n_pods = here.filter(|(task, other, _)| is_counted(pod, constraint, task, other));
            let value =
                node.labels.get(&constraint.topology_key).expect("nodes have all keys").clone();
            *domains.entry(value).or_default() += n_pods.count() as i64;
        }
        domains
    }

    pub(crate) fn spread(&self, task: TaskId, node: NodeId) -> PlainFinding {
        let (pod, node) = (self.class(task), &self.0.nodes[node]);
        let hard = of_kind(pod, Unsatisfiable::DoNotSchedule);
        let keys: Vec<&Arc<str>> = hard.iter().map(|constraint| &constraint.topology_key).collect();
        for constraint in &hard {
            let domains = self.domains(pod, constraint, &keys);
            let Some(value) = node.labels.get(&constraint.topology_key) else {
                let text = "node(s) didn't match pod topology spread constraints \
                            (missing required label)";
                return Some((Code::Unresolvable, text));
            };
            let few = (domains.len() as i64) < i64::from(constraint.min_domains);
            let least = if few { 0 } else { domains.values().copied().min().unwrap_or(0) };
            let own = i64::from(constraint.selects(&pod.labels));
            let count = domains.get(value).copied().unwrap_or(0);
            if i64::from(constraint.max_skew) < count + own - least {
                let text = "node(s) didn't match pod topology spread constraints";
                return Some((Code::Unschedulable, text));
            }
        }
        None
    }

    pub(crate) fn affinity_scores(&self, task: TaskId, nodes: &[NodeId]) -> Vec<i64> {
        let pod = self.class(task);
        let none = PodAffinity::default();
        let mut sums: BTreeMap<Pair, i64> = BTreeMap::new();
        for (_, other, place) in self.existing() {
            for (owner, met) in [(pod, other), (other, pod)] {
                let terms = owner.pod_affinity.as_deref().unwrap_or(&none);
                for (preferred, sign) in [(&terms.preferred, 1), (&terms.anti_preferred, -1)] {
                    for wanted in preferred.iter().filter(|one| self.matches(&one.term, met)) {
                        if let Some(pair) = pair(&wanted.term, place) {
                            *sums.entry(pair).or_default() += sign * i64::from(wanted.weight);
                        }
                    }
                }
            }
        }
        let score = |&node: &NodeId| -> i64 {
            let labels = self.0.nodes[node].labels.iter();
            labels.filter_map(|(key, value)| sums.get(&(key.clone(), value.clone()))).sum()
        };
        let raw: Vec<i64> = nodes.iter().map(score).collect();
        let (least, most) = (raw.iter().min().copied(), raw.iter().max().copied());
        let range = most.unwrap_or(0) - least.unwrap_or(0);
        let scaled = |raw: i64| match range {
            0 => 0,
            _ => (100.0 * (raw - least.unwrap_or(0)) as f64 / range as f64) as i64,
        };
        raw.into_iter().map(scaled).collect()
    }

    /// `selecting`: Services and controllers.
    pub(crate) fn spread_scores(
        &self,
        task: TaskId,
        nodes: &[NodeId],
        selecting: &[SelectorObject],
    ) -> Vec<i64> {
        let pod = self.class(task);
        let (has_own, defaults) = (!pod.spread.is_empty(), defaults(pod, selecting));
        let soft = match has_own {
            true => of_kind(pod, Unsatisfiable::ScheduleAnyway),
            false => defaults.iter().collect(),
        };
        if soft.is_empty() {
            return vec![0; nodes.len()];
        }
        let keys: Vec<&Arc<str>> = soft.iter().map(|constraint| &constraint.topology_key).collect();
        let rows: Vec<&Node> = nodes.iter().map(|&node| &self.0.nodes[node]).collect();
        let has_all = |node: &Node| keys.iter().all(|&key| node.labels.contains_key(key));
        let has_keys = |node: &Node| !has_own || has_all(node);
        let counted: Vec<&Node> = rows.iter().copied().filter(|node| has_keys(node)).collect();
        let part = |constraint: &SpreadConstraint, node: &Node| {
            let key = &constraint.topology_key;
            let Some(value) = node.labels.get(key) else { return 0.0 };
            let by_host = &**key == "kubernetes.io/hostname";
            let values: BTreeSet<&Arc<str>> =
                counted.iter().filter_map(|node| node.labels.get(key)).collect();
            let n_domains = if by_host { counted.len() } else { values.len() };
            let count = match by_host {
                true => {
                    let here = self.existing();
                    let here = here.iter().filter(|(_, _, place)| place.name == node.name);
                    here.filter(|(task, other, _)| is_counted(pod, constraint, task, other)).count()
                        as i64
                }
                false => {
                    let needed = if has_own { keys.clone() } else { vec![key] };
                    let domains = self.domains(pod, constraint, &needed);
                    domains.get(value).copied().unwrap_or(0)
                }
            };
            count as f64 * ((n_domains + 2) as f64).ln() + f64::from(constraint.max_skew - 1)
        };
        let raw = |node: &Node| -> i64 {
            soft.iter().map(|constraint| part(constraint, node)).sum::<f64>().round() as i64
        };
        let raws: Vec<i64> = counted.iter().map(|node| raw(node)).collect();
        let most = raws.iter().copied().max().unwrap_or(0).max(0);
        let least = raws.iter().copied().min().unwrap_or(0);
        let score = |node: &&Node| match (has_keys(node), most) {
            (false, _) => 0,
            (true, 0) => 100,
            (true, _) => 100 * (most + least - raw(node)) / most,
        };
        rows.iter().map(score).collect()
    }
}

/// What a pod without constraints gets from what selects it (7.8).
fn defaults(pod: &Class, selecting: &[SelectorObject]) -> Vec<SpreadConstraint> {
    let here = selecting.iter().filter(|object| object.key.namespace == pod.namespace);
    let here = here.filter_map(|object| Some((object, object.selector.as_ref()?)));
    let (mut labels, mut rules) = (Labels::new(), Vec::new());
    for (object, selector) in here {
        let controls = pod.controller == Some((object.kind, object.key.name.clone()));
        match object.kind {
            SelectorKind::Service if selector.matches(&pod.labels) => {
                labels.extend(selector.match_labels.clone());
            }
            SelectorKind::Service => {}
            _ if controls => {
                rules.extend(selector.match_labels.iter().map(is));
                rules.extend(selector.match_expressions.clone());
            }
            _ => {}
        }
    }
    rules.extend(labels.iter().map(is));
    let selector = LabelSelector { match_expressions: rules, ..LabelSelector::default() };
    let of = |(key, max_skew): (&str, i32)| SpreadConstraint {
        topology_key: key.into(),
        max_skew,
        when: Unsatisfiable::ScheduleAnyway,
        labels: Some(selector.clone()),
        ..SpreadConstraint::default()
    };
    let keys = [("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5)];
    if selector == LabelSelector::default() { Vec::new() } else { keys.map(of).into() }
}

fn is((key, value): (&Arc<str>, &Arc<str>)) -> Requirement {
    Requirement { key: key.clone(), operator: Operator::In, values: vec![value.clone()] }
}

fn pair(term: &PodTerm, node: &Node) -> Option<Pair> {
    let value = node.labels.get(&term.topology_key)?;
    Some((term.topology_key.clone(), value.clone()))
}

fn is_in(pairs: &BTreeSet<Pair>, term: &PodTerm, node: &Node) -> bool {
    pair(term, node).is_some_and(|pair| pairs.contains(&pair))
}

fn of_kind(pod: &Class, kind: Unsatisfiable) -> Vec<&SpreadConstraint> {
    pod.spread.iter().filter(|constraint| constraint.when == kind).collect()
}

fn is_counted(pod: &Class, constraint: &SpreadConstraint, task: &Task, other: &Class) -> bool {
    let empty = constraint.labels.as_ref().is_none_or(|labels| *labels == Default::default());
    !empty
        && other.namespace == pod.namespace
        && !task.deleting
        && task.status != TaskStatus::Releasing
        && constraint.selects(&other.labels)
}

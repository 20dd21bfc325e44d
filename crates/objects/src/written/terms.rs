//! Selectors, affinity, taints, tolerations and spread constraints.

use serde_json::{Value, json};
use vc_model::{
    InclusionPolicy, LabelSelector, NodeAffinity, NodeSelectorTerm, Operator, PodAffinity,
    PodSelector, PodTerm, PreferredPodTerm, Requirement, SpreadConstraint, Taint, TaintEffect,
    Toleration, TolerationOperator, Unsatisfiable,
};

use super::{listed, named, nonempty, present_fields, texts};

pub(super) fn label_selector(it: &LabelSelector) -> Value {
    present_fields([
        ("matchLabels", named(&it.match_labels)),
        ("matchExpressions", requirements(&it.match_expressions)),
    ])
}

fn requirements(list: &[Requirement]) -> Option<Value> {
    let written = |it: &Requirement| {
        present_fields([
            ("key", Some((&*it.key).into())),
            ("operator", Some(operator(it.operator).into())),
            ("values", texts(&it.values)),
        ])
    };
    listed(list, written)
}

fn operator(it: Operator) -> &'static str {
    match it {
        Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
        Operator::Gt => "Gt",
        Operator::Lt => "Lt",
        Operator::Unknown => "Unknown",
    }
}

/// Returns `spec.affinity` of a pod. Returns `None` if it asks for nothing.
pub(super) fn affinity(nodes: &NodeAffinity, pods: Option<&PodAffinity>) -> Option<Value> {
    let no_pods = PodAffinity::default();
    let pods = pods.unwrap_or(&no_pods);
    let written = present_fields([
        ("nodeAffinity", node_affinity(nodes)),
        ("podAffinity", pod_terms(&pods.required, &pods.preferred)),
        ("podAntiAffinity", pod_terms(&pods.anti_required, &pods.anti_preferred)),
    ]);
    (written != json!({})).then_some(written)
}

fn node_affinity(it: &NodeAffinity) -> Option<Value> {
    let required = it.required.as_ref().map(
        |terms| json!({ "nodeSelectorTerms": terms.iter().map(node_term).collect::<Vec<Value>>() }),
    );
    let preferred = listed(
        &it.preferred,
        |preferred| json!({ "weight": preferred.weight, "preference": node_term(&preferred.term) }),
    );
    with_both(required, preferred)
}

fn node_term(it: &NodeSelectorTerm) -> Value {
    present_fields([
        ("matchExpressions", requirements(&it.match_expressions)),
        ("matchFields", requirements(&it.match_fields)),
    ])
}

fn with_both(required: Option<Value>, preferred: Option<Value>) -> Option<Value> {
    let written = present_fields([
        ("requiredDuringSchedulingIgnoredDuringExecution", required),
        ("preferredDuringSchedulingIgnoredDuringExecution", preferred),
    ]);
    (written != json!({})).then_some(written)
}

fn pod_terms(required: &[PodTerm], preferred: &[PreferredPodTerm]) -> Option<Value> {
    let preferred = listed(
        preferred,
        |it| json!({ "weight": it.weight, "podAffinityTerm": pod_term(&it.term) }),
    );
    with_both(listed(required, pod_term), preferred)
}

fn pod_term(it: &PodTerm) -> Value {
    let PodSelector { namespaces, namespace_selector, labels } = &it.pods;
    present_fields([
        ("topologyKey", Some((&*it.topology_key).into())),
        ("labelSelector", labels.as_ref().map(label_selector)),
        ("namespaces", texts(namespaces)),
        ("namespaceSelector", namespace_selector.as_ref().map(label_selector)),
    ])
}

pub(super) fn spread(list: &[SpreadConstraint]) -> Option<Value> {
    let policy = |it: InclusionPolicy| match it {
        InclusionPolicy::Honor => "Honor",
        InclusionPolicy::Ignore => "Ignore",
    };
    let written = |it: &SpreadConstraint| {
        let when = match it.when {
            Unsatisfiable::DoNotSchedule => "DoNotSchedule",
            Unsatisfiable::ScheduleAnyway => "ScheduleAnyway",
        };
        present_fields([
            ("maxSkew", Some(it.max_skew.into())),
            ("topologyKey", Some((&*it.topology_key).into())),
            ("whenUnsatisfiable", Some(when.into())),
            ("labelSelector", it.labels.as_ref().map(label_selector)),
            ("minDomains", (it.min_domains != 1).then(|| it.min_domains.into())),
            ("nodeAffinityPolicy", Some(policy(it.node_affinity).into())),
            ("nodeTaintsPolicy", Some(policy(it.node_taints).into())),
        ])
    };
    listed(list, written)
}

fn effect(it: TaintEffect) -> &'static str {
    match it {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
        TaintEffect::Unknown => "Unknown",
    }
}

pub(super) fn taints(list: &[Taint]) -> Option<Value> {
    let written = |it: &Taint| {
        present_fields([
            ("key", Some((&*it.key).into())),
            ("value", nonempty(&it.value)),
            ("effect", Some(effect(it.effect).into())),
        ])
    };
    listed(list, written)
}

pub(super) fn tolerations(list: &[Toleration]) -> Option<Value> {
    let written = |it: &Toleration| {
        let operator = match it.operator {
            TolerationOperator::Equal => "Equal",
            TolerationOperator::Exists => "Exists",
            TolerationOperator::Other => "Other",
        };
        present_fields([
            ("key", nonempty(&it.key)),
            ("operator", Some(operator.into())),
            ("value", nonempty(&it.value)),
            ("effect", it.effect.map(|it| effect(it).into())),
        ])
    };
    listed(list, written)
}

//! Selectors, affinity, taints and tolerations as decoded. What an operator or effect means is the
//! filters' business. Specification: plugins-nodes.md 3.1-3.3.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{
    LabelSelector, NodeAffinity, NodeSelectorTerm, Operator, PreferredTerm, Requirement, Taint,
    TaintEffect, Toleration, TolerationOperator,
};

use crate::brief::Brief;
use crate::pod_terms::SlimPodTerms;
use crate::problems::{Path, Problems};
use crate::soft::{Entries, List, Soft, object};

/// A requirement of a label or node selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimRequirement {
    pub key: Soft<Arc<str>>,
    pub operator: Soft<Arc<str>>,
    pub values: List<Arc<str>>,
}

/// A `metav1.LabelSelector`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimLabelSelector {
    pub match_labels: Soft<Entries<Arc<str>>>,
    pub match_expressions: List<SlimRequirement>,
}

/// A term of a node selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimTerm {
    pub match_expressions: List<SlimRequirement>,
    pub match_fields: List<SlimRequirement>,
}

/// `spec.affinity`, as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimAffinity {
    pub node_affinity: Soft<SlimNodeAffinity>,
    pub pod_affinity: Soft<SlimPodTerms>,
    pub pod_anti_affinity: Soft<SlimPodTerms>,
}

/// `spec.affinity.nodeAffinity`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Soft<SlimNodeSelector>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: List<SlimPreferred>,
}

/// A `v1.NodeSelector`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimNodeSelector {
    pub node_selector_terms: List<SlimTerm>,
}

/// A weighted node selector term.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPreferred {
    pub weight: Soft<i32>,
    pub preference: Soft<SlimTerm>,
}

/// A toleration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimToleration {
    pub key: Soft<Arc<str>>,
    pub operator: Soft<Brief>,
    pub value: Soft<Arc<str>>,
    pub effect: Soft<Brief>,
}

/// A taint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimTaint {
    pub key: Soft<Arc<str>>,
    pub value: Soft<Arc<str>>,
    pub effect: Soft<Brief>,
}

object!(
    SlimRequirement,
    SlimLabelSelector,
    SlimTerm,
    SlimAffinity,
    SlimNodeAffinity,
    SlimNodeSelector,
    SlimPreferred,
    SlimToleration {
        "key" => key,
        "operator" => operator,
        "value" => value,
        "effect" => effect,
    },
    SlimTaint,
);

pub(crate) fn label_selector(
    slim: SlimLabelSelector,
    path: &Path<'_>,
    problems: &mut Problems,
) -> LabelSelector {
    let expressions = path.field("matchExpressions");
    LabelSelector {
        match_labels: problems.labels(slim.match_labels, &path.field("matchLabels")),
        match_expressions: requirements(slim.match_expressions, &expressions, problems),
    }
}

pub(crate) fn node_affinity(
    slim: Soft<SlimNodeAffinity>,
    affinity: &Path<'_>,
    problems: &mut Problems,
) -> NodeAffinity {
    let path = affinity.field("nodeAffinity");
    let slim = problems.or_default(slim, &path);
    let required = path.field("requiredDuringSchedulingIgnoredDuringExecution");
    let preferred = path.field("preferredDuringSchedulingIgnoredDuringExecution");
    let required_terms = { problems.read(slim.required, &required) }
        .map(|selector| node_selector(selector, &required, problems));
    let preferred = problems.list(slim.preferred, &preferred, |problems, slim, path| {
        let preference = path.field("preference");
        PreferredTerm {
            weight: problems.or_default(slim.weight, &path.field("weight")),
            term: term(problems.or_default(slim.preference, &preference), &preference, problems),
        }
    });
    NodeAffinity { required: required_terms, preferred }
}

/// The terms of a node selector.
pub(crate) fn node_selector(
    slim: SlimNodeSelector,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Vec<NodeSelectorTerm> {
    let path = path.field("nodeSelectorTerms");
    problems
        .list(slim.node_selector_terms, &path, |problems, slim, path| term(slim, path, problems))
}

fn term(slim: SlimTerm, path: &Path<'_>, problems: &mut Problems) -> NodeSelectorTerm {
    let expressions = path.field("matchExpressions");
    let fields = path.field("matchFields");
    NodeSelectorTerm {
        match_expressions: requirements(slim.match_expressions, &expressions, problems),
        match_fields: requirements(slim.match_fields, &fields, problems),
    }
}

fn requirements(
    slim: List<SlimRequirement>,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Vec<Requirement> {
    problems.list(slim, path, |problems, slim, path| {
        let operator_path = path.field("operator");
        let text = problems.text(slim.operator, &operator_path);
        let operator = operator(&text);
        if operator == Operator::Unknown {
            problems.note(&operator_path, &format!("unknown operator: {text:?}\n{OPERATORS}"));
        }
        Requirement {
            key: problems.text(slim.key, &path.field("key")),
            operator,
            values: problems.texts(slim.values, &path.field("values")),
        }
    })
}

const OPERATORS: &str = "hint: use In, NotIn, Exists or DoesNotExist, for nodes also Gt or Lt";

fn operator(text: &str) -> Operator {
    match text {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        _ => Operator::Unknown,
    }
}

pub(crate) fn tolerations(
    slim: List<SlimToleration>,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Vec<Toleration> {
    problems.list(slim, path, |problems, slim, path| {
        let operator = problems.or_default(slim.operator, &path.field("operator"));
        let effect = problems.or_default(slim.effect, &path.field("effect"));
        Toleration {
            key: problems.text(slim.key, &path.field("key")),
            operator: match &*operator {
                "" | "Equal" => TolerationOperator::Equal,
                "Exists" => TolerationOperator::Exists,
                _ => TolerationOperator::Other,
            },
            value: problems.text(slim.value, &path.field("value")),
            effect: (!effect.is_empty()).then(|| taint_effect(&effect)),
        }
    })
}

pub(crate) fn taints(
    slim: List<SlimTaint>,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Vec<Taint> {
    problems.list(slim, path, |problems, slim, path| Taint {
        key: problems.text(slim.key, &path.field("key")),
        value: problems.text(slim.value, &path.field("value")),
        effect: taint_effect(&problems.or_default(slim.effect, &path.field("effect"))),
    })
}

fn taint_effect(text: &str) -> TaintEffect {
    match text {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        _ => TaintEffect::Unknown,
    }
}

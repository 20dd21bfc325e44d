//! Selectors, affinity, taints and tolerations as decoded. What an operator or effect means is the
//! filters' business. Specification: plugins-nodes.md 3.1-3.3.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{
    LabelSelector, NodeAffinity, NodeSelectorTerm, Operator, PreferredTerm, Requirement, Taint,
    TaintEffect, Toleration, TolerationOperator,
};

use crate::brief::ShortText;
use crate::pod_terms::SlimPodTerms;
use crate::problems::{FieldPath, Problems};
use crate::soft::{LenientField, LenientList, LenientMap, object};

/// A requirement of a label or node selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimRequirement {
    pub key: LenientField<Arc<str>>,
    pub operator: LenientField<Arc<str>>,
    pub values: LenientList<Arc<str>>,
}

/// A `metav1.LabelSelector`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimLabelSelector {
    pub match_labels: LenientField<LenientMap<Arc<str>>>,
    pub match_expressions: LenientList<SlimRequirement>,
}

/// A term of a node selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimTerm {
    pub match_expressions: LenientList<SlimRequirement>,
    pub match_fields: LenientList<SlimRequirement>,
}

/// `spec.affinity`, as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimAffinity {
    pub node_affinity: LenientField<SlimNodeAffinity>,
    pub pod_affinity: LenientField<SlimPodTerms>,
    pub pod_anti_affinity: LenientField<SlimPodTerms>,
}

/// `spec.affinity.nodeAffinity`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimNodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: LenientField<SlimNodeSelector>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: LenientList<SlimPreferred>,
}

/// A `v1.NodeSelector`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimNodeSelector {
    pub node_selector_terms: LenientList<SlimTerm>,
}

/// A weighted node selector term.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPreferred {
    pub weight: LenientField<i32>,
    pub preference: LenientField<SlimTerm>,
}

/// A toleration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimToleration {
    pub key: LenientField<Arc<str>>,
    pub operator: LenientField<ShortText>,
    pub value: LenientField<Arc<str>>,
    pub effect: LenientField<ShortText>,
}

/// A taint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimTaint {
    pub key: LenientField<Arc<str>>,
    pub value: LenientField<Arc<str>>,
    pub effect: LenientField<ShortText>,
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
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> LabelSelector {
    let expressions = path.field("matchExpressions");
    LabelSelector {
        match_labels: problems.labels(slim.match_labels, &path.field("matchLabels")),
        match_expressions: requirements(slim.match_expressions, &expressions, problems),
    }
}

pub(crate) fn node_affinity(
    slim: LenientField<SlimNodeAffinity>,
    affinity: &FieldPath<'_>,
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
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Vec<NodeSelectorTerm> {
    let path = path.field("nodeSelectorTerms");
    problems
        .list(slim.node_selector_terms, &path, |problems, slim, path| term(slim, path, problems))
}

fn term(slim: SlimTerm, path: &FieldPath<'_>, problems: &mut Problems) -> NodeSelectorTerm {
    let expressions = path.field("matchExpressions");
    let fields = path.field("matchFields");
    NodeSelectorTerm {
        match_expressions: requirements(slim.match_expressions, &expressions, problems),
        match_fields: requirements(slim.match_fields, &fields, problems),
    }
}

fn requirements(
    slim: LenientList<SlimRequirement>,
    path: &FieldPath<'_>,
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
    slim: LenientList<SlimToleration>,
    path: &FieldPath<'_>,
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
    slim: LenientList<SlimTaint>,
    path: &FieldPath<'_>,
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

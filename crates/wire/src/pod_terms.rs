//! Pod affinity and topology spread constraints of a pod. What the API server folds into selectors
//! when it admits a pod is folded here if it has not done so (objects of files have met none).
//! Specification: plugins-nodes.md 3.4, 4.8.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{
    InclusionPolicy, LabelSelector, Labels, Operator, PodAffinity, PodRecord, PodSelector, PodTerm,
    PreferredPodTerm, Requirement, SpreadConstraint, Unsatisfiable,
};

use crate::problems::{FieldPath, Problems};
use crate::selector::{SlimLabelSelector, label_selector};
use crate::soft::{LenientField, LenientList, object};

/// `podAffinity` or `podAntiAffinity`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimPodTerms {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: LenientList<SlimPodTerm>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: LenientList<SlimWeightedPodTerm>,
}

/// A `v1.PodAffinityTerm`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodTerm {
    pub label_selector: LenientField<SlimLabelSelector>,
    pub namespaces: LenientList<Arc<str>>,
    pub namespace_selector: LenientField<SlimLabelSelector>,
    pub topology_key: LenientField<Arc<str>>,
    pub match_label_keys: LenientList<Arc<str>>,
    pub mismatch_label_keys: LenientList<Arc<str>>,
}

/// A weighted pod affinity term.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimWeightedPodTerm {
    pub weight: LenientField<i32>,
    pub pod_affinity_term: LenientField<SlimPodTerm>,
}

/// A topology spread constraint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimSpread {
    pub max_skew: LenientField<i32>,
    pub topology_key: LenientField<Arc<str>>,
    pub when_unsatisfiable: LenientField<Arc<str>>,
    pub label_selector: LenientField<SlimLabelSelector>,
    pub min_domains: LenientField<i32>,
    pub node_affinity_policy: LenientField<Arc<str>>,
    pub node_taints_policy: LenientField<Arc<str>>,
    pub match_label_keys: LenientList<Arc<str>>,
}

object!(SlimPodTerms, SlimPodTerm, SlimWeightedPodTerm, SlimSpread);

/// Terms of both sides; `None`: there is no term.
pub(crate) fn pod_affinity(
    sides: [LenientField<SlimPodTerms>; 2],
    pod: &PodRecord,
    affinity: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<Arc<PodAffinity>> {
    let [near, away] = sides;
    let (required, preferred) = side(near, pod, &affinity.field("podAffinity"), problems);
    let (anti_required, anti_preferred) =
        side(away, pod, &affinity.field("podAntiAffinity"), problems);
    let found = PodAffinity { required, anti_required, preferred, anti_preferred };
    (found != PodAffinity::default()).then(|| found.into())
}

fn side(
    slim: LenientField<SlimPodTerms>,
    pod: &PodRecord,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> (Vec<PodTerm>, Vec<PreferredPodTerm>) {
    let slim = problems.or_default(slim, path);
    let required = path.field("requiredDuringSchedulingIgnoredDuringExecution");
    let required = problems
        .list(slim.required, &required, |problems, slim, path| term(slim, pod, path, problems));
    let preferred = path.field("preferredDuringSchedulingIgnoredDuringExecution");
    let preferred = problems.list(slim.preferred, &preferred, |problems, slim, path| {
        let term_path = path.field("podAffinityTerm");
        let weighted = problems.or_default(slim.pod_affinity_term, &term_path);
        PreferredPodTerm {
            weight: problems.or_default(slim.weight, &path.field("weight")),
            term: term(weighted, pod, &term_path, problems),
        }
    });
    (required, preferred)
}

fn term(
    slim: SlimPodTerm,
    pod: &PodRecord,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> PodTerm {
    let mut labels = selector(slim.label_selector, &path.field("labelSelector"), problems);
    for (keys, field, operator) in [
        (slim.match_label_keys, "matchLabelKeys", Operator::In),
        (slim.mismatch_label_keys, "mismatchLabelKeys", Operator::NotIn),
    ] {
        let keys = problems.texts(keys, &path.field(field));
        fold(&mut labels, &keys, operator, &pod.labels);
    }
    let by_labels = selector(slim.namespace_selector, &path.field("namespaceSelector"), problems);
    let mut namespaces = problems.texts(slim.namespaces, &path.field("namespaces"));
    if namespaces.is_empty() && by_labels.is_none() {
        namespaces.push(pod.key.namespace.clone());
    }
    namespaces.sort_unstable();
    namespaces.dedup();
    PodTerm {
        pods: PodSelector { namespaces, namespace_selector: by_labels, labels },
        topology_key: topology_key(slim.topology_key, path, problems),
    }
}

/// `None`: absent, which is not the same as empty.
fn selector(
    slim: LenientField<SlimLabelSelector>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<LabelSelector> {
    problems.read(slim, path).map(|slim| label_selector(slim, path, problems))
}

fn topology_key(
    slim: LenientField<Arc<str>>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Arc<str> {
    let path = path.field("topologyKey");
    let key = problems.text(slim, &path);
    if key.is_empty() {
        problems.add(&path, "must name a label of nodes, is empty");
    }
    key
}

/// Adds a requirement on the pod's own value of each key that it has, unless there is one.
fn fold(selector: &mut Option<LabelSelector>, keys: &[Arc<str>], operator: Operator, own: &Labels) {
    let Some(selector) = selector else { return };
    for key in keys {
        let Some(value) = own.get(key) else { continue };
        let rules = &mut selector.match_expressions;
        if !rules.iter().any(|rule| rule.key == *key && rule.operator == operator) {
            let values = vec![value.clone()];
            rules.push(Requirement { key: key.clone(), operator, values });
        }
    }
}

pub(crate) fn spread(
    slim: LenientList<SlimSpread>,
    own: &Labels,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Vec<SpreadConstraint> {
    problems.list(slim, path, |problems, slim, path| {
        let mut labels = selector(slim.label_selector, &path.field("labelSelector"), problems);
        let keys = problems.texts(slim.match_label_keys, &path.field("matchLabelKeys"));
        fold(&mut labels, &keys, Operator::In, own);
        let min_domains = match slim.min_domains {
            LenientField::Absent => 1,
            given => at_least_one(given, &path.field("minDomains"), problems),
        };
        let default = SpreadConstraint::default();
        let affinity = path.field("nodeAffinityPolicy");
        let taints = path.field("nodeTaintsPolicy");
        SpreadConstraint {
            max_skew: at_least_one(slim.max_skew, &path.field("maxSkew"), problems),
            topology_key: topology_key(slim.topology_key, path, problems),
            when: when(slim.when_unsatisfiable, &path.field("whenUnsatisfiable"), problems),
            labels,
            min_domains,
            node_affinity: policy(
                slim.node_affinity_policy,
                default.node_affinity,
                &affinity,
                problems,
            ),
            node_taints: policy(slim.node_taints_policy, default.node_taints, &taints, problems),
        }
    })
}

fn at_least_one(slim: LenientField<i32>, path: &FieldPath<'_>, problems: &mut Problems) -> i32 {
    let number = problems.or_default(slim, path);
    if number < 1 {
        problems.add(path, &format!("must be at least 1: {number}"));
    }
    number
}

fn when(
    slim: LenientField<Arc<str>>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Unsatisfiable {
    match &*problems.text(slim, path) {
        "" | "DoNotSchedule" => Unsatisfiable::DoNotSchedule,
        "ScheduleAnyway" => Unsatisfiable::ScheduleAnyway,
        other => {
            problems.add(path, &format!("must be DoNotSchedule or ScheduleAnyway: {other:?}"));
            Unsatisfiable::DoNotSchedule
        }
    }
}

fn policy(
    slim: LenientField<Arc<str>>,
    default: InclusionPolicy,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> InclusionPolicy {
    match &*problems.text(slim, path) {
        "" => default,
        "Honor" => InclusionPolicy::Honor,
        "Ignore" => InclusionPolicy::Ignore,
        other => {
            problems.add(path, &format!("must be Honor or Ignore: {other:?}"));
            default
        }
    }
}

#[cfg(test)]
mod tests {
    use vc_model::PodRecord;

    use super::*;
    use crate::SlimPod;

    fn read(spec: &str) -> (PodRecord, Vec<String>) {
        let text = format!(
            r#"{{"metadata": {{"name": "p", "namespace": "d", "uid": "u",
                 "labels": {{"hash": "7"}}}}, "spec": {spec}}}"#
        );
        let pod: SlimPod = serde_json::from_str(&text).unwrap();
        pod.to_record().unwrap()
    }

    fn anti(term: &str) -> (PodRecord, Vec<String>) {
        read(&format!(
            r#"{{"affinity": {{"podAntiAffinity": {{
                "requiredDuringSchedulingIgnoredDuringExecution": [{term}]}}}}}}"#
        ))
    }

    fn terms(pod: &PodRecord) -> &[PodTerm] {
        &pod.pod_affinity.as_ref().unwrap().anti_required
    }

    #[test]
    fn nodes_38_namespaces_default_to_the_pods_own() {
        let (pod, problems) = anti(r#"{"topologyKey": "zone", "labelSelector": {}}"#);
        let own = &terms(&pod)[0].pods;
        assert_eq!((&own.namespaces[..], problems.len()), (&["d".into()][..], 0));
        assert_eq!(own.labels, Some(LabelSelector::default()));
        let (pod, _) = anti(r#"{"topologyKey": "zone", "namespaceSelector": {}}"#);
        let all = &terms(&pod)[0].pods;
        assert!(all.namespaces.is_empty() && all.namespace_selector.is_some());
        assert_eq!(all.labels, None);
    }

    #[test]
    fn keys_are_folded_once() {
        let folded = |expressions: &str| {
            let (pod, _) = anti(&format!(
                r#"{{"topologyKey": "zone", "matchLabelKeys": ["hash", "none"],
                     "labelSelector": {{"matchExpressions": [{expressions}]}}}}"#
            ));
            terms(&pod)[0].pods.labels.clone().unwrap().match_expressions
        };
        let rule = |value: &str| Requirement {
            key: "hash".into(),
            operator: Operator::In,
            values: vec![value.into()],
        };
        assert_eq!(folded(""), [rule("7")]);
        let by_server = r#"{"key": "hash", "operator": "In", "values": ["6"]}"#;
        assert_eq!(folded(by_server), [rule("6")], "as it was when the pod was admitted");
        let (pod, _) = anti(r#"{"topologyKey": "zone", "mismatchLabelKeys": ["hash"]}"#);
        assert_eq!(terms(&pod)[0].pods.labels, None, "no selector stays no selector");
    }

    #[test]
    fn nodes_45_defaults_and_keys_of_a_constraint() {
        let (pod, problems) = read(
            r#"{"topologySpreadConstraints": [
                {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
                 "labelSelector": {}, "matchLabelKeys": ["hash"]},
                {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule",
                 "minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}]}"#,
        );
        assert_eq!(problems, [""; 0]);
        let [soft, hard] = &pod.spread[..] else { panic!("two") };
        assert_eq!(
            (soft.max_skew, soft.min_domains, soft.when),
            (2, 1, Unsatisfiable::ScheduleAnyway)
        );
        assert_eq!(soft.node_affinity, InclusionPolicy::Honor);
        assert_eq!(soft.node_taints, InclusionPolicy::Ignore);
        assert_eq!(soft.labels.as_ref().unwrap().match_expressions.len(), 1);
        assert_eq!((hard.min_domains, hard.labels.is_none()), (3, true));
        assert_eq!(hard.node_affinity, InclusionPolicy::Ignore);
        assert_eq!(hard.node_taints, InclusionPolicy::Honor);
    }

    #[test]
    fn what_no_server_stores_is_named_and_the_pod_waits() {
        for (constraint, expected) in [
            (r#"{"maxSkew": 0, "topologyKey": "z"}"#, "[0].maxSkew: must be at least 1: 0"),
            (r#"{"maxSkew": 1}"#, "[0].topologyKey: must name a label of nodes, is empty"),
            (
                r#"{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "Never"}"#,
                "[0].whenUnsatisfiable: must be DoNotSchedule or ScheduleAnyway: \"Never\"",
            ),
            (
                r#"{"maxSkew": 1, "topologyKey": "z", "nodeTaintsPolicy": "No"}"#,
                "[0].nodeTaintsPolicy: must be Honor or Ignore: \"No\"",
            ),
        ] {
            let (pod, _) = read(&format!(r#"{{"topologySpreadConstraints": [{constraint}]}}"#));
            let expected = format!("spec.topologySpreadConstraints{expected}");
            assert_eq!(pod.invalid.as_deref(), Some(&*expected));
        }
        let (pod, problems) = anti(
            r#"{"topologyKey": "z", "labelSelector": {"matchExpressions":
                [{"key": "a", "operator": "Near"}]}}"#,
        );
        assert_eq!((pod.invalid, problems.len()), (None, 1), "the filter has a rule for it");
        assert!(problems[0].contains("unknown operator: \"Near\""), "{problems:?}");
    }
}

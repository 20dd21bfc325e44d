//! NodeAffinity: node selector and required terms as a filter, preferred terms as a score. It reads
//! pod and node object only.
//! Specification: plugins-nodes.md 4.2, 7.5.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_model::node_selector::{
    NAME_FIELD, is_empty, malformed, required_matches, term_matches, unmet_keys,
};
use vc_model::{Class, Code, Finding, Node, NodeSelectorTerm, Operator, PreferredTerm};

use crate::rule::{Pod, PreFilter};

const REASON: &str = "node(s) didn't match Pod's node affinity/selector";
const CONFLICT: &str = "pod affinity terms conflict";

/// Runs the pre-filter. It skips pods without a required part; an empty node selector is one. It
/// refuses a pod whose terms by `metadata.name` exclude every node.
pub fn pre_filter(pod: Pod<'_>) -> PreFilter<'_> {
    if skips_filter(pod.class) {
        return PreFilter::Skip;
    }
    match conflict(pod.class) {
        Some(finding) => PreFilter::Refuse(finding),
        None => PreFilter::by_class(pod, filter),
    }
}

/// True if the class has no node selector and no required term.
pub fn skips_filter(class: &Class) -> bool {
    class.node_affinity.required.is_none() && class.node_selector.is_none()
}

fn conflict(class: &Class) -> Option<Finding> {
    let terms = class.node_affinity.required.as_deref().unwrap_or_default();
    let is_empty = !terms.is_empty() && terms.iter().all(names_no_node);
    is_empty.then(|| Finding::new(Code::Unresolvable, CONFLICT))
}

/// True if the term restricts `metadata.name` to contradicting values.
fn names_no_node(term: &NodeSelectorTerm) -> bool {
    let lists = || {
        let fields = term.match_fields.iter();
        fields.filter(|rule| rule.operator == Operator::In && &*rule.key == NAME_FIELD)
    };
    let Some(first) = lists().next() else {
        return false;
    };
    let is_in_all = |name| lists().all(|rule| rule.values.contains(name));
    !first.values.iter().any(is_in_all)
}

/// Returns the finding against the node. Returns `None` if it passes.
pub fn filter(class: &Class, node: &Node) -> Option<Finding> {
    let terms = class.node_affinity.required.as_deref();
    (!required_matches(class.node_selector.as_ref(), terms, node))
        .then(|| Finding::new(Code::Unresolvable, REASON))
}

/// Returns the keys of the node selector and of required terms that the node does not meet.
/// Returns `None` if the node passes. The set is empty if no label could make the node pass.
pub fn failing_keys(class: &Class, node: &Node) -> Option<BTreeSet<Arc<str>>> {
    filter(class, node)?;
    let terms = class.node_affinity.required.as_deref();
    Some(unmet_keys(class.node_selector.as_ref(), terms, node))
}

/// True if the class has no preferred term.
pub fn skips_score(class: &Class) -> bool {
    class.node_affinity.preferred.is_empty()
}

/// Checks that all preferred terms can be parsed. It must be called once before [`score`].
///
/// # Errors
///
/// The text names the malformed requirement.
pub fn pre_score(class: &Class) -> Result<(), String> {
    match preferred(class).find_map(|preferred| malformed(&preferred.term)) {
        None => Ok(()),
        Some(rule) => Err(format!(
            "malformed requirement in a preferred node affinity term: key {}, operator {:?}, \
             values {:?}",
            rule.key, rule.operator, rule.values,
        )),
    }
}

/// Returns the sum of the weights of matching preferred terms. It must be normalized with the
/// highest as best.
pub fn score(class: &Class, node: &Node) -> i64 {
    let matching = preferred(class).filter(|preferred| term_matches(&preferred.term, node));
    matching.map(|preferred| i64::from(preferred.weight)).sum()
}

/// Returns the preferred terms without empty ones and those of weight 0.
fn preferred(class: &Class) -> impl Iterator<Item = &PreferredTerm> {
    let terms = class.node_affinity.preferred.iter();
    terms.filter(|preferred| preferred.weight != 0 && !is_empty(&preferred.term))
}

#[cfg(test)]
mod tests {
    use vc_model::Shape;

    use super::*;
    use crate::testing::{fields, labels, node, requiring, rule};

    fn named(names: &[&str]) -> vc_model::Requirement {
        rule(NAME_FIELD, Operator::In, names)
    }

    fn preferring(terms: Vec<(i32, NodeSelectorTerm)>) -> Class {
        let mut shape = Shape::default();
        let terms = terms.into_iter().map(|(weight, term)| PreferredTerm { weight, term });
        shape.node_affinity.preferred = terms.collect();
        shape.into()
    }

    fn zone(value: &str) -> NodeSelectorTerm {
        labels(vec![rule("zone", Operator::In, &[value])])
    }

    #[test]
    fn nodes_31_names_of_two_terms_are_united() {
        let class = requiring(vec![fields(vec![named(&["n1"])]), fields(vec![named(&["n2"])])]);
        assert_eq!(conflict(&class), None);
        let fits = |name| filter(&class, &node(name, &[])).is_none();
        assert_eq!(["n1", "n2", "n3"].map(fits), [true, true, false]);
    }

    #[test]
    fn nodes_31_names_of_one_term_must_agree() {
        let found = Some(Finding::new(Code::Unresolvable, "pod affinity terms conflict"));
        let contradiction = || fields(vec![named(&["n1"]), named(&["n2"])]);
        for (terms, expected) in [
            (vec![contradiction()], found.clone()),
            (vec![contradiction(), contradiction()], found),
            (vec![contradiction(), fields(vec![named(&["n3"])])], None),
            (vec![contradiction(), zone("a")], None),
            (vec![fields(vec![rule(NAME_FIELD, Operator::NotIn, &["n1"])])], None),
            (vec![], None),
        ] {
            assert_eq!(conflict(&requiring(terms)), expected);
        }
        assert_eq!(conflict(&Class::default()), None);
    }

    #[test]
    fn nodes_29_an_empty_selector_is_not_skipped() {
        assert!(skips_filter(&Class::default()));
        let empty = Shape { node_selector: Some([].into()), ..Shape::default() };
        assert!(!skips_filter(&empty.into()));
        assert!(!skips_filter(&requiring(vec![])));
    }

    #[test]
    fn the_reason_of_a_miss() {
        let text = "node(s) didn't match Pod's node affinity/selector";
        let found = filter(&requiring(vec![zone("a")]), &node("n", &[("zone", "b")]));
        assert_eq!(found, Some(Finding::new(Code::Unresolvable, text)));
    }

    #[test]
    fn nodes_90_weights_of_matching_terms_are_added() {
        let empty = NodeSelectorTerm::default();
        let class = preferring(vec![(5, zone("a")), (7, zone("b")), (3, zone("a")), (9, empty)]);
        assert_eq!(pre_score(&class), Ok(()));
        let score_in = |value| score(&class, &node("n", &[("zone", value)]));
        assert_eq!(["a", "b", "c"].map(score_in), [8, 7, 0]);
        assert!(!skips_score(&class));
        assert!(skips_score(&requiring(vec![zone("a")])));
    }

    #[test]
    fn a_malformed_preferred_term_is_an_error() {
        let bad = || labels(vec![rule("zone", Operator::Gt, &["x"])]);
        let text = "malformed requirement in a preferred node affinity term: key zone, operator \
                    Gt, values [\"x\"]";
        let of = |weight| pre_score(&preferring(vec![(1, zone("a")), (weight, bad())]));
        assert_eq!(of(1), Err(text.to_owned()));
        assert_eq!(of(0), Ok(()), "terms of weight 0 are not looked at");
    }
}

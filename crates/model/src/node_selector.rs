//! Matching of nodes with node selectors and node selector terms (plugins-nodes.md 3.2). A
//! requirement that cannot be parsed matches nothing; the other terms still count.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::node::Node;
use crate::selector::{Labels, NodeSelectorTerm, Operator, Requirement};

/// The only field that a term may name.
pub const NAME_FIELD: &str = "metadata.name";

/// True if the node matches the node selector and the required node affinity. An absent part always
/// matches.
pub fn required_matches(
    selector: Option<&Labels>,
    terms: Option<&[NodeSelectorTerm]>,
    node: &Node,
) -> bool {
    let mut wanted = selector.into_iter().flatten();
    if !wanted.all(|(key, value)| node.labels.get(key) == Some(value)) {
        return false;
    }
    terms.is_none_or(|terms| terms.iter().any(|term| term_matches(term, node)))
}

/// Returns the keys that keep the node from matching the node selector and the required node
/// affinity. If no term matches, these are the keys of all terms that the node does not meet.
/// Without a key nothing of it can be met: the terms are empty, or there is none.
pub fn unmet_keys(
    selector: Option<&Labels>,
    terms: Option<&[NodeSelectorTerm]>,
    node: &Node,
) -> BTreeSet<Arc<str>> {
    let wanted = selector.into_iter().flatten();
    let unmet = wanted.filter(|(key, value)| node.labels.get(*key) != Some(*value));
    let mut keys: BTreeSet<Arc<str>> = unmet.map(|(key, _)| key.clone()).collect();
    let terms = terms.unwrap_or_default();
    if !terms.iter().any(|term| term_matches(term, node)) {
        for term in terms {
            let expressions = term.match_expressions.iter();
            let unmet = expressions.filter(|rule| !expression_matches(rule, &node.labels));
            keys.extend(unmet.map(|rule| rule.key.clone()));
            let fields = term.match_fields.iter();
            let unmet = fields.filter(|rule| !field_matches(rule, &node.name));
            keys.extend(unmet.map(|rule| rule.key.clone()));
        }
    }
    keys
}

/// True if the node meets all requirements of the term. An empty term matches nothing.
pub fn term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = || term.match_expressions.iter();
    let fields = || term.match_fields.iter();
    !is_empty(term)
        && expressions().all(|rule| expression_matches(rule, &node.labels))
        && fields().all(|rule| field_matches(rule, &node.name))
}

/// True if the labels alone meet one of the terms, as in the node affinity of a volume
/// (plugins-nodes.md 5.3).
pub fn labels_match(terms: &[NodeSelectorTerm], labels: &Labels) -> bool {
    let holds = |term: &NodeSelectorTerm| {
        let mut expressions = term.match_expressions.iter();
        !is_empty(term)
            && term.match_fields.is_empty()
            && expressions.all(|rule| expression_matches(rule, labels))
    };
    terms.iter().any(holds)
}

/// True if the term has neither expressions nor fields.
pub fn is_empty(term: &NodeSelectorTerm) -> bool {
    term.match_expressions.is_empty() && term.match_fields.is_empty()
}

/// Returns the first requirement that cannot be parsed. Returns `None` if there is none.
pub fn malformed(term: &NodeSelectorTerm) -> Option<&Requirement> {
    let expressions = term.match_expressions.iter();
    let fields = term.match_fields.iter();
    let bad_expression = expressions.filter(|rule| !is_expression(rule));
    bad_expression.chain(fields.filter(|rule| !is_field(rule))).next()
}

fn is_expression(rule: &Requirement) -> bool {
    match rule.operator {
        Operator::In | Operator::NotIn => !rule.values.is_empty(),
        Operator::Exists | Operator::DoesNotExist => rule.values.is_empty(),
        Operator::Gt | Operator::Lt => bound(rule).is_some(),
        Operator::Unknown => false,
    }
}

fn is_field(rule: &Requirement) -> bool {
    let compares = matches!(rule.operator, Operator::In | Operator::NotIn);
    compares && &*rule.key == NAME_FIELD && rule.values.len() == 1
}

fn expression_matches(rule: &Requirement, labels: &Labels) -> bool {
    let label = labels.get(&rule.key);
    let is_listed = || label.is_some_and(|value| rule.values.contains(value));
    match rule.operator {
        Operator::In => is_listed(),
        Operator::NotIn => !rule.values.is_empty() && !is_listed(),
        Operator::Exists => rule.values.is_empty() && label.is_some(),
        Operator::DoesNotExist => rule.values.is_empty() && label.is_none(),
        Operator::Gt => compares(rule, label, |value, bound| bound < value),
        Operator::Lt => compares(rule, label, |value, bound| value < bound),
        Operator::Unknown => false,
    }
}

fn compares(
    rule: &Requirement,
    label: Option<&Arc<str>>,
    holds: impl Fn(i64, i64) -> bool,
) -> bool {
    let value = label.and_then(|text| text.parse().ok());
    value.zip(bound(rule)).is_some_and(|(value, bound)| holds(value, bound))
}

/// Returns the integer that `Gt` or `Lt` compares with. Returns `None` unless there is exactly one
/// value, an integer.
fn bound(rule: &Requirement) -> Option<i64> {
    match rule.values.as_slice() {
        [text] => text.parse().ok(),
        _ => None,
    }
}

fn field_matches(rule: &Requirement, name: &str) -> bool {
    let is_named = || rule.values.iter().any(|value| &**value == name);
    is_field(rule) && is_named() == (rule.operator == Operator::In)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::parts::{fields, labels, node, rule};

    fn matches_of(operator: Operator, values: &[&str], found: &[Option<&str>]) -> Vec<bool> {
        let term = labels(vec![rule("k", operator, values)]);
        let node_of = |value: &Option<&str>| match value {
            Some(value) => node("n", &[("k", value)]),
            None => node("n", &[]),
        };
        found.iter().map(|value| term_matches(&term, &node_of(value))).collect()
    }

    #[test]
    fn nodes_29_selector_and_terms() {
        let zone = |value| labels(vec![rule("zone", Operator::In, &[value])]);
        let pairs = |pairs: &[(&str, &str)]| Some(node("", pairs).labels);
        let beside = Some(vec![labels(vec![]), zone("a")]);
        for (what, selector, terms, expected) in [
            ("no constraint", None, None, true),
            ("empty selector", pairs(&[]), None, true),
            ("selector", pairs(&[("zone", "a")]), None, true),
            ("selector, other value", pairs(&[("zone", "b")]), None, false),
            ("selector, no label", pairs(&[("zone", "a"), ("disk", "ssd")]), None, false),
            ("no terms", None, Some(vec![]), false),
            ("empty term", None, Some(vec![labels(vec![])]), false),
            ("empty term beside a match", None, beside, true),
            ("or", None, Some(vec![zone("b"), zone("a")]), true),
            ("neither", None, Some(vec![zone("b"), zone("c")]), false),
            ("selector and terms", pairs(&[("disk", "ssd")]), Some(vec![zone("a")]), false),
        ] {
            let here = node("n", &[("zone", "a")]);
            let found = required_matches(selector.as_ref(), terms.as_deref(), &here);
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn nodes_30_comparisons() {
        let found = [Some("6"), Some("5"), Some("abc"), None, Some("-7"), Some("6.0")];
        let greater = [true, false, false, false, false, false];
        assert_eq!(matches_of(Operator::Gt, &["5"], &found), greater);
        let less = [false, false, false, false, true, false];
        assert_eq!(matches_of(Operator::Lt, &["5"], &found), less);
        let not_in = [false, true, true];
        assert_eq!(matches_of(Operator::NotIn, &["a"], &[Some("a"), Some("b"), None]), not_in);
        assert_eq!(matches_of(Operator::Exists, &[], &[Some("a"), None]), [true, false]);
        assert_eq!(matches_of(Operator::DoesNotExist, &[], &[Some("a"), None]), [false, true]);
    }

    #[test]
    fn a_malformed_requirement_matches_nothing_and_is_named() {
        let found = [Some("5"), None];
        for (operator, values) in [
            (Operator::In, &[][..]),
            (Operator::NotIn, &[]),
            (Operator::Exists, &["5"]),
            (Operator::DoesNotExist, &["5"]),
            (Operator::Gt, &["x"]),
            (Operator::Lt, &["6", "7"]),
            (Operator::Gt, &["9223372036854775808"]),
            (Operator::Unknown, &["5"]),
        ] {
            assert_eq!(matches_of(operator, values, &found), [false, false], "{operator:?}");
            let term = labels(vec![rule("ok", Operator::Exists, &[]), rule("k", operator, values)]);
            assert_eq!(malformed(&term).map(|rule| &*rule.key), Some("k"), "{operator:?}");
        }
        assert_eq!(malformed(&labels(vec![rule("k", Operator::Gt, &["-5"])])), None);
    }

    #[test]
    fn fields_know_the_name_only() {
        let here = node("n1", &[]);
        for (key, operator, values, expected) in [
            (NAME_FIELD, Operator::In, &["n1"][..], true),
            (NAME_FIELD, Operator::In, &["n2"], false),
            (NAME_FIELD, Operator::NotIn, &["n2"], true),
            (NAME_FIELD, Operator::NotIn, &["n1"], false),
            (NAME_FIELD, Operator::In, &["n1", "n2"], false),
            (NAME_FIELD, Operator::NotIn, &[], false),
            (NAME_FIELD, Operator::Exists, &["n1"], false),
            ("metadata.namespace", Operator::NotIn, &["x"], false),
        ] {
            let term = fields(vec![rule(key, operator, values)]);
            assert_eq!(term_matches(&term, &here), expected, "{key} {operator:?} {values:?}");
        }
    }

    #[test]
    fn expressions_and_fields_are_anded() {
        let mut term = labels(vec![rule("zone", Operator::In, &["a"])]);
        term.match_fields = vec![rule(NAME_FIELD, Operator::In, &["n1"])];
        assert!(term_matches(&term, &node("n1", &[("zone", "a")])));
        assert!(!term_matches(&term, &node("n2", &[("zone", "a")])));
        assert!(!term_matches(&term, &node("n1", &[("zone", "b")])));
    }
}

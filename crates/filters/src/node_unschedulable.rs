//! NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon. It reads pod and
//! node object only.
//! Specification: plugins-nodes.md 4.1.

use vc_model::{Class, Code, Finding, Node, TaintEffect, any_tolerates};

const REASON: &str = "node(s) were unschedulable";
/// The taint (key, value and effect) that is equivalent to `spec.unschedulable`.
pub const CORDON: (&str, &str, TaintEffect) =
    ("node.kubernetes.io/unschedulable", "", TaintEffect::NoSchedule);

/// Returns the finding against the node. Returns `None` if it passes.
pub fn filter(class: &Class, node: &Node) -> Option<Finding> {
    if !node.unschedulable || any_tolerates(&class.tolerations, CORDON) {
        return None;
    }
    Some(Finding::new(Code::Unresolvable, REASON))
}

#[cfg(test)]
mod tests {
    use vc_model::TolerationOperator::{Equal, Exists};

    use super::*;
    use crate::testing::{node, tolerating, toleration};

    #[test]
    fn nodes_25_only_who_tolerates_the_cordon_gets_in() {
        let cordoned = Node { unschedulable: true, ..node("n", &[]) };
        let refused = Some(Finding::new(Code::Unresolvable, "node(s) were unschedulable"));
        for (class, expected) in [
            (tolerating(&[]), refused.clone()),
            (tolerating(&[toleration("", Exists, "", None)]), None),
            (tolerating(&[toleration(CORDON.0, Equal, "", None)]), None),
            (
                tolerating(&[toleration(CORDON.0, Exists, "", Some(TaintEffect::NoExecute))]),
                refused,
            ),
        ] {
            assert_eq!(filter(&class, &cordoned), expected);
            assert_eq!(filter(&class, &node("n", &[])), None);
        }
    }
}

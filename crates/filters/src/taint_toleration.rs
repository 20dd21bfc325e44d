//! TaintToleration: `NoSchedule` and `NoExecute` taints as a filter, `PreferNoSchedule` taints as a
//! score. It reads pod and node object only.
//! Specification: plugins-nodes.md 4.4, 7.6.

use vc_model::{Class, Code, Finding, Node, Taint, TaintEffect, any_tolerates};

const REASON: &str = "node(s) had untolerated taint(s)";

/// Returns the finding against the node. Returns `None` if it passes.
pub fn filter(class: &Class, node: &Node) -> Option<Finding> {
    let is_refused = refusing(class, node).next().is_some();
    is_refused.then(|| Finding::new(Code::Unresolvable, REASON))
}

/// Returns the taints of the node that keep the pod off it.
pub fn refusing<'a>(class: &'a Class, node: &'a Node) -> impl Iterator<Item = &'a Taint> {
    node.taints.iter().filter(|taint| {
        matches!(taint.effect, TaintEffect::NoSchedule | TaintEffect::NoExecute)
            && !is_tolerated(class, taint)
    })
}

/// Returns the number of `PreferNoSchedule` taints that the pod does not tolerate. It must be
/// normalized with the lowest as best.
pub fn score(class: &Class, node: &Node) -> i64 {
    let repels = |taint: &&Taint| {
        taint.effect == TaintEffect::PreferNoSchedule && !is_tolerated(class, taint)
    };
    node.taints.iter().filter(repels).map(|_| 1).sum()
}

fn is_tolerated(class: &Class, taint: &Taint) -> bool {
    any_tolerates(&class.tolerations, (&taint.key, &taint.value, taint.effect))
}

#[cfg(test)]
mod tests {
    use TaintEffect::{NoExecute, NoSchedule, PreferNoSchedule, Unknown};
    use vc_model::TolerationOperator::Exists;

    use super::*;
    use crate::testing::{node, taint, tolerating, toleration};

    fn tainted(effects: &[TaintEffect]) -> Node {
        let taints = effects.iter().map(|&effect| taint("k", "v", effect));
        Node { taints: taints.collect(), ..node("n", &[]) }
    }

    #[test]
    fn nodes_28_only_hard_taints_refuse() {
        let refused = Some(Finding::new(Code::Unresolvable, "node(s) had untolerated taint(s)"));
        for (effects, expected) in [
            (&[][..], None),
            (&[PreferNoSchedule], None),
            (&[Unknown], None),
            (&[PreferNoSchedule, NoSchedule], refused.clone()),
            (&[NoExecute], refused.clone()),
        ] {
            assert_eq!(filter(&tolerating(&[]), &tainted(effects)), expected, "{effects:?}");
        }
        let partly = tolerating(&[toleration("k", Exists, "", Some(NoSchedule))]);
        assert_eq!(filter(&partly, &tainted(&[NoSchedule])), None);
        assert_eq!(filter(&partly, &tainted(&[NoSchedule, NoExecute])), refused);
    }

    #[test]
    fn nodes_90_soft_taints_are_counted() {
        let soft = tainted(&[PreferNoSchedule, NoSchedule, PreferNoSchedule]);
        let tolerates = |effect| tolerating(&[toleration("k", Exists, "", effect)]);
        assert_eq!(score(&tolerating(&[]), &soft), 2);
        assert_eq!(score(&tolerates(None), &soft), 0);
        assert_eq!(score(&tolerates(Some(PreferNoSchedule)), &soft), 0);
        assert_eq!(score(&tolerates(Some(NoSchedule)), &soft), 2);
    }
}

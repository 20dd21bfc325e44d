//! What a filter says about a pod and a node.

use vc_filters::{Pod, PreFilter};
use vc_model::{Cluster, Code, fixture};

pub(crate) type Rule = for<'a> fn(Pod<'a>) -> PreFilter<'a>;

pub(crate) fn pod<'a>(cluster: &'a Cluster, task: &str) -> Pod<'a> {
    Pod::new(cluster, fixture::task(cluster, task))
}

/// `Ok`: it fits; an error is the finding about the node, or about the pod as a whole.
pub(crate) fn ask(
    cluster: &Cluster,
    rule: Rule,
    task: &str,
    node: &str,
) -> Result<(), (Code, String)> {
    assert_eq!(cluster.check(), Ok(()));
    unchecked(cluster, rule, task, node)
}

/// The same, of a cluster that is known to be right.
pub(crate) fn unchecked(
    cluster: &Cluster,
    rule: Rule,
    task: &str,
    node: &str,
) -> Result<(), (Code, String)> {
    let finding = match rule(pod(cluster, task)) {
        PreFilter::Skip => None,
        PreFilter::Refuse(finding) => Some(finding),
        PreFilter::Ask(filter) => filter(fixture::node(cluster, node)),
    };
    match finding {
        None => Ok(()),
        Some(finding) => Err((finding.code, finding.reason.text(&cluster.dims))),
    }
}

/// The text with which the pre-filter refuses the pod everywhere.
pub(crate) fn refusal(cluster: &Cluster, rule: Rule, task: &str) -> String {
    match rule(pod(cluster, task)) {
        PreFilter::Refuse(finding) => {
            assert_eq!(finding.code, Code::Unresolvable);
            finding.reason.text(&cluster.dims)
        }
        PreFilter::Skip => panic!("the pod is skipped"),
        PreFilter::Ask(_) => panic!("nodes are asked"),
    }
}

pub(crate) fn skips(cluster: &Cluster, rule: Rule, task: &str) -> bool {
    matches!(rule(pod(cluster, task)), PreFilter::Skip)
}

pub(crate) fn unresolvable(text: &str) -> Result<(), (Code, String)> {
    Err((Code::Unresolvable, text.to_owned()))
}

pub(crate) fn unschedulable(text: &str) -> Result<(), (Code, String)> {
    Err((Code::Unschedulable, text.to_owned()))
}

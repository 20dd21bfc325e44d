//! Why a task does not fit: codes, reasons, and their aggregation into the text that users read.
//! Specification: core.md 3.10, plugins-nodes.md 1.2-1.3, actions.md 10.2.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use vc_resource::{Dim, Dims};

use crate::ids::{Id, NodeId};

/// Severity of a finding (plugins-nodes.md 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// An error occurred; eviction cannot help.
    Error,
    /// Evicting pods may help.
    Unschedulable,
    /// Eviction cannot help.
    Unresolvable,
}

/// A reason as users read it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A fixed text.
    Text(&'static str),
    /// `Insufficient <resource>`.
    Insufficient(Dim),
    /// A text that contains data of the object.
    Owned(Arc<str>),
}

impl Reason {
    /// Returns the text; `dims` has the names of resources.
    pub fn text(&self, dims: &Dims) -> String {
        match self {
            Self::Text(text) => (*text).to_owned(),
            Self::Insufficient(dim) => format!("Insufficient {}", dims.name(*dim)),
            Self::Owned(text) => text.to_string(),
        }
    }
}

/// One finding about one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Severity of the finding.
    pub code: Code,
    /// Reason for users.
    pub reason: Reason,
}

impl Finding {
    /// Returns a finding with a fixed text.
    pub fn new(code: Code, text: &'static str) -> Self {
        Self { code, reason: Reason::Text(text) }
    }
}

/// Fit errors of one task: the number of nodes per reason, and the nodes where eviction cannot
/// help.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FitErrors {
    /// Text in place of the head `0/N nodes are unavailable`. `None` for that head.
    pub head: Option<String>,
    /// The HyperNode to which the search was limited. `None` if it was not limited, or limited to
    /// the root.
    pub hyper_node: Option<Arc<str>>,
    /// Number of nodes with findings.
    pub n_nodes: u32,
    /// Number of nodes per reason.
    pub reasons: BTreeMap<Reason, u32>,
    /// Nodes with at least one finding of code Unresolvable.
    unresolvable: NodeSet,
}

impl FitErrors {
    /// Returns fit errors with a fixed text and without nodes.
    pub fn fixed(head: impl Into<String>) -> Self {
        Self { head: Some(head.into()), ..Self::default() }
    }

    /// Returns fit errors with the same finding for each of `nodes`, as after a failed
    /// PrePredicate.
    pub fn everywhere(nodes: &[NodeId], finding: &Finding) -> Self {
        let mut errors = Self::default();
        for &node in nodes {
            errors.add(node, std::slice::from_ref(finding));
        }
        errors
    }

    /// Adds the findings of one node. The node must not have been added before.
    pub fn add(&mut self, node: NodeId, findings: &[Finding]) {
        self.n_nodes += 1;
        for finding in findings {
            match self.reasons.get_mut(&finding.reason) {
                Some(count) => *count += 1,
                None => {
                    self.reasons.insert(finding.reason.clone(), 1);
                }
            }
        }
        if findings.iter().any(|finding| finding.code == Code::Unresolvable) {
            self.unresolvable.insert(node);
        }
    }

    /// Adds the same findings for `n_nodes` nodes that were not added before. Where eviction cannot
    /// help, [`FitErrors::mark_unresolvable`] must follow for each node.
    pub fn add_many(&mut self, n_nodes: u32, findings: &[Finding]) {
        self.n_nodes += n_nodes;
        for finding in findings {
            *self.reasons.entry(finding.reason.clone()).or_default() += n_nodes;
        }
    }

    /// Records that eviction cannot help on this node.
    pub fn mark_unresolvable(&mut self, node: NodeId) {
        self.unresolvable.insert(node);
    }

    /// Returns the nodes on which eviction cannot help.
    pub fn unresolvable(&self) -> &NodeSet {
        &self.unresolvable
    }

    /// True if eviction cannot help on this node.
    pub fn is_unresolvable(&self, node: NodeId) -> bool {
        self.unresolvable.contains(node)
    }

    /// Returns the text of core.md 3.10. Reasons with empty text are skipped.
    pub fn text(&self, dims: &Dims) -> String {
        let default_head = || format!("0/{} nodes are unavailable", self.n_nodes);
        let mut text = match &self.hyper_node {
            Some(name) => format!("In hyperNode {name}: "),
            None => String::new(),
        };
        text.push_str(&self.head.clone().unwrap_or_else(default_head));
        let histogram = self.histogram(dims);
        if self.n_nodes != 0 && !histogram.is_empty() {
            text.push_str(&format!(": {histogram}."));
        }
        text
    }

    /// Returns the number of nodes per reason as text. Reasons with equal text are counted
    /// together.
    fn histogram(&self, dims: &Dims) -> String {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for (reason, count) in &self.reasons {
            *counts.entry(reason.text(dims)).or_default() += count;
        }
        let named = counts.into_iter().filter(|(text, _)| !text.is_empty());
        joined(named.map(|(text, count)| format!("{count} {text}")).collect())
    }
}

/// A set of nodes as a bitmap. There may be one set for each waiting task, so sets must be small.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeSet(Vec<u64>);

impl NodeSet {
    /// Returns its size in bytes.
    pub fn n_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&bits| bits == 0)
    }

    fn insert(&mut self, node: NodeId) {
        let (word, bit) = Self::place(node);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    /// Returns the nodes of the set by id.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            let index = move |bit: u32| NodeId::new((word * 64) as u32 + bit);
            (0..u64::BITS).filter(move |bit| bits & (1 << bit) != 0).map(index)
        })
    }

    /// True if the set contains the node.
    pub fn contains(&self, node: NodeId) -> bool {
        let (word, bit) = Self::place(node);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }

    fn place(node: NodeId) -> (usize, u64) {
        (node.index() / 64, 1 << (node.index() % 64))
    }
}

/// Returns the entries, sorted as plain strings and joined by `, `.
pub fn joined(mut entries: Vec<String>) -> String {
    entries.sort_unstable();
    entries.join(", ")
}

/// Returns the text for one node: `task <ns>/<name> on node <node> fit failed: <reasons>` (core.md
/// 3.10).
pub fn single_node_text(
    task: &dyn fmt::Display,
    node: &str,
    findings: &[Finding],
    dims: &Dims,
) -> String {
    let reasons: Vec<String> = findings.iter().map(|finding| finding.reason.text(dims)).collect();
    format!("task {task} on node {node} fit failed: {}", reasons.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: &str = "node(s) pod number exceeded";

    fn node(index: u32) -> NodeId {
        NodeId::new(index)
    }

    fn finding(text: &'static str) -> Finding {
        Finding::new(Code::Unschedulable, text)
    }

    #[test]
    fn core_49_texts_of_fit_errors() {
        let dims = Dims::new();
        assert_eq!(FitErrors::default().text(&dims), "0/0 nodes are unavailable");
        let mut headed = FitErrors::fixed("fit failed");
        assert_eq!(headed.text(&dims), "fit failed");
        headed.add(node(0), &[finding(PODS)]);
        assert_eq!(headed.text(&dims), "fit failed: 1 node(s) pod number exceeded.");
        headed.hyper_node = Some("h".into());
        let expected = "In hyperNode h: fit failed: 1 node(s) pod number exceeded.";
        assert_eq!(headed.text(&dims), expected);
    }

    #[test]
    fn reasons_are_counted_by_text_and_sorted_as_text() {
        let mut dims = Dims::new();
        let gpu = dims.intern("nvidia.com/gpu").unwrap();
        let mut errors = FitErrors::default();
        for index in 0..10 {
            errors.add(node(index), &[finding("x")]);
        }
        let owned = Reason::Owned("Insufficient nvidia.com/gpu".into());
        errors.add(node(10), &[Finding { code: Code::Error, reason: owned }]);
        let short = Reason::Insufficient(gpu);
        errors.add(node(11), &[Finding { code: Code::Unschedulable, reason: short }, finding("")]);
        assert_eq!(
            errors.text(&dims),
            "0/12 nodes are unavailable: 10 x, 2 Insufficient nvidia.com/gpu."
        );
    }

    #[test]
    fn a_failed_pre_predicate_counts_for_every_node() {
        let nodes = [node(0), node(1), node(2)];
        let errors = FitErrors::everywhere(&nodes, &finding("no claim"));
        assert_eq!(errors.text(&Dims::new()), "0/3 nodes are unavailable: 3 no claim.");
    }

    #[test]
    fn unresolvable_nodes_are_remembered_one_by_one() {
        let mut errors = FitErrors::default();
        errors.add(node(200), &[finding("x"), Finding::new(Code::Unresolvable, "taint")]);
        errors.add(node(64), &[finding("x")]);
        errors.add(node(0), &[Finding::new(Code::Error, "broken")]);
        let unresolvable: Vec<u32> =
            (0..300).filter(|&index| errors.is_unresolvable(node(index))).collect();
        assert_eq!(unresolvable, [200]);
    }

    #[test]
    fn text_of_one_node() {
        let findings = [finding("a"), finding("b")];
        let text = single_node_text(&"ns/t", "n1", &findings, &Dims::new());
        assert_eq!(text, "task ns/t on node n1 fit failed: a, b");
    }
}

//! Why a task does not fit: codes, reasons, and their aggregation into the text that users read.
//! Specification: core.md 3.10, plugins-nodes.md 1.2-1.3, actions.md 10.2.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use vc_resource::{Dim, Dims};

use crate::ids::NodeId;

/// Class of a finding (plugins-nodes.md 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    Error,
    /// Evicting pods may help.
    Unschedulable,
    /// Eviction cannot help.
    Unresolvable,
}

/// A reason as users read it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    Text(&'static str),
    /// `Insufficient <resource>`.
    Insufficient(Dim),
    Owned(Arc<str>),
}

impl Reason {
    /// The text, with the names of resources from `dims`.
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
    pub code: Code,
    pub reason: Reason,
}

impl Finding {
    /// A finding with a fixed text.
    pub fn new(code: Code, text: &'static str) -> Self {
        Self { code, reason: Reason::Text(text) }
    }
}

/// Fit errors of one task: how many nodes have which reason, and which nodes eviction cannot help.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FitErrors {
    /// Replaces the head `0/N nodes are unavailable`.
    pub head: Option<String>,
    /// Nodes with an entry.
    pub n_nodes: u32,
    pub reasons: BTreeMap<Reason, u32>,
    /// Nodes with at least one finding of code Unresolvable, ascending.
    unresolvable: BTreeSet<NodeId>,
}

impl FitErrors {
    /// A fixed text without nodes.
    pub fn fixed(head: impl Into<String>) -> Self {
        Self { head: Some(head.into()), ..Self::default() }
    }

    /// The same finding for every one of `nodes`: a failed PrePredicate.
    pub fn everywhere(nodes: &[NodeId], finding: &Finding) -> Self {
        let mut errors = Self::default();
        for &node in nodes {
            errors.add(node, std::slice::from_ref(finding));
        }
        errors
    }

    /// Adds the findings of one node that was not added before.
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

    /// Whether eviction cannot help on this node.
    pub fn is_unresolvable(&self, node: NodeId) -> bool {
        self.unresolvable.contains(&node)
    }

    /// The text of core.md 3.10. Reasons with empty text are skipped.
    pub fn text(&self, dims: &Dims) -> String {
        let default_head = || format!("0/{} nodes are unavailable", self.n_nodes);
        let head = self.head.clone().unwrap_or_else(default_head);
        let counted = self.reasons.iter().map(|(reason, count)| (reason.text(dims), count));
        let entries = counted.filter(|(text, _)| !text.is_empty());
        let histogram = joined(entries.map(|(text, count)| format!("{count} {text}")).collect());
        match self.n_nodes == 0 || histogram.is_empty() {
            true => head,
            false => format!("{head}: {histogram}."),
        }
    }
}

/// Entries sorted as plain strings and joined by `, `.
pub fn joined(mut entries: Vec<String>) -> String {
    entries.sort_unstable();
    entries.join(", ")
}

/// Text for one node: `task <ns>/<name> on node <node> fit failed: <reasons>` (core.md 3.10).
pub fn single_node_text(
    task: &dyn fmt::Display,
    node: &str,
    findings: &[Finding],
    dims: &Dims,
) -> String {
    let reasons: Vec<String> = findings.iter().map(|finding| finding.reason.text(dims)).collect();
    format!("task {task} on node {node} fit failed: {}", reasons.join(", "))
}

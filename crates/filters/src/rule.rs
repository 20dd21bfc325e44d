//! The types of a filter: its inputs, its pre-filter per pod, and its test of a node.
//! Specification: plugins-nodes.md 0 (letters), 1.2, 2.2, 2.3.

use vc_model::{Class, Cluster, Code, Finding, Node, NodeId, Reason, TaskId};

/// An input of a filter or scorer, with its letter of section 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// S: the pod's own spec, labels and namespace, as its class has them.
    Spec,
    /// N: the node object.
    Node,
    /// P: the pods of the node.
    Pods,
    /// C: pods anywhere that share a topology domain.
    Domain,
    /// V: volumes, claims and storage.
    Volumes,
    /// U: the accounting of the node.
    Usage,
    /// K: further objects, such as namespaces.
    Other,
}

/// A pod with the state that filters and scorers read.
#[derive(Clone, Copy)]
pub struct Pod<'a> {
    /// The cluster, including all tentative operations that were not undone.
    pub cluster: &'a Cluster,
    /// Id of the pod's task.
    pub task: TaskId,
    /// Class of the pod.
    pub class: &'a Class,
}

impl<'a> Pod<'a> {
    /// Creates the pod of a task.
    pub fn new(cluster: &'a Cluster, task: TaskId) -> Self {
        Self { cluster, task, class: cluster.class(task) }
    }
}

/// A test that returns the finding against a node, or `None` if the node passes. It borrows the
/// cluster, so it cannot outlive the next operation.
pub type NodeFilter<'a> = Box<dyn Fn(NodeId) -> Option<Finding> + Send + Sync + 'a>;

/// Answer of a pre-filter, which runs once per pod.
pub enum PreFilter<'a> {
    /// The filter has nothing to check for this pod; no node is tested.
    Skip,
    /// The pod fits on no node.
    Refuse(Finding),
    /// Each node must be tested. What is equal for all nodes is already computed.
    Ask(NodeFilter<'a>),
}

impl<'a> PreFilter<'a> {
    /// Creates an answer that tests each node by class and node row alone.
    pub fn by_class(pod: Pod<'a>, rule: fn(&Class, &Node) -> Option<Finding>) -> Self {
        Self::Ask(Box::new(move |node| rule(pod.class, &pod.cluster.nodes[node])))
    }
}

/// Creates a finding with an owned text.
pub(crate) fn refused(code: Code, text: String) -> Finding {
    Finding { code, reason: Reason::Owned(text.into()) }
}

//! The shape of a filter: what it reads, what it works out once per pod, and what it asks of each
//! node then. Specification: plugins-nodes.md 0 (letters), 1.2, 2.2, 2.3.

use vc_model::{Class, Cluster, Code, Finding, Node, NodeId, Reason, TaskId};

/// What a filter or scorer reads: the letters of section 0.
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

/// A pod as rules see it.
#[derive(Clone, Copy)]
pub struct Pod<'a> {
    /// With everything that was tried and not undone.
    pub cluster: &'a Cluster,
    /// Its row.
    pub task: TaskId,
    /// Its class.
    pub class: &'a Class,
}

impl<'a> Pod<'a> {
    /// The pod of this row.
    pub fn new(cluster: &'a Cluster, task: TaskId) -> Self {
        Self { cluster, task, class: cluster.class(task) }
    }
}

/// Why the pod may not run on the node, if so. It borrows the cluster that it was prepared from, so
/// that the next operation ends it.
pub type NodeFilter<'a> = Box<dyn Fn(NodeId) -> Option<Finding> + Send + Sync + 'a>;

/// Answer of a pre-filter, which runs once per pod.
pub enum PreFilter<'a> {
    /// There is nothing to check for this pod; no node is asked.
    Skip,
    /// The pod fits on no node.
    Refuse(Finding),
    /// Each node is to be asked; what holds for all of them is worked out.
    Ask(NodeFilter<'a>),
}

impl<'a> PreFilter<'a> {
    /// Asks each node by class and node row alone.
    pub fn by_class(pod: Pod<'a>, rule: fn(&Class, &Node) -> Option<Finding>) -> Self {
        Self::Ask(Box::new(move |node| rule(pod.class, &pod.cluster.nodes[node])))
    }
}

/// A finding with a text of its own.
pub(crate) fn refused(code: Code, text: String) -> Finding {
    Finding { code, reason: Reason::Owned(text.into()) }
}

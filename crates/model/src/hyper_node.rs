//! HyperNodes as objects: a tier and members, by which nodes form a tree of network domains.
//! Specification: core.md 4.9, plugins-nodes.md 15.1.

mod tree;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::change_log::Revision;
use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::ids::NodeId;
use crate::selector::LabelSelector;

pub use tree::{HyperNode, HyperNodeId, HyperNodeProblem, HyperNodeTree};

/// A HyperNode as the API server has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HyperNodeRecord {
    /// Name.
    pub name: Arc<str>,
    /// `metadata.uid`.
    #[serde(default)]
    pub uid: Arc<str>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// `spec.tier`: a smaller one is a closer network.
    pub tier: i32,
    /// `spec.tierName`; empty if absent.
    pub tier_name: Arc<str>,
    /// Members that can select something.
    pub members: Vec<HyperNodeMember>,
    /// What is wrong with fields of the object, each text with the path of its field. A member that
    /// can select nothing has one.
    #[serde(default)]
    pub field_problems: Vec<Arc<str>>,
}

/// What a member of a HyperNode selects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HyperNodeMember {
    /// The HyperNode with this name.
    HyperNode(Arc<str>),
    /// The node with this name.
    Node(Arc<str>),
    /// Nodes whose names contain a match.
    Pattern(NodePattern),
    /// Nodes with these labels.
    Labels(LabelSelector),
}

impl HyperNodeMember {
    /// True if changes of node labels or names may change what it selects.
    fn is_selector(&self) -> bool {
        matches!(self, Self::Pattern(_) | Self::Labels(_))
    }
}

/// A regular expression for node names, compiled once. It may match anywhere in a name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodePattern(Arc<regex::bytes::Regex>);

impl NodePattern {
    /// Compiles the pattern.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let compiled = regex::bytes::RegexBuilder::new(pattern).unicode(false).build();
        compiled.map(|regex| Self(Arc::new(regex))).map_err(|error| {
            let text = error.to_string();
            let last = text.lines().rev().find(|line| !line.trim().is_empty());
            format!("not a regular expression: {}", last.unwrap_or_default().trim())
        })
    }

    /// True if the name contains a match.
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name.as_bytes())
    }
}

impl TryFrom<String> for NodePattern {
    type Error = String;

    fn try_from(pattern: String) -> Result<Self, String> {
        Self::new(&pattern)
    }
}

impl From<NodePattern> for String {
    fn from(pattern: NodePattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

impl PartialEq for NodePattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for NodePattern {}

/// The HyperNodes of the cluster. Their last tree is kept until they or the nodes change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HyperNodes {
    records: CopyOnWrite<BTreeMap<Arc<str>, Arc<HyperNodeRecord>>>,
    is_listed: bool,
    /// True once all of them were known.
    #[serde(default)]
    was_listed: bool,
    revision: Revision,
    /// The last tree, with the key of the state that it was built of.
    #[serde(skip)]
    tree: Option<(TreeKey, Arc<HyperNodeTree>)>,
}

copy_on_write_members! { HyperNodes:
    shared records;
    copied is_listed, was_listed, revision, tree;
}

/// The key of a tree: it is built again when one of these revisions differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeKey {
    hyper_nodes: Revision,
    node_set: Revision,
    /// `None` if no member selects nodes by their names or labels.
    node_objects: Option<Revision>,
}

impl HyperNodes {
    /// True if all HyperNodes of the cluster are known. False before their first list, and while
    /// they cannot be read.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// True if all HyperNodes were known before, and cannot be read now.
    pub fn are_lost(&self) -> bool {
        self.was_listed && !self.is_listed
    }

    /// True if no HyperNode is known.
    pub fn is_empty(&self) -> bool {
        self.records.get().is_empty()
    }

    /// The HyperNodes by name.
    pub fn records(&self) -> impl Iterator<Item = &HyperNodeRecord> {
        self.records.get().values().map(|record| &**record)
    }

    /// The HyperNode with this name.
    pub fn record(&self, name: &str) -> Option<&HyperNodeRecord> {
        self.records.get().get(name).map(|record| &**record)
    }

    /// Changes with each change of the HyperNodes, and when they become known or unknown.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn set_listed(&mut self, is_listed: bool) {
        if self.is_listed != is_listed {
            self.is_listed = is_listed;
            self.was_listed = true;
            self.revision.advance();
        }
    }

    /// Adds or replaces a HyperNode. Returns true if something changed.
    #[inline(never)]
    pub(crate) fn apply(&mut self, record: Box<HyperNodeRecord>) -> bool {
        if self.records.get().get(&record.name).is_some_and(|known| **known == *record) {
            return false;
        }
        self.records.get_mut().insert(record.name.clone(), Arc::from(record));
        self.revision.advance();
        true
    }

    /// Removes a HyperNode.
    pub(crate) fn remove(&mut self, name: &str) {
        if self.records.remove(name).is_some() {
            self.revision.advance();
        }
    }

    /// The key of the present state, given the revisions of the nodes.
    pub(crate) fn key(&self, node_set: Revision, node_objects: Revision) -> TreeKey {
        let mut members = self.records().flat_map(|record| &record.members);
        let by_object = members.any(HyperNodeMember::is_selector);
        TreeKey {
            hyper_nodes: self.revision,
            node_set,
            node_objects: by_object.then_some(node_objects),
        }
    }

    /// The tree of this state, if it is kept.
    pub(crate) fn kept(&self, key: TreeKey) -> Option<Arc<HyperNodeTree>> {
        self.tree.as_ref().filter(|(of, _)| *of == key).map(|(_, tree)| tree.clone())
    }

    pub(crate) fn keep(&mut self, key: TreeKey, tree: Arc<HyperNodeTree>) {
        self.tree = Some((key, tree));
    }
}

/// A node as members select it.
pub(crate) struct SelectableNode<'a> {
    pub(crate) id: NodeId,
    pub(crate) name: &'a Arc<str>,
    pub(crate) labels: &'a crate::selector::Labels,
}

//! Node groups of a queue: which groups its pods may use, and how much of each. The plugin
//! `nodegroup` reads them. Specification: plugins-nodes.md 11.1.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// `spec.affinity` of a queue: names of node groups. The names of all lists are in the order of the
/// object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGroupAffinity {
    /// Required list of `nodeGroupAffinity`.
    pub required: Vec<Arc<str>>,
    /// Preferred list of `nodeGroupAffinity`.
    pub preferred: Vec<Arc<str>>,
    /// Required list of `nodeGroupAntiAffinity`.
    pub anti_required: Vec<Arc<str>>,
    /// Preferred list of `nodeGroupAntiAffinity`.
    pub anti_preferred: Vec<Arc<str>>,
}

impl NodeGroupAffinity {
    /// True if some list names a group.
    pub fn has_rules(&self) -> bool {
        let lists = [&self.required, &self.preferred, &self.anti_required, &self.anti_preferred];
        lists.iter().any(|list| !list.is_empty())
    }
}

/// Annotation `volcano.sh/nodegroup-resource-limits` of a queue, with the amounts of each group as
/// `A`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeGroupLimits<A> {
    /// The limits by name of the group. A queue without the annotation has none.
    ByGroup(BTreeMap<Arc<str>, A>),
    /// The annotation cannot be read. The text says why.
    Unreadable(Arc<str>),
}

impl<A> Default for NodeGroupLimits<A> {
    fn default() -> Self {
        Self::ByGroup(BTreeMap::new())
    }
}

impl<A> NodeGroupLimits<A> {
    /// Returns the same limits with other amounts.
    pub fn map<B>(self, mut amounts: impl FnMut(A) -> B) -> NodeGroupLimits<B> {
        match self {
            Self::Unreadable(problem) => NodeGroupLimits::Unreadable(problem),
            Self::ByGroup(groups) => {
                let groups = groups.into_iter().map(|(group, limit)| (group, amounts(limit)));
                NodeGroupLimits::ByGroup(groups.collect())
            }
        }
    }
}

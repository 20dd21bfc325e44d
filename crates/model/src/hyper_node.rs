//! HyperNodes, as far as messages need them: whether they are known, and whether any exist. Pods
//! are not placed by them yet. Specification: core.md 4.9, actions.md 4.2.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The HyperNodes of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HyperNodes {
    names: BTreeSet<Arc<str>>,
    is_listed: bool,
}

impl HyperNodes {
    /// True if all HyperNodes of the cluster are known. False before their first list, and while
    /// they cannot be read.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// True if no HyperNode is known.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn set_listed(&mut self, is_listed: bool) {
        self.is_listed = is_listed;
    }

    /// Adds a HyperNode.
    pub(crate) fn apply(&mut self, name: Arc<str>) {
        self.names.insert(name);
    }

    /// Removes a HyperNode.
    pub(crate) fn remove(&mut self, name: &str) {
        self.names.remove(name);
    }
}

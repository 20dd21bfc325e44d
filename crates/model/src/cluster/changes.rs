//! Which nodes changed, in order, for readers that remember what they worked out per node: they
//! look again at those that changed since, and at no others. Specification: actions.md 12.2 S2.

use crate::cluster::Cluster;
use crate::ids::NodeId;

/// The log of changed nodes. Positions only grow; old entries are forgotten between cycles.
#[derive(Clone, Debug, Default)]
pub struct NodeChanges {
    /// Position of the first entry that is kept.
    start: u64,
    nodes: Vec<NodeId>,
    /// Counts changes of the set of known nodes.
    set_version: u64,
}

impl NodeChanges {
    /// Position behind the last entry.
    pub fn end(&self) -> u64 {
        self.start + self.nodes.len() as u64
    }

    /// The nodes that changed from this position on, some more than once. `None`: the entries are
    /// forgotten, any node may have changed.
    pub fn since(&self, position: u64) -> Option<&[NodeId]> {
        let skipped = usize::try_from(position.checked_sub(self.start)?).ok()?;
        self.nodes.get(skipped..)
    }

    /// Another number for every other set of known nodes.
    pub fn set_version(&self) -> u64 {
        self.set_version
    }

    pub(super) fn set_changed(&mut self) {
        self.set_version += 1;
    }

    pub(super) fn push(&mut self, node: NodeId) {
        self.nodes.push(node);
    }

    /// Forgets entries once they are more than looking at every node is worth.
    pub(super) fn shorten(&mut self, n_nodes: usize) {
        if 4 * n_nodes + 1024 < self.nodes.len() {
            self.start = self.end();
            self.nodes.clear();
        }
    }
}

impl Cluster {
    /// Nodes whose row changed: the object, what runs there, or the shard.
    pub fn node_changes(&self) -> &NodeChanges {
        &self.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    #[test]
    fn a_reader_sees_what_came_after_it() {
        let mut changes = NodeChanges::default();
        let node = NodeId::new;
        [1, 2, 2, 1].map(node).into_iter().for_each(|node| changes.push(node));
        assert_eq!(changes.since(0), Some(&[1, 2, 2, 1].map(node)[..]));
        let seen = changes.end();
        assert_eq!(changes.since(seen), Some(&[][..]));
        changes.push(node(1));
        assert_eq!(changes.since(seen), Some(&[node(1)][..]), "again, after it was seen");
        assert_eq!(changes.since(changes.end() + 1), None, "from another log");
    }

    #[test]
    fn a_reader_that_is_too_late_is_told() {
        let mut changes = NodeChanges::default();
        for number in 0..2000 {
            changes.push(NodeId::new(number));
        }
        changes.shorten(1000);
        assert!(changes.since(0).is_some(), "few compared with the nodes");
        changes.shorten(10);
        assert_eq!(changes.since(0), None);
        assert_eq!(changes.since(changes.end()), Some(&[][..]));
    }
}

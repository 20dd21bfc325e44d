//! Which nodes and which jobs changed, in order, for readers that remember what they worked out per
//! row: they look again at those that changed since, and at no others. Exact because whatever changes a
//! row that is asked for goes through the few functions that enter it here; the laws of this crate
//! and the engine's random stories (plain beside fast) would show one that does not. Specification:
//! actions.md 12.2 S2, 12.3.

use crate::cluster::Cluster;
use crate::ids::{JobId, NodeId};

/// A log of changed rows. Positions only grow; old entries are forgotten between cycles.
#[derive(Clone, Debug)]
pub struct Changes<I> {
    /// Position of the first entry that is kept.
    start: u64,
    rows: Vec<I>,
    /// Counts changes of the set of known rows.
    set_version: u64,
}

impl<I> Default for Changes<I> {
    fn default() -> Self {
        Self { start: 0, rows: Vec::new(), set_version: 0 }
    }
}

impl<I: Copy + PartialEq> Changes<I> {
    /// Position behind the last entry.
    pub fn end(&self) -> u64 {
        self.start + self.rows.len() as u64
    }

    /// The rows that changed from this position on, some more than once. `None`: the entries are
    /// forgotten, any row may have changed.
    pub fn since(&self, position: u64) -> Option<&[I]> {
        let skipped = usize::try_from(position.checked_sub(self.start)?).ok()?;
        self.rows.get(skipped..)
    }

    /// Another number for every other set of known nodes. Jobs are not counted.
    pub fn set_version(&self) -> u64 {
        self.set_version
    }

    pub(super) fn set_changed(&mut self) {
        self.set_version += 1;
    }

    pub(super) fn push(&mut self, row: I) {
        self.rows.push(row);
    }

    /// Any row may have changed; readers start anew.
    pub(super) fn forget(&mut self) {
        self.start = self.end() + 1;
        self.rows.clear();
    }

    /// Forgets the older entries once all are more than looking at every row is worth. A first list
    /// is long, and whoever has seen most of it does not begin anew.
    pub(super) fn shorten(&mut self, n_rows: usize) {
        let most = 4 * n_rows + 1024;
        if most < self.rows.len() {
            let n_forgotten = self.rows.len() - most / 2;
            self.rows.drain(..n_forgotten);
            self.rows.shrink_to(most);
            self.start += n_forgotten as u64;
        }
    }
}

impl Cluster {
    /// Nodes whose row changed: the object, what runs there, or the shard.
    pub fn node_changes(&self) -> &Changes<NodeId> {
        &self.changes
    }

    /// Nodes whose object changed, and no others: most rows change because pods come and go. A node
    /// that is new changes the set.
    pub fn object_changes(&self) -> &Changes<NodeId> {
        &self.object_changes
    }

    /// Jobs whose row, or whose tasks, changed; also those that are gone.
    pub fn job_changes(&self) -> &Changes<JobId> {
        &self.job_changes
    }

    /// A job was written to.
    pub fn touch_job(&mut self, job: JobId) {
        self.job_changes.push(job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    #[test]
    fn a_reader_sees_what_came_after_it() {
        let mut changes = Changes::default();
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
        let mut changes = Changes::default();
        for number in 0..2000 {
            changes.push(NodeId::new(number));
        }
        changes.shorten(1000);
        assert!(changes.since(0).is_some(), "few compared with the nodes");
        changes.shorten(10);
        assert_eq!(changes.since(0), None);
        assert_eq!(changes.since(1999), Some(&[NodeId::new(1999)][..]), "the latest are kept");
        assert_eq!(changes.since(changes.end()), Some(&[][..]));
        changes.forget();
        assert_eq!(changes.since(changes.end() - 1), None, "whoever has seen all of it");
    }
}

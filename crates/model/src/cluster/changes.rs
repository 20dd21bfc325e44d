//! The change logs of the cluster: which nodes and which jobs changed. Caches of rows are exact because
//! whatever changes a row goes through the few functions that enter it here; the laws of this crate and
//! the engine's random stories (plain beside fast) would show one that does not. Specification:
//! actions.md 12.2 S2, 12.3.

use crate::change_log::{ChangeLog, Revision};
use crate::cluster::Cluster;
use crate::ids::{JobId, NodeId};

impl Cluster {
    /// Nodes whose row changed: the object, what runs there, or the shard.
    pub fn node_changes(&self) -> &ChangeLog<NodeId> {
        &self.node_changes
    }

    /// Nodes whose object changed, and no others: most rows change because pods come and go. A node
    /// that is new changes the set of nodes.
    pub fn object_changes(&self) -> &ChangeLog<NodeId> {
        &self.object_changes
    }

    /// Another one for every other set of known nodes.
    pub fn node_set_revision(&self) -> Revision {
        self.node_set_revision
    }

    /// Jobs whose row, or whose tasks, changed; also those that are gone.
    pub fn job_changes(&self) -> &ChangeLog<JobId> {
        &self.job_changes
    }

    /// A job was written to.
    pub fn touch_job(&mut self, job: JobId) {
        self.job_changes.push(job);
    }
}

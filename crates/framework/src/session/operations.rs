//! Operations as they take effect in a session, with what goes along with a node, and as they are
//! reversed. Specification: core.md 6, plugins-nodes.md 2.6.

use vc_model::{NodeId, Reservation, TaskId, TaskStatus};

use crate::plugin::Ask;
use crate::records::LastTransaction;
use crate::session::Session;
use crate::statement::{Op, Refused};

impl Session<'_> {
    /// Gives the task the node with what goes along with it.
    pub(crate) fn place(
        &mut self,
        task: TaskId,
        status: TaskStatus,
        node: NodeId,
    ) -> Result<(), Refused> {
        let ask = Ask { cluster: self.cluster, facts: &self.facts };
        let promise = self.hooks.reserve(ask, task, node).map_err(|why| {
            crate::klog!(3; "Failed to reserve on node: {why}");
            Refused::NotReserved
        })?;
        self.put(task, status, node, promise);
        Ok(())
    }

    /// The same with what was reserved before.
    pub(crate) fn put(
        &mut self,
        task: TaskId,
        status: TaskStatus,
        node: NodeId,
        promise: Option<Reservation>,
    ) {
        self.cluster.set_task(task, status, Some(node));
        if let Some(promise) = promise {
            self.cluster.reserve(task, promise);
        }
        let ask = Ask { cluster: self.cluster, facts: &self.facts };
        self.hooks.on_allocate(ask, task);
    }

    /// The task is evicted, with what goes along with it.
    pub(crate) fn hide(&mut self, task: TaskId) {
        self.cluster.evict_task(task);
        let ask = Ask { cluster: self.cluster, facts: &self.facts };
        self.hooks.on_deallocate(ask, task);
    }

    /// Reverses one operation, handlers included (core.md 6, A6).
    pub(crate) fn undo(&mut self, op: Op) {
        match op {
            Op::Evict { task, from, .. } => {
                self.cluster.unevict_task(task, from);
                let ask = Ask { cluster: self.cluster, facts: &self.facts };
                self.hooks.on_allocate(ask, task);
            }
            Op::Pipeline { task, .. } | Op::Allocate { task, .. } => {
                self.cluster.set_task(task, TaskStatus::Pending, None);
                let ask = Ask { cluster: self.cluster, facts: &self.facts };
                self.hooks.on_deallocate(ask, task);
            }
        }
    }

    /// Remembers what a task was before its operation is discarded; for messages only.
    pub(crate) fn remember(&mut self, op: Op) {
        let task = op.task();
        let row = &self.cluster.tasks[task];
        let last = LastTransaction { status: row.status, node: row.node };
        self.records.last_transaction.insert(task, last);
    }
}

//! Applies operations to a session, with the reservations that go with a node, and undoes them.
//! Specification: core.md 6, plugins-nodes.md 2.6.

use vc_model::{NodeId, Reservation, TaskId, TaskStatus};

use crate::plugin::SessionView;
use crate::records::LastTransaction;
use crate::session::SessionState;
use crate::statement::{Op, OperationRefused};

impl SessionState<'_> {
    /// Places the task on the node and reserves its volumes and devices there.
    pub(crate) fn place(
        &mut self,
        task: TaskId,
        status: TaskStatus,
        node: NodeId,
    ) -> Result<(), OperationRefused> {
        let view = SessionView { cluster: self.cluster, info: &self.info };
        let promise = self.plugins.reserve(view, task, node, status).map_err(|why| {
            crate::klog!(3; "Failed to reserve on node: {why}");
            OperationRefused::NotReserved
        })?;
        self.put(task, status, node, promise);
        Ok(())
    }

    /// Places the task on the node with an earlier reservation.
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
        let view = SessionView { cluster: self.cluster, info: &self.info };
        self.plugins.on_allocate(view, task);
    }

    /// Evicts the task and notifies the plugins.
    pub(crate) fn hide(&mut self, task: TaskId) {
        self.cluster.evict_task(task);
        let view = SessionView { cluster: self.cluster, info: &self.info };
        self.plugins.on_deallocate(view, task);
    }

    /// Undoes one operation and notifies the plugins (core.md 6). A6: an undone eviction restores
    /// the earlier status.
    pub(crate) fn undo(&mut self, op: Op) {
        match op {
            Op::Evict { task, from, .. } => {
                self.cluster.unevict_task(task, from);
                let view = SessionView { cluster: self.cluster, info: &self.info };
                self.plugins.on_allocate(view, task);
            }
            Op::Pipeline { task, .. } | Op::Allocate { task, .. } => {
                self.cluster.set_task(task, TaskStatus::Pending, None);
                let view = SessionView { cluster: self.cluster, info: &self.info };
                self.plugins.on_deallocate(view, task);
            }
        }
    }

    /// Records status and node of a task before its operation is undone; for messages only.
    pub(crate) fn remember(&mut self, op: Op) {
        let task = op.task();
        let row = &self.cluster.tasks[task];
        let last = LastTransaction { status: row.status, node: row.node };
        self.records.last_transaction.place(task).replace(last);
    }
}

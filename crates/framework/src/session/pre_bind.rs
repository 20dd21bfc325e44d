//! Binds that wait for volumes. The writes for the volumes of a gang go out with its commit, its
//! binds when all volumes are ready. Specification: plugins-nodes.md 2.7, 2.8, 5.7, 5.8.

use std::collections::BTreeSet;

use vc_model::{JobId, NodeId, TaskId, TaskStatus};

use crate::effect::{Effect, PreBindWrites};
use crate::session::Session;
use crate::statement::Op;

impl Session<'_> {
    /// Returns the jobs with a task in `ops` that has volumes to wait for.
    pub(super) fn gangs_with_volumes(&self, ops: &[Op]) -> BTreeSet<JobId> {
        let job = |op: &Op| match *op {
            Op::Allocate { task, .. } if self.volumes.reservation(task).is_some() => {
                self.tasks[task].job
            }
            _ => None,
        };
        ops.iter().filter_map(job).collect()
    }

    /// Decides the bind and emits the writes that must precede it.
    pub(super) fn hold_bind(&mut self, task: TaskId, node: NodeId) {
        self.state.cluster.set_task(task, TaskStatus::Binding, Some(node));
        self.state.cluster.hold(task, self.state.info.now_micros);
        if let Some(reservation) = self.state.cluster.volumes.reservation(task)
            && !(reservation.bindings.is_empty()
                && reservation.provisions.is_empty()
                && reservation.devices.is_empty())
        {
            let row = &self.state.cluster.tasks[task];
            self.outcome.out.effects.push(Effect::PreBind {
                pod: row.key.clone(),
                uid: row.uid.clone(),
                node: self.state.cluster.nodes[node].name.clone(),
                writes: Box::new(PreBindWrites {
                    bindings: reservation.bindings.clone(),
                    provisions: reservation.provisions.clone(),
                    devices: reservation.devices.clone(),
                }),
            });
        }
        self.count_assumed(task);
    }
}

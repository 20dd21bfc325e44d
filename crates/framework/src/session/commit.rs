//! Commit: operations become effects, after a check for what the binder would refuse.
//! Specification: core.md 6, 7.2, 7.3, actions.md 2.4 with A7.

use vc_model::{JobId, NodeId, ObjectKey, TaskId, TaskStatus};

use crate::certificate::{Certificate, CertificateTerms, Witness};
use crate::effect::{Effect, EvictReason};
use crate::sample::Sample;
use crate::session::Session;
use crate::statement::Op;

impl Session<'_> {
    /// Performs the operations in order. Returns false if they were undone instead, because without
    /// the operations that the binder would refuse a job is not ready. A7: no gang starts below its
    /// minimum. With `is_recorded`, undone operations are recorded as the last transactions of
    /// their tasks.
    pub(crate) fn commit(
        &mut self,
        mut ops: Vec<Op>,
        claimed: &CertificateTerms,
        is_recorded: bool,
    ) -> bool {
        let refused = self.refused(&ops);
        if !refused.is_empty() {
            ops.retain(|op| !refused.contains(op));
            refused.iter().rev().for_each(|&op| self.state.undo(op));
            if !refused.iter().all(|&op| self.still_ready(op)) {
                ops.into_iter().rev().for_each(|op| {
                    if is_recorded {
                        self.state.remember(op);
                    }
                    self.state.undo(op);
                });
                return false;
            }
        }
        self.state.eviction_holds.remember(self.state.cluster, &ops);
        self.count_transaction(&ops);
        let pod_group = self.certify(&ops, claimed);
        self.perform_all(ops, pod_group.as_ref());
        true
    }

    /// Emits the certificate of a transaction that evicts. Returns the PodGroup for which it
    /// evicts, if there is one.
    fn certify(&mut self, ops: &[Op], claimed: &CertificateTerms) -> Option<ObjectKey> {
        let certificate = Certificate::of(self.state.cluster, &self.state.rules, ops, claimed)?;
        certificate.log();
        let pod_group = certificate.pod_group.clone();
        self.outcome.out.certificates.push(certificate);
        if self.outcome.with_witnesses {
            let (cluster, eviction_holds) =
                (self.state.cluster.clone(), self.state.eviction_holds.clone());
            self.outcome.out.witnesses.push(Witness { cluster, eviction_holds });
        }
        pod_group
    }

    /// Binds all Allocated tasks of a job, including kept ones (actions.md 5). A task that the
    /// binder would refuse becomes Pending again.
    pub fn dispatch_allocated(&mut self, job: JobId) {
        self.state.journal.touch();
        let (ours, rest): (Vec<Op>, Vec<Op>) =
            std::mem::take(&mut self.state.held).into_iter().partition(
                |op| matches!(*op, Op::Allocate { task, .. } if self.tasks[task].job == Some(job)),
            );
        self.state.held = rest;
        let refused = self.refused(&ours);
        let (refused, ours) = ours.into_iter().partition(|op| refused.contains(op));
        let refused: Vec<Op> = refused;
        refused.into_iter().for_each(|op| self.state.undo(op));
        self.perform_all(ours, None);
    }

    fn still_ready(&self, refused: Op) -> bool {
        let Op::Allocate { task, .. } = refused else { return true };
        let job = self.tasks[task].job;
        job.is_none_or(|job| self.plugins().job_ready(self.view(), job))
    }

    /// Returns the operations that the edge would refuse. These are binds to a node that is gone or
    /// full, and evictions of pods that are only tentatively placed.
    fn refused(&self, ops: &[Op]) -> Vec<Op> {
        let mut granted = Vec::new();
        let mut refused = Vec::new();
        for &op in ops {
            let sent = match op {
                Op::Evict { from, .. } => from != TaskStatus::Allocated,
                Op::Pipeline { .. } => true,
                Op::Allocate { task, node } => {
                    self.nodes[node].present && self.has_room(task, node, &granted)
                }
            };
            match (sent, op) {
                (true, Op::Allocate { task, .. }) => granted.push(task),
                (true, _) => {}
                (false, _) => refused.push(op),
            }
        }
        refused
    }

    /// True if the task fits beside the tasks that are really on the node and those granted before
    /// it.
    fn has_room(&self, task: TaskId, node: NodeId, granted: &[TaskId]) -> bool {
        let (request, idle) = (self.request(task), &self.nodes[node].idle);
        if request.dims().all(|dim| request.get(dim) <= 0 || 0 <= idle.get(dim)) {
            return true;
        }
        let mut idle = idle.clone();
        for &other in &self.nodes[node].tasks {
            if self.tasks[other].status == TaskStatus::Allocated && !granted.contains(&other) {
                idle.add(self.request(other));
            }
        }
        request.fits(&idle)
    }

    /// Counts one eviction transaction per statement, whatever the number of victims; shuffle is
    /// not counted (core.md 9.1).
    fn count_transaction(&mut self, ops: &[Op]) {
        let reason = ops.iter().find_map(|op| match *op {
            Op::Evict { reason, .. } => Some(reason),
            _ => None,
        });
        if let Some(reason) = reason.filter(|&reason| reason != EvictReason::Shuffle) {
            self.outcome.out.samples.push(Sample::EvictionTransaction(reason));
        }
    }

    /// Performs the operations. A gang with a task that waits for volumes is bound when all its
    /// volumes are ready (plugins-nodes.md 5.8).
    fn perform_all(&mut self, ops: Vec<Op>, pod_group: Option<&ObjectKey>) {
        let waiting = self.gangs_with_volumes(&ops);
        for op in ops {
            match op {
                Op::Allocate { task, node }
                    if self.tasks[task].job.is_some_and(|job| waiting.contains(&job)) =>
                {
                    self.state.records.last_transaction.take(task);
                    self.hold_bind(task, node);
                }
                op => self.perform(op, pod_group),
            }
        }
    }

    fn perform(&mut self, op: Op, pod_group: Option<&ObjectKey>) {
        self.state.records.last_transaction.take(op.task());
        match op {
            Op::Evict { task, reason, for_task, .. } => {
                self.send_eviction(task, reason, for_task, pod_group);
            }
            Op::Pipeline { .. } => self.state.held.push(op),
            Op::Allocate { task, node } => self.send_bind(task, node),
        }
    }

    fn send_bind(&mut self, task: TaskId, node: NodeId) {
        self.state.cluster.set_task(task, TaskStatus::Binding, Some(node));
        let bind = Effect::bind(self.state.cluster, task, self.state.info.now_micros);
        self.outcome.out.effects.extend(bind);
        self.count_assumed(task);
    }

    pub(super) fn count_assumed(&mut self, task: TaskId) {
        let waited_micros =
            self.state.info.now_micros - self.state.cluster.tasks[task].created_micros;
        match self.outcome.out.samples.last_mut() {
            Some(Sample::Assumed { waited_micros: same, n_tasks }) if *same == waited_micros => {
                *n_tasks += 1;
            }
            _ => self.outcome.out.samples.push(Sample::Assumed { waited_micros, n_tasks: 1 }),
        }
    }

    fn send_eviction(
        &mut self,
        task: TaskId,
        reason: EvictReason,
        for_task: Option<TaskId>,
        for_pod_group: Option<&ObjectKey>,
    ) {
        self.state.cluster.tasks[task].evicting = true;
        self.state.evicted.push(task);
        let row = &self.state.cluster.tasks[task];
        let job = row.job.map(|job| &self.state.cluster.jobs[job]);
        let pod_group = job.and_then(|job| {
            let group = job.pod_group.as_ref().filter(|_| !job.bare)?;
            Some(Box::new((job.key.clone(), group.uid.clone())))
        });
        self.outcome.out.effects.push(Effect::Evict {
            pod: row.key.clone(),
            uid: row.uid.clone(),
            pod_group,
            reason,
            for_pod: for_task.map(|task| Box::new(self.state.cluster.tasks[task].key.clone())),
            for_pod_group: for_pod_group.cloned().map(Box::new),
            message: self.outcome.evict_texts.get(&task).cloned(),
        });
    }
}

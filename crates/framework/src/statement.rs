//! A transaction: operations take effect in the session at once, and are later committed, kept or undone.
//! Specification: core.md 6, actions.md 2.4.

use std::ops::{Deref, DerefMut};

use vc_model::{NodeId, TaskId, TaskStatus};

use crate::effect::EvictReason;
use crate::plugin::Ask;
use crate::session::Session;

/// Where the room of a pipelined task comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Pods that leave anyway.
    Releasing,
    /// An eviction made for this task; its node is nominated (actions.md 2.11).
    Evicted,
}

/// One operation that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `from`: the status before (A6). `for_task`: who gets the room.
    Evict { task: TaskId, from: TaskStatus, reason: EvictReason, for_task: Option<TaskId> },
    Pipeline { task: TaskId, node: NodeId, room: Room },
    Allocate { task: TaskId, node: NodeId },
}

/// Operations as data, to compare attempts and to apply one again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan(Vec<Op>);

impl Plan {
    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the operations of another plan (Merge).
    pub fn append(&mut self, mut other: Plan) {
        self.0.append(&mut other.0);
    }
}

/// Why an operation was refused; the session is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the task belongs to no job")]
    UnknownJob,
    #[error("the node is not known")]
    UnknownNode,
    #[error("the task is on a node already")]
    AlreadyPlaced,
    #[error("the task is not on a node")]
    NotPlaced,
}

/// A group of tentative operations. Dropped, it undoes them, newest first.
#[must_use]
pub struct Statement<'s, 'c> {
    session: &'s mut Session<'c>,
}

/// A place in a statement to return to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'c> Deref for Statement<'_, 'c> {
    type Target = Session<'c>;
    fn deref(&self) -> &Session<'c> {
        self.session
    }
}

impl DerefMut for Statement<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.session
    }
}

impl<'s, 'c> Statement<'s, 'c> {
    pub(crate) fn open(session: &'s mut Session<'c>) -> Self {
        debug_assert!(session.journal.is_empty(), "the borrow allows one open statement");
        Self { session }
    }

    /// Places the task on idle resources.
    ///
    /// # Errors
    /// [`Refused`]; nothing is changed.
    pub fn allocate(&mut self, task: TaskId, node: NodeId) -> Result<(), Refused> {
        self.check(task, node)?;
        self.session.place(task, TaskStatus::Allocated, node);
        self.session.journal.push(Op::Allocate { task, node });
        Ok(())
    }

    /// Places the task on resources that are being released.
    ///
    /// # Errors
    /// [`Refused`]; nothing is changed.
    pub fn pipeline(&mut self, task: TaskId, node: NodeId, room: Room) -> Result<(), Refused> {
        self.check(task, node)?;
        self.session.place(task, TaskStatus::Pipelined, node);
        self.session.journal.push(Op::Pipeline { task, node, room });
        Ok(())
    }

    /// Evicts the task.
    ///
    /// # Errors
    /// [`Refused`] for a task without job or node; nothing is changed.
    pub fn evict(
        &mut self,
        task: TaskId,
        reason: EvictReason,
        for_task: Option<TaskId>,
    ) -> Result<(), Refused> {
        let row = &self.session.cluster.tasks[task];
        row.job.ok_or(Refused::UnknownJob)?;
        row.node.ok_or(Refused::NotPlaced)?;
        let from = row.status;
        self.session.cluster.evict_task(task);
        let ask = Ask { cluster: self.session.cluster, facts: &self.session.facts };
        self.session.hooks.on_deallocate(ask, task);
        self.session.journal.push(Op::Evict { task, from, reason, for_task });
        Ok(())
    }

    fn check(&self, task: TaskId, node: NodeId) -> Result<(), Refused> {
        let cluster = &*self.session.cluster;
        let row = &cluster.tasks[task];
        row.job.ok_or(Refused::UnknownJob)?;
        let known = cluster.nodes.get(node).is_some_and(|node| node.present);
        if !known {
            return Err(Refused::UnknownNode);
        }
        match row.node {
            None => Ok(()),
            Some(_) => Err(Refused::AlreadyPlaced),
        }
    }

    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.session.journal.is_empty()
    }

    /// Here; to roll back to, or to take a plan from.
    pub fn mark(&self) -> Mark {
        Mark(self.session.journal.len())
    }

    /// Undoes everything after `mark`, newest first.
    pub fn roll_back(&mut self, mark: Mark) {
        while mark.0 < self.session.journal.len() {
            if let Some(op) = self.session.journal.pop() {
                self.session.remember(op);
                self.session.undo(op);
            }
        }
    }

    /// The operations after `mark` as data (Save).
    pub fn plan(&self, mark: Mark) -> Plan {
        Plan(self.session.journal[mark.0..].to_vec())
    }

    /// Applies a plan again, in order (Recover).
    ///
    /// # Errors
    /// The first refusal; the session is as before (A8).
    pub fn replay(&mut self, plan: &Plan) -> Result<(), Refused> {
        let mark = self.mark();
        let done = plan.0.iter().try_for_each(|op| match *op {
            Op::Evict { task, reason, for_task, .. } => self.evict(task, reason, for_task),
            Op::Pipeline { task, node, room } => self.pipeline(task, node, room),
            Op::Allocate { task, node } => self.allocate(task, node),
        });
        if done.is_err() {
            self.roll_back(mark);
        }
        done
    }

    /// Turns the operations into effects, in order.
    pub fn commit(self) {
        crate::klog!(3; "Committing operations ...");
        let ops = std::mem::take(&mut self.session.journal);
        self.session.claims.remember(self.session.cluster, &ops);
        for op in ops {
            self.session.perform(op);
        }
    }

    /// Leaves the operations applied until the session ends; nothing is sent (actions.md 4.9).
    pub fn keep(self) {
        let mut ops = std::mem::take(&mut self.session.journal);
        self.session.held.append(&mut ops);
    }

    /// Undoes everything.
    pub fn discard(self) {
        drop(self);
    }
}

impl Drop for Statement<'_, '_> {
    fn drop(&mut self) {
        if !self.session.journal.is_empty() {
            crate::klog!(3; "Discarding operations ...");
            self.roll_back(Mark(0));
        }
    }
}

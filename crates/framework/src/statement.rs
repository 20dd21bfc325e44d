//! A transaction: operations take effect in the session at once, and are later committed, kept or
//! undone. Specification: core.md 6, actions.md 2.4.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use vc_model::{NodeId, Reservation, TaskId, TaskStatus};
use vc_resource::Resource;

use crate::certificate::Claimed;
use crate::effect::EvictReason;
use crate::ruling::RuleId;
use crate::session::Session;

/// Where the room of a pipelined task comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// From pods that leave anyway.
    Releasing,
    /// An eviction made for this task; its node is nominated (actions.md 2.11).
    Evicted,
}

/// One operation that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The task is Releasing.
    Evict {
        /// The victim.
        task: TaskId,
        /// Its status before, which undoing restores (A6).
        from: TaskStatus,
        /// Which action wants it.
        reason: EvictReason,
        /// Who gets the room; `None`: no single task does.
        for_task: Option<TaskId>,
        /// What allowed it; `None`: nobody was asked.
        rule: Option<RuleId>,
    },
    /// The task waits on the node for room.
    Pipeline {
        /// The task, Pending before.
        task: TaskId,
        /// Where.
        node: NodeId,
        /// Who makes the room.
        room: Room,
    },
    /// The task has room on the node.
    Allocate {
        /// The task, Pending before.
        task: TaskId,
        /// Where.
        node: NodeId,
    },
}

impl Op {
    /// The task whose status it changes.
    pub fn task(&self) -> TaskId {
        match *self {
            Self::Evict { task, .. }
            | Self::Pipeline { task, .. }
            | Self::Allocate { task, .. } => task,
        }
    }
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
    /// It has none, or one without PodGroup, which is no part of the session.
    #[error("the task belongs to no job")]
    UnknownJob,
    /// Only pods know it.
    #[error("the node is not known")]
    UnknownNode,
    /// On this one or on another.
    #[error("the task is on a node already")]
    AlreadyPlaced,
    /// There is nothing to evict it from.
    #[error("the task is not on a node")]
    NotPlaced,
    /// It is being deleted or has ended.
    #[error("the task is not pending")]
    NotPending,
    /// A plugin could not reserve there what the task needs.
    #[error("what the task needs there cannot be reserved")]
    NotReserved,
    /// It is going anyway, has ended, or only waits for room there.
    #[error("the task does not run on its node")]
    NotRunning,
}

/// A group of tentative operations. Dropped, it undoes them, newest first.
#[must_use]
pub struct Statement<'s, 'c> {
    session: &'s mut Session<'c>,
    /// Operations before this one belong to a statement around this one.
    start: usize,
    /// What is undone is recorded as the last transaction of its task.
    is_recorded: bool,
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
    pub(crate) fn open(session: &'s mut Session<'c>, is_recorded: bool) -> Self {
        let start = session.journal.len();
        Self { session, start, is_recorded }
    }

    /// Places the task on idle resources.
    ///
    /// # Errors
    /// [`Refused`]; nothing is changed.
    pub fn allocate(&mut self, task: TaskId, node: NodeId) -> Result<(), Refused> {
        self.check(task, node)?;
        self.session.place(task, TaskStatus::Allocated, node)?;
        self.session.journal.push(Op::Allocate { task, node });
        Ok(())
    }

    /// Places the task on resources that are being released.
    ///
    /// # Errors
    /// [`Refused`]; nothing is changed.
    pub fn pipeline(&mut self, task: TaskId, node: NodeId, room: Room) -> Result<(), Refused> {
        self.check(task, node)?;
        self.session.place(task, TaskStatus::Pipelined, node)?;
        self.session.journal.push(Op::Pipeline { task, node, room });
        Ok(())
    }

    /// Places the task as it was placed before, with what it was promised then: whether that can be
    /// promised anew may depend on the order.
    ///
    /// # Errors
    /// [`Refused`]; nothing is changed.
    pub fn place_again(
        &mut self,
        task: TaskId,
        status: TaskStatus,
        node: NodeId,
        promise: Option<Reservation>,
    ) -> Result<(), Refused> {
        self.check(task, node)?;
        self.session.put(task, status, node, promise);
        self.session.journal.push(match status {
            TaskStatus::Allocated => Op::Allocate { task, node },
            _ => Op::Pipeline { task, node, room: Room::Releasing },
        });
        Ok(())
    }

    /// Evicts the task.
    ///
    /// # Errors
    /// [`Refused`] for a task without job or node, or one that does not run there; nothing is
    /// changed.
    pub fn evict(
        &mut self,
        task: TaskId,
        reason: EvictReason,
        for_task: Option<TaskId>,
    ) -> Result<(), Refused> {
        let row = &self.session.cluster.tasks[task];
        // The edge could not send it (core.md 7.2); refused here, it makes no room that never
        // comes.
        self.session.job_of_group(task).ok_or(Refused::UnknownJob)?;
        row.node.ok_or(Refused::NotPlaced)?;
        let from = row.status;
        if !from.is_allocated() && from != TaskStatus::Unknown {
            return Err(Refused::NotRunning);
        }
        self.session.hide(task);
        let rule = self.session.rules.of(task);
        self.session.journal.push(Op::Evict { task, from, reason, for_task, rule });
        Ok(())
    }

    fn check(&self, task: TaskId, node: NodeId) -> Result<(), Refused> {
        let cluster = &*self.session.cluster;
        let row = &cluster.tasks[task];
        self.session.job_of_group(task).ok_or(Refused::UnknownJob)?;
        let known = cluster.nodes.get(node).is_some_and(|node| node.present);
        match (known, row.node, row.status) {
            (false, ..) => Err(Refused::UnknownNode),
            (_, Some(_), _) => Err(Refused::AlreadyPlaced),
            (_, _, TaskStatus::Pending) => Ok(()),
            _ => Err(Refused::NotPending),
        }
    }

    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.session.journal.len() == self.start
    }

    /// Whether somebody is evicted.
    pub fn evicts(&self) -> bool {
        self.ops().iter().any(|op| matches!(op, Op::Evict { .. }))
    }

    /// Whether what is idle holds all tasks that the statement pipelines (A29).
    pub fn fits_idle_nodes(&self) -> bool {
        let mut wanted: BTreeMap<NodeId, Resource> = BTreeMap::new();
        for op in self.ops() {
            if let Op::Pipeline { task, node, .. } = *op {
                wanted.entry(node).or_default().add(self.session.cluster.request(task));
            }
        }
        wanted.iter().all(|(&node, sum)| sum.fits(&self.session.cluster.nodes[node].idle))
    }

    /// The operations so far, in order.
    pub fn ops(&self) -> &[Op] {
        self.session.journal.from(self.start)
    }

    /// Here; to roll back to, or to take a plan from.
    pub fn mark(&self) -> Mark {
        Mark(self.session.journal.len())
    }

    /// Undoes everything after `mark`, newest first.
    pub fn roll_back(&mut self, mark: Mark) {
        while mark.0.max(self.start) < self.session.journal.len() {
            if let Some(op) = self.session.journal.pop() {
                if self.is_recorded {
                    self.session.remember(op);
                }
                self.session.undo(op);
            }
        }
    }

    /// After `mark` there are evictions only. Takes back, newest first, those after which `is_open` of
    /// the victim and, without it, `holds`; the last one stays. It takes one alone back, not with all
    /// that followed it: sums of integers do not tell in which order pods went (S11). The victims that
    /// remain, in their order.
    pub fn spare(
        &mut self,
        mark: Mark,
        is_open: impl Fn(&Session<'_>, TaskId) -> bool,
        holds: impl Fn(&Session<'_>) -> bool,
    ) -> Vec<TaskId> {
        let ops = self.plan(mark).0;
        let mut stays = vec![false; ops.len()];
        let n_doubtful = ops.len().saturating_sub(1);
        let mut tried = false;
        for (place, op) in ops.iter().enumerate().take(n_doubtful).rev() {
            if !is_open(self.session, op.task()) {
                continue;
            }
            tried = true;
            self.session.undo(*op);
            self.session.journal.depart();
            stays[place] = holds(self.session);
            if !stays[place] {
                self.session.hide(op.task());
            }
        }
        if tried {
            self.redo(mark, &stays);
        }
        self.session.journal.from(mark.0).iter().map(Op::task).collect()
    }

    /// What `ask` says were this eviction of the statement not made; all others and what came after it
    /// stay. As in [`Statement::spare`] it alone is taken back, and made again.
    pub fn with_back<T>(&mut self, eviction: Op, ask: impl FnOnce(&Session<'_>) -> T) -> T {
        debug_assert!(self.ops().contains(&eviction), "it was not made");
        self.session.undo(eviction);
        self.session.journal.depart();
        let answer = ask(self.session);
        self.session.hide(eviction.task());
        self.session.journal.depart();
        answer
    }

    /// Brings the journal in line with what is done: the evictions after `mark` but for those that
    /// were taken back already, each in a state of its own number.
    fn redo(&mut self, mark: Mark, stays: &[bool]) {
        let ops = self.plan(mark).0;
        for (op, stays) in ops.iter().zip(stays).rev() {
            self.session.journal.pop();
            if !stays {
                self.session.undo(*op);
            }
        }
        let gone = ops.into_iter().zip(stays).filter(|(_, stays)| !**stays);
        let done = self.replay(&Plan(gone.map(|(op, _)| op).collect()));
        debug_assert!(done.is_ok(), "they were evicted before");
    }

    /// The operations after `mark` as data (Save).
    pub fn plan(&self, mark: Mark) -> Plan {
        Plan(self.session.journal.from(mark.0.max(self.start)).to_vec())
    }

    /// Applies a plan again, in order (Recover).
    ///
    /// # Errors
    /// The first refusal; the session is as before (A8).
    pub fn replay(&mut self, plan: &Plan) -> Result<(), Refused> {
        self.repeat(&plan.0)
    }

    /// The same for operations.
    ///
    /// # Errors
    /// The first refusal; the session is as before.
    pub fn repeat(&mut self, ops: &[Op]) -> Result<(), Refused> {
        let mark = self.mark();
        let done = ops.iter().try_for_each(|op| match *op {
            Op::Evict { task, reason, for_task, .. } => self.evict(task, reason, for_task),
            Op::Pipeline { task, node, room } => self.pipeline(task, node, room),
            Op::Allocate { task, node } => self.allocate(task, node),
        });
        if done.is_err() {
            self.roll_back(mark);
        }
        done
    }

    /// Turns the operations into effects, in order; whether anything was sent. Where the binder
    /// would refuse so many of them that a job is not ready, all are undone instead (A7).
    pub fn commit(self) -> bool {
        self.commit_as(&Claimed::default())
    }

    /// The same, with what the certificate of its evictions is to claim.
    pub fn commit_as(self, claimed: &Claimed) -> bool {
        crate::klog!(3; "Committing operations ...");
        let ops = self.session.journal.split_off(self.start);
        self.session.commit(ops, claimed, self.is_recorded)
    }

    /// Leaves the operations applied until the session ends; nothing is sent (actions.md 4.9). What
    /// the tasks were in earlier attempts no longer matters.
    pub fn keep(self) {
        let mut ops = self.session.journal.split_off(self.start);
        for op in &ops {
            self.session.records.last_transaction.remove(&op.task());
        }
        self.session.held.append(&mut ops);
    }

    /// All operations so far as data.
    pub fn all(&self) -> Plan {
        self.plan(Mark(self.start))
    }

    /// Undoes everything so far; the statement stays open.
    pub fn clear(&mut self) {
        self.roll_back(Mark(self.start));
    }

    /// Undoes everything.
    pub fn discard(self) {
        drop(self);
    }
}

impl Drop for Statement<'_, '_> {
    fn drop(&mut self) {
        if !self.is_empty() {
            crate::klog!(3; "Discarding operations ...");
            self.roll_back(Mark(self.start));
        }
    }
}

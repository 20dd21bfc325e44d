//! A statement (transaction): operations take effect in the session at once, and are later
//! committed, kept or undone. Specification: core.md 6, actions.md 2.4.

use std::collections::BTreeMap;
use std::ops::Deref;

use std::sync::Arc;

use vc_model::{FitErrors, JobId, NodeId, Reservation, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

use crate::certificate::CertificateTerms;
use crate::effect::EvictReason;
use crate::failed_preemption_cache::{FailureCaching, InfeasibleSearch, NodeProbe, PreemptionKind};
use crate::journal::StateMark;
use crate::node_score_cache::NodeSearch;
use crate::plugin::GradientProblem;
use crate::plugin_set::PluginSet;
use crate::scan::Filter;
use crate::session::{CacheStats, Outcome, Session, SessionState};
use crate::victim_node_index::VictimNodeIndex;
use crate::victim_selection::{EvictionRule, EvictionRuleId, Question, VictimSelection};
use crate::wait_cause::WaitCause;

/// Source of the room of a pipelined task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Pods that are already terminating free the room.
    Releasing,
    /// An eviction for this task frees the room; the node is nominated (actions.md 2.11).
    Evicted,
}

/// One operation that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Evicts a running task, which becomes Releasing.
    Evict {
        /// The victim.
        task: TaskId,
        /// The status before the eviction, which undo restores (A6).
        from: TaskStatus,
        /// The action that evicts it.
        reason: EvictReason,
        /// The task that gets the room. `None` if no single task does.
        for_task: Option<TaskId>,
        /// The rule that allowed it. `None` if no plugin voted on it.
        rule: Option<EvictionRuleId>,
    },
    /// Lets a task wait on a node for room that is being released.
    Pipeline {
        /// The task, Pending before.
        task: TaskId,
        /// The node.
        node: NodeId,
        /// Source of the room.
        room: Room,
    },
    /// Gives a task idle room of a node.
    Allocate {
        /// The task, Pending before.
        task: TaskId,
        /// The node.
        node: NodeId,
    },
}

impl Op {
    /// Returns the task whose status the operation changes.
    pub fn task(&self) -> TaskId {
        match *self {
            Self::Evict { task, .. }
            | Self::Pipeline { task, .. }
            | Self::Allocate { task, .. } => task,
        }
    }
}

/// Operations as data, to compare attempts and to replay one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan(Vec<Op>);

impl Plan {
    /// True if the plan is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the operations of another plan (Merge).
    pub fn append(&mut self, mut other: Plan) {
        self.0.append(&mut other.0);
    }
}

/// Reason why an operation was refused. A refused operation changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationRefused {
    /// The task has no job, or its job has no PodGroup and so is no part of the session.
    #[error("the task belongs to no job")]
    UnknownJob,
    /// No node object has this name; only pods refer to it.
    #[error("the node is not known")]
    UnknownNode,
    /// The task is already on this node or another one.
    #[error("the task is on a node already")]
    AlreadyPlaced,
    /// The task is on no node, so there is nothing to evict it from.
    #[error("the task is not on a node")]
    NotPlaced,
    /// The task is being deleted or has ended.
    #[error("the task is not pending")]
    NotPending,
    /// A plugin could not reserve on the node what the task needs.
    #[error("what the task needs there cannot be reserved")]
    NotReserved,
    /// The task is already terminating, has ended, or only waits for room on its node.
    #[error("the task does not run on its node")]
    NotRunning,
}

/// A group of tentative operations. When it is dropped, the operations are undone, newest first.
#[must_use]
pub struct Statement<'s, 'c> {
    session: &'s mut Session<'c>,
    /// True if an undone operation is recorded as the last transaction of its task.
    is_recorded: bool,
}

/// A savepoint: the place in a statement to roll back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

impl<'c> Deref for Statement<'_, 'c> {
    type Target = SessionState<'c>;
    fn deref(&self) -> &SessionState<'c> {
        &self.session.state
    }
}

impl<'s, 'c> Statement<'s, 'c> {
    pub(crate) fn open(session: &'s mut Session<'c>, is_recorded: bool) -> Self {
        Self { session, is_recorded }
    }

    /// Places the task on idle resources.
    ///
    /// # Errors
    /// [`OperationRefused`]; nothing is changed.
    pub fn allocate(&mut self, task: TaskId, node: NodeId) -> Result<(), OperationRefused> {
        self.check(task, node)?;
        self.session.state.place(task, TaskStatus::Allocated, node)?;
        self.session.state.journal.push(Op::Allocate { task, node });
        Ok(())
    }

    /// Places the task on resources that are being released.
    ///
    /// # Errors
    /// [`OperationRefused`]; nothing is changed.
    pub fn pipeline(
        &mut self,
        task: TaskId,
        node: NodeId,
        room: Room,
    ) -> Result<(), OperationRefused> {
        self.check(task, node)?;
        self.session.state.place(task, TaskStatus::Pipelined, node)?;
        self.session.state.journal.push(Op::Pipeline { task, node, room });
        Ok(())
    }

    /// Places the task as it was placed before, with its earlier reservation. Reserving anew could
    /// fail, because the answer may depend on the order of placements.
    ///
    /// # Errors
    /// [`OperationRefused`]; nothing is changed.
    pub fn place_again(
        &mut self,
        task: TaskId,
        status: TaskStatus,
        node: NodeId,
        promise: Option<Reservation>,
    ) -> Result<(), OperationRefused> {
        self.check(task, node)?;
        self.session.state.put(task, status, node, promise);
        self.session.state.journal.push(match status {
            TaskStatus::Allocated => Op::Allocate { task, node },
            _ => Op::Pipeline { task, node, room: Room::Releasing },
        });
        Ok(())
    }

    /// Evicts the task.
    ///
    /// # Errors
    /// [`OperationRefused`] for a task without job or node, or one that does not run there. Nothing
    /// is changed.
    pub fn evict(
        &mut self,
        task: TaskId,
        reason: EvictReason,
        for_task: Option<TaskId>,
    ) -> Result<(), OperationRefused> {
        let row = &self.session.state.cluster.tasks[task];
        // Without a PodGroup the edge cannot send the eviction (core.md 7.2), so its room would
        // never come free.
        self.session.job_of_group(task).ok_or(OperationRefused::UnknownJob)?;
        row.node.ok_or(OperationRefused::NotPlaced)?;
        let from = row.status;
        if !from.is_allocated() && from != TaskStatus::Unknown {
            return Err(OperationRefused::NotRunning);
        }
        self.session.state.hide(task);
        let rule = self.session.state.rules.of(task);
        self.session.state.journal.push(Op::Evict { task, from, reason, for_task, rule });
        Ok(())
    }

    fn check(&self, task: TaskId, node: NodeId) -> Result<(), OperationRefused> {
        let cluster = &*self.session.state.cluster;
        let row = &cluster.tasks[task];
        self.session.job_of_group(task).ok_or(OperationRefused::UnknownJob)?;
        let known = cluster.nodes.get(node).is_some_and(|node| node.present);
        match (known, row.node, row.status) {
            (false, ..) => Err(OperationRefused::UnknownNode),
            (_, Some(_), _) => Err(OperationRefused::AlreadyPlaced),
            (_, _, TaskStatus::Pending) => Ok(()),
            _ => Err(OperationRefused::NotPending),
        }
    }

    /// Returns what the session has decided so far, to add to it.
    pub fn outcome(&mut self) -> &mut Outcome {
        &mut self.session.outcome
    }

    /// Returns the counters of the caches, to add to them.
    pub fn stats(&mut self) -> &mut CacheStats {
        &mut self.session.caches.stats
    }

    /// Returns which candidates may be evicted and why. Evictions of these victims are then
    /// recorded under this rule.
    pub fn select_victims(&mut self, question: Question, candidates: &[TaskId]) -> VictimSelection {
        self.session.state.select_victims(question, candidates)
    }

    /// Draws a number below `limit` ([`Session::draw`]).
    pub fn draw(&mut self, limit: usize) -> usize {
        self.session.draw(limit)
    }

    /// Returns the best node for a task from cached results ([`Session::find_cached`]).
    pub fn find_cached(&mut self, task: TaskId, filter: Filter) -> Option<NodeSearch> {
        self.session.find_cached(task, filter)
    }

    /// Returns how many pods find room on each node, from cached rows ([`Session::count_places`]).
    pub fn count_places(
        &mut self,
        task: TaskId,
        n_places: impl Fn(&dyn Fn(Dim) -> i64) -> i64,
    ) -> Option<Vec<i64>> {
        self.session.count_places(task, n_places)
    }

    /// Ranks the nodes of a victim index for a task. Returns false if cached results cannot.
    pub fn rank_cached(&mut self, task: TaskId, victim_index: &mut VictimNodeIndex) -> bool {
        self.session.rank_cached(task, victim_index)
    }

    /// Returns the failure of a victim search, from cached results and a check of the nodes that
    /// changed since. The causes are noted. Returns `None` if the search has to run.
    pub fn known_infeasible(
        &mut self,
        task: TaskId,
        kind: PreemptionKind,
        caching: FailureCaching,
        probe: &dyn NodeProbe,
    ) -> Option<InfeasibleSearch> {
        self.session.known_infeasible(task, kind, caching, probe)
    }

    /// Runs a query while filters do not see these terminating tasks.
    pub fn without<T>(
        &mut self,
        leaving: &[TaskId],
        query: impl FnOnce(&SessionState<'_>) -> T,
    ) -> T {
        self.session.without(leaving, query)
    }

    /// Requests the removal of the queue allocation gate of a task ([`Session::remove_gate`]).
    pub fn remove_gate(&mut self, task: TaskId) {
        self.session.remove_gate(task);
    }

    /// Records the rule and the event text with which these tasks are evicted, if they are.
    pub fn allow(&mut self, victims: &[TaskId], rule: EvictionRule, message: &Arc<str>) {
        self.session.allow(victims, rule, message);
    }

    /// Returns the plugin set, to lend a plugin out of it.
    pub fn plugins_mut(&mut self) -> &mut PluginSet {
        self.session.plugins_mut()
    }

    /// Records the fit errors of a task that fits on no node.
    pub fn note_fit_errors(&mut self, task: TaskId, errors: Arc<FitErrors>) {
        self.session.state.note_fit_errors(task, errors);
    }

    /// Records why all pods of the job wait, where the cause is not one of single pods or nodes.
    pub fn note_job_fit(&mut self, job: JobId, cause: WaitCause, text: impl Into<Arc<str>>) {
        self.session.state.note_job_fit(job, cause, text);
    }

    /// Records that the network topology leaves no HyperNode for the job.
    pub fn note_topology_problem(&mut self, job: JobId, problem: GradientProblem) {
        self.session.state.note_topology_problem(job, problem);
    }

    /// Removes the fit errors of a task.
    pub fn clear_fit_errors(&mut self, task: TaskId) {
        self.session.state.clear_fit_errors(task);
    }

    /// Removes what earlier trials have noted about a task: its fit errors and its last transaction.
    pub fn forget_trials(&mut self, task: TaskId) {
        self.session.clear_fit_errors(task);
        self.session.forget_transaction(task);
    }

    /// Counts the failed tasks of the job by role ([`Session::know_failed_roles`]).
    pub fn know_failed_roles(&mut self, job: JobId) {
        self.session.state.know_failed_roles(job);
    }

    /// Counts a placed task of its job ([`Outcome::note_placed`]).
    pub fn note_placed(&mut self, task: TaskId) {
        self.session.outcome.note_placed(&self.session.state, task);
    }

    /// True if the statement has no operations.
    pub fn is_empty(&self) -> bool {
        self.session.state.journal.len() == 0
    }

    /// True if the statement evicts a task.
    pub fn evicts(&self) -> bool {
        self.ops().iter().any(|op| matches!(op, Op::Evict { .. }))
    }

    /// True if all tasks that the statement pipelines fit the idle amounts of their nodes (A29:
    /// such a statement without evictions is left to allocate).
    pub fn fits_idle_nodes(&self) -> bool {
        let mut wanted: BTreeMap<NodeId, Resource> = BTreeMap::new();
        for op in self.ops() {
            if let Op::Pipeline { task, node, .. } = *op {
                wanted.entry(node).or_default().add(self.session.state.cluster.request(task));
            }
        }
        wanted.iter().all(|(&node, sum)| sum.fits(&self.session.state.cluster.nodes[node].idle))
    }

    /// The operations so far, in order.
    pub fn ops(&self) -> &[Op] {
        self.session.state.journal.from(0)
    }

    /// Returns a savepoint at the current end of the statement.
    pub fn mark(&self) -> Mark {
        Mark(self.session.state.journal.len())
    }

    /// Returns the present state.
    pub fn state_mark(&self) -> StateMark {
        self.session.state.journal.state_mark()
    }

    /// True if only operations of the statement lie between that state and the present one.
    pub fn goes_on_from(&self, state: StateMark) -> bool {
        self.session.state.journal.goes_on_from(state)
    }

    /// Undoes everything after `mark`, newest first.
    pub fn roll_back(&mut self, mark: Mark) {
        while mark.0 < self.session.state.journal.len() {
            if let Some(op) = self.session.state.journal.pop() {
                if self.is_recorded {
                    self.session.state.remember(op);
                }
                self.session.state.undo(op);
            }
        }
    }

    /// Returns the tasks that were evicted after `mark`, in order.
    pub fn evicted_since(&self, mark: Mark) -> Vec<TaskId> {
        let ops = self.session.state.journal.from(mark.0);
        let evictions = ops.iter().filter(|op| matches!(op, Op::Evict { .. }));
        evictions.map(Op::task).collect()
    }

    /// Undoes evictions that are not needed, newest first, and returns the remaining victims in
    /// order. An eviction is undone if `is_open` is true for its victim and `holds` is true without
    /// it. The newest eviction always stays. After `mark` there may be evictions only.
    pub fn minimize_victims(
        &mut self,
        mark: Mark,
        is_open: impl Fn(&SessionState<'_>, TaskId) -> bool,
        holds: impl Fn(&SessionState<'_>) -> bool,
    ) -> Vec<TaskId> {
        match self.session.state.is_fast {
            true => self.minimize_alone(mark, is_open, holds),
            false => self.minimize_anew(mark, is_open, holds),
        }
        self.evicted_since(mark)
    }

    /// The plain form of `minimize_victims`: for each victim, all other victims are evicted anew.
    fn minimize_anew(
        &mut self,
        mark: Mark,
        is_open: impl Fn(&SessionState<'_>, TaskId) -> bool,
        holds: impl Fn(&SessionState<'_>) -> bool,
    ) {
        let mut needed = self.plan(mark);
        for place in (0..needed.0.len().saturating_sub(1)).rev() {
            if !is_open(&self.session.state, needed.0[place].task()) {
                continue;
            }
            let mut fewer = needed.clone();
            fewer.0.remove(place);
            self.replace(mark, &fewer);
            match holds(&self.session.state) {
                true => needed = fewer,
                false => self.replace(mark, &needed),
            }
        }
    }

    /// The fast form of `minimize_victims`: it undoes one eviction alone and keeps the later ones
    /// applied. Exact because sums of integers do not depend on the order of evictions (S11: sums
    /// are exact). The engine's `trims` tests compare both forms.
    fn minimize_alone(
        &mut self,
        mark: Mark,
        is_open: impl Fn(&SessionState<'_>, TaskId) -> bool,
        holds: impl Fn(&SessionState<'_>) -> bool,
    ) {
        let ops = self.plan(mark).0;
        let mut stays = vec![false; ops.len()];
        let n_doubtful = ops.len().saturating_sub(1);
        let mut tried = false;
        for (place, op) in ops.iter().enumerate().take(n_doubtful).rev() {
            if !is_open(&self.session.state, op.task()) {
                continue;
            }
            tried = true;
            self.session.state.undo(*op);
            self.session.state.journal.depart();
            stays[place] = holds(&self.session.state);
            if !stays[place] {
                self.session.state.hide(op.task());
            }
        }
        if tried {
            self.redo(mark, &stays);
        }
    }

    /// Replaces the evictions after `mark` by others that were applied before.
    fn replace(&mut self, mark: Mark, evictions: &Plan) {
        self.roll_back(mark);
        let done = self.replay(evictions);
        debug_assert!(done.is_ok(), "they were evicted before");
    }

    /// Runs a query while one eviction of the statement is undone. All other operations stay
    /// applied, and the eviction is applied again afterwards.
    pub fn with_back<T>(&mut self, eviction: Op, query: impl FnOnce(&SessionState<'_>) -> T) -> T {
        debug_assert!(self.ops().contains(&eviction), "it was not made");
        self.session.state.undo(eviction);
        self.session.state.journal.depart();
        let answer = query(&self.session.state);
        self.session.state.hide(eviction.task());
        self.session.state.journal.depart();
        answer
    }

    /// Makes the journal match the state: it drops the evictions after `mark` that were undone.
    /// Each remaining eviction gets a version of its own.
    fn redo(&mut self, mark: Mark, stays: &[bool]) {
        let ops = self.plan(mark).0;
        for (op, stays) in ops.iter().zip(stays).rev() {
            self.session.state.journal.pop();
            if !stays {
                self.session.state.undo(*op);
            }
        }
        let gone = ops.into_iter().zip(stays).filter(|(_, stays)| !**stays);
        let done = self.replay(&Plan(gone.map(|(op, _)| op).collect()));
        debug_assert!(done.is_ok(), "they were evicted before");
    }

    /// Returns the operations after `mark` as data (Volcano: Save).
    pub fn plan(&self, mark: Mark) -> Plan {
        Plan(self.session.state.journal.from(mark.0).to_vec())
    }

    /// Applies a plan again, in order (Volcano: Recover).
    ///
    /// # Errors
    /// The first refusal. The operations applied so far are undone (A8: a replay is all or
    /// nothing).
    pub fn replay(&mut self, plan: &Plan) -> Result<(), OperationRefused> {
        self.repeat(&plan.0)
    }

    /// Applies operations again, in order.
    ///
    /// # Errors
    /// The first refusal. The operations applied so far are undone.
    pub fn repeat(&mut self, ops: &[Op]) -> Result<(), OperationRefused> {
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

    /// Turns the operations into effects, in order. Returns true if anything was sent. If refusals
    /// of the binder would leave a job not ready, all operations are undone instead (A7: no gang
    /// starts below its minimum).
    pub fn commit(self) -> bool {
        self.commit_as(&CertificateTerms::default())
    }

    /// Commits like [`Statement::commit`], with the terms that the certificate of its evictions
    /// states.
    pub fn commit_as(self, claimed: &CertificateTerms) -> bool {
        if self.session.state.is_trial() {
            self.end_trial();
            return true;
        }
        crate::klog!(3; "Committing operations ...");
        let ops = self.session.state.journal.split_off(0);
        self.session.commit(ops, claimed, self.is_recorded)
    }

    /// Leaves the operations applied until the session ends; nothing is sent (actions.md 4.9). The
    /// recorded last transactions of these tasks are dropped.
    pub fn keep(self) {
        if self.session.state.is_trial() {
            return self.end_trial();
        }
        let mut ops = self.session.state.journal.split_off(0);
        for op in &ops {
            self.session.state.records.last_transaction.take(op.task());
        }
        self.session.state.held.append(&mut ops);
    }

    /// Records the operations of a trial and undoes them.
    fn end_trial(mut self) {
        let ops = self.session.state.journal.from(0).to_vec();
        self.session.state.record_trial(ops);
        self.clear();
    }

    /// Returns all operations of the statement as data.
    pub fn all(&self) -> Plan {
        self.plan(Mark(0))
    }

    /// Undoes everything so far; the statement stays open.
    pub fn clear(&mut self) {
        self.roll_back(Mark(0));
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
            self.roll_back(Mark(0));
        }
    }
}

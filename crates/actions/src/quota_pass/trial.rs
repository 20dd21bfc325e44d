//! A trial of the quota pass: does a job have nodes once whole groups are evicted? The rules are
//! those of allocate.
//! Specification: cohort.md B.4 (protecting plugins), B.6.

use vc_framework::{
    EvictReason, EvictionRule, Mark, PluginSet, Room, SessionState, SessionView, Statement,
    Surroundings, TargetGroup,
};
use vc_model::{JobId, NodeId, QueueId, TaskId};

use crate::allocate::find_node;

/// A task with its planned node.
type TrialPlace = (TaskId, NodeId);

/// The trial for one job. Every try is rolled back until `apply`.
pub(super) struct QuotaPassTrial<'t, 's, 'c> {
    statement: Statement<'s, 'c>,
    start: Mark,
    job: JobId,
    queue: QueueId,
    tasks: &'t [TaskId],
    reason: EvictReason,
    /// The last successful plan: the evicted groups, and the placements.
    plan: Option<(Vec<JobId>, Vec<TrialPlace>)>,
    /// Why the last failed try found no node.
    misfit: Option<String>,
}

impl<'t, 's, 'c> QuotaPassTrial<'t, 's, 'c> {
    pub(super) fn new(
        statement: Statement<'s, 'c>,
        job: JobId,
        tasks: &'t [TaskId],
        reason: EvictReason,
    ) -> Self {
        let (start, queue) = (statement.mark(), statement.jobs[job].queue);
        Self { statement, start, job, queue, tasks, reason, plan: None, misfit: None }
    }

    /// Returns the tasks of a group that hold quota.
    pub(super) fn members(&self, group: JobId) -> Vec<TaskId> {
        members(&self.statement, group)
    }

    /// Returns why there is no node.
    pub(super) fn fit_text(&self) -> Option<&str> {
        self.misfit.as_deref()
    }

    pub(super) fn into_statement(self) -> Statement<'s, 'c> {
        self.statement
    }

    fn evict(&mut self, group: JobId) -> bool {
        let for_task = self.tasks.first().copied();
        let reason = self.reason;
        let members = members(&self.statement, group);
        members.iter().all(|&task| self.statement.evict(task, reason, for_task).is_ok())
    }

    /// Finds a node for every task, one after the other.
    ///
    /// # Errors
    /// Why some task has no node, or that the gang is not complete.
    fn find(&mut self) -> Result<Vec<TrialPlace>, String> {
        let mut places = Vec::new();
        let nodes = self.statement.info().nodes.clone();
        for &task in self.tasks {
            let node = find_node(&mut self.statement, task, &nodes)
                .map_err(|errors| errors.text(&self.statement.dims))?;
            let done = self.statement.pipeline(task, node, Room::Evicted);
            done.map_err(|refused| refused.to_string())?;
            places.push((task, node));
        }
        self.holds().then_some(places).ok_or_else(|| "the gang is not complete".to_owned())
    }

    fn holds(&self) -> bool {
        self.statement.plugins().job_pipelined(self.statement.view(), self.job)
    }

    /// Repeats these placements. Returns false if one of them no longer holds.
    fn repeat(&mut self, places: &[TrialPlace], room: Room) -> bool {
        places.iter().all(|&(task, node)| {
            let session: &SessionState<'_> = &self.statement;
            let mut findings = Vec::new();
            session.plugins().predicate(session.view(), task, node, &mut findings);
            findings.is_empty()
                && session.fits_future_idle(task, node)
                && session.plugins().allocatable(session.view(), self.queue, task).is_ok()
                && self.statement.pipeline(task, node, room).is_ok()
        }) && self.holds()
    }

    /// Evicts the groups and places the job for good. Returns false if that fails; the caller then
    /// drops the trial.
    pub(super) fn apply(&mut self, groups: &[TargetGroup]) -> bool {
        let gone: Vec<JobId> = groups.iter().map(|group| group.job).collect();
        let Some((_, places)) = self.plan.take().filter(|(taken, _)| *taken == gone) else {
            return false;
        };
        for group in groups {
            self.allow(group);
            if !self.evict(group.job) {
                return false;
            }
        }
        let room = if groups.is_empty() { Room::Releasing } else { Room::Evicted };
        let done = self.repeat(&places, room);
        self.plan = Some((gone, places));
        done
    }

    /// Records for each member the rule by which its group is evicted.
    fn allow(&mut self, group: &TargetGroup) {
        let own = self.statement.jobs[group.job].queue == self.queue;
        let filters = self.statement.plugins().filter_names(own);
        let plugins = self.statement.plugins().targets_name().into_iter().collect();
        let rule =
            EvictionRule { plugins, filters, why: Some(group.reason), ..EvictionRule::default() };
        let members = members(&self.statement, group.job);
        self.statement.allow(&members, rule, &group.message);
    }
}

impl QuotaPassTrial<'_, '_, '_> {
    /// True if every group is needed: with any one of them kept, the same placements fail.
    pub(super) fn is_minimal(&mut self, groups: &[TargetGroup]) -> bool {
        let Some((_, places)) = self.plan.clone() else { return false };
        let minimal = groups.iter().all(|kept| {
            self.statement.roll_back(self.start);
            let mut others = groups.iter().filter(|group| group.job != kept.job);
            let evicted = others.all(|group| self.evict(group.job));
            evicted && !self.repeat(&places, Room::Evicted)
        });
        self.statement.roll_back(self.start);
        minimal
    }

    fn all_members(&self, groups: &[JobId]) -> Vec<TaskId> {
        groups.iter().flat_map(|&group| members(&self.statement, group)).collect()
    }

    /// Returns the placements with these groups evicted: as allocate finds them, else the previous
    /// ones if they hold. The queue must not be overused, or allocate would skip the job.
    fn places(&mut self, taken: &[JobId]) -> Result<Vec<TrialPlace>, String> {
        if !taken.iter().all(|&group| self.evict(group)) {
            return Err("a pod of the groups does not run".to_owned());
        }
        if self.statement.plugins().overused(self.statement.view(), self.queue) {
            return Err(format!("queue {} is overused", self.statement.queues[self.queue].name));
        }
        let from = self.statement.mark();
        let found = self.find();
        let Some((_, known)) = self.plan.clone().filter(|_| found.is_err()) else { return found };
        self.statement.roll_back(from);
        if self.repeat(&known, Room::Evicted) { Ok(known) } else { found }
    }
}

impl Surroundings for QuotaPassTrial<'_, '_, '_> {
    fn view(&self) -> SessionView<'_> {
        self.statement.view()
    }

    fn plugins(&self) -> &PluginSet {
        self.statement.plugins()
    }

    fn plugins_mut(&mut self) -> &mut PluginSet {
        self.statement.plugins_mut()
    }

    fn may_take(&mut self, taken: &[JobId], group: JobId) -> bool {
        let (gone, members) = (|| self.all_members(taken), self.members(group));
        let own = self.statement.jobs[group].queue == self.queue;
        self.statement.plugins().lets_go(self.statement.view(), own, &gone, &members)
    }

    fn has_place(&mut self, taken: &[JobId]) -> bool {
        let found = self.places(taken);
        self.statement.roll_back(self.start);
        match found {
            Ok(places) => {
                self.plan = Some((taken.to_vec(), places));
                true
            }
            Err(misfit) => {
                self.misfit = Some(misfit);
                false
            }
        }
    }
}

/// Returns the tasks of a group that hold quota, in their order.
fn members(session: &SessionState<'_>, group: JobId) -> Vec<TaskId> {
    let holds = |task: &TaskId| session.tasks[*task].status.is_allocated();
    session.jobs[group].tasks.iter().copied().filter(holds).collect()
}

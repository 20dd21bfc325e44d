//! Trying out whether a job has a place when whole groups are gone, by the same rules as allocate.
//! Specification: cohort.md B.4 (protecting plugins), B.6.

use vc_framework::{
    Ask, Dispatch, EvictReason, Mark, Room, Rule, Session, Statement, Surroundings, TargetGroup,
};
use vc_model::{JobId, NodeId, QueueId, TaskId};

use crate::allocate::find_node;

/// A place for a task.
type Place = (TaskId, NodeId);

/// What is tried for one job. Everything is undone until it is applied.
pub(super) struct Trial<'t, 's, 'c> {
    statement: Statement<'s, 'c>,
    start: Mark,
    job: JobId,
    queue: QueueId,
    tasks: &'t [TaskId],
    reason: EvictReason,
    /// Of the last time that there was a place, with those that were gone.
    plan: Option<(Vec<JobId>, Vec<Place>)>,
    /// Why there was no place the last time that there was none.
    misfit: Option<String>,
}

impl<'t, 's, 'c> Trial<'t, 's, 'c> {
    pub(super) fn new(
        statement: Statement<'s, 'c>,
        job: JobId,
        tasks: &'t [TaskId],
        reason: EvictReason,
    ) -> Self {
        let (start, queue) = (statement.mark(), statement.jobs[job].queue);
        Self { statement, start, job, queue, tasks, reason, plan: None, misfit: None }
    }

    /// The tasks of a group that hold quota.
    pub(super) fn members(&self, group: JobId) -> Vec<TaskId> {
        members(&self.statement, group)
    }

    /// Why there is no place.
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

    /// Finds a place for every task, one after the other.
    fn find(&mut self) -> Result<Vec<Place>, String> {
        let mut places = Vec::new();
        let nodes = self.statement.facts().nodes.clone();
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
        self.statement.hooks().job_pipelined(self.statement.ask(), self.job)
    }

    /// Makes the same placements again.
    fn repeat(&mut self, places: &[Place], room: Room) -> bool {
        places.iter().all(|&(task, node)| {
            let session: &Session<'_> = &self.statement;
            let mut findings = Vec::new();
            session.hooks().predicate(session.ask(), task, node, &mut findings);
            findings.is_empty()
                && session.fits_future_idle(task, node)
                && session.hooks().allocatable(session.ask(), self.queue, task).is_ok()
                && self.statement.pipeline(task, node, room).is_ok()
        }) && self.holds()
    }

    /// Evicts the groups and places the job for good; false: nothing was done.
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

    /// Each member goes by the rule that was found for the group.
    fn allow(&mut self, group: &TargetGroup) {
        let own = self.statement.jobs[group.job].queue == self.queue;
        let filters = self.statement.hooks().filter_names(own);
        let plugins = self.statement.hooks().targets_name().into_iter().collect();
        let rule = Rule { plugins, filters, why: Some(group.reason), ..Rule::default() };
        let members = members(&self.statement, group.job);
        self.statement.allow(&members, rule, &group.message);
    }
}

impl Trial<'_, '_, '_> {
    /// Whether no group could be kept: with any one of them there is no room for the same places.
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

    /// Places when these are gone: as allocate finds them, else where they were found before.
    fn places(&mut self, taken: &[JobId]) -> Result<Vec<Place>, String> {
        if !taken.iter().all(|&group| self.evict(group)) {
            return Err("a pod of the groups does not run".to_owned());
        }
        let from = self.statement.mark();
        let found = self.find();
        let Some((_, known)) = self.plan.clone().filter(|_| found.is_err()) else { return found };
        self.statement.roll_back(from);
        if self.repeat(&known, Room::Evicted) { Ok(known) } else { found }
    }
}

impl Surroundings for Trial<'_, '_, '_> {
    fn ask(&self) -> Ask<'_> {
        self.statement.ask()
    }

    fn dispatch(&mut self) -> &mut Dispatch {
        self.statement.dispatch()
    }

    fn may_take(&mut self, taken: &[JobId], group: JobId) -> bool {
        let (gone, members) = (|| self.all_members(taken), self.members(group));
        let own = self.statement.jobs[group].queue == self.queue;
        self.statement.hooks().lets_go(self.statement.ask(), own, &gone, &members)
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

/// The tasks of a group that hold quota, in their order.
fn members(session: &Session<'_>, group: JobId) -> Vec<TaskId> {
    let holds = |task: &TaskId| session.tasks[*task].status.is_allocated();
    session.jobs[group].tasks.iter().copied().filter(holds).collect()
}

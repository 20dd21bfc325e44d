//! The active jobs of a session, kept across cycles: the jobs that a session has to look at, and
//! the sums of each queue. The cost depends on the number of changed jobs, not of running ones.
//!
//! Exact because:
//! - everything is read from the row of a job and its queue, and decided by plugins that read no
//!   more;
//! - a changed row is checked again, and a queue that comes, goes, opens or closes makes all jobs
//!   be checked;
//! - a copy of the cluster has its change log, where a copy of this reads what has changed since.
//!
//! The plain evaluator checks all jobs in every cycle and treats none as idle; the engine's
//! `histories.rs` compares the two.
//! Specification: actions.md 12.2 S10, 12.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{
    ChangeReader, Cluster, Column, CopyOnWrite, Id, JobId, PodGroupPhase, QueueId, TaskStatus,
};

use vc_resource::Resource;

use crate::plugin::{SessionInfo, SessionView};
use crate::plugin_set::{PluginSet, in_session};
use crate::sums::{JobPart, JobSums};

/// Whether a session has to look at a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobActivity {
    /// The job has no PodGroup, or its queue does not exist.
    Outside,
    /// The job waits, or may need an action or a report.
    Active,
    /// The job runs or is complete, and nothing happens to it until its row changes.
    Idle,
}

#[derive(Clone, Debug)]
struct JobRow {
    activity: JobActivity,
    queue: QueueId,
    /// Amounts of the job. Empty if the job is outside of the session.
    part: JobPart,
}

/// The jobs as of the begin of the session.
#[derive(Clone, Debug, Default)]
pub struct ActiveJobs {
    /// True if kept across sessions. Otherwise all jobs are checked anew, and none is idle.
    is_kept: bool,
    /// True if the next session tells its plugins that all jobs may have changed.
    reports_all_changed: bool,
    changed_jobs: ChangeReader<JobId>,
    rows: Column<JobId, JobRow>,
    /// Number of rows, with empty ones.
    n_rows: usize,
    /// Active jobs by key.
    open: CopyOnWrite<Vec<JobId>>,
    outside: CopyOnWrite<Vec<JobId>>,
    n_jobs: usize,
    queues: CopyOnWrite<Vec<JobSums>>,
    /// Jobs that may have changed since the last session. `None` means all jobs.
    changed: Option<Vec<JobId>>,
    /// Queues whose sums may have changed since the last session, possibly repeated. Valid only
    /// while `changed` is `Some`.
    moved_queues: Vec<QueueId>,
    gone: Vec<JobId>,
    nothing: JobSums,
    /// Amounts of the job that was entered last.
    entered: Option<JobPart>,
}

impl ActiveJobs {
    /// Creates an instance that is kept across sessions and finds idle jobs.
    pub fn kept() -> Self {
        Self { is_kept: true, ..Self::default() }
    }

    /// Lets copies made from now on share what is known of the jobs, until either side writes to it.
    pub fn share(&mut self) {
        self.rows.share();
        self.open.share();
        self.outside.share();
        self.queues.share();
    }

    /// Takes what is known of the jobs for its own: what a copy has, too, is copied.
    pub fn unshare(&mut self) {
        self.rows.unshare();
        self.open.unshare();
        self.outside.unshare();
        self.queues.unshare();
    }

    /// Returns a copy for a copy of the cluster, whose plugins keep nothing of the last session: the next one tells
    /// them that all jobs may have changed.
    #[must_use]
    pub fn for_copy(&self) -> Self {
        Self {
            reports_all_changed: true,
            rows: self.rows.clone(),
            open: self.open.clone(),
            outside: self.outside.clone(),
            queues: self.queues.clone(),
            nothing: JobSums::default(),
            entered: None,
            changed: None,
            moved_queues: Vec::new(),
            gone: Vec::new(),
            ..*self
        }
    }

    /// Returns the number of rows, with empty ones. A row is used again once its job is gone.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Returns the jobs, by key, that are not part of the session, because they have no PodGroup or
    /// no queue.
    pub fn outside(&self) -> &[JobId] {
        self.outside.get()
    }

    /// Returns the number of jobs of the session.
    pub fn n_jobs(&self) -> usize {
        self.n_jobs
    }

    /// Returns the sums of the queue's own jobs, without child queues.
    pub fn sums(&self, queue: QueueId) -> &JobSums {
        self.queues.get().get(queue.index()).unwrap_or(&self.nothing)
    }

    /// Returns the current sums of the queues whose sums differ from those at the begin of the
    /// session. Only the jobs in `changed` may have changed.
    pub fn sums_with(&self, cluster: &Cluster, changed: &[JobId]) -> BTreeMap<QueueId, JobSums> {
        let mut sums = BTreeMap::new();
        for &job in changed {
            let Some(row) = self.row(job).filter(|row| row.is_in()) else { continue };
            let now = JobPart::of(&cluster.jobs[job], Some(&row.part));
            if now != row.part {
                let sum = sums.entry(row.queue).or_insert_with(|| self.sums(row.queue).clone());
                sum.leave(&row.part, false);
                sum.enter(&now, false);
            }
        }
        sums
    }

    /// Returns what a job held at the begin of the session. Returns `None` if it is not part of the
    /// session.
    pub fn allocated_at_open(&self, job: JobId) -> Option<&Arc<Resource>> {
        self.row(job).filter(|row| row.is_in()).map(|row| row.part.allocated())
    }

    /// Returns the queues with idle jobs.
    pub fn queues_with_idle_jobs(&self) -> impl Iterator<Item = QueueId> + '_ {
        let queues = self.queues.get().iter().enumerate().filter(|(_, sums)| 0 < sums.n_idle);
        queues.map(|(index, _)| QueueId::new(u32::try_from(index).expect("ids come from u32")))
    }

    /// Returns the jobs that may have changed since the last session began, including jobs outside
    /// of this session. `None` means all jobs.
    pub fn changed(&self) -> Option<&[JobId]> {
        self.changed.as_deref()
    }

    /// Returns the queues whose sums may have changed since the last session began, in no
    /// particular order. `None` means all queues.
    pub fn changed_queues(&self) -> Option<&[QueueId]> {
        self.changed.as_ref().map(|_| &*self.moved_queues)
    }

    /// Returns the jobs that were part of the last session and are not part of this one.
    pub fn gone(&self) -> &[JobId] {
        &self.gone
    }

    /// Begins a session. Returns the active jobs by key.
    pub(crate) fn follow(
        &mut self,
        cluster: &Cluster,
        plugins: &PluginSet,
        info: &SessionInfo,
    ) -> Vec<JobId> {
        let check = ActivityCheck {
            view: SessionView { cluster, info },
            plugins,
            finds_idle: self.is_kept && plugins.reads_job_rows_only(),
        };
        self.gone.clear();
        self.moved_queues.clear();
        let changed = self.changed_jobs.read(cluster.job_changes());
        let reports_all = std::mem::take(&mut self.reports_all_changed);
        match changed.filter(|_| self.is_kept).map(Iterator::collect::<Vec<JobId>>) {
            Some(mut changed) => {
                changed.sort_unstable();
                self.check_changed(&check, &changed);
                self.changed = (!reports_all).then_some(changed);
            }
            None => {
                self.changed = None;
                self.check_all(&check);
            }
        }
        self.moved_queues.sort_unstable();
        self.moved_queues.dedup();
        self.open.get().clone()
    }

    /// Returns the jobs, by key, that may need a status or report at the close of the session.
    /// These are the active jobs and the jobs that changed since the last session began.
    pub(crate) fn to_close(&self, cluster: &Cluster) -> Vec<JobId> {
        let unread = self.changed_jobs.unread(cluster.job_changes());
        let (Some(before), Some(now)) = (&self.changed, unread.filter(|_| self.is_kept)) else {
            return cluster.jobs_by_key().filter(|&job| in_session(cluster, job)).collect();
        };
        let mut jobs: Vec<JobId> = before.iter().copied().chain(now).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs.retain(|&job| match self.row(job).map(|row| row.activity) {
            // Active jobs are in `self.open`, which is merged below.
            None | Some(JobActivity::Outside | JobActivity::Active) => false,
            Some(JobActivity::Idle) => true,
        });
        merged(cluster, self.open.get(), jobs)
    }

    fn row(&self, job: JobId) -> Option<&JobRow> {
        self.rows.get(job)
    }

    /// Returns the jobs with this activity, in their order.
    fn with_activity(&self, jobs: &[JobId], activity: JobActivity) -> Vec<JobId> {
        let stands = |&job: &JobId| self.row(job).is_some_and(|row| row.activity == activity);
        jobs.iter().copied().filter(stands).collect()
    }

    fn check_all(&mut self, check: &ActivityCheck<'_>) {
        let before = std::mem::take(&mut self.rows);
        self.queues = CopyOnWrite::default();
        self.n_jobs = 0;
        let jobs: Vec<JobId> = check.view.cluster.jobs_by_key().collect();
        jobs.iter().for_each(|&job| self.enter(check, job));
        self.open = CopyOnWrite::Own(self.with_activity(&jobs, JobActivity::Active));
        self.outside = CopyOnWrite::Own(self.with_activity(&jobs, JobActivity::Outside));
        let was_in = before.iter().filter(|(_, row)| row.is_in());
        let left = was_in.filter(|(job, _)| !self.row(*job).is_some_and(JobRow::is_in));
        self.gone = left.map(|(job, _)| job).collect();
    }

    fn check_changed(&mut self, check: &ActivityCheck<'_>, changed: &[JobId]) {
        let (mut opened, mut fell_out) = (Vec::new(), Vec::new());
        for &job in changed {
            let before = self.leave(job);
            self.enter(check, job);
            let (was, is) =
                (before.as_ref().map(|row| row.activity), self.row(job).map(|row| row.activity));
            if before.is_some_and(|row| row.is_in()) && !self.row(job).is_some_and(JobRow::is_in) {
                self.gone.push(job);
            }
            match is {
                Some(JobActivity::Active) if was != is => opened.push(job),
                Some(JobActivity::Outside) if was != is => fell_out.push(job),
                _ => {}
            }
        }
        let (open, outside) = (self.open.get(), self.outside.get());
        let cluster = check.view.cluster;
        let open = self.still(cluster, open, opened, JobActivity::Active);
        let outside = self.still(cluster, outside, fell_out, JobActivity::Outside);
        (self.open, self.outside) = (CopyOnWrite::Own(open), CopyOnWrite::Own(outside));
    }

    /// Returns the jobs of the list that still have this activity, together with the new ones, by
    /// key.
    fn still(
        &self,
        cluster: &Cluster,
        list: &[JobId],
        new: Vec<JobId>,
        activity: JobActivity,
    ) -> Vec<JobId> {
        let list = self.with_activity(list, activity);
        match new.is_empty() {
            true => list,
            false => merged(cluster, &list, new),
        }
    }

    fn leave(&mut self, job: JobId) -> Option<JobRow> {
        let row = self.rows.take(job)?;
        if row.is_in() {
            self.n_jobs -= 1;
            let sums = &mut self.queues.get_mut()[row.queue.index()];
            sums.leave(&row.part, row.activity == JobActivity::Idle);
            self.moved_queues.push(row.queue);
        }
        Some(row)
    }

    fn enter(&mut self, check: &ActivityCheck<'_>, job: JobId) {
        let Some(found) = check.view.cluster.jobs.get(job) else { return };
        let (activity, queue) = (check.activity(job), found.queue);
        let part = match activity {
            JobActivity::Outside => JobPart::default(),
            JobActivity::Active | JobActivity::Idle => JobPart::of(found, self.entered.as_ref()),
        };
        self.entered = Some(part.clone());
        let row = JobRow { activity, queue, part };
        if row.is_in() {
            let queues = self.queues.get_mut();
            if queues.len() <= queue.index() {
                queues.resize_with(queue.index() + 1, JobSums::default);
            }
            self.n_jobs += 1;
            queues[queue.index()].enter(&row.part, activity == JobActivity::Idle);
            self.moved_queues.push(queue);
        }
        self.n_rows = self.n_rows.max(job.index() + 1);
        *self.rows.place(job) = Some(row);
    }
}

impl JobRow {
    fn is_in(&self) -> bool {
        self.activity != JobActivity::Outside
    }
}

/// The inputs for deciding a job's activity.
struct ActivityCheck<'a> {
    view: SessionView<'a>,
    plugins: &'a PluginSet,
    finds_idle: bool,
}

/// Statuses of tasks that wait, or whose nomination may have to be removed.
const WAITING: [TaskStatus; 4] =
    [TaskStatus::Pending, TaskStatus::Allocated, TaskStatus::Pipelined, TaskStatus::Binding];

impl ActivityCheck<'_> {
    fn activity(&self, job: JobId) -> JobActivity {
        if !in_session(self.view.cluster, job) {
            return JobActivity::Outside;
        }
        match self.finds_idle && self.is_settled(job) {
            true => JobActivity::Idle,
            false => JobActivity::Active,
        }
    }

    /// True if no task of the job waits, no action can change it, and all its reports depend only
    /// on its row.
    fn is_settled(&self, job: JobId) -> bool {
        let row = &self.view.cluster.jobs[job];
        let (view, plugins) = (self.view, self.plugins);
        WAITING.iter().all(|&status| row.counts.of(status) == 0)
            && matches!(row.phase(), PodGroupPhase::Running | PodGroupPhase::Completed)
            && row.is_ready()
            && plugins.job_ready(view, job)
            && plugins.job_valid(view, job).is_ok()
            && !plugins.job_starving(view, job)
    }
}

/// Merges both lists by key. The first list is sorted, and no job is in both.
fn merged(cluster: &Cluster, sorted: &[JobId], mut others: Vec<JobId>) -> Vec<JobId> {
    let key = |job: JobId| &cluster.jobs[job].key;
    others.sort_unstable_by(|&l, &r| key(l).cmp(key(r)));
    let mut all = Vec::with_capacity(sorted.len() + others.len());
    let mut rest = sorted;
    for other in others {
        let (before, after) = rest.split_at(rest.partition_point(|&job| key(job) < key(other)));
        all.extend_from_slice(before);
        all.push(other);
        rest = after;
    }
    all.extend_from_slice(rest);
    all
}

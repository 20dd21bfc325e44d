//! The roster of jobs, kept from cycle to cycle: which of them nothing can happen to and nothing is
//! owed, and what the jobs of each queue hold together. Keeping it costs the jobs that changed, not
//! those that run. Exact: all of it is read off the row of a job and its queue, and judged by plugins
//! that read no more; a row that was written to is looked at again, and where a queue came, went,
//! opened or closed everything is. The plain evaluator looks at everything in every cycle and settles
//! nobody; `histories.rs` of the engine's tests compares the two. Specification: actions.md 12.2 S10,
//! 12.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{ChangeReader, Cluster, Id, JobId, PodGroupPhase, QueueId, TaskStatus};

use vc_resource::Resource;

use crate::dispatch::{Dispatch, in_session};
use crate::plugin::{Ask, Facts};
use crate::sums::{JobSums, Part};

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It has no PodGroup, or its queue does not exist.
    Outside,
    /// It waits, or something may be owed to it.
    Open,
    /// It runs or is complete, and stays as it is until its row changes.
    Settled,
}

#[derive(Clone, Debug)]
struct Row {
    standing: Standing,
    queue: QueueId,
    /// Empty outside the session.
    part: Part,
}

/// The jobs, as they stood when the session began.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// Kept from session to session; else it begins anew, and settles nobody.
    lasts: bool,
    changed_jobs: ChangeReader<JobId>,
    rows: Vec<Option<Row>>,
    /// By key.
    open: Vec<JobId>,
    outside: Vec<JobId>,
    n_jobs: usize,
    queues: Vec<JobSums>,
    /// `None`: all.
    changed: Option<Vec<JobId>>,
    /// Queues whose sums may be others than when the last session began, once or more; only while
    /// `changed` says which jobs.
    moved_queues: Vec<QueueId>,
    gone: Vec<JobId>,
    nothing: JobSums,
    /// Of the job that entered last.
    entered: Option<Part>,
}

impl Roster {
    /// One that is kept, and settles jobs.
    pub fn lasting() -> Self {
        Self { lasts: true, ..Self::default() }
    }

    /// By key: jobs that are not part of the session, because they have no PodGroup or no queue.
    pub fn outside(&self) -> &[JobId] {
        &self.outside
    }

    /// All jobs of the session.
    pub fn n_jobs(&self) -> usize {
        self.n_jobs
    }

    /// What the jobs of this queue hold, without those of its children.
    pub fn sums(&self, queue: QueueId) -> &JobSums {
        self.queues.get(queue.index()).unwrap_or(&self.nothing)
    }

    /// What the jobs of each queue hold now together, where it is something else than when the
    /// session began; only these jobs may have changed.
    pub fn sums_with(&self, cluster: &Cluster, changed: &[JobId]) -> BTreeMap<QueueId, JobSums> {
        let mut sums = BTreeMap::new();
        for &job in changed {
            let Some(row) = self.row(job).filter(|row| row.is_in()) else { continue };
            let now = Part::of(&cluster.jobs[job], Some(&row.part));
            if now != row.part {
                let sum = sums.entry(row.queue).or_insert_with(|| self.sums(row.queue).clone());
                sum.leave(&row.part, false);
                sum.enter(&now, false);
            }
        }
        sums
    }

    /// What a job held when the session began; `None`: it is not part of it.
    pub fn allocated_at_open(&self, job: JobId) -> Option<&Arc<Resource>> {
        self.row(job).filter(|row| row.is_in()).map(|row| row.part.allocated())
    }

    /// Queues with jobs that run and that no action looks at.
    pub fn settled_queues(&self) -> impl Iterator<Item = QueueId> + '_ {
        let queues = self.queues.iter().enumerate().filter(|(_, sums)| 0 < sums.n_settled);
        queues.map(|(index, _)| QueueId::new(u32::try_from(index).expect("ids come from u32")))
    }

    /// Jobs that may stand otherwise than when the last session began, those that are not part of
    /// this one among them. `None`: all.
    pub fn changed(&self) -> Option<&[JobId]> {
        self.changed.as_deref()
    }

    /// Queues whose jobs may hold something else together than when the last session began, in no
    /// particular order. `None`: all.
    pub fn changed_queues(&self) -> Option<&[QueueId]> {
        self.changed.as_ref().map(|_| &*self.moved_queues)
    }

    /// Jobs that were part of the last session and are not of this.
    pub fn gone(&self) -> &[JobId] {
        &self.gone
    }

    /// A session begins: the jobs that are open, by key.
    pub(crate) fn follow(
        &mut self,
        cluster: &Cluster,
        hooks: &Dispatch,
        facts: &Facts,
    ) -> Vec<JobId> {
        let judge = Judge {
            ask: Ask { cluster, facts },
            hooks,
            settles: self.lasts && hooks.judges_rows(),
        };
        self.gone.clear();
        self.moved_queues.clear();
        let changed = self.changed_jobs.read(cluster.job_changes());
        match changed.filter(|_| self.lasts).map(Iterator::collect::<Vec<JobId>>) {
            Some(mut changed) => {
                changed.sort_unstable();
                self.look_again(&judge, &changed);
                self.changed = Some(changed);
            }
            None => {
                self.changed = None;
                self.look_at_all(&judge);
            }
        }
        self.moved_queues.sort_unstable();
        self.moved_queues.dedup();
        self.open.clone()
    }

    /// By key: the jobs that something may be owed at the close of the session: those that are open
    /// and those that were written to since the last session began.
    pub(crate) fn to_close(&self, cluster: &Cluster) -> Vec<JobId> {
        let unread = self.changed_jobs.unread(cluster.job_changes());
        let (Some(before), Some(now)) = (&self.changed, unread.filter(|_| self.lasts)) else {
            return cluster.jobs_by_key().filter(|&job| in_session(cluster, job)).collect();
        };
        let mut jobs: Vec<JobId> = before.iter().copied().chain(now).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs.retain(|&job| match self.row(job).map(|row| row.standing) {
            // They are in the list that follows.
            None | Some(Standing::Outside | Standing::Open) => false,
            Some(Standing::Settled) => true,
        });
        merged(cluster, &self.open, jobs)
    }

    fn row(&self, job: JobId) -> Option<&Row> {
        self.rows.get(job.index())?.as_ref()
    }

    /// Those of the jobs that stand so, in their order.
    fn standing(&self, jobs: &[JobId], standing: Standing) -> Vec<JobId> {
        let stands = |&job: &JobId| self.row(job).is_some_and(|row| row.standing == standing);
        jobs.iter().copied().filter(stands).collect()
    }

    fn look_at_all(&mut self, judge: &Judge<'_>) {
        let before = std::mem::take(&mut self.rows);
        self.queues.clear();
        self.n_jobs = 0;
        let jobs: Vec<JobId> = judge.ask.cluster.jobs_by_key().collect();
        // With room for those that come: to make it is as dear as many cycles.
        self.rows.reserve(jobs.len() + jobs.len() / 8);
        jobs.iter().for_each(|&job| self.enter(judge, job));
        self.open = self.standing(&jobs, Standing::Open);
        self.outside = self.standing(&jobs, Standing::Outside);
        let ids = before.iter().enumerate().map(|(index, row)| (JobId::new(index as u32), row));
        let was_in = ids.filter(|(_, row)| row.as_ref().is_some_and(Row::is_in));
        let left = was_in.filter(|(job, _)| !self.row(*job).is_some_and(Row::is_in));
        self.gone = left.map(|(job, _)| job).collect();
    }

    fn look_again(&mut self, judge: &Judge<'_>, changed: &[JobId]) {
        let (mut opened, mut fell_out) = (Vec::new(), Vec::new());
        for &job in changed {
            let before = self.leave(job);
            self.enter(judge, job);
            let (was, is) =
                (before.as_ref().map(|row| row.standing), self.row(job).map(|row| row.standing));
            if before.is_some_and(|row| row.is_in()) && !self.row(job).is_some_and(Row::is_in) {
                self.gone.push(job);
            }
            match is {
                Some(Standing::Open) if was != is => opened.push(job),
                Some(Standing::Outside) if was != is => fell_out.push(job),
                _ => {}
            }
        }
        let (open, outside) = (std::mem::take(&mut self.open), std::mem::take(&mut self.outside));
        let cluster = judge.ask.cluster;
        self.open = self.still(cluster, open, opened, Standing::Open);
        self.outside = self.still(cluster, outside, fell_out, Standing::Outside);
    }

    /// The list without those that stand otherwise now, with the new ones.
    fn still(
        &self,
        cluster: &Cluster,
        list: Vec<JobId>,
        new: Vec<JobId>,
        standing: Standing,
    ) -> Vec<JobId> {
        let list = self.standing(&list, standing);
        match new.is_empty() {
            true => list,
            false => merged(cluster, &list, new),
        }
    }

    fn leave(&mut self, job: JobId) -> Option<Row> {
        let row = self.rows.get_mut(job.index())?.take()?;
        if row.is_in() {
            self.n_jobs -= 1;
            self.queues[row.queue.index()].leave(&row.part, row.standing == Standing::Settled);
            self.moved_queues.push(row.queue);
        }
        Some(row)
    }

    fn enter(&mut self, judge: &Judge<'_>, job: JobId) {
        let Some(found) = judge.ask.cluster.jobs.get(job) else { return };
        let (standing, queue) = (judge.standing(job), found.queue);
        let part = match standing {
            Standing::Outside => Part::default(),
            Standing::Open | Standing::Settled => Part::of(found, self.entered.as_ref()),
        };
        self.entered = Some(part.clone());
        let row = Row { standing, queue, part };
        if row.is_in() {
            if self.queues.len() <= queue.index() {
                self.queues.resize_with(queue.index() + 1, JobSums::default);
            }
            self.n_jobs += 1;
            self.queues[queue.index()].enter(&row.part, standing == Standing::Settled);
            self.moved_queues.push(queue);
        }
        if self.rows.len() <= job.index() {
            self.rows.resize_with(job.index() + 1, || None);
        }
        self.rows[job.index()] = Some(row);
    }
}

impl Row {
    fn is_in(&self) -> bool {
        self.standing != Standing::Outside
    }
}

/// What it takes to say how a job stands.
struct Judge<'a> {
    ask: Ask<'a>,
    hooks: &'a Dispatch,
    settles: bool,
}

/// Statuses of tasks that wait, or whose nomination may have to go.
const WAITING: [TaskStatus; 4] =
    [TaskStatus::Pending, TaskStatus::Allocated, TaskStatus::Pipelined, TaskStatus::Binding];

impl Judge<'_> {
    fn standing(&self, job: JobId) -> Standing {
        if !in_session(self.ask.cluster, job) {
            return Standing::Outside;
        }
        match self.settles && self.is_settled(job) {
            true => Standing::Settled,
            false => Standing::Open,
        }
    }

    /// Nothing of it waits, it is no candidate for any action, and what its PodGroup and its pods
    /// are told depends on nothing but its row.
    fn is_settled(&self, job: JobId) -> bool {
        let row = &self.ask.cluster.jobs[job];
        let (ask, hooks) = (self.ask, self.hooks);
        WAITING.iter().all(|&status| row.counts.of(status) == 0)
            && matches!(row.phase(), PodGroupPhase::Running | PodGroupPhase::Completed)
            && row.is_ready()
            && hooks.job_ready(ask, job)
            && hooks.job_valid(ask, job).is_ok()
            && !hooks.job_starving(ask, job)
    }
}

/// Both lists together by key; the first one is in order, and none is in both.
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

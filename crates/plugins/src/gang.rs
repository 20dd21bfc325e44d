//! Plugin `gang`: all-or-nothing admission of a PodGroup, in total, per role and per sub-group. It
//! also protects a running gang from losing members below its minimum.
//! Specification: plugins-jobs-queues.md 2, D6-D8.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use vc_framework::{
    Depends, GangEviction, GangState, Inputs, JobInvalid, Outbox, Plugin, PluginEntry, Points,
    Records, ReportLog, Sample, SessionView, VictimVote, Vote, WaitTexts, n_lacking,
};
use vc_model::{Job, JobId, ObjectKey, PodGroupCondition, TaskId, TaskStatus};

use crate::rules::session_job;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("gang", |_, _| Box::new(Gang::default()));

const POINTS: Points = Points::JOB_VALID
    .and(Points::PREEMPTABLE)
    .and(Points::RECLAIMABLE)
    .and(Points::UNIFIED_EVICTABLE)
    .and(Points::JOB_ORDER)
    .and(Points::SUB_JOB_ORDER)
    .and(Points::JOB_READY)
    .and(Points::SUB_JOB_READY)
    .and(Points::JOB_PIPELINED)
    .and(Points::SUB_JOB_PIPELINED)
    .and(Points::JOB_STARVING);

const NOT_ENOUGH_PODS_OF_TASK: &str = "NotEnoughPodsOfTask";
const NOT_ENOUGH_TASKS: &str = "NotEnoughTasks";
const TOO_FEW_OF_A_ROLE: &str = "Not enough valid pods of each task for gang-scheduling";
const TOO_FEW_SUB_GROUPS: &str = "Not enough valid subGroups of each task for gang-scheduling";

/// Conditions as pairs of type and reason.
const SCHEDULED: (&str, &str) = ("Scheduled", "tasks in gang are ready to be scheduled");
const UNSCHEDULABLE: (&str, &str) = ("Unschedulable", "NotEnoughResources");

#[derive(Default)]
struct Gang {
    /// The gang states that were last written to metrics.
    reported: ReportLog<JobId, GangState>,
    /// Number of unready jobs in the last session. `None` before the first session.
    n_unready_jobs: Option<u64>,
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (JUDGES, Inputs::JOB_ROW.and(Inputs::JOB_COUNTS)),
    (SURPLUS, Inputs::CANDIDATE_ROW.and(Inputs::QUEUE_OBJECT)),
    (Points::UNIFIED_EVICTABLE, Inputs::NONE),
];

/// Extension points that judge the job itself.
const JUDGES: Points = Points::JOB_VALID
    .and(Points::JOB_ORDER)
    .and(Points::SUB_JOB_ORDER)
    .and(Points::JOB_READY)
    .and(Points::SUB_JOB_READY)
    .and(Points::JOB_PIPELINED)
    .and(Points::SUB_JOB_PIPELINED)
    .and(Points::JOB_STARVING);

/// Extension points that say whether enough members are placed.
const PLACED: Points = Points::JOB_READY
    .and(Points::SUB_JOB_READY)
    .and(Points::JOB_PIPELINED)
    .and(Points::SUB_JOB_PIPELINED);

/// Extension points that select members above the minimum of their job.
const SURPLUS: Points = Points::PREEMPTABLE.and(Points::RECLAIMABLE);

impl Plugin for Gang {
    fn points(&self) -> Points {
        POINTS
    }

    fn depends(&self) -> Depends {
        Depends::of(READS).requires_minimum(PLACED)
    }

    fn job_valid(&self, view: SessionView<'_>, job: JobId) -> Result<(), JobInvalid> {
        let job = &view.cluster.jobs[job];
        let invalid = |reason, message| Err(JobInvalid { reason, message });
        if !job.roles_valid() {
            return invalid(NOT_ENOUGH_PODS_OF_TASK, TOO_FEW_OF_A_ROLE.to_owned());
        }
        if !job.sub_jobs_valid() {
            return invalid(NOT_ENOUGH_PODS_OF_TASK, TOO_FEW_SUB_GROUPS.to_owned());
        }
        let (valid, min) = (job.counts.valid(), job.min_available);
        if i64::from(valid) < i64::from(min) {
            let start = "Not enough valid tasks for gang-scheduling";
            return invalid(NOT_ENOUGH_TASKS, format!("{start}, valid: {valid}, min: {min}"));
        }
        Ok(())
    }

    fn preemptable(
        &self,
        view: SessionView<'_>,
        _preemptor: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        surplus_members(view, candidates)
    }

    fn reclaimable(
        &self,
        view: SessionView<'_>,
        _reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        surplus_members(view, candidates)
    }

    /// Permits all candidates, because the gang actions split gangs into bundles themselves.
    fn unified_evictable(
        &self,
        _view: SessionView<'_>,
        _initiator: JobId,
        _kind: GangEviction,
        candidates: &[TaskId],
    ) -> VictimVote {
        VictimVote::Victims(candidates.to_vec())
    }

    fn job_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        let jobs = &view.cluster.jobs;
        jobs[l].is_ready().cmp(&jobs[r].is_ready())
    }

    fn order_value(&self, view: SessionView<'_>, job: JobId) -> Option<String> {
        let is_ready = view.cluster.jobs[job].is_ready();
        Some(if is_ready { "complete" } else { "not complete" }.to_owned())
    }

    fn sub_job_order(&self, view: SessionView<'_>, job: JobId, l: usize, r: usize) -> Ordering {
        self.sub_job_ready(view, job, l).cmp(&self.sub_job_ready(view, job, r))
    }

    fn job_ready(&self, view: SessionView<'_>, job: JobId) -> bool {
        is_fully_ready(&view.cluster.jobs[job])
    }

    fn sub_job_ready(&self, view: SessionView<'_>, job: JobId, sub_job: usize) -> bool {
        let sub_job = &view.cluster.jobs[job].sub_jobs[sub_job];
        sub_job.counts.is_ready(sub_job.min_available)
    }

    fn job_pipelined(&self, view: SessionView<'_>, job: JobId) -> Vote {
        let job = &view.cluster.jobs[job];
        vote(job.roles_pipelined() && job.sub_jobs_pipelined() && job.is_pipelined())
    }

    fn sub_job_pipelined(&self, view: SessionView<'_>, job: JobId, sub_job: usize) -> Vote {
        let sub_job = &view.cluster.jobs[job].sub_jobs[sub_job];
        vote(sub_job.counts.is_pipelined(sub_job.min_available))
    }

    fn job_starving(&self, view: SessionView<'_>, job: JobId) -> bool {
        view.cluster.jobs[job].is_starving()
    }

    fn close(&mut self, view: SessionView<'_>, records: &Records, out: &mut Outbox) {
        let is_unready =
            |id: &&JobId| matches!(self.reported.get(**id), Some(GangState::Unready(_)));
        let mut n_unready_jobs = view.info.repeated.iter().filter(is_unready).count() as u64;
        let n_samples = out.samples.len();
        for &id in &view.info.to_close {
            let job = &view.cluster.jobs[id];
            let state = state(view, records, job);
            match state {
                GangState::Ready => write(view, out, id, SCHEDULED, ""),
                GangState::Unready(n_lacking) => {
                    n_unready_jobs += 1;
                    let texts = WaitTexts::with_lacking(view, records, id, n_lacking);
                    write(view, out, id, UNSCHEDULABLE, &texts.gang);
                    out.job_texts.insert(id, texts);
                }
                GangState::Unsaid => {}
            }
            // A pod without PodGroup has no series of its own.
            if !job.bare && self.reported.record_if_new(id, state) {
                out.samples.push(Sample::JobGang { job: job.key.clone(), state });
            }
        }
        let gone = view.info.active_jobs.gone().iter().filter(|&&id| self.reported.forget(id));
        let mut left: Vec<&ObjectKey> =
            gone.filter_map(|&id| Some(&view.cluster.jobs.get(id)?.key)).collect();
        left.sort_unstable();
        out.samples.extend(
            left.into_iter()
                .map(|job| Sample::JobGang { job: job.clone(), state: GangState::Unsaid }),
        );
        // This sample ends the samples of the session. It is left out only if nothing changed and
        // no job is unready.
        let reported_before = self.n_unready_jobs.replace(n_unready_jobs) == Some(n_unready_jobs);
        let record_if_new = !reported_before || out.samples.len() != n_samples;
        if record_if_new || n_unready_jobs != 0 {
            out.samples.push(Sample::UnreadyJobs(n_unready_jobs));
        }
    }
}

fn vote(permit: bool) -> Vote {
    if permit { Vote::Permit } else { Vote::Reject }
}

/// True if the roles, the sub-jobs and the job in total are ready. D6: the condition uses the same
/// conjunction as JobReady.
fn is_fully_ready(job: &Job) -> bool {
    job.roles_ready() && job.sub_jobs_ready() && job.is_ready()
}

/// Votes for ready members above the job's minimum, the least valuable first (D4: victims are
/// sorted that way). Minimums of roles are not checked.
fn surplus_members(view: SessionView<'_>, candidates: &[TaskId]) -> VictimVote {
    let mut left: FxHashMap<JobId, i64> = FxHashMap::default();
    let mut may_go = |&task: &TaskId| {
        let Some((id, job)) = session_job(view.cluster, task) else {
            return false;
        };
        let ready = left.entry(id).or_insert_with(|| job.counts.ready().into());
        let is_surplus = i64::from(job.min_available) < *ready;
        *ready -= i64::from(is_surplus);
        is_surplus
    };
    VictimVote::Victims(candidates.iter().copied().filter(|task| may_go(task)).collect())
}

/// True if releasing members make up the difference to the minimum and no other member waits. Such
/// a job gets no condition (section 2.3, step 1.1).
fn waits_for_releasing(job: &Job) -> bool {
    let counts = &job.counts;
    let held = counts.scheduled() + counts.releasing_on_node;
    0 < counts.releasing_on_node
        && counts.of(TaskStatus::Pending) == 0
        && counts.waiting() == 0
        && i64::from(job.min_available) <= held.into()
}

fn state(view: SessionView<'_>, records: &Records, job: &Job) -> GangState {
    if job.tasks.is_empty() {
        return GangState::Unsaid;
    }
    match (is_fully_ready(job), waits_for_releasing(job)) {
        (true, _) => GangState::Ready,
        (false, true) => GangState::Unsaid,
        (false, false) => GangState::Unready(n_lacking(view, records, job)),
    }
}

/// Emits a condition of a PodGroup. An unchanged condition, the usual case, is only confirmed and
/// costs no text.
fn write(
    view: SessionView<'_>,
    out: &mut Outbox,
    id: JobId,
    (kind, reason): (&'static str, &str),
    message: &str,
) {
    let group = view.cluster.jobs[id].pod_group.as_ref();
    let mut known = group.into_iter().flat_map(|group| &*group.status.conditions);
    let stands = known.find(|known| *known.kind == *kind).is_some_and(|known| {
        (&*known.status, &*known.reason, &*known.message) == ("True", reason, message)
    });
    match stands {
        true => out.confirmed.push((id, kind)),
        false => out.conditions.push((id, condition(view, kind, reason, message))),
    }
}

fn condition(view: SessionView<'_>, kind: &str, reason: &str, message: &str) -> PodGroupCondition {
    PodGroupCondition {
        kind: kind.into(),
        status: "True".into(),
        transition_id: view.info.session_id.clone(),
        last_transition_time: view.info.now_text.clone(),
        reason: reason.into(),
        message: message.into(),
    }
}

//! All-or-nothing admission of a PodGroup, in total, per role and per sub-group, and protection of
//! a running gang from losing members below its minimum. Specification: plugins-jobs-queues.md 2,
//! D6-D8.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use vc_framework::{
    Ask, Clock, GangEviction, GangState, Invalid, Latest, Outbox, Plugin, PluginEntry, Points,
    Records, Sample, Verdict, Vote, gang_text, job_text, n_lacking,
};
use vc_model::{Job, JobId, ObjectKey, PodGroupCondition, TaskId, TaskStatus};

use crate::rules::session_job;

pub(crate) const ENTRY: PluginEntry =
    PluginEntry { name: "gang", build: |_, _| Box::new(Gang::default()) };

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

/// Condition types and reasons.
const SCHEDULED: (&str, &str) = ("Scheduled", "tasks in gang are ready to be scheduled");
const UNSCHEDULABLE: (&str, &str) = ("Unschedulable", "NotEnoughResources");

#[derive(Default)]
struct Gang {
    /// What was handed out for metrics.
    told: Latest<JobId, GangState>,
    /// Unready jobs of the last session; `None`: there was none.
    n_unready_jobs: Option<u64>,
}

impl Plugin for Gang {
    fn points(&self) -> Points {
        POINTS
    }

    fn judges_rows(&self) -> bool {
        true
    }

    fn clock(&self, _ask: Ask<'_>) -> Clock {
        Clock::Ignores
    }

    fn votes_by_job(&self, _ask: Ask<'_>) -> bool {
        true
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    fn job_valid(&self, ask: Ask<'_>, job: JobId) -> Result<(), Invalid> {
        let job = &ask.cluster.jobs[job];
        let invalid = |reason, message| Err(Invalid { reason, message });
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

    fn preemptable(&self, ask: Ask<'_>, _preemptor: TaskId, candidates: &[TaskId]) -> Verdict {
        surplus_members(ask, candidates)
    }

    fn reclaimable(&self, ask: Ask<'_>, _reclaimer: TaskId, candidates: &[TaskId]) -> Verdict {
        surplus_members(ask, candidates)
    }

    /// The gang-aware actions split gangs into bundles themselves.
    fn unified_evictable(
        &self,
        _ask: Ask<'_>,
        _initiator: JobId,
        _kind: GangEviction,
        candidates: &[TaskId],
    ) -> Verdict {
        Verdict::Victims(candidates.to_vec())
    }

    fn job_order(&self, ask: Ask<'_>, l: JobId, r: JobId) -> Ordering {
        let jobs = &ask.cluster.jobs;
        jobs[l].is_ready().cmp(&jobs[r].is_ready())
    }

    fn sub_job_order(&self, ask: Ask<'_>, job: JobId, l: usize, r: usize) -> Ordering {
        self.sub_job_ready(ask, job, l).cmp(&self.sub_job_ready(ask, job, r))
    }

    fn job_ready(&self, ask: Ask<'_>, job: JobId) -> bool {
        is_fully_ready(&ask.cluster.jobs[job])
    }

    fn sub_job_ready(&self, ask: Ask<'_>, job: JobId, sub_job: usize) -> bool {
        let sub_job = &ask.cluster.jobs[job].sub_jobs[sub_job];
        sub_job.counts.is_ready(sub_job.min_available)
    }

    fn job_pipelined(&self, ask: Ask<'_>, job: JobId) -> Vote {
        let job = &ask.cluster.jobs[job];
        vote(job.roles_pipelined() && job.sub_jobs_pipelined() && job.is_pipelined())
    }

    fn sub_job_pipelined(&self, ask: Ask<'_>, job: JobId, sub_job: usize) -> Vote {
        let sub_job = &ask.cluster.jobs[job].sub_jobs[sub_job];
        vote(sub_job.counts.is_pipelined(sub_job.min_available))
    }

    fn job_starving(&self, ask: Ask<'_>, job: JobId) -> bool {
        ask.cluster.jobs[job].is_starving()
    }

    fn close(&mut self, ask: Ask<'_>, records: &Records, out: &mut Outbox) {
        let is_unready = |id: &&JobId| matches!(self.told.get(**id), Some(GangState::Unready(_)));
        let mut n_unready_jobs = ask.facts.repeated.iter().filter(is_unready).count() as u64;
        let n_samples = out.samples.len();
        for &id in &ask.facts.to_close {
            let job = &ask.cluster.jobs[id];
            let state = state(ask, records, job);
            match state {
                GangState::Ready => write(ask, out, id, SCHEDULED, ""),
                GangState::Unready(_) => {
                    n_unready_jobs += 1;
                    let why = job_text(ask, records, id);
                    let text = gang_text(ask, records, id, &why);
                    write(ask, out, id, UNSCHEDULABLE, &text);
                    out.job_texts.insert(id, why);
                }
                GangState::Unsaid => {}
            }
            // A pod without PodGroup has no series of its own.
            if !job.bare && self.told.is_news(id, state) {
                out.samples.push(Sample::JobGang { job: job.key.clone(), state });
            }
        }
        let gone = ask.facts.roster.gone().iter().filter(|&&id| self.told.forget(id));
        let mut left: Vec<&ObjectKey> =
            gone.filter_map(|&id| Some(&ask.cluster.jobs.get(id)?.key)).collect();
        left.sort_unstable();
        out.samples.extend(
            left.into_iter()
                .map(|job| Sample::JobGang { job: job.clone(), state: GangState::Unsaid }),
        );
        // Closes what is said of this session.
        let told_before = self.n_unready_jobs.replace(n_unready_jobs) == Some(n_unready_jobs);
        let is_news = !told_before || out.samples.len() != n_samples;
        if is_news || n_unready_jobs != 0 {
            out.samples.push(Sample::UnreadyJobs(n_unready_jobs));
        }
    }
}

fn vote(permit: bool) -> Vote {
    if permit { Vote::Permit } else { Vote::Reject }
}

/// The conjunction of JobReady, which the condition uses too (D6).
fn is_fully_ready(job: &Job) -> bool {
    job.roles_ready() && job.sub_jobs_ready() && job.is_ready()
}

/// Ready members above the job's minimum may go, least valuable first (D4); roles are not looked
/// at.
fn surplus_members(ask: Ask<'_>, candidates: &[TaskId]) -> Verdict {
    let mut left: FxHashMap<JobId, i64> = FxHashMap::default();
    let mut may_go = |&task: &TaskId| {
        let Some((id, job)) = session_job(ask.cluster, task) else {
            return false;
        };
        let ready = left.entry(id).or_insert_with(|| job.counts.ready().into());
        let is_surplus = i64::from(job.min_available) < *ready;
        *ready -= i64::from(is_surplus);
        is_surplus
    };
    Verdict::Victims(candidates.iter().copied().filter(|task| may_go(task)).collect())
}

/// Leaving members make up the difference and nothing else waits: not worth a condition (2.3, step
/// 1.1).
fn waits_for_releasing(job: &Job) -> bool {
    let counts = &job.counts;
    let held = counts.scheduled() + counts.releasing_on_node;
    0 < counts.releasing_on_node
        && counts.of(TaskStatus::Pending) == 0
        && counts.waiting() == 0
        && i64::from(job.min_available) <= held.into()
}

fn state(ask: Ask<'_>, records: &Records, job: &Job) -> GangState {
    if job.tasks.is_empty() {
        return GangState::Unsaid;
    }
    match (is_fully_ready(job), waits_for_releasing(job)) {
        (true, _) => GangState::Ready,
        (false, true) => GangState::Unsaid,
        (false, false) => GangState::Unready(n_lacking(ask, records, job)),
    }
}

/// Hands out a condition. One that says what the PodGroup says already, which is that of nearly
/// every job in nearly every cycle, costs no texts.
fn write(
    ask: Ask<'_>,
    out: &mut Outbox,
    id: JobId,
    (kind, reason): (&'static str, &str),
    message: &str,
) {
    let group = ask.cluster.jobs[id].pod_group.as_ref();
    let mut known = group.into_iter().flat_map(|group| &*group.status.conditions);
    let stands = known.find(|known| *known.kind == *kind).is_some_and(|known| {
        (&*known.status, &*known.reason, &*known.message) == ("True", reason, message)
    });
    match stands {
        true => out.confirmed.push((id, kind)),
        false => out.conditions.push((id, condition(ask, kind, reason, message))),
    }
}

fn condition(ask: Ask<'_>, kind: &str, reason: &str, message: &str) -> PodGroupCondition {
    PodGroupCondition {
        kind: kind.into(),
        status: "True".into(),
        transition_id: ask.facts.session_id.clone(),
        last_transition_time: ask.facts.now_text.clone(),
        reason: reason.into(),
        message: message.into(),
    }
}

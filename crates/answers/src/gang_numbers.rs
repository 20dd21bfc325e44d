//! The members of a job in numbers, also by role and by sub-group. Specification: answers.md 3 (ANS-15).

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::SessionState;
use vc_model::{Counts, Job, JobId, SubJob, TaskId};

use crate::explanation::{GangNumbers, RoleNumbers, SubGroupNumbers};
use crate::pod_classes::pod_classes;

/// Returns the numbers of a job. `waiting` are the members that wait, `placed` those among them that find a place.
pub(crate) fn gang_numbers(
    session: &SessionState<'_>,
    job: JobId,
    waiting: &[TaskId],
    placed: &[TaskId],
) -> GangNumbers {
    let row = &session.jobs[job];
    let none = Counts::default();
    let role = |(role, &minimum): (&Arc<str>, &i32)| {
        let is_of = |task: &&TaskId| session.tasks[**task].role == *role;
        RoleNumbers {
            role: role.clone(),
            needed: u32::try_from(minimum).unwrap_or(0),
            placed: number(placed.iter().filter(is_of).count()),
            ready: row.roles.get(role).unwrap_or(&none).ready(),
        }
    };
    GangNumbers {
        needed: u32::try_from(row.min_available).unwrap_or(0).max(1),
        placed: number(placed.len()),
        ready: row.counts.ready(),
        waiting: number(waiting.len()),
        roles: row.task_min_available.iter().map(role).collect(),
        sub_groups: sub_groups(session, row, placed),
        pods: pod_classes(session, waiting, placed),
    }
}

/// Returns the sub-groups that have pods and whose policy has a `subGroupSize`, by name.
fn sub_groups(session: &SessionState<'_>, row: &Job, placed: &[TaskId]) -> Vec<SubGroupNumbers> {
    let policies = row.policies();
    let has_minimum = |sub_job: &SubJob| {
        let policy = sub_job.policy.and_then(|policy| policies.get(policy));
        !sub_job.tasks.is_empty() && policy.is_some_and(|policy| policy.sub_group_size.is_some())
    };
    if policies.is_empty() {
        return Vec::new();
    }
    let mut n_placed: BTreeMap<usize, usize> = BTreeMap::new();
    for &task in placed {
        *n_placed.entry(session.tasks[task].sub_job).or_default() += 1;
    }
    let numbers = |(at, sub_job): (usize, &SubJob)| SubGroupNumbers {
        name: sub_job.id.clone(),
        needed: u32::try_from(sub_job.min_available).unwrap_or(0),
        placed: number(n_placed.get(&at).copied().unwrap_or(0)),
        ready: sub_job.counts.ready(),
    };
    let with_minimum = row.sub_jobs.iter().enumerate().filter(|&(_, sub_job)| has_minimum(sub_job));
    let mut rows: Vec<SubGroupNumbers> = with_minimum.map(numbers).collect();
    rows.sort_by(|l, r| l.name.cmp(&r.name));
    rows
}

fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

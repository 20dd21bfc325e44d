//! Jobs with the times in which they held nodes, and how many of their pods got nodes in each cycle.
//! Specification: answers.md 8 (ANS-45).

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{Cluster, GroupController, Job, JobId, ObjectKey, PodGroup, TaskStatus};

use crate::pod_spans::{HOLDING, holds_node};
use crate::running_jobs::bind_time;
use crate::timeline::{pod_of, queue_name};
use crate::what_if::run::group_of;

/// A job with the time in which it held nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpan {
    /// Its PodGroup, or the pod if it has none.
    pub key: ObjectKey,
    /// True if it is a pod without a PodGroup.
    pub is_bare: bool,
    /// Uid of the controller of the PodGroup. `None` if it has none.
    pub controller_uid: Option<Arc<str>>,
    /// Kind and name of that controller. `None` if the name of the PodGroup tells them, or if they
    /// are not known.
    pub controller_name: Option<Box<(Arc<str>, Arc<str>)>>,
    /// Name of its queue.
    pub queue: Arc<str>,
    /// Most pods that held a node at once.
    pub pods: u32,
    /// When its PodGroup was created, in microseconds since 1970; a pod without one, when it was. `None`: not
    /// known.
    pub created_micros: Option<i64>,
    /// When it was admitted to its queue last, in microseconds since 1970. `None`: not known.
    pub admitted_micros: Option<i64>,
    /// When its first pod got a node, in microseconds since 1970. `None`: not known.
    pub first_bind_micros: Option<i64>,
    /// Microseconds since 1970.
    pub start_micros: i64,
    /// False if it held nodes before the timeline began, or began in a gap, and its pods do not say since when.
    /// `start_micros` is then the time at which it was seen first.
    pub is_start_known: bool,
    /// Microseconds since 1970, within a second. `None` if it still holds nodes.
    pub end_micros: Option<i64>,
    /// True if its last pods were deleted, false if one of them has ended by itself.
    pub is_deleted: bool,
}

impl JobSpan {
    /// Returns the span of a job that begins to hold nodes. `has_read_jobs`: true if it would have been seen if it
    /// had held some before.
    pub(crate) fn begin(
        (cluster, job): (&Cluster, JobId),
        now_micros: i64,
        has_read_jobs: bool,
    ) -> Self {
        let row = &cluster.jobs[job];
        let pods = || row.tasks.iter().map(|&task| &cluster.tasks[task]);
        let holding = || pods().filter(|pod| holds_node(pod.status));
        let started_micros = holding().filter_map(|pod| pod.started_micros).min();
        let start_micros = started_micros.map_or(now_micros, |at| at.min(now_micros));
        let is_start_known = has_read_jobs || started_micros.is_some() || is_being_bound(row);
        let bound = holding().filter_map(bind_time).chain(is_start_known.then_some(start_micros));
        let group = row.pod_group.as_ref();
        Self {
            key: group_of(cluster, job).unwrap_or_else(|| pod_of(row)),
            is_bare: row.bare,
            controller_uid: group.and_then(|group| group.controller_uid.clone()),
            controller_name: group.and_then(|group| stated_controller(&row.key, group)),
            queue: queue_name(cluster, job),
            pods: 0,
            created_micros: group.map(|group| group.created_micros),
            admitted_micros: None,
            first_bind_micros: bound.min(),
            start_micros,
            is_start_known,
            end_micros: None,
            is_deleted: false,
        }
    }

    /// Returns the controller of the PodGroup. Returns `None` if it has none.
    pub fn controller(&self) -> Option<GroupController<'_>> {
        let stated = self.controller_name.as_deref().map(|(kind, name)| (&**kind, &**name));
        Some(GroupController::new(&self.key, self.controller_uid.as_deref()?, stated.unzip()))
    }
}

/// True if no pod of a job had its node before the last cycles.
fn is_being_bound(job: &Job) -> bool {
    HOLDING.iter().all(|&status| status == TaskStatus::Binding || job.counts.of(status) == 0)
}

/// Returns kind and name of the controller of a PodGroup, if the PodGroup states them and its own name
/// does not tell them.
fn stated_controller(key: &ObjectKey, group: &PodGroup) -> Option<Box<(Arc<str>, Arc<str>)>> {
    let told = GroupController::new(key, group.controller_uid.as_deref()?, (None, None));
    let stated = group.controller_kind.clone().zip(group.owner_name.clone())?;
    (group.controller(key) != Some(told)).then(|| Box::new(stated))
}

/// Pods of one job that got nodes in one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleBinds {
    /// Number of the cycle, from 1.
    pub cycle: u64,
    /// Microseconds since 1970.
    pub at_micros: i64,
    /// Number of pods.
    pub pods: u32,
}

/// An entry of the timeline: pods of one job that got nodes in one call of the engine.
#[derive(Clone, Debug)]
pub(crate) struct JobBinds {
    /// The PodGroup, or the pod if it has none.
    pub(crate) job: ObjectKey,
    /// True if `job` is a pod without a PodGroup.
    pub(crate) is_bare: bool,
    pub(crate) binds: CycleBinds,
}

// ANS-45: an entry is at most 64 bytes.
const _: () = assert!(size_of::<JobBinds>() <= 64);

/// The pods that got nodes in a part of the timeline, by job.
#[derive(Clone, Debug, Default)]
pub struct BindsByJob<'a>(BTreeMap<(&'a ObjectKey, bool), Vec<CycleBinds>>);

impl<'a> BindsByJob<'a> {
    /// Adds up the entries of each job and cycle. The entries are in the order of time.
    pub(crate) fn of(entries: impl Iterator<Item = &'a JobBinds>) -> Self {
        let mut by_job: BTreeMap<(&ObjectKey, bool), Vec<CycleBinds>> = BTreeMap::new();
        for JobBinds { job, is_bare, binds } in entries {
            let known = by_job.entry((job, *is_bare)).or_default();
            match known.last_mut().filter(|last| last.cycle == binds.cycle) {
                Some(last) => last.pods += binds.pods,
                None => known.push(*binds),
            }
        }
        Self(by_job)
    }

    /// Returns how many pods of a job got nodes in each cycle while it held nodes, the first cycle first. Those of
    /// an earlier job of the name do not count.
    pub fn of_span(&self, span: &JobSpan) -> Vec<CycleBinds> {
        let times = span.start_micros..=span.end_micros.unwrap_or(i64::MAX);
        let known = self.0.get(&(&span.key, span.is_bare)).into_iter().flatten();
        known.filter(|binds| times.contains(&binds.at_micros)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_45_parts_of_a_cycle_are_added_up_and_earlier_jobs_of_the_name_do_not_count() {
        let job = ObjectKey::new("ml", "train");
        let entry = |is_bare: bool, cycle: u64, pods: u32| {
            let binds = CycleBinds { cycle, at_micros: 10 * cycle as i64, pods };
            JobBinds { job: job.clone(), is_bare, binds }
        };
        let entries = [(false, 1, 4), (false, 3, 1), (true, 3, 1), (false, 3, 2), (false, 5, 1)];
        let entries = entries.map(|(is_bare, cycle, pods)| entry(is_bare, cycle, pods));
        let span = |start_micros: i64, end_micros: Option<i64>| JobSpan {
            key: job.clone(),
            is_bare: false,
            controller_uid: None,
            controller_name: None,
            queue: "q".into(),
            pods: 4,
            created_micros: None,
            admitted_micros: None,
            first_bind_micros: None,
            start_micros,
            is_start_known: true,
            end_micros,
            is_deleted: false,
        };
        let binds = BindsByJob::of(entries.iter());
        let counts = |span: &JobSpan| -> Vec<(u64, u32)> {
            binds.of_span(span).into_iter().map(|it| (it.cycle, it.pods)).collect()
        };
        assert_eq!(counts(&span(10, Some(20))), [(1, 4)]);
        assert_eq!(counts(&span(30, None)), [(3, 3), (5, 1)]);
    }
}

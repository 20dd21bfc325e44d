//! Sub-jobs: which sub-group of its job a task belongs to. Specification: core.md 3.7,
//! plugins-jobs-queues.md 2.1 with D7.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::ids::JobId;
use crate::index::Index;
use crate::job::{Job, SubJob};
use crate::record::SubGroupPolicy;
use crate::selector::Labels;

/// Longest text of joined match values before it is replaced by its hash.
const MAX_VALUES_LEN: usize = 128;

impl Cluster {
    /// Index of the sub-job for a pod of these labels; made if it is new.
    pub(super) fn sub_job_for(&mut self, job: JobId, labels: &Labels) -> usize {
        let row = &mut self.jobs[job];
        let Some(found) = match_policy(row, labels) else { return 0 };
        let rows = row.sub_job_rows.get_or_insert_default();
        rows.find_or_add(&mut row.sub_jobs, found)
    }

    /// Forms the sub-jobs anew after the policies changed.
    pub(super) fn regroup(&mut self, job: JobId) {
        let tasks = self.jobs[job].tasks.clone();
        for &task in &tasks {
            self.detach(task);
        }
        let row = &mut self.jobs[job];
        row.sub_jobs = vec![default_sub_job(row)];
        row.sub_job_rows = None;
        for &task in &tasks {
            let labels = self.class(task).labels.clone();
            let index = self.sub_job_for(job, &labels);
            self.tasks[task].sub_job = index;
            self.jobs[job].change_sub_job(index, |sub_job| sub_job.tasks.push(task));
            self.attach(task);
        }
    }
}

/// The sub-jobs of policies that have tasks, by id, and the rows of those that have none any more.
/// Those rows are used again: match labels that change for months leave none behind, and which row a
/// sub-job has decides nothing (core.md 5.3 orders them by index and id).
#[derive(Clone, Debug, Default)]
pub(crate) struct SubJobRows {
    by_id: Index<usize>,
    /// The one that became free last is used first, so that a pod that leaves and enters has its own.
    free: Vec<usize>,
    /// By policy, as far as there are sub-jobs of them.
    tallies: Vec<Tally>,
}

/// How many sub-jobs of a policy have tasks, and how many of these have their minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) n_existing: u32,
    pub(crate) n_ready: u32,
    /// With Pipelined tasks.
    pub(crate) n_pipelined: u32,
}

impl Tally {
    fn of(sub_job: &SubJob) -> Self {
        if sub_job.tasks.is_empty() {
            return Self::default();
        }
        let SubJob { counts, min_available, .. } = sub_job;
        let (ready, pipelined) =
            (counts.is_ready(*min_available), counts.is_pipelined(*min_available));
        Self { n_existing: 1, n_ready: ready.into(), n_pipelined: pipelined.into() }
    }

    /// One sub-job counts otherwise than before.
    fn replace(&mut self, before: Self, after: Self) {
        let replace = |sum: &mut u32, before: u32, after: u32| *sum = *sum + after - before;
        replace(&mut self.n_existing, before.n_existing, after.n_existing);
        replace(&mut self.n_ready, before.n_ready, after.n_ready);
        replace(&mut self.n_pipelined, before.n_pipelined, after.n_pipelined);
    }
}

impl SubJobRows {
    fn find_or_add(&mut self, sub_jobs: &mut Vec<SubJob>, wanted: SubJob) -> usize {
        let is_it = |index: usize| sub_jobs[index].id == wanted.id;
        if let Some(index) = self.by_id.get(&*wanted.id, is_it) {
            return index;
        }
        let index = self.free.pop().unwrap_or(sub_jobs.len());
        self.by_id.insert(&*wanted.id, index);
        match sub_jobs.get_mut(index) {
            Some(row) => *row = wanted,
            None => sub_jobs.push(wanted),
        }
        index
    }

    /// The sub-job has no tasks any more.
    fn free(&mut self, sub_job: &mut SubJob, index: usize) {
        self.by_id.remove(&*sub_job.id, index);
        self.free.push(index);
        // What it says beyond its id nobody reads.
        sub_job.tasks = Vec::new();
    }

    /// Whether every row but the first one is either known by its id or free.
    fn agrees_with(&self, sub_jobs: &[SubJob]) -> bool {
        let free: BTreeSet<usize> = self.free.iter().copied().collect();
        let is_right = |(index, sub_job): (usize, &SubJob)| {
            let is_known = self.by_id.get(&*sub_job.id, |other| other == index).is_some();
            is_known != sub_job.tasks.is_empty() && free.contains(&index) != is_known
        };
        free.len() == self.free.len()
            && self.by_id.len() + free.len() + 1 == sub_jobs.len()
            && sub_jobs.iter().enumerate().skip(1).all(is_right)
    }
}

impl Job {
    /// Frees the row of a sub-job that a task has left, if it was the last one. That of the default
    /// sub-job stays.
    pub(super) fn drop_empty_sub_job(&mut self, index: usize) {
        let sub_job = &mut self.sub_jobs[index];
        if let Some(rows) = self.sub_job_rows.as_mut().filter(|_| index != 0)
            && sub_job.tasks.is_empty()
        {
            rows.free(sub_job, index);
        }
    }

    /// The only way in which a sub-job changes: the counters of its policy change with it.
    pub(super) fn change_sub_job(&mut self, index: usize, change: impl FnOnce(&mut SubJob)) {
        let sub_job = &mut self.sub_jobs[index];
        let Some((policy, rows)) = sub_job.policy.zip(self.sub_job_rows.as_mut()) else {
            return change(sub_job);
        };
        let before = Tally::of(sub_job);
        change(sub_job);
        let after = Tally::of(sub_job);
        if rows.tallies.len() <= policy {
            rows.tallies.resize(policy + 1, Tally::default());
        }
        rows.tallies[policy].replace(before, after);
    }

    /// Of the sub-jobs of a policy.
    pub(crate) fn tally(&self, policy: usize) -> Tally {
        let rows = self.sub_job_rows.as_ref();
        rows.and_then(|rows| rows.tallies.get(policy)).copied().unwrap_or_default()
    }

    /// The same, counted anew.
    pub(super) fn walk_tally(&self, policy: usize) -> Tally {
        let mut tally = Tally::default();
        for sub_job in self.sub_jobs.iter().filter(|sub_job| sub_job.policy == Some(policy)) {
            tally.replace(Tally::default(), Tally::of(sub_job));
        }
        tally
    }

    /// Whether the sub-jobs are found by their ids.
    pub(super) fn finds_sub_jobs(&self) -> bool {
        match &self.sub_job_rows {
            Some(rows) => rows.agrees_with(&self.sub_jobs),
            None => self.sub_jobs.len() == 1,
        }
    }
}

/// The default sub-job: all tasks of a job without policies, else those that match none.
pub(super) fn default_sub_job(job: &Job) -> SubJob {
    SubJob {
        id: job.key.to_string().into(),
        policy: None,
        min_available: default_minimum(job),
        match_index: 0,
        counts: Default::default(),
        tasks: Vec::new(),
    }
}

/// The job's own minimum, or 1 beside policies.
pub(super) fn default_minimum(job: &Job) -> i32 {
    if job.policies().is_empty() { job.min_available } else { 1 }
}

/// Id of the sub-job for a pod of these labels.
pub(super) fn sub_job_id(job: &Job, labels: &Labels) -> Arc<str> {
    match_policy(job, labels).map_or_else(|| default_sub_job(job).id, |sub_job| sub_job.id)
}

/// The sub-job of the first policy that matches, without tasks. `None`: the default one.
fn match_policy(job: &Job, labels: &Labels) -> Option<SubJob> {
    let mut matches = job.policies().iter().enumerate();
    let (index, policy, values) = matches.find_map(|(index, policy)| {
        let values = match_values(policy, labels)?;
        Some((index, policy, values))
    })?;
    let mut joined = values.join("-");
    if MAX_VALUES_LEN < joined.len() {
        joined = safe_encode(&fnv1a(joined.as_bytes()).to_string());
    }
    Some(SubJob {
        id: format!("{}/{}-{joined}", job.key, policy.name).into(),
        policy: Some(index),
        min_available: policy.sub_group_size.unwrap_or(1),
        match_index: values.first().and_then(|value| value.parse().ok()).unwrap_or(0),
        counts: Default::default(),
        tasks: Vec::new(),
    })
}

/// Values of the match keys if the policy matches. A selector without keys forms one sub-group
/// (D7); a policy with neither matches nothing.
fn match_values(policy: &SubGroupPolicy, labels: &Labels) -> Option<Vec<Arc<str>>> {
    if policy.match_label_keys.is_empty() && policy.label_selector.is_none() {
        return None;
    }
    if policy.label_selector.as_ref().is_some_and(|selector| !selector.matches(labels)) {
        return None;
    }
    let value = |key: &Arc<str>| labels.get(key).filter(|value| !value.is_empty()).cloned();
    policy.match_label_keys.iter().map(value).collect()
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Digits as letters that cannot form words, as the API machinery encodes hashes in names.
fn safe_encode(digits: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    digits.bytes().map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::{fnv1a, safe_encode};

    #[test]
    fn the_hash_is_fnv_1a_in_letters_that_form_no_words() {
        assert_eq!((fnv1a(b""), fnv1a(b"foobar")), (0x811c_9dc5, 0xbf9c_f968));
        assert_eq!(safe_encode("0123456789"), "456789bcdf");
    }
}

//! Sub-jobs: the sub-group of its job that a task belongs to. Specification: core.md 3.7,
//! plugins-jobs-queues.md 2.1 with D7.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::ids::JobId;
use crate::index::Index;
use crate::job::{Job, SubJob};
use crate::record::SubGroupPolicy;
use crate::selector::Labels;

/// Maximum length of joined match values; a longer text is replaced by its hash.
const MAX_VALUES_LEN: usize = 128;

impl Cluster {
    /// Returns the index of the sub-job for a pod with these labels. The sub-job is created if
    /// necessary.
    pub(super) fn sub_job_for(&mut self, job: JobId, labels: &Labels) -> usize {
        let row = &mut self.jobs[job];
        let Some(found) = match_policy(row, labels) else { return 0 };
        let rows = row.sub_job_rows.get_or_insert_default();
        rows.find_or_add(&mut row.sub_jobs, found)
    }

    /// Rebuilds the sub-jobs after the policies changed.
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

    /// Makes the ids of sub-jobs anew, and their hash index, after texts of a stored state were
    /// replaced. An id may be a hash of labels.
    pub(super) fn rebuild_sub_jobs(&mut self, job: JobId) {
        let row = &self.jobs[job];
        let id = |sub_job: &SubJob| {
            let task = *sub_job.tasks.first()?;
            Some(sub_job_id(row, &self.class(task).labels))
        };
        let ids: Vec<Option<Arc<str>>> = row.sub_jobs.iter().map(id).collect();
        let row = &mut self.jobs[job];
        for (sub_job, id) in row.sub_jobs.iter_mut().zip(ids) {
            if let Some(id) = id {
                sub_job.id = id;
            }
        }
        if let Some(rows) = &mut row.sub_job_rows {
            rows.rebuild_index(&row.sub_jobs);
        }
    }
}

/// Sub-jobs of policies that have tasks, by id, and the free rows. Free rows are reused, so match
/// labels that change for months do not use up memory. The row of a sub-job decides nothing,
/// because core.md 5.3 orders sub-jobs by index and id.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SubJobRows {
    by_id: Index<usize>,
    /// Free rows; the one that was freed last is reused first. A pod that leaves and returns thus
    /// gets its old row.
    free: Vec<usize>,
    /// Tallies by policy, up to the last policy that has had sub-jobs.
    tallies: Vec<SubJobTally>,
}

/// Number of sub-jobs of a policy that have tasks, and how many of them have their minimum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SubJobTally {
    pub(crate) n_existing: u32,
    pub(crate) n_ready: u32,
    /// Number of sub-jobs that have their minimum with Pipelined tasks.
    pub(crate) n_pipelined: u32,
}

impl SubJobTally {
    fn of(sub_job: &SubJob) -> Self {
        if sub_job.tasks.is_empty() {
            return Self::default();
        }
        let SubJob { counts, min_available, .. } = sub_job;
        let (ready, pipelined) =
            (counts.is_ready(*min_available), counts.is_pipelined(*min_available));
        Self { n_existing: 1, n_ready: ready.into(), n_pipelined: pipelined.into() }
    }

    /// Replaces the contribution of one sub-job.
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

    /// Frees the row of a sub-job that has no tasks any more.
    fn free(&mut self, sub_job: &mut SubJob, index: usize) {
        self.by_id.remove(&*sub_job.id, index);
        self.free.push(index);
        // Besides the id nothing reads a free row.
        sub_job.tasks = Vec::new();
    }

    /// Builds the hash index anew. Rows without tasks are free, and are not in it.
    fn rebuild_index(&mut self, sub_jobs: &[SubJob]) {
        self.by_id = Index::default();
        for (index, sub_job) in sub_jobs.iter().enumerate().skip(1) {
            if !sub_job.tasks.is_empty() {
                self.by_id.insert(&*sub_job.id, index);
            }
        }
    }

    /// True if every row but the first one is either indexed by its id or free.
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
    /// Frees the row of a sub-job after its last task has left. The row of the default sub-job
    /// stays.
    pub(super) fn drop_empty_sub_job(&mut self, index: usize) {
        let sub_job = &mut self.sub_jobs[index];
        if let Some(rows) = self.sub_job_rows.as_mut().filter(|_| index != 0)
            && sub_job.tasks.is_empty()
        {
            rows.free(sub_job, index);
        }
    }

    /// Changes a sub-job and the tally of its policy. No other function changes sub-jobs.
    pub(super) fn change_sub_job(&mut self, index: usize, change: impl FnOnce(&mut SubJob)) {
        let sub_job = &mut self.sub_jobs[index];
        let Some((policy, rows)) = sub_job.policy.zip(self.sub_job_rows.as_mut()) else {
            return change(sub_job);
        };
        let before = SubJobTally::of(sub_job);
        change(sub_job);
        let after = SubJobTally::of(sub_job);
        if rows.tallies.len() <= policy {
            rows.tallies.resize(policy + 1, SubJobTally::default());
        }
        rows.tallies[policy].replace(before, after);
    }

    /// Returns the tally of a policy.
    pub(crate) fn tally(&self, policy: usize) -> SubJobTally {
        let rows = self.sub_job_rows.as_ref();
        rows.and_then(|rows| rows.tallies.get(policy)).copied().unwrap_or_default()
    }

    /// Returns the tally of a policy, counted from its sub-jobs, for checks.
    pub(super) fn walk_tally(&self, policy: usize) -> SubJobTally {
        let mut tally = SubJobTally::default();
        for sub_job in self.sub_jobs.iter().filter(|sub_job| sub_job.policy == Some(policy)) {
            tally.replace(SubJobTally::default(), SubJobTally::of(sub_job));
        }
        tally
    }

    /// True if every sub-job is found by its id.
    pub(super) fn finds_sub_jobs(&self) -> bool {
        match &self.sub_job_rows {
            Some(rows) => rows.agrees_with(&self.sub_jobs),
            None => self.sub_jobs.len() == 1,
        }
    }
}

/// Returns an empty default sub-job. It holds the tasks that match no policy.
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

/// Returns the minimum of the default sub-job: the job's own, or 1 if the job has policies.
pub(super) fn default_minimum(job: &Job) -> i32 {
    if job.policies().is_empty() { job.min_available } else { 1 }
}

/// Returns the id of the sub-job for a pod with these labels.
pub(super) fn sub_job_id(job: &Job, labels: &Labels) -> Arc<str> {
    match_policy(job, labels).map_or_else(|| default_sub_job(job).id, |sub_job| sub_job.id)
}

/// Returns the sub-job of the first policy that matches, without tasks. Returns `None` for the
/// default sub-job.
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

/// Returns the values of the match keys. Returns `None` if the policy does not match. D7: a
/// selector without keys forms one sub-group. A policy with neither matches nothing.
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

/// Replaces digits by letters that cannot form words, as the API machinery encodes hashes in names.
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

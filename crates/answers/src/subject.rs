//! What a question is about: a job by the name of its PodGroup, of its controller or of one of its
//! pods. Specification: answers.md 2 (ANS-5), 16.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_model::{Cluster, JobId, ObjectKey, TaskId};

/// Names in a message about an ambiguous name.
pub(crate) const MOST_NAMES: usize = 8;
/// Largest edit distance of a name that is proposed.
const MOST_EDITS: usize = 2;

/// A job, or a pod that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The job. `None`: the pod names no PodGroup.
    pub job: Option<JobId>,
    /// The pod that was named. `None` if the job was.
    pub pod: Option<TaskId>,
}

/// What a user names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectQuery<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Name of a PodGroup, of its controller, or of a pod.
    pub name: &'a str,
    /// Uid of the controller. `None` if it is not known.
    pub controller_uid: Option<&'a str>,
    /// What the name may stand for.
    pub kind: SubjectKind,
}

/// What a name may stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubjectKind {
    /// Anything that is found.
    #[default]
    Any,
    /// A PodGroup, or a controller that has one.
    Group,
    /// A pod.
    Pod,
}

/// Why no subject was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectError {
    /// Nothing has this name. Names that are close follow, sorted.
    Unknown(Vec<String>),
    /// Several jobs have it: their PodGroups, sorted.
    Several(Vec<String>),
}

/// Finds the job or pod that a user names: a PodGroup of the name, the PodGroup of a controller, a
/// pod. The first of these that exists is taken.
///
/// # Errors
/// Nothing has the name, or several PodGroups belong to controllers of the name.
pub fn find_subject(cluster: &Cluster, query: SubjectQuery<'_>) -> Result<Subject, SubjectError> {
    let key = ObjectKey::new(query.namespace, query.name);
    let of_job = |job| Subject { job: Some(job), pod: None };
    if query.kind != SubjectKind::Pod {
        if let Some(job) = cluster.job(&key).filter(|&job| is_known(cluster, job)) {
            return Ok(of_job(job));
        }
        let jobs = jobs_of_controller(cluster, query);
        match jobs[..] {
            [] => {}
            [job] => return Ok(of_job(job)),
            [..] => return Err(SubjectError::Several(names(cluster, &jobs))),
        }
    }
    let pod = cluster.task_named(&key).filter(|_| query.kind != SubjectKind::Group);
    match pod {
        Some(task) => Ok(Subject { job: cluster.tasks[task].job, pod: Some(task) }),
        None => Err(SubjectError::Unknown(close_names(cluster, query))),
    }
}

/// True if the job has a PodGroup or pods: others are rows without an object.
fn is_known(cluster: &Cluster, job: JobId) -> bool {
    let row = &cluster.jobs[job];
    !row.bare && (row.pod_group.is_some() || !row.tasks.is_empty())
}

/// Returns the jobs whose PodGroup a controller of this name owns: `<name>-<uid>` as Volcano Jobs
/// have, or `podgroup-<uid>` of the uid given.
fn jobs_of_controller(cluster: &Cluster, query: SubjectQuery<'_>) -> Vec<JobId> {
    let is_owned = |job: &JobId| {
        let row = &cluster.jobs[*job];
        let Some(group) = row.pod_group.as_ref().filter(|_| is_known(cluster, *job)) else {
            return false;
        };
        let uid = group.controller_uid.as_deref();
        uid.is_some_and(|uid| is_of_controller(&row.key, uid, query))
    };
    cluster.jobs_by_key().filter(is_owned).collect()
}

/// True if a PodGroup whose controller has this uid is that of the controller that a user names.
pub(crate) fn is_of_controller(group: &ObjectKey, uid: &str, query: SubjectQuery<'_>) -> bool {
    let of_job = group.name.strip_prefix(query.name).and_then(|rest| rest.strip_prefix('-'));
    let by_name = of_job == Some(uid);
    let by_uid = query.controller_uid == Some(uid);
    &*group.namespace == query.namespace && (by_name || by_uid)
}

fn names(cluster: &Cluster, jobs: &[JobId]) -> Vec<String> {
    let names = jobs.iter().map(|&job| cluster.jobs[job].key.to_string());
    names.take(MOST_NAMES).collect()
}

/// Returns names of the namespace that differ little from the one that was asked for.
fn close_names(cluster: &Cluster, query: SubjectQuery<'_>) -> Vec<String> {
    let mut found: BTreeSet<(usize, Arc<str>)> = BTreeSet::new();
    let mut consider = |key: &ObjectKey, name: &str| {
        let distance = edit_distance(query.name, name);
        if &*key.namespace == query.namespace && distance <= MOST_EDITS {
            found.insert((distance, name.into()));
        }
    };
    for job in cluster.jobs_by_key().filter(|&job| is_known(cluster, job)) {
        let row = &cluster.jobs[job];
        let uid = row.pod_group.as_ref().and_then(|group| group.controller_uid.as_deref());
        let owner = uid.and_then(|uid| row.key.name.strip_suffix(uid)?.strip_suffix('-'));
        consider(&row.key, owner.unwrap_or(&row.key.name));
    }
    cluster.tasks.iter().for_each(|(_, task)| consider(&task.key, &task.key.name));
    let nearest = found.iter().next().map(|(distance, _)| *distance);
    let names = found.into_iter().filter(|(distance, _)| Some(*distance) == nearest);
    names.map(|(_, name)| name.to_string()).take(MOST_NAMES).collect()
}

/// Returns the known words that differ little from a word, the nearest ones.
pub fn close_texts<'a>(word: &str, known: &[&'a str]) -> Vec<&'a str> {
    let near = known.iter().map(|known| (edit_distance(word, known), *known));
    let near: Vec<(usize, &str)> = near.filter(|(distance, _)| *distance <= MOST_EDITS).collect();
    let nearest = near.iter().map(|(distance, _)| *distance).min();
    near.into_iter().filter(|(distance, _)| Some(*distance) == nearest).map(|it| it.1).collect()
}

/// Returns the number of characters to insert, remove or replace (Levenshtein). Distances beyond
/// [`MOST_EDITS`] may be returned as any larger number.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    if MOST_EDITS < left.chars().count().abs_diff(right.len()) {
        return MOST_EDITS + 1;
    }
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_05_edits_are_counted() {
        let cases = [("train", "train", 0), ("trian", "train", 2), ("trai", "train", 1)];
        for (left, right, expected) in cases {
            assert_eq!(edit_distance(left, right), expected, "{left} {right}");
        }
        assert!(MOST_EDITS < edit_distance("train", "eval"));
        assert!(MOST_EDITS < edit_distance("a", "abcdef"));
    }
}

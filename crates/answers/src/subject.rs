//! What a question is about: a job by the name of its PodGroup, of its controller or of one of its
//! pods. Specification: answers.md 2 (ANS-5), 16.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_model::{
    Cluster, ControllerName, GroupController, Job, JobId, ObjectKey, SelectorKind, TaskId,
    TaskStatus,
};

/// Names in a message about an ambiguous name.
pub(crate) const MOST_NAMES: usize = 8;
/// Largest edit distance of a name that is proposed.
const MOST_EDITS: usize = 2;

/// Kinds with the other names that kubectl has for them.
const KINDS: &[(&str, &[&str])] = &[
    ("pod", &["po", "pods"]),
    ("podgroup", &["pg", "podgroups"]),
    ("job", &["jobs", "vcjob", "vcjobs", "vj"]),
    ("deployment", &["deploy", "deployments"]),
    ("replicaset", &["replicasets", "rs"]),
    ("statefulset", &["statefulsets", "sts"]),
    ("daemonset", &["daemonsets", "ds"]),
    ("replicationcontroller", &["rc", "replicationcontrollers"]),
];

/// A job, or a pod that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    pub kind: SubjectKind<'a>,
}

/// What a name may stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubjectKind<'a> {
    /// Anything that is found.
    #[default]
    Any,
    /// A PodGroup, or a controller that has one.
    Group,
    /// A controller of this kind, such as `deployment`. Upper and lower case are alike.
    Controller(&'a str),
    /// A pod.
    Pod,
}

impl<'a> SubjectKind<'a> {
    /// Returns what kubectl means by a kind: its name, its plural or its short name, in any case and
    /// with or without `.<group>` behind it. `None` means any kind.
    pub fn of(kind: Option<&'a str>) -> Self {
        let Some(kind) = kind else { return Self::Any };
        let kind = kind.split('.').next().unwrap_or(kind);
        let known = KINDS.iter().find(|(long, others)| {
            long.eq_ignore_ascii_case(kind)
                || others.iter().any(|other| other.eq_ignore_ascii_case(kind))
        });
        match known.map(|(long, _)| *long) {
            Some("pod") => Self::Pod,
            Some("podgroup") => Self::Group,
            Some(long) => Self::Controller(long),
            None => Self::Controller(kind),
        }
    }

    fn controller(self) -> Option<&'a str> {
        match self {
            Self::Controller(kind) => Some(kind),
            Self::Any | Self::Group | Self::Pod => None,
        }
    }

    /// True if the name may be that of a PodGroup without a controller. Users call it a job, too.
    pub(crate) fn means_group(self) -> bool {
        match self {
            Self::Any | Self::Group => true,
            Self::Controller(kind) => kind.eq_ignore_ascii_case("job"),
            Self::Pod => false,
        }
    }
}

impl SubjectQuery<'_> {
    /// True if the user means this controller by kind and name. A plural kind means the same.
    fn means(self, controller: ControllerName<'_>) -> bool {
        let kind = self.kind.controller();
        let singular = kind.and_then(|kind| kind.strip_suffix(['s', 'S']));
        controller.is_meant_by(kind, self.name)
            || singular.is_some_and(|kind| controller.is_meant_by(Some(kind), self.name))
    }

    /// Returns what the controller with the uid that is asked for owns. If it owns nothing, returns
    /// what controllers of the name own.
    pub(crate) fn choose_owned<T: Copy>(self, owned: &[(T, GroupController<'_>)]) -> Vec<T> {
        let has_uid =
            |controller: &GroupController<'_>| self.controller_uid == Some(controller.uid);
        let is_uid_known = owned.iter().any(|(_, controller)| has_uid(controller));
        let is_meant = |controller: &GroupController<'_>| match is_uid_known {
            true => has_uid(controller),
            false => controller.name.is_some_and(|name| self.means(name)),
        };
        owned.iter().filter(|(_, controller)| is_meant(controller)).map(|(it, _)| *it).collect()
    }
}

/// Why no subject was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectError {
    /// Nothing has this name. Names that are close follow, sorted.
    Unknown(Vec<String>),
    /// Several jobs have it: their PodGroups, or pods without one, sorted.
    Several(Vec<String>),
}

/// Finds the job or pod that a user names: a PodGroup of the name, the PodGroup of a controller, a
/// pod. The first of these that exists is taken. Where a kind of controllers is given, they come
/// before a PodGroup of the name, and pods are not looked for.
///
/// # Errors
/// Nothing has the name, or several PodGroups belong to controllers of the name.
pub fn find_subject(cluster: &Cluster, query: SubjectQuery<'_>) -> Result<Subject, SubjectError> {
    let key = ObjectKey::new(query.namespace, query.name);
    let group = || cluster.job(&key).filter(|&job| is_known(cluster, job));
    let is_first = matches!(query.kind, SubjectKind::Any | SubjectKind::Group);
    if let Some(job) = group().filter(|_| is_first) {
        return Ok(of_job(job));
    }
    if query.kind != SubjectKind::Pod {
        let found = subjects_of_controller(cluster, query);
        match found[..] {
            [] => {}
            [one] => return Ok(one),
            [..] => return Err(SubjectError::Several(names(cluster, &found))),
        }
    }
    if let Some(job) = group().filter(|_| query.kind.means_group()) {
        return Ok(of_job(job));
    }
    let may_be_pod = matches!(query.kind, SubjectKind::Any | SubjectKind::Pod);
    match cluster.task_named(&key).filter(|_| may_be_pod) {
        Some(task) => Ok(Subject { job: cluster.tasks[task].job, pod: Some(task) }),
        None => Err(SubjectError::Unknown(close_names(cluster, query))),
    }
}

fn of_job(job: JobId) -> Subject {
    Subject { job: Some(job), pod: None }
}

/// True if the job has a PodGroup or pods: others are rows without an object.
fn is_known(cluster: &Cluster, job: JobId) -> bool {
    let row = &cluster.jobs[job];
    !row.bare && (row.pod_group.is_some() || !row.tasks.is_empty())
}

/// Returns what belongs to the controllers that a user means: the jobs whose PodGroups they own. If
/// there are none, the jobs of their pods, and their pods that wait without a PodGroup.
fn subjects_of_controller(cluster: &Cluster, query: SubjectQuery<'_>) -> Vec<Subject> {
    let jobs = jobs_of_controller(cluster, query);
    if !jobs.is_empty() {
        return jobs.into_iter().map(of_job).collect();
    }
    let subject = |task: TaskId| {
        let row = &cluster.tasks[task];
        match row.job {
            Some(job) => Some(of_job(job)),
            // Pods of other schedulers have nodes.
            None => (row.status == TaskStatus::Pending)
                .then_some(Subject { job: None, pod: Some(task) }),
        }
    };
    let subjects = pods_of_controller(cluster, query).into_iter().filter_map(subject);
    let subjects: BTreeSet<Subject> = subjects.collect();
    subjects.into_iter().collect()
}

/// Returns the controller of the PodGroup of a job. Returns `None` if it has none, or there is no
/// PodGroup.
fn controller_of(job: &Job) -> Option<GroupController<'_>> {
    job.pod_group.as_ref()?.controller(&job.key)
}

/// Returns the jobs of the namespace whose PodGroups are owned by the controller with the uid that is
/// asked for, else by controllers of the name, by key.
pub(crate) fn jobs_of_controller(cluster: &Cluster, query: SubjectQuery<'_>) -> Vec<JobId> {
    let owned: Vec<(JobId, GroupController<'_>)> = cluster
        .jobs_by_key()
        .filter(|&job| *cluster.jobs[job].key.namespace == *query.namespace)
        .filter(|&job| is_known(cluster, job))
        .filter_map(|job| Some((job, controller_of(&cluster.jobs[job])?)))
        .collect();
    query.choose_owned(&owned)
}

/// Returns the pods of the namespace that belong to controllers of the name. Of pods only
/// ReplicaSets, StatefulSets and ReplicationControllers are known.
pub(crate) fn pods_of_controller(cluster: &Cluster, query: SubjectQuery<'_>) -> Vec<TaskId> {
    let tasks = cluster.tasks.iter().filter(|(_, task)| {
        let class = &cluster.classes[task.class];
        let controller = class.controller.as_ref().and_then(|(kind, name)| {
            let kind = match kind {
                SelectorKind::ReplicationController => "ReplicationController",
                SelectorKind::ReplicaSet => "ReplicaSet",
                SelectorKind::StatefulSet => "StatefulSet",
                SelectorKind::Service => return None,
            };
            Some(ControllerName { kind, name })
        });
        *task.key.namespace == *query.namespace && controller.is_some_and(|it| query.means(it))
    });
    tasks.map(|(task, _)| task).collect()
}

fn names(cluster: &Cluster, subjects: &[Subject]) -> Vec<String> {
    let pod = |task: TaskId| cluster.tasks[task].key.to_string();
    let name = |subject: &Subject| match (subject.job, subject.pod) {
        (Some(job), _) => {
            let row = &cluster.jobs[job];
            let bare = row.tasks.first().filter(|_| row.bare);
            bare.map_or_else(|| row.key.to_string(), |&task| pod(task))
        }
        (None, task) => task.map(pod).unwrap_or_default(),
    };
    let mut names: Vec<String> = subjects.iter().map(name).collect();
    names.sort();
    names.truncate(MOST_NAMES);
    names
}

/// Returns names of the namespace that differ little from the one that was asked for. Where a kind of
/// controllers was asked for they have their own kinds in front.
fn close_names(cluster: &Cluster, query: SubjectQuery<'_>) -> Vec<String> {
    let has_kinds = query.kind.controller().is_some();
    let mut found: BTreeSet<(usize, Arc<str>)> = BTreeSet::new();
    let mut consider = |key: &ObjectKey, kind: &str, name: &str| {
        let distance = edit_distance(query.name, name);
        if &*key.namespace == query.namespace && distance <= MOST_EDITS {
            let text: Arc<str> = match has_kinds {
                true => format!("{}/{name}", kind.to_lowercase()).into(),
                false => name.into(),
            };
            found.insert((distance, text));
        }
    };
    for job in cluster.jobs_by_key().filter(|&job| is_known(cluster, job)) {
        let row = &cluster.jobs[job];
        match controller_of(row).and_then(|controller| controller.name) {
            Some(ControllerName { kind, name }) => consider(&row.key, kind, name),
            None => consider(&row.key, "podgroup", &row.key.name),
        }
    }
    cluster.tasks.iter().for_each(|(_, task)| consider(&task.key, "pod", &task.key.name));
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

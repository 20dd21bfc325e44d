//! What a question is about: a job by the name of its PodGroup, of its controller or of one of its
//! pods. Specification: answers.md 2 (ANS-5), 16.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_model::{Cluster, ControllerName, GroupController, JobId, ObjectKey, TaskId, TaskStatus};

use crate::controllers::{
    ControllerIndex, controller_of, is_known, jobs_of_controller, pods_of_controller,
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

    /// Returns where a name is looked for. The first of these that has it is taken. Everything that
    /// has the name itself comes before what may be meant by it.
    pub(crate) fn sources(self, fit: NameFit) -> &'static [NameSource] {
        use NameSource::{Group, Owner, Pod, PodController};
        match (self, fit) {
            (Self::Any, NameFit::Stated) => &[Group, Owner, Pod, PodController],
            (Self::Group, NameFit::Stated) => &[Group, Owner, PodController],
            (Self::Any | Self::Group, NameFit::Guessed) => &[Owner, PodController],
            (Self::Controller(_), NameFit::Stated) if self.means_group() => {
                &[Owner, PodController, Group]
            }
            (Self::Controller(_), NameFit::Stated) => &[Owner, PodController],
            (Self::Pod, NameFit::Stated) => &[Pod],
            (Self::Controller(_) | Self::Pod, NameFit::Guessed) => &[],
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

/// How a name and a controller agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameFit {
    /// Kind and name are those of the controller, or of the Deployment of a ReplicaSet.
    Stated,
    /// No kind of controllers is given, and the name is that of the Deployment of a ReplicaSet, as
    /// far as names tell. The ReplicaSet may as well have been made by a user.
    Guessed,
}

impl NameFit {
    /// All of them, the better ones first.
    pub(crate) const ALL: [Self; 2] = [Self::Stated, Self::Guessed];
}

/// Where a name is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameSource {
    /// The PodGroup of the name.
    Group,
    /// The PodGroups of controllers.
    Owner,
    /// The pod of the name.
    Pod,
    /// The pods of controllers.
    PodController,
}

impl SubjectQuery<'_> {
    /// Returns namespace and name.
    pub(crate) fn key(self) -> ObjectKey {
        ObjectKey::new(self.namespace, self.name)
    }

    /// True if kind and name agree with this controller in this way. A plural kind means the same.
    pub(crate) fn fits(self, controller: ControllerName<'_>, fit: NameFit) -> bool {
        match (self.kind, fit) {
            (SubjectKind::Controller(kind), NameFit::Stated) => {
                let singular = kind.strip_suffix(['s', 'S']);
                let is_meant = |kind: &str| controller.is_meant_by(Some(kind), self.name);
                is_meant(kind) || singular.is_some_and(is_meant)
            }
            (SubjectKind::Any | SubjectKind::Group, NameFit::Stated) => {
                controller.is_meant_by(None, self.name)
            }
            (SubjectKind::Any | SubjectKind::Group, NameFit::Guessed) => {
                controller.deployment() == Some(self.name)
            }
            (SubjectKind::Pod, _) | (SubjectKind::Controller(_), NameFit::Guessed) => false,
        }
    }

    /// Returns what the controller with the uid that is asked for owns. If it owns nothing, returns
    /// what controllers own that agree with the name in this way.
    pub(crate) fn choose_owned<T: Copy>(
        self,
        owned: &[(T, GroupController<'_>)],
        fit: NameFit,
    ) -> Vec<T> {
        let has_uid =
            |controller: &GroupController<'_>| self.controller_uid == Some(controller.uid);
        let is_uid_known = owned.iter().any(|(_, controller)| has_uid(controller));
        let is_meant = |controller: &GroupController<'_>| match is_uid_known {
            true => has_uid(controller),
            false => controller.name.is_some_and(|name| self.fits(name, fit)),
        };
        owned.iter().filter(|(_, controller)| is_meant(controller)).map(|(it, _)| *it).collect()
    }
}

/// Why no subject was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectError {
    /// Nothing has this name. Names that are close follow, sorted.
    Unknown(Vec<String>),
    /// Several jobs have it: their PodGroups, sorted.
    Several(Vec<String>),
    /// Several jobs or pods have it, of which one at least has no PodGroup: the pods, and PodGroups
    /// of others, sorted.
    SeveralPods(Vec<String>),
}

/// Finds the job or pod that a user names: a PodGroup of the name, the PodGroup of a controller, a
/// pod, the pods of a controller. The first of these that exists is taken. A name that is none of
/// them may be that of the Deployment of a ReplicaSet.
///
/// Where a kind of controllers is given, they come before a PodGroup of the name, and pods are not
/// looked for.
///
/// # Errors
/// Nothing has the name, or several PodGroups or pods belong to controllers of the name.
pub fn find_subject(cluster: &Cluster, query: SubjectQuery<'_>) -> Result<Subject, SubjectError> {
    find_indexed(cluster, None, query)
}

/// Finds what a user names, likewise. With an index, which must be one of this cluster, not all rows
/// are read. It does not know uids.
pub(crate) fn find_indexed(
    cluster: &Cluster,
    index: Option<&ControllerIndex>,
    query: SubjectQuery<'_>,
) -> Result<Subject, SubjectError> {
    for fit in NameFit::ALL {
        if let Some(subject) = find_fitting(cluster, index, query, fit)? {
            return Ok(subject);
        }
    }
    Err(unknown(cluster, query))
}

/// Finds what agrees with a name in this way. Returns `None` if nothing does.
pub(crate) fn find_fitting(
    cluster: &Cluster,
    index: Option<&ControllerIndex>,
    query: SubjectQuery<'_>,
    fit: NameFit,
) -> Result<Option<Subject>, SubjectError> {
    let key = query.key();
    for source in query.kind.sources(fit) {
        let found: Vec<Subject> = match source {
            NameSource::Group => {
                let group = cluster.job(&key).filter(|&job| is_known(cluster, job));
                group.map(of_job).into_iter().collect()
            }
            NameSource::Owner => {
                let jobs = jobs_of_controller(cluster, index, query, fit);
                jobs.into_iter().map(of_job).collect()
            }
            NameSource::Pod => {
                let of_pod = |pod: TaskId| Subject { job: cluster.tasks[pod].job, pod: Some(pod) };
                cluster.task_named(&key).map(of_pod).into_iter().collect()
            }
            NameSource::PodController => {
                subjects_of_pods(cluster, &pods_of_controller(cluster, index, query, fit))
            }
        };
        match found[..] {
            [] => {}
            [one] => return Ok(Some(one)),
            [..] => return Err(several(cluster, &found)),
        }
    }
    Ok(None)
}

/// Returns the name by which a what-if finds the job: that of its PodGroup, or of its pod if it has no PodGroup of
/// its own. Returns `None` if the name of the pod means another job.
pub(crate) fn name_of_job(cluster: &Cluster, job: JobId) -> Option<ObjectKey> {
    let row = &cluster.jobs[job];
    if !row.bare {
        return Some(row.key.clone());
    }
    let key = &cluster.tasks[*row.tasks.first()?].key;
    let (namespace, name, kind) = (&*key.namespace, &*key.name, SubjectKind::Any);
    let query = SubjectQuery { namespace, name, controller_uid: None, kind };
    let found = find_subject(cluster, query).ok()?;
    (found.job == Some(job)).then(|| key.clone())
}

/// Returns the error about a name that nothing has.
pub(crate) fn unknown(cluster: &Cluster, query: SubjectQuery<'_>) -> SubjectError {
    SubjectError::Unknown(close_names(cluster, query))
}

fn of_job(job: JobId) -> Subject {
    Subject { job: Some(job), pod: None }
}

/// Returns the jobs of pods, and those of the pods that wait without a PodGroup.
fn subjects_of_pods(cluster: &Cluster, pods: &[TaskId]) -> Vec<Subject> {
    let subject = |&task: &TaskId| {
        let row = &cluster.tasks[task];
        match row.job {
            Some(job) => Some(of_job(job)),
            // Pods of other schedulers have nodes.
            None => (row.status == TaskStatus::Pending)
                .then_some(Subject { job: None, pod: Some(task) }),
        }
    };
    let subjects: BTreeSet<Subject> = pods.iter().filter_map(subject).collect();
    subjects.into_iter().collect()
}

fn several(cluster: &Cluster, subjects: &[Subject]) -> SubjectError {
    let is_pod = |subject: &Subject| subject.job.is_none_or(|job| cluster.jobs[job].bare);
    let names = names(cluster, subjects);
    match subjects.iter().any(is_pod) {
        true => SubjectError::SeveralPods(names),
        false => SubjectError::Several(names),
    }
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

//! How the roles of a job relate, read from the annotations of its PodGroup.
//! Specification: plugins-nodes.md 13.1, 13.2.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_model::{Counts, Job, TaskTopology};

/// Numbers of tasks by role.
pub(super) type RoleCounts = BTreeMap<Arc<str>, i64>;

/// The relations between the roles of a job.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RoleRelations {
    /// Roles that like to share a node, by role. A role with affinity to itself is in its own set.
    affinity: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Roles that avoid each other, by role.
    anti_affinity: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Positions in the user's order.
    order: BTreeMap<Arc<str>, usize>,
}

/// An annotation that makes the plugin ignore its job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct TopologyProblem {
    /// Last part of the key of the annotation.
    pub(super) annotation: Cow<'static, str>,
    /// The problem, in the words of Volcano.
    pub(super) text: Arc<str>,
}

impl RoleRelations {
    /// Reads the annotations of a job.
    ///
    /// # Errors
    /// The first name that no task of the job has, or that occurs twice in one group.
    pub(super) fn read(job: &Job, topology: &TaskTopology) -> Result<Self, TopologyProblem> {
        let affinity = groups(job, "affinity", &topology.affinity)?;
        let anti_affinity = groups(job, "anti-affinity", &topology.anti_affinity)?;
        let order = group(job, "task-order", &topology.order)?;
        Ok(Self {
            affinity: related(&affinity),
            anti_affinity: related(&anti_affinity),
            order: order.into_iter().enumerate().map(|(place, role)| (role, place)).collect(),
        })
    }

    /// Returns how important the relations of a role are. Returns `None` for a role without
    /// relations, whose tasks are in no bucket.
    pub(super) fn priority(&self, role: &str) -> Option<u8> {
        let of = |relations: &BTreeMap<Arc<str>, BTreeSet<Arc<str>>>| {
            let related = relations.get(role);
            let has_self = related.is_some_and(|related| related.contains(role));
            (has_self, related.is_some_and(|related| usize::from(has_self) < related.len()))
        };
        let (likes_itself, likes_others) = of(&self.affinity);
        let (avoids_itself, avoids_others) = of(&self.anti_affinity);
        let kinds = [(avoids_itself, 4), (likes_others, 3), (likes_itself, 2), (avoids_others, 1)];
        kinds.into_iter().find(|(is_so, _)| *is_so).map(|(_, priority)| priority)
    }

    /// Returns the sort key of a role: the user's order, then the priority, the highest first.
    pub(super) fn rank(&self, role: &str) -> (usize, u8) {
        let place = self.order.get(role).copied().unwrap_or(usize::MAX);
        (place, u8::MAX - self.priority(role).unwrap_or(0))
    }

    /// Returns the affinity value of a role to tasks: their number with an affinity, less their
    /// number with an anti-affinity.
    pub(super) fn value(&self, role: &str, tasks: &RoleCounts) -> i64 {
        count(&self.affinity, role, tasks) - self.avoided(role, tasks)
    }

    /// Returns how many of the tasks the role avoids.
    pub(super) fn avoided(&self, role: &str, tasks: &RoleCounts) -> i64 {
        count(&self.anti_affinity, role, tasks)
    }
}

fn count(
    relations: &BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    role: &str,
    tasks: &RoleCounts,
) -> i64 {
    let Some(related) = relations.get(role) else { return 0 };
    related.iter().filter_map(|role| tasks.get(role)).sum()
}

/// Returns the roles of each group, separated by semicolons. Groups without a role are left out.
fn groups(
    job: &Job,
    annotation: &'static str,
    text: &str,
) -> Result<Vec<Vec<Arc<str>>>, TopologyProblem> {
    let groups = text.split(';').map(|text| group(job, annotation, text));
    let groups: Vec<Vec<Arc<str>>> = groups.collect::<Result<_, _>>()?;
    Ok(groups.into_iter().filter(|group| !group.is_empty()).collect())
}

/// Returns the roles of a group, separated by commas. Empty names are left out.
fn group(
    job: &Job,
    annotation: &'static str,
    text: &str,
) -> Result<Vec<Arc<str>>, TopologyProblem> {
    let problem =
        |text: String| TopologyProblem { annotation: annotation.into(), text: text.into() };
    let mut group: Vec<Arc<str>> = Vec::new();
    for name in text.split(',').filter(|name| !name.is_empty()) {
        let is_it = |(role, counts): &(&Arc<str>, &Counts)| ***role == *name && 0 < counts.total();
        let Some((role, _)) = job.roles.iter().find(is_it) else {
            return Err(problem(format!("task {name} do not exist in job <{}>", job.key)));
        };
        if group.contains(role) {
            return Err(problem(format!("task {name} is duplicate in job <{}>", job.key)));
        }
        group.push(role.clone());
    }
    Ok(group)
}

/// Returns, by role, the roles that share a group with it. A group of one relates a role to itself.
fn related(groups: &[Vec<Arc<str>>]) -> BTreeMap<Arc<str>, BTreeSet<Arc<str>>> {
    let mut related: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = BTreeMap::new();
    for group in groups {
        for role in group {
            let others = group.iter().filter(|&other| group.len() == 1 || other != role);
            related.entry(role.clone()).or_default().extend(others.cloned());
        }
    }
    related
}

#[cfg(test)]
mod tests {
    use vc_model::{Cluster, fixture};

    use super::*;

    const TASKS: &str = "task a role=ps\n task b role=worker\n task c role=chief\n \
        task d role=evaluator\n task e role=my-role";

    fn read(words: &str) -> Result<RoleRelations, String> {
        let words = words.replace("roles.", "annotation.volcano.sh/task-topology-");
        let cluster: Cluster = fixture::cluster(&format!("job job1 {words}\n {TASKS}"));
        let job = &cluster.jobs[fixture::job(&cluster, "job1")];
        let topology = job.pod_group.as_ref().unwrap().task_topology.clone().unwrap_or_default();
        RoleRelations::read(job, &topology).map_err(|problem| problem.text.to_string())
    }

    fn shown(relations: &BTreeMap<Arc<str>, BTreeSet<Arc<str>>>) -> Vec<String> {
        let line = |(role, others): (&Arc<str>, &BTreeSet<Arc<str>>)| {
            let others: Vec<&str> = others.iter().map(|other| &**other).collect();
            format!("{role}: {}", others.join(" "))
        };
        relations.iter().map(line).collect()
    }

    #[test]
    fn nodes_113_annotations_are_read_as_written() {
        let words = "roles.affinity=ps,worker;ps,chief roles.anti-affinity=ps;worker,chief \
            roles.task-order=ps,worker,chief,evaluator";
        let relations = read(words).unwrap();
        assert_eq!(shown(&relations.affinity), ["chief: ps", "ps: chief worker", "worker: ps"]);
        assert_eq!(shown(&relations.anti_affinity), ["chief: worker", "ps: ps", "worker: chief"]);
        let places: Vec<(&str, usize)> =
            relations.order.iter().map(|(role, place)| (&**role, *place)).collect();
        assert_eq!(places, [("chief", 2), ("evaluator", 3), ("ps", 0), ("worker", 1)]);
        let priorities = ["ps", "worker", "chief", "evaluator"].map(|it| relations.priority(it));
        assert_eq!(priorities, [Some(4), Some(3), Some(3), None], "the order alone is not enough");
        let own = read("roles.affinity=my-role;ps roles.anti-affinity=worker,my-role").unwrap();
        assert_eq!(shown(&own.affinity), ["my-role: my-role", "ps: ps"], "names with -");
        let priorities = ["my-role", "ps", "worker"].map(|it| own.priority(it));
        assert_eq!(priorities, [Some(2), Some(2), Some(1)]);
    }

    #[test]
    fn nodes_114_wrong_names_make_the_job_ignored() {
        let error = |words: &str| read(words).unwrap_err();
        let unknown = "task boss do not exist in job <default/job1>";
        for key in ["affinity", "anti-affinity", "task-order"] {
            assert_eq!(error(&format!("roles.{key}=ps,boss")), unknown);
        }
        let twice = "task ps is duplicate in job <default/job1>";
        assert_eq!(error("roles.affinity=ps,ps"), twice);
        assert_eq!(error("roles.task-order=ps,worker,ps"), twice);
        assert!(read("roles.affinity=ps,worker;worker,ps").is_ok(), "in one group only");
        let with_empty = read("roles.affinity=ps,worker;ps,,chief,;").unwrap();
        assert_eq!(with_empty, read("roles.affinity=ps,worker;ps,chief").unwrap());
    }
}

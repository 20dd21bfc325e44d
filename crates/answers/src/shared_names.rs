//! Names of controllers that do not mean one job alone. Specification: answers.md 11 (ANS-70).

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use vc_model::{Cluster, ObjectKey, PodGroupRecord};

use crate::controllers::{controller_of, is_known};
use crate::timeline::Timeline;

/// A PodGroup, or a pod that has none, with the name of its controller.
type NamedJob<'a> = (&'a ObjectKey, Option<&'a str>);

/// The PodGroups that are not meant by the names of their controllers alone: another PodGroup of the
/// namespace has a controller of the name, or is itself called so, or a pod without a PodGroup is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedNames(BTreeSet<ObjectKey>);

impl SharedNames {
    /// Finds them among these PodGroups and pods, each with the name of its controller. `None`: it
    /// has none, or the name is not known. What is given twice counts once.
    pub fn new<'a>(jobs: impl IntoIterator<Item = (&'a ObjectKey, Option<&'a str>)>) -> Self {
        let jobs: Vec<NamedJob<'_>> = jobs.into_iter().collect();
        // The job that a name means. `None` for several.
        let mut meant: FxHashMap<(&str, &str), Option<&ObjectKey>> = FxHashMap::default();
        for &(key, controller) in &jobs {
            if let Some(name) = controller {
                let known = meant.entry((&*key.namespace, name)).or_insert(Some(key));
                *known = known.filter(|other| *other == key);
            }
        }
        for &(key, _) in &jobs {
            if let Some(known) = meant.get_mut(&(&*key.namespace, &*key.name)) {
                *known = known.filter(|other| *other == key);
            }
        }
        let shared = jobs.iter().filter(|(key, controller)| {
            controller.is_some_and(|name| meant.get(&(&*key.namespace, name)) == Some(&None))
        });
        Self(shared.map(|(key, _)| ObjectKey::clone(key)).collect())
    }

    /// Finds them among the jobs and pods of a cluster.
    pub fn of_cluster(cluster: &Cluster) -> Self {
        Self::new(named_jobs(cluster))
    }

    /// Finds them among the jobs and pods of a cluster, and those that held nodes lately.
    pub fn of_timeline(cluster: &Cluster, timeline: &Timeline) -> Self {
        let spans = timeline.spans().map(|span| {
            let controller = span.controller().and_then(|it| it.name);
            (&span.key, controller.map(|it| it.name))
        });
        Self::new(named_jobs(cluster).chain(spans))
    }

    /// Finds them among the jobs and pods of a cluster, and further PodGroups.
    pub fn with_groups<'a>(
        cluster: &'a Cluster,
        groups: impl Iterator<Item = &'a PodGroupRecord>,
    ) -> Self {
        let groups = groups.map(|group| {
            let controller = group.controller().and_then(|it| it.name);
            (&group.key, controller.map(|it| it.name))
        });
        Self::new(named_jobs(cluster).chain(groups))
    }

    /// True if the name of the PodGroup's controller does not mean this PodGroup alone.
    pub fn contains(&self, group: &ObjectKey) -> bool {
        self.0.contains(group)
    }
}

/// Returns the PodGroups of a cluster, and its pods without one.
fn named_jobs(cluster: &Cluster) -> impl Iterator<Item = NamedJob<'_>> {
    let groups = cluster.jobs_by_key().filter(move |&job| is_known(cluster, job));
    let groups = groups.map(move |job| {
        let row = &cluster.jobs[job];
        let controller = controller_of(row).and_then(|it| it.name);
        (&row.key, controller.map(|it| it.name))
    });
    let bare = cluster.jobs_by_key().map(move |job| &cluster.jobs[job]).filter(|row| row.bare);
    let pods = bare.flat_map(|row| row.tasks.iter().copied()).chain(cluster.ungrouped());
    groups.chain(pods.map(move |pod| (&cluster.tasks[pod].key, None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the PodGroups that are not meant by their controllers' names alone.
    fn shared(jobs: &[(&str, Option<&str>)]) -> Vec<String> {
        let key = |name: &str| {
            let (namespace, name) = name.split_once('/').unwrap_or(("ml", name));
            ObjectKey::new(namespace, name)
        };
        let keys: Vec<ObjectKey> = jobs.iter().map(|(name, _)| key(name)).collect();
        let names = SharedNames::new(keys.iter().zip(jobs.iter().map(|(_, name)| *name)));
        names.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ans_70_a_name_is_shared_by_all_that_it_may_mean() {
        assert_eq!(shared(&[]), [""; 0]);
        let alone = [("db-7f", Some("db")), ("podgroup-1", Some("etl")), ("plain", None)];
        assert_eq!(shared(&alone), [""; 0]);
        let two = [("db-7f", Some("db")), ("podgroup-1", Some("db")), ("db-2", Some("x"))];
        assert_eq!(shared(&two), ["ml/db-7f", "ml/podgroup-1"]);
        let three = [("a", Some("db")), ("b", Some("db")), ("c", Some("db"))];
        assert_eq!(shared(&three), ["ml/a", "ml/b", "ml/c"]);
        // A PodGroup, or a pod without one, has the name itself.
        assert_eq!(shared(&[("db", None), ("db-7f", Some("db"))]), ["ml/db-7f"]);
        assert_eq!(shared(&[("db-7f", Some("db")), ("db", Some("other"))]), ["ml/db-7f"]);
        assert_eq!(shared(&[("db", Some("db"))]), [""; 0]);
        let elsewhere = [("db-7f", Some("db")), ("prod/db", None), ("prod/db-1", Some("x"))];
        assert_eq!(shared(&elsewhere), [""; 0]);
        assert_eq!(shared(&[("a", Some("db")), ("a", Some("db"))]), [""; 0], "twice the same");
    }
}

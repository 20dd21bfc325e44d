//! What a cluster holds besides a workload: objects that its controllers have made already.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::group_of;
use crate::field::text;

/// How many pods controllers may make. A workload may ask for far more than somebody has memory for.
#[derive(Debug)]
pub struct PodLimit {
    /// Pods in all, for the error.
    most: usize,
    /// Pods that may still be made.
    left: Cell<usize>,
}

impl PodLimit {
    /// Returns a limit of so many pods, of which some are there already.
    pub fn new(most: usize, present: usize) -> Self {
        Self { most, left: Cell::new(most.saturating_sub(present)) }
    }
}

/// The objects that matter to controllers, by what they look for.
#[derive(Debug, Default)]
pub struct WorkloadContext {
    /// Namespace and name.
    pods: BTreeSet<(String, String)>,
    pod_groups: BTreeSet<(String, String)>,
    /// Pods that are not finished and not being deleted, by the uid of their controller.
    n_active: BTreeMap<String, i64>,
    /// Names of PodGroups by the uid of their owner.
    owned_groups: BTreeMap<String, String>,
    /// Deployments that have a ReplicaSet, by uid.
    deployed: BTreeSet<String>,
    priorities: BTreeMap<String, i64>,
    /// `None`: any number of pods is made.
    pod_limit: Option<PodLimit>,
}

impl WorkloadContext {
    /// Takes note of an object.
    pub fn add(&mut self, object: &Value) {
        let (namespace, name) =
            (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        match (group_of(object), text(object, "/kind")) {
            ("", "Pod") => {
                let owner = controller_uid(object).filter(|_| is_active(object));
                self.add_pod(namespace, name, owner);
            }
            ("scheduling.volcano.sh", "PodGroup") => {
                self.add_pod_group(namespace, name, controller_uid(object));
            }
            ("apps", "ReplicaSet") => {
                self.deployed.extend(controller_uid(object).map(str::to_owned));
            }
            ("scheduling.k8s.io", "PriorityClass") => {
                self.add_priority_class(name, object["value"].as_i64().unwrap_or(0));
            }
            _ => {}
        }
    }

    /// Takes note of a pod, with the uid of its controller if it is not finished and not being
    /// deleted.
    pub fn add_pod(&mut self, namespace: &str, name: &str, active_of: Option<&str>) {
        if let Some(owner) = active_of {
            *self.n_active.entry(owner.to_owned()).or_default() += 1;
        }
        self.pods.insert(key(namespace, name));
    }

    /// Takes note of a PodGroup, with the uid of its controller.
    pub fn add_pod_group(&mut self, namespace: &str, name: &str, controller: Option<&str>) {
        if let Some(owner) = controller {
            self.owned_groups.insert(owner.to_owned(), name.to_owned());
        }
        self.pod_groups.insert(key(namespace, name));
    }

    /// Takes note of a PriorityClass.
    pub fn add_priority_class(&mut self, name: &str, value: i64) {
        self.priorities.insert(name.to_owned(), value);
    }

    /// Limits the pods that controllers make.
    pub fn limit_pods(&mut self, limit: PodLimit) {
        self.pod_limit = Some(limit);
    }

    /// Counts a pod that a controller is about to make.
    ///
    /// # Errors
    /// It is one more than the limit.
    pub(super) fn count_made_pod(&self) -> Result<(), String> {
        let Some(PodLimit { most, left }) = &self.pod_limit else { return Ok(()) };
        let after = left.get().checked_sub(1);
        left.set(after.ok_or_else(|| format!("{most} new pods at most in all changes"))?);
        Ok(())
    }

    pub(super) fn has_pod(&self, namespace: &str, name: &str) -> bool {
        self.pods.contains(&key(namespace, name))
    }

    pub fn has_pod_group(&self, namespace: &str, name: &str) -> bool {
        self.pod_groups.contains(&key(namespace, name))
    }

    /// The PodGroup that this owner has.
    pub(super) fn group_of_owner(&self, uid: &str) -> Option<&str> {
        self.owned_groups.get(uid).map(String::as_str)
    }

    pub(super) fn n_active_pods(&self, owner: &str) -> i64 {
        self.n_active.get(owner).copied().unwrap_or(0)
    }

    pub(super) fn has_replica_set(&self, deployment: &str) -> bool {
        self.deployed.contains(deployment)
    }

    /// The value of a PriorityClass, 0 when there is none of that name.
    pub(super) fn priority(&self, class: &str) -> i64 {
        self.priorities.get(class).copied().unwrap_or(0)
    }
}

fn key(namespace: &str, name: &str) -> (String, String) {
    (namespace.to_owned(), name.to_owned())
}

fn is_active(pod: &Value) -> bool {
    let finished = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    !finished && text(pod, "/metadata/deletionTimestamp").is_empty()
}

/// The uid of the owner that controls an object, or of its first owner.
pub(super) fn controller_uid(object: &Value) -> Option<&str> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let controls = |owner: &&Value| owner["controller"] == true;
    let owner = owners.iter().find(controls).or(owners.first())?;
    owner["uid"].as_str().filter(|uid| !uid.is_empty())
}

//! What the controllers of a cluster would make of workloads: Volcano Jobs, Jobs, Deployments,
//! ReplicaSets and StatefulSets become PodGroups and pods. A dump of a cluster holds controllers
//! and their pods; only the missing ones are made.

mod context;
mod group;
mod replicated;
mod request;
mod template;
mod volcano_job;

use serde_json::Value;

use crate::field::text;

pub use context::{PodLimit, WorkloadContext};
pub use group::join_group;

/// Pods of this scheduler are ours.
pub const SCHEDULER: &str = "volcano";

/// The annotation through which a pod joins a PodGroup (core.md 3.2).
pub const GROUP_NAME: &str = "scheduling.k8s.io/group-name";

/// Most pods that one workload may ask for; more is taken for a slip of the pen.
const MAX_PODS: i64 = 1_000_000;

/// PodGroups and pods that the controllers would make of an object, without what exists already.
/// Empty for other kinds.
///
/// # Errors
/// A field that the controllers read is malformed; the message names its path.
pub fn expand(object: &Value, context: &WorkloadContext) -> Result<Vec<Value>, String> {
    match (group_of(object), text(object, "/kind")) {
        ("batch.volcano.sh", "Job") => volcano_job::expand(object, context),
        ("batch", "Job") => replicated::job(object, context),
        ("apps", "Deployment") => replicated::deployment(object, context),
        ("apps", "ReplicaSet") => replicated::replica_set(object, context),
        ("apps", "StatefulSet") => replicated::stateful_set(object, context),
        _ => Ok(Vec::new()),
    }
}

/// Whether an object stands for pods.
pub fn is_workload(object: &Value) -> bool {
    matches!(
        (group_of(object), text(object, "/kind")),
        ("batch.volcano.sh" | "batch", "Job")
            | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet")
    )
}

/// The API group of an object, empty for core.
pub fn group_of(object: &Value) -> &str {
    text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group)
}

//! What a workload's controllers would make of it. The embedded server has no controllers: a new
//! Volcano Job, Job, Deployment, ReplicaSet or StatefulSet is expanded once, when it is created.

use serde_json::{Value, json};

use super::{
    kinds::ServedKind,
    object::{name, namespace, text},
};

/// Makes the objects of a workload.
pub trait Expander: Send + Sync {
    /// PodGroups and pods of a stored workload (it has its uid). An owner reference is added to
    /// those that have none. Empty when there is nothing to make.
    fn expand(&self, object: &Value) -> Vec<Value>;
}

/// Whether objects of this kind stand for pods that a controller would make.
pub(super) fn is_workload(kind: &ServedKind) -> bool {
    matches!(
        (kind.group, kind.plural),
        ("batch.volcano.sh" | "batch", "jobs")
            | ("apps", "deployments" | "replicasets" | "statefulsets")
    )
}

/// Gives `child` its namespace and owner.
pub(super) fn adopt(child: &mut Value, workload: &Value) {
    let metadata = &mut child["metadata"];
    if metadata["namespace"].is_null() {
        metadata["namespace"] = namespace(workload).into();
    }
    if metadata["ownerReferences"].is_null() {
        metadata["ownerReferences"] = json!([{
            "apiVersion": workload["apiVersion"], "kind": workload["kind"],
            "name": name(workload), "uid": workload["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true,
        }]);
    }
}

/// The event that tells a user why a workload has fewer pods than it asks for.
pub(super) fn failed_create(workload: &Value, message: &str, now: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {
            "generateName": format!("{}.", name(workload)), "namespace": namespace(workload),
        },
        "involvedObject": {
            "apiVersion": workload["apiVersion"], "kind": workload["kind"],
            "namespace": namespace(workload), "name": name(workload),
            "uid": text(workload, "/metadata/uid"),
        },
        "type": "Warning", "reason": "FailedCreate", "message": message, "count": 1,
        "firstTimestamp": now, "lastTimestamp": now, "source": { "component": "vcsim" },
    })
}

//! Pods from the template of a workload.

use serde_json::{Map, Value, json};

use super::MAX_PODS;
use crate::admission;
use crate::field::{FieldReader, text};

/// A pod of this name from a template, owned by the workload. It has no uid yet.
pub(super) fn pod(
    workload: &Value,
    template: &FieldReader<'_>,
    name: &str,
) -> Result<Value, String> {
    let spec = template.at("spec");
    let Some(fields) = spec.object()? else {
        return Err(spec.problem("is missing"));
    };
    let metadata = template.at("metadata");
    let copy = |field: &str| -> Result<Value, String> {
        let copied = metadata.at(field).object()?.cloned();
        Ok(copied.map_or_else(|| Value::Object(Map::new()), Value::Object))
    };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": workload["metadata"]["namespace"],
            "labels": copy("labels")?, "annotations": copy("annotations")?,
            "ownerReferences": [owner(workload)],
        },
        "spec": fields,
        "status": { "phase": "Pending" },
    });
    admission::requests_from_limits(&mut pod);
    Ok(pod)
}

/// The reference that makes the workload the controller of an object.
pub(super) fn owner(workload: &Value) -> Value {
    json!({
        "apiVersion": workload["apiVersion"], "kind": workload["kind"],
        "name": workload["metadata"]["name"], "uid": workload["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// A number of pods, `absent` when it is not given.
pub(super) fn count(field: &FieldReader<'_>, absent: i64) -> Result<i64, String> {
    match field.int()?.unwrap_or(absent) {
        count @ 0..=MAX_PODS => Ok(count),
        count if count < 0 => Err(field.problem(&format!("must not be negative: {count}"))),
        count => Err(field.problem(&format!("must not be larger than {MAX_PODS}: {count}"))),
    }
}

/// The name of a workload.
pub(super) fn name(workload: &Value) -> &str {
    text(workload, "/metadata/name")
}

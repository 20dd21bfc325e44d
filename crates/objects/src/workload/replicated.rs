//! Kubernetes' own workloads. Their pods get a PodGroup with `minMember` 1 each when they are ours.

use serde_json::{Value, json};

use super::context::WorkloadContext;
use super::group::join_group;
use super::template::{self, count, name};
use crate::admission::fnv1a;
use crate::field::{FieldReader, text};

/// A Deployment makes a ReplicaSet, unless it has one.
pub(super) fn deployment(object: &Value, context: &WorkloadContext) -> Result<Vec<Value>, String> {
    if context.has_replica_set(text(object, "/metadata/uid")) {
        return Ok(Vec::new());
    }
    let hash = hash(&object["spec"]["template"]);
    let uid = format!("{}-{hash}", text(object, "/metadata/uid"));
    let replica_set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", name(object)), "uid": uid,
            "namespace": object["metadata"]["namespace"],
            "annotations": object["metadata"]["annotations"],
            "ownerReferences": [template::owner(object)],
        },
        "spec": {
            "replicas": object["spec"]["replicas"], "template": object["spec"]["template"],
            "selector": object["spec"]["selector"],
        },
    });
    let children = self::replica_set(&replica_set, context)?;
    Ok(std::iter::once(replica_set).chain(children).collect())
}

pub(super) fn replica_set(object: &Value, context: &WorkloadContext) -> Result<Vec<Value>, String> {
    let spec = FieldReader::root(object).at("spec");
    let wanted = count(&spec.at("replicas"), 1)?;
    let missing = wanted - context.n_active_pods(text(object, "/metadata/uid"));
    numbered(object, &spec, missing, context)
}

/// Pods of a StatefulSet have fixed names. All are made at once: what matters here is whether and
/// where they fit.
pub(super) fn stateful_set(
    object: &Value,
    context: &WorkloadContext,
) -> Result<Vec<Value>, String> {
    let spec = FieldReader::root(object).at("spec");
    let wanted = count(&spec.at("replicas"), 1)?;
    let start = count(&spec.at("ordinals").at("start"), 0)?;
    let namespace = text(object, "/metadata/namespace");
    let names = (start..start + wanted).map(|ordinal| format!("{}-{ordinal}", name(object)));
    let missing = names.filter(|name| !context.has_pod(namespace, name));
    pods(object, &spec, missing, context)
}

/// A Job has up to `parallelism` pods, and no more than it still needs to complete.
pub(super) fn job(object: &Value, context: &WorkloadContext) -> Result<Vec<Value>, String> {
    let root = FieldReader::root(object);
    let spec = root.at("spec");
    if spec.at("suspend").flag()? || is_finished(object) {
        return Ok(Vec::new());
    }
    let mut wanted = count(&spec.at("parallelism"), 1)?;
    if !spec.at("completions").is_absent() {
        let succeeded = root.at("status").at("succeeded").int()?.unwrap_or(0);
        wanted = wanted.min(count(&spec.at("completions"), 1)? - succeeded);
    }
    let missing = wanted - context.n_active_pods(text(object, "/metadata/uid"));
    numbered(object, &spec, missing, context)
}

fn is_finished(job: &Value) -> bool {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        matches!(condition["type"].as_str(), Some("Complete" | "Failed"))
            && condition["status"] == "True"
    })
}

/// `n_missing` pods `<workload>-<number>`, with the lowest numbers that are free.
fn numbered(
    object: &Value,
    spec: &FieldReader<'_>,
    n_missing: i64,
    context: &WorkloadContext,
) -> Result<Vec<Value>, String> {
    let namespace = text(object, "/metadata/namespace");
    let names = (0_u64..).map(|number| format!("{}-{number}", name(object)));
    let free = names.filter(|name| !context.has_pod(namespace, name));
    pods(object, spec, free.take(usize::try_from(n_missing).unwrap_or(0)), context)
}

fn pods(
    object: &Value,
    spec: &FieldReader<'_>,
    names: impl Iterator<Item = String>,
    context: &WorkloadContext,
) -> Result<Vec<Value>, String> {
    let template = spec.at("template");
    let mut made = Vec::new();
    for name in names {
        context.count_made_pod()?;
        let mut pod = template::pod(object, &template, &name)?;
        // The pods of one controller share the PodGroup, which the first of them brings along.
        let group = join_group(&mut pod, Some(object), context);
        if made.is_empty() {
            made.extend(group);
        }
        made.push(pod);
    }
    Ok(made)
}

/// A short text that differs for different templates.
fn hash(template: &Value) -> String {
    let hash = fnv1a(template.to_string().as_bytes());
    format!("{:08x}", hash >> 32 ^ hash & 0xffff_ffff)
}

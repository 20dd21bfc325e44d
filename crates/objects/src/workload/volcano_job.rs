//! Volcano Jobs, with what Volcano's webhook fills in and its job controller makes: one PodGroup
//! and the pods of every task.

use serde_json::{Map, Value, json};

use super::context::WorkloadContext;
use super::request::RequestTotal;
use super::template::{self, count, name};
use super::{GROUP_NAME, SCHEDULER};
use crate::field::{FieldReader, object_mut, text};

/// Annotations of the Job that its pods take over.
const FOR_PODS: &[&str] = &[
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
];

/// Labels of the Job that its pods take over.
const LABELS_FOR_PODS: &[&str] = &["volcano.sh/preemptable", "volcano.sh/cooldown-time"];

/// An entry of `spec.tasks` with its defaults.
struct JobTask<'a> {
    name: String,
    replicas: i64,
    min_available: i64,
    template: FieldReader<'a>,
    partitions: Option<Partitions<'a>>,
}

/// `partitionPolicy` of a task: its pods form sub-groups of consecutive pods.
struct Partitions<'a> {
    size: i64,
    /// Sub-groups that the job needs.
    minimum: i64,
    /// Null if absent.
    topology: &'a Value,
}

/// Label with the name of the task of a pod.
const TASK_SPEC: &str = "volcano.sh/task-spec";
/// Label with the number of the sub-group of a pod.
const PARTITION: &str = "volcano.sh/partition-id";

pub(super) fn expand(object: &Value, context: &WorkloadContext) -> Result<Vec<Value>, String> {
    let root = FieldReader::root(object);
    if !has_pods(root.at("status").at("state").at("phase").text()?) {
        return Ok(Vec::new());
    }
    let spec = root.at("spec");
    let tasks = tasks(&spec)?;
    let total: i64 = tasks.iter().map(|task| task.min_available).sum();
    let min_available = match count(&spec.at("minAvailable"), 0)? {
        0 => total,
        given => given,
    };
    let namespace = text(object, "/metadata/namespace");
    let uid = text(object, "/metadata/uid");
    let existing = context.group_of_owner(uid).map(str::to_owned);
    let group = existing.unwrap_or_else(|| format!("{}-{uid}", name(object)));
    let mut made = Vec::new();
    for task in &tasks {
        for index in 0..task.replicas {
            let name = format!("{}-{}-{index}", name(object), task.name);
            if !context.has_pod(namespace, &name) {
                context.count_made_pod()?;
                made.push(pod(object, task, index, &name, &group)?);
            }
        }
    }
    if !context.has_pod_group(namespace, &group) {
        let resources = min_resources(object, &tasks, min_available, context)?;
        made.insert(0, pod_group(object, &group, &tasks, min_available, resources)?);
    }
    Ok(made)
}

/// Whether the job controller makes pods in this phase of a Job.
fn has_pods(phase: &str) -> bool {
    matches!(phase, "" | "Pending" | "Running" | "Restarting")
}

fn tasks<'a>(spec: &FieldReader<'a>) -> Result<Vec<JobTask<'a>>, String> {
    let mut tasks = Vec::new();
    for (index, field) in spec.at("tasks").list()?.into_iter().enumerate() {
        let name = field.at("name").text()?;
        let replicas = count(&field.at("replicas"), 1)?;
        tasks.push(JobTask {
            name: if name.is_empty() { format!("default{index}") } else { name.to_owned() },
            replicas,
            min_available: count(&field.at("minAvailable"), replicas)?,
            template: field.at("template"),
            partitions: partitions(&field.at("partitionPolicy"))?,
        });
    }
    Ok(tasks)
}

/// Returns the policy, if the task has one.
fn partitions<'a>(field: &FieldReader<'a>) -> Result<Option<Partitions<'a>>, String> {
    if field.value().is_null() {
        return Ok(None);
    }
    Ok(Some(Partitions {
        size: count(&field.at("partitionSize"), 1)?.max(1),
        minimum: count(&field.at("minPartitions"), 0)?,
        topology: field.at("networkTopology").value(),
    }))
}

impl Partitions<'_> {
    /// Returns the entry of `subGroupPolicy` of a task.
    fn policy(&self, task: &str) -> Value {
        let mut policy = json!({
            "name": task, "subGroupSize": self.size,
            "labelSelector": {"matchLabels": {TASK_SPEC: task}},
            "matchLabelKeys": [PARTITION],
        });
        if 0 < self.minimum {
            policy["minSubGroups"] = self.minimum.into();
        }
        if !self.topology.is_null() {
            policy["networkTopology"] = self.topology.clone();
        }
        policy
    }
}

fn pod(
    job: &Value,
    task: &JobTask<'_>,
    index: i64,
    pod_name: &str,
    group: &str,
) -> Result<Value, String> {
    let mut pod = template::pod(job, &task.template, pod_name)?;
    let queue = queue(job)?;
    let annotations = [
        (GROUP_NAME, group.to_owned()),
        (TASK_SPEC, task.name.clone()),
        ("volcano.sh/task-index", index.to_string()),
        ("volcano.sh/job-name", name(job).to_owned()),
        ("volcano.sh/queue-name", queue.to_owned()),
        ("volcano.sh/job-version", version(job)),
        ("volcano.sh/template-uid", format!("{}-{}", name(job), task.name)),
    ];
    let labels = [
        ("volcano.sh/task-index", index.to_string()),
        ("volcano.sh/job-name", name(job).to_owned()),
        (TASK_SPEC, task.name.clone()),
        ("volcano.sh/job-namespace", text(job, "/metadata/namespace").to_owned()),
        ("volcano.sh/queue-name", queue.to_owned()),
    ];
    if let Some(map) = object_mut(&mut pod, &["metadata", "annotations"]) {
        insert(map, annotations);
        copy(map, &job["metadata"]["annotations"], FOR_PODS);
    }
    if let Some(map) = object_mut(&mut pod, &["metadata", "labels"]) {
        insert(map, labels);
        let partition = task.partitions.as_ref().map(|of| (index / of.size).to_string());
        map.extend(partition.map(|number| (PARTITION.to_owned(), number.into())));
        copy(map, &job["metadata"]["labels"], LABELS_FOR_PODS);
    }
    if text(&pod, "/spec/schedulerName").is_empty() {
        let of_job = FieldReader::root(job).at("spec").at("schedulerName").text()?;
        pod["spec"]["schedulerName"] = if of_job.is_empty() { SCHEDULER } else { of_job }.into();
    }
    Ok(pod)
}

fn insert<const N: usize>(map: &mut Map<String, Value>, entries: [(&str, String); N]) {
    map.extend(entries.map(|(key, value)| (key.to_owned(), Value::from(value))));
}

fn copy(map: &mut Map<String, Value>, from: &Value, keys: &[&str]) {
    for &key in keys.iter().filter(|&&key| !from[key].is_null()) {
        map.insert(key.to_owned(), from[key].clone());
    }
}

fn queue(job: &Value) -> Result<&str, String> {
    let queue = FieldReader::root(job).at("spec").at("queue").text()?;
    Ok(if queue.is_empty() { "default" } else { queue })
}

fn version(job: &Value) -> String {
    job["status"]["version"].as_i64().unwrap_or(0).to_string()
}

fn pod_group(
    job: &Value,
    group: &str,
    tasks: &[JobTask<'_>],
    min_available: i64,
    resources: Value,
) -> Result<Value, String> {
    let roles: Map<String, Value> =
        tasks.iter().map(|task| (task.name.clone(), task.min_available.into())).collect();
    let mut spec = json!({
        "minMember": min_available, "minTaskMember": roles, "minResources": resources,
        "queue": queue(job)?,
    });
    copy_spec(&mut spec, &job["spec"], &["priorityClassName", "networkTopology"]);
    let policies =
        tasks.iter().filter_map(|task| Some(task.partitions.as_ref()?.policy(&task.name)));
    let policies: Vec<Value> = policies.collect();
    if !policies.is_empty() {
        spec["subGroupPolicy"] = policies.into();
    }
    Ok(json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {
            "name": group, "namespace": job["metadata"]["namespace"],
            "annotations": job["metadata"]["annotations"], "labels": job["metadata"]["labels"],
            "ownerReferences": [template::owner(job)],
        },
        "spec": spec,
        "status": { "phase": "Pending" },
    }))
}

fn copy_spec(spec: &mut Value, from: &Value, fields: &[&str]) {
    for &field in fields.iter().filter(|&&field| !from[field].is_null()) {
        spec[field] = from[field].clone();
    }
}

/// What the gang needs at least: the minimum of every task, then further pods up to the minimum of
/// the job, tasks of higher priority first. When the job needs fewer than its tasks together, the
/// first pods in that order count.
fn min_resources(
    job: &Value,
    tasks: &[JobTask<'_>],
    min_available: i64,
    context: &WorkloadContext,
) -> Result<Value, String> {
    let mut by_priority: Vec<&JobTask<'_>> = tasks.iter().collect();
    by_priority.sort_by_key(|task| {
        let class = task.template.value().pointer("/spec/priorityClassName");
        -class.and_then(Value::as_str).map_or(0, |class| context.priority(class))
    });
    let guaranteed: i64 = tasks.iter().map(|task| task.min_available).sum();
    let minima_count = guaranteed <= min_available;
    let mut left = if minima_count { min_available - guaranteed } else { min_available };
    let mut total = RequestTotal::default();
    for task in by_priority {
        let certain = if minima_count { task.min_available } else { 0 };
        let further = (task.replicas - certain).clamp(0, left);
        left -= further;
        let pod = template::pod(job, &task.template, "-")?;
        total.add(&pod, certain + further);
    }
    Ok(total.to_json())
}

//! Jobs and whole sessions in requests to the service of `extender`.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use vc_model::{
    Cluster, Job, JobBudget, JobId, NetworkTopology, NodeId, PodGroup, Portion, QueueId,
    ResourceQuotaAmounts, SubJob, TaskId,
};

use super::object::quantities;
use super::{extender_node, extender_queue, extender_task, resource};
use crate::format_time;

/// API version of PodGroups.
const VERSION: &str = "v1beta1";

/// Returns a job with its tasks.
pub fn extender_job(cluster: &Cluster, job: JobId) -> Value {
    let row = &cluster.jobs[job];
    let group = row.pod_group.as_ref();
    let sla = group.and_then(|group| group.sla_waiting_micros);
    let (min, max) = budget(group);
    let task_to_sub_job: Map<String, Value> = row
        .existing_sub_jobs()
        .flat_map(|sub| sub.tasks.iter().map(move |&task| (task, sub)))
        .map(|(task, sub)| (cluster.tasks[task].uid.to_string(), json!(sub.id)))
        .collect();
    let policies = row.policies().iter();
    let minimums: Map<String, Value> =
        policies.map(|policy| (policy.name.to_string(), json!(policy.min_sub_groups))).collect();
    let sub_jobs = row.existing_sub_jobs();
    let sub_jobs: Map<String, Value> =
        sub_jobs.map(|sub| (sub.id.to_string(), sub_job(cluster, row, sub))).collect();
    json!({
        "UID": row.key.to_string(),
        "PgUID": group.map_or("", |group| &*group.uid),
        "Name": row.key.name,
        "Namespace": row.key.namespace,
        "Queue": cluster.queues[row.queue].name,
        "Priority": row.priority,
        "MinAvailable": row.min_available,
        "WaitingTime": sla.map(|micros| micros.saturating_mul(1_000)),
        "JobFitErrors": "",
        "NodesFitErrors": {},
        "AllocatedHyperNode": "",
        "NetworkTopology": topology(group.and_then(|group| group.network_topology.as_deref())),
        "SubJobs": sub_jobs,
        "TaskToSubJob": task_to_sub_job,
        "MinSubJobs": minimums,
        "TaskStatusIndex": by_status(cluster, &row.tasks),
        "Tasks": by_uid(cluster, &row.tasks),
        "TaskMinAvailable": *row.task_min_available,
        "TaskMinAvailableTotal": row.task_min_available_total,
        "Allocated": resource(cluster, &row.allocated),
        "TotalRequest": resource(cluster, &row.total_request()),
        "CreationTimestamp": group.map(|group| format_time(group.created_micros)),
        "PodGroup": group.map(|group| pod_group(cluster, row, group)),
        "ScheduleStartTimestamp": null,
        "Preemptable": group.is_some_and(|group| group.preemptable),
        "RevocableZone": "",
        "Budget": {"MinAvailable": min, "MaxUnavailable": max},
    })
}

/// Returns all objects of a session.
pub fn extender_session(
    cluster: &Cluster,
    nodes: &[NodeId],
    jobs: &[JobId],
    queues: &[QueueId],
) -> Value {
    let key = |job: JobId| cluster.jobs[job].key.to_string();
    let job_entries = jobs.iter().map(|&job| (key(job), extender_job(cluster, job)));
    let name = |node: NodeId| cluster.nodes[node].name.to_string();
    let all: Map<String, Value> =
        nodes.iter().map(|&node| (name(node), extender_node(cluster, node))).collect();
    let is_revocable = |name: &String| {
        let node = cluster.node(name);
        node.is_some_and(|node| !cluster.nodes[node].revocable_zone.is_empty())
    };
    let revocable: Map<String, Value> = all
        .iter()
        .filter(|(name, _)| is_revocable(name))
        .map(|(name, node)| (name.clone(), node.clone()))
        .collect();
    let queue_name = |queue: QueueId| cluster.queues[queue].name.to_string();
    let queues = queues.iter().map(|&queue| (queue_name(queue), extender_queue(cluster, queue)));
    let namespaces: BTreeSet<&Arc<str>> =
        jobs.iter().map(|&job| &cluster.jobs[job].key.namespace).collect();
    let namespaces =
        namespaces.into_iter().map(|name| (name.to_string(), namespace(cluster, name)));
    json!({
        "Jobs": Value::Object(job_entries.collect()),
        "Nodes": all,
        "Queues": Value::Object(queues.collect()),
        "NamespaceInfo": Value::Object(namespaces.collect()),
        "RevocableNodes": revocable,
        "NodeList": null,
    })
}

fn namespace(cluster: &Cluster, name: &str) -> Value {
    let list = |amounts: &ResourceQuotaAmounts| -> Map<String, Value> {
        amounts.iter().map(|(name, amount)| (name.to_string(), amount.text(name).into())).collect()
    };
    let quotas = cluster.quotas.of(name).map(|(name, quota)| {
        (name.to_string(), json!({"hard": list(&quota.hard), "used": list(&quota.used)}))
    });
    json!({"Name": name, "QuotaStatus": Value::Object(quotas.collect())})
}

fn sub_job(cluster: &Cluster, job: &Job, sub: &SubJob) -> Value {
    let policy = sub.policy.and_then(|policy| job.policies().get(policy));
    let priorities = sub.tasks.iter().map(|&task| cluster.tasks[task].priority);
    json!({
        "GID": policy.map_or("", |policy| &*policy.name),
        "UID": sub.id,
        "Job": job.key.to_string(),
        "MinAvailable": sub.min_available,
        "Priority": priorities.max().unwrap_or(0),
        "MatchIndex": sub.match_index,
        "Tasks": by_uid(cluster, &sub.tasks),
        "TaskStatusIndex": by_status(cluster, &sub.tasks),
        "AllocatedHyperNode": "",
        "NominatedHyperNode": "",
        "NetworkTopology": topology(policy.and_then(|policy| policy.network_topology.as_ref())),
    })
}

fn by_uid(cluster: &Cluster, tasks: &[TaskId]) -> Map<String, Value> {
    let entry = |&task| (cluster.tasks[task].uid.to_string(), extender_task(cluster, task, None));
    tasks.iter().map(entry).collect()
}

fn by_status(cluster: &Cluster, tasks: &[TaskId]) -> Value {
    let mut index = json!({});
    for &task in tasks {
        let row = &cluster.tasks[task];
        index[row.status.number().to_string()][&*row.uid] = extender_task(cluster, task, None);
    }
    index
}

fn topology(topology: Option<&NetworkTopology>) -> Value {
    let Some(topology) = topology else { return Value::Null };
    json!({
        "mode": if topology.soft { "soft" } else { "hard" },
        "highestTierAllowed": topology.highest_tier_allowed,
        "highestTierName": topology.highest_tier_name,
    })
}

fn pod_group(cluster: &Cluster, job: &Job, group: &PodGroup) -> Value {
    let status = &group.status;
    let conditions = status.conditions.iter().map(|condition| {
        json!({
            "type": condition.kind,
            "status": condition.status,
            "transitionID": condition.transition_id,
            "lastTransitionTime": condition.last_transition_time,
            "reason": condition.reason,
            "message": condition.message,
        })
    });
    let minimum = group.min_resources.as_ref();
    json!({
        "metadata": {
            "name": job.key.name,
            "namespace": job.key.namespace,
            "uid": group.uid,
            "resourceVersion": group.resource_version,
            "creationTimestamp": format_time(group.created_micros),
        },
        "spec": {
            "minMember": job.min_available,
            "minTaskMember": job.task_min_available,
            "queue": cluster.queues[job.queue].name,
            "priorityClassName": group.priority_class_name,
            "minResources": minimum.map(|minimum| quantities(cluster, &minimum.amounts)),
            "networkTopology": topology(group.network_topology.as_deref()),
        },
        "status": {
            "phase": status.phase.as_str(),
            "conditions": conditions.collect::<Vec<_>>(),
            "running": status.running,
            "succeeded": status.succeeded,
            "failed": status.failed,
        },
        "Version": VERSION,
    })
}

/// Returns the minimum and the maximum of a disruption budget as texts.
fn budget(group: Option<&PodGroup>) -> (String, String) {
    let text = |portion: &Portion| match portion {
        Portion::Number(number) => number.to_string(),
        Portion::Percent(percent) => format!("{percent}%"),
    };
    match group.and_then(|group| group.budget.as_deref()) {
        Some(JobBudget::MinAvailable(portion)) => (text(portion), String::new()),
        Some(JobBudget::MaxUnavailable(portion)) => (String::new(), text(portion)),
        Some(JobBudget::Unreadable(_)) | None => Default::default(),
    }
}

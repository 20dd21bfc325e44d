//! Nodes, jobs and tasks as the dump shows them: names of fields as in Volcano. Specification:
//! core.md 1.7, 3.2, 3.7, 3.8.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use vc_engine::AccountUse;
use vc_model::{
    Cluster, Gates, HyperNodeTree, Job, JobBudget, JobId, Labels, Node, NodeId, NodeLoad, PodGroup,
    Portion, TaskId,
};
use vc_resource::{Dim, Resource};
use vc_wire::format_time;

/// Ready: the Node object is known, which it is in a snapshot.
const READY: u32 = 1;

/// Queue and name of an account, and what it has used (docs/spec/fair-share.md 13).
pub(super) fn usage(usage: &AccountUse) -> (String, Value) {
    let record = json!({
        "Charged": usage.charged,
        "Running": usage.running,
        "UsedHours": usage.used_hours,
        "ProjectedHours": usage.projected_hours,
        "Weight": usage.weight,
        "Level": usage.level,
        "WaitingJobs": usage.n_waiting_jobs,
    });
    (format!("{}/{}", usage.queue, usage.account), record)
}

/// Name and record of a node.
pub(super) fn node(cluster: &Cluster, id: NodeId) -> (String, Value) {
    let node = &cluster.nodes[id];
    let amounts = |of: &Resource| resource(cluster, of);
    let tasks = node.tasks.iter().map(|&id| (cluster.tasks[id].key.to_string(), task(cluster, id)));
    let record = json!({
        "Name": &*node.name,
        "Node": object_of(cluster, node),
        "State": {"Phase": READY, "Reason": ""},
        "Releasing": amounts(&node.releasing),
        "Pipelined": amounts(&node.pipelined),
        "Idle": amounts(&node.idle),
        "Used": amounts(&node.used),
        "Allocatable": amounts(&node.allocatable),
        "Capacity": amounts(&node.capacity),
        "Tasks": tasks.collect::<Map<_, _>>(),
        "Load": node.load.map(load),
        "RevocableZone": &*node.revocable_zone,
        "OversubscriptionNode": flag(&node.labels, "volcano.sh/oversubscription"),
        "ImageStates": images(cluster, node),
        // What follows is not kept, because nothing reads it.
        "OfflineJobEvicting": false,
        "OversubscriptionResource": amounts(&Resource::default()),
    });
    (node.name.to_string(), record)
}

/// What monitoring said last.
fn load(load: NodeLoad) -> Value {
    json!({
        "CPUPercent": load.cpu_percent(),
        "MemoryPercent": load.memory_percent(),
        "Time": format_time(load.read_micros),
    })
}

/// The v1.Node, as far as it is kept.
fn object_of(cluster: &Cluster, node: &Node) -> Value {
    let quantities = |of: &Resource| -> BTreeMap<String, String> {
        of.to_quantities(&cluster.dims).into_iter().collect()
    };
    let taints = node.taints.iter().map(|taint| {
        json!({"key": &*taint.key, "value": &*taint.value, "effect": format!("{:?}", taint.effect)})
    });
    json!({
        "metadata": {"name": &*node.name, "labels": labels(&node.labels)},
        "spec": {"unschedulable": node.unschedulable, "taints": taints.collect::<Vec<_>>()},
        "status": {
            "allocatable": quantities(&node.allocatable),
            "capacity": quantities(&node.capacity),
        },
    })
}

fn images(cluster: &Cluster, node: &Node) -> Map<String, Value> {
    let record = |&id| {
        let image = &cluster.images[id];
        (image.name.to_string(), json!({"Size": image.size_bytes, "NumNodes": image.n_nodes}))
    };
    node.images.iter().map(record).collect()
}

fn labels(labels: &Labels) -> BTreeMap<&str, &str> {
    labels.iter().map(|(key, value)| (&**key, &**value)).collect()
}

fn flag(labels: &Labels, key: &str) -> bool {
    let on = ["1", "t", "T", "TRUE", "true", "True"];
    labels.get(key).is_some_and(|value| on.contains(&&**value))
}

/// Id and record of a job.
pub(super) fn job(cluster: &Cluster, tree: &HyperNodeTree, id: JobId) -> (String, Value) {
    let job = &cluster.jobs[id];
    let amounts = |of: &Resource| resource(cluster, of);
    let tasks = job.tasks.iter().map(|&id| (cluster.tasks[id].uid.to_string(), task(cluster, id)));
    let group = job.pod_group.as_ref();
    let record = json!({
        "UID": job.key.to_string(),
        "PgUID": group.map(|group| &*group.uid),
        "Name": &*job.key.name,
        "Namespace": &*job.key.namespace,
        "Queue": &*cluster.queues[job.queue].name,
        "Priority": job.priority,
        "MinAvailable": job.min_available,
        "WaitingTime": group.and_then(|group| group.sla_waiting_micros).map(|micros| micros * 1000),
        "JobFitErrors": "",
        "Tasks": tasks.collect::<Map<_, _>>(),
        "TaskMinAvailable": job.task_min_available.iter().map(|(role, &min)| (&**role, min))
            .collect::<BTreeMap<_, _>>(),
        "TaskMinAvailableTotal": job.task_min_available_total,
        "Allocated": amounts(&job.allocated),
        "TotalRequest": amounts(&job.total_request()),
        "CreationTimestamp": group.map(|group| format_time(group.created_micros)),
        "PodGroup": group.map(|group| pod_group(cluster, job, group)),
        "Preemptable": group.is_some_and(|group| group.preemptable),
        "RevocableZone": "",
        "Budget": group.and_then(|group| group.budget.as_deref()).map(budget),
        "AllocatedHyperNode": allocated_hyper_node(cluster, tree, job),
        "SubJobs": sub_jobs(cluster, job),
        "MinSubJobs": min_sub_jobs(job),
    });
    (job.key.to_string(), record)
}

/// Name of the smallest HyperNode with all nodes of the job, if it has a network topology.
fn allocated_hyper_node(cluster: &Cluster, tree: &HyperNodeTree, job: &Job) -> String {
    let has_topology = job.pod_group.as_ref().is_some_and(|group| {
        let of_policy = group.policies.iter().any(|policy| policy.network_topology.is_some());
        of_policy || group.network_topology.is_some()
    });
    let allocated = job.tasks.iter().map(|&task| &cluster.tasks[task]);
    let nodes = allocated.filter(|task| task.status.is_allocated()).filter_map(|task| task.node);
    let around = tree.around(nodes.filter(|_| has_topology));
    around.map_or_else(String::new, |id| tree[id].name.to_string())
}

/// As the annotations say it.
fn budget(budget: &JobBudget) -> Value {
    let portion = |portion: &Portion| match portion {
        Portion::Number(number) => number.to_string(),
        Portion::Percent(percent) => format!("{percent}%"),
    };
    match budget {
        JobBudget::MinAvailable(least) => json!({"MinAvailable": portion(least)}),
        JobBudget::MaxUnavailable(most) => json!({"MaxUnavailable": portion(most)}),
        JobBudget::Unreadable(text) => json!({"Unreadable": &**text}),
    }
}

fn pod_group(cluster: &Cluster, job: &Job, group: &PodGroup) -> Value {
    let status = &group.status;
    let conditions = status.conditions.iter().map(|condition| {
        json!({
            "type": &*condition.kind,
            "status": &*condition.status,
            "transitionID": &*condition.transition_id,
            "lastTransitionTime": &*condition.last_transition_time,
            "reason": &*condition.reason,
            "message": &*condition.message,
        })
    });
    let minimum = group.min_resources.as_ref();
    json!({
        "metadata": {
            "name": &*job.key.name,
            "namespace": &*job.key.namespace,
            "uid": &*group.uid,
            "resourceVersion": &*group.resource_version,
        },
        "spec": {
            "minMember": job.min_available,
            "queue": &*cluster.queues[job.queue].name,
            "priorityClassName": &*group.priority_class_name,
            "minResources": minimum.map(|minimum| {
                minimum.amounts.to_quantities(&cluster.dims).into_iter().collect::<BTreeMap<_, _>>()
            }),
        },
        "status": {
            "phase": status.phase.as_str(),
            "conditions": conditions.collect::<Vec<_>>(),
            "running": status.running,
            "succeeded": status.succeeded,
            "failed": status.failed,
        },
    })
}

fn sub_jobs(cluster: &Cluster, job: &Job) -> Map<String, Value> {
    let record = |sub: &vc_model::SubJob| {
        let tasks = sub.tasks.iter().map(|&task| &*cluster.tasks[task].uid);
        let record = json!({"UID": &*sub.id, "MinAvailable": sub.min_available,
            "MatchIndex": sub.match_index, "Tasks": super::set(tasks)});
        (sub.id.to_string(), record)
    };
    job.existing_sub_jobs().map(record).collect()
}

fn min_sub_jobs(job: &Job) -> Map<String, Value> {
    let minimum = |policy: &vc_model::SubGroupPolicy| {
        (format!("{}/{}", job.key, policy.name), json!(policy.min_sub_groups))
    };
    job.policies().iter().map(minimum).collect()
}

fn task(cluster: &Cluster, id: TaskId) -> Value {
    let task = &cluster.tasks[id];
    let request = resource(cluster, cluster.request(id));
    json!({
        "UID": &*task.uid,
        "Job": task.job.map(|job| cluster.jobs[job].key.to_string()),
        "Name": &*task.key.name,
        "Namespace": &*task.key.namespace,
        "TaskRole": &*task.role,
        "Resreq": request,
        "InitResreq": request,
        "NodeName": task.node.map(|node| &*cluster.nodes[node].name),
        "Status": task.status.number(),
        "Priority": task.priority,
        "Preemptable": task.preemptable,
        "BestEffort": task.best_effort,
        "RevocableZone": if cluster.class(id).any_revocable_zone { "*" } else { "" },
        "SchGated": task.gates != Gates::None,
    })
}

fn resource(cluster: &Cluster, of: &Resource) -> Value {
    let scalars = of.scalars().filter(|&dim| dim != Dim::PODS);
    let scalars = scalars.map(|dim| (cluster.dims.name(dim).to_owned(), json!(of.get(dim))));
    json!({
        "MilliCPU": of.get(Dim::CPU),
        "Memory": of.get(Dim::MEMORY),
        "ScalarResources": scalars.collect::<Map<_, _>>(),
        "MaxTaskNum": of.get(Dim::PODS),
    })
}

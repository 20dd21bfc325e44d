//! JSON of the objects in requests to the service of the plugin `extender`. Names are those of
//! Volcano's types. Objects of Kubernetes inside have the fields that the tables keep.
//! Specification: plugins-jobs-queues.md 15.3.

mod answer;
mod job;
mod object;

use serde_json::{Map, Value, json};
use vc_model::{Cluster, Gates, Image, NodeId, QueueId, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

pub use answer::{ExtenderAnswerFields, ExtenderFields, UnreadableAnswer, read_extender_answer};
pub use job::{extender_job, extender_session};

/// State of a node that can take pods.
const READY: u32 = 1;

/// Returns a task. `placed` is the status and the node that it is about to get, in place of those
/// that it has.
pub fn extender_task(
    cluster: &Cluster,
    task: TaskId,
    placed: Option<(TaskStatus, NodeId)>,
) -> Value {
    let row = &cluster.tasks[task];
    let class = cluster.class(task);
    let (status, node) =
        placed.map_or((row.status, row.node), |(status, node)| (status, Some(node)));
    let node = node.map_or("", |node| &*cluster.nodes[node].name);
    let request = resource(cluster, &class.request);
    let annotations = object::annotations(row, class);
    json!({
        "UID": row.uid,
        "Job": row.job.map(|job| cluster.jobs[job].key.to_string()).unwrap_or_default(),
        "Name": row.key.name,
        "Namespace": row.key.namespace,
        "TaskRole": row.role,
        "Resreq": request,
        "InitResreq": request,
        "DRAResreq": null,
        "ResourceClaimKeys": null,
        "ResourceClaimDRAResreq": null,
        "NodeName": node,
        "EvictionOccurred": row.hidden || row.evicting,
        "JobAllocatedHyperNode": "",
        "Status": status.number(),
        "LastTransaction": null,
        "Priority": row.priority,
        "VolumeReady": false,
        "Preemptable": row.preemptable,
        "BestEffort": row.best_effort,
        "HasRestartableInitContainer": false,
        "SchGated": row.gates != Gates::None,
        "RevocableZone": if class.any_revocable_zone { "*" } else { "" },
        "NumaInfo": {"Policy": "", "ResMap": {}},
        "Pod": object::pod(cluster, row, class, node, &annotations),
        "PodAnnotations": annotations,
        "CustomBindErrHandlerSucceeded": false,
    })
}

/// Returns a node with its tasks, by `namespace/name`.
pub fn extender_node(cluster: &Cluster, node: NodeId) -> Value {
    let row = &cluster.nodes[node];
    let of = |amounts: &Resource| resource(cluster, amounts);
    let tasks: Map<String, Value> = row
        .tasks
        .iter()
        .map(|&task| (cluster.tasks[task].key.to_string(), extender_task(cluster, task, None)))
        .collect();
    json!({
        "Name": row.name,
        "Node": object::node(cluster, row),
        "State": {"Phase": READY, "Reason": ""},
        "Releasing": of(&row.releasing),
        "Pipelined": of(&row.pipelined),
        "Idle": of(&row.idle),
        "Used": of(&row.used),
        "Allocatable": of(&row.allocatable),
        "Capacity": of(&row.capacity),
        "ResourceUsage": {"MetricsTime": null, "CPUUsageAvg": {}, "MEMUsageAvg": {}},
        "Tasks": tasks,
        "NumaInfo": null,
        "UnassignedNumaPods": {},
        "NumaSchedulerInfo": null,
        "RevocableZone": row.revocable_zone,
        "Others": {},
        "OversubscriptionNode": false,
        "OfflineJobEvicting": false,
        "OversubscriptionResource": of(&Resource::default()),
        "ImageStates": image_states(cluster, node),
        "Generation": 0,
        "BindGeneration": 0,
    })
}

/// Returns a queue.
pub fn extender_queue(cluster: &Cluster, queue: QueueId) -> Value {
    let row = &cluster.queues[queue];
    let annotation = |name: &str| row.annotations.get(name).map_or("", |text| &**text);
    json!({
        "UID": row.name,
        "Name": row.name,
        "Weight": row.weight,
        "Weights": annotation("volcano.sh/hierarchy-weights"),
        "Hierarchy": annotation("volcano.sh/hierarchy"),
        "Queue": object::queue(cluster, row),
    })
}

/// Returns an amount in the units of Volcano: millicores, bytes, and thousandths of all others.
fn resource(cluster: &Cluster, amounts: &Resource) -> Value {
    let scalar = |dim: Dim| (cluster.dims.name(dim).to_owned(), json!(amounts.to_f64(dim)));
    let scalars: Map<String, Value> = amounts.scalars().map(scalar).collect();
    json!({
        "MilliCPU": amounts.to_f64(Dim::CPU),
        "Memory": amounts.to_f64(Dim::MEMORY),
        "ScalarResources": if scalars.is_empty() { Value::Null } else { scalars.into() },
        "MaxTaskNum": amounts.get(Dim::PODS),
    })
}

fn image_states(cluster: &Cluster, node: NodeId) -> Value {
    let images = cluster.nodes[node].images.iter().map(|&image| &cluster.images[image]);
    let state = |image: &Image| {
        let state = json!({"Size": image.size_bytes, "NumNodes": image.n_nodes});
        (image.name.to_string(), state)
    };
    Value::Object(images.map(state).collect())
}

//! Pods: one container has the request of the whole pod.

use serde_json::{Map, Value, json};
use vc_answers::time_text;
use vc_model::{
    Class, Cluster, HostPort, OtherScheduler, PodCondition, Protocol, QUEUE_GATE, Task, TaskId,
    TaskStatus,
};

use super::terms::{affinity, spread, tolerations};
use super::{listed, named, nonempty, object, present_fields, set_identity};
use crate::workload::SCHEDULER;

const GROUP: &str = "scheduling.k8s.io/group-name";
const QUEUE: &str = "scheduling.volcano.sh/queue-name";
const COOLDOWN: &str = "volcano.sh/cooldown-time";

pub(super) fn pod(cluster: &Cluster, task: TaskId) -> Value {
    let row = &cluster.tasks[task];
    let class = &cluster.classes[row.class];
    let mut pod = object("v1", "Pod", (&row.key.namespace, &row.key.name));
    set_identity(&mut pod, &row.uid, row.created_micros);
    let metadata = &mut pod["metadata"];
    if let Some(labels) = named(&class.labels) {
        metadata["labels"] = labels;
    }
    let annotations = annotations(cluster, row);
    if !annotations.is_empty() {
        metadata["annotations"] = annotations.into();
    }
    if row.deleting || row.status == TaskStatus::Releasing {
        // Decisions do not depend on the time, which is not always known.
        let deletion = row.stated_run.as_ref().and_then(|stated| stated.deletion_micros);
        metadata["deletionTimestamp"] = time_text(deletion.unwrap_or(row.created_micros)).into();
    }
    pod["spec"] = spec(cluster, task);
    pod["status"] = status(row);
    pod
}

fn annotations(cluster: &Cluster, row: &Task) -> Map<String, Value> {
    let mut texts = Map::new();
    let mut add = |name: &str, text: &str| {
        texts.insert(name.to_owned(), text.into());
    };
    match row.job.map(|job| &cluster.jobs[job]) {
        Some(job) if job.bare => add(QUEUE, &cluster.queues[job.queue].name),
        Some(job) => add(GROUP, &job.key.name),
        None => {}
    }
    if let (Some(until), Some(since)) = (row.cooling_until_micros, row.scheduled_micros) {
        add(COOLDOWN, &format!("{}s", (until - since) / 1_000_000));
    }
    if cluster.classes[row.class].any_revocable_zone {
        add("volcano.sh/revocable-zone", "*");
    }
    if !row.role.is_empty() {
        add("volcano.sh/task-spec", &row.role);
    }
    if row.marked_preemptable || !row.preemptable {
        add("volcano.sh/preemptable", if row.preemptable { "true" } else { "false" });
    }
    if row.manages_queue_gate {
        add(QUEUE_GATE, "true");
    }
    if spec_priority(row) != row.priority {
        add("volcano.sh/task-priority", &row.priority.to_string());
    }
    let stated = row.stated_run.as_deref().copied().unwrap_or_default();
    if let Some(micros) = stated.runtime_micros.or(stated.max_exec_micros) {
        add(vc_model::RUNTIME, &format!("{}s", micros / 1_000_000));
    }
    texts
}

/// Returns the priority that the scheduler reads of `spec.priority`, which may be absent.
fn spec_priority(row: &Task) -> i32 {
    if has_no_priority(row) { 1 } else { row.pod_priority }
}

/// True if `spec.priority` is absent, as far as that can be told: it then counts as 1 and as 0.
fn has_no_priority(row: &Task) -> bool {
    row.pod_priority == 0 && row.priority == 1
}

fn spec(cluster: &Cluster, task: TaskId) -> Value {
    let row = &cluster.tasks[task];
    let class = &cluster.classes[row.class];
    let gates = row.gate_names.as_ref().map(|names| {
        names.split(", ").map(|name| json!({ "name": name })).collect::<Vec<Value>>().into()
    });
    let deadline = row.stated_run.as_ref().and_then(|stated| stated.deadline_micros);
    present_fields([
        ("schedulerName", Some(scheduler_name(cluster, task).into())),
        ("nodeName", row.node.map(|node| (&*cluster.nodes[node].name).into())),
        ("priority", (!has_no_priority(row)).then(|| row.pod_priority.into())),
        ("priorityClassName", nonempty(&row.priority_class_name)),
        ("preemptionPolicy", row.never_preempts.then(|| "Never".into())),
        ("activeDeadlineSeconds", deadline.map(|micros| (micros / 1_000_000).into())),
        ("containers", Some(json!([container(cluster, class)]))),
        ("nodeSelector", class.node_selector.as_ref().map(|it| named(it).unwrap_or(json!({})))),
        ("affinity", affinity(&class.node_affinity, class.pod_affinity.as_deref())),
        ("tolerations", tolerations(&class.tolerations)),
        ("topologySpreadConstraints", spread(&class.spread)),
        ("schedulingGates", gates),
    ])
}

/// Returns the name of the scheduler of a pod: ours, if the pod is in a job and ours. The names of
/// other schedulers are not written, since a scenario without names keeps names of schedulers.
fn scheduler_name(cluster: &Cluster, task: TaskId) -> &str {
    let is_other = match cluster.other_scheduler(task) {
        Some(OtherScheduler::ByName(_) | OtherScheduler::Unnamed) => true,
        Some(OtherScheduler::ByDivision(_)) | None => false,
    };
    match cluster.tasks[task].job {
        Some(_) if !is_other => {
            cluster.settings.scheduler_names.first().map_or(SCHEDULER, |name| &**name)
        }
        _ => "default-scheduler",
    }
}

fn container(cluster: &Cluster, class: &Class) -> Value {
    let request = class.request.to_quantities(&cluster.dims).into_iter();
    // Every pod takes one of these, which nobody asks for.
    let request = request.filter(|(name, _)| name != "pods");
    let requests: Map<String, Value> =
        request.filter(|(_, text)| text != "0").map(|(name, text)| (name, text.into())).collect();
    let limits = [("cpu", class.limits.cpu_milli, "m"), ("memory", class.limits.memory_bytes, "")];
    let limits = limits.into_iter().filter(|(_, amount, _)| 0 < *amount);
    let limits: Map<String, Value> = limits
        .map(|(name, amount, unit)| (name.to_owned(), format!("{amount}{unit}").into()))
        .collect();
    let resources = present_fields([
        ("requests", (!requests.is_empty()).then(|| requests.into())),
        ("limits", (!limits.is_empty()).then(|| limits.into())),
    ]);
    present_fields([
        ("name", Some("main".into())),
        ("image", class.images.first().map(|image| (&**image).into())),
        ("resources", (resources != json!({})).then_some(resources)),
        ("ports", listed(&class.host_ports, host_port)),
    ])
}

fn host_port(it: &HostPort) -> Value {
    let protocol = match it.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    };
    present_fields([
        ("containerPort", Some(it.port.into())),
        ("hostPort", Some(it.port.into())),
        ("protocol", Some(protocol.into())),
        ("hostIP", nonempty(&it.ip)),
    ])
}

fn status(row: &Task) -> Value {
    let phase = match row.status {
        TaskStatus::Running => "Running",
        // What terminates ran, or was bound: its phase makes no difference then.
        TaskStatus::Releasing => "Running",
        TaskStatus::Succeeded => "Succeeded",
        TaskStatus::Failed => "Failed",
        TaskStatus::Unknown => "Unknown",
        _ => "Pending",
    };
    let condition = row.condition.as_deref().cloned().or_else(|| {
        let (reason, message) = Default::default();
        row.scheduled_micros.map(|_| PodCondition { status: "True".into(), reason, message })
    });
    let condition = condition.map(|it| {
        let since = row.scheduled_micros.filter(|_| &*it.status == "True");
        json!([present_fields([
            ("type", Some("PodScheduled".into())),
            ("status", Some((&*it.status).into())),
            ("reason", nonempty(&it.reason)),
            ("message", nonempty(&it.message)),
            ("lastTransitionTime", since.map(|at| time_text(at).into())),
        ])])
    });
    present_fields([
        ("phase", Some(phase.into())),
        ("startTime", row.started_micros.map(|at| time_text(at).into())),
        ("nominatedNodeName", row.nominated_node.as_ref().map(|name| (&**name).into())),
        ("conditions", condition),
    ])
}

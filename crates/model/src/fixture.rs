//! A cluster as text, for tests of every crate: one line per object, an indented line belongs to
//! the job above. Built from records and events as in production. Malformed text panics with the
//! line.
//!
//! ```text
//! node n1 cpu=4 memory=8Gi gpu=8 zone=a taint=x:NoSchedule
//! queue q1 weight=2 cap.cpu=4 deserved.cpu=2 guarantee.cpu=1 parent=root priority=5 state=Closed
//! priorityclass high value=1000 default
//! job j1 queue=q1 min=2 role.ps=1 priority=10 minres.cpu=4 inqueue sla=5m created=60
//!   policy p keys=idx size=2 min=2 match.kind=x
//!   task a cpu=2 @n1 running role=ps priority=7
//!   task b cpu=2 x3 label.idx=0     # three pending tasks b-0, b-1, b-2
//! pod kube-system/dns cpu=1 @n1 running
//! pod old cpu=1 @n1 releasing=60  # its grace period ends at 60; without a time it is not known
//! budget b1 app=x allowed=1 healthy=3 disrupted=p1
//! quota q1 hard.cpu=2 used.requests.cpu=1
//! load n1 cpu=62.5 memory=40 at=5 interval=60   # what monitoring said of node n1
//! ```
//!
//! Lines of volumes and their claims are described in `volumes`, those of ResourceClaims in
//! `devices`, those of HyperNodes in `hyper_nodes`, those of NUMA topologies in `numa`, words about
//! node groups in `node_groups`.
//!
//! Pods of job `j1` are called `j1-a`, `j1-b-0`; [`task`] finds them as `j1/a`, `j1/b-0`. Without a
//! namespace it is `default`; the queue `default` exists if a job is in it. `gpu` is
//! `nvidia.com/gpu`; other keys of a node are labels; times are in seconds after [`START_MICROS`].

mod devices;
mod hyper_nodes;
pub mod node_groups;
mod numa;
pub mod parts;
mod pod_groups;
mod volumes;

use std::sync::Arc;

use vc_resource::Quantity;

use crate::budget::{BudgetRecord, Covers};
use crate::cluster::{Cluster, Settings};
use crate::event::ClusterEvent;
use crate::ids::{JobId, NodeId, QueueId, TaskId};
use crate::node_load::NodeLoad;
use crate::quota::QuotaRecord;
use crate::record::{
    ContainerRecord, NodeRecord, ObjectKey, PodGroupPhase, PodGroupRecord, PodPhase, PodRecord,
    PriorityClassRecord, QueueRecord, QueueState, ResourceList,
};
use crate::selector::{LabelSelector, Labels, Taint, TaintEffect};
use crate::volume::{Disk, PodClaim, PodVolume};

/// 2026-01-01T00:00:00Z in microseconds since 1970: the default creation time of all objects.
pub const START_MICROS: i64 = 1_767_225_600_000_000;

const NAMESPACE: &str = "default";

/// Returns the cluster that the text describes.
pub fn cluster(text: &str) -> Cluster {
    let mut cluster = Cluster::new(Settings::default());
    apply(&mut cluster, text);
    cluster
}

/// Applies the objects of the text to a cluster.
pub fn apply(cluster: &mut Cluster, text: &str) {
    events_of(text).into_iter().for_each(|event| cluster.apply(event));
    let uses_default = |id| cluster.jobs[id].queue == queue(cluster, NAMESPACE);
    if cluster.queue(NAMESPACE).is_some_and(|id| !cluster.queues[id].present)
        && cluster.jobs_by_key().any(uses_default)
    {
        cluster.apply(ClusterEvent::QueueApplied(Box::new(new_queue(NAMESPACE))));
    }
}

/// Returns the events that bring the objects of the text into a cluster. A queue `default` is
/// included only if the text has it.
pub fn events_of(text: &str) -> Vec<ClusterEvent> {
    let lines: Vec<Line<'_>> = text.lines().filter_map(Line::parse).collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(head) = lines.get(at) {
        let n_members = lines[at + 1..].iter().take_while(|line| line.indented).count();
        found.extend(events(head, &lines[at + 1..=at + n_members]));
        at += 1 + n_members;
    }
    found
}

/// Returns the events of lines about volumes and claims.
pub fn storage(text: &str) -> Vec<ClusterEvent> {
    let lines: Vec<Line<'_>> = text.lines().filter_map(Line::parse).collect();
    lines.iter().flat_map(|line| events(line, &[])).collect()
}

/// Returns the node with this name. Panics if there is none.
pub fn node(cluster: &Cluster, name: &str) -> NodeId {
    cluster.node(name).unwrap_or_else(|| panic!("no node: {name}"))
}

/// Returns the queue with this name. Panics if there is none.
pub fn queue(cluster: &Cluster, name: &str) -> QueueId {
    cluster.queue(name).unwrap_or_else(|| panic!("no queue: {name}"))
}

/// Returns the job `j1`, or `namespace/j1`. Panics if there is none.
pub fn job(cluster: &Cluster, name: &str) -> JobId {
    cluster.job(&key(name)).unwrap_or_else(|| panic!("no job: {name}"))
}

/// Returns the task `a` of job `j1` for `j1/a` or `namespace/j1/a`. A pod without a job is `pod` or
/// `namespace//pod`.
pub fn task(cluster: &Cluster, path: &str) -> TaskId {
    let parts: Vec<&str> = path.split('/').collect();
    let key = match parts[..] {
        [pod] => key(pod),
        [job, task] => key(&format!("{job}-{task}")),
        [namespace, "", pod] => ObjectKey::new(namespace, pod),
        [namespace, job, task] => ObjectKey::new(namespace, &format!("{job}-{task}")),
        _ => panic!("not a task: {path}"),
    };
    cluster.task_named(&key).unwrap_or_else(|| panic!("no task: {path}"))
}

struct Line<'t> {
    text: &'t str,
    indented: bool,
    kind: &'t str,
    name: &'t str,
    words: Vec<&'t str>,
}

impl<'t> Line<'t> {
    /// Returns the parsed line. Returns `None` if the line is empty or only a comment.
    fn parse(text: &'t str) -> Option<Self> {
        let content = text.split('#').next().unwrap_or_default();
        let mut words = content.split_whitespace();
        let kind = words.next()?;
        let name = words.next().unwrap_or_else(|| panic!("no name: {text}"));
        // The text of a test is indented as a whole, so the kind of line tells whether it belongs
        // to a job.
        let indented = matches!(kind, "task" | "policy");
        Some(Line { text, indented, kind, name, words: words.collect() })
    }

    fn unknown(&self, word: &str) -> ! {
        panic!("unknown word {word:?}: {}", self.text)
    }

    fn number<T: std::str::FromStr>(&self, text: &str) -> T {
        text.parse().unwrap_or_else(|_| panic!("not a number {text:?}: {}", self.text))
    }

    fn micros(&self, seconds: &str) -> i64 {
        START_MICROS + self.number::<i64>(seconds) * 1_000_000
    }
}

fn events(head: &Line<'_>, members: &[Line<'_>]) -> Vec<ClusterEvent> {
    match head.kind {
        "node" => vec![ClusterEvent::NodeApplied(Box::new(node_record(head)))],
        "queue" => vec![ClusterEvent::QueueApplied(Box::new(queue_record(head)))],
        "priorityclass" => vec![ClusterEvent::PriorityClassApplied(priority_class(head))],
        "pod" => pods(head, None),
        "job" => job_events(head, members),
        "budget" => vec![ClusterEvent::BudgetApplied(Box::new(budget(head)))],
        "quota" => vec![ClusterEvent::QuotaApplied(Box::new(quota(head)))],
        "load" => vec![ClusterEvent::NodeLoadsRead(vec![(head.name.into(), load(head))])],
        "hypernode" => vec![hyper_nodes::event(head)],
        "claim" => vec![devices::event(head)],
        "numa" => vec![numa::event(head)],
        kind => volumes::event(head).map(|event| vec![event]).unwrap_or_else(|| head.unknown(kind)),
    }
}

fn key(name: &str) -> ObjectKey {
    let (namespace, name) = name.split_once('/').unwrap_or((NAMESPACE, name));
    ObjectKey::new(namespace, name)
}

/// Returns a word as key and value; a flag has an empty value.
fn split(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, ""))
}

/// Adds an amount to the list. Returns false if the key is not the name of a resource.
fn amount(list: &mut ResourceList, name: &str, value: &str) -> bool {
    let name = if name == "gpu" { "nvidia.com/gpu" } else { name };
    let is_resource =
        matches!(name, "cpu" | "memory" | "pods" | "ephemeral-storage") || name.contains('/');
    if is_resource {
        push(list, name, value);
    }
    is_resource
}

fn push(list: &mut ResourceList, name: &str, value: &str) {
    let quantity: Quantity =
        value.parse().unwrap_or_else(|error| panic!("{name}={value}: {error}"));
    list.push((name.into(), quantity));
}

fn node_record(line: &Line<'_>) -> NodeRecord {
    let mut node = NodeRecord { name: line.name.into(), ..NodeRecord::default() };
    for word in &line.words {
        let (name, value) = split(word);
        match (name.split_once('.'), name) {
            (Some(("label", name)), _) => insert(&mut node.labels, name, value),
            (Some(("annotation", name)), _) => insert(&mut node.annotations, name, value),
            (_, "unschedulable") => node.unschedulable = true,
            (_, "group") => insert(&mut node.labels, node_groups::LABEL, value),
            (_, "taint") => node.taints.push(taint(line, value)),
            _ if amount(&mut node.allocatable, name, value) => {}
            _ if word.contains('=') => insert(&mut node.labels, name, value),
            _ => line.unknown(word),
        }
    }
    if !node.allocatable.iter().any(|(name, _)| &**name == "pods") {
        amount(&mut node.allocatable, "pods", "110");
    }
    node.capacity = node.allocatable.clone();
    node
}

fn insert(labels: &mut Labels, name: &str, value: &str) {
    labels.insert(name.into(), value.into());
}

/// Returns the taint of a text `key:Effect` or `key=value:Effect`.
fn taint(line: &Line<'_>, text: &str) -> Taint {
    let (name, effect) = text.split_once(':').unwrap_or_else(|| line.unknown(text));
    let (key, value) = split(name);
    let effect = match effect {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        _ => line.unknown(text),
    };
    Taint { key: key.into(), value: value.into(), effect }
}

fn new_queue(name: &str) -> QueueRecord {
    QueueRecord {
        name: name.into(),
        created_micros: START_MICROS,
        weight: 1,
        reclaimable: true,
        ..QueueRecord::default()
    }
}

fn queue_record(line: &Line<'_>) -> QueueRecord {
    let mut queue = new_queue(line.name);
    for word in &line.words {
        let (name, value) = split(word);
        let known = match (name.split_once('.'), name) {
            (Some(("cap", name)), _) => amount(&mut queue.capability, name, value),
            (Some(("deserved", name)), _) => amount(&mut queue.deserved, name, value),
            (Some(("guarantee", name)), _) => amount(&mut queue.guarantee, name, value),
            (Some(("annotation", name)), _) => {
                insert(&mut queue.annotations, name, value);
                true
            }
            _ => {
                node_groups::enter_queue_word(&mut queue, name, value)
                    || queue_field(line, &mut queue, name, value)
            }
        };
        if !known {
            line.unknown(word);
        }
    }
    queue
}

fn queue_field(line: &Line<'_>, queue: &mut QueueRecord, name: &str, value: &str) -> bool {
    match name {
        "weight" => queue.weight = line.number(value),
        "priority" => queue.priority = line.number(value),
        "created" => queue.created_micros = line.micros(value),
        "parent" => queue.parent = value.into(),
        "fifo" => queue.fifo = true,
        "reclaimable" => queue.reclaimable = value != "false",
        "hierarchy" => insert(&mut queue.annotations, "volcano.sh/hierarchy", value),
        "weights" => insert(&mut queue.annotations, "volcano.sh/hierarchy-weights", value),
        "state" => {
            queue.state = match value {
                "Open" => QueueState::Open,
                "Closed" => QueueState::Closed,
                "Closing" => QueueState::Closing,
                _ => QueueState::Unknown,
            }
        }
        _ => return false,
    }
    true
}

fn priority_class(line: &Line<'_>) -> PriorityClassRecord {
    let mut class = PriorityClassRecord { name: line.name.into(), value: 0, global_default: false };
    for word in &line.words {
        match split(word) {
            ("value", value) => class.value = line.number(value),
            ("default", _) => class.global_default = true,
            _ => line.unknown(word),
        }
    }
    class
}

fn load(line: &Line<'_>) -> NodeLoad {
    let (mut percent, mut times) = ([0.0; 2], [START_MICROS, crate::LOAD_INTERVAL_MICROS]);
    for word in &line.words {
        match split(word) {
            ("cpu", value) => percent[0] = line.number(value),
            ("memory", value) => percent[1] = line.number(value),
            ("at", value) => times[0] = line.micros(value),
            ("interval", value) => times[1] = line.number::<i64>(value) * 1_000_000,
            _ => line.unknown(word),
        }
    }
    let [read_micros, interval_micros] = times;
    let load = NodeLoad::new(percent[0], percent[1], read_micros, interval_micros);
    load.unwrap_or_else(|| panic!("not a percentage: {}", line.text))
}

/// Returns the budget of a line. Words that are not fields of the status are labels of the
/// selector.
fn budget(line: &Line<'_>) -> BudgetRecord {
    let mut selector = LabelSelector::default();
    let mut budget = BudgetRecord { key: key(line.name), ..BudgetRecord::default() };
    for word in &line.words {
        match split(word) {
            ("allowed", value) => budget.allowed = line.number(value),
            ("healthy", value) => budget.healthy = line.number(value),
            ("disrupted", value) => budget.disrupted = value.split(',').map(Arc::from).collect(),
            ("unreadable", _) => budget.covers = Covers::Everybody,
            (name, value) => insert(&mut selector.match_labels, name, value),
        }
    }
    if !selector.match_labels.is_empty() {
        budget.covers = Covers::Matching(selector);
    }
    budget
}

fn quota(line: &Line<'_>) -> QuotaRecord {
    let mut quota = QuotaRecord { key: key(line.name), ..QuotaRecord::default() };
    for word in &line.words {
        let (name, value) = split(word);
        match name.split_once('.') {
            Some(("hard", name)) => push(&mut quota.hard, name, value),
            Some(("used", name)) => push(&mut quota.used, name, value),
            _ => line.unknown(word),
        }
    }
    quota
}

fn job_events(head: &Line<'_>, members: &[Line<'_>]) -> Vec<ClusterEvent> {
    let (mut group, priority) = pod_group(head);
    let policies = members.iter().filter(|line| line.kind == "policy");
    group.sub_group_policies = policies.map(pod_groups::policy).collect();
    let job = group.key.clone();
    let class = priority.map(|value| PriorityClassRecord {
        name: group.priority_class_name.clone(),
        value,
        global_default: false,
    });
    let mut events: Vec<ClusterEvent> =
        class.into_iter().map(ClusterEvent::PriorityClassApplied).collect();
    events.push(ClusterEvent::PodGroupApplied(Box::new(group)));
    for line in members.iter().filter(|line| line.kind == "task") {
        events.extend(pods(line, Some(&job)));
    }
    events
}

/// Returns the PodGroup, and the value of its PriorityClass if the line sets one.
fn pod_group(line: &Line<'_>) -> (PodGroupRecord, Option<i32>) {
    let mut group = pod_groups::new_pod_group(key(line.name));
    let mut priority = None;
    for word in &line.words {
        let (name, value) = split(word);
        match (name.split_once('.'), name) {
            (Some(("minres", name)), _) => {
                let list = group.min_resources.get_or_insert_default();
                if !amount(list, name, value) {
                    push(list, name, value);
                }
            }
            (Some(("role", role)), _) => {
                group.min_task_member.insert(role.into(), line.number(value));
            }
            (Some(("annotation", name)), _) => insert(&mut group.annotations, name, value),
            (_, "queue") => group.queue = value.into(),
            (_, "min") => group.min_member = line.number(value),
            (_, "class") => group.priority_class_name = value.into(),
            (_, "priority") => {
                group.priority_class_name = format!("priority-{value}").into();
                priority = Some(line.number(value));
            }
            (_, "owner") => {
                (group.owner_name, group.controller_uid) = (Some(value.into()), Some(value.into()));
            }
            (_, "kind") => group.controller_kind = Some(value.into()),
            (_, "created") => group.created_micros = line.micros(value),
            (_, "sla") => insert(&mut group.annotations, "volcano.sh/sla-waiting-time", value),
            (_, "pending") => group.status.phase = PodGroupPhase::Pending,
            (_, "inqueue") => group.status.phase = PodGroupPhase::Inqueue,
            (_, "running") => group.status.phase = PodGroupPhase::Running,
            (_, "preemptable") => insert(&mut group.annotations, "volcano.sh/preemptable", "true"),
            (_, "topology") => group.network_topology = Some(hyper_nodes::topology(line, value)),
            (_, "unknown") => group.status.phase = PodGroupPhase::Unknown,
            (_, "completed") => group.status.phase = PodGroupPhase::Completed,
            _ => line.unknown(word),
        }
    }
    (group, priority)
}

/// Returns the events of one pod, or with `xN` those of the pods `-0` to `-(N-1)`.
fn pods(line: &Line<'_>, job: Option<&ObjectKey>) -> Vec<ClusterEvent> {
    let is_count = |word: &&&str| word.starts_with('x') && word[1..].parse::<u32>().is_ok();
    let n_pods: Option<u32> = line.words.iter().find(is_count).map(|word| line.number(&word[1..]));
    let base = match job {
        Some(job) => ObjectKey::new(&job.namespace, &format!("{}-{}", job.name, line.name)),
        None => key(line.name),
    };
    let named = |index| ObjectKey::new(&base.namespace, &format!("{}-{index}", base.name));
    let keys: Vec<ObjectKey> = match n_pods {
        Some(n_pods) => (0..n_pods).map(named).collect(),
        None => vec![base],
    };
    let of_key = |key| ClusterEvent::PodApplied(Box::new(pod(line, key, job)));
    keys.into_iter().map(of_key).collect()
}

fn pod(line: &Line<'_>, key: ObjectKey, job: Option<&ObjectKey>) -> PodRecord {
    let mut pod = new_pod(key);
    if let Some(job) = job {
        pod.annotations.insert("scheduling.k8s.io/group-name".into(), job.name.clone());
    }
    let [mut requests, mut limits] = [(); 2].map(|()| ResourceList::new());
    let mut is_guaranteed = false;
    for word in &line.words {
        let (name, value) = split(word);
        match (name.split_once('.'), name) {
            (Some(("label", name)), _) => insert(&mut pod.labels, name, value),
            (Some(("annotation", name)), _) => insert(&mut pod.annotations, name, value),
            (Some(("limit", name)), _) if amount(&mut limits, name, value) => {}
            (Some(("selector", name)), _) => {
                insert(pod.node_selector.get_or_insert_default(), name, value);
            }
            (_, "guaranteed") => is_guaranteed = true,
            _ if amount(&mut requests, name, value) => {}
            _ if node_groups::enter_pod_word(&mut pod, name, value) => {}
            _ if !pod_field(line, &mut pod, name, value) => line.unknown(word),
            _ => {}
        }
    }
    let name = "main".into();
    pod.containers.push(ContainerRecord {
        name,
        requests,
        limits,
        is_guaranteed,
        ..ContainerRecord::default()
    });
    pod
}

fn pod_field(line: &Line<'_>, pod: &mut PodRecord, name: &str, value: &str) -> bool {
    match name {
        "role" => insert(&mut pod.annotations, "volcano.sh/task-spec", value),
        "preemptable" => insert(&mut pod.annotations, "volcano.sh/preemptable", "true"),
        "priority" => pod.priority = Some(line.number(value)),
        "class" => pod.priority_class_name = value.into(),
        "owner" => pod.owner_name = Some(value.into()),
        "created" => pod.created_micros = line.micros(value),
        "deadline" => pod.active_deadline_seconds = Some(line.number(value)),
        "started" => pod.started_micros = Some(line.micros(value)),
        "scheduled" => pod.scheduled_micros = Some(line.micros(value)),
        "gate" if value == "queue" => {
            pod.scheduling_gates.push("scheduling.volcano.sh/queue-allocation-gate".into());
        }
        "gate" => pod.scheduling_gates.push(value.into()),
        "pvc" => {
            pod.volumes.push(PodVolume::Claim(PodClaim { name: value.into(), ephemeral: false }))
        }
        "claim" => devices::add_to_pod(pod, value),
        "ephemeral" => {
            let name = format!("{}-{value}", pod.key.name).into();
            pod.volumes.push(PodVolume::Claim(PodClaim { name, ephemeral: true }));
        }
        "disk" => {
            let name = value.trim_end_matches(":ro").into();
            let read_only = value.ends_with(":ro");
            pod.volumes.push(PodVolume::Disk(Disk::GcePd { name, read_only }));
        }
        "pending" | "bound" => pod.phase = PodPhase::Pending,
        "running" => pod.phase = PodPhase::Running,
        "succeeded" => pod.phase = PodPhase::Succeeded,
        "failed" => pod.phase = PodPhase::Failed,
        "unknown" => pod.phase = PodPhase::Unknown,
        "releasing" => {
            pod.phase = PodPhase::Running;
            pod.deleting = true;
            pod.deletion_micros = (!value.is_empty()).then(|| line.micros(value));
        }
        _ if name.starts_with('@') => pod.node_name = Some(name[1..].into()),
        _ => return name.starts_with('x') && value.is_empty(),
    }
    true
}

fn new_pod(key: ObjectKey) -> PodRecord {
    PodRecord {
        uid: format!("{}-{}", key.namespace, key.name).into(),
        key,
        created_micros: START_MICROS,
        scheduler_name: "volcano".into(),
        phase: PodPhase::Pending,
        ..PodRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::TaskStatus;

    #[test]
    fn the_text_of_the_module_becomes_a_cluster() {
        let cluster = cluster(
            "node n1 cpu=4 memory=8Gi gpu=8 zone=a taint=x:NoSchedule
             queue q1 weight=2 cap.cpu=4 state=Closed
             job j1 queue=q1 min=2 role.ps=1 priority=10 minres.cpu=4 inqueue
               policy p keys=idx size=2 min=1
               task a cpu=2 @n1 running role=ps priority=7
               task b cpu=2 x3 label.idx=0     # three pending tasks
             job j2
               task a
             pod kube-system/dns cpu=1 @n1 running",
        );
        assert_eq!(cluster.check(), Ok(()));
        let n1 = &cluster.nodes[node(&cluster, "n1")];
        assert_eq!(&**n1.labels.get("zone").unwrap(), "a");
        assert_eq!(n1.used.text(&cluster.dims), "cpu 3000.00, memory 0.00, pods 2.00");
        let j1 = &cluster.jobs[job(&cluster, "j1")];
        assert_eq!((j1.priority, j1.min_available, j1.counts.total()), (10, 2, 4));
        assert_eq!(j1.phase(), PodGroupPhase::Inqueue);
        assert_eq!(&*j1.sub_jobs[1].id, "default/j1/p-0");
        let a = &cluster.tasks[task(&cluster, "j1/a")];
        assert_eq!((a.status, a.priority, &*a.role), (TaskStatus::Running, 7, "ps"));
        assert!(cluster.tasks[task(&cluster, "j2/a")].best_effort);
        assert_eq!(cluster.tasks[task(&cluster, "kube-system//dns")].job, None);
        assert!(cluster.queues[queue(&cluster, "default")].present);
        assert!(!cluster.queues[queue(&cluster, "q1")].is_open());
    }

    #[test]
    #[should_panic(expected = "unknown word \"colour=red\": queue q colour=red")]
    fn a_word_that_is_not_known_panics() {
        cluster("queue q colour=red");
    }
}

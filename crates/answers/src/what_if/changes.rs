//! Changes become events, or changes of rows where they name live objects.
//! Specification: answers.md 9 (ANS-48), 16.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_model::{
    Class, Cluster, ClusterEvent, JobId, Labels, NodeId, NodeRecord, ObjectKey, QueueRecord,
    ResourceList, Shape, Taint, TaskId, TaskStatus, to_resource,
};
use vc_resource::Dim;

use super::question::{
    Change, LiveObject, MOST_ENDS, NewNodes, NodePatch, NodeSelection, PodChange, PodGroupChange,
    QueueChange, SupposedKubelet, WhatIfBound, WhatIfError,
};
use super::run::{GonePod, SupposedRun, group_of};
use crate::controllers::{ControllerIndex, jobs_of_controller, pods_of_controller};
use crate::ended_jobs::end_job;
use crate::remedy_change::is_of_cordon;
use crate::subject::{NameFit, Subject, SubjectError, SubjectKind, SubjectQuery, find_indexed};

/// A label with the name of its node.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Changes of single nodes that already exist.
const MOST_CHANGED_NODES: usize = 500_000;
/// Cycles after each end.
const CYCLES_PER_END: u32 = 3;

/// What the changes have named and left out.
#[derive(Default)]
pub(crate) struct ChangeNotes {
    /// PodGroups that the changes name.
    pub(super) jobs: BTreeSet<ObjectKey>,
    /// Pods that were applied.
    pub(super) pods: BTreeSet<ObjectKey>,
    pub(super) warnings: BTreeSet<String>,
    /// The bounds at which something was left out.
    pub(super) left_out: BTreeSet<WhatIfBound>,
    /// Index of the cluster of the run.
    controllers: ControllerIndex,
    n_ends: usize,
    n_changed_nodes: usize,
}

/// A field and what is wrong with it.
type ChangeProblem = (String, String);

/// Makes one change.
pub(crate) fn make(
    run: &mut SupposedRun,
    (number, change): (usize, &Change),
    notes: &mut ChangeNotes,
) -> Result<(), WhatIfError> {
    let made = match change {
        Change::AddNodes { nodes, count } => add_nodes(run, nodes, *count, notes),
        Change::RemoveNodes(nodes) => remove_nodes(run, nodes, notes),
        Change::Cordon(nodes) => cordon(run, nodes, true, notes),
        Change::Uncordon(nodes) => cordon(run, nodes, false, notes),
        Change::PatchNodes(nodes, patch) => patch_nodes(run, nodes, patch, notes),
        Change::Apply(events) => {
            apply(run, events, notes);
            Ok(())
        }
        Change::Delete(objects) => delete(run, objects, notes),
        Change::Finish(jobs) => finish(run, jobs, notes),
        Change::SetQueue(name, change) => set_queue(run, name, change),
        Change::SetJob(job, change) => set_job(run, job, change, notes),
        Change::SetPods(job, change) => set_pods(run, job, change, notes),
        Change::Configure(config) => {
            let warnings = run.engine_mut().configure(config);
            notes.warnings.extend(warnings.iter().map(ToString::to_string));
            Ok(())
        }
        Change::Advance(micros) => {
            advance(run, *micros, notes);
            Ok(())
        }
    };
    run.engine_mut().drop_caches();
    made.map_err(|(field, message)| WhatIfError { change: number, field, message })
}

fn add_nodes(
    run: &mut SupposedRun,
    nodes: &NewNodes,
    count: u64,
    notes: &mut ChangeNotes,
) -> Result<(), ChangeProblem> {
    let record = match nodes {
        NewNodes::Node(record) => (**record).clone(),
        NewNodes::Like(name) => {
            let known = present_node(run.cluster(), name);
            let node = known.ok_or_else(|| ("addNodes.like".to_owned(), no_node(name)))?;
            run.cluster().node_record(node)
        }
    };
    notes.warnings.insert("new nodes have no images".to_owned());
    let may_be_own = matches!(nodes, NewNodes::Node(_));
    let mut last = if may_be_own { None } else { Some(0) };
    for _ in 0..count {
        let (number, record) = numbered(run.cluster(), &record, last);
        last = Some(number);
        run.apply(ClusterEvent::NodeApplied(Box::new(record)));
    }
    Ok(())
}

/// Returns an empty node like this one, with the first name that is free: its own, if `last` is `None`, else
/// `NAME-whatif-1` and so on. Names up to the number `last` are known to be taken. The number of the name is
/// returned, too; that of the own name is 0.
pub(crate) fn numbered(
    cluster: &Cluster,
    like: &NodeRecord,
    last: Option<u64>,
) -> (u64, NodeRecord) {
    let next = last.map_or(0, |last| last + 1);
    let names = (next..).map(|number| match number {
        0 => (0, like.name.clone()),
        _ => (number, format!("{}-whatif-{number}", like.name).into()),
    });
    let mut names = names.filter(|(_, name)| present_node(cluster, name).is_none());
    let (number, name): (u64, Arc<str>) = names.next().unwrap_or((0, like.name.clone()));
    let renamed = |(key, value): (&Arc<str>, &Arc<str>)| {
        let is_name = **key == *HOSTNAME || *value == like.name;
        (key.clone(), if is_name { name.clone() } else { value.clone() })
    };
    let labels = like.labels.iter().map(renamed).collect();
    (number, NodeRecord { labels, images: Vec::new(), name, ..like.clone() })
}

fn remove_nodes(
    run: &mut SupposedRun,
    nodes: &NodeSelection,
    notes: &mut ChangeNotes,
) -> Result<(), ChangeProblem> {
    for node in selected(run.cluster(), nodes, "removeNodes", notes)? {
        remove_node(run, node, notes);
    }
    Ok(())
}

/// Removes a node. Its pods wait again if a controller makes them anew; others are gone.
fn remove_node(run: &mut SupposedRun, node: NodeId, notes: &mut ChangeNotes) {
    let name = run.cluster().nodes[node].name.clone();
    let tasks = run.cluster().nodes[node].tasks.clone();
    for task in tasks {
        let cluster = run.cluster();
        let row = &cluster.tasks[task];
        let (key, uid) = (row.key.clone(), row.uid.clone());
        let pod_group = row.job.and_then(|job| group_of(cluster, job));
        let group = row.job.and_then(|job| cluster.jobs[job].pod_group.as_ref());
        let is_made_anew = group.is_some_and(|group| group.controller_uid.is_some());
        notes.jobs.extend(pod_group.clone());
        let gone = GonePod { pod_group, action: "drain", for_group: None, plugins: Vec::new() };
        run.evicted.insert(key.clone(), gone);
        match is_made_anew {
            true => run.engine_mut().suppose(|cluster| cluster.requeue_pod(task)),
            false => {
                let text = "pods whose PodGroup has no controller are not made anew";
                notes.warnings.insert(text.to_owned());
                run.apply(ClusterEvent::PodDeleted { key, uid });
            }
        }
    }
    run.apply(ClusterEvent::NodeDeleted { name });
}

fn cordon(
    run: &mut SupposedRun,
    nodes: &NodeSelection,
    on: bool,
    notes: &mut ChangeNotes,
) -> Result<(), ChangeProblem> {
    let field = if on { "cordon" } else { "uncordon" };
    for node in selected(run.cluster(), nodes, field, notes)? {
        let mut record = NodeRecord { unschedulable: on, ..run.cluster().node_record(node) };
        if !on {
            // Kubernetes removes its taint, too.
            record.taints.retain(|taint| !is_of_cordon(taint));
        }
        run.apply(ClusterEvent::NodeApplied(Box::new(record)));
    }
    Ok(())
}

fn patch_nodes(
    run: &mut SupposedRun,
    nodes: &NodeSelection,
    patch: &NodePatch,
    notes: &mut ChangeNotes,
) -> Result<(), ChangeProblem> {
    let is_same = |l: &Taint, r: &Taint| (&l.key, l.effect) == (&r.key, r.effect);
    let mut added: Vec<&Taint> = Vec::new();
    for taint in &patch.add_taints {
        added.retain(|&other| !is_same(other, taint));
        added.push(taint);
    }
    for node in selected(run.cluster(), nodes, "patchNodes", notes)? {
        let mut record = run.cluster().node_record(node);
        for (key, value) in &patch.labels {
            match value {
                Some(value) => record.labels.insert(key.clone(), value.clone()),
                None => record.labels.remove(key),
            };
        }
        record.taints.retain(|taint| {
            let is_replaced = added.iter().any(|&other| is_same(other, taint));
            !is_replaced && !patch.remove_taints.contains(&taint.key)
        });
        record.taints.extend(added.iter().copied().cloned());
        run.apply(ClusterEvent::NodeApplied(Box::new(record)));
    }
    Ok(())
}

fn apply(run: &mut SupposedRun, events: &[ClusterEvent], notes: &mut ChangeNotes) {
    for event in events {
        match event {
            ClusterEvent::PodApplied(pod) => {
                notes.pods.insert(pod.key.clone());
            }
            ClusterEvent::PodGroupApplied(group) => {
                notes.jobs.insert(group.key.clone());
            }
            _ => {}
        }
        run.apply(event.clone());
    }
    notes.controllers.add(events);
}

fn delete(
    run: &mut SupposedRun,
    objects: &[LiveObject],
    notes: &mut ChangeNotes,
) -> Result<(), ChangeProblem> {
    for (at, object) in objects.iter().enumerate() {
        delete_one(run, object, notes)
            .map_err(|message| (format!("delete[{at}].name"), message))?;
    }
    Ok(())
}

fn delete_one(
    run: &mut SupposedRun,
    object: &LiveObject,
    notes: &mut ChangeNotes,
) -> Result<(), String> {
    let cluster = run.cluster();
    match object {
        LiveObject::Pod(key) => {
            let task = cluster.task_named(key).ok_or_else(|| format!("no pod {key}"))?;
            delete_pods(run, &[task]);
        }
        LiveObject::Job(key) => {
            let job = job_of(cluster, &notes.controllers, (SubjectKind::Group, key))?;
            delete_job(run, job, notes);
        }
        LiveObject::Controller(kind, key) => delete_controller(run, kind, key, notes)?,
        LiveObject::Queue(name) => {
            let name = present_queue(cluster, name)?;
            run.apply(ClusterEvent::QueueDeleted { name });
        }
        LiveObject::Node(name) => {
            let node = present_node(cluster, name).ok_or_else(|| no_node(name))?;
            remove_node(run, node, notes);
        }
        LiveObject::PriorityClass(name) => {
            let is_known = cluster.priority_classes().any(|known| known.name == *name);
            if !is_known {
                return Err(format!("no PriorityClass {name}"));
            }
            run.apply(ClusterEvent::PriorityClassDeleted { name: name.clone() });
        }
        LiveObject::Budget(key) => {
            if cluster.budgets.get(key).is_none() {
                return Err(format!("no PodDisruptionBudget {key}"));
            }
            run.apply(ClusterEvent::BudgetDeleted { key: key.clone() });
        }
    }
    Ok(())
}

/// Deletes a PodGroup with its pods.
fn delete_job(run: &mut SupposedRun, job: JobId, notes: &mut ChangeNotes) {
    let row = &run.cluster().jobs[job];
    let (key, pods) = (row.key.clone(), row.tasks.clone());
    notes.jobs.remove(&key);
    delete_pods(run, &pods);
    run.apply(ClusterEvent::PodGroupDeleted { key });
}

/// Deletes the PodGroups of a controller with their pods, and its pods in other PodGroups. A kind that
/// owns no pods as a controller is an error.
fn delete_controller(
    run: &mut SupposedRun,
    kind: &str,
    key: &ObjectKey,
    notes: &mut ChangeNotes,
) -> Result<(), String> {
    let kind_asked = SubjectKind::of(Some(kind));
    if !matches!(kind_asked, SubjectKind::Controller(_)) {
        return Err(format!("{key} of kind {kind} is no controller"));
    }
    let (query, fit) = (query_of(key, kind_asked), NameFit::Stated);
    let mut jobs = jobs_of_controller(run.cluster(), Some(&notes.controllers), query, fit);
    if jobs.is_empty() && kind_asked.means_group() {
        jobs.extend(run.cluster().job(key));
    }
    let is_known = !jobs.is_empty();
    jobs.into_iter().for_each(|job| delete_job(run, job, notes));
    let pods = pods_of_controller(run.cluster(), Some(&notes.controllers), query, fit);
    if !is_known && pods.is_empty() {
        return Err(format!("no {kind} {key} controls pods"));
    }
    delete_pods(run, &pods);
    Ok(())
}

fn delete_pods(run: &mut SupposedRun, pods: &[TaskId]) {
    let key = |&task: &TaskId| {
        let pod = &run.cluster().tasks[task];
        (pod.key.clone(), pod.uid.clone())
    };
    let keys: Vec<(ObjectKey, Arc<str>)> = pods.iter().map(key).collect();
    keys.into_iter().for_each(|(key, uid)| run.apply(ClusterEvent::PodDeleted { key, uid }));
}

fn finish(
    run: &mut SupposedRun,
    jobs: &[ObjectKey],
    notes: &mut ChangeNotes,
) -> Result<(), ChangeProblem> {
    for (at, key) in jobs.iter().enumerate() {
        let cluster = run.cluster();
        let job = job_of(cluster, &notes.controllers, (SubjectKind::Any, key))
            .map_err(|text| (format!("finish.jobs[{at}]"), text))?;
        notes.jobs.extend(group_of(cluster, job));
        run.engine_mut().suppose(|cluster| end_job(cluster, job));
    }
    Ok(())
}

fn set_queue(
    run: &mut SupposedRun,
    name: &Arc<str>,
    change: &QueueChange,
) -> Result<(), ChangeProblem> {
    let cluster = run.cluster();
    present_queue(cluster, name).map_err(|text| ("setQueue.name".to_owned(), text))?;
    let Some(queue) = cluster.queue(name) else { return Ok(()) };
    let record = changed_queue(cluster.queue_record(queue), change);
    run.apply(ClusterEvent::QueueApplied(Box::new(record)));
    Ok(())
}

/// Returns the object of a queue with the fields of a change.
pub(crate) fn changed_queue(mut record: QueueRecord, change: &QueueChange) -> QueueRecord {
    record.weight = change.weight.unwrap_or(record.weight);
    record.priority = change.priority.unwrap_or(record.priority);
    record.reclaimable = change.reclaimable.unwrap_or(record.reclaimable);
    record.fifo = change.fifo.unwrap_or(record.fifo);
    record.parent = change.parent.clone().unwrap_or(record.parent);
    record.node_group_affinity = change.affinity.clone().or(record.node_group_affinity);
    record.state = change.state.clone().unwrap_or(record.state);
    merge(&mut record.capability, change.capability.as_ref());
    merge(&mut record.deserved, change.deserved.as_ref());
    merge(&mut record.guarantee, change.guarantee.as_ref());
    record
}

/// Sets the amounts of the resources that a change lists.
fn merge(amounts: &mut ResourceList, changed: Option<&ResourceList>) {
    for entry in changed.into_iter().flatten() {
        amounts.retain(|(name, _)| *name != entry.0);
        amounts.push(entry.clone());
    }
}

fn set_job(
    run: &mut SupposedRun,
    key: &ObjectKey,
    change: &PodGroupChange,
    notes: &mut ChangeNotes,
) -> Result<(), ChangeProblem> {
    let cluster = run.cluster();
    let job = job_of(cluster, &notes.controllers, (SubjectKind::Any, key))
        .map_err(|text| ("setJob.job".to_owned(), text))?;
    let mut record = cluster
        .pod_group_record(job)
        .ok_or_else(|| ("setJob.job".to_owned(), format!("{key} has no PodGroup")))?;
    notes.jobs.insert(record.key.clone());
    if let Some(queue) = &change.queue {
        record.queue =
            present_queue(cluster, queue).map_err(|text| ("setJob.queue".to_owned(), text))?;
    }
    record.min_member = change.min_member.unwrap_or(record.min_member);
    let waiting = waiting(cluster, job);
    if let Some(class) = &change.priority_class_name {
        if cluster.priority_classes().all(|known| known.name != *class) {
            let field = "setJob.priorityClassName".to_owned();
            return Err((field, format!("no PriorityClass {class}")));
        }
        record.priority_class_name = class.clone();
    }
    run.engine_mut().suppose(|cluster| {
        cluster.replace_pod_group(record);
        if let Some(class) = &change.priority_class_name {
            waiting.iter().for_each(|&task| cluster.replace_priority(task, class));
        }
    });
    Ok(())
}

fn set_pods(
    run: &mut SupposedRun,
    key: &ObjectKey,
    change: &PodChange,
    notes: &mut ChangeNotes,
) -> Result<(), ChangeProblem> {
    let job = job_of(run.cluster(), &notes.controllers, (SubjectKind::Any, key))
        .map_err(|text| ("setPods.job".to_owned(), text))?;
    notes.jobs.extend(group_of(run.cluster(), job));
    run.engine_mut().suppose(|cluster| {
        for task in waiting(cluster, job) {
            let class = changed_class(cluster, task, change);
            cluster.replace_class(task, class);
        }
    });
    Ok(())
}

fn changed_class(cluster: &mut Cluster, task: TaskId, change: &PodChange) -> Class {
    let mut class = cluster.class(task).clone();
    let mut shape = Shape::clone(&class.shape);
    shape.tolerations.extend(change.tolerations.iter().flatten().cloned());
    if let Some(selector) = &change.node_selector {
        shape.node_selector = Some(selector.clone());
    }
    if let Some(requests) = &change.requests {
        let amounts = to_resource(requests, &mut cluster.dims);
        let is_given =
            |dim: &Dim| requests.iter().any(|(name, _)| **name == *cluster.dims.name(*dim));
        for dim in amounts.dims().filter(is_given) {
            shape.request.set(dim, amounts.get(dim));
            match dim {
                Dim::CPU => shape.non_zero.cpu_milli = amounts.get(dim),
                Dim::MEMORY => shape.non_zero.memory_bytes = amounts.get(dim),
                _ => {}
            }
        }
    }
    class.shape = Arc::new(shape);
    class
}

/// Moves the clock on. At each expected end the pods end, and a few cycles are run. Without kubelets none is, as one
/// cycle alone is wanted.
fn advance(run: &mut SupposedRun, micros: i64, notes: &mut ChangeNotes) {
    let until_micros = run.now_micros().saturating_add(micros);
    while notes.n_ends < MOST_ENDS && run.end_next(until_micros).is_ok() {
        notes.n_ends += 1;
        match run.kubelet() {
            SupposedKubelet::Instant => {
                run.settle(CYCLES_PER_END);
            }
            // No cycle reads the signal.
            SupposedKubelet::None => run.stop().check(),
        }
    }
    if notes.n_ends == MOST_ENDS && run.has_end_by(until_micros) {
        notes.left_out.insert(WhatIfBound::Ends);
    }
    run.advance_to(until_micros);
}

/// Returns the nodes of a selection, in name order, and counts them.
fn selected(
    cluster: &Cluster,
    selection: &NodeSelection,
    field: &str,
    notes: &mut ChangeNotes,
) -> Result<Vec<NodeId>, ChangeProblem> {
    let mut found = BTreeSet::new();
    for (at, name) in selection.names.iter().enumerate() {
        let node = present_node(cluster, name);
        found.insert(node.ok_or_else(|| (format!("{field}.names[{at}]"), no_node(name)))?);
    }
    if let Some(wanted) = &selection.match_labels {
        let has =
            |labels: &Labels| wanted.iter().all(|(key, value)| labels.get(key) == Some(value));
        let nodes = cluster.nodes_by_name().iter().copied();
        let matching: Vec<NodeId> =
            nodes.filter(|&node| has(&cluster.nodes[node].labels)).collect();
        if matching.is_empty() {
            return Err((format!("{field}.selector"), "no node has these labels".to_owned()));
        }
        found.extend(matching);
    }
    notes.n_changed_nodes += found.len();
    if MOST_CHANGED_NODES < notes.n_changed_nodes {
        let text = format!("{MOST_CHANGED_NODES} nodes in all changes at most");
        return Err((field.to_owned(), text));
    }
    let mut nodes: Vec<NodeId> = found.into_iter().collect();
    nodes.sort_by_key(|&node| &cluster.nodes[node].name);
    Ok(nodes)
}

fn present_node(cluster: &Cluster, name: &str) -> Option<NodeId> {
    cluster.node(name).filter(|&node| cluster.nodes[node].present)
}

fn no_node(name: &str) -> String {
    format!("no node {name}")
}

fn present_queue(cluster: &Cluster, name: &str) -> Result<Arc<str>, String> {
    let queue = cluster.queue(name).map(|queue| &cluster.queues[queue]);
    let queue = queue.filter(|queue| queue.present);
    queue.map(|queue| queue.name.clone()).ok_or_else(|| format!("no queue {name}"))
}

fn query_of<'a>(key: &'a ObjectKey, kind: SubjectKind<'a>) -> SubjectQuery<'a> {
    SubjectQuery { namespace: &key.namespace, name: &key.name, controller_uid: None, kind }
}

/// Returns the job of a PodGroup, of its controller, or of one of its pods. The error does not name
/// jobs that were not named in the question, which may be hidden from whoever asks.
fn job_of(
    cluster: &Cluster,
    index: &ControllerIndex,
    (kind, key): (SubjectKind<'_>, &ObjectKey),
) -> Result<JobId, String> {
    match find_indexed(cluster, Some(index), query_of(key, kind)) {
        Ok(Subject { job: Some(job), .. }) => Ok(job),
        Ok(Subject { job: None, .. }) => Err(format!("{key} has no PodGroup")),
        Err(SubjectError::Several(_)) => {
            Err(format!("{key} means several jobs: give the name of one PodGroup"))
        }
        Err(SubjectError::SeveralPods(_)) => {
            Err(format!("{key} means several pods: give the name of one pod"))
        }
        Err(SubjectError::Unknown(_)) => Err(format!("no job {key}")),
    }
}

/// Returns the tasks of a job that wait.
fn waiting(cluster: &Cluster, job: JobId) -> Vec<TaskId> {
    let waits = |task: &TaskId| cluster.tasks[*task].status == TaskStatus::Pending;
    cluster.jobs[job].tasks.iter().copied().filter(waits).collect()
}

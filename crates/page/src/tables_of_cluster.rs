//! Queues, nodes and sums of a state as JSON types.

use std::collections::{BTreeMap, HashMap, HashSet};

use vc_answers::Explanation;
use vc_engine::effect_text;
use vc_model::{
    Cluster, HyperNodeId, HyperNodeTree, Job, NodeId, PodGroupPhase, QueueId, Taint, TaskStatus,
};
use vc_resource::Resource;

use crate::cluster::{
    HyperNodeJson, NodeJobJson, NodeJson, NodeLabelJson, QueueJson, QueueQuotaJson, SummaryJson,
};
use crate::convert::{job_name, map};
use crate::explanation::AmountsJson;
use crate::view::AnswerView;

/// Name of the root queue.
const ROOT: &str = "root";

/// Returns the queues, each behind its parent, by name.
pub(crate) fn queues(view: &AnswerView) -> Vec<QueueJson> {
    let cluster = view.cluster();
    let mut jobs: BTreeMap<QueueId, (usize, usize)> = BTreeMap::new();
    for job in cluster.jobs_by_key().map(|job| &cluster.jobs[job]) {
        let (all, waiting) = jobs.entry(job.queue).or_default();
        *all += 1;
        *waiting += usize::from(waits(job));
    }
    let mut children: BTreeMap<String, Vec<QueueJson>> = BTreeMap::new();
    for id in cluster.queues_by_name().filter(|&id| cluster.queues[id].present) {
        let row = queue(view, id, jobs.get(&id).copied().unwrap_or_default());
        children.entry(row.parent.clone().unwrap_or_default()).or_default().push(row);
    }
    let mut ordered = Vec::new();
    let mut open: Vec<QueueJson> = children.remove("").unwrap_or_default();
    open.reverse();
    while let Some(next) = open.pop() {
        let below = children.remove(&next.name).unwrap_or_default();
        open.extend(below.into_iter().rev());
        ordered.push(next);
    }
    // Queues whose parent does not exist.
    ordered.extend(children.into_values().flatten());
    ordered
}

/// True if something of the job waits.
fn waits(job: &Job) -> bool {
    let begins = matches!(job.phase(), PodGroupPhase::Pending | PodGroupPhase::Inqueue);
    let awaits_pods = job.tasks.is_empty() && begins && job.pod_group.is_some();
    awaits_pods || 0 < job.counts.of(TaskStatus::Pending)
}

fn queue(view: &AnswerView, id: QueueId, (jobs, waiting): (usize, usize)) -> QueueJson {
    let cluster = view.cluster();
    let row = &cluster.queues[id];
    let used = view.queues.iter().find(|it| it.queue == row.name);
    let quota = view.quotas.iter().find(|it| it.queue == row.name);
    let parent = if row.parent.is_empty() { ROOT } else { &row.parent };
    let own = |amounts: &Resource| set_amounts(&amounts.to_quantities(&cluster.dims));
    QueueJson {
        name: row.name.to_string(),
        parent: (&*row.name != ROOT).then(|| parent.to_owned()),
        state: row.state.as_str().to_owned(),
        weight: row.weight,
        priority: row.priority,
        jobs,
        waiting,
        allocated: used.map(|it| map(&it.allocated)).unwrap_or_default(),
        deserved: match used.and_then(|it| it.deserved.as_ref()) {
            // A queue whose own jobs ask for nothing deserves 0 cpu and memory, which counts as not set.
            Some(deserved) => set_amounts(deserved),
            None => own(&row.deserved),
        },
        guarantee: own(&row.guarantee),
        capability: own(&row.capability),
        share: used.and_then(|it| it.share).filter(|share| share.is_finite()),
        quota: quota
            .map(|it| it.amounts.iter().map(QueueQuotaJson::from).collect())
            .unwrap_or_default(),
    }
}

/// Returns the amounts that are set: 0 cpu or memory means that nothing is.
pub(crate) fn set_amounts(amounts: &[(String, String)]) -> AmountsJson {
    let is_set = |(name, text): &&(String, String)| {
        text != "0" || !["cpu", "memory"].contains(&name.as_str())
    };
    amounts.iter().filter(is_set).cloned().collect()
}

fn amounts(of: &Resource, cluster: &Cluster) -> AmountsJson {
    map(&of.to_quantities(&cluster.dims))
}

/// Returns what is used in percent of these amounts, rounded, half a percent up.
fn percents(used: &Resource, all: &Resource, cluster: &Cluster) -> BTreeMap<String, i64> {
    let offered = all.dims().filter(|&dim| 0 < all.get(dim));
    let percent = |dim| {
        let (used, all) = (i128::from(used.get(dim)), i128::from(all.get(dim)));
        let percent = (200 * used + all) / (2 * all);
        i64::try_from(percent.clamp(0, 100)).unwrap_or(100)
    };
    offered.map(|dim| (cluster.dims.name(dim).to_string(), percent(dim))).collect()
}

/// What is wanted of a node beside its amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeParts<'a> {
    /// A row of a list.
    Row {
        /// Key of the label that is wanted.
        label: Option<&'a str>,
    },
    /// Its jobs and all labels.
    All,
}

/// Returns a node.
pub(crate) fn node(view: &AnswerView, id: NodeId, parts: NodeParts<'_>) -> NodeJson {
    let cluster = view.cluster();
    let is_whole = parts == NodeParts::All;
    let is_wanted = |key: &str| match parts {
        NodeParts::Row { label } => label == Some(key),
        NodeParts::All => true,
    };
    let row = &cluster.nodes[id];
    let mut jobs: BTreeMap<String, usize> = BTreeMap::new();
    for &task in row.tasks.iter().filter(|_| is_whole) {
        let task = &cluster.tasks[task];
        let name = match task.job.map(|job| &cluster.jobs[job]).filter(|job| !job.bare) {
            Some(job) => job_name(&job.key, &|key| view.owner(key)),
            None => task.key.to_string(),
        };
        *jobs.entry(name).or_default() += 1;
    }
    let label = |(key, value): (&std::sync::Arc<str>, &std::sync::Arc<str>)| {
        (key.to_string(), value.to_string())
    };
    NodeJson {
        name: row.name.to_string(),
        cordoned: row.unschedulable,
        taints: row.taints.iter().map(taint_text).collect(),
        allocatable: amounts(&row.allocatable, cluster),
        used: amounts(&row.used, cluster),
        used_percent: percents(&row.used, &row.allocatable, cluster),
        free: amounts(&row.future_idle(), cluster),
        pods: row.tasks.len(),
        jobs: jobs
            .into_iter()
            .map(|(job, pods)| NodeJobJson { job, hidden: false, pods })
            .collect(),
        hyper_nodes: hyper_nodes_of(view, id),
        labels: row.labels.iter().filter(|(key, _)| is_wanted(key)).map(label).collect(),
    }
}

/// Returns the labels that nodes have, by key.
pub(crate) fn node_labels(cluster: &Cluster) -> Vec<NodeLabelJson> {
    let mut found: Vec<LabelUse<'_>> = Vec::new();
    // The place of each key in the list.
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (_, node) in cluster.nodes.iter().filter(|(_, node)| node.present) {
        for (key, value) in &node.labels {
            let place = *places.entry(key).or_insert_with(|| {
                found.push(LabelUse { key, nodes: 0, values: HashSet::new() });
                found.len() - 1
            });
            let label = &mut found[place];
            label.nodes += 1;
            label.values.insert(value);
        }
    }
    found.sort_unstable_by_key(|label| label.key);
    let label = |it: LabelUse<'_>| NodeLabelJson {
        key: it.key.to_owned(),
        values: it.values.len(),
        nodes: it.nodes,
    };
    found.into_iter().map(label).collect()
}

/// A label with the number of nodes that have it.
struct LabelUse<'a> {
    key: &'a str,
    nodes: usize,
    values: HashSet<&'a str>,
}

/// Returns the HyperNodes that contain a node, the smallest first.
fn hyper_nodes_of(view: &AnswerView, node: NodeId) -> Vec<String> {
    let tree = view.hyper_nodes();
    let mut all = tree.containing(node);
    all.retain(|&id| id != HyperNodeTree::ROOT);
    all.sort_by_key(|&id| (tree[id].tier, id));
    all.into_iter().map(|id| tree[id].name.to_string()).collect()
}

/// Returns the HyperNodes, each behind the one that it is a member of.
pub(crate) fn hyper_nodes(view: &AnswerView) -> Vec<HyperNodeJson> {
    let tree = view.hyper_nodes();
    let mut rows = Vec::new();
    let mut open = vec![HyperNodeTree::ROOT];
    while let Some(id) = open.pop() {
        open.extend(tree[id].children.iter().rev());
        if id != HyperNodeTree::ROOT {
            rows.push(hyper_node(view, tree, id));
        }
    }
    rows
}

fn hyper_node(view: &AnswerView, tree: &HyperNodeTree, id: HyperNodeId) -> HyperNodeJson {
    let (cluster, row) = (view.cluster(), &tree[id]);
    let mut sums = [Resource::default(), Resource::default(), Resource::default()];
    let present = row.nodes.iter().map(|&node| &cluster.nodes[node]).filter(|node| node.present);
    let (mut n_nodes, mut n_pods) = (0, 0);
    for node in present {
        n_nodes += 1;
        n_pods += node.tasks.len();
        let own = [&node.allocatable, &node.used, &node.future_idle()];
        sums.iter_mut().zip(own).for_each(|(sum, amounts)| sum.add(amounts));
    }
    let [allocatable, used, free] = sums.each_ref().map(|sum| amounts(sum, cluster));
    let parent = row.parent.filter(|&parent| parent != HyperNodeTree::ROOT);
    HyperNodeJson {
        name: row.name.to_string(),
        tier: row.tier,
        parent: parent.map(|parent| tree[parent].name.to_string()),
        // The root counts as none, the HyperNode itself neither.
        depth: tree.ancestors(id).count().saturating_sub(2),
        nodes: n_nodes,
        pods: n_pods,
        allocatable,
        used,
        free,
    }
}

fn taint_text(taint: &Taint) -> String {
    let Taint { key, value, effect } = taint;
    let value = if value.is_empty() { String::new() } else { format!("={value}") };
    format!("{key}{value}:{}", effect_text(*effect))
}

/// Returns the sums over the cluster.
pub(crate) fn summary(view: &AnswerView, waiting: &[Explanation]) -> SummaryJson {
    let cluster = view.cluster();
    let mut summary = SummaryJson::default();
    let (mut allocatable, mut used) = (Resource::default(), Resource::default());
    for (_, node) in cluster.nodes.iter().filter(|(_, node)| node.present) {
        summary.nodes += 1;
        allocatable.add(&node.allocatable);
        used.add(&node.used);
    }
    summary.queues = cluster.queues.iter().filter(|(_, queue)| queue.present).count();
    summary.jobs = cluster.jobs.iter().filter(|(_, job)| job.pod_group.is_some()).count();
    for (_, task) in cluster.tasks.iter() {
        summary.total_pods += 1;
        *summary.pods.entry(task.status.as_str().to_owned()).or_default() += 1;
    }
    summary.total_waiting = waiting.len();
    for it in waiting {
        *summary.waiting.entry(it.verdict.code.as_str().to_owned()).or_default() += 1;
    }
    summary.allocatable = amounts(&allocatable, cluster);
    summary.used = amounts(&used, cluster);
    summary.used_percent = percents(&used, &allocatable, cluster);
    summary
}

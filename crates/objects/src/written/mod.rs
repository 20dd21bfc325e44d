//! The rows of a cluster as Kubernetes objects, as a user would write them. What no scheduler reads of
//! an object is not in its row, so it is not written: images, commands and the like. Specification:
//! answers.md 15.

mod groups;
mod nodes;
mod pods;
mod terms;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use vc_answers::time_text;
use vc_model::{Cluster, Covers, PriorityClassRecord, ResourceList};

use terms::label_selector;

/// The objects of a cluster.
#[derive(Clone, Debug, Default)]
pub struct WrittenObjects {
    /// Complete with apiVersion, kind and metadata.
    pub objects: Vec<Value>,
    /// What is known of the cluster and is not in the objects, in words.
    pub left_out: Vec<&'static str>,
}

/// Writes nodes, HyperNodes, PriorityClasses, queues, PodGroups, pods, PodDisruptionBudgets and
/// ResourceQuotas.
pub fn written_objects(cluster: &Cluster) -> WrittenObjects {
    let mut objects = Vec::new();
    let Ok(()) = visit_objects::<Infallible>(cluster, |object| {
        objects.push(object);
        Ok(())
    });
    WrittenObjects { objects, left_out: left_out(cluster) }
}

/// Writes the same objects as YAML documents. One object is in memory at a time. What is left out stands in
/// comments at the begin.
///
/// # Errors
/// `out` refuses.
pub fn write_objects(cluster: &Cluster, mut out: impl Write) -> io::Result<()> {
    for text in left_out(cluster) {
        writeln!(out, "# Not in this file: {text}.")?;
    }
    visit_objects(cluster, |object| {
        let text = serde_yaml::to_string(&object);
        let text = text.map_err(|error| io::Error::other(error.to_string()))?;
        writeln!(out, "---\n{}", text.trim_end())
    })
}

/// Shows each object of a cluster, in an order that depends on the cluster alone.
fn visit_objects<E>(
    cluster: &Cluster,
    mut visit: impl FnMut(Value) -> Result<(), E>,
) -> Result<(), E> {
    for &id in cluster.nodes_by_name().iter().filter(|&&id| cluster.nodes[id].present) {
        visit(nodes::node(&cluster.node_record(id)))?;
    }
    for record in cluster.hyper_nodes.records() {
        visit(nodes::hyper_node(record))?;
    }
    for class in cluster.priority_classes() {
        visit(priority_class(class))?;
    }
    let mut queues: Vec<_> = cluster.queues.iter().filter(|(_, row)| row.present).collect();
    queues.sort_by_key(|(_, row)| &row.name);
    for (id, _) in queues {
        visit(groups::queue(&cluster.queue_record(id)))?;
    }
    for group in cluster.jobs_by_key().filter_map(|job| cluster.pod_group_record(job)) {
        visit(groups::pod_group(&group))?;
    }
    let mut tasks: Vec<_> = cluster.tasks.iter().map(|(task, _)| task).collect();
    tasks.sort_by(|&l, &r| cluster.tasks[l].key.cmp(&cluster.tasks[r].key));
    for task in tasks {
        visit(pods::pod(cluster, task))?;
    }
    limits(cluster).into_iter().try_for_each(visit)
}

/// PodDisruptionBudgets and ResourceQuotas of the namespaces that have pods or PodGroups.
fn limits(cluster: &Cluster) -> Vec<Value> {
    let pods = cluster.tasks.iter().map(|(_, task)| &task.key.namespace);
    let groups = cluster.jobs.iter().map(|(_, job)| &job.key.namespace);
    let namespaces: BTreeSet<&Arc<str>> = pods.chain(groups).collect();
    let mut objects = Vec::new();
    for namespace in namespaces {
        for (name, budget) in cluster.budgets.of(namespace) {
            let selector = match &budget.covers {
                Covers::Nobody => None,
                Covers::Matching(selector) => Some(label_selector(selector)),
                // A selector that cannot be parsed covers all pods, and neither can this one.
                Covers::Everybody => Some(json!({ "matchExpressions": [{ "key": "" }] })),
            };
            let mut object = object("policy/v1", "PodDisruptionBudget", (namespace, name));
            object["spec"] = present_fields([("selector", selector)]);
            let disrupted = budget.disrupted.iter().map(|pod| (pod.to_string(), Value::Null));
            object["status"] = json!({
                "disruptionsAllowed": budget.allowed, "currentHealthy": budget.healthy,
                "disruptedPods": disrupted.collect::<Map<String, Value>>(),
            });
            objects.push(object);
        }
        for (name, quota) in cluster.quotas.of(namespace) {
            let mut object = object("v1", "ResourceQuota", (namespace, name));
            let texts = |amounts: &vc_model::ResourceQuotaAmounts| -> Value {
                amounts
                    .iter()
                    .map(|(name, it)| (name.to_string(), Value::from(it.text(name))))
                    .collect()
            };
            object["status"] = json!({ "hard": texts(&quota.hard), "used": texts(&quota.used) });
            objects.push(object);
        }
    }
    objects
}

fn priority_class(class: &PriorityClassRecord) -> Value {
    let mut object = object("scheduling.k8s.io/v1", "PriorityClass", ("", &class.name));
    object["value"] = class.value.into();
    if class.global_default {
        object["globalDefault"] = true.into();
    }
    object
}

fn left_out(cluster: &Cluster) -> Vec<&'static str> {
    let classes = || cluster.tasks.iter().map(|(_, task)| &cluster.classes[task.class]);
    let mut texts = Vec::new();
    if classes().any(|class| !class.volumes.is_empty()) {
        texts.push("volumes of pods");
    }
    if classes().any(|class| !class.resource_claims.is_empty()) {
        texts.push("ResourceClaims of pods");
    }
    if classes().any(|class| class.device_demand.is_some()) {
        texts.push("annotations about shared devices");
    }
    if classes().any(|class| class.numa_demand.is_some() || class.resource_strategy.is_some()) {
        texts.push("annotations about CPUs and scores of resources");
    }
    if classes().any(|class| class.controller.is_some()) || cluster.has_pod_selectors() {
        texts.push("Services and workloads, by which pods spread");
    }
    if cluster.nodes.iter().any(|(_, node)| node.load.is_some()) {
        texts.push("the load of nodes");
    }
    texts
}

/// Returns an object with its name. A namespace that is empty is left out.
fn object(api: &str, kind: &str, (namespace, name): (&str, &str)) -> Value {
    let mut object = json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name } });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

/// Adds what identifies the object in time.
fn set_identity(object: &mut Value, uid: &str, created_micros: i64) {
    if !uid.is_empty() {
        object["metadata"]["uid"] = uid.into();
    }
    object["metadata"]["creationTimestamp"] = time_text(created_micros).into();
}

/// Returns a map of the fields that are there.
fn present_fields<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let present = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect())
}

/// Returns a text. Returns `None` if it is empty.
fn nonempty(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| text.into())
}

/// Returns a list with each entry written. Returns `None` if it is empty.
fn listed<T>(list: &[T], written: impl Fn(&T) -> Value) -> Option<Value> {
    (!list.is_empty()).then(|| list.iter().map(written).collect())
}

/// Returns a list of texts. Returns `None` if it is empty.
fn texts(list: &[Arc<str>]) -> Option<Value> {
    listed(list, |text| Value::from(&**text))
}

/// Returns texts by name. Returns `None` if there are none.
fn named<'a>(entries: impl IntoIterator<Item = (&'a Arc<str>, &'a Arc<str>)>) -> Option<Value> {
    let map: Map<String, Value> =
        entries.into_iter().map(|(name, text)| (name.to_string(), (&**text).into())).collect();
    (!map.is_empty()).then_some(Value::Object(map))
}

/// Returns amounts by name. Returns `None` if there are none.
fn amounts(list: &ResourceList) -> Option<Value> {
    let map: Map<String, Value> =
        list.iter().map(|(name, amount)| (name.to_string(), amount.text(name).into())).collect();
    (!map.is_empty()).then_some(Value::Object(map))
}

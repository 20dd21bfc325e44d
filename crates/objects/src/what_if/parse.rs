//! The document `WhatIf`: changes as YAML or JSON become data. Specification: answers.md 9, 16.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use vc_answers::{
    Change, CycleLimit, LiveObject, MOST_CHANGES, MOST_CYCLES, MOST_NEW_NODES, NewNodes, NodePatch,
    NodeSelection, PodChange, PodGroupChange, QueueChange, SubjectKind, SupposedKubelet,
    close_texts,
};
use vc_model::{
    ClusterEvent, Labels, NodeRecord, ObjectKey, PodRecord, QueueRecord, Taint, TaintEffect,
};
use vc_wire::{DecodedEvent, Kind};

use crate::duration::parse_micros;
use crate::field::FieldReader;

/// The kinds of changes.
const CHANGES: [&str; 13] = [
    "addNodes",
    "removeNodes",
    "cordon",
    "uncordon",
    "patchNodes",
    "apply",
    "delete",
    "finish",
    "setQueue",
    "setJob",
    "setPods",
    "conf",
    "advance",
];

/// Fields of `affinity` of a queue, and of each of them.
const NODE_GROUP_FIELDS: [&str; 2] = ["nodeGroupAffinity", "nodeGroupAntiAffinity"];
const NODE_GROUP_LISTS: [&str; 2] = [
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
];

/// Fields of a queue that a flag can set, too. `affinity` has lists, which only a document has.
pub(super) const QUEUE_FIELDS: [&str; 9] = [
    "weight",
    "priority",
    "reclaimable",
    "capability",
    "deserved",
    "guarantee",
    "parent",
    "dequeueStrategy",
    "state",
];

/// A change of a document. Objects to apply are not expanded yet.
#[derive(Debug)]
pub(super) enum ParsedChange {
    Made(Change),
    Apply(Vec<Value>),
}

/// A document.
#[derive(Debug)]
pub(super) struct ParsedQuestion {
    /// Path and change, in order.
    pub(super) changes: Vec<(String, ParsedChange)>,
    pub(super) cycles: CycleLimit,
    pub(super) kubelet: SupposedKubelet,
    /// Warnings of configurations.
    pub(super) warnings: Vec<String>,
}

/// Reads a document. Names of jobs without a namespace are of this one.
///
/// # Errors
/// The text names the field that is wrong.
pub(super) fn parse(document: &Value, namespace: &str) -> Result<ParsedQuestion, String> {
    let root = FieldReader::root(document);
    only(&root, &["apiVersion", "kind", "metadata", "spec"])?;
    let spec = root.at("spec");
    only(&spec, &["changes", "cycles", "kubelet"])?;
    let list = spec.at("changes").list()?;
    if MOST_CHANGES < list.len() {
        let text = format!("{MOST_CHANGES} at most, {} given", list.len());
        return Err(spec.at("changes").problem(&text));
    }
    let (mut warnings, mut changes) = (Vec::new(), Vec::new());
    let (mut n_new_nodes, mut n_entries) = (0, 0);
    for item in list {
        let parsed = change(&item, namespace, &mut warnings)?;
        if let ParsedChange::Made(change) = &parsed {
            n_entries += entries_of(change);
            if let Change::AddNodes { count, .. } = change {
                n_new_nodes += count;
            }
        }
        if MOST_NEW_NODES < n_new_nodes {
            let text = format!("{MOST_NEW_NODES} new nodes at most, {n_new_nodes} given");
            return Err(item.problem(&text));
        }
        if MOST_CHANGES < n_entries {
            let of_all = "jobs, objects, labels, taints, tolerations and requests in all changes";
            return Err(item.problem(&format!("{MOST_CHANGES} {of_all} at most")));
        }
        changes.push((item.path().to_owned(), parsed));
    }
    let (cycles, kubelet) = (cycles(&spec.at("cycles"))?, kubelet(&spec.at("kubelet"))?);
    Ok(ParsedQuestion { changes, cycles, kubelet, warnings })
}

/// Returns how many jobs, objects and fields of nodes and pods a change lists. Each costs as much as a
/// change of its own. Names of nodes are not counted: what is done to nodes is limited by itself.
fn entries_of(change: &Change) -> usize {
    match change {
        Change::Delete(objects) => objects.len(),
        Change::Finish(jobs) => jobs.len(),
        Change::PatchNodes(_, patch) => {
            patch.labels.len() + patch.add_taints.len() + patch.remove_taints.len()
        }
        Change::SetPods(_, pods) => {
            pods.tolerations.as_ref().map_or(0, Vec::len)
                + pods.node_selector.iter().flatten().count()
                + pods.requests.as_ref().map_or(0, Vec::len)
        }
        _ => 0,
    }
}

fn cycles(field: &FieldReader<'_>) -> Result<CycleLimit, String> {
    match field.value() {
        Value::Null => Ok(CycleLimit::Settled),
        Value::String(word) if word == "settled" => Ok(CycleLimit::Settled),
        number => {
            let number = number.as_u64().and_then(|number| u32::try_from(number).ok());
            let number = number.filter(|number| (1..=MOST_CYCLES).contains(number));
            let wanted = format!("must be settled, or a number from 1 to {MOST_CYCLES}");
            number.map(CycleLimit::Number).ok_or_else(|| field.problem(&wanted))
        }
    }
}

fn kubelet(field: &FieldReader<'_>) -> Result<SupposedKubelet, String> {
    match field.text()? {
        "" | "instant" => Ok(SupposedKubelet::Instant),
        "none" => Ok(SupposedKubelet::None),
        _ => Err(field.problem("must be instant or none")),
    }
}

fn change(
    item: &FieldReader<'_>,
    namespace: &str,
    warnings: &mut Vec<String>,
) -> Result<ParsedChange, String> {
    only(item, &CHANGES)?;
    let empty = Map::new();
    let keys: Vec<&String> = item.object()?.unwrap_or(&empty).keys().collect();
    let [key] = keys[..] else {
        let text = format!("one of {} wanted, {} given", CHANGES.join(", "), keys.len());
        return Err(item.problem(&text));
    };
    let field = item.at(key);
    let made = match key.as_str() {
        "addNodes" => add_nodes(&field)?,
        "removeNodes" => Change::RemoveNodes(selection(&field, &[])?),
        "cordon" => Change::Cordon(selection(&field, &[])?),
        "uncordon" => Change::Uncordon(selection(&field, &[])?),
        "patchNodes" => patch_nodes(&field)?,
        "apply" => {
            let objects = field.list()?;
            return Ok(ParsedChange::Apply(
                objects.iter().map(|object| object.value().clone()).collect(),
            ));
        }
        "delete" => delete(&field, namespace)?,
        "finish" => {
            only(&field, &["jobs"])?;
            let jobs = field.at("jobs").list()?;
            Change::Finish(jobs.iter().map(|job| key_of(job, namespace)).collect::<Result<_, _>>()?)
        }
        "setQueue" => set_queue(&field)?,
        "setJob" => set_job(&field, namespace)?,
        "setPods" => set_pods(&field, namespace)?,
        "conf" => configure(&field, warnings)?,
        _ => {
            let micros = parse_micros(field.text()?).filter(|&micros| 0 < micros);
            let wanted = "must be a duration such as 30m or 1h30m";
            Change::Advance(micros.ok_or_else(|| field.problem(wanted))?)
        }
    };
    Ok(ParsedChange::Made(made))
}

fn add_nodes(field: &FieldReader<'_>) -> Result<Change, String> {
    only(field, &["like", "node", "count"])?;
    let count = match field.at("count").int()? {
        None => 1,
        Some(count) => u64::try_from(count).unwrap_or(0),
    };
    if count == 0 {
        return Err(field.at("count").problem("must be 1 or more"));
    }
    let nodes = match (field.at("like").text()?, field.at("node").object()?) {
        ("", None) => return Err(field.problem("like or node is wanted")),
        ("", Some(_)) => NewNodes::Node(Box::new(node(&field.at("node"))?)),
        (like, None) => NewNodes::Like(like.into()),
        (_, Some(_)) => return Err(field.problem("like or node is wanted, both are given")),
    };
    Ok(Change::AddNodes { nodes, count })
}

fn node(field: &FieldReader<'_>) -> Result<NodeRecord, String> {
    let event = decoded(field, (Kind::Node, field.value()), &[])?;
    match event {
        ClusterEvent::NodeApplied(record) => Ok(*record),
        _ => Err(field.problem("must be a Node")),
    }
}

/// Names and labels of nodes; further fields are read by others.
fn selection(field: &FieldReader<'_>, others: &[&str]) -> Result<NodeSelection, String> {
    only(field, &[&["names", "selector"], others].concat())?;
    let names = texts(&field.at("names"))?;
    let selector = field.at("selector");
    only(&selector, &["matchLabels"])?;
    let match_labels = match selector.at("matchLabels").object()? {
        None => None,
        Some(_) => Some(labels(&selector.at("matchLabels"))?),
    };
    if names.is_empty() && match_labels.is_none() {
        return Err(field.problem("names or selector.matchLabels is wanted"));
    }
    Ok(NodeSelection { names, match_labels })
}

fn patch_nodes(field: &FieldReader<'_>) -> Result<Change, String> {
    let nodes = selection(field, &["labels", "addTaints", "removeTaints"])?;
    let given = field.at("labels");
    let mut changed = Vec::new();
    for key in given.object()?.into_iter().flat_map(Map::keys) {
        let value = given.at(key);
        let value = if value.is_absent() { None } else { Some(value.text()?.into()) };
        changed.push((key.as_str().into(), value));
    }
    let taints = field.at("addTaints").list()?;
    let add_taints = taints.iter().map(taint).collect::<Result<_, _>>()?;
    let remove_taints = texts(&field.at("removeTaints"))?;
    Ok(Change::PatchNodes(nodes, NodePatch { labels: changed, add_taints, remove_taints }))
}

fn taint(field: &FieldReader<'_>) -> Result<Taint, String> {
    only(field, &["key", "value", "effect"])?;
    let node = json!({
        "metadata": { "name": "x", "uid": "x" },
        "spec": { "taints": [field.value()] },
    });
    let event = decoded(field, (Kind::Node, &node), &["spec.taints[0]."])?;
    let taint = match event {
        ClusterEvent::NodeApplied(record) => record.taints.into_iter().next(),
        _ => None,
    };
    let is_known = |taint: &Taint| {
        let effects =
            [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];
        !taint.key.is_empty() && effects.contains(&taint.effect)
    };
    let wanted = "needs a key, and effect NoSchedule, PreferNoSchedule or NoExecute";
    taint.filter(is_known).ok_or_else(|| field.problem(wanted))
}

fn delete(field: &FieldReader<'_>, namespace: &str) -> Result<Change, String> {
    let objects = field.list()?;
    let objects = objects.iter().map(|item| live_object(item, namespace));
    Ok(Change::Delete(objects.collect::<Result<_, _>>()?))
}

/// Reads the name of an object that is deleted. Its kind may have any name that kubectl has for it.
fn live_object(item: &FieldReader<'_>, namespace: &str) -> Result<LiveObject, String> {
    only(item, &["kind", "namespace", "name"])?;
    let (kind, name) = (item.at("kind").text()?, item.at("name").text()?);
    if name.is_empty() {
        return Err(item.at("name").problem("is missing"));
    }
    let namespace = match item.at("namespace").text()? {
        "" => namespace,
        given => given,
    };
    let key = || ObjectKey::new(namespace, name);
    let lower = kind.split('.').next().unwrap_or(kind).to_lowercase();
    Ok(match &*lower {
        "queue" | "queues" | "q" => LiveObject::Queue(name.into()),
        "node" | "nodes" | "no" => LiveObject::Node(name.into()),
        "priorityclass" | "priorityclasses" | "pc" => LiveObject::PriorityClass(name.into()),
        "poddisruptionbudget" | "poddisruptionbudgets" | "pdb" => LiveObject::Budget(key()),
        "" => {
            return Err(item.at("kind").problem(
                "must be Pod, PodGroup, Queue, Node, PriorityClass, PodDisruptionBudget or a kind \
                 that controls pods",
            ));
        }
        _ => match SubjectKind::of(Some(kind)) {
            SubjectKind::Pod => LiveObject::Pod(key()),
            SubjectKind::Group => LiveObject::Job(key()),
            SubjectKind::Any | SubjectKind::Controller(_) => {
                LiveObject::Controller(kind.into(), key())
            }
        },
    })
}

fn set_queue(field: &FieldReader<'_>) -> Result<Change, String> {
    only(field, &[&["name", "affinity"], &QUEUE_FIELDS[..]].concat())?;
    let affinity = field.at("affinity");
    only(&affinity, &NODE_GROUP_FIELDS)?;
    NODE_GROUP_FIELDS.iter().try_for_each(|name| only(&affinity.at(name), &NODE_GROUP_LISTS))?;
    let name = field.at("name").text()?;
    if name.is_empty() {
        return Err(field.at("name").problem("is missing"));
    }
    let mut spec = field.value().clone();
    let state = spec["state"].take();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("name");
        // In a Queue it is `spec.guarantee.resource`; the short form has the resources alone.
        if let Some(guarantee) = fields.get_mut("guarantee")
            && guarantee.get("resource").is_none()
        {
            *guarantee = json!({ "resource": guarantee.take() });
        }
    }
    let object = json!({
        "metadata": { "name": name, "uid": name }, "spec": spec, "status": { "state": state },
    });
    let event = decoded(field, (Kind::Queue, &object), &["spec."])?;
    let ClusterEvent::QueueApplied(record) = event else {
        return Err(field.problem("must be a queue"));
    };
    let QueueRecord { weight, priority, reclaimable, parent, fifo, state, .. } = *record;
    let has = |name: &str| !field.at(name).is_absent();
    let change = QueueChange {
        weight: has("weight").then_some(weight),
        priority: has("priority").then_some(priority),
        reclaimable: has("reclaimable").then_some(reclaimable),
        capability: has("capability").then_some(record.capability),
        deserved: has("deserved").then_some(record.deserved),
        guarantee: has("guarantee").then_some(record.guarantee),
        parent: has("parent").then_some(parent),
        fifo: has("dequeueStrategy").then_some(fifo),
        state: has("state").then_some(state),
        affinity: record.node_group_affinity,
    };
    Ok(Change::SetQueue(name.into(), Box::new(change)))
}

fn set_job(field: &FieldReader<'_>, namespace: &str) -> Result<Change, String> {
    only(field, &["job", "priorityClassName", "minMember", "queue"])?;
    let minimum = field.at("minMember");
    let min_member = match minimum.int()? {
        None => None,
        Some(number) => {
            let number = i32::try_from(number).ok().filter(|number| 0 < *number);
            Some(number.ok_or_else(|| minimum.problem("must be 1 or more"))?)
        }
    };
    let text = |name: &str| -> Result<Option<Arc<str>>, String> {
        let text = field.at(name).text()?;
        Ok((!text.is_empty()).then(|| text.into()))
    };
    let change = PodGroupChange {
        priority_class_name: text("priorityClassName")?,
        min_member,
        queue: text("queue")?,
    };
    Ok(Change::SetJob(key_of(&field.at("job"), namespace)?, change))
}

fn set_pods(field: &FieldReader<'_>, namespace: &str) -> Result<Change, String> {
    only(field, &["job", "tolerations", "nodeSelector", "requests"])?;
    let pod = json!({
        "metadata": { "namespace": "x", "name": "x", "uid": "x" },
        "spec": {
            "tolerations": field.at("tolerations").value(),
            "nodeSelector": field.at("nodeSelector").value(),
            "containers": [{
                "name": "x", "resources": { "requests": field.at("requests").value() },
            }],
        },
    });
    let event = decoded(field, (Kind::Pod, &pod), &["spec.containers[0].resources.", "spec."])?;
    let ClusterEvent::PodApplied(record) = event else {
        return Err(field.problem("must be fields of a pod"));
    };
    let PodRecord { tolerations, node_selector, containers, .. } = *record;
    let has = |name: &str| !field.at(name).is_absent();
    let requests = containers.into_iter().next().map(|container| container.requests);
    let change = PodChange {
        tolerations: has("tolerations").then_some(tolerations),
        node_selector: node_selector.filter(|_| has("nodeSelector")),
        requests: requests.filter(|_| has("requests")),
    };
    Ok(Change::SetPods(key_of(&field.at("job"), namespace)?, Box::new(change)))
}

fn configure(field: &FieldReader<'_>, warnings: &mut Vec<String>) -> Result<Change, String> {
    let text = field.text()?;
    let loaded = vc_conf::parse(field.path(), text, &vc_engine::KNOWN);
    let loaded = loaded.map_err(|error| error.to_string())?;
    let loaded = loaded.admit(field.path(), &vc_conf::AllowMissing::default());
    let loaded = loaded.map_err(|error| error.to_string())?;
    warnings.extend(loaded.warnings.iter().map(ToString::to_string));
    Ok(Change::Configure(Box::new(loaded.config)))
}

/// The event of an object that has the fields of a change under one of these paths. Anything that is
/// wrong with it is an error of the field.
fn decoded(
    field: &FieldReader<'_>,
    (kind, object): (Kind, &Value),
    paths: &[&str],
) -> Result<ClusterEvent, String> {
    let problem = match vc_wire::decode(kind, object) {
        Ok(DecodedEvent { event, problems }) => match problems.into_iter().next() {
            None => return Ok(event),
            Some(problem) => problem,
        },
        Err(error) => error.to_string(),
    };
    // Without the name of the object, which is made up.
    let problem = problem.split_once(": ").map_or(&*problem, |(_, problem)| problem);
    let own = paths.iter().find_map(|path| problem.strip_prefix(path));
    Err(own.map_or_else(|| field.problem(problem), |own| format!("{}.{own}", field.path())))
}

/// `namespace/name`, or a name in this namespace.
fn key_of(field: &FieldReader<'_>, namespace: &str) -> Result<ObjectKey, String> {
    let text = field.text()?;
    let (namespace, name) = text.split_once('/').unwrap_or((namespace, text));
    if namespace.is_empty() || name.is_empty() {
        return Err(field.problem("must be NAMESPACE/NAME"));
    }
    Ok(ObjectKey::new(namespace, name))
}

fn texts(field: &FieldReader<'_>) -> Result<Vec<Arc<str>>, String> {
    let list = field.list()?;
    list.iter().map(|item| Ok(item.text()?.into())).collect()
}

fn labels(field: &FieldReader<'_>) -> Result<Labels, String> {
    let keys = field.object()?.into_iter().flat_map(Map::keys);
    keys.map(|key| Ok((key.as_str().into(), field.at(key).text()?.into()))).collect()
}

/// Refuses fields that are not known, with the nearest one.
fn only(field: &FieldReader<'_>, known: &[&str]) -> Result<(), String> {
    let unknown = field.object()?.into_iter().flat_map(Map::keys);
    let mut unknown = unknown.filter(|key| !known.contains(&key.as_str()));
    let Some(key) = unknown.next() else { return Ok(()) };
    let close = close_texts(key, known);
    let hint = match close.is_empty() {
        true => String::new(),
        false => format!("; did you mean {}?", close.join(", ")),
    };
    Err(field.at(key).problem(&format!("unknown{hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(changes: Value) -> Result<Vec<Change>, String> {
        let question = parse(&json!({ "spec": { "changes": changes } }), "ml")?;
        let made = question.changes.into_iter().map(|(_, change)| match change {
            ParsedChange::Made(change) => change,
            ParsedChange::Apply(_) => panic!("nothing is applied"),
        });
        Ok(made.collect())
    }

    fn deleted(kind: &str) -> LiveObject {
        let change = json!([{ "delete": [{ "kind": kind, "name": "train" }] }]);
        match parsed(change).unwrap().pop() {
            Some(Change::Delete(mut objects)) => objects.remove(0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ans_48_a_kind_that_is_deleted_has_all_names_that_kubectl_has_for_it() {
        let key = || ObjectKey::new("ml", "train");
        for (kinds, expected) in [
            (["Pod", "pod", "PODS", "po"], LiveObject::Pod(key())),
            (
                ["PodGroup", "podgroup", "pg", "podgroups.scheduling.volcano.sh"],
                LiveObject::Job(key()),
            ),
            (["Queue", "queue", "queues", "q"], LiveObject::Queue("train".into())),
            (["Node", "node", "Nodes", "no"], LiveObject::Node("train".into())),
            (
                ["PriorityClass", "priorityclass", "pc", "priorityclasses.scheduling.k8s.io"],
                LiveObject::PriorityClass("train".into()),
            ),
            (
                ["PodDisruptionBudget", "poddisruptionbudgets", "pdb", "pdb.policy"],
                LiveObject::Budget(key()),
            ),
        ] {
            for kind in kinds {
                assert_eq!(deleted(kind), expected, "{kind}");
            }
        }
        for kind in ["Job", "job", "vj", "StatefulSet", "sts", "jobs.batch", "MPIJob"] {
            assert_eq!(deleted(kind), LiveObject::Controller(kind.into(), key()), "{kind}");
        }
        for kind in ["", ".apps"] {
            let change = json!([{ "delete": [{ "kind": kind, "name": "train" }] }]);
            let error = parsed(change).unwrap_err();
            assert!(error.starts_with("spec.changes[0].delete[0].kind: must be Pod, "), "{error}");
        }
    }

    #[test]
    fn ans_52_what_changes_list_is_limited_in_all() {
        let names = |most: usize| (0..most).map(|number| format!("j{number}")).collect::<Vec<_>>();
        let finish = |most: usize| json!({ "finish": { "jobs": names(most) } });
        let pods = json!([{ "kind": "pod", "name": "p" }, { "kind": "pod", "name": "q" }]);
        assert!(parsed(json!([finish(998), { "delete": pods }])).is_ok());
        let limit =
            "1000 jobs, objects, labels, taints, tolerations and requests in all changes at most";
        let taint = json!({ "key": "a", "effect": "NoSchedule" });
        let cordon = json!({ "cordon": { "names": names(2_000) } });
        for (changes, place) in [
            (json!([finish(1_001)]), "spec.changes[0]"),
            (json!([finish(999), { "delete": pods }]), "spec.changes[1]"),
            (
                json!([finish(999), cordon, { "patchNodes": {
                    "names": ["n"], "labels": { "a": "b" }, "addTaints": [taint], "removeTaints": ["c"],
                } }]),
                "spec.changes[2]",
            ),
            (
                json!([finish(999), { "setPods": {
                    "job": "j", "nodeSelector": { "a": "b" }, "requests": { "cpu": "1" },
                    "tolerations": [{ "key": "a", "operator": "Exists" }],
                } }]),
                "spec.changes[1]",
            ),
        ] {
            assert_eq!(parsed(changes).unwrap_err(), format!("{place}: {limit}"));
        }
    }
}

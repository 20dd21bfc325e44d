//! Lists as the tables that `kubectl get` prints: the server chooses columns and makes the cells.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use super::{
    clock,
    kinds::ServedKind,
    object::{Object, is_terminating, items, text},
    request::RowObject,
};

/// A column: its title, whether only `-o wide` shows it, and its cell.
struct TableColumn(&'static str, ColumnWidth, fn(&Value) -> String);

#[derive(Clone, Copy)]
enum ColumnWidth {
    Always,
    Wide,
}
use ColumnWidth::{Always, Wide};

const NAME: TableColumn = TableColumn("Name", Always, |v| text(v, "/metadata/name").to_owned());
const AGE: TableColumn =
    TableColumn("Age", Always, |v| since(text(v, "/metadata/creationTimestamp")));

const GENERIC: &[TableColumn] = &[NAME, AGE];

const PODS: &[TableColumn] = &[
    NAME,
    TableColumn("Ready", Always, ready_containers),
    TableColumn("Status", Always, pod_status),
    TableColumn("Restarts", Always, restarts),
    AGE,
    TableColumn("IP", Wide, |v| or_none(text(v, "/status/podIP"))),
    TableColumn("Node", Wide, |v| or_none(text(v, "/spec/nodeName"))),
    TableColumn("Nominated Node", Wide, |v| or_none(text(v, "/status/nominatedNodeName"))),
];

const NODES: &[TableColumn] = &[
    NAME,
    TableColumn("Status", Always, node_status),
    TableColumn("Roles", Always, node_roles),
    AGE,
    TableColumn("Version", Always, |v| text(v, "/status/nodeInfo/kubeletVersion").to_owned()),
    TableColumn("CPU", Wide, |v| plain(v, "/status/allocatable/cpu")),
    TableColumn("Memory", Wide, |v| plain(v, "/status/allocatable/memory")),
    TableColumn("Pods", Wide, |v| plain(v, "/status/allocatable/pods")),
];

const NAMESPACES: &[TableColumn] =
    &[NAME, TableColumn("Status", Always, |v| text(v, "/status/phase").to_owned()), AGE];

const EVENTS: &[TableColumn] = &[
    TableColumn("Last Seen", Always, |v| since(last_seen(v))),
    TableColumn("Type", Always, |v| text(v, "/type").to_owned()),
    TableColumn("Reason", Always, |v| text(v, "/reason").to_owned()),
    TableColumn("Object", Always, involved_object),
    TableColumn("Message", Always, |v| text(v, "/message").trim().to_owned()),
    TableColumn("Source", Wide, |v| text(v, "/source/component").to_owned()),
    TableColumn("Count", Wide, |v| plain(v, "/count")),
    TableColumn("Name", Wide, |v| text(v, "/metadata/name").to_owned()),
];

const POD_GROUPS: &[TableColumn] = &[
    NAME,
    TableColumn("Status", Always, |v| text(v, "/status/phase").to_owned()),
    TableColumn("minMember", Always, |v| plain(v, "/spec/minMember")),
    TableColumn("Runnings", Always, |v| plain(v, "/status/running")),
    AGE,
    TableColumn("Queue", Always, |v| text(v, "/spec/queue").to_owned()),
];

const QUEUES: &[TableColumn] = &[
    NAME,
    TableColumn("Weight", Always, |v| plain(v, "/spec/weight")),
    TableColumn("State", Always, |v| text(v, "/status/state").to_owned()),
    TableColumn("Parent", Always, |v| text(v, "/spec/parent").to_owned()),
    AGE,
];

const PRIORITY_CLASSES: &[TableColumn] = &[
    NAME,
    TableColumn("Value", Always, |v| plain(v, "/value")),
    TableColumn("Global-Default", Always, |v| (v["globalDefault"] == json!(true)).to_string()),
    AGE,
];

fn columns(kind: &ServedKind) -> &'static [TableColumn] {
    match (kind.group, kind.plural) {
        ("", "pods") => PODS,
        ("", "nodes") => NODES,
        ("", "namespaces") => NAMESPACES,
        ("", "events") => EVENTS,
        ("scheduling.volcano.sh", "podgroups") => POD_GROUPS,
        ("scheduling.volcano.sh", "queues") => QUEUES,
        ("scheduling.k8s.io", "priorityclasses") => PRIORITY_CLASSES,
        _ => GENERIC,
    }
}

/// The `meta.k8s.io/v1` table of objects of one kind.
pub(super) fn table(
    kind: &ServedKind,
    objects: &[Arc<Object>],
    row: RowObject,
    resource_version: &str,
) -> Value {
    let columns = columns(kind);
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<String> = columns.iter().map(|column| column.2(&object.value)).collect();
            match row_object(&object.value, row) {
                Some(shown) => json!({ "cells": cells, "object": shown }),
                None => json!({ "cells": cells }),
            }
        })
        .collect();
    let definitions: Vec<Value> = columns.iter().map(definition).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": { "resourceVersion": resource_version },
        "columnDefinitions": definitions, "rows": rows,
    })
}

fn definition(TableColumn(title, width, _): &TableColumn) -> Value {
    let format = if *title == "Name" { "name" } else { "" };
    let priority = match width {
        Always => 0,
        Wide => 1,
    };
    json!({
        "name": title, "type": "string", "format": format, "priority": priority,
        "description": title,
    })
}

fn row_object(value: &Value, row: RowObject) -> Option<Value> {
    match row {
        RowObject::Nothing => None,
        RowObject::Whole => Some(value.clone()),
        RowObject::Metadata => Some(json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": value["metadata"],
        })),
    }
}

/// The age of a timestamp.
fn since(timestamp: &str) -> String {
    match clock::from_rfc3339(timestamp) {
        Some(then) => clock::age(clock::unix_seconds() - then),
        None => "<unknown>".to_owned(),
    }
}

/// A number or text.
fn plain(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "<none>" } else { text }.to_owned()
}

fn ready_containers(pod: &Value) -> String {
    let statuses = items(pod, "/status/containerStatuses");
    let ready = statuses.iter().filter(|status| status["ready"] == json!(true)).count();
    format!("{ready}/{}", items(pod, "/spec/containers").len())
}

fn pod_status(pod: &Value) -> String {
    let phase = text(pod, "/status/phase");
    match (is_terminating(pod), text(pod, "/status/reason")) {
        (true, _) => "Terminating",
        (false, "") if phase == "Succeeded" => "Completed",
        (false, "") if phase == "Failed" => "Error",
        (false, "") if phase == "Pending" && has_gates(pod) => "SchedulingGated",
        (false, "") => phase,
        (false, reason) => reason,
    }
    .to_owned()
}

fn has_gates(pod: &Value) -> bool {
    !items(pod, "/spec/schedulingGates").is_empty()
}

fn restarts(pod: &Value) -> String {
    let counts = items(pod, "/status/containerStatuses").iter();
    let total: i64 = counts.filter_map(|status| status["restartCount"].as_i64()).sum();
    total.to_string()
}

fn node_status(node: &Value) -> String {
    let conditions = items(node, "/status/conditions");
    let ready = conditions.iter().find(|condition| condition["type"] == json!("Ready"));
    let status = match ready.map(|condition| text(condition, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match node.pointer("/spec/unschedulable") {
        Some(Value::Bool(true)) => format!("{status},SchedulingDisabled"),
        _ => status.to_owned(),
    }
}

fn node_roles(node: &Value) -> String {
    const PREFIX: &str = "node-role.kubernetes.io/";
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: BTreeSet<&str> = labels.filter_map(|(key, _)| key.strip_prefix(PREFIX)).collect();
    match roles.is_empty() {
        true => "<none>".to_owned(),
        false => roles.into_iter().collect::<Vec<_>>().join(","),
    }
}

fn last_seen(event: &Value) -> &str {
    const PLACES: [&str; 4] =
        ["/series/lastObservedTime", "/lastTimestamp", "/firstTimestamp", "/eventTime"];
    let times = PLACES.iter().map(|place| text(event, place));
    times.into_iter().find(|time| !time.is_empty()).unwrap_or_default()
}

fn involved_object(event: &Value) -> String {
    let kind = text(event, "/involvedObject/kind").to_lowercase();
    format!("{kind}/{}", text(event, "/involvedObject/name"))
}

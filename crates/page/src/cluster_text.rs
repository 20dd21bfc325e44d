//! Queues, lines, nodes and sums for people. Specification: answers.md 13.

use std::fmt::Write;

use vc_text::escape;

use crate::cluster::{
    HyperNodeJson, ListJson, NodeJson, OneJson, QueueJson, SummaryJson, WaitingJobJson,
};
use crate::explanation::AmountsJson;
use crate::start_text::held_text;
use crate::table::Table;
use crate::why_text::{ahead_text, as_of_text, compared_text, duration};

/// Resources that have a column: these, and all with a domain in their name.
const PLAIN: [&str; 2] = ["cpu", "memory"];

/// Returns the queues as a tree, one line each.
pub fn queues_text(list: &ListJson<QueueJson>) -> String {
    let head = ["QUEUE", "STATE", "WAITING", "SHARE", "USED/DESERVED/LIMIT"];
    let mut table = Table::new(head);
    for queue in &list.items {
        let share = queue.share.map_or_else(|| "-".to_owned(), |share| format!("{share:.2}"));
        let waiting = format!("{} of {}", queue.waiting, queue.jobs);
        let name = indented_queue(&list.items, queue);
        table.row([name, queue.state.clone(), waiting, share, amounts_of(queue)]);
    }
    table.text() + &as_of_text(&list.as_of)
}

/// Returns the name of a queue behind two blanks for each queue above it.
pub(crate) fn indented_queue(all: &[QueueJson], queue: &QueueJson) -> String {
    format!("{}{}", "  ".repeat(depth(all, queue)), queue.name)
}

/// Returns the number of queues above this one.
fn depth(all: &[QueueJson], queue: &QueueJson) -> usize {
    let mut above = queue;
    // A queue cannot be below more queues than there are: a circle of parents ends.
    for depth in 0..all.len() {
        let parent = above.parent.as_ref();
        match parent.and_then(|parent| all.iter().find(|it| it.name == *parent)) {
            Some(parent) => above = parent,
            None => return depth,
        }
    }
    0
}

fn amounts_of(queue: &QueueJson) -> String {
    let maps = [&queue.allocated, &queue.deserved, &queue.capability];
    let names = maps.iter().flat_map(|map| map.keys()).filter(|name| is_shown(name));
    let names: std::collections::BTreeSet<&String> = names.collect();
    let amount =
        |map: &AmountsJson, name: &String| map.get(name).cloned().unwrap_or_else(|| "-".to_owned());
    let cell = |name: &&String| {
        let amounts = maps.map(|map| amount(map, name));
        format!("{} {name}", amounts.join("/"))
    };
    names.iter().map(cell).collect::<Vec<_>>().join(", ")
}

fn is_shown(name: &str) -> bool {
    PLAIN.contains(&name) || name.contains('/')
}

/// Returns the jobs that wait in a queue, one line each.
pub fn line_text(list: &ListJson<WaitingJobJson>) -> String {
    let head = ["PLACE", "JOB", "PRIORITY", "PODS", "WAITS", "CODE", "DECIDED BY", "AHEAD"];
    let mut table = Table::new(head);
    for it in &list.items {
        let dash = || "-".to_owned();
        let job = if it.hidden { "(of another namespace)".to_owned() } else { it.job.clone() };
        let priority = it.priority.map_or_else(dash, |priority| priority.to_string());
        let waits = it.waiting_seconds.map_or_else(dash, duration);
        table.row([
            it.place.to_string(),
            job,
            priority,
            it.pods.to_string(),
            waits,
            it.code.clone(),
            decided_by(it).unwrap_or_else(dash),
            it.ahead.as_ref().filter(|ahead| 0 < ahead.jobs).map_or_else(dash, ahead_text),
        ]);
    }
    let text = if list.items.is_empty() { "nothing waits\n".to_owned() } else { table.text() };
    text + &rest_of(list) + &as_of_text(&list.as_of)
}

/// Returns what decides that a job comes after the job before it. Returns `None` for the first one.
fn decided_by(it: &WaitingJobJson) -> Option<String> {
    let decided_by = it.decided_by.as_deref()?;
    let values = it.values.as_ref().map(|[own, other]| (other.as_str(), own.as_str()));
    compared_text(decided_by, values).or_else(|| Some(decided_by.to_owned()))
}

/// Returns the HyperNodes as a tree, one line each.
pub fn hyper_nodes_text(list: &ListJson<HyperNodeJson>) -> String {
    if list.items.is_empty() {
        return "there are no HyperNodes\n".to_owned() + &as_of_text(&list.as_of);
    }
    let mut table = Table::new(["HYPERNODE", "TIER", "NODES", "PODS", "FREE/ALLOCATABLE"]);
    for it in &list.items {
        let name = format!("{}{}", "  ".repeat(it.depth), it.name);
        let counts = [it.tier.to_string(), it.nodes.to_string(), it.pods.to_string()];
        let [tier, nodes, pods] = counts;
        table.row([name, tier, nodes, pods, free_of(&it.free, &it.allocatable)]);
    }
    table.text() + &rest_of(list) + &as_of_text(&list.as_of)
}

/// Returns a line if a list is longer than what is shown.
pub(crate) fn rest_of<T>(list: &ListJson<T>) -> String {
    let shown = list.items.len();
    if list.total <= shown {
        String::new()
    } else {
        format!("{shown} of {} are shown\n", list.total)
    }
}

/// Returns what is free of each resource that is shown.
fn free_of(free: &AmountsJson, allocatable: &AmountsJson) -> String {
    let shown = allocatable.iter().filter(|(name, _)| is_shown(name));
    let cell = |(name, all): (&String, &String)| {
        let free = free.get(name).map_or("0", String::as_str);
        format!("{free}/{all} {name}")
    };
    shown.map(cell).collect::<Vec<_>>().join(", ")
}

/// Returns the nodes, one line each.
pub fn nodes_text(list: &ListJson<NodeJson>) -> String {
    let mut table = Table::new(["NODE", "PODS", "FREE/ALLOCATABLE", "TAINTS"]);
    for node in &list.items {
        let amounts = free_of(&node.free, &node.allocatable);
        let cordon = node.cordoned.then(|| "cordoned".to_owned());
        let taints: Vec<String> = cordon.into_iter().chain(node.taints.clone()).collect();
        let pods = node.pods.to_string();
        table.row([node.name.clone(), pods, amounts, taints.join(" ")]);
    }
    table.text() + &rest_of(list) + &as_of_text(&list.as_of)
}

/// Returns one node with its jobs.
pub fn node_text(one: &OneJson<NodeJson>) -> String {
    let list = ListJson::new("NodeList", one.as_of.clone(), vec![one.content.clone()]);
    let text = nodes_text(&list);
    let (node, as_of) = text.split_at(text.rfind("as of ").unwrap_or(text.len()));
    let mut jobs = Table::new(["JOB", "PODS"]);
    for it in &one.content.jobs {
        let job = if it.hidden { "(of another namespace)".to_owned() } else { it.job.clone() };
        jobs.row([job, it.pods.to_string()]);
    }
    let jobs = if one.content.jobs.is_empty() { String::new() } else { jobs.text() };
    format!("{node}{jobs}{as_of}")
}

/// Returns the sums over the cluster.
pub fn summary_text(one: &OneJson<SummaryJson>) -> String {
    let it = &one.content;
    let counts = |map: &std::collections::BTreeMap<String, usize>| {
        let parts = map.iter().map(|(name, count)| format!("{count} {name}"));
        parts.collect::<Vec<_>>().join(", ")
    };
    let used = it.allocatable.iter().filter(|(name, _)| is_shown(name)).map(|(name, all)| {
        format!("{}/{all} {name}", it.used.get(name).map_or("0", String::as_str))
    });
    let used = used.collect::<Vec<_>>().join(", ");
    let rows = [
        ("NODES", it.nodes.to_string()),
        ("QUEUES", it.queues.to_string()),
        ("JOBS", it.jobs.to_string()),
        ("PODS", counts(&it.pods)),
        ("WAITING", counts(&it.waiting)),
        ("USED", used),
        ("STARTS", it.held.map(held_text).unwrap_or_default()),
    ];
    let mut out = String::new();
    for (word, text) in rows.iter().filter(|(_, text)| !text.is_empty()) {
        let _infallible = writeln!(out, "{word:<8} {}", escape(text));
    }
    out + &as_of_text(&one.as_of)
}

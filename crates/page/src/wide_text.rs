//! Lists with all that a line can hold, for wide terminals: `-o wide`. Specification: answers.md 13
//! (ANS-86).

use crate::cluster::{HyperNodeJson, ListJson, NodeJson, QueueJson};
use crate::cluster_text::{indented_queue, rest_of};
use crate::document::ExplanationListJson;
use crate::explanation::{AmountsJson, ExplanationJson, GangJson};
use crate::history::history_text;
use crate::table::Table;
use crate::why_text::{as_of_text, duration, line, why_body};

/// Returns one job or pod, with all that is known and its history.
pub fn why_wide_text(it: &ExplanationJson) -> String {
    let mut out = why_body(it);
    it.history.iter().for_each(|it| line(&mut out, "HISTORY", &history_text(it)));
    out + &as_of_text(&it.as_of)
}

/// Returns the queues as a tree, one line each.
pub fn queues_wide_text(list: &ListJson<QueueJson>) -> String {
    let mut table = Table::new([
        "QUEUE",
        "STATE",
        "WEIGHT",
        "PRIORITY",
        "WAITING",
        "SHARE",
        "USED",
        "DESERVED",
        "GUARANTEE",
        "LIMIT",
    ]);
    for queue in &list.items {
        let share = queue.share.map_or_else(|| "-".to_owned(), |share| format!("{share:.2}"));
        table.row([
            indented_queue(&list.items, queue),
            queue.state.clone(),
            queue.weight.to_string(),
            queue.priority.to_string(),
            format!("{} of {}", queue.waiting, queue.jobs),
            share,
            amounts(&queue.allocated),
            amounts(&queue.deserved),
            amounts(&queue.guarantee),
            amounts(&queue.capability),
        ]);
    }
    table.text() + &as_of_text(&list.as_of)
}

/// Returns the nodes, one line each, with every resource.
pub fn nodes_wide_text(list: &ListJson<NodeJson>) -> String {
    let mut table =
        Table::new(["NODE", "PODS", "FREE", "USED", "ALLOCATABLE", "HYPERNODES", "TAINTS"]);
    for node in &list.items {
        let cordon = node.cordoned.then(|| "cordoned".to_owned());
        let taints: Vec<String> = cordon.into_iter().chain(node.taints.clone()).collect();
        table.row([
            node.name.clone(),
            node.pods.to_string(),
            amounts(&node.free),
            amounts(&node.used),
            amounts(&node.allocatable),
            or_dash(node.hyper_nodes.join(" ")),
            taints.join(" "),
        ]);
    }
    table.text() + &rest_of(list) + &as_of_text(&list.as_of)
}

/// Returns the HyperNodes as a tree, one line each, with every resource.
pub fn hyper_nodes_wide_text(list: &ListJson<HyperNodeJson>) -> String {
    let mut table = Table::new(["HYPERNODE", "TIER", "NODES", "PODS", "FREE", "ALLOCATABLE"]);
    for it in &list.items {
        table.row([
            format!("{}{}", "  ".repeat(it.depth), it.name),
            it.tier.to_string(),
            it.nodes.to_string(),
            it.pods.to_string(),
            amounts(&it.free),
            amounts(&it.allocatable),
        ]);
    }
    table.text() + &rest_of(list) + &as_of_text(&list.as_of)
}

/// Returns the jobs that wait, one line each, with their pods and all codes.
pub fn why_list_wide_text(list: &ExplanationListJson) -> String {
    if list.items.is_empty() {
        return "nothing waits\n".to_owned();
    }
    let mut table = Table::new([
        "JOB", "QUEUE", "PRIORITY", "PLACE", "WAITING", "NEEDED", "READY", "WAITS", "CODE", "ALSO",
        "WHY",
    ]);
    for it in &list.items {
        let gang = |number: fn(&GangJson) -> u32| {
            it.gang.as_ref().map_or_else(|| "-".to_owned(), |gang| number(gang).to_string())
        };
        let place = it.line.as_ref();
        let place = place.map(|place| format!("{}/{}", place.in_queue, place.of_queue));
        table.row([
            it.job_name(),
            or_dash(it.subject.queue.clone().unwrap_or_default()),
            or_dash(it.subject.priority.map(|it| it.to_string()).unwrap_or_default()),
            or_dash(place.unwrap_or_default()),
            gang(|gang| gang.waiting),
            gang(|gang| gang.needed),
            gang(|gang| gang.ready),
            or_dash(it.subject.waiting_seconds.map(duration).unwrap_or_default()),
            it.verdict.code.clone(),
            or_dash(it.verdict.also.join(" ")),
            it.verdict.text.clone(),
        ]);
    }
    table.text() + &rest_of(list)
}

/// Returns amounts as `4 cpu, 8Gi memory`.
fn amounts(of: &AmountsJson) -> String {
    let texts: Vec<String> = of.iter().map(|(name, amount)| format!("{amount} {name}")).collect();
    or_dash(texts.join(", "))
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

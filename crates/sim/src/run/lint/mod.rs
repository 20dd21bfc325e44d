//! What is probably wrong with a cluster, or not taken into account here, in words.

mod capacity;
mod features;
mod queues;
mod refused;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::serve::KINDS;
use vc_objects::field::{name_of, text};
use vc_objects::input::InputObject;
use vc_objects::workload::{SCHEDULER, group_of};

/// All warnings about these objects.
pub(super) fn warnings(objects: &[InputObject]) -> Vec<String> {
    let values: Vec<&Value> = objects.iter().map(|object| &object.value).collect();
    let mut found = unknown_kinds(&values);
    found.extend(refused::warnings(&values));
    found.extend(queues::warnings(&values));
    found.extend(members(&values));
    found.extend(capacity::warnings(&values));
    found.extend(others(&values));
    found.extend(features::warnings(&values));
    found
}

/// Objects of a kind, by its group.
fn of_kind<'a>(values: &[&'a Value], group: &str, kind: &str) -> Vec<&'a Value> {
    let wanted = |value: &&&Value| group_of(value) == group && value["kind"] == kind;
    values.iter().filter(wanted).copied().collect()
}

fn unknown_kinds(values: &[&Value]) -> Vec<String> {
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    for value in values {
        let kind = text(value, "/kind");
        if !KINDS.iter().any(|known| (known.group, known.kind) == (group_of(value), kind)) {
            let name = format!("{} {kind}", text(value, "/apiVersion"));
            *unknown.entry(name).or_default() += 1;
        }
    }
    let describe =
        |(kind, count)| format!("objects of an unknown kind are ignored: {kind}: {count}");
    unknown.into_iter().map(describe).collect()
}

/// PodGroups that need more members than there are pods.
fn members(values: &[&Value]) -> Vec<String> {
    let mut members: BTreeMap<String, i64> = BTreeMap::new();
    for pod in of_kind(values, "", "Pod") {
        *members.entry(super::result::group_of(pod)).or_default() += 1;
    }
    let mut found = Vec::new();
    for group in of_kind(values, "scheduling.volcano.sh", "PodGroup") {
        let name = name_of(group);
        let needed = group["spec"]["minMember"].as_i64().unwrap_or(0);
        let pods = members.get(&name).copied().unwrap_or(0);
        if pods < needed {
            found.push(format!("podgroup {name}: needs {needed} members, has {pods} pods"));
        }
    }
    found
}

/// Pods of other schedulers that wait for them.
fn others(values: &[&Value]) -> Vec<String> {
    let mut waiting: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for pod in of_kind(values, "", "Pod") {
        let scheduler = text(pod, "/spec/schedulerName");
        let waits = text(pod, "/spec/nodeName").is_empty()
            && matches!(text(pod, "/status/phase"), "" | "Pending");
        if scheduler != SCHEDULER && waits {
            waiting.entry(scheduler).or_default().push(name_of(pod));
        }
    }
    let describe = |(scheduler, pods): (&str, Vec<String>)| {
        format!(
            "pods of scheduler {scheduler} without a node are not placed: {}\n\
             hint: set schedulerName: {SCHEDULER}",
            some_of(&pods)
        )
    };
    waiting.into_iter().map(describe).collect()
}

/// The first names, and how many there are besides.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

//! Queues that cannot mean what their author wants: weights and the tree. Specification: core.md
//! 3.9, C-31.

use std::collections::BTreeMap;

use serde_json::Value;

use super::of_kind;
use vc_objects::field::text;

pub(super) fn warnings(values: &[&Value]) -> Vec<String> {
    let queues = of_kind(values, "scheduling.volcano.sh", "Queue");
    let parents: BTreeMap<&str, &str> = queues
        .iter()
        .map(|queue| (text(queue, "/metadata/name"), text(queue, "/spec/parent")))
        .collect();
    let mut found = Vec::new();
    for queue in &queues {
        let name = text(queue, "/metadata/name");
        if let Some(weight) = queue["spec"]["weight"].as_i64()
            && !(1..=65_535).contains(&weight)
        {
            let problem = "spec.weight: must be between 1 and 65535";
            found.push(format!("queue {name}: {problem}: {weight}"));
        }
        let parent = text(queue, "/spec/parent");
        if !matches!(parent, "" | "root" | "default") && !parents.contains_key(parent) {
            found.push(format!("queue {name}: spec.parent: queue {parent} does not exist"));
        }
        if let Some(cycle) = cycle(name, &parents) {
            found.push(format!("queue {name}: spec.parent: the queue tree has a cycle: {cycle}"));
        }
    }
    found
}

/// The way from a queue back to itself; told once, for the first name on it.
fn cycle(start: &str, parents: &BTreeMap<&str, &str>) -> Option<String> {
    let mut way = vec![start];
    let mut name = start;
    while let Some(&parent) = parents.get(name) {
        way.push(parent);
        if parent == start {
            let is_first = way.iter().all(|&name| start <= name);
            return is_first.then(|| way.join(" -> "));
        }
        if parents.len() < way.len() {
            return None;
        }
        name = parent;
    }
    None
}

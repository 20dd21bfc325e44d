//! What was decided against what is expected, exactly (tests/scenarios/README.md, "What is
//! compared"), and the difference in words.

use std::collections::{BTreeMap, BTreeSet};

use super::file::{Expectations, ExpectedGroup};
use super::outcome::{GroupState, ScenarioOutcome};

/// One line for each difference.
pub(super) fn differences(expect: &Expectations, outcome: &ScenarioOutcome) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(binds) = &expect.binds {
        placements("binds", "bound", binds, &outcome.binds_by_pod(), outcome, &mut found);
    }
    count("bindCount", expect.bind_count, outcome.binds.len(), &mut found);
    if let Some(evictions) = &expect.evictions {
        let expected: BTreeSet<&str> = evictions.iter().map(String::as_str).collect();
        let evicted = outcome.evictions.iter().map(String::as_str).collect();
        for pod in expected.difference(&evicted) {
            found.push(format!("evictions: {pod}: expected, but is not evicted"));
        }
        for pod in evicted.difference(&expected) {
            found.push(format!("evictions: {pod}: is evicted, which is not expected"));
        }
    }
    count("evictionCount", expect.eviction_count, outcome.evictions.len(), &mut found);
    if let Some(pipelined) = &expect.pipelined {
        let of = |(pod, node): (&'_ String, &'_ String)| (pod.clone(), node.clone());
        let owned: BTreeMap<String, String> = outcome.pipelined.iter().map(of).collect();
        let actual = owned.iter().map(|(pod, node)| (&**pod, BTreeSet::from([&**node]))).collect();
        placements("pipelined", "pipelined", pipelined, &actual, outcome, &mut found);
    }
    for wanted in expect.messages.iter().flatten() {
        if !outcome.messages.iter().any(|message| message.contains(&**wanted)) {
            let reported: Vec<&str> = outcome.messages.iter().map(String::as_str).collect();
            let reported =
                if reported.is_empty() { "nothing".to_owned() } else { reported.join(" | ") };
            found.push(format!(
                "messages: expected, but not written: {wanted}, written: {reported}"
            ));
        }
    }
    for (name, expected) in expect.pod_groups.iter().flatten() {
        group(name, expected, outcome.pod_groups.get(name), &mut found);
    }
    found
}

fn count(key: &str, expected: Option<usize>, actual: usize, found: &mut Vec<String>) {
    if let Some(expected) = expected.filter(|&expected| expected != actual) {
        found.push(format!("{key}: expected {expected}, is {actual}"));
    }
}

/// Exactly these pods, each on one of its nodes; an empty list is any node.
fn placements(
    key: &str,
    done: &str,
    expected: &BTreeMap<String, Vec<String>>,
    actual: &BTreeMap<&str, BTreeSet<&str>>,
    outcome: &ScenarioOutcome,
    found: &mut Vec<String>,
) {
    for (pod, nodes) in expected {
        let place = if nodes.is_empty() { "any node".to_owned() } else { nodes.join(" or ") };
        match actual.get(&**pod) {
            None => {
                let why = outcome.waiting.get(pod).map_or(String::new(), |why| format!(": {why}"));
                found.push(format!("{key}: {pod}: expected on {place}, but is not {done}{why}"));
            }
            Some(on) => {
                let elsewhere = |node: &&&str| !nodes.iter().any(|wanted| wanted == **node);
                for node in on.iter().filter(elsewhere).filter(|_| !nodes.is_empty()) {
                    found.push(format!("{key}: {pod}: expected on {place}, is on {node}"));
                }
            }
        }
    }
    for (pod, nodes) in actual.iter().filter(|(pod, _)| !expected.contains_key(**pod)) {
        let nodes: Vec<&str> = nodes.iter().copied().collect();
        let nodes = nodes.join(", ");
        found.push(format!("{key}: {pod}: is {done} to {nodes}, which is not expected"));
    }
}

fn group(
    name: &str,
    expected: &ExpectedGroup,
    actual: Option<&GroupState>,
    found: &mut Vec<String>,
) {
    let Some(actual) = actual else {
        found.push(format!("podGroups: {name}: there is no such PodGroup"));
        return;
    };
    let mut differs = |field: &str, expected: &Option<String>, is: &str| {
        if let Some(expected) = expected.as_deref().filter(|expected| *expected != is) {
            found.push(format!("podGroups: {name}: {field}: expected {expected}, is {is}"));
        }
    };
    differs("phase", &expected.phase, &actual.phase);
    for (kind, condition) in &expected.conditions {
        let absent = ("absent".to_owned(), "absent".to_owned());
        let (status, reason) = actual.conditions.get(kind).unwrap_or(&absent);
        differs(&format!("condition {kind}: status"), &condition.status, status);
        differs(&format!("condition {kind}: reason"), &condition.reason, reason);
    }
    for kind in expected.conditions.keys().filter(|kind| !actual.conditions.contains_key(*kind)) {
        let named = &expected.conditions[kind];
        if named.status.is_none() && named.reason.is_none() {
            found.push(format!("podGroups: {name}: condition {kind}: expected, is absent"));
        }
    }
}

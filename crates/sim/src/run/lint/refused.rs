//! Objects that a real API server would not store: names, amounts, and fields that are required. Here
//! they are taken as they are, as far as that goes.

use std::collections::HashMap;

use serde_json::{Map, Value};
use vc_resource::Quantity;

use super::some_of;
use crate::serve::{ServedKind, refusal_of_new};
use vc_objects::field::{name_of, text};
use vc_objects::workload::group_of;

/// The largest priority of a class that is not of the system.
const MOST_PRIORITY: i64 = 1_000_000_000;

/// Resource lists of a node, as JSON pointers.
const NODE_LISTS: &[&str] = &["/status/allocatable", "/status/capacity"];
/// Likewise of a ResourceQuota.
const QUOTA_LISTS: &[&str] = &["/spec/hard", "/status/hard", "/status/used"];

/// Each problem once, with the objects that have it.
#[derive(Default)]
struct FoundProblems {
    order: Vec<(&'static str, String, Vec<String>)>,
    known: HashMap<(&'static str, String), usize>,
}

pub(super) fn warnings(values: &[&Value]) -> Vec<String> {
    let mut found = FoundProblems::default();
    for value in values {
        let version = text(value, "/apiVersion");
        let Some(kind) = ServedKind::of(version, text(value, "/kind")) else { continue };
        let mut problems: Vec<String> =
            refusal_of_new(kind, value).map(|why| refused(&why)).into_iter().collect();
        match (group_of(value), text(value, "/kind")) {
            ("", "Pod") => pod(value, &mut problems),
            ("", "Node") => lists(value, NODE_LISTS, &mut problems),
            ("", "ResourceQuota") => lists(value, QUOTA_LISTS, &mut problems),
            ("scheduling.k8s.io", "PriorityClass") => priority_class(value, &mut problems),
            _ => {}
        }
        found.add(kind.kind, value, problems);
    }
    found.describe()
}

impl FoundProblems {
    fn add(&mut self, noun: &'static str, value: &Value, problems: Vec<String>) {
        for problem in problems {
            let at = *self.known.entry((noun, problem)).or_insert_with_key(|(noun, problem)| {
                self.order.push((*noun, problem.clone(), Vec::new()));
                self.order.len() - 1
            });
            self.order[at].2.push(name_of(value));
        }
    }

    fn describe(self) -> Vec<String> {
        let describe = |(noun, problem, names): (&str, String, Vec<String>)| {
            let noun = noun.to_lowercase();
            format!("{noun} {}: {problem}", some_of(&names))
        };
        self.order.into_iter().map(describe).collect()
    }
}

fn refused(why: &str) -> String {
    format!("an API server refuses it: {why}")
}

fn pod(pod: &Value, problems: &mut Vec<String>) {
    let at = |path: &str| path[1..].replace('/', ".");
    for list in ["/spec/initContainers", "/spec/containers"] {
        let containers = pod.pointer(list).and_then(Value::as_array).into_iter().flatten();
        for (number, container) in containers.enumerate() {
            let path = format!("{}[{number}]", at(list));
            if text(container, "/name").is_empty() {
                problems.push(refused(&format!("{path}.name: Required value")));
            }
            requirements(&container["resources"], &format!("{path}.resources"), problems);
        }
    }
    requirements(&pod["spec"]["resources"], "spec.resources", problems);
    lists(pod, &["/spec/overhead"], problems);
}

/// Amounts of some lists of an object.
fn lists(value: &Value, pointers: &[&str], problems: &mut Vec<String>) {
    for pointer in pointers {
        let path = pointer[1..].replace('/', ".");
        for (name, amount) in amounts(value.pointer(pointer)) {
            problems.extend(amount_problem(&format!("{path}.{name}"), name, amount));
        }
    }
}

/// `resources` of a container or a pod.
fn requirements(resources: &Value, path: &str, problems: &mut Vec<String>) {
    let limits: HashMap<&str, Quantity> = amounts(resources.get("limits")).collect();
    for (list, others) in [("limits", None), ("requests", Some(&limits))] {
        for (name, amount) in amounts(resources.get(list)) {
            let path = format!("{path}.{list}.{name}");
            problems.extend(amount_problem(&path, name, amount));
            problems.extend(others.and_then(|limits| limit_problem(&path, name, amount, limits)));
        }
    }
}

fn amounts(list: Option<&Value>) -> impl Iterator<Item = (&str, Quantity)> {
    let entries = list.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    entries.filter_map(|(name, value)| Some((name.as_str(), quantity(value)?)))
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

fn amount_problem(path: &str, name: &str, amount: Quantity) -> Option<String> {
    let shown = amount.text(name);
    if amount.is_negative() {
        return Some(refused(&format!("{path}: {shown}: must be greater than or equal to 0")));
    }
    if amount == Quantity::from_value(i64::MAX) {
        return Some(format!(
            "{path}: {shown}: is the largest amount there is, more does not count"
        ));
    }
    let is_fraction = amount != Quantity::from_value(amount.value());
    let why = || refused(&format!("{path}: {shown}: must be an integer"));
    (is_fraction && is_whole(name)).then(why)
}

/// Resources that are handed out in whole units, and never to more than have them.
fn is_whole(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") || name.starts_with("hugepages-")
}

fn limit_problem(
    path: &str,
    name: &str,
    request: Quantity,
    limits: &HashMap<&str, Quantity>,
) -> Option<String> {
    let why = match limits.get(name) {
        Some(limit) if *limit < request => {
            format!("must be less than or equal to the limit, {}", limit.text(name))
        }
        Some(limit) if is_whole(name) && *limit != request => {
            format!("must be equal to the limit, {}", limit.text(name))
        }
        None if is_whole(name) => "a limit must be set, to the same amount".to_owned(),
        _ => return None,
    };
    Some(refused(&format!("{path}: {}: {why}", request.text(name))))
}

fn priority_class(class: &Value, problems: &mut Vec<String>) {
    let is_of_system = text(class, "/metadata/name").starts_with("system-");
    match class["value"].as_i64() {
        None => problems.push(refused("value: Required value")),
        Some(value) if MOST_PRIORITY < value && !is_of_system => {
            problems.push(refused(&format!("value: {value}: must be at most {MOST_PRIORITY}")));
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn warning(value: &Value) -> String {
        warnings(&[value]).join("\n")
    }

    fn pod_with(resources: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "p", "namespace": "default" },
            "spec": { "containers": [{ "name": "c", "resources": resources }] },
        })
    }

    #[test]
    fn amounts_of_pods() {
        let pod = "pod default/p: ";
        let refused = "an API server refuses it: spec.containers[0].resources.requests";
        for (resources, expected) in [
            (json!({ "requests": { "cpu": 1, "memory": "1Gi" } }), String::new()),
            (
                json!({ "requests": { "cpu": "-1" } }),
                format!("{pod}{refused}.cpu: -1: must be greater than or equal to 0"),
            ),
            (
                json!({ "requests": { "cpu": 3 }, "limits": { "cpu": "2500m" } }),
                format!("{pod}{refused}.cpu: 3: must be less than or equal to the limit, 2500m"),
            ),
            (
                json!({ "requests": { "memory": "8Ei" } }),
                format!(
                    "{pod}spec.containers[0].resources.requests.memory: 9223372036854775807: is \
                     the largest amount there is, more does not count"
                ),
            ),
            (
                json!({ "requests": { "nvidia.com/gpu": 1 } }),
                format!(
                    "{pod}{refused}.nvidia.com/gpu: 1: a limit must be set, to the same amount"
                ),
            ),
            (
                json!({ "requests": { "nvidia.com/gpu": 1 }, "limits": { "nvidia.com/gpu": 2 } }),
                format!("{pod}{refused}.nvidia.com/gpu: 1: must be equal to the limit, 2"),
            ),
            (
                json!({ "requests": { "a.b/c": "1500m" }, "limits": { "a.b/c": 2 } }),
                format!("{pod}{refused}.a.b/c: 1500m: must be an integer"),
            ),
        ] {
            let found = warning(&pod_with(&resources));
            assert_eq!(found.lines().next().unwrap_or_default(), expected, "{resources}");
        }
    }

    #[test]
    fn other_objects() {
        for (value, expected) in [
            (
                json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "N" },
                    "status": { "allocatable": { "cpu": "-4" } } }),
                "node N: an API server refuses it: metadata.name: Invalid value: \"N\": must \
                 consist of lower case letters, digits, '-' or '.', and start and end with a \
                 letter or digit\n\
                 node N: an API server refuses it: status.allocatable.cpu: -4: must be greater \
                 than or equal to 0",
            ),
            (
                json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                    "metadata": { "name": "top" }, "value": 2_000_000_000 }),
                "priorityclass top: an API server refuses it: value: 2000000000: must be at most \
                 1000000000",
            ),
            (
                json!({ "apiVersion": "v1", "kind": "Pod",
                    "metadata": { "name": "p", "namespace": "default" }, "spec": {} }),
                "pod default/p: an API server refuses it: spec.containers: Required value",
            ),
        ] {
            assert_eq!(warning(&value), expected);
        }
    }

    #[test]
    fn one_line_for_all_that_have_it() {
        let pods: Vec<Value> = (0..5)
            .map(|number| {
                let mut pod = pod_with(&json!({ "requests": { "cpu": -1 } }));
                pod["metadata"]["name"] = format!("p{number}").into();
                pod
            })
            .collect();
        let found = warnings(&pods.iter().collect::<Vec<_>>());
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("pod default/p0, default/p1, default/p2 and 2 more: "));
    }
}

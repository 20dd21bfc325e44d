//! What an API server, Volcano's CRDs and its webhooks fill in when an object is created
//! (core.md 3.9).

use serde_json::{Map, Value, json};

use super::{kinds::ServedKind, object::text};

/// The grace period of a pod that names none, in seconds.
pub(super) const GRACE_SECONDS: i64 = 30;

/// Fills in the defaults of a kind, at creation and whenever the object is written whole.
pub(super) fn apply(kind: &ServedKind, value: &mut Value) {
    match (kind.group, kind.plural) {
        ("", "pods") => pod(value),
        ("", "namespaces") => {
            default(value, &["status", "phase"], json!("Active"));
            let name = value["metadata"]["name"].clone();
            default(value, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
        }
        ("scheduling.volcano.sh", "podgroups") => {
            default(value, &["spec", "queue"], json!("default"));
            default(value, &["status", "phase"], json!("Pending"));
        }
        ("scheduling.volcano.sh", "queues") => {
            default(value, &["spec", "weight"], json!(1));
            default(value, &["spec", "reclaimable"], json!(true));
            default(value, &["status", "state"], json!("Open"));
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            default(value, &["preemptionPolicy"], json!("PreemptLowerPriority"));
        }
        _ => {}
    }
}

fn pod(pod: &mut Value) {
    default(pod, &["spec", "schedulerName"], json!("default-scheduler"));
    default(pod, &["spec", "restartPolicy"], json!("Always"));
    default(pod, &["spec", "terminationGracePeriodSeconds"], json!(GRACE_SECONDS));
    default(pod, &["status", "phase"], json!("Pending"));
    for list in ["/spec/containers", "/spec/initContainers"] {
        let containers = pod.pointer_mut(list).and_then(Value::as_array_mut);
        containers.into_iter().flatten().for_each(requests_from_limits);
    }
}

/// A resource with a limit and no request requests its limit.
fn requests_from_limits(container: &mut Value) {
    let limits = container.pointer("/resources/limits").and_then(Value::as_object).cloned();
    for (resource, limit) in limits.into_iter().flatten() {
        default(container, &["resources", "requests", &resource], limit);
    }
}

/// Gives a pod the number of its priority class. `class` is the one that it names, or the global
/// default, if any; `spec.priority` is what admission says, whatever the client wrote.
pub(super) fn set_priority(pod: &mut Value, class: Option<&Value>) {
    let Some(class) = class else {
        pod["spec"]["priority"] = json!(0);
        return;
    };
    pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
    pod["spec"]["priority"] = class["value"].clone();
    let policy = match text(class, "/preemptionPolicy") {
        "" => "PreemptLowerPriority",
        policy => policy,
    };
    default(pod, &["spec", "preemptionPolicy"], json!(policy));
}

/// The objects that every cluster has.
pub(super) fn initial_objects() -> Vec<Value> {
    let namespace = |name: &str| {
        let metadata = json!({ "name": name });
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })
    };
    let class = |name: &str, value: i64| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": { "name": name }, "value": value,
        })
    };
    let namespaces = ["default", "kube-system", "kube-public", "kube-node-lease", "volcano-system"]
        .map(namespace);
    let classes = [
        class("system-cluster-critical", 2_000_000_000),
        class("system-node-critical", 2_000_001_000),
    ];
    namespaces.into_iter().chain(classes).collect()
}

/// Sets a field that is absent, `null` or empty. What is on the way to it is an object: the shape
/// of the whole has been checked.
fn default(value: &mut Value, path: &[&str], to: Value) {
    let mut field = value;
    for step in path {
        if field.is_null() {
            *field = Value::Object(Map::new());
        }
        let Some(fields) = field.as_object_mut() else {
            return;
        };
        field = fields.entry(*step).or_insert(Value::Null);
    }
    if field.is_null() || field.as_str() == Some("") {
        *field = to;
    }
}

//! Parts of pods and kinds of objects that are not taken into account yet.

use serde_json::Value;

use super::{of_kind, some_of};
use crate::field::{name_of, text};
use crate::run::reasons::waits;

/// What is looked for in a pod, and its name.
type Feature = (&'static str, fn(&Value) -> bool);

const FEATURES: &[Feature] = &[
    ("spec.resourceClaims", |pod| has(pod, "/spec/resourceClaims")),
    ("persistent volumes", has_claimed_volume),
];

/// Group and kind of objects that do not change decisions yet.
const KINDS: &[(&str, &str)] = &[
    ("topology.volcano.sh", "HyperNode"),
    ("nodeinfo.volcano.sh", "Numatopology"),
    ("shard.volcano.sh", "NodeShard"),
];

pub(super) fn warnings(values: &[&Value]) -> Vec<String> {
    let mut found = Vec::new();
    let waiting: Vec<&Value> =
        of_kind(values, "", "Pod").into_iter().filter(|pod| waits(pod)).collect();
    for (name, is_used) in FEATURES {
        let pods: Vec<String> =
            waiting.iter().filter(|pod| is_used(pod)).map(|pod| name_of(pod)).collect();
        if !pods.is_empty() {
            found.push(format!("{name} not taken into account yet: {}", some_of(&pods)));
        }
    }
    for (group, kind) in KINDS {
        let count = of_kind(values, group, kind).len();
        if 0 < count {
            found.push(format!("{kind} objects are not taken into account yet: {count}"));
        }
    }
    found
}

/// Whether there is something at a JSON pointer.
fn has(pod: &Value, pointer: &str) -> bool {
    match pod.pointer(pointer) {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(_) => true,
    }
}

fn has_claimed_volume(pod: &Value) -> bool {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    volumes.into_iter().flatten().any(|volume| {
        !text(volume, "/persistentVolumeClaim/claimName").is_empty()
            || volume["ephemeral"].is_object()
    })
}

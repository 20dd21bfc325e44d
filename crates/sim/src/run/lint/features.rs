//! Kinds of objects that are not taken into account yet.

use serde_json::Value;

use super::of_kind;

/// Group and kind of objects that do not change decisions yet.
const KINDS: &[(&str, &str)] = &[("shard.volcano.sh", "NodeShard")];

pub(super) fn warnings(values: &[&Value]) -> Vec<String> {
    let count = |(group, kind): &(&str, &'static str)| (of_kind(values, group, kind).len(), *kind);
    let reported =
        |(count, kind)| format!("{kind} objects are not taken into account yet: {count}");
    KINDS.iter().map(count).filter(|(count, _)| 0 < *count).map(reported).collect()
}

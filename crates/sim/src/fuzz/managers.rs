//! I10: the scheduler writes its own fields only. Where the server keeps who wrote which field last
//! (`metadata.managedFields`), its fields are compared with those that are its to write.

use serde_json::Value;

use crate::serve::{NODES, POD_GROUPS, PODS, ServedKind, Store};

/// As whom the processes write: the program of their user agent.
pub(super) const MANAGER: &str = "vc-scheduler";

/// Fields that the scheduler writes, by kind. What is below them is its own, too.
const OWN_FIELDS: [(&ServedKind, &[&str]); 3] = [
    (
        &PODS,
        &[
            "status",
            "spec.nodeName",
            "spec.schedulingGates",
            "metadata.annotations",
            "metadata.labels",
        ],
    ),
    (&POD_GROUPS, &["status", "metadata.annotations"]),
    (&NODES, &["metadata.annotations"]),
];

/// Returns one text for each field that the scheduler has written and that is not its own.
pub(super) fn written_fields(store: &Store) -> Vec<String> {
    let mut faults = Vec::new();
    for (kind, own) in OWN_FIELDS {
        for object in store.list(kind, None).objects {
            let entries = object.value["metadata"]["managedFields"].as_array();
            let entries = entries.into_iter().flatten();
            for entry in entries.filter(|entry| entry["manager"] == MANAGER) {
                let foreign = foreign_fields(&entry["fieldsV1"], String::new(), own);
                let texts = foreign.into_iter().map(|field| {
                    format!("I10: the scheduler wrote {field} of {} {}", kind.kind, object.name())
                });
                faults.extend(texts);
            }
        }
    }
    faults
}

/// Returns the paths of fields that are neither own ones nor lead to such.
fn foreign_fields(fields: &Value, path: String, own: &[&str]) -> Vec<String> {
    let mut foreign = Vec::new();
    for (name, below) in fields.as_object().into_iter().flatten() {
        let name = name.trim_start_matches("f:");
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let is_above = |own: &&str| own.starts_with(&format!("{path}."));
        match () {
            () if own.contains(&path.as_str()) => {}
            () if own.iter().any(is_above) => foreign.extend(foreign_fields(below, path, own)),
            () => foreign.push(path),
        }
    }
    foreign
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_others_are_named() {
        let own = ["status", "spec.nodeName"];
        let fields = json!({
            "f:status": { "f:phase": {} },
            "f:spec": { "f:nodeName": {}, "f:priority": {} },
            "f:metadata": { "f:labels": { "f:a": {} } },
        });
        let mut foreign = foreign_fields(&fields, String::new(), &own);
        foreign.sort();
        assert_eq!(foreign, ["metadata", "spec.priority"]);
        assert_eq!(foreign_fields(&json!({ "f:status": {} }), String::new(), &own), [""; 0]);
    }
}

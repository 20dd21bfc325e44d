//! I10: the scheduler writes its own fields only. Where the server keeps who writes which field
//! (`metadata.managedFields`), the fields that each update sets or takes away are compared with those that are the
//! scheduler's to write.

use serde_json::Value;

use crate::serve::{NODES, POD_GROUPS, PODS, ServedKind, Store, TrackedWrite};

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

/// Returns one text for each field that the scheduler has written since the last call and that is not its own.
pub(super) fn written_fields(store: &Store) -> Vec<String> {
    store
        .take_tracked()
        .iter()
        .filter(|write| write.manager == MANAGER)
        .flat_map(foreign_of)
        .collect()
}

fn foreign_of(write: &TrackedWrite) -> Vec<String> {
    let own = OWN_FIELDS.iter().find(|(kind, _)| **kind == *write.kind);
    let Some((_, own)) = own else { return Vec::new() };
    let foreign = write.fields.iter().flat_map(|fields| foreign_fields(fields, String::new(), own));
    let text =
        |field| format!("I10: the scheduler wrote {field} of {} {}", write.kind.kind, write.name);
    foreign.map(text).collect()
}

/// Returns the paths of fields that are not own ones: those below which nothing more is told.
fn foreign_fields(fields: &Value, path: String, own: &[&str]) -> Vec<String> {
    let mut foreign = Vec::new();
    for (name, below) in fields.as_object().into_iter().flatten() {
        let name = name.trim_start_matches("f:");
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let is_above = |own: &&str| own.starts_with(&format!("{path}."));
        let is_whole = below.as_object().is_none_or(serde_json::Map::is_empty);
        match () {
            () if own.contains(&path.as_str()) => {}
            () if !is_whole && own.iter().any(is_above) => {
                foreign.extend(foreign_fields(below, path, own))
            }
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
        assert_eq!(
            foreign_fields(&json!({ "f:spec": {} }), String::new(), &own),
            ["spec"],
            "the whole of it"
        );
    }

    #[test]
    fn a_field_that_is_taken_away_counts() {
        let lost = json!({ "f:metadata": { "f:finalizers": {} } });
        let write = TrackedWrite {
            manager: MANAGER.to_owned(),
            kind: &PODS,
            name: "p".to_owned(),
            fields: [json!({}), lost],
        };
        assert_eq!(foreign_of(&write), ["I10: the scheduler wrote metadata.finalizers of Pod p"]);
    }
}

//! The states of plugins in a checkpoint, with other texts. They are stored as CBOR, and only the
//! plugins know their types. Specification: answers.md 15 (ANS-102).

use std::collections::BTreeMap;

use ciborium::Value;
use serde::Serialize;

use crate::texts::{TextChange, TextPlace};

/// Plugins whose state decides. The state of the others says what they have reported, and is left
/// out.
const DECIDING: &[&str] = &[COHORT, "fairshare", "pdb", "rescheduling", "tdm"];

/// The plugin whose state has three parts. The second part says what it has reported.
const COHORT: &str = "cohort";

/// Fields of the structs in these states. A map is taken for a struct if it has no other keys.
const FIELDS: &[&str] = &[
    "account",
    "accounts",
    "amounts",
    "at_micros",
    "charge",
    "charges",
    "closed",
    "cluster",
    "decay",
    "dirty",
    "fallen",
    "first",
    "first_micros",
    "free",
    "half_life",
    "has_begun",
    "has_preempted",
    "in_session",
    "is_dirty",
    "is_held",
    "is_saved",
    "is_unread",
    "jobs",
    "least",
    "ledger",
    "more",
    "most",
    "n_charged",
    "n_failed",
    "n_jobs",
    "n_pipelined",
    "n_quota_changes",
    "n_times",
    "name",
    "names",
    "namespace",
    "now_weight",
    "opened",
    "operated",
    "origin",
    "parts",
    "pipelined",
    "places",
    "pod",
    "present",
    "queue",
    "queues",
    "rate",
    "records",
    "reported",
    "reported_parts",
    "saved",
    "saves",
    "sent_micros",
    "shares",
    "since_micros",
    "step_micros",
    "step_usage",
    "swept",
    "table",
    "uid",
    "until_micros",
    "usage",
    "weight",
    "wide",
];

/// Returns the states of the plugins that decide, by name of the plugin.
///
/// # Errors
/// A state is no CBOR; the text names the plugin.
pub(crate) fn changed_states<T: Serialize + ?Sized>(
    states: &T,
    change: &TextChange<'_>,
) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let states = Value::serialized(states).map_err(|error| error.to_string())?;
    let states: BTreeMap<String, Vec<u8>> =
        states.deserialized().map_err(|error| error.to_string())?;
    let mut changed = BTreeMap::new();
    for (plugin, bytes) in states {
        if DECIDING.contains(&plugin.as_str()) {
            let bytes = changed_state(&plugin, &bytes, change)?;
            changed.insert(plugin, bytes);
        }
    }
    Ok(changed)
}

fn changed_state(plugin: &str, bytes: &[u8], change: &TextChange<'_>) -> Result<Vec<u8>, String> {
    let mut state: Value =
        ciborium::from_reader(bytes).map_err(|error| format!("{plugin}: {error}"))?;
    if plugin == COHORT
        && let Some(reported) = state.as_array_mut().and_then(|parts| parts.get_mut(1))
    {
        *reported = Value::Array(Vec::new());
    }
    let mut out = Vec::new();
    ciborium::into_writer(&changed_value(state, TextPlace::default(), change), &mut out)
        .map_err(|error| format!("{plugin}: {error}"))?;
    Ok(out)
}

fn changed_value(value: Value, place: TextPlace, change: &TextChange<'_>) -> Value {
    match value {
        Value::Text(text) => Value::Text(change(place, &text).unwrap_or(text)),
        Value::Array(list) => {
            let changed = list.into_iter().map(|value| changed_value(value, place, change));
            Value::Array(changed.collect())
        }
        Value::Map(entries) => {
            let is_struct = entries.iter().all(|(key, _)| field_of(key).is_some());
            let changed = entries.into_iter().map(|(key, value)| {
                match field_of(&key).filter(|_| is_struct) {
                    Some(field) => {
                        (key, changed_value(value, TextPlace { field, ..place }, change))
                    }
                    None => {
                        let key = changed_value(key, TextPlace { is_key: true, ..place }, change);
                        (key, changed_value(value, place, change))
                    }
                }
            });
            Value::Map(changed.collect())
        }
        other => other,
    }
}

/// Returns the field that a key names. Returns `None` if the key is no field.
fn field_of(key: &Value) -> Option<&'static str> {
    let key = key.as_text()?;
    FIELDS.iter().copied().find(|&field| field == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Account {
        queue: &'static str,
        weight: i64,
    }

    fn bytes(state: &impl Serialize) -> Vec<u8> {
        let mut bytes = Vec::new();
        ciborium::into_writer(state, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn ans_102_names_in_states_of_plugins_are_replaced() {
        let account = |queue| Account { queue, weight: 3 };
        let by_key = |key| BTreeMap::from([((key, "u"), account(key))]);
        let reported = vec![("research", "text")];
        let states = BTreeMap::from([
            ("fairshare", bytes(&by_key("research"))),
            ("cohort", bytes(&(BTreeMap::from([("research", 7)]), reported, 1))),
            ("nodegroup", bytes(&["research"])),
        ]);
        let change = |_: TextPlace, text: &str| (text == "research").then(|| "a0000001".to_owned());
        let changed = changed_states(&states, &change).unwrap();
        let none: Vec<(&str, &str)> = Vec::new();
        let expected = BTreeMap::from([
            ("fairshare".to_owned(), bytes(&by_key("a0000001"))),
            ("cohort".to_owned(), bytes(&(BTreeMap::from([("a0000001", 7)]), none, 1))),
        ]);
        assert_eq!(changed, expected);
    }
}

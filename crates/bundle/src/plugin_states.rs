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

/// The structs in these states, each with its fields. A map is taken for a struct if it has the
/// fields of one, and no other keys.
const STRUCTS: &[&[&str]] = &[
    // fairshare
    &["ledger", "reported_parts"],
    &[
        "decay",
        "accounts",
        "free",
        "places",
        "jobs",
        "dirty",
        "now_weight",
        "swept",
        "step_micros",
        "pipelined",
        "operated",
        "saves",
        "is_unread",
        "shares",
        "n_quota_changes",
    ],
    &[
        "queue",
        "name",
        "weight",
        "usage",
        "in_session",
        "step_usage",
        "pipelined",
        "reported",
        "saved",
        "n_jobs",
        "is_dirty",
    ],
    &["account", "charge", "n_charged", "n_pipelined"],
    &["closed", "rate"],
    &["half_life", "origin"],
    &["opened", "least", "most"],
    &["is_saved", "at_micros", "n_failed", "is_held"],
    &["table", "saved", "names", "has_begun", "since_micros", "step_micros", "parts"],
    &["queues", "cluster"],
    // Amounts by resource.
    &["amounts", "present", "wide"],
    &["first", "more"],
    // cohort
    &["first_micros", "records"],
    &["has_preempted", "n_times", "until_micros"],
    // pdb
    &["fallen", "charges"],
    &["uid", "pod", "sent_micros"],
];

/// Fields that states of earlier versions do not have.
const NEW_FIELDS: &[&str] = &["is_held", "is_unread"];

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
            let fields = fields_of(&entries);
            let changed = entries.into_iter().map(|(key, value)| match field_of(fields, &key) {
                Some(field) => (key, changed_value(value, TextPlace { field, ..place }, change)),
                None => {
                    let key = changed_value(key, TextPlace { is_key: true, ..place }, change);
                    (key, changed_value(value, place, change))
                }
            });
            Value::Map(changed.collect())
        }
        other => other,
    }
}

/// Returns the fields of the struct that these are the entries of. Returns no fields for a map.
fn fields_of(entries: &[(Value, Value)]) -> &'static [&'static str] {
    let has = |field: &str| entries.iter().any(|(key, _)| key.as_text() == Some(field));
    let is_it = |fields: &&'static [&'static str]| {
        entries.iter().all(|(key, _)| field_of(fields, key).is_some())
            && fields.iter().all(|field| NEW_FIELDS.contains(field) || has(field))
    };
    STRUCTS.iter().copied().find(is_it).unwrap_or_default()
}

/// Returns the field that a key names. Returns `None` if the key is no field.
fn field_of(fields: &[&'static str], key: &Value) -> Option<&'static str> {
    let key = key.as_text()?;
    fields.iter().copied().find(|&field| field == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Charge {
        uid: &'static str,
        pod: &'static str,
        sent_micros: i64,
    }

    fn bytes(state: &impl Serialize) -> Vec<u8> {
        let mut bytes = Vec::new();
        ciborium::into_writer(state, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn ans_102_names_in_states_of_plugins_are_replaced() {
        let charge = |pod| Charge { uid: "u", pod, sent_micros: 3 };
        let by_key = |key| BTreeMap::from([((key, "u"), charge(key))]);
        let reported = vec![("research", "text")];
        let states = BTreeMap::from([
            ("pdb", bytes(&by_key("research"))),
            ("cohort", bytes(&(BTreeMap::from([("research", 7)]), reported, 1))),
            ("nodegroup", bytes(&["research"])),
        ]);
        let change = |_: TextPlace, text: &str| (text == "research").then(|| "a0000001".to_owned());
        let changed = changed_states(&states, &change).unwrap();
        let none: Vec<(&str, &str)> = Vec::new();
        let expected = BTreeMap::from([
            ("pdb".to_owned(), bytes(&by_key("a0000001"))),
            ("cohort".to_owned(), bytes(&(BTreeMap::from([("a0000001", 7)]), none, 1))),
        ]);
        assert_eq!(changed, expected);
    }

    #[test]
    fn ans_102_keys_with_the_words_of_fields_are_names() {
        let rename = |_: TextPlace, text: &str| Some(format!("{text}!"));
        let by_queue = |keys: [&'static str; 2]| BTreeMap::from(keys.map(|key| (key, 1)));
        for (keys, expected) in [
            (["pod", "uid"], ["pod!", "uid!"]),
            (["closed", "rate"], ["closed", "rate"]),
            (["closed", "jobs"], ["closed!", "jobs!"]),
        ] {
            let changed = changed_state("pdb", &bytes(&by_queue(keys)), &rename).unwrap();
            assert_eq!(changed, bytes(&by_queue(expected)), "{keys:?}");
        }
    }
}

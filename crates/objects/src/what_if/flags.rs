//! Changes as flags: each becomes one change of a document. Specification: answers.md 13.

use std::path::Path;

use serde_json::{Value, json};

use super::parse::QUEUE_FIELDS;

/// Flags with changes, as they were written.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangeFlags<'a> {
    /// `--conf`: another configuration of the scheduler.
    pub conf: Option<&'a Path>,
    /// `--set-queue`.
    pub set_queue: &'a [String],
    /// `--add-nodes`.
    pub add_nodes: &'a [String],
    /// `--drain`.
    pub drain: &'a [String],
}

impl ChangeFlags<'_> {
    /// Returns the changes, each with its flag as it was written.
    ///
    /// # Errors
    /// A flag has another form, or a file cannot be read.
    pub fn changes(self) -> Result<Vec<(String, Value)>, String> {
        let mut found = Vec::new();
        if let Some(path) = self.conf {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            found.push((format!("--conf {}", path.display()), json!({ "conf": text })));
        }
        for text in self.set_queue {
            let change = set_queue(text).map_err(|error| format!("--set-queue: {error}"))?;
            found.push((format!("--set-queue {text}"), change));
        }
        for text in self.add_nodes {
            let change = add_nodes(text).map_err(|error| format!("--add-nodes: {error}"))?;
            found.push((format!("--add-nodes {text}"), change));
        }
        found.extend(self.drain.iter().map(|node| (format!("--drain {node}"), drain(node))));
        Ok(found)
    }
}

/// Returns the change of `--add-nodes LIKE=COUNT`.
fn add_nodes(text: &str) -> Result<Value, String> {
    let (like, count) = text.split_once('=').unwrap_or((text, "1"));
    let count: i64 = count.parse().map_err(|_| format!("{count:?} is not a number"))?;
    Ok(json!({ "addNodes": { "like": like, "count": count } }))
}

/// Returns the change of `--drain NODE`.
fn drain(node: &str) -> Value {
    json!({ "removeNodes": { "names": [node] } })
}

/// Returns the change of `--set-queue NAME.FIELD=VALUE`, or `NAME.FIELD.RESOURCE=VALUE`.
fn set_queue(text: &str) -> Result<Value, String> {
    let wanted =
        || format!("{text:?} is not NAME.FIELD=VALUE, with a FIELD of {}", QUEUE_FIELDS.join(", "));
    let (path, value) = text.split_once('=').ok_or_else(wanted)?;
    // Names of queues may have dots, and so do names of resources.
    let splits = path.match_indices('.').map(|(at, _)| (&path[..at], &path[at + 1..]));
    let mut found = splits.filter_map(|(name, rest)| {
        let (field, resource) = match rest.split_once('.') {
            Some((field, resource)) => (field, Some(resource)),
            None => (rest, None),
        };
        (!name.is_empty() && QUEUE_FIELDS.contains(&field)).then_some((name, field, resource))
    });
    let (name, field, resource) = found.next().ok_or_else(wanted)?;
    let value = match resource {
        Some(resource) => json!({ resource: value }),
        None => scalar(value),
    };
    Ok(json!({ "setQueue": { "name": name, field: value } }))
}

/// A number or truth value as such, anything else as text.
fn scalar(text: &str) -> Value {
    match text.parse::<i64>() {
        Ok(number) => number.into(),
        Err(_) => match text {
            "true" => true.into(),
            "false" => false.into(),
            _ => text.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_changes() {
        let cases = [
            ("q.weight=4", json!({ "name": "q", "weight": 4 })),
            ("a.b.parent=root", json!({ "name": "a.b", "parent": "root" })),
            (
                "q.capability.nvidia.com/gpu=20",
                json!({ "name": "q", "capability": { "nvidia.com/gpu": "20" } }),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(set_queue(text), Ok(json!({ "setQueue": expected })), "{text}");
        }
        for text in ["q.weight", "weight=4", "q.colour=red", ".weight=4"] {
            assert!(set_queue(text).is_err(), "{text}");
        }
        assert_eq!(add_nodes("g1=2"), Ok(json!({ "addNodes": { "like": "g1", "count": 2 } })));
        assert!(add_nodes("g1=x").is_err());
    }
}

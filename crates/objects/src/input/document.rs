//! One document: an object, or a list of objects in which each item knows its line.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use serde_yaml::Spanned;

/// API version of questions.
pub const ANSWERS: &str = "answers.volcano.sh/v1";

/// A document with the items of a list still apart.
#[derive(Debug, Default)]
pub(super) struct Document {
    fields: Map<String, Value>,
    items: Option<Vec<(usize, Value)>>,
}

impl Document {
    /// The objects of the document with their lines. Items of a `List` may leave out what the list
    /// says for all of them.
    pub(super) fn into_objects(self, line: usize) -> Vec<(usize, Value)> {
        let Document { mut fields, items } = self;
        match items {
            Some(items) if is_list(&fields) => {
                let text = |field| fields.get(field).and_then(Value::as_str).unwrap_or_default();
                let inherited = kind_of_items(text("kind"), text("apiVersion"));
                let complete = |(line, item)| (line, with_kind(item, &inherited));
                items.into_iter().map(complete).collect()
            }
            Some(items) => {
                let items = items.into_iter().map(|(_, item)| item).collect();
                fields.insert("items".to_owned(), Value::Array(items));
                vec![(line, Value::Object(fields))]
            }
            None if is_list(&fields) => Vec::new(),
            None => vec![(line, Value::Object(fields))],
        }
    }
}

fn is_list(fields: &Map<String, Value>) -> bool {
    fields.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"))
}

/// `PodList` says that its items are Pods; `List` says nothing.
pub(super) fn kind_of_items(kind: &str, api_version: &str) -> Option<(Value, Value)> {
    let kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty())?;
    Some((Value::from(api_version), Value::from(kind)))
}

pub(super) fn with_kind(mut item: Value, inherited: &Option<(Value, Value)>) -> Value {
    if let (Some((api_version, kind)), Some(fields)) = (inherited, item.as_object_mut()) {
        fields.entry("apiVersion").or_insert_with(|| api_version.clone());
        fields.entry("kind").or_insert_with(|| kind.clone());
    }
    item
}

/// True for a document with changes to suppose.
pub fn is_what_if(value: &Value) -> bool {
    value["kind"] == "WhatIf" && value["apiVersion"] == ANSWERS
}

/// Why a value is not a Kubernetes object with a name.
pub(super) fn identity_problem(value: &Value) -> Option<String> {
    let missing = |field: &str| Some(format!("not a kubernetes object: {field} is missing"));
    if !value.is_object() {
        return Some("not a kubernetes object: must be a map".to_owned());
    }
    for field in ["apiVersion", "kind"] {
        match &value[field] {
            Value::String(text) if !text.is_empty() => {}
            Value::Null | Value::String(_) => return missing(field),
            other => return Some(format!("{field}: must be a string: {other}")),
        }
    }
    // A question needs no name.
    if is_what_if(value) {
        return None;
    }
    let metadata = &value["metadata"];
    match &metadata["name"] {
        Value::String(name) if !name.is_empty() => None,
        Value::Null if metadata["generateName"].is_string() => None,
        Value::Null | Value::String(_) => missing("metadata.name"),
        other => Some(format!("metadata.name: must be a string: {other}")),
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a kubernetes object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut document = Document::default();
        while let Some(key) = map.next_key::<String>()? {
            let again =
                document.fields.contains_key(&key) || (key == "items" && document.items.is_some());
            if again {
                return Err(A::Error::custom(format!("duplicate field: {key}")));
            }
            if key == "items" {
                document.items = Some(items(map.next_value()?));
            } else {
                document.fields.insert(key, map.next_value()?);
            }
        }
        Ok(document)
    }
}

fn items(items: Option<Vec<Spanned<Value>>>) -> Vec<(usize, Value)> {
    let line = |item: &Spanned<Value>| usize::try_from(item.referenced.line()).unwrap_or(0);
    items.unwrap_or_default().into_iter().map(|item| (line(&item), item.value)).collect()
}

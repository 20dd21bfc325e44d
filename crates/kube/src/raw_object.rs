//! An object as its text. What is not ours is sent back as it came, known here or not, and is not
//! decoded on the way. Specification: core.md 7.6 (C-29); rust-ecosystem.md 6 (PUT of whole objects).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

type RawFields<'a> = BTreeMap<String, &'a RawValue>;

/// An object of which the status can be changed.
#[derive(Debug, Serialize)]
pub(crate) struct RawObject<'a> {
    #[serde(flatten)]
    others: RawFields<'a>,
    metadata: RawFields<'a>,
    pub(crate) status: Value,
}

/// What is looked at in the answer to a list.
#[derive(Deserialize)]
struct RawItems<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

/// The text of the item with this uid.
///
/// # Errors
/// It is no list of objects.
pub(crate) fn item<'a>(list: &'a str, uid: &str) -> serde_json::Result<Option<&'a str>> {
    let RawItems { items } = serde_json::from_str(list)?;
    for item in items {
        if RawObject::of(item.get())?.has_uid(uid) {
            return Ok(Some(item.get()));
        }
    }
    Ok(None)
}

impl<'a> RawObject<'a> {
    /// Who owns which field is left out: the server keeps that by itself.
    ///
    /// # Errors
    /// It is no object, or its metadata are none.
    pub(crate) fn of(text: &'a str) -> serde_json::Result<Self> {
        let mut others: RawFields<'a> = serde_json::from_str(text)?;
        let part = |raw: Option<&'a RawValue>| raw.map_or("{}", RawValue::get);
        let mut metadata: RawFields<'a> = serde_json::from_str(part(others.remove("metadata")))?;
        metadata.remove("managedFields");
        let status = serde_json::from_str(part(others.remove("status")))?;
        Ok(Self { others, metadata, status })
    }

    /// Items of a list may lack what a PUT of a custom resource needs. Both as JSON.
    pub(crate) fn typed(&mut self, api_version: &'static str, kind: &'static str) {
        for (name, text) in [("apiVersion", api_version), ("kind", kind)] {
            let raw = serde_json::from_str(text).expect("a string of ours");
            self.others.entry(name.to_owned()).or_insert(raw);
        }
    }

    pub(crate) fn has_uid(&self, uid: &str) -> bool {
        self.metadata_text("uid").is_some_and(|stored| stored == uid)
    }

    pub(crate) fn resource_version(&self) -> Option<String> {
        self.metadata_text("resourceVersion")
    }

    fn metadata_text(&self, name: &str) -> Option<String> {
        let raw = self.metadata.get(name)?;
        serde_json::from_str(raw.get()).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_ours_is_sent_back_as_it_came() {
        let text = r#"{"kind":"PodGroup","spec":{"minMember":1.50,"new\u0041":[1e2, null]},
            "metadata":{"uid":"u","managedFields":[{"manager":"m"}],"labels":{"a":"b"}},
            "status":{"phase":"Pending","novelty":9007199254740993}}"#;
        let mut object = RawObject::of(text).unwrap();
        object.typed("\"g/v1\"", "\"Other\"");
        object.status["phase"] = json!("Running");
        let wanted = r#"{"apiVersion":"g/v1","kind":"PodGroup","#.to_owned()
            + r#""spec":{"minMember":1.50,"new\u0041":[1e2, null]},"#
            + r#""metadata":{"labels":{"a":"b"},"uid":"u"},"#
            + r#""status":{"novelty":9007199254740993,"phase":"Running"}}"#;
        assert_eq!(serde_json::to_string(&object).unwrap(), wanted);
    }

    #[test]
    fn an_object_is_told_by_its_uid() {
        let list = r#"{"items":[{"metadata":{"uid":"a"}},{"metadata":{"uid":"b"},"spec":1}]}"#;
        let spec = r#"{"metadata":{"uid":"b"},"spec":1}"#;
        let cases = [("b", Some(spec)), ("c", None), ("", None)];
        for (uid, wanted) in cases {
            assert_eq!(item(list, uid).unwrap(), wanted);
        }
        for text in ["", "[]", r#"{"items":[1]}"#, r#"{"items":[{"metadata":[]}]}"#] {
            assert!(item(text, "a").is_err(), "{text}");
        }
        assert!(!RawObject::of(r#"{"metadata":{"uid":7}}"#).unwrap().has_uid("7"));
        assert_eq!(RawObject::of("{}").unwrap().status, json!({}));
        let versioned = RawObject::of(r#"{"metadata":{"resourceVersion":"9"}}"#).unwrap();
        assert_eq!(versioned.resource_version().as_deref(), Some("9"));
    }
}

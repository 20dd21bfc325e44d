//! A stored object: its JSON tree, its version and, once somebody asked, its bytes. Identity of new
//! objects (uid, generated names) comes from a counter mixed with the time the store was made.

use std::sync::OnceLock;

use axum::body::Bytes;
use serde_json::Value;

use super::clock;

/// Where an object is stored within its kind. Sorted by namespace, then name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Empty for cluster scope.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl Key {
    /// The key of that namespace (empty for cluster scope) and name.
    pub fn new(namespace: &str, name: &str) -> Key {
        Key { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Where `value` belongs.
    pub fn of(value: &Value) -> Key {
        Key::new(namespace(value), name(value))
    }
}

/// One version of an object.
#[derive(Debug)]
pub struct Object {
    /// The whole object.
    pub value: Value,
    /// Its `metadata.resourceVersion`.
    pub revision: u64,
    json: OnceLock<Bytes>,
}

impl Object {
    pub(super) fn new(value: Value, revision: u64) -> Object {
        Object { value, revision, json: OnceLock::new() }
    }

    /// The object as JSON text; made at the first call and kept.
    pub fn json(&self) -> Bytes {
        self.json.get_or_init(|| Bytes::from(self.value.to_string())).clone()
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        name(&self.value)
    }

    /// `metadata.namespace`, empty for cluster scope.
    pub fn namespace(&self) -> &str {
        namespace(&self.value)
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> &str {
        text(&self.value, "/metadata/uid")
    }
}

/// The value at a path of field names such as `/metadata/name`. `None`: there is none. As
/// [`Value::pointer`], without its escapes, which take a new string for each name.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').skip(1).try_fold(value, |value, name| value.get(name))
}

/// The string at such a path, empty when there is none.
pub(super) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The array at such a path, empty when there is none.
pub(super) fn items<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn name(value: &Value) -> &str {
    text(value, "/metadata/name")
}

pub(super) fn namespace(value: &Value) -> &str {
    text(value, "/metadata/namespace")
}

/// Whether a DELETE has been asked for and the object waits for its kubelet or finalizers.
pub(super) fn is_terminating(value: &Value) -> bool {
    at(value, "/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// Replaces the condition of the same type in `status.conditions`, or appends it.
/// The transition time stays while the status does.
pub(super) fn set_condition(value: &mut Value, mut condition: Value) {
    condition["lastTransitionTime"] = clock::timestamp().into();
    let conditions = &mut value["status"]["conditions"];
    let Some(list) = conditions.as_array_mut() else {
        *conditions = Value::Array(vec![condition]);
        return;
    };
    match list.iter_mut().find(|old| old["type"] == condition["type"]) {
        Some(old) if old["status"] == condition["status"] => {}
        Some(old) => *old = condition,
        None => list.push(condition),
    }
}

/// Makes uids and name suffixes that no other object of this store has; two stores differ too.
#[derive(Debug)]
pub(super) struct Identities {
    state: u64,
}

impl Identities {
    pub(super) fn new(seed: u64) -> Identities {
        Identities { state: seed }
    }

    /// A version 4 uid.
    pub(super) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            0x8000 | low >> 48 & 0x3fff,
            low & 0xffff_ffff_ffff,
        )
    }

    /// Five letters and digits for `generateName`; no vowels, so that no words appear.
    pub(super) fn suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.next();
        let mut letter = || {
            let position = bits % ALPHABET.len() as u64;
            bits /= ALPHABET.len() as u64;
            char::from(ALPHABET[position as usize])
        };
        (0..5).map(|_| letter()).collect()
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }
}

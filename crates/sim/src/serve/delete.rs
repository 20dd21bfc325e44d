//! How objects end: at once, or marked until their kubelet or finalizers are done. What an object
//! owns ends with it, and so does what is in a namespace.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    clock,
    defaults::GRACE_SECONDS,
    kinds::{NAMESPACES, PODS, ServedKind},
    object::{Key, Object, is_terminating, items, text},
    refused::Refused,
    selector::ObjectFilter,
    store::{Store, StoreState, owner_uids},
};

/// The part of `metav1.DeleteOptions` that has an effect here.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Seconds; absent means the pod's own. Only pods have one.
    pub grace_seconds: Option<i64>,
    /// Refuse when the object has another uid.
    pub uid: Option<String>,
    /// Refuse when the object has another version.
    pub resource_version: Option<String>,
    /// Leave alone what it owns.
    pub orphan: bool,
}

impl DeleteOptions {
    /// An end without grace.
    pub fn now() -> DeleteOptions {
        DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() }
    }

    /// Reads a request's body.
    pub(super) fn of(body: &Value) -> DeleteOptions {
        let field = |pointer: &str| Some(text(body, pointer).to_owned()).filter(|v| !v.is_empty());
        DeleteOptions {
            grace_seconds: body["gracePeriodSeconds"].as_i64(),
            uid: field("/preconditions/uid"),
            resource_version: field("/preconditions/resourceVersion"),
            orphan: text(body, "/propagationPolicy") == "Orphan",
        }
    }
}

impl Store {
    /// Deletes an object and returns its last state: gone, or marked with a `deletionTimestamp`
    /// when it is a pod on a node that is given time, or has finalizers.
    ///
    /// # Errors
    /// `NotFound`, or `Conflict` when a precondition does not hold.
    pub fn delete(
        &self,
        kind: &'static ServedKind,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Arc<Object>, Refused> {
        let mut state = self.lock();
        let object = state.require(kind, key)?;
        check_preconditions(kind, &object, options)?;
        Ok(state.end(kind, &object, options))
    }

    /// Deletes what a filter selects and returns the last states.
    pub(super) fn delete_matching(
        &self,
        kind: &'static ServedKind,
        filter: &ObjectFilter,
        options: &DeleteOptions,
    ) -> Vec<Arc<Object>> {
        let found = self.all(kind, filter).objects;
        let delete = |object: &Arc<Object>| self.delete(kind, &Key::of(&object.value), options);
        // One that is gone meanwhile is deleted too.
        found.iter().filter_map(|object| delete(object).ok()).collect()
    }
}

impl StoreState {
    /// Ends an object and, one after the other, what depends on it.
    pub(super) fn end(
        &mut self,
        kind: &'static ServedKind,
        object: &Object,
        options: &DeleteOptions,
    ) -> Arc<Object> {
        let last = self.end_one(kind, object, options.grace_seconds);
        let mut ended = vec![(kind, last.clone())];
        while let Some((kind, object)) = ended.pop() {
            if self.find(kind, &Key::of(&object.value)).is_some() {
                continue;
            }
            if *kind == NAMESPACES {
                let contents = self.contents(object.name());
                ended.extend(self.end_all(contents, Some(0)));
            }
            if !options.orphan {
                let dependents = self.sole_dependents(object.uid());
                ended.extend(self.end_all(dependents, None));
            }
        }
        last
    }

    fn end_all(
        &mut self,
        keys: Vec<(&'static ServedKind, Key)>,
        grace_seconds: Option<i64>,
    ) -> Vec<(&'static ServedKind, Arc<Object>)> {
        let mut ended = Vec::new();
        for (kind, key) in keys {
            if let Some(object) = self.find(kind, &key) {
                ended.push((kind, self.end_one(kind, &object, grace_seconds)));
            }
        }
        ended
    }

    fn end_one(
        &mut self,
        kind: &'static ServedKind,
        object: &Object,
        grace_seconds: Option<i64>,
    ) -> Arc<Object> {
        let key = Key::of(&object.value);
        let grace_seconds = if *kind == PODS { grace_of(&object.value, grace_seconds) } else { 0 };
        if grace_seconds == 0 && items(&object.value, "/metadata/finalizers").is_empty() {
            return self.remove(kind, &key).expect("the caller has found it under this lock");
        }
        let mut value = object.value.clone();
        mark(&mut value, grace_seconds);
        if is_over(&value) {
            return self.remove(kind, &key).expect("the caller has found it under this lock");
        }
        match value == object.value {
            true => self.find(kind, &key).expect("the caller has found it under this lock"),
            false => self.commit(kind, &key, value),
        }
    }

    /// What has no other owner than `uid`.
    fn sole_dependents(&self, uid: &str) -> Vec<(&'static ServedKind, Key)> {
        let mut dependents = self.dependents(uid);
        dependents.retain(|(kind, key)| {
            self.find(kind, key).is_some_and(|object| owner_uids(&object.value).count() == 1)
        });
        dependents
    }
}

/// Whether a marked object waits for nothing any more.
pub(super) fn is_over(value: &Value) -> bool {
    is_terminating(value)
        && items(value, "/metadata/finalizers").is_empty()
        && value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
}

/// Marks for deletion; a later mark can only shorten the grace.
fn mark(value: &mut Value, grace_seconds: i64) {
    let metadata = &mut value["metadata"];
    let left = metadata["deletionGracePeriodSeconds"].as_i64();
    if left.is_some_and(|left| left <= grace_seconds) {
        return;
    }
    let end = clock::unix_seconds().saturating_add(grace_seconds);
    metadata["deletionTimestamp"] = clock::to_rfc3339(end).into();
    metadata["deletionGracePeriodSeconds"] = json!(grace_seconds);
}

/// A pod that no kubelet runs needs no grace.
fn grace_of(pod: &Value, asked: Option<i64>) -> i64 {
    let finished = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    if finished || text(pod, "/spec/nodeName").is_empty() {
        return 0;
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    asked.or(own).unwrap_or(GRACE_SECONDS).max(0)
}

fn check_preconditions(
    kind: &'static ServedKind,
    object: &Object,
    options: &DeleteOptions,
) -> Result<(), Refused> {
    let conflict = |what: &str, asked: &str, found: &str| {
        let why = format!("Precondition failed: {what} in precondition: {asked}, found: {found}");
        Err(Refused::Conflict { kind, name: object.name().to_owned(), why })
    };
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != object.uid()) {
        return conflict("UID", uid, object.uid());
    }
    let version = object.revision.to_string();
    match options.resource_version.as_deref().filter(|asked| *asked != version) {
        Some(asked) => conflict("ResourceVersion", asked, &version),
        None => Ok(()),
    }
}

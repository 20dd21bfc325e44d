//! Updates: PUT and PATCH, of the object or of its `status`, and the binding of a pod. All end in
//! one comparison of what is stored with what the client wants it to be.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    create::prune_nulls,
    defaults,
    kinds::{LEASES, PODS, ServedKind},
    object::{Key, Object, is_terminating, items, name, namespace, set_condition, text},
    refused::Refused,
    store::Store,
    validate,
};

/// Fields of `metadata` that an update leaves as they are.
pub(super) const SERVER_OWNED: [&str; 8] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Which part of an object a request writes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ObjectPart {
    /// Everything but a `status` that is a subresource.
    Main,
    /// `.../status`.
    Status,
}

impl Store {
    /// PUT.
    pub(super) fn replace(
        &self,
        kind: &'static ServedKind,
        key: &Key,
        part: ObjectPart,
        body: Value,
    ) -> Result<Arc<Object>, Refused> {
        let blind = text(&body, "/metadata/resourceVersion").is_empty();
        if blind && (kind.is_custom() || *kind == LEASES) {
            let why = "must be specified for an update".to_owned();
            let field = "metadata.resourceVersion".to_owned();
            return Err(Refused::Invalid { kind, name: key.name.clone(), field, why });
        }
        self.update(kind, key, |value| revise(kind, part, value, body))
    }

    /// PATCH: `patch` changes a copy of the object, which is then written as by a PUT.
    pub(super) fn patch(
        &self,
        kind: &'static ServedKind,
        key: &Key,
        part: ObjectPart,
        patch: impl FnOnce(&mut Value) -> Result<(), Refused>,
    ) -> Result<Arc<Object>, Refused> {
        self.update(kind, key, |value| {
            let mut wanted = value.clone();
            patch(&mut wanted)?;
            revise(kind, part, value, wanted)
        })
    }

    /// POST `pods/<name>/binding`: sets the node, once. The uid, when given, must be the pod's.
    ///
    /// # Errors
    /// `NotFound`, `BadRequest` without a target, `Conflict` when the pod is bound, is another one
    /// by now, is being deleted or has scheduling gates.
    pub fn bind(&self, key: &Key, binding: &Value) -> Result<(), Refused> {
        let node = text(binding, "/target/name");
        if node.is_empty() {
            return Err(Refused::BadRequest("a binding needs target.name".to_owned()));
        }
        let bind = |pod: &mut Value| match bind_conflict(pod, binding) {
            Some(why) => Err(Refused::Conflict { kind: &PODS, name: key.name.clone(), why }),
            None => {
                pod["spec"]["nodeName"] = node.into();
                merge_texts(pod, binding, "annotations");
                merge_texts(pod, binding, "labels");
                set_condition(pod, json!({ "type": "PodScheduled", "status": "True" }));
                copy(&mut pod["metadata"], &binding["metadata"], "managedFields");
                validate::check_shape(&PODS, pod)
            }
        };
        self.update(&PODS, key, bind).map(drop)
    }
}

/// Makes `value` what `wanted` says, as far as `part` goes and the server leaves it to the client.
fn revise(
    kind: &'static ServedKind,
    part: ObjectPart,
    value: &mut Value,
    mut wanted: Value,
) -> Result<(), Refused> {
    if wanted.is_object() && wanted.get("metadata").is_none() {
        wanted["metadata"] = json!({});
    }
    validate::check_shape(kind, &mut wanted)?;
    check_identity(kind, value, &wanted)?;
    if !kind.is_custom() {
        prune_nulls(&mut wanted);
    }
    match part {
        ObjectPart::Status => {
            write_status(kind, value, &wanted);
            Ok(())
        }
        ObjectPart::Main => write_main(kind, value, wanted),
    }
}

/// The URL's object, in the version that the client has seen.
fn check_identity(kind: &'static ServedKind, value: &Value, wanted: &Value) -> Result<(), Refused> {
    let differs = |pointer: &str| {
        let asked = text(wanted, pointer);
        !asked.is_empty() && asked != text(value, pointer)
    };
    for pointer in ["/metadata/name", "/metadata/namespace", "/apiVersion", "/kind"] {
        if differs(pointer) {
            let field = pointer[1..].replace('/', ".");
            return Err(Refused::BadRequest(format!("{field} is not that of the URL")));
        }
    }
    let conflict = |why: &str| {
        let why = why.to_owned();
        Err(Refused::Conflict { kind, name: name(value).to_owned(), why })
    };
    if differs("/metadata/uid") {
        return conflict("Precondition failed: the object has another UID");
    }
    if differs("/metadata/resourceVersion") {
        return conflict(
            "the object has been modified; please apply your changes to the latest version and \
             try again",
        );
    }
    Ok(())
}

/// Built-in kinds take labels, annotations and finalizers from a status write too.
fn write_status(kind: &ServedKind, value: &mut Value, wanted: &Value) {
    copy(value, wanted, "status");
    // The note says who writes it.
    copy(&mut value["metadata"], &wanted["metadata"], "managedFields");
    if !kind.is_custom() {
        for field in ["labels", "annotations", "finalizers"] {
            copy(&mut value["metadata"], &wanted["metadata"], field);
        }
    }
}

fn write_main(
    kind: &'static ServedKind,
    value: &mut Value,
    mut wanted: Value,
) -> Result<(), Refused> {
    if *kind == PODS && text(&wanted, "/spec/nodeName") != text(value, "/spec/nodeName") {
        let why = "field is immutable; a pod is bound through its binding".to_owned();
        let (name, field) = (name(value).to_owned(), "spec.nodeName".to_owned());
        return Err(Refused::Invalid { kind, name, field, why });
    }
    for field in SERVER_OWNED {
        copy(&mut wanted["metadata"], &value["metadata"], field);
    }
    for field in ["apiVersion", "kind"] {
        copy(&mut wanted, value, field);
    }
    if kind.has_status() {
        copy(&mut wanted, value, "status");
    }
    if *kind == PODS && wanted["spec"]["priority"].is_null() {
        copy(&mut wanted["spec"], &value["spec"], "priority");
    }
    defaults::apply(kind, &mut wanted);
    if is_new_generation(kind, value, &wanted) {
        let generation = value["metadata"]["generation"].as_i64().unwrap_or(0);
        wanted["metadata"]["generation"] = json!(generation + 1);
    }
    *value = wanted;
    Ok(())
}

/// Whether anything but the metadata, and a status of its own, differs.
fn is_new_generation(kind: &ServedKind, value: &Value, wanted: &Value) -> bool {
    let counts = |field: &str| field != "metadata" && !(field == "status" && kind.has_status());
    let fields = [value, wanted].into_iter().filter_map(Value::as_object).flatten();
    fields.map(|(field, _)| field).any(|field| counts(field) && value[field] != wanted[field])
}

/// Copies a field of `from` over that of `to`; absent there, it is absent here.
fn copy(to: &mut Value, from: &Value, field: &str) {
    let Some(fields) = to.as_object_mut() else {
        return;
    };
    match from.get(field) {
        Some(value) => drop(fields.insert(field.to_owned(), value.clone())),
        None => drop(fields.remove(field)),
    }
}

fn bind_conflict(pod: &Value, binding: &Value) -> Option<String> {
    let (wanted, found) = (text(binding, "/metadata/uid"), text(pod, "/metadata/uid"));
    let (space, name) = (namespace(pod), name(pod));
    let bound = text(pod, "/spec/nodeName");
    match () {
        () if !wanted.is_empty() && wanted != found => {
            Some(format!("Precondition failed: UID in precondition: {wanted}, found: {found}"))
        }
        () if is_terminating(pod) => {
            Some(format!("pod {space}/{name} is being deleted, cannot be assigned to a host"))
        }
        () if !bound.is_empty() => {
            Some(format!("pod {space}/{name} is already assigned to node {bound:?}"))
        }
        () if !items(pod, "/spec/schedulingGates").is_empty() => {
            Some(format!("pod {space}/{name} has scheduling gates"))
        }
        () => None,
    }
}

/// Adds the entries of a binding's labels or annotations to the pod's.
fn merge_texts(pod: &mut Value, binding: &Value, field: &str) {
    let Some(added) = binding["metadata"][field].as_object() else {
        return;
    };
    for (key, text) in added {
        pod["metadata"][field][key] = text.clone();
    }
}

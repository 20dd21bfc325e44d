//! Objects that are applied become events: completed and expanded as `vcsim run` does, beside the
//! objects that exist. Specification: answers.md 9 (ANS-48, ANS-51).

use serde_json::Value;
use vc_answers::MOST_NEW_PODS;
use vc_model::ClusterEvent;
use vc_wire::{Kind, kind_of};

use crate::admission::{AdmittedObjects, admit_beside};
use crate::field::{object_mut, text, title_of};
use crate::input::InputObject;
use crate::live::{LiveIdentity, LiveObjects};
use crate::workload::{PodLimit, is_workload};

/// What objects to apply become.
#[derive(Debug, Default)]
pub(super) struct AppliedObjects {
    pub(super) events: Vec<ClusterEvent>,
    pub(super) warnings: Vec<String>,
    /// Pods of this change.
    pub(super) n_pods: usize,
}

/// Expands the objects of a change. Earlier ones have so many new pods.
///
/// # Errors
/// An object cannot be read, or there are too many pods.
pub(super) fn applied(
    mut objects: Vec<InputObject>,
    live: &dyn LiveObjects,
    n_pods_before: usize,
) -> Result<AppliedObjects, String> {
    objects.iter_mut().for_each(|object| take_identity(&mut object.value, live));
    let n_pods_of = |objects: &[InputObject]| {
        objects.iter().filter(|object| text(&object.value, "/kind") == "Pod").count()
    };
    // Those that workloads make are counted as they are made, as there may be any number of them.
    let n_given = n_pods_before + n_pods_of(&objects);
    if MOST_NEW_PODS < n_given {
        return Err(format!("{MOST_NEW_PODS} new pods at most in all changes, {n_given} given"));
    }
    let limit = PodLimit::new(MOST_NEW_PODS, n_given);
    let AdmittedObjects { objects, unreadable, .. } = admit_beside(objects, live, limit);
    if let Some(unreadable) = unreadable.first() {
        return Err(unreadable.to_string());
    }
    let mut applied = AppliedObjects { n_pods: n_pods_of(&objects), ..AppliedObjects::default() };
    for InputObject { value, source } in objects {
        let Some(kind) = kind_of(text(&value, "/apiVersion"), text(&value, "/kind")) else {
            if !is_workload(&value) {
                applied.warnings.push(format!("{source}: {} is not read", title_of(&value)));
            }
            continue;
        };
        let names = (text(&value, "/metadata/namespace"), text(&value, "/metadata/name"));
        let is_live = live.find(kind, names.0, names.1).is_some();
        if is_live && kind == Kind::Pod {
            let title = title_of(&value);
            applied.warnings.push(format!("{title} exists and stays as it is; setPods changes it"));
            continue;
        }
        let decoded =
            vc_wire::decode(kind, &value).map_err(|error| format!("{source}: {error}"))?;
        let problems = decoded.problems.iter().map(|problem| format!("{source}: {problem}"));
        applied.warnings.extend(problems);
        applied.events.push(decoded.event);
    }
    Ok(applied)
}

/// Gives an object the uid and the status of the object that it replaces, and a workload the uid that
/// its pods and PodGroups name.
fn take_identity(value: &mut Value, live: &dyn LiveObjects) {
    if !text(value, "/metadata/uid").is_empty() {
        return;
    }
    let namespace = match text(value, "/metadata/namespace") {
        "" => "default",
        namespace => namespace,
    };
    let (kind, name) = (text(value, "/kind"), text(value, "/metadata/name"));
    let read = kind_of(text(value, "/apiVersion"), kind);
    let scope = |kind: Kind| if kind.is_namespaced() { namespace } else { "" };
    let known = read.and_then(|kind| live.find(kind, scope(kind), name));
    let (uid, status) = match known {
        Some(LiveIdentity { uid, status }) => (Some(uid), status),
        None if is_workload(value) => (live.controller_uid(namespace, kind, name), None),
        None => (None, None),
    };
    let uid = uid.filter(|uid| !uid.is_empty());
    if let (Some(uid), Some(metadata)) = (uid, object_mut(value, &["metadata"])) {
        metadata.insert("uid".to_owned(), uid.into());
    }
    if let (Some(status), None) = (status, value.get("status"))
        && let Some(fields) = value.as_object_mut()
    {
        fields.insert("status".to_owned(), status);
    }
}

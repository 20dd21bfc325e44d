//! Which changes somebody may suppose who has rights in one namespace only. Specification: answers.md
//! 9 (ANS-53).

use serde_json::Value;
use vc_answers::{Change, LiveObject};
use vc_model::ObjectKey;

use super::parse::ParsedChange;
use crate::field::{text, title_of};
use crate::scope::is_namespaced;

/// Refuses a change of objects of other namespaces, or of the cluster.
///
/// # Errors
/// The text begins with the field.
pub(super) fn check_namespace(change: &ParsedChange, namespace: &str) -> Result<(), String> {
    let keys = |field: &str, keys: &[&ObjectKey]| {
        let outside = keys.iter().find(|key| *key.namespace != *namespace);
        outside.map_or(Ok(()), |key| Err(format!("{field}: {key} is not in namespace {namespace}")))
    };
    let cluster = |field: &str| {
        Err(format!("{field}: objects of namespace {namespace} may be changed, not the cluster"))
    };
    match change {
        ParsedChange::Apply(objects) => {
            objects.iter().try_for_each(|object| check_object(object, namespace))
        }
        ParsedChange::Made(change) => match change {
            Change::Finish(jobs) => keys("finish", &jobs.iter().collect::<Vec<_>>()),
            Change::SetJob(job, _) => keys("setJob", &[job]),
            Change::SetPods(job, _) => keys("setPods", &[job]),
            Change::Delete(objects) => objects.iter().try_for_each(|object| match object {
                LiveObject::Pod(key)
                | LiveObject::Job(key)
                | LiveObject::Controller(_, key)
                | LiveObject::Budget(key) => keys("delete", &[key]),
                LiveObject::Queue(_) | LiveObject::Node(_) | LiveObject::PriorityClass(_) => {
                    cluster("delete")
                }
            }),
            Change::AddNodes { .. } => cluster("addNodes"),
            Change::RemoveNodes(_) => cluster("removeNodes"),
            Change::Cordon(_) => cluster("cordon"),
            Change::Uncordon(_) => cluster("uncordon"),
            Change::PatchNodes(..) => cluster("patchNodes"),
            Change::SetQueue(..) => cluster("setQueue"),
            Change::Configure(_) => cluster("conf"),
            Change::Advance(_) => cluster("advance"),
            // Objects to apply have not been read yet.
            Change::Apply(_) => Ok(()),
        },
    }
}

fn check_object(object: &Value, namespace: &str) -> Result<(), String> {
    let title = title_of(object);
    if !is_namespaced(text(object, "/apiVersion"), text(object, "/kind")) {
        return Err(format!("apply: {title} is not an object of namespace {namespace}"));
    }
    // Without a namespace it is put into this one.
    if !["", namespace].contains(&text(object, "/metadata/namespace")) {
        return Err(format!("apply: {title} is not in namespace {namespace}"));
    }
    Ok(())
}

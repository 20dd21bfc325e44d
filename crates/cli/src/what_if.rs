//! Changes to suppose as one document for the scheduler that runs. Specification: answers.md 9
//! (ANS-53), 13 (ANS-117).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use vc_objects::field::{set_default, text};
use vc_objects::input::{self, ANSWERS};
use vc_objects::is_namespaced;
use vc_objects::what_if::split;

use crate::args::WhatIfWords;

/// A document with where it is sent.
#[derive(Debug, PartialEq)]
pub(crate) struct WhatIfRequest {
    pub(crate) path: String,
    pub(crate) body: String,
}

/// Reads files and flags.
///
/// # Errors
/// A file cannot be read, or a flag cannot be understood.
pub(crate) fn request(
    words: &WhatIfWords,
    namespace: Option<&str>,
) -> Result<WhatIfRequest, String> {
    let flags = words.changes()?;
    let read = input::read(&words.filename).map_err(|error| error.to_string())?;
    if let Some(unreadable) = read.unreadable.first() {
        return Err(unreadable.to_string());
    }
    let (document, objects) = split(read.objects)?;
    let empty = json!({ "apiVersion": ANSWERS, "kind": "WhatIf", "spec": { "changes": [] } });
    let mut document = document.map_or(empty, |document| document.value);
    let more = (!objects.is_empty()).then(|| {
        let objects: Vec<Value> = objects.into_iter().map(|object| object.value).collect();
        json!({ "apply": objects })
    });
    let more: Vec<Value> =
        more.into_iter().chain(flags.into_iter().map(|(_, change)| change)).collect();
    match document.pointer_mut("/spec/changes") {
        Some(Value::Array(changes)) => changes.extend(more),
        _ if more.is_empty() => {}
        _ => return Err("spec.changes: must be a list".to_owned()),
    }
    let default = namespace.unwrap_or("default");
    let path = match confined_to(&mut document, default) {
        Some(namespace) => format!("namespaces/{}/whatifs", crate::ask::part(&namespace)),
        None => format!("whatifs?namespace={}", crate::ask::part(default)),
    };
    Ok(WhatIfRequest { path, body: document.to_string() })
}

/// Returns the only namespace whose objects change. Returns `None` if there are several, or the cluster
/// changes. Objects without a namespace get this one, as kubectl does it.
fn confined_to(document: &mut Value, default: &str) -> Option<String> {
    let changes = document.pointer_mut("/spec/changes")?.as_array_mut()?;
    let (mut namespaces, mut is_of_cluster) = (BTreeSet::new(), false);
    for change in changes {
        for (key, value) in change.as_object_mut()? {
            match key.as_str() {
                "apply" => {
                    for object in value.as_array_mut()? {
                        if is_namespaced(text(object, "/apiVersion"), text(object, "/kind")) {
                            set_default(object, &["metadata"], "namespace", default);
                            namespaces.insert(text(object, "/metadata/namespace").to_owned());
                        } else {
                            is_of_cluster = true;
                        }
                    }
                }
                "delete" => {
                    for object in value.as_array()? {
                        match text(object, "/namespace") {
                            "" => namespaces.insert(default.to_owned()),
                            namespace => namespaces.insert(namespace.to_owned()),
                        };
                        let kind = text(object, "/kind");
                        is_of_cluster |= ["Queue", "Node", "PriorityClass"].contains(&kind);
                    }
                }
                "finish" => {
                    let jobs = value["jobs"].as_array()?;
                    namespaces.extend(jobs.iter().map(|job| namespace_of(job, default)));
                }
                "setJob" | "setPods" => {
                    namespaces.insert(namespace_of(&value["job"], default));
                }
                _ => is_of_cluster = true,
            }
        }
    }
    let first = namespaces.pop_first().filter(|_| namespaces.is_empty() && !is_of_cluster);
    first.filter(|namespace| !namespace.is_empty())
}

fn namespace_of(job: &Value, default: &str) -> String {
    let namespace = job.as_str().and_then(|job| job.split_once('/'));
    namespace.map_or(default, |(namespace, _)| namespace).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_53_changes_of_one_namespace_are_asked_of_that_namespace() {
        let pod = |namespace: &str| {
            json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": namespace, "name": "p" },
            })
        };
        let queue = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": { "name": "q" },
        });
        let cases = [
            (json!([{ "apply": [pod("")] }]), Some("ml")),
            (json!([{ "apply": [pod("other")] }]), Some("other")),
            (json!([{ "apply": [pod(""), pod("other")] }]), None),
            (json!([{ "apply": [pod(""), queue] }]), None),
            (json!([{ "finish": { "jobs": ["a", "ml/b"] } }]), Some("ml")),
            (json!([{ "finish": { "jobs": ["a", "x/b"] } }]), None),
            (json!([{ "setJob": { "job": "x/b" } }]), Some("x")),
            (json!([{ "delete": [{ "kind": "Pod", "name": "p" }] }]), Some("ml")),
            (json!([{ "delete": [{ "kind": "Node", "name": "n" }] }]), None),
            (json!([{ "addNodes": { "like": "n" } }]), None),
            (json!("x"), None),
        ];
        for (changes, expected) in cases {
            let mut document = json!({ "spec": { "changes": changes } });
            assert_eq!(confined_to(&mut document, "ml").as_deref(), expected, "{changes}");
        }
    }
}

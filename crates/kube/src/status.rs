//! Status writes: the newest object is read, changed and PUT whole, once more after a 409 (PATCH is
//! not granted). Specification: core.md 7.4 (C-27), 7.6 (C-29), 7.7; rust-ecosystem.md 5.5, 6.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams, TypeMeta};
use kube::core::Request;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use vc_engine::Nomination;
use vc_model::{ObjectKey, PodGroupCondition, PodGroupPhase, PodGroupStatus, QUEUE_GATE};

use crate::call::{
    CallError, call, get, node_shard_resource, node_shards, pods, put, queue_resource, queues,
};
use crate::direct::DirectClient;
use crate::pod_group_cache::PodGroupCache;
use crate::raw_object::{RawObject, item};
use crate::wall_clock::timestamp;

/// Now, as the API writes times.
pub(crate) fn now() -> String {
    Timestamp::from_second(timestamp().as_second()).unwrap_or_default().to_string()
}

/// Replaces the condition of that type, or appends it; false if it says the same already. The time
/// of the transition stays unless the status changes.
pub(crate) fn upsert(conditions: &mut Value, mut wanted: Value) -> bool {
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let list = conditions.as_array_mut().expect("it is an array now");
    let Some(old) = list.iter_mut().find(|old| old["type"] == wanted["type"]) else {
        list.push(wanted);
        return true;
    };
    if ["status", "reason", "message"].iter().all(|field| old[*field] == wanted[*field]) {
        return false;
    }
    if old["status"] == wanted["status"] && old["lastTransitionTime"].is_string() {
        wanted["lastTransitionTime"] = old["lastTransitionTime"].take();
    }
    *old = wanted;
    true
}

/// GET, `change`, PUT status; `change` says whether there is something to write. `Ok(false)`:
/// nothing was, the pod is gone, or is another one now.
pub(crate) async fn change_pod(
    client: &Client,
    pod: &ObjectKey,
    uid: &str,
    change: impl Fn(&mut DynamicObject) -> bool,
) -> Result<bool, CallError> {
    let api = pods(client, &pod.namespace);
    let mut retried = false;
    loop {
        let Some(mut object) = get(&api, &pod.name).await? else {
            return Ok(false);
        };
        if object.metadata.uid.as_deref() != Some(uid) || !change(&mut object) {
            return Ok(false);
        }
        match call(api.replace_status(&pod.name, &PostParams::default(), &object)).await {
            Err(error) if error.is_conflict() && !retried => retried = true,
            answer => return answer.map(|_| true),
        }
    }
}

/// Condition `PodScheduled` = False and the nominated node. A pod that has a node meanwhile is left
/// alone.
pub(crate) async fn set_pod_scheduled(
    client: &Client,
    pod: &ObjectKey,
    uid: &str,
    (reason, message): (&str, &str),
    nomination: &Nomination,
) -> Result<bool, CallError> {
    let change = |object: &mut DynamicObject| {
        if object.data["spec"]["nodeName"].as_str().is_some_and(|name| !name.is_empty()) {
            return false;
        }
        let status = &mut object.data["status"];
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": reason,
            "message": message, "lastProbeTime": null, "lastTransitionTime": now()});
        upsert(&mut status["conditions"], condition) | nominate(status, nomination)
    };
    change_pod(client, pod, uid, change).await
}

/// Takes the nominated node away from a pod that is placed elsewhere.
pub(crate) async fn clear_nomination(
    client: &Client,
    pod: &ObjectKey,
    uid: &str,
) -> Result<bool, CallError> {
    let clear =
        |object: &mut DynamicObject| nominate(&mut object.data["status"], &Nomination::Clear);
    change_pod(client, pod, uid, clear).await
}

fn nominate(status: &mut Value, nomination: &Nomination) -> bool {
    let wanted = match nomination {
        Nomination::Keep => return false,
        Nomination::Set(node) => json!(&**node),
        Nomination::Clear => Value::Null,
    };
    let field = &mut status["nominatedNodeName"];
    let differs = *field != wanted;
    *field = wanted;
    differs
}

/// PUT of the PodGroup with this status; answers the resourceVersion that it has then. Nothing is
/// written if it has this status already.
///
/// The object is the one that was seen last or, if that is not kept, read by LIST: `get` is not
/// granted. After a 409 it is written over the newest one, unless somebody else has changed the
/// phase (C-29). Who owns which field is left out: the server keeps that by itself.
pub(crate) async fn set_pod_group(
    (client, way): (&Client, &DirectClient),
    pod_group_cache: &PodGroupCache,
    pod_group: &ObjectKey,
    uid: &str,
    status: &PodGroupStatus,
) -> Result<Arc<str>, CallError> {
    let ObjectKey { namespace, name } = pod_group;
    let all = format!("/apis/{POD_GROUPS}/namespaces/{namespace}/podgroups");
    let path = format!("{all}/{name}");
    let mut phase = None;
    loop {
        let seen = pod_group_cache.take(pod_group).filter(|_| phase.is_none());
        let found: Box<str>;
        let mut object = match seen.as_deref().and_then(|text| raw_object(text, uid)) {
            Some(object) => object,
            None => {
                found = find(client, &all, name, uid).await?;
                RawObject::of(&found).map_err(unreadable)?
            }
        };
        object.typed("\"scheduling.volcano.sh/v1beta1\"", "\"PodGroup\"");
        let seen = object.status["phase"].as_str().unwrap_or_default().to_owned();
        if phase.as_ref().is_some_and(|before| *before != seen) {
            return Err(CallError::Overtaken("the phase was changed by someone else"));
        }
        let stored = object.status.clone();
        fill(&mut object.status, status);
        if let Some(version) = object.resource_version().filter(|_| object.status == stored) {
            return Ok(version.into());
        }
        match put(way, &path, &object).await {
            Err(error) if error.is_conflict() && phase.is_none() => phase = Some(seen),
            answer => {
                let text = answer?;
                let answer: StatusAnswer = serde_json::from_str(&text).map_err(unreadable)?;
                if matches!(status.phase, PodGroupPhase::Pending | PodGroupPhase::Inqueue) {
                    pod_group_cache.keep(pod_group, text);
                }
                return Ok(answer.metadata.resource_version);
            }
        }
    }
}

const POD_GROUPS: &str = "scheduling.volcano.sh/v1beta1";

/// What is read of an answer.
#[derive(Deserialize)]
struct StatusAnswer {
    metadata: ObjectVersion,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ObjectVersion {
    resource_version: Arc<str>,
}

fn unreadable(error: serde_json::Error) -> CallError {
    CallError::Refused(kube::Error::SerdeError(error))
}

/// The object of that text, if it is the one with this uid.
fn raw_object<'a>(text: &'a str, uid: &str) -> Option<RawObject<'a>> {
    RawObject::of(text).ok().filter(|object| object.has_uid(uid))
}

/// The text of the PodGroup, by LIST.
async fn find(client: &Client, all: &str, name: &str, uid: &str) -> Result<Box<str>, CallError> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let request = Request::new(all).list(&params).map_err(kube::Error::BuildRequest);
    let list = call(async { client.request_text(request?).await }).await?;
    let found = item(&list, uid).map_err(unreadable)?;
    found.map(Box::from).ok_or(CallError::Gone)
}

/// Items of a list may lack what a PUT of a custom resource needs.
fn typed(object: &mut DynamicObject, kind: &ApiResource) {
    let (api_version, kind) = (kind.api_version.clone(), kind.kind.clone());
    object.types.get_or_insert(TypeMeta { api_version, kind });
}

/// Fields of others stay; counts of zero are left out, as Volcano's type does.
fn fill(stored: &mut Value, status: &PodGroupStatus) {
    let fields = object_of(stored);
    fields.insert("phase".into(), json!(status.phase.as_str()));
    let conditions: Vec<Value> = status.conditions.iter().map(condition).collect();
    match conditions.is_empty() {
        true => drop(fields.remove("conditions")),
        false => drop(fields.insert("conditions".into(), conditions.into())),
    }
    let counts =
        [("running", status.running), ("succeeded", status.succeeded), ("failed", status.failed)];
    for (name, count) in counts {
        match count {
            0 => drop(fields.remove(name)),
            _ => drop(fields.insert(name.into(), json!(count))),
        }
    }
}

fn condition(of: &PodGroupCondition) -> Value {
    let mut fields = Map::new();
    let pairs = [
        ("type", &of.kind),
        ("status", &of.status),
        ("transitionID", &of.transition_id),
        ("lastTransitionTime", &of.last_transition_time),
        ("reason", &of.reason),
        ("message", &of.message),
    ];
    for (name, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()) {
        fields.insert(name.into(), json!(&**value));
    }
    fields.into()
}

fn object_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it is an object now")
}

/// PUT of `status.allocated`; the other fields belong to the controller. Nothing is written if it has
/// this value already.
pub(crate) async fn set_queue(
    client: &Client,
    queue: &str,
    allocated: &[(String, String)],
) -> Result<(), CallError> {
    let api = queues(client);
    let pairs = allocated.iter().map(|(name, amount)| (name.clone(), json!(amount)));
    let wanted: Map<String, Value> = pairs.collect();
    let mut retried = false;
    loop {
        let mut object = call(api.get(queue)).await?;
        typed(&mut object, &queue_resource());
        let fields = object_of(&mut object.data["status"]);
        let wanted = Value::from(wanted.clone());
        if fields.insert("allocated".into(), wanted.clone()) == Some(wanted) {
            return Ok(());
        }
        match call(api.replace_status(queue, &PostParams::default(), &object)).await {
            Err(error) if error.is_conflict() && !retried => retried = true,
            answer => return answer.map(drop),
        }
    }
}

/// PUT of the queue with the annotation; nothing is written if it has it already.
pub(crate) async fn annotate_queue(
    client: &Client,
    queue: &str,
    key: &str,
    value: &str,
) -> Result<(), CallError> {
    let api = queues(client);
    let mut retried = false;
    loop {
        let mut object = call(api.get(queue)).await?;
        typed(&mut object, &queue_resource());
        let annotations = object.metadata.annotations.get_or_insert_default();
        if annotations.insert(key.to_owned(), value.to_owned()).as_deref() == Some(value) {
            return Ok(());
        }
        match call(api.replace(queue, &PostParams::default(), &object)).await {
            Err(error) if error.is_conflict() && !retried => retried = true,
            answer => return answer.map(drop),
        }
    }
}

/// PUT of the status of our NodeShard; `lastUpdateTime` belongs to others (core.md 4.10). Nothing is
/// written if it has this status already.
pub(crate) async fn set_node_shard(
    client: &Client,
    shard: &str,
    nodes: [(&str, &[Arc<str>]); 3],
) -> Result<(), CallError> {
    let api = node_shards(client);
    let mut retried = false;
    loop {
        let mut object = call(api.get(shard)).await?;
        typed(&mut object, &node_shard_resource());
        let stored = object.data["status"].clone();
        let fields = object_of(&mut object.data["status"]);
        for (name, nodes) in nodes {
            fields.insert(name.into(), nodes.iter().map(|node| json!(&**node)).collect());
        }
        if object.data["status"] == stored {
            return Ok(());
        }
        match call(api.replace_status(shard, &PostParams::default(), &object)).await {
            Err(error) if error.is_conflict() && !retried => retried = true,
            answer => return answer.map(drop),
        }
    }
}

/// PATCH that takes the queue allocation gate away (core.md 7.8). The uid keeps it from a successor
/// of the same name; a pod that is gone needs nothing.
pub(crate) async fn remove_gate(
    client: &Client,
    pod: &ObjectKey,
    uid: &str,
) -> Result<(), CallError> {
    let api = pods(client, &pod.namespace);
    let gate = json!({"name": QUEUE_GATE, "$patch": "delete"});
    let patch = json!({"metadata": {"uid": uid}, "spec": {"schedulingGates": [gate]}});
    match call(api.patch(&pod.name, &PatchParams::default(), &Patch::Strategic(patch))).await {
        Err(error) if error.is_not_found() => Ok(()),
        answer => answer.map(drop),
    }
}

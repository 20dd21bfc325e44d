//! What is written before a pod is bound: the claim into a volume, the selected node into a claim.
//! Each object is read by LIST (`get` is not granted), changed and PUT whole; what somebody else has
//! decided meanwhile is not undone. Specification: plugins-nodes.md 5.6, 5.7.

use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject, ListParams, PostParams, TypeMeta};
use kube::{Api, Client};
use serde_json::{Value, json};
use vc_model::{ClusterEvent, ReservedClaim, StorageObject};
use vc_wire::{Kind, SELECTED_NODE};

use crate::call::{CallError, call, resource};

const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Writes the volumes, then the claims; answers what is stored then.
///
/// # Errors
/// The first write that is refused, or that somebody has made pointless; earlier ones stay.
pub(crate) async fn write(
    client: &Client,
    node: &str,
    bindings: &[(ReservedClaim, Arc<str>)],
    provisions: &[ReservedClaim],
) -> Result<Vec<StorageObject>, CallError> {
    let mut stored = Vec::new();
    for (claim, volume) in bindings {
        let kind = resource("", "v1", "PersistentVolume", "persistentvolumes");
        let api = Api::all_with(client.clone(), &kind);
        let change = |object: &mut DynamicObject| bind(object, claim);
        let answer = put(&api, &kind, volume, change).await?;
        stored.extend(decoded(Kind::PersistentVolume, &answer));
    }
    for claim in provisions {
        let kind = resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
        let api = Api::namespaced_with(client.clone(), &claim.key.namespace, &kind);
        let change = |object: &mut DynamicObject| select(object, claim, node);
        let answer = put(&api, &kind, &claim.key.name, change).await?;
        stored.extend(decoded(Kind::PersistentVolumeClaim, &answer));
    }
    Ok(stored)
}

/// Reads, changes, writes; once more after a 409, if the newest object allows it. An object that is
/// as wanted already is not written.
async fn put(
    api: &Api<DynamicObject>,
    kind: &ApiResource,
    name: &str,
    change: impl Fn(&mut DynamicObject) -> Result<bool, CallError>,
) -> Result<DynamicObject, CallError> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let mut retried = false;
    loop {
        let mut found = call(api.list(&params)).await?.items.into_iter();
        let object = found.find(|object| object.metadata.name.as_deref() == Some(name));
        let mut object = object.ok_or(CallError::Overtaken("the volume or claim is gone"))?;
        let (api_version, kind) = (kind.api_version.clone(), kind.kind.clone());
        object.types.get_or_insert(TypeMeta { api_version, kind });
        if !change(&mut object)? {
            return Ok(object);
        }
        match call(api.replace(name, &PostParams::default(), &object)).await {
            Err(error) if error.is_conflict() && !retried => retried = true,
            answer => return answer,
        }
    }
}

/// Points the volume at the claim. A reference without uid was made by hand and is completed.
fn bind(volume: &mut DynamicObject, claim: &ReservedClaim) -> Result<bool, CallError> {
    let old = volume.data["spec"]["claimRef"].take();
    let text = |field: &str| old[field].as_str().unwrap_or_default().to_owned();
    let key = &claim.key;
    let wanted = json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
        "namespace": *key.namespace, "name": *key.name, "uid": *claim.uid});
    let names_claim = text("namespace") == *key.namespace && text("name") == *key.name;
    match (old.is_null(), names_claim, &*text("uid")) {
        (true, ..) => {
            let annotations = volume.metadata.annotations.get_or_insert_default();
            annotations.insert(BOUND_BY_CONTROLLER.into(), "yes".into());
        }
        (false, true, "") => {}
        (false, true, uid) if *uid == *claim.uid => {
            volume.data["spec"]["claimRef"] = old;
            return Ok(false);
        }
        (false, ..) => return Err(CallError::Overtaken("the volume is bound to another claim")),
    }
    volume.data["spec"]["claimRef"] = wanted;
    Ok(true)
}

/// Selects the node for the claim.
fn select(
    object: &mut DynamicObject,
    claim: &ReservedClaim,
    node: &str,
) -> Result<bool, CallError> {
    if object.metadata.uid.as_deref() != Some(&*claim.uid) {
        return Err(CallError::Overtaken("another claim has this name now"));
    }
    if object.data["spec"]["volumeName"].as_str().is_some_and(|name| !name.is_empty()) {
        return Err(CallError::Overtaken("the claim is bound meanwhile"));
    }
    let annotations = object.metadata.annotations.get_or_insert_default();
    match annotations.get(SELECTED_NODE) {
        Some(selected) if selected == node => Ok(false),
        Some(_) => Err(CallError::Overtaken("another node is selected for the claim")),
        None => {
            annotations.insert(SELECTED_NODE.into(), node.into());
            Ok(true)
        }
    }
}

/// What the watch will tell, too.
fn decoded(kind: Kind, object: &DynamicObject) -> Option<StorageObject> {
    let value: Value = serde_json::to_value(object).ok()?;
    match vc_wire::decode(kind, &value).ok()?.event {
        ClusterEvent::StorageApplied(object) => Some(*object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use vc_model::ObjectKey;

    use super::*;

    fn claim() -> ReservedClaim {
        ReservedClaim { key: ObjectKey::new("ns", "c"), uid: "u".into() }
    }

    fn object(metadata: Value, spec: Value) -> DynamicObject {
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn reference(name: &str, uid: &str) -> Value {
        json!({"claimRef": {"namespace": "ns", "name": name, "uid": uid}})
    }

    #[test]
    fn a_volume_is_bound_once_and_to_one_claim() {
        for (spec, expected) in [
            (json!({}), Ok(true)),
            (reference("c", ""), Ok(true)),
            (reference("c", "u"), Ok(false)),
            (reference("c", "other"), Err(())),
            (reference("d", ""), Err(())),
        ] {
            let by_hand = spec != json!({});
            let mut volume = object(json!({"name": "pv"}), spec);
            assert_eq!(bind(&mut volume, &claim()).map_err(drop), expected);
            if expected.is_ok() {
                assert_eq!(volume.data["spec"]["claimRef"]["uid"], "u");
                let marked = volume.metadata.annotations.is_some();
                assert_eq!(marked, !by_hand, "only what we have bound is marked");
            }
        }
    }

    #[test]
    fn a_node_is_selected_for_a_claim_that_has_none() {
        let selected = |node: &str| json!({"uid": "u", "annotations": {SELECTED_NODE: node}});
        for (metadata, spec, expected) in [
            (json!({"uid": "u"}), json!({}), Ok(true)),
            (selected("n"), json!({}), Ok(false)),
            (selected("m"), json!({}), Err(())),
            (json!({"uid": "v"}), json!({}), Err(())),
            (json!({"uid": "u"}), json!({"volumeName": "pv"}), Err(())),
        ] {
            let mut object = object(metadata, spec);
            assert_eq!(select(&mut object, &claim(), "n").map_err(drop), expected);
            if expected.is_ok() {
                assert_eq!(object.metadata.annotations.unwrap()[SELECTED_NODE], "n");
            }
        }
    }
}

//! What the volume controllers of a cluster do to the objects: a volume and its claim are bound to
//! each other, and a provisioner makes the volume of a claim. Specification: plugins-nodes.md 5.

use serde_json::{Value, json};

use vc_objects::field::{object_mut, text};

/// Annotation of a claim that is to be provisioned for a node.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Sets an annotation.
pub(crate) fn annotate(object: &mut Value, key: &str, value: &str) {
    if let Some(annotations) = object_mut(object, &["metadata", "annotations"]) {
        annotations.insert(key.to_owned(), value.into());
    }
}

/// Points a volume at a claim.
pub(crate) fn refer(volume: &mut Value, claim: &Value) {
    let reference = json!({
        "kind": "PersistentVolumeClaim", "apiVersion": "v1",
        "namespace": text(claim, "/metadata/namespace"), "name": text(claim, "/metadata/name"),
        "uid": text(claim, "/metadata/uid"),
    });
    if let Some(spec) = object_mut(volume, &["spec"]) {
        spec.insert("claimRef".to_owned(), reference);
    }
}

/// A volume that has a claim.
pub(crate) fn set_volume_bound(volume: &mut Value) {
    if let Some(status) = object_mut(volume, &["status"]) {
        status.insert("phase".to_owned(), "Bound".into());
    }
}

/// A claim that has this volume.
pub(crate) fn set_claim_bound(claim: &mut Value, volume: &str) {
    annotate(claim, BIND_COMPLETED, "yes");
    annotate(claim, BOUND_BY_CONTROLLER, "yes");
    if let Some(spec) = object_mut(claim, &["spec"]) {
        spec.insert("volumeName".to_owned(), volume.into());
    }
    if let Some(status) = object_mut(claim, &["status"]) {
        status.insert("phase".to_owned(), "Bound".into());
    }
}

/// The volume that the provisioner of a class makes for a claim; with a node it can be used there
/// only.
pub(crate) fn provisioned(claim: &Value, provisioner: &str, node: Option<&str>) -> Value {
    let spec = &claim["spec"];
    let name = format!("pvc-{}", text(claim, "/metadata/uid"));
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "annotations": { "pv.kubernetes.io/provisioned-by": provisioner },
        },
        "spec": {
            "capacity": { "storage": spec["resources"]["requests"]["storage"] },
            "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"],
            "volumeMode": text(claim, "/spec/volumeMode"),
            "persistentVolumeReclaimPolicy": "Delete",
            "csi": { "driver": provisioner, "volumeHandle": name },
        },
    });
    if text(&volume, "/spec/volumeMode").is_empty() {
        volume["spec"]["volumeMode"] = "Filesystem".into();
    }
    if let Some(node) = node {
        let rule = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] });
        volume["spec"]["nodeAffinity"] =
            json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [rule] }] } });
    }
    refer(&mut volume, claim);
    volume
}

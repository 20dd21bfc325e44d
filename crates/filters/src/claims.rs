//! The PersistentVolumeClaims of a pod, and what makes a claim unusable.
//! Specification: plugins-nodes.md 3.5, 5.1.

use std::sync::Arc;

use vc_model::{
    BindingMode, ObjectKey, PersistentVolumeClaim, PodClaim, PodVolume, StorageClass, Volumes,
};

use crate::rule::Pod;

/// Returns the pod's claims in the order of its volumes.
pub(crate) fn claims<'a>(pod: Pod<'a>) -> impl Iterator<Item = &'a PodClaim> {
    pod.class.volumes.iter().filter_map(|volume| match volume {
        PodVolume::Claim(claim) => Some(claim),
        PodVolume::Disk(_) => None,
    })
}

pub(crate) fn key(pod: Pod<'_>, claim: &PodClaim) -> ObjectKey {
    claim.key(&pod.class.namespace)
}

/// Returns the message about an ephemeral claim that was made for another pod. Returns `None` if it
/// is this pod's.
pub(crate) fn foreign(
    pod: Pod<'_>,
    claim: &PodClaim,
    row: &PersistentVolumeClaim,
) -> Option<String> {
    let task = &pod.cluster.tasks[pod.task];
    let is_ours = !claim.ephemeral || row.controller_uid.as_ref() == Some(&task.uid);
    let text = || {
        format!("PVC {} was not created for pod {} (pod is not owner)", key(pod, claim), task.key)
    };
    (!is_ours).then(text)
}

/// When the volume of an unbound claim is provisioned.
pub(crate) enum ProvisionMode<'a> {
    /// After a pod that uses the claim got a node.
    Delayed(&'a StorageClass),
    /// Without waiting for a pod.
    Immediate,
}

/// Returns the binding mode of a claim's storage class (section 5.1).
///
/// # Errors
///
/// The class has no binding mode.
pub(crate) fn mode<'a>(
    volumes: &'a Volumes,
    claim: &PersistentVolumeClaim,
) -> Result<ProvisionMode<'a>, String> {
    let Some(class) = volumes.class(&claim.class) else { return Ok(ProvisionMode::Immediate) };
    match class.mode {
        BindingMode::Delayed => Ok(ProvisionMode::Delayed(class)),
        BindingMode::Immediate => Ok(ProvisionMode::Immediate),
        BindingMode::Absent => Err(mode_not_set(&class.name)),
    }
}

pub(crate) fn mode_not_set(class: &Arc<str>) -> String {
    format!("VolumeBindingMode not set for StorageClass {class:?}")
}

pub(crate) fn claim_not_found(name: &str) -> String {
    format!("persistentvolumeclaim {name:?} not found")
}

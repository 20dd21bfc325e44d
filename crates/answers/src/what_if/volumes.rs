//! What controllers and the API server answer to the writes before a bind: volumes and claims are
//! bound to each other at once, and claims for devices have their devices.
//! Specification: plugins-nodes.md 5.7, 6.7.

use std::sync::Arc;

use vc_engine::{Effect, PreBindWrites};
use vc_model::{
    ClaimRef, Cluster, ClusterEvent, Consumer, DeviceObject, PersistentVolume,
    PersistentVolumeClaim, StorageObject, VolumePhase, VolumeSource,
};

/// Returns the answers to the writes among the effects, and true if a volume is made for a claim.
pub(super) fn written(cluster: &Cluster, effects: &[Effect]) -> (Vec<ClusterEvent>, bool) {
    let (mut events, mut has_provisioned) = (Vec::new(), false);
    for effect in effects {
        let Effect::PreBind { pod, uid, writes, .. } = effect else { continue };
        let PreBindWrites { bindings, provisions, devices } = &**writes;
        for (claim, volume) in bindings {
            let claim = cluster.volumes.claim(&claim.key).cloned();
            let volume = cluster.volumes.volume(volume).cloned();
            events.extend(claim.zip(volume).into_iter().flat_map(bound));
        }
        for claim in provisions {
            let Some(claim) = cluster.volumes.claim(&claim.key).cloned() else { continue };
            let volume = provisioned(cluster, &claim);
            events.extend(bound((claim, volume)));
            has_provisioned = true;
        }
        for promise in devices {
            let Some(claim) = cluster.devices.claim(&promise.key) else { continue };
            let mut claim = (*claim).clone();
            claim.allocation = claim.allocation.or_else(|| promise.allocation.clone());
            if claim.reserved_for.iter().all(|consumer| consumer.uid != *uid) {
                claim.reserved_for.push(Consumer { name: pod.name.clone(), uid: uid.clone() });
            }
            events.push(ClusterEvent::DeviceApplied(Box::new(DeviceObject::Claim(claim))));
        }
        let (uid, objects, devices) = (uid.clone(), Vec::new(), Vec::new());
        events.push(ClusterEvent::VolumesWritten { uid, objects, devices });
    }
    (events, has_provisioned)
}

/// Returns a volume and a claim that are bound to each other.
fn bound((mut claim, mut volume): (PersistentVolumeClaim, PersistentVolume)) -> [ClusterEvent; 2] {
    volume.claim = Some(ClaimRef { claim: claim.key.clone(), uid: claim.uid.clone() });
    volume.phase = VolumePhase::Other;
    claim.volume_name = volume.name.clone();
    (claim.bind_completed, claim.has_annotations) = (true, true);
    let applied = |object| ClusterEvent::StorageApplied(Box::new(object));
    [applied(StorageObject::Volume(volume)), applied(StorageObject::Claim(claim))]
}

/// Returns the volume that a provisioner makes for a claim. Every node can access it.
fn provisioned(cluster: &Cluster, claim: &PersistentVolumeClaim) -> PersistentVolume {
    let name: Arc<str> = format!("pvc-{}", claim.uid).into();
    let class = cluster.volumes.class(&claim.class);
    let driver = class.map(|class| class.driver.as_ref().unwrap_or(&class.provisioner).clone());
    let driver = driver.unwrap_or_default();
    PersistentVolume {
        class: claim.class.clone(),
        capacity_bytes: claim.request_bytes.unwrap_or(0),
        mode: claim.mode,
        access_modes: claim.access_modes,
        source: VolumeSource::Csi { driver, handle: name.clone() },
        name,
        ..PersistentVolume::default()
    }
}

//! Progress of PreBind after its writes: the volumes of a task are bound, may still be, or never
//! will. The caller handles time-outs.
//! Specification: plugins-nodes.md 5.7, 5.8.

use std::sync::Arc;

use vc_model::{
    BindingStage, Cluster, Node, ObjectKey, PersistentVolumeClaim, Reservation, ReservedClaim,
    TaskId,
};

use super::bound::BoundVolume;

/// Progress of the binding of a task's volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All volumes are bound.
    Ready,
    /// Some volumes are not bound yet.
    Waiting,
    /// Some volume will never be bound, for this reason.
    Failed(String),
}

/// Returns the progress of the volumes that are reserved for the task.
pub fn progress(cluster: &Cluster, task: TaskId) -> Progress {
    let Some(reservation) = cluster.volumes.reservation(task) else { return Progress::Ready };
    let Some(node) = cluster.tasks[task].node.map(|node| &cluster.nodes[node]) else {
        return Progress::Waiting;
    };
    if !node.present {
        let name = &node.name;
        return Progress::Failed(format!("failed to get node {name:?}: node {name:?} not found"));
    }
    if !is_written(cluster, reservation) {
        return Progress::Waiting;
    }
    let view = ReservationView { cluster, reservation, node };
    match view.check() {
        Ok(true) => Progress::Ready,
        Ok(false) => Progress::Waiting,
        Err(text) => Progress::Failed(text),
    }
}

/// True if the writes were stored and the cache has seen at least their versions.
fn is_written(cluster: &Cluster, reservation: &Reservation) -> bool {
    let has_volumes = !reservation.bindings.is_empty() || !reservation.provisions.is_empty();
    if !has_volumes && reservation.devices.is_empty() {
        return true;
    }
    let BindingStage::Written { volumes, claims, .. } = &reservation.stage else { return false };
    let stored = |name: &Arc<str>| cluster.volumes.volume(name);
    let claim = |key: &ObjectKey| cluster.volumes.claim(key);
    volumes.iter().all(|(name, version)| {
        stored(name).is_none_or(|row| has_seen(&row.resource_version, version))
    }) && claims
        .iter()
        .all(|(key, version)| claim(key).is_none_or(|row| has_seen(&row.resource_version, version)))
}

/// True if the stored version is at least the written one, or if they cannot be compared as
/// numbers.
fn has_seen(stored: &str, written: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    number(stored).zip(number(written)).is_none_or(|(stored, written)| written <= stored)
}

struct ReservationView<'a> {
    cluster: &'a Cluster,
    reservation: &'a Reservation,
    node: &'a Node,
}

impl ReservationView<'_> {
    /// Returns true if everything is bound. An `Err` ends the wait.
    fn check(&self) -> Result<bool, String> {
        let mut ready = true;
        for (claim, volume) in &self.reservation.bindings {
            ready &= self.binding(claim, volume)?;
        }
        for claim in &self.reservation.provisions {
            ready &= self.provision(claim)?;
        }
        for claim in &self.reservation.awaited {
            ready &= self.awaited(claim)?;
        }
        Ok(ready)
    }

    fn binding(&self, claim: &ReservedClaim, volume: &Arc<str>) -> Result<bool, String> {
        let row = self.cluster.volumes.volume(volume);
        let row = row.ok_or_else(|| format!("persistentvolume {volume:?} not found"))?;
        self.reached(volume)?;
        if row.claim.as_ref().is_none_or(|claim| claim.uid.is_empty()) {
            return Err(format!("ClaimRef got reset for pv {volume:?}"));
        }
        Ok(self.row(claim)?.is_bound())
    }

    fn provision(&self, claim: &ReservedClaim) -> Result<bool, String> {
        let row = self.row(claim)?;
        if !row.has_annotations {
            return Err(format!("selectedNode annotation reset for PVC {:?}", row.key.name));
        }
        if row.selected_node.as_ref() != Some(&self.node.name) {
            return Err(failed(row));
        }
        self.bound_here(row)
    }

    /// Checks a claim that another task, or an earlier attempt, has decided.
    fn awaited(&self, claim: &ReservedClaim) -> Result<bool, String> {
        let row = self.row(claim)?;
        if row.volume_name.is_empty() && self.cluster.volumes.selected(row).is_none() {
            return Err(failed(row));
        }
        self.bound_here(row)
    }

    fn bound_here(&self, row: &PersistentVolumeClaim) -> Result<bool, String> {
        if row.volume_name.is_empty() || self.cluster.volumes.volume(&row.volume_name).is_none() {
            return Ok(false);
        }
        self.reached(&row.volume_name)?;
        Ok(row.is_bound())
    }

    fn reached(&self, volume: &str) -> Result<(), String> {
        let volumes = &self.cluster.volumes;
        let Some(row) = volumes.volume(volume) else { return Ok(()) };
        match BoundVolume::new(row).is_reached(volumes, self.node)? {
            true => Ok(()),
            false => Err(format!(
                "pv {volume:?} node affinity doesn't match node {:?}: no matching \
                 NodeSelectorTerms",
                self.node.name
            )),
        }
    }

    fn row(&self, claim: &ReservedClaim) -> Result<&PersistentVolumeClaim, String> {
        let row = self.cluster.volumes.claim(&claim.key).filter(|row| row.uid == claim.uid);
        row.ok_or_else(|| crate::claims::claim_not_found(&claim.key.name))
    }
}

fn failed(row: &PersistentVolumeClaim) -> String {
    format!("provisioning failed for PVC {:?}", row.key.name)
}

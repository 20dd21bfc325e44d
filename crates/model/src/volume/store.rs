//! The tables of volumes, claims and storage, overlaid with the reservations of tasks
//! (kube-scheduler: assume cache). Specification: plugins-nodes.md 5.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::ids::TaskId;
use crate::reads::{self, Read};
use crate::record::ObjectKey;
use crate::volume::index::ReservedObjects;
use crate::volume::{
    ClaimRef, CsiDriver, CsiNode, Decision, PersistentVolume, PersistentVolumeClaim, Reservation,
    StorageCapacity, StorageClass, StorageKind, StorageObject, VolumeAttachment, VolumeName,
};

/// Volumes of a class, each with capacity and name.
type VolumesOfClass = BTreeSet<(i64, Arc<str>)>;

/// Volumes, claims and storage objects of the cluster. Rows of volumes and claims are shared one by
/// one, so that a copy of their maps is cheap, too.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Volumes {
    volumes: CopyOnWrite<BTreeMap<Arc<str>, Arc<PersistentVolume>>>,
    claims: CopyOnWrite<BTreeMap<ObjectKey, Arc<PersistentVolumeClaim>>>,
    classes: BTreeMap<Arc<str>, StorageClass>,
    csi_nodes: CopyOnWrite<BTreeMap<Arc<str>, CsiNode>>,
    csi_drivers: BTreeMap<Arc<str>, CsiDriver>,
    capacities: CopyOnWrite<BTreeMap<ObjectKey, StorageCapacity>>,
    attachments: CopyOnWrite<BTreeMap<Arc<str>, VolumeAttachment>>,
    of_class: CopyOnWrite<BTreeMap<Arc<str>, VolumesOfClass>>,
    /// Claims by the volume that they name.
    bound_to: CopyOnWrite<BTreeMap<Arc<str>, BTreeSet<ObjectKey>>>,
    /// Names of attachments by node.
    on_node: CopyOnWrite<BTreeMap<Arc<str>, BTreeSet<Arc<str>>>>,
    /// Tasks by the claim that they name, whether placed or not.
    users: CopyOnWrite<BTreeMap<ObjectKey, BTreeSet<TaskId>>>,
    pub(super) reservations: CopyOnWrite<BTreeMap<TaskId, Reservation>>,
    pub(super) promised: CopyOnWrite<ReservedObjects>,
    /// Tasks whose bind was decided and waits for volumes of their gang.
    pub(super) held: CopyOnWrite<BTreeSet<TaskId>>,
}

// There are few StorageClasses and CSIDrivers.
copy_on_write_members! { Volumes:
    shared reservations, promised, held, users, bound_to, of_class, on_node, volumes, claims,
        csi_nodes, capacities, attachments;
    copied classes, csi_drivers;
}

/// What is decided about a claim that is not bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected<'a> {
    /// The annotation of the claim says that it is provisioned for this node.
    Stored(&'a str),
    /// A volume is provisioned for the node of this task. The API server may not know this decision
    /// yet.
    Promised(TaskId),
    /// The claim gets this volume. The API server may not know this decision yet.
    Volume(&'a str),
}

impl Volumes {
    /// Returns the volume with this name.
    pub fn volume(&self, name: &str) -> Option<&PersistentVolume> {
        reads::note(Read::OtherObjects);
        self.volumes.get().get(name).map(|row| &**row)
    }

    /// Returns the claim with this key.
    pub fn claim(&self, key: &ObjectKey) -> Option<&PersistentVolumeClaim> {
        reads::note(Read::OtherObjects);
        self.claims.get().get(key).map(|row| &**row)
    }

    /// Returns the storage class with this name. No class has the empty name.
    pub fn class(&self, name: &str) -> Option<&StorageClass> {
        reads::note(Read::OtherObjects);
        self.classes.get(name)
    }

    /// Returns the CSINode of a node.
    pub fn csi_node(&self, name: &str) -> Option<&CsiNode> {
        reads::note(Read::OtherObjects);
        self.csi_nodes.get().get(name)
    }

    /// Returns the CSIDriver with this name.
    pub fn csi_driver(&self, name: &str) -> Option<&CsiDriver> {
        self.csi_drivers.get(name)
    }

    /// Returns the storage capacities of a class, by namespace and name.
    pub fn capacities<'a>(&'a self, class: &'a str) -> impl Iterator<Item = &'a StorageCapacity> {
        self.capacities.get().values().filter(move |capacity| *capacity.class == *class)
    }

    /// Returns the volumes of a class with at least `bytes` bytes, by capacity and name.
    pub fn volumes_from<'a>(
        &'a self,
        class: &str,
        bytes: i64,
    ) -> impl Iterator<Item = &'a PersistentVolume> {
        let of_class = self.of_class.get().get(class).into_iter();
        let from = move |set: &'a BTreeSet<(i64, Arc<str>)>| set.range((bytes, Arc::default())..);
        let rows = self.volumes.get();
        of_class.flat_map(from).filter_map(move |(_, name)| rows.get(name).map(|row| &**row))
    }

    /// Returns key and uid of the claim that the volume is bound to, reserved for or promised to.
    pub fn claim_of<'a>(
        &'a self,
        volume: &'a PersistentVolume,
    ) -> Option<(&'a ObjectKey, &'a str)> {
        match self.promised.get().volumes.get(&volume.name) {
            Some(claim) => Some((&claim.key, &claim.uid)),
            None => volume.claim.as_ref().map(|ClaimRef { claim, uid }| (claim, &**uid)),
        }
    }

    /// Returns what is decided about an unbound claim. Returns `None` if nothing is decided.
    pub fn selected<'a>(&'a self, claim: &'a PersistentVolumeClaim) -> Option<Selected<'a>> {
        match self.decision(&claim.key) {
            Some(Decision { volume: Some(volume), .. }) => Some(Selected::Volume(volume)),
            Some(Decision { task, volume: None }) => Some(Selected::Promised(*task)),
            None => claim.selected_node.as_deref().map(Selected::Stored),
        }
    }

    /// Returns the tasks that name a claim, whether placed or not.
    pub fn users(&self, claim: &ObjectKey) -> impl Iterator<Item = TaskId> {
        self.users.get().get(claim).into_iter().flatten().copied()
    }

    /// Returns the volumes that VolumeAttachments name on a node, whether pods there use them or
    /// not.
    pub fn attachments(&self, node: &str) -> impl Iterator<Item = VolumeName> {
        let names = self.on_node.get().get(node).into_iter().flatten();
        let rows = names.filter_map(|name| self.attachments.get().get(name));
        rows.filter_map(|row| self.attached_name(&row.attacher, &row.volume))
    }

    pub(crate) fn add_user(&mut self, claim: ObjectKey, task: TaskId) {
        self.users.get_mut().entry(claim).or_default().insert(task);
    }

    pub(crate) fn remove_user(&mut self, claim: &ObjectKey, task: TaskId) {
        remove(self.users.get_mut(), claim, &task);
    }

    /// Returns the number of (claim, task) pairs, for [`crate::Cluster::check`].
    pub(crate) fn n_users(&self) -> usize {
        self.users.get().values().map(BTreeSet::len).sum()
    }

    /// Returns the claims that name a volume.
    pub(crate) fn claims_on(&self, volume: &str) -> Vec<ObjectKey> {
        self.bound_to.get().get(volume).into_iter().flatten().cloned().collect()
    }

    /// Returns the claims of a class.
    pub(crate) fn claims_of_class(&self, class: &str) -> Vec<ObjectKey> {
        let claims = self.claims.get().values().filter(|claim| *claim.class == *class);
        claims.map(|claim| claim.key.clone()).collect()
    }

    /// Returns the resource version of a stored volume or claim. Returns `None` for other objects.
    pub(crate) fn stored_version(&self, object: &StorageObject) -> Option<&Arc<str>> {
        match object {
            StorageObject::Volume(new) => self.volume(&new.name).map(|old| &old.resource_version),
            StorageObject::Claim(new) => self.claim(&new.key).map(|old| &old.resource_version),
            _ => None,
        }
    }

    pub(crate) fn put(&mut self, object: StorageObject) {
        match object {
            StorageObject::Volume(volume) => self.put_volume(volume),
            StorageObject::Claim(claim) => self.put_claim(claim),
            StorageObject::Class(class) => drop(self.classes.insert(class.name.clone(), class)),
            StorageObject::CsiNode(node) => {
                self.csi_nodes.get_mut().insert(node.name.clone(), node);
            }
            StorageObject::CsiDriver(driver) => {
                self.csi_drivers.insert(driver.name.clone(), driver);
            }
            StorageObject::Capacity(row) => {
                self.capacities.get_mut().insert(row.key.clone(), row);
            }
            StorageObject::Attachment(row) => {
                self.remove(StorageKind::Attachment, &named(&row.name));
                let on_node = self.on_node.get_mut().entry(row.node.clone()).or_default();
                on_node.insert(row.name.clone());
                self.attachments.get_mut().insert(row.name.clone(), row);
            }
        }
    }

    /// Adds or replaces a volume. The index by class is not written if its entry stays the same.
    fn put_volume(&mut self, volume: PersistentVolume) {
        let known = self.volumes.get().get(&volume.name);
        let entry = |row: &PersistentVolume| (row.class.clone(), row.capacity_bytes);
        if known.map(|known| entry(known)) != Some(entry(&volume)) {
            self.remove(StorageKind::Volume, &named(&volume.name));
            let place = (volume.capacity_bytes, volume.name.clone());
            self.of_class.get_mut().entry(volume.class.clone()).or_default().insert(place);
        }
        self.volumes.get_mut().insert(volume.name.clone(), Arc::new(volume));
    }

    /// Adds or replaces a claim. The index by volume is not written if its entry stays the same.
    fn put_claim(&mut self, claim: PersistentVolumeClaim) {
        let known = self.claims.get().get(&claim.key);
        if known.map(|known| &known.volume_name) != Some(&claim.volume_name) {
            self.remove(StorageKind::Claim, &claim.key);
            if !claim.volume_name.is_empty() {
                let bound_to = self.bound_to.get_mut();
                let claims = bound_to.entry(claim.volume_name.clone()).or_default();
                claims.insert(claim.key.clone());
            }
        }
        self.claims.get_mut().insert(claim.key.clone(), Arc::new(claim));
    }

    pub(crate) fn remove(&mut self, kind: StorageKind, key: &ObjectKey) {
        let name = &key.name;
        match kind {
            StorageKind::Volume => {
                if let Some(old) = self.volumes.remove(name) {
                    let place = (old.capacity_bytes, old.name.clone());
                    remove(self.of_class.get_mut(), &old.class, &place);
                }
            }
            StorageKind::Claim => {
                if let Some(old) = self.claims.remove(key)
                    && !old.volume_name.is_empty()
                {
                    remove(self.bound_to.get_mut(), &old.volume_name, key);
                }
            }
            StorageKind::Class => drop(self.classes.remove(name)),
            StorageKind::CsiNode => drop(self.csi_nodes.remove(name)),
            StorageKind::CsiDriver => drop(self.csi_drivers.remove(name)),
            StorageKind::Capacity => drop(self.capacities.remove(key)),
            StorageKind::Attachment => {
                if let Some(old) = self.attachments.remove(name) {
                    remove(self.on_node.get_mut(), &old.node, name);
                }
            }
        }
    }

    /// Checks that the derived maps agree with the objects.
    pub(crate) fn check_indexes(&self) -> Result<(), String> {
        let mut fresh = Self::default();
        let (volumes, claims) = (self.volumes.get().values(), self.claims.get().values());
        volumes.for_each(|row| fresh.put_volume((**row).clone()));
        claims.for_each(|row| fresh.put_claim((**row).clone()));
        let attachments = self.attachments.get().values();
        attachments.for_each(|row| fresh.put(StorageObject::Attachment(row.clone())));
        let same = fresh.of_class.get() == self.of_class.get()
            && fresh.bound_to.get() == self.bound_to.get()
            && fresh.on_node.get() == self.on_node.get();
        if same { Ok(()) } else { Err("an index of the volumes is not that of its rows".into()) }
    }
}

fn named(name: &Arc<str>) -> ObjectKey {
    ObjectKey { namespace: Arc::default(), name: name.clone() }
}

/// Removes an element from a set, and the set if it becomes empty.
fn remove<K: Ord, T: Ord>(sets: &mut BTreeMap<K, BTreeSet<T>>, key: &K, element: &T) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(element);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}

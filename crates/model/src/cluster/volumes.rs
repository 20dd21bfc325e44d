//! Events of volumes, claims and storage. The tasks that an object concerns leave all sums, the
//! object changes, and the tasks return with their new requests. Specification: core.md 3.5.1, 3.8
//! (CSINode), plugins-nodes.md 4.6, 5.6.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_resource::{Dim, Resource};

use crate::class::Class;
use crate::cluster::Cluster;
use crate::cluster::place::uncount;
use crate::ids::{JobId, TaskId};
use crate::record::ObjectKey;
use crate::sums;
use crate::task::Gates;
use crate::volume::{
    BindingStage, PodVolume, Reservation, StorageKind, StorageObject, Volumes, csi_dimension,
};

/// Volume limit of a driver that states none.
const NO_LIMIT: i64 = i32::MAX as i64;

impl Cluster {
    pub(super) fn storage_applied(&mut self, object: StorageObject) {
        if self.is_progress(&object) {
            return self.volumes.put(object);
        }
        let (kind, key) = identity(&object);
        self.change_storage(kind, &key, |volumes| volumes.put(object));
    }

    /// True if no request and no volume name changes. This is so for most events, which only report
    /// the progress of a binding.
    fn is_progress(&self, object: &StorageObject) -> bool {
        let volumes = &self.volumes;
        match object {
            StorageObject::Volume(new) => {
                volumes.volume(&new.name).is_some_and(|old| old.source == new.source)
            }
            StorageObject::Claim(new) => volumes
                .claim(&new.key)
                .is_some_and(|old| old.volume_name == new.volume_name && old.class == new.class),
            StorageObject::Class(new) => volumes
                .class(&new.name)
                .is_some_and(|old| old.provisioner == new.provisioner && old.driver == new.driver),
            StorageObject::CsiNode(new) => {
                volumes.csi_node(&new.name).is_some_and(|old| old.drivers == new.drivers)
            }
            StorageObject::CsiDriver(_)
            | StorageObject::Capacity(_)
            | StorageObject::Attachment(_) => true,
        }
    }

    pub(super) fn storage_deleted(&mut self, kind: StorageKind, key: &ObjectKey) {
        self.change_storage(kind, key, |volumes| volumes.remove(kind, key));
    }

    /// Applies the volumes and claims that were stored for a task. The watch may already have
    /// delivered newer versions.
    pub(super) fn volumes_written(&mut self, uid: &str, objects: Vec<StorageObject>) {
        let (mut volumes, mut claims) = (Vec::new(), Vec::new());
        for object in &objects {
            match object {
                StorageObject::Volume(row) => {
                    volumes.push((row.name.clone(), row.resource_version.clone()));
                }
                StorageObject::Claim(row) => {
                    claims.push((row.key.clone(), row.resource_version.clone()));
                }
                _ => {}
            }
        }
        let task = self.task(uid);
        if let Some(stage) = task.and_then(|task| self.volumes.stage_mut(task))
            && let BindingStage::Sent { since_micros } = *stage
        {
            *stage = BindingStage::Written { since_micros, volumes, claims };
        }
        for object in objects {
            let stored = self.volumes.stored_version(&object);
            if stored.is_some_and(|stored| is_older(stored, version(&object))) {
                self.storage_applied(object);
            }
        }
    }

    /// Reserves volumes and devices for a task, in place of its earlier reservation. The
    /// reservation ends when the task loses its node.
    pub fn reserve(&mut self, task: TaskId, mut reservation: Reservation) {
        self.release(task);
        if let Some(shares) = reservation.shares.take() {
            self.tasks[task].devices = Some(shares);
        }
        self.tasks[task].cpus = reservation.cpus.take();
        self.tasks[task].node_lock = reservation.node_lock.take();
        if reservation == Reservation::default() {
            return;
        }
        self.devices.promise(task, &reservation.devices);
        self.volumes.reserve(task, reservation);
    }

    /// Returns what the task is promised with its node. Returns `None` if that is nothing.
    pub fn promise(&self, task: TaskId) -> Option<Reservation> {
        let volumes = self.volumes.reservation(task);
        let row = &self.tasks[task];
        let (shares, cpus, node_lock) =
            (row.devices.clone(), row.cpus.clone(), row.node_lock.clone());
        (volumes.is_some() || shares.is_some() || cpus.is_some()).then(|| Reservation {
            shares,
            cpus,
            node_lock,
            ..volumes.cloned().unwrap_or_default()
        })
    }

    /// Ends the reservation of a task, and its wait for a bind. The task keeps its node.
    pub fn release(&mut self, task: TaskId) {
        if let Some(reservation) = self.volumes.release(task) {
            self.devices.withdraw(task, &reservation.devices);
            self.pass_on(&reservation);
        }
    }

    /// Hands the decisions of an ended reservation to another task of the session that relies on
    /// them (deviation of plugins-nodes.md 5.8).
    fn pass_on(&mut self, gone: &Reservation) {
        for (claim, volume) in gone.decided() {
            let heirs = self.volumes.relying(claim);
            if let Some(heir) = heirs.min_by_key(|&task| &self.tasks[task].uid) {
                self.volumes.decide(heir, claim, volume.cloned());
            }
        }
    }

    /// Records that the bind of the task is decided and waits for the volumes of its gang. The task
    /// takes over tentative decisions about its claims; other decisions stay.
    pub fn hold(&mut self, task: TaskId, now_micros: i64) {
        self.volumes.hold(task);
        if let Some(stage) = self.volumes.stage_mut(task) {
            *stage = BindingStage::Sent { since_micros: now_micros };
        }
    }

    /// True if a job is ready without counting these tasks.
    pub fn ready_without(&self, job: JobId, tasks: &[TaskId]) -> bool {
        let mut job = self.jobs[job].clone();
        tasks.iter().for_each(|&task| uncount(&mut job, &self.tasks[task]));
        job.is_ready() && job.roles_ready() && job.sub_jobs_ready()
    }

    fn change_storage(
        &mut self,
        kind: StorageKind,
        key: &ObjectKey,
        change: impl FnOnce(&mut Volumes),
    ) {
        let tasks = self.concerned(kind, key);
        tasks.iter().for_each(|&task| self.detach(task));
        let limits = |cluster: &mut Self| match kind {
            StorageKind::CsiNode => cluster.volume_limits(&key.name),
            _ => Vec::new(),
        };
        let before = limits(self);
        change(&mut self.volumes);
        let after = limits(self);
        if before != after {
            self.change_limits(&key.name, &before, &after);
        }
        for task in tasks {
            self.refresh_request(task);
            self.attach(task);
        }
    }

    /// Returns the tasks whose request or volume names depend on the object.
    fn concerned(&self, kind: StorageKind, key: &ObjectKey) -> BTreeSet<TaskId> {
        let claims = match kind {
            StorageKind::Volume => self.volumes.claims_on(&key.name),
            StorageKind::Claim => vec![key.clone()],
            StorageKind::Class => self.volumes.claims_of_class(&key.name),
            StorageKind::CsiNode => {
                let node = self.node(&key.name).map(|node| &self.nodes[node]);
                let on_node = node.into_iter().flat_map(|node| node.tasks.iter().copied());
                return on_node.filter(|&task| !self.class(task).volumes.is_empty()).collect();
            }
            StorageKind::CsiDriver | StorageKind::Capacity | StorageKind::Attachment => {
                return BTreeSet::new();
            }
        };
        claims.iter().flat_map(|claim| self.volumes.users(claim)).collect()
    }

    /// Recomputes the part of a detached task's request that its claims add.
    fn refresh_request(&mut self, task: TaskId) {
        let old = self.classes[self.tasks[task].class].clone();
        let mut class = old.clone();
        self.count_claims(&mut class);
        if class.request == old.request {
            return;
        }
        let row = &mut self.tasks[task];
        row.best_effort = class.request.is_empty();
        if let Some(job) = row.job {
            let job = &mut self.jobs[job];
            if row.gates == Gates::Foreign {
                job.gated.change(sums::leave, &old.request);
                job.gated.change(sums::enter, &class.request);
            }
        }
        let before = row.class;
        self.tasks[task].class = self.acquire_class(class);
        self.release_class(before);
    }

    /// Adds one attachment per CSI claim to the request of a class (core.md 3.5.1).
    pub(super) fn count_claims(&mut self, class: &mut Class) {
        if class.volumes.is_empty() {
            return;
        }
        let request = &mut Arc::make_mut(&mut class.shape).request;
        for dim in request.scalars() {
            if self.dims.name(dim).starts_with("attachable-volumes-csi-") {
                request.remove(dim);
            }
        }
        for volume in &class.volumes {
            let PodVolume::Claim(claim) = volume else { continue };
            let key = claim.key(&class.namespace);
            let resource = self.volumes.resource_of(&key, &self.settings.ignored_provisioners);
            if let Some(dim) = resource.and_then(|name| self.dims.intern(&name)) {
                request.add_to(dim, 1);
            }
        }
    }

    /// Returns the volume limits by dimension in the CSINode with this name.
    pub(super) fn volume_limits(&mut self, node: &str) -> Vec<(Dim, i64)> {
        let Some(row) = self.volumes.csi_node(node) else { return Vec::new() };
        let limit = |(driver, count): &(Arc<str>, Option<i64>)| {
            Some((self.dims.intern(&csi_dimension(driver))?, count.unwrap_or(NO_LIMIT)))
        };
        row.drivers.iter().filter_map(limit).collect()
    }

    fn change_limits(&mut self, node: &str, before: &[(Dim, i64)], after: &[(Dim, i64)]) {
        let Some(id) = self.node(node).filter(|&id| self.nodes[id].present) else { return };
        let renewed = |amounts: &Resource| {
            let mut amounts = amounts.clone();
            before.iter().for_each(|&(dim, _)| amounts.remove(dim));
            after.iter().for_each(|&(dim, limit)| amounts.set(dim, limit));
            amounts
        };
        self.node_changes.push(id);
        let allocatable = renewed(&self.nodes[id].allocatable);
        self.nodes[id].capacity = renewed(&self.nodes[id].capacity);
        self.change_allocatable(id, allocatable);
    }

    /// Adds a task to the index of its claims if `named` is true, else removes it.
    pub(super) fn index_claims(&mut self, task: TaskId, named: bool) {
        let class = &self.classes[self.tasks[task].class];
        for volume in &class.volumes {
            let PodVolume::Claim(claim) = volume else { continue };
            let key = claim.key(&class.namespace);
            match named {
                true => self.volumes.add_user(key, task),
                false => self.volumes.remove_user(&key, task),
            }
        }
    }
}

fn identity(object: &StorageObject) -> (StorageKind, ObjectKey) {
    let named = |name: &Arc<str>| ObjectKey { namespace: Arc::default(), name: name.clone() };
    match object {
        StorageObject::Volume(row) => (StorageKind::Volume, named(&row.name)),
        StorageObject::Claim(row) => (StorageKind::Claim, row.key.clone()),
        StorageObject::Class(row) => (StorageKind::Class, named(&row.name)),
        StorageObject::CsiNode(row) => (StorageKind::CsiNode, named(&row.name)),
        StorageObject::CsiDriver(row) => (StorageKind::CsiDriver, named(&row.name)),
        StorageObject::Capacity(row) => (StorageKind::Capacity, row.key.clone()),
        StorageObject::Attachment(row) => (StorageKind::Attachment, named(&row.name)),
    }
}

fn version(object: &StorageObject) -> &str {
    match object {
        StorageObject::Volume(row) => &row.resource_version,
        StorageObject::Claim(row) => &row.resource_version,
        _ => "",
    }
}

/// True if the stored version is lower. Versions compare as numbers; versions that are no numbers
/// are never lower.
fn is_older(stored: &str, written: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    number(stored).zip(number(written)).is_some_and(|(stored, written)| stored < written)
}

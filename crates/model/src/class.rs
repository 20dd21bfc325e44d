//! Scheduling class: everything that filters and scorers read of a pod. Pods with equal content
//! share one class. Specification: actions.md 12.2 (S1), plugins-nodes.md 2.5 and 7.1.

use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::{Deserialize, Serialize};
use vc_resource::{Amount, Resource};

use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::default_spread::Controller;
use crate::device::PodResourceClaim;
use crate::device_share::DeviceDemand;
use crate::ids::{ClassId, Table};
use crate::index::Index;
use crate::numa::NumaDemand;
use crate::pod_affinity::{PodAffinity, SpreadConstraint};
use crate::resource_strategy::PodResourceStrategy;
use crate::selector::{HostPort, Labels, NodeAffinity, Toleration};
use crate::volume::PodVolume;

/// All that filters and scorers read of a pod. A class dereferences to its [`Shape`], so the fields
/// of the shape can be read from the class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Class {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// PersistentVolumeClaims and disks, in the order of `spec.volumes`.
    pub volumes: Vec<PodVolume>,
    /// `spec.affinity.podAffinity` and `podAntiAffinity`. `None` if the pod has no such term.
    pub pod_affinity: Option<Arc<PodAffinity>>,
    /// `spec.topologySpreadConstraints`.
    pub spread: Vec<SpreadConstraint>,
    /// Claims for devices, in the order of `spec.resourceClaims`.
    pub resource_claims: Vec<PodResourceClaim>,
    /// The controlling owner, if its kind has a pod selector (plugins-nodes.md 7.8: default spread
    /// constraints).
    pub controller: Option<Controller>,
    /// The other fields, shared by all classes that are equal in them. Nearly every job has labels
    /// of its own and terms that name them, so shapes are far fewer than classes.
    pub shape: Arc<Shape>,
}

/// The part of a class that rules about other pods, volumes and devices do not read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// The request of the pod. Volcano's Resreq and InitResreq are equal here (core.md 3.5).
    pub request: Resource,
    /// CPU and memory with the scoring defaults for containers that request nothing
    /// (plugins-nodes.md 7.1).
    pub non_zero: NonZero,
    /// Limits of cpu and memory.
    pub limits: PodLimits,
    /// `spec.nodeSelector`. `None` if it is absent.
    pub node_selector: Option<Labels>,
    /// `spec.affinity.nodeAffinity`.
    pub node_affinity: NodeAffinity,
    /// `spec.tolerations`.
    pub tolerations: Vec<Toleration>,
    /// Host ports of regular containers and restartable init containers, sorted and without
    /// duplicates.
    pub host_ports: Vec<HostPort>,
    /// Images of containers and init containers, by the names in node status.
    pub images: Vec<Arc<str>>,
    /// True with annotation `volcano.sh/revocable-zone: "*"` or its equivalent (core.md 3.2).
    pub any_revocable_zone: bool,
    /// How the pod wants its resources to be scored. `None` without the annotations.
    pub resource_strategy: Option<Arc<PodResourceStrategy>>,
    /// What the pod asks of shared devices. `None` if it requests no extended resource.
    pub device_demand: Option<DeviceDemand>,
    /// What the pod asks of the CPUs of its node. `None` if no CPUs are its own.
    pub numa_demand: Option<NumaDemand>,
}

impl Deref for Class {
    type Target = Shape;
    fn deref(&self) -> &Shape {
        &self.shape
    }
}

impl From<Shape> for Class {
    fn from(shape: Shape) -> Self {
        Self { shape: Arc::new(shape), ..Self::default() }
    }
}

/// CPU and memory of a pod as the Kubernetes scorers count them (plugins-nodes.md 7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NonZero {
    /// Millicores; a container without a CPU request counts 100.
    pub cpu_milli: i64,
    /// Bytes; a container without a memory request counts 200 Mi.
    pub memory_bytes: i64,
}

/// Limits of a pod, with its overhead where it has a limit (core.md 3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodLimits {
    /// Millicores. 0 if no container has a limit.
    pub cpu_milli: i64,
    /// Bytes. 0 if no container has a limit.
    pub memory_bytes: i64,
}

/// Sum of [`NonZero`] over pods. 128 bits keep it exact for any requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NonZeroSum {
    cpu_milli: i128,
    memory_bytes: i128,
}

impl NonZeroSum {
    /// Returns the sum, saturated to 64 bits.
    pub fn nearest(self) -> NonZero {
        let [(cpu_milli, _), (memory_bytes, _)] =
            [self.cpu_milli, self.memory_bytes].map(<i64 as Amount>::nearest);
        NonZero { cpu_milli, memory_bytes }
    }
}

impl From<NonZero> for NonZeroSum {
    fn from(of: NonZero) -> Self {
        Self { cpu_milli: of.cpu_milli.into(), memory_bytes: of.memory_bytes.into() }
    }
}

impl std::ops::AddAssign<NonZero> for NonZeroSum {
    fn add_assign(&mut self, other: NonZero) {
        self.cpu_milli += i128::from(other.cpu_milli);
        self.memory_bytes += i128::from(other.memory_bytes);
    }
}

impl std::ops::SubAssign<NonZero> for NonZeroSum {
    fn sub_assign(&mut self, other: NonZero) {
        self.cpu_milli -= i128::from(other.cpu_milli);
        self.memory_bytes -= i128::from(other.memory_bytes);
    }
}

/// The classes in use, by content, with the number of tasks of each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Classes {
    rows: Table<ClassId, ClassRow>,
    by_content: Index<ClassId>,
    /// The class of the task that was added last.
    last: Option<ClassId>,
    shapes: CopyOnWrite<FxHashMap<Arc<Shape>, ShapeUse>>,
    n_made: u64,
}

copy_on_write_members! { Classes: shared by_content, shapes, rows; copied last, n_made; }

/// The id of a shape, and the number of classes that have it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ShapeUse {
    shape_id: u64,
    n_classes: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ClassRow {
    class: Arc<Class>,
    n_tasks: u32,
    shape_id: u64,
}

impl Classes {
    /// Returns the class with this content, and true if the class is new. Its number of tasks
    /// increases by one.
    pub(crate) fn acquire(&mut self, mut class: Class) -> (ClassId, bool) {
        let known = self.shapes.get().get_key_value(&class.shape);
        let ShapeUse { shape_id, .. } = match known {
            Some((shape, &sharers)) => {
                class.shape = shape.clone();
                sharers
            }
            None => ShapeUse { shape_id: self.n_made + 1, n_classes: 0 },
        };
        // Pods of a gang arrive one after the other, so the last class is tried first.
        let is_it = |id: ClassId| self.rows.get(id).is_some_and(|row| *row.class == class);
        if let Some(id) = self.last.filter(|&id| is_it(id)) {
            self.rows[id].n_tasks += 1;
            return (id, false);
        }
        let hash = hash(&class, shape_id);
        if let Some(id) = self.by_content.get(&hash, is_it) {
            self.last = Some(id);
            self.rows[id].n_tasks += 1;
            return (id, false);
        }
        self.n_made = self.n_made.max(shape_id);
        let sharers = self.shapes.get_mut().entry(class.shape.clone());
        sharers.or_insert(ShapeUse { shape_id, n_classes: 0 }).n_classes += 1;
        let id = self.rows.insert(ClassRow { class: Arc::new(class), n_tasks: 1, shape_id });
        self.by_content.insert(&hash, id);
        self.last = Some(id);
        (id, true)
    }

    /// Increases the number of tasks of a class that has some by one.
    pub(crate) fn acquire_again(&mut self, id: ClassId) {
        self.rows[id].n_tasks += 1;
    }

    /// Decreases the number of tasks of a class by one. Without tasks the class is removed. Returns
    /// the content of a removed class, else `None`.
    pub(crate) fn release(&mut self, id: ClassId) -> Option<Arc<Class>> {
        self.rows[id].n_tasks -= 1;
        if self.rows[id].n_tasks != 0 {
            return None;
        }
        let row = self.rows.remove(id)?;
        self.by_content.remove(&hash(&row.class, row.shape_id), id);
        if let Some(sharers) = self.shapes.get_mut().get_mut(&row.class.shape) {
            sharers.n_classes -= 1;
            if sharers.n_classes == 0 {
                self.shapes.get_mut().remove(&row.class.shape);
            }
        }
        Some(row.class)
    }

    /// Builds the hash index anew, after texts of a stored state were replaced.
    pub(crate) fn rebuild_index(&mut self) {
        self.by_content = Index::default();
        for (id, row) in self.rows.iter() {
            self.by_content.insert(&hash(&row.class, row.shape_id), id);
        }
    }

    /// Returns the identity of the shape of a class, which is never used again for another shape.
    /// Class ids are used again. Two classes have one shape if they differ only in namespace,
    /// labels, controller, pod affinity, spread, volumes and resource claims.
    pub fn shape_id(&self, id: ClassId) -> u64 {
        self.rows[id].shape_id
    }

    /// Returns the largest amount of each dimension that a pod of any class requests.
    pub fn largest_request(&self) -> Resource {
        let mut largest = Resource::default();
        // The order of the shapes has no effect on a maximum.
        for request in self.shapes.get().keys().map(|shape| &shape.request) {
            for dim in request.dims() {
                largest.set(dim, largest.get(dim).max(request.get(dim)));
            }
        }
        largest
    }

    pub(crate) fn recycle(&mut self) {
        self.rows.recycle();
    }

    /// Returns the number of distinct classes.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there is no class.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the number of tasks per class, by row, for [`crate::Cluster::check`].
    pub(crate) fn references(&self) -> Vec<(ClassId, u32)> {
        self.rows.iter().map(|(id, row)| (id, row.n_tasks)).collect()
    }
}

/// Returns the hash of a class whose shape has this id.
fn hash(class: &Class, shape_id: u64) -> u64 {
    let Class {
        namespace,
        labels,
        volumes,
        pod_affinity,
        spread,
        resource_claims,
        controller,
        shape: _,
    } = class;
    let rest = (volumes, pod_affinity, spread, resource_claims, controller);
    FxBuildHasher.hash_one((shape_id, namespace, labels, rest))
}

impl std::ops::Index<ClassId> for Classes {
    type Output = Class;
    fn index(&self, id: ClassId) -> &Class {
        &self.rows[id].class
    }
}

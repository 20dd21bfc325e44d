//! Scheduling class: everything that filters and scorers read of a pod, kept once for all pods that
//! agree in it. Specification: actions.md 12.2 S1, plugins-nodes.md 2.5 and 7.1.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use vc_resource::Resource;

use crate::default_spread::Controller;
use crate::device::PodResourceClaim;
use crate::ids::{ClassId, Table};
use crate::pod_affinity::{PodAffinity, SpreadConstraint};
use crate::selector::{HostPort, Labels, NodeAffinity, Toleration};
use crate::volume::PodVolume;

/// What filters and scorers read of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Class {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// Resreq and InitResreq, which are equal (core.md 3.5).
    pub request: Resource,
    /// Millicpu and bytes with the scoring defaults for containers that request nothing (7.1).
    pub non_zero: NonZero,
    /// `None`: absent.
    pub node_selector: Option<Labels>,
    /// `spec.affinity.nodeAffinity`.
    pub node_affinity: NodeAffinity,
    /// `spec.tolerations`.
    pub tolerations: Vec<Toleration>,
    /// Of regular and restartable init containers, sorted, without repetition.
    pub host_ports: Vec<HostPort>,
    /// Claims and disks, in the order of `spec.volumes`.
    pub volumes: Vec<PodVolume>,
    /// Images of containers and init containers, as nodes list them.
    pub images: Vec<Arc<str>>,
    /// `spec.affinity.podAffinity` and `podAntiAffinity`; `None`: no term.
    pub pod_affinity: Option<Arc<PodAffinity>>,
    /// `spec.topologySpreadConstraints`.
    pub spread: Vec<SpreadConstraint>,
    /// In the order of `spec.resourceClaims`.
    pub resource_claims: Vec<PodResourceClaim>,
    /// The controlling owner, if it is of a kind that selects pods (7.8).
    pub controller: Option<Controller>,
}

/// A class without what only rules about other pods, volumes and devices read. Compared in place:
/// nearly every job has a class of its own.
#[derive(Clone, Debug)]
struct ShapeOf(Arc<Class>);

impl ShapeOf {
    fn parts(&self) -> impl Hash + Eq + '_ {
        let Class {
            request,
            non_zero,
            node_selector,
            node_affinity,
            tolerations,
            host_ports,
            images,
            namespace: _,
            labels: _,
            controller: _,
            pod_affinity: _,
            spread: _,
            volumes: _,
            resource_claims: _,
        } = &*self.0;
        (request, non_zero, node_selector, node_affinity, tolerations, host_ports, images)
    }
}

impl PartialEq for ShapeOf {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for ShapeOf {}

impl Hash for ShapeOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// Cpu and memory of a pod as the Kubernetes scorers count them (plugins-nodes.md 7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NonZero {
    /// Millicores; 100 for a container without a cpu request.
    pub cpu_milli: i64,
    /// Bytes; 200 Mi for a container without a memory request.
    pub memory_bytes: i64,
}

impl std::ops::AddAssign for NonZero {
    fn add_assign(&mut self, other: Self) {
        self.cpu_milli = self.cpu_milli.wrapping_add(other.cpu_milli);
        self.memory_bytes = self.memory_bytes.wrapping_add(other.memory_bytes);
    }
}

impl std::ops::SubAssign for NonZero {
    fn sub_assign(&mut self, other: Self) {
        self.cpu_milli = self.cpu_milli.wrapping_sub(other.cpu_milli);
        self.memory_bytes = self.memory_bytes.wrapping_sub(other.memory_bytes);
    }
}

/// The classes in use, by content, with the number of tasks of each.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    rows: Table<ClassId, Row>,
    /// By the hash of the content: first lists are long, and the map grows several times.
    by_hash: FxHashMap<u64, SmallVec<[ClassId; 1]>>,
    shapes: FxHashMap<ShapeOf, Shape>,
    n_made: u64,
}

/// What classes have in common that differ in what [`ShapeOf`] leaves out alone.
#[derive(Clone, Debug)]
struct Shape {
    serial: u64,
    n_classes: u32,
}

#[derive(Clone, Debug)]
struct Row {
    class: Arc<Class>,
    n_tasks: u32,
    serial: u64,
}

impl Classes {
    /// The class of this content, one task more, and whether it is new.
    pub(crate) fn acquire(&mut self, class: Class) -> (ClassId, bool) {
        let hash = FxBuildHasher.hash_one(&class);
        let alike = self.by_hash.entry(hash).or_default();
        if let Some(&id) = alike.iter().find(|&&id| *self.rows[id].class == class) {
            self.rows[id].n_tasks += 1;
            return (id, false);
        }
        let class = Arc::new(class);
        let serial = self.acquire_shape(&class);
        let id = self.rows.insert(Row { class, n_tasks: 1, serial });
        self.by_hash.entry(hash).or_default().push(id);
        (id, true)
    }

    /// One task less; the last one takes the class away and gets its content.
    pub(crate) fn release(&mut self, id: ClassId) -> Option<Arc<Class>> {
        self.rows[id].n_tasks -= 1;
        if self.rows[id].n_tasks != 0 {
            return None;
        }
        let row = self.rows.remove(id)?;
        let hash = FxBuildHasher.hash_one(&*row.class);
        if let Some(alike) = self.by_hash.get_mut(&hash) {
            alike.retain(|other| *other != id);
            if alike.is_empty() {
                self.by_hash.remove(&hash);
            }
        }
        self.release_shape(&row.class);
        Some(row.class)
    }

    fn acquire_shape(&mut self, class: &Arc<Class>) -> u64 {
        self.n_made += 1;
        let new = Shape { serial: self.n_made, n_classes: 0 };
        let shape = self.shapes.entry(ShapeOf(class.clone())).or_insert(new);
        shape.n_classes += 1;
        shape.serial
    }

    fn release_shape(&mut self, class: &Arc<Class>) {
        let content = ShapeOf(class.clone());
        if let Some(shape) = self.shapes.get_mut(&content) {
            shape.n_classes -= 1;
            if shape.n_classes == 0 {
                self.shapes.remove(&content);
            }
        }
    }

    /// A number that only classes have or had that agree in everything but namespace, labels, pod
    /// affinity, spread, volumes and resource claims: ids are used again. Nearly every job has labels
    /// of its own, and terms that name them.
    pub fn serial(&self, id: ClassId) -> u64 {
        self.rows[id].serial
    }

    pub(crate) fn recycle(&mut self) {
        self.rows.recycle();
    }

    /// Number of distinct classes.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no class.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Tasks per class, by row; for [`crate::Cluster::check`].
    pub(crate) fn references(&self) -> Vec<(ClassId, u32)> {
        self.rows.iter().map(|(id, row)| (id, row.n_tasks)).collect()
    }
}

impl std::ops::Index<ClassId> for Classes {
    type Output = Class;
    fn index(&self, id: ClassId) -> &Class {
        &self.rows[id].class
    }
}

//! Scheduling class: everything that filters and scorers read of a pod, kept once for all pods that
//! agree in it. Specification: actions.md 12.2 S1, plugins-nodes.md 2.5 and 7.1.

use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};
use vc_resource::{Amount, Resource};

use crate::default_spread::Controller;
use crate::device::PodResourceClaim;
use crate::ids::{ClassId, Table};
use crate::index::Index;
use crate::pod_affinity::{PodAffinity, SpreadConstraint};
use crate::selector::{HostPort, Labels, NodeAffinity, Toleration};
use crate::volume::PodVolume;

/// What filters and scorers read of a pod; what is in [`Shape`] is read as if it stood here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Class {
    /// `metadata.namespace`.
    pub namespace: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// Claims and disks, in the order of `spec.volumes`.
    pub volumes: Vec<PodVolume>,
    /// `spec.affinity.podAffinity` and `podAntiAffinity`; `None`: no term.
    pub pod_affinity: Option<Arc<PodAffinity>>,
    /// `spec.topologySpreadConstraints`.
    pub spread: Vec<SpreadConstraint>,
    /// In the order of `spec.resourceClaims`.
    pub resource_claims: Vec<PodResourceClaim>,
    /// The controlling owner, if it is of a kind that selects pods (7.8).
    pub controller: Option<Controller>,
    /// The rest, kept once for all classes that agree in it: nearly every job has labels of its own,
    /// and terms that name them.
    pub shape: Arc<Shape>,
}

/// What of a class rules about other pods, volumes and devices do not read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
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
    /// Images of containers and init containers, as nodes list them.
    pub images: Vec<Arc<str>>,
    /// Annotation `volcano.sh/revocable-zone: "*"` or its stand-in (core.md 3.2).
    pub any_revocable_zone: bool,
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

/// Cpu and memory of a pod as the Kubernetes scorers count them (plugins-nodes.md 7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NonZero {
    /// Millicores; 100 for a container without a cpu request.
    pub cpu_milli: i64,
    /// Bytes; 200 Mi for a container without a memory request.
    pub memory_bytes: i64,
}

/// Sum of [`NonZero`] over pods, exact whatever they request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonZeroSum {
    cpu_milli: i128,
    memory_bytes: i128,
}

impl NonZeroSum {
    /// The nearest amounts of 64 bits.
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
#[derive(Clone, Debug, Default)]
pub struct Classes {
    rows: Table<ClassId, Row>,
    by_content: Index<ClassId>,
    /// That of the task that came last.
    last: Option<ClassId>,
    shapes: FxHashMap<Arc<Shape>, Sharers>,
    n_made: u64,
}

/// Who has a shape.
#[derive(Clone, Copy, Debug)]
struct Sharers {
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
    pub(crate) fn acquire(&mut self, mut class: Class) -> (ClassId, bool) {
        let known = self.shapes.get_key_value(&class.shape);
        let Sharers { serial, .. } = match known {
            Some((shape, &sharers)) => {
                class.shape = shape.clone();
                sharers
            }
            None => Sharers { serial: self.n_made + 1, n_classes: 0 },
        };
        // Pods of a gang come one after the other.
        let is_it = |id: ClassId| self.rows.get(id).is_some_and(|row| *row.class == class);
        if let Some(id) = self.last.filter(|&id| is_it(id)) {
            self.rows[id].n_tasks += 1;
            return (id, false);
        }
        let hash = hash(&class, serial);
        if let Some(id) = self.by_content.get(&hash, is_it) {
            self.last = Some(id);
            self.rows[id].n_tasks += 1;
            return (id, false);
        }
        self.n_made = self.n_made.max(serial);
        let sharers = self.shapes.entry(class.shape.clone());
        sharers.or_insert(Sharers { serial, n_classes: 0 }).n_classes += 1;
        let id = self.rows.insert(Row { class: Arc::new(class), n_tasks: 1, serial });
        self.by_content.insert(&hash, id);
        self.last = Some(id);
        (id, true)
    }

    /// One task less; the last one takes the class away and gets its content.
    pub(crate) fn release(&mut self, id: ClassId) -> Option<Arc<Class>> {
        self.rows[id].n_tasks -= 1;
        if self.rows[id].n_tasks != 0 {
            return None;
        }
        let row = self.rows.remove(id)?;
        self.by_content.remove(&hash(&row.class, row.serial), id);
        if let Some(sharers) = self.shapes.get_mut(&row.class.shape) {
            sharers.n_classes -= 1;
            if sharers.n_classes == 0 {
                self.shapes.remove(&row.class.shape);
            }
        }
        Some(row.class)
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

/// Of the content of a class whose shape has this serial.
fn hash(class: &Class, serial: u64) -> u64 {
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
    FxBuildHasher.hash_one((serial, namespace, labels, rest))
}

impl std::ops::Index<ClassId> for Classes {
    type Output = Class;
    fn index(&self, id: ClassId) -> &Class {
        &self.rows[id].class
    }
}

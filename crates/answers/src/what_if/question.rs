//! What is supposed: changes of the cluster as data. Specification: answers.md 9.

use std::sync::Arc;

use vc_conf::Config;
use vc_model::{
    ClusterEvent, Labels, NodeGroupAffinity, NodeRecord, ObjectKey, QueueState, ResourceList,
    Taint, Toleration,
};

/// Changes that a question may have, and jobs, objects, labels, taints, tolerations and requests that all
/// of them may list.
pub const MOST_CHANGES: usize = 1_000;
/// Nodes that a question may add.
pub const MOST_NEW_NODES: u64 = 10_000;
/// Pods that a question may add.
pub const MOST_NEW_PODS: usize = 20_000;
/// Cycles that a question may ask for.
pub const MOST_CYCLES: u32 = 20;
/// Ends of pods that all changes of a question let happen.
pub(super) const MOST_ENDS: usize = 500;

/// A question: what would happen with these changes?
#[derive(Clone, Debug, Default)]
pub struct WhatIf {
    /// Changes, in order.
    pub changes: Vec<Change>,
    /// Cycles after the changes, if kubelets are instant. Without kubelets there is one.
    pub cycles: CycleLimit,
    /// What happens to pods between cycles.
    pub kubelet: SupposedKubelet,
}

/// How many cycles are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CycleLimit {
    /// Until one decides nothing, at most [`MOST_CYCLES`].
    #[default]
    Settled,
    /// So many.
    Number(u32),
}

/// What happens to pods between cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SupposedKubelet {
    /// Bound pods run, evicted pods are gone.
    #[default]
    Instant,
    /// Bound pods stay bound, evicted pods terminate: what one cycle alone decides.
    None,
}

/// A bound at which an answer left something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhatIfBound {
    /// The number of ends that changes let happen: later ends were left out.
    Ends,
    /// The number of cycles after the changes: the last one still decided something.
    Cycles,
}

impl WhatIfBound {
    /// Returns what was left out, as answers name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ends => "ends",
            Self::Cycles => "cycles",
        }
    }

    /// Returns the number beyond which it was left out.
    pub fn most(self) -> usize {
        match self {
            Self::Ends => MOST_ENDS,
            Self::Cycles => MOST_CYCLES as usize,
        }
    }
}

/// One change.
#[derive(Clone, Debug)]
pub enum Change {
    /// Empty nodes are added.
    AddNodes {
        /// What they are like.
        nodes: NewNodes,
        /// Their number.
        count: u64,
    },
    /// Nodes are removed. Their pods wait again if a controller makes them anew.
    RemoveNodes(NodeSelection),
    /// Nodes get no new pods; their pods stay.
    Cordon(NodeSelection),
    /// Nodes get new pods again.
    Uncordon(NodeSelection),
    /// Labels and taints of nodes change.
    PatchNodes(NodeSelection, NodePatch),
    /// Objects are added or changed.
    Apply(Vec<ClusterEvent>),
    /// Objects are deleted.
    Delete(Vec<LiveObject>),
    /// The pods of these PodGroups that have a node end now, successfully.
    Finish(Vec<ObjectKey>),
    /// A queue changes.
    SetQueue(Arc<str>, Box<QueueChange>),
    /// A PodGroup changes.
    SetJob(ObjectKey, PodGroupChange),
    /// The waiting pods of a PodGroup change.
    SetPods(ObjectKey, Box<PodChange>),
    /// Another configuration is in force.
    Configure(Box<Config>),
    /// The clock moves on, and expected ends happen. Microseconds.
    Advance(i64),
}

/// What new nodes are like.
#[derive(Clone, Debug)]
pub enum NewNodes {
    /// A node with this name, without its pods.
    Like(Arc<str>),
    /// This node.
    Node(Box<NodeRecord>),
}

/// Nodes by name, and those with all of these labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSelection {
    /// Names.
    pub names: Vec<Arc<str>>,
    /// Labels that nodes must have. `None`: no node is selected by labels.
    pub match_labels: Option<Labels>,
}

/// A change of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePatch {
    /// Labels that are set. `None` removes the label.
    pub labels: Vec<(Arc<str>, Option<Arc<str>>)>,
    /// Taints that are added.
    pub add_taints: Vec<Taint>,
    /// Keys of taints that are removed.
    pub remove_taints: Vec<Arc<str>>,
}

/// An object by kind and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveObject {
    /// A pod.
    Pod(ObjectKey),
    /// A PodGroup, or the controller of one, with all of its pods.
    Job(ObjectKey),
    /// The controller of this kind, as in `Deployment`, with its PodGroups and pods.
    Controller(Arc<str>, ObjectKey),
    /// A queue.
    Queue(Arc<str>),
    /// A node.
    Node(Arc<str>),
    /// A PriorityClass.
    PriorityClass(Arc<str>),
    /// A PodDisruptionBudget.
    Budget(ObjectKey),
}

/// Fields of the spec of a queue. `None` keeps the value.
#[derive(Clone, Debug, Default)]
pub struct QueueChange {
    /// `weight`.
    pub weight: Option<i32>,
    /// `priority`.
    pub priority: Option<i32>,
    /// `reclaimable`.
    pub reclaimable: Option<bool>,
    /// `capability`: these resources; others keep theirs.
    pub capability: Option<ResourceList>,
    /// `deserved`, likewise.
    pub deserved: Option<ResourceList>,
    /// `guarantee.resource`, likewise.
    pub guarantee: Option<ResourceList>,
    /// `parent`.
    pub parent: Option<Arc<str>>,
    /// True for `dequeueStrategy: fifo`.
    pub fifo: Option<bool>,
    /// `status.state`.
    pub state: Option<QueueState>,
    /// `affinity`, in place of the present one.
    pub affinity: Option<NodeGroupAffinity>,
}

/// Fields of the spec of a PodGroup. `None` keeps the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodGroupChange {
    /// `priorityClassName`. The waiting pods get it, too.
    pub priority_class_name: Option<Arc<str>>,
    /// `minMember`.
    pub min_member: Option<i32>,
    /// `queue`.
    pub queue: Option<Arc<str>>,
}

/// Fields of the spec of pods. `None` keeps the value.
#[derive(Clone, Debug, Default)]
pub struct PodChange {
    /// Tolerations that are added.
    pub tolerations: Option<Vec<Toleration>>,
    /// `nodeSelector`, in place of the present one.
    pub node_selector: Option<Labels>,
    /// Requests of a whole pod for these resources; others keep theirs.
    pub requests: Option<ResourceList>,
}

/// Why a question is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.changes[{change}].{field}: {message}")]
pub struct WhatIfError {
    /// Number of the change, from 0.
    pub change: usize,
    /// Path of the field in the change.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

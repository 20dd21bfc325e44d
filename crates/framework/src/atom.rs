//! Atoms: the things that may keep a job from its place, as a closed list in rank order.
//! Specification: answers.md 4.1.

use std::cmp::Ordering;
use std::sync::Arc;

use vc_model::TaintEffect;
use vc_resource::{Dim, Dims};

/// One thing that may keep a job from its place. The order of the variants is the rank.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// Pods of the job have scheduling gates.
    Gates,
    /// Members that the gang needs do not exist.
    Members,
    /// The queue does not exist or is not open.
    Queue,
    /// This plugin does not admit the job to its queue.
    Admission(&'static str),
    /// This plugin calls the queue overused, or has no room in it.
    Share(&'static str),
    /// Jobs that come first hold what the job needs.
    Order,
    /// The node belongs to another scheduler's shard.
    Shard,
    /// This rule refuses the pod before any node is looked at.
    Need(&'static str),
    /// The node does not meet what the pod asks of the label with this key.
    Label(Arc<str>),
    /// The pod does not tolerate this taint, given as key, value and effect.
    Taint(Arc<str>, Arc<str>, TaintEffect),
    /// The node is unschedulable.
    Cordon,
    /// This filter refuses the node.
    Filter(&'static str),
    /// Labels, taints and filters that refuse few nodes each, where there are too many atoms.
    OtherFilters,
    /// The network topology of the job.
    Topology,
    /// A node that has the resource lacks some of it.
    Room(Dim),
    /// Fewer members than the gang needs find places.
    Minimum,
    /// The node does not have the resource at all. It is no atom that could be lifted.
    Lacks(Dim),
}

impl Atom {
    /// Returns the name: `room/nvidia.com/gpu`, `taint/team=vision:NoSchedule`, `order`.
    pub fn text(&self, dims: &Dims) -> String {
        match self {
            Self::Gates => "gates".to_owned(),
            Self::Members => "members".to_owned(),
            Self::Queue => "queue".to_owned(),
            Self::Admission(plugin) => format!("admission/{plugin}"),
            Self::Share(plugin) => format!("share/{plugin}"),
            Self::Order => "order".to_owned(),
            Self::Shard => "shard".to_owned(),
            Self::Need(rule) => format!("need/{rule}"),
            Self::Label(key) => format!("label/{key}"),
            Self::Taint(..) => format!("taint/{}", self.taint_text()),
            Self::Cordon => "cordon".to_owned(),
            Self::Filter(rule) => format!("filter/{rule}"),
            Self::OtherFilters => "filter/others".to_owned(),
            Self::Topology => "topology".to_owned(),
            Self::Room(dim) => format!("room/{}", dims.name(*dim)),
            Self::Minimum => "minimum".to_owned(),
            Self::Lacks(dim) => format!("lacks/{}", dims.name(*dim)),
        }
    }

    /// Returns `key=value:Effect` of a taint, without `=` if the value is empty. The text of any
    /// other atom is empty.
    pub fn taint_text(&self) -> String {
        let Self::Taint(key, value, effect) = self else { return String::new() };
        let equals = if value.is_empty() { "" } else { "=" };
        format!("{key}{equals}{value}:{}", effect_text(*effect))
    }

    /// Compares by rank, then by name. Dimensions have no order of their own.
    pub fn order(&self, other: &Self, dims: &Dims) -> Ordering {
        match (self, other) {
            (Self::Room(l), Self::Room(r)) | (Self::Lacks(l), Self::Lacks(r)) => {
                dims.name(*l).cmp(dims.name(*r))
            }
            (l, r) => l.cmp(r),
        }
    }

    /// True for amounts of nodes, which change as pods come and go.
    pub fn is_room(&self) -> bool {
        matches!(self, Self::Room(_))
    }
}

/// Returns the effect as the API writes it.
pub fn effect_text(effect: TaintEffect) -> &'static str {
    match effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
        TaintEffect::Unknown => "Unknown",
    }
}

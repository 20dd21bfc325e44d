//! What a kind of shared devices answers. Filter, score and allocation are one choice, so they agree.
//! Nothing is counted ahead: the use of a device is read from the pods that are on the node, which
//! the session's journal restores exactly. Specification: plugins-nodes.md 16.3.

use std::borrow::Cow;
use std::sync::Arc;

use vc_framework::{DeviceUse, SessionView};
use vc_model::{
    Cluster, Code, DeviceDemand, Finding, JobId, Node, NodeId, Reason, Task, TaskId, TaskStatus,
};
use vc_resource::Resource;

/// A kind of shared devices.
pub(super) trait DeviceFamily: Send + Sync {
    /// True if the pod requests devices of this kind.
    fn is_requested(&self, demand: &DeviceDemand) -> bool;

    /// Returns the devices that the pod gets on the node.
    ///
    /// # Errors
    /// Why the pod cannot have devices there.
    fn choose(&self, query: Query<'_>) -> Result<Choice, Refusal>;

    /// Returns the annotations that name the chosen devices.
    fn annotations(&self, choice: &Choice, node: &Node, now_micros: i64) -> Vec<Annotation>;

    /// Returns the annotation of the node that takes devices away, with a remedy. Returns `None` if
    /// there is none.
    fn problem(&self, node: &Node) -> Option<NodeProblem>;

    /// Returns the annotation that locks a node for this kind. `None` if it needs no lock.
    fn lock(&self) -> Option<&'static str>;

    /// True if the kind scores all candidate nodes together, by `batch_scores`.
    fn has_batch_scores(&self) -> bool {
        false
    }

    /// Returns the scores of all candidate nodes for the pod. Kinds that score each node by itself
    /// return none.
    fn batch_scores(&self, _: SessionView<'_>, _: TaskId, _: &[NodeId]) -> Vec<f64> {
        Vec::new()
    }

    /// Returns the use of each device of the node, for metrics. Kinds without metrics return none.
    fn uses(&self, _at: DeviceNode<'_>) -> Vec<DeviceUse> {
        Vec::new()
    }

    /// Returns by how much the devices of pods on the node differ from their requests, by job.
    fn corrections(&self, _at: DeviceNode<'_>) -> Vec<(JobId, Resource)> {
        Vec::new()
    }
}

/// Key and value of an annotation.
pub(super) type Annotation = (Cow<'static, str>, Arc<str>);

/// An annotation that takes devices of a node away, because it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeProblem {
    pub(super) annotation: Cow<'static, str>,
    /// What is wrong, and what follows from it.
    pub(super) problem: String,
    pub(super) remedy: &'static str,
}

/// The question which devices of a node a pod can have.
#[derive(Clone, Copy)]
pub(super) struct Query<'a> {
    pub(super) task: TaskId,
    pub(super) at: DeviceNode<'a>,
}

impl<'a> Query<'a> {
    /// Returns what the pod asks of shared devices.
    pub(super) fn demand(self) -> Option<&'a DeviceDemand> {
        self.at.cluster.class(self.task).device_demand.as_ref()
    }
}

/// A node with the pods that hold its devices.
#[derive(Clone, Copy)]
pub(super) struct DeviceNode<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) node: NodeId,
    /// True if devices count as free once their pod is being evicted or deleted. The pod can then
    /// only wait for them.
    pub(super) after_releases: bool,
}

impl<'a> DeviceNode<'a> {
    pub(super) fn node(self) -> &'a Node {
        &self.cluster.nodes[self.node]
    }

    /// Returns the pods that hold devices of the node, each with the value of this annotation, which
    /// names its devices.
    pub(super) fn holders(self, annotation: &str) -> impl Iterator<Item = (&'a Task, &'a str)> {
        let tasks = self.node().tasks.iter().map(move |&task| &self.cluster.tasks[task]);
        let counts =
            move |row: &&Task| !(self.after_releases && row.status == TaskStatus::Releasing);
        tasks
            .filter(counts)
            .filter_map(move |row| Some((row, &**row.devices.as_ref()?.get(annotation)?)))
    }
}

/// The devices that a pod gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Choice {
    /// Σ scores of the devices.
    pub(super) score: f64,
    /// The devices of each container; a container that requests none has an empty list.
    pub(super) containers: Vec<Vec<DevicePart>>,
    /// True for parts of vNPUs that no template describes.
    pub(super) is_soft: bool,
    /// The template of a part of an Ascend 310P chip. `None` for anything else.
    pub(super) template: Option<&'static str>,
    /// True if the template has fewer AI CPUs than the pod requests.
    pub(super) is_lowered: bool,
}

/// A device, or a part of it, that a container gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DevicePart {
    /// Id as the annotation names it.
    pub(super) device: String,
    /// Memory, in the unit of the device.
    pub(super) memory: i64,
    /// Cores in percent.
    pub(super) cores: i64,
}

/// Why a pod cannot have devices of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: Code,
    pub(super) reason: String,
}

impl From<Refusal> for Finding {
    fn from(refusal: Refusal) -> Self {
        Finding { code: refusal.code, reason: Reason::Owned(refusal.reason.into()) }
    }
}

/// Which devices are taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DevicePolicy {
    /// The busiest device that fits.
    Binpack,
    /// The device with the fewest users.
    Spread,
    /// The device with the highest index.
    None,
}

impl DevicePolicy {
    pub(super) fn of(text: &str) -> Self {
        match text {
            "binpack" => Self::Binpack,
            "spread" => Self::Spread,
            _ => Self::None,
        }
    }
}

/// Returns the items of a comma-separated annotation, without blanks and empty items.
pub(super) fn items<'a>(
    demand: &'a DeviceDemand,
    key: &str,
) -> impl Iterator<Item = &'a str> + use<'a> {
    let text = demand.annotations.get(key).map_or("", |text| &**text);
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

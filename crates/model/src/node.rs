//! A node and its sums. Specification: core.md 3.8, plugins-nodes.md 1.5.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_resource::{Amount, Dim, Dims, Resource};

use crate::class::{Class, NonZeroSum};
use crate::ids::{ImageId, TaskId};
use crate::node_load::NodeLoad;
use crate::numa::NumaTopology;
use crate::selector::{HostPort, Labels, Protocol, Taint};
use crate::status::TaskStatus;
use crate::sums;
use crate::volume::NodeVolumes;

/// A node. A node that only pods name has a row, too, but is not [`Node::present`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// `metadata.name`, which is the node's id.
    pub name: Arc<str>,
    /// True if the Node object is known and passes `--node-selector`.
    pub present: bool,
    /// True if our NodeShard contains the node (core.md 4.10).
    pub in_shard: bool,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `spec.unschedulable`: cordoned.
    pub unschedulable: bool,
    /// `spec.taints`. Neighbours with equal taints share them in memory.
    pub taints: Arc<[Taint]>,
    /// Ids of the images on the node.
    pub images: Vec<ImageId>,
    /// `status.allocatable` plus oversubscription.
    pub allocatable: Resource,
    /// `status.capacity` plus oversubscription.
    pub capacity: Resource,
    /// Label `volcano.sh/revocable-zone`; empty if absent.
    pub revocable_zone: Arc<str>,
    /// Annotations about the shared devices of the node. `None` if there are none.
    pub devices: Option<Arc<Labels>>,
    /// What a device plugin reports about the devices of the node outside of its annotations, by
    /// key. `None` if it reports nothing.
    pub device_report: Option<Arc<Labels>>,
    /// What monitoring said last. `None` if it said nothing yet.
    pub load: Option<NodeLoad>,
    /// The CPUs of the node. `None` if there is no Numatopology of its name.
    pub numa: Option<Arc<NumaTopology>>,
    /// Σ requests of tasks that hold the node, in any status but Pipelined.
    pub used: Resource,
    /// The part of `used` that Releasing tasks hold.
    pub releasing: Resource,
    /// Σ requests of Pipelined tasks.
    pub pipelined: Resource,
    /// Allocatable − used; may be negative.
    pub idle: Resource,
    /// Tasks that hold the node, by id, without terminated tasks.
    pub tasks: Vec<TaskId>,
    /// Number of terminated tasks of this node. They use no resources, but keep the row alive.
    pub n_terminated: u32,
    /// The pods as the Kubernetes filters and scorers see them (kube-scheduler: NodeInfo).
    pub view: NodeView,
    /// Volumes of the pods in the view.
    pub volumes: NodeVolumes,
}

impl Node {
    /// Returns Idle + Releasing − Pipelined, which may be negative.
    pub fn future_idle(&self) -> Resource {
        let mut amounts = self.idle.clone();
        amounts.add(&self.releasing);
        amounts.sub(&self.pipelined);
        amounts
    }

    /// Returns one dimension of [`Node::future_idle`].
    pub fn future_idle_of(&self, dim: Dim) -> i64 {
        i64::nearest(self.exact_future_idle_of(dim)).0
    }

    fn exact_future_idle_of(&self, dim: Dim) -> i128 {
        self.idle.exact(dim) + self.releasing.exact(dim) - self.pipelined.exact(dim)
    }

    /// Returns the first dimension in report order that [`Node::future_idle`] lacks for the
    /// request once `given` is free, too. Returns `None` if the request fits.
    pub fn future_lacking(
        &self,
        request: &Resource,
        given: Option<&Resource>,
        dims: &Dims,
    ) -> Option<Dim> {
        let given = |dim| given.map_or(0, |given| given.exact(dim));
        let idle = |dim| i64::nearest(self.exact_future_idle_of(dim) + given(dim)).0;
        request.first_lacking_of(idle, dims)
    }

    /// Adds a task with this request to the sums (table of core.md 3.8).
    pub(crate) fn charge(&mut self, status: TaskStatus, request: &Resource) {
        if status == TaskStatus::Pipelined {
            return sums::enter(&mut self.pipelined, request);
        }
        sums::enter(&mut self.used, request);
        self.idle.sub(request);
        self.settle_idle(request);
        if status == TaskStatus::Releasing {
            sums::enter(&mut self.releasing, request);
        }
    }

    /// Reverses [`Node::charge`].
    pub(crate) fn discharge(&mut self, status: TaskStatus, request: &Resource) {
        if status == TaskStatus::Pipelined {
            return sums::leave(&mut self.pipelined, request);
        }
        sums::leave(&mut self.used, request);
        self.idle.add(request);
        self.settle_idle(request);
        if status == TaskStatus::Releasing {
            sums::leave(&mut self.releasing, request);
        }
    }

    /// Removes scalars from `idle` that the node neither offers nor uses.
    fn settle_idle(&mut self, request: &Resource) {
        for dim in request.scalars() {
            if !self.allocatable.has(dim) && !self.used.has(dim) {
                self.idle.remove(dim);
            }
        }
    }

    /// Replaces the allocatable amounts; `used` does not change.
    pub(crate) fn set_allocatable(&mut self, allocatable: Resource) {
        self.idle = allocatable.clone();
        self.idle.sub(&self.used);
        self.allocatable = allocatable;
    }
}

/// The pods of a node as filters and scorers count them. Pipelined pods count. Pods evicted in this
/// session do not count (plugins-nodes.md 1.5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeView {
    /// Number of pods that count.
    pub n_pods: u32,
    /// Σ requests with the scoring defaults.
    pub non_zero: NonZeroSum,
    /// Σ requests without the scoring defaults.
    pub requested: Resource,
    ports: BTreeMap<(Protocol, u16), BTreeMap<Arc<str>, u32>>,
}

const ANY_IP: &str = "0.0.0.0";

impl NodeView {
    /// Adds a pod of the class.
    pub(crate) fn add(&mut self, class: &Class) {
        self.n_pods += 1;
        self.non_zero += class.non_zero;
        sums::enter(&mut self.requested, &class.request);
        for port in &class.host_ports {
            let by_ip = self.ports.entry((port.protocol, port.port)).or_default();
            *by_ip.entry(port.ip.clone()).or_default() += 1;
        }
    }

    /// Reverses [`NodeView::add`].
    pub(crate) fn remove(&mut self, class: &Class) {
        self.n_pods -= 1;
        self.non_zero -= class.non_zero;
        sums::leave(&mut self.requested, &class.request);
        for port in &class.host_ports {
            self.remove_port(port);
        }
    }

    fn remove_port(&mut self, port: &HostPort) {
        let key = (port.protocol, port.port);
        let Some(by_ip) = self.ports.get_mut(&key) else { return };
        if let Some(count) = by_ip.get_mut(&port.ip) {
            *count -= 1;
        }
        by_ip.retain(|_, count| 0 < *count);
        if by_ip.is_empty() {
            self.ports.remove(&key);
        }
    }

    /// True if a pod of the node holds this port at an address that conflicts (plugins-nodes.md
    /// 4.3).
    pub fn holds_port(&self, wanted: &HostPort) -> bool {
        let Some(by_ip) = self.ports.get(&(wanted.protocol, wanted.port)) else { return false };
        &*wanted.ip == ANY_IP || by_ip.contains_key(ANY_IP) || by_ip.contains_key(&wanted.ip)
    }
}

//! The shape of a pod: its request, and the other fields that filters and scorers read. In first
//! lists and gangs, many consecutive pods have equal shapes. The shape of the last pod is therefore
//! cached.
//!
//! Exact because
//! - all inputs of the cached shape are compared,
//! - the test `shape_of_a_row` compares with clusters that see each pod alone.
//!
//! Specification: core.md 3.5, plugins-nodes.md 2.5 and 7.1.

use std::mem::take;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_resource::amount;

use crate::class::Shape;
use crate::cluster::Cluster;
use crate::cluster::apply::go_bool;
use crate::device_share::demand_of;
use crate::images::normalized;
use crate::numa::numa_demand_of;
use crate::record::{ContainerRecord, PodRecord, ResourceList};
use crate::request::{RequestGates, non_zero_request, pod_limits, pod_request};
use crate::selector::HostPort;

/// The inputs and the result for the pod that came last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LastShape {
    containers: Vec<ContainerRecord>,
    init_containers: Vec<ContainerRecord>,
    overhead: ResourceList,
    pod_requests: ResourceList,
    pod_limits: ResourceList,
    resize_infeasible: bool,
    gates: RequestGates,
    shape: Arc<Shape>,
    uncounted: Option<Arc<str>>,
}

impl LastShape {
    fn is_of(&self, pod: &PodRecord, gates: RequestGates) -> bool {
        let Self { shape, .. } = self;
        self.gates == gates
            && self.resize_infeasible == pod.resize_infeasible
            && self.containers == pod.containers
            && self.init_containers == pod.init_containers
            && self.overhead == pod.overhead
            && self.pod_requests == pod.pod_requests
            && self.pod_limits == pod.pod_limits
            && shape.tolerations == pod.tolerations
            && shape.node_selector == pod.node_selector
            && shape.node_affinity == pod.node_affinity
            && shape.any_revocable_zone == any_revocable_zone(pod)
            && shape.resource_strategy == pod.resource_strategy
            // Equal containers have a demand both or neither.
            && (shape.device_demand.is_none() || shape.device_demand == demand_of(pod))
            && shape.numa_demand == numa_demand_of(pod)
    }
}

impl Cluster {
    /// Returns the shape, and why its request is not complete. Moves the inputs out of the pod.
    pub(super) fn shape_of(&mut self, pod: &mut PodRecord) -> (Arc<Shape>, Option<Arc<str>>) {
        let gates = self.settings.gates;
        if let Some(last) = self.last_shape.as_ref().filter(|last| last.is_of(pod, gates)) {
            return (last.shape.clone(), last.uncounted.clone());
        }
        let shape = Arc::new(Shape {
            request: pod_request(pod, gates, &mut self.dims),
            non_zero: non_zero_request(pod, gates, &mut self.dims),
            limits: pod_limits(pod, gates, &mut self.dims),
            host_ports: host_ports(pod),
            images: images(pod),
            node_selector: take(&mut pod.node_selector),
            node_affinity: take(&mut pod.node_affinity),
            tolerations: take(&mut pod.tolerations),
            any_revocable_zone: any_revocable_zone(pod),
            resource_strategy: take(&mut pod.resource_strategy),
            device_demand: demand_of(pod),
            numa_demand: numa_demand_of(pod),
        });
        let uncounted = self.uncounted(pod);
        self.last_shape = Some(LastShape {
            containers: take(&mut pod.containers),
            init_containers: take(&mut pod.init_containers),
            overhead: take(&mut pod.overhead),
            pod_requests: take(&mut pod.pod_requests),
            pod_limits: take(&mut pod.pod_limits),
            resize_infeasible: pod.resize_infeasible,
            gates,
            shape: shape.clone(),
            uncounted: uncounted.clone(),
        });
        (shape, uncounted)
    }

    /// Returns why the request is not complete: a resource name of the pod has no dimension,
    /// because too many names were seen. Such a pod must not be placed as if it did not request the
    /// resource. Names are never freed ([`vc_resource::Dims`]), so the text states the remedy.
    fn uncounted(&self, pod: &PodRecord) -> Option<Arc<str>> {
        let containers = pod.containers.iter().chain(&pod.init_containers);
        let requests = containers.flat_map(|container| &container.requests);
        let (name, _) = requests.chain(&pod.overhead).find(|(name, quantity)| {
            amount(name, *quantity).is_some() && self.dims.get(name).is_none()
        })?;
        let n_names = self.dims.len();
        let text = format!(
            "not counted: {name}: {n_names} resource names were seen since the scheduler started, \
             and it counts no more until it is restarted"
        );
        Some(text.into())
    }
}

fn any_revocable_zone(pod: &PodRecord) -> bool {
    match pod.annotations.get("volcano.sh/revocable-zone") {
        Some(zone) => &**zone == "*",
        None => {
            let annotation = pod.annotations.get("volcano.sh/preemptable");
            annotation.and_then(|text| go_bool(text)).unwrap_or(false)
        }
    }
}

fn images(pod: &PodRecord) -> Vec<Arc<str>> {
    let containers = pod.containers.iter().chain(&pod.init_containers);
    containers.map(|container| normalized(&container.image)).collect()
}

fn host_ports(pod: &PodRecord) -> Vec<HostPort> {
    let sidecars = pod.init_containers.iter().filter(|container| container.restartable);
    let containers = pod.containers.iter().chain(sidecars);
    let mut ports: Vec<HostPort> =
        containers.flat_map(|container| container.host_ports.iter().cloned()).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

//! The request of a pod: containers, init containers, sidecars, resize, pod level, overhead.
//! Specification: core.md 3.5, plugins-nodes.md 7.1.

use vc_resource::{Dim, Dims, Resource, amount};

use crate::class::NonZero;
use crate::record::{ContainerRecord, PodRecord, ResourceList};

/// Which Kubernetes features of the server change a request (core.md 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestGates {
    pub in_place_resize: bool,
    pub pod_level_resources: bool,
}

impl Default for RequestGates {
    fn default() -> Self {
        Self { in_place_resize: true, pod_level_resources: true }
    }
}

/// Millicpu that a container without a cpu request counts for scoring.
const DEFAULT_CPU_MILLI: i64 = 100;
/// Bytes that a container without a memory request counts for scoring.
const DEFAULT_MEMORY_BYTES: i64 = 200 << 20;

/// A resource list as a vector; names that count nowhere are dropped (core.md 3.1).
pub fn to_resource(list: &ResourceList, dims: &mut Dims) -> Resource {
    let mut resource = Resource::default();
    for (name, quantity) in list {
        if let Some(value) = amount(name, *quantity)
            && let Some(dim) = dims.intern(name)
        {
            resource.set(dim, value);
        }
    }
    resource
}

/// Request of a pod, `pods` = 1 included.
pub fn pod_request(pod: &PodRecord, gates: RequestGates, dims: &mut Dims) -> Resource {
    let mut of = |container: &ContainerRecord| container_request(container, pod, gates, dims);
    let regular: Vec<Resource> = pod.containers.iter().map(&mut of).collect();
    let init: Vec<Resource> = pod.init_containers.iter().map(&mut of).collect();
    let mut total = aggregate(pod, &regular, &init);
    total.set(Dim::PODS, total.get(Dim::PODS).wrapping_add(1));
    if gates.pod_level_resources {
        replace_pod_level(&mut total, pod, dims);
    }
    total.add(&to_resource(&pod.overhead, dims));
    total
}

/// Cpu and memory for the scorers: containers without a request count a default.
pub fn non_zero_request(pod: &PodRecord, gates: RequestGates, dims: &mut Dims) -> NonZero {
    let mut of = |container: &ContainerRecord| {
        let mut request = container_request(container, pod, gates, dims);
        let names = |name: &str| container.requests.iter().any(|(other, _)| &**other == name);
        if !names("cpu") {
            request.set(Dim::CPU, request.get(Dim::CPU).max(DEFAULT_CPU_MILLI));
        }
        if !names("memory") {
            request.set(Dim::MEMORY, request.get(Dim::MEMORY).max(DEFAULT_MEMORY_BYTES));
        }
        request
    };
    let regular: Vec<Resource> = pod.containers.iter().map(&mut of).collect();
    let init: Vec<Resource> = pod.init_containers.iter().map(&mut of).collect();
    let mut total = aggregate(pod, &regular, &init);
    if gates.pod_level_resources {
        replace_pod_level(&mut total, pod, dims);
    }
    total.add(&to_resource(&pod.overhead, dims));
    NonZero { cpu_milli: total.get(Dim::CPU), memory_bytes: total.get(Dim::MEMORY) }
}

fn container_request(
    container: &ContainerRecord,
    pod: &PodRecord,
    gates: RequestGates,
    dims: &mut Dims,
) -> Resource {
    let mut request = to_resource(&container.requests, dims);
    if let Some(in_place) = container.in_place.as_ref().filter(|_| gates.in_place_resize) {
        let mut held = to_resource(&in_place.requests, dims);
        held.set_max(&to_resource(&in_place.allocated, dims));
        match pod.resize_infeasible {
            true => request = held,
            false => request.set_max(&held),
        }
    }
    request
}

/// Sidecars run beside everything that starts after them; ordinary init containers run alone.
fn aggregate(pod: &PodRecord, regular: &[Resource], init: &[Resource]) -> Resource {
    let mut total = Resource::default();
    regular.iter().for_each(|request| total.add(request));
    let (mut side, mut peak) = (Resource::default(), Resource::default());
    for (container, request) in pod.init_containers.iter().zip(init) {
        if container.restartable {
            total.add(request);
            side.add(request);
            peak.set_max(&side);
        } else {
            let mut start = request.clone();
            start.add(&side);
            peak.set_max(&start);
        }
    }
    total.set_max(&peak);
    total
}

fn replace_pod_level(total: &mut Resource, pod: &PodRecord, dims: &mut Dims) {
    for (name, quantity) in &pod.pod_requests {
        let supported = matches!(&**name, "cpu" | "memory") || name.starts_with("hugepages-");
        if supported
            && let Some(value) = amount(name, *quantity)
            && let Some(dim) = dims.intern(name)
        {
            total.set(dim, value);
        }
    }
}

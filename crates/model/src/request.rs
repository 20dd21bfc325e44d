//! The request of a pod: containers, init containers, sidecars, resize, pod level, overhead.
//! Specification: core.md 3.5, plugins-nodes.md 7.1.

use serde::{Deserialize, Serialize};
use vc_resource::{Dim, Dims, Resource, amount};

use crate::class::{NonZero, PodLimits};
use crate::record::{ContainerRecord, InPlace, PodRecord, ResourceList};

/// Kubernetes feature gates of the API server that change a request (core.md 1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestGates {
    /// `InPlacePodVerticalScaling`.
    pub in_place_resize: bool,
    /// `PodLevelResources`.
    pub pod_level_resources: bool,
}

impl Default for RequestGates {
    fn default() -> Self {
        Self { in_place_resize: true, pod_level_resources: true }
    }
}

/// Returns a resource list as a vector. Names that are no dimension are dropped (core.md 3.1).
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

/// Returns the request of a pod, which includes `pods` = 1.
pub fn pod_request(pod: &PodRecord, gates: RequestGates, dims: &mut Dims) -> Resource {
    let mut total =
        aggregate(pod, |container, kind| container_request(container, kind, pod, gates, dims));
    total.add_to(Dim::PODS, 1);
    complete(&mut total, pod, gates, dims);
    total
}

/// Returns the cpu and memory of a pod for the scorers. Containers without a request count a
/// default.
pub fn non_zero_request(pod: &PodRecord, gates: RequestGates, dims: &mut Dims) -> NonZero {
    let mut total = aggregate(pod, |container, kind| {
        let mut request = container_request(container, kind, pod, gates, dims);
        for (name, dim, default) in DEFAULTS {
            if !names(container, kind, gates, name) {
                request.set(dim, default);
            }
        }
        request
    });
    complete(&mut total, pod, gates, dims);
    NonZero { cpu_milli: total.get(Dim::CPU), memory_bytes: total.get(Dim::MEMORY) }
}

/// Returns the limits of a pod. The overhead counts only where there is a limit.
pub(crate) fn pod_limits(pod: &PodRecord, gates: RequestGates, dims: &mut Dims) -> PodLimits {
    let mut total = aggregate(pod, |container, _| to_resource(&container.limits, dims));
    if gates.pod_level_resources {
        replace_pod_level(&mut total, &pod.pod_limits, dims);
    }
    let overhead = to_resource(&pod.overhead, dims);
    let limit = |dim| match total.get(dim) {
        0 => 0,
        limit => limit.saturating_add(overhead.get(dim)),
    };
    PodLimits { cpu_milli: limit(Dim::CPU), memory_bytes: limit(Dim::MEMORY) }
}

/// Scoring defaults of a container without a request, in millicores and bytes.
const DEFAULTS: [(&str, Dim, i64); 2] =
    [("cpu", Dim::CPU, 100), ("memory", Dim::MEMORY, 200 << 20)];

/// The time in which a container runs.
#[derive(Clone, Copy, PartialEq)]
enum ContainerKind {
    /// The container runs as long as the pod: a regular container or a restartable init container.
    Lasting,
    /// The container ends before the regular containers start.
    Ordinary,
}

/// Returns the amounts that a resized container holds. Returns `None` if they do not count: only
/// lasting containers can be resized.
fn held(container: &ContainerRecord, kind: ContainerKind, gates: RequestGates) -> Option<&InPlace> {
    let counts = gates.in_place_resize && kind == ContainerKind::Lasting;
    container.in_place.as_ref().filter(|_| counts)
}

fn names(
    container: &ContainerRecord,
    kind: ContainerKind,
    gates: RequestGates,
    name: &str,
) -> bool {
    let lists = held(container, kind, gates).map(|held| [&held.requests, &held.allocated]);
    let mut all = lists.into_iter().flatten().chain([&container.requests]).flatten();
    all.any(|(other, _)| &**other == name)
}

fn container_request(
    container: &ContainerRecord,
    kind: ContainerKind,
    pod: &PodRecord,
    gates: RequestGates,
    dims: &mut Dims,
) -> Resource {
    let mut request = to_resource(&container.requests, dims);
    if let Some(in_place) = held(container, kind, gates) {
        let mut held = to_resource(&in_place.requests, dims);
        held.set_max(&to_resource(&in_place.allocated, dims));
        match pod.resize_infeasible {
            true => request = held,
            false => request.set_max(&held),
        }
    }
    request
}

/// Returns the sum of container requests, or the peak of the init phase if that is higher.
/// Restartable init containers run beside all that start after them. Ordinary init containers run
/// alone.
fn aggregate(
    pod: &PodRecord,
    mut request_of: impl FnMut(&ContainerRecord, ContainerKind) -> Resource,
) -> Resource {
    let mut total = Resource::default();
    for container in &pod.containers {
        total.add(&request_of(container, ContainerKind::Lasting));
    }
    let (mut side, mut peak) = (Resource::default(), Resource::default());
    for container in &pod.init_containers {
        if container.restartable {
            let request = request_of(container, ContainerKind::Lasting);
            total.add(&request);
            side.add(&request);
            peak.set_max(&side);
        } else {
            let mut start = request_of(container, ContainerKind::Ordinary);
            start.add(&side);
            peak.set_max(&start);
        }
    }
    total.set_max(&peak);
    total
}

/// Replaces container sums by pod-level requests, and adds the overhead.
fn complete(total: &mut Resource, pod: &PodRecord, gates: RequestGates, dims: &mut Dims) {
    if gates.pod_level_resources {
        replace_pod_level(total, &pod.pod_requests, dims);
    }
    total.add(&to_resource(&pod.overhead, dims));
}

fn replace_pod_level(total: &mut Resource, of_pod: &ResourceList, dims: &mut Dims) {
    for (name, quantity) in of_pod {
        let supported = matches!(&**name, "cpu" | "memory") || name.starts_with("hugepages-");
        if supported
            && let Some(value) = amount(name, *quantity)
            && let Some(dim) = dims.intern(name)
        {
            total.set(dim, value);
        }
    }
}

//! Shared devices: what a pod asks of them, and the annotations in which scheduler and device plugins
//! agree who has what. The kinds of devices are plugins' business; the tables only keep the texts.
//! Specification: plugins-nodes.md 16.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::{ContainerRecord, ObjectKey, PodRecord};
use crate::selector::Labels;

/// What a pod asks of shared devices, beyond the sum of its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeviceDemand {
    /// Amounts of extended resources, for each of `spec.containers`.
    pub containers: Vec<ContainerDemand>,
    /// Amounts of extended resources, for each of `spec.initContainers`.
    pub init_containers: Vec<ContainerDemand>,
    /// Annotations and labels of the pod that choose devices.
    pub annotations: Labels,
    /// The PodGroup of the pod as `namespace/name`, if the pod shares no device with other pods of
    /// its group. `None` if it may share.
    pub spread_group: Option<Arc<str>>,
}

/// Amounts of extended resources that a container requests, in whole units, by name.
pub type ContainerDemand = BTreeMap<Arc<str>, i64>;

const GROUPS: [&str; 2] = ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"];
const SPREAD_POLICY: &str = "volcano.sh/vgpu-podgroup-policy";
/// Annotations of pods that choose devices.
const CHOOSING: &[&str] = &[
    "volcano.sh/vgpu-mode",
    "volcano.sh/vgpu-use-gpuuuid",
    "volcano.sh/vgpu-nouse-gpuuuid",
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "huawei.com/vnpu-mode",
];
/// Labels of pods that choose devices.
const CHOOSING_LABELS: &[&str] = &["ring-controller.atlas", "vnpu-level", "vnpu-dvpp"];
/// Annotations that name the devices of a pod.
const ASSIGNING: &[&str] = &[
    "volcano.sh/vgpu-ids-new",
    "volcano.sh/gpu-index",
    "huawei.com/npu-core",
    "huawei.com/AscendReal",
];
/// Annotations of nodes about shared devices.
const OF_NODES: &[&str] = &[
    "volcano.sh/node-vgpu-register",
    "volcano.sh/gpu-unhealthy-ids",
    "gpu",
    "hamivgpu",
    "hami.io/mutex.lock",
    "hami-vnpu-core",
    "baseDeviceInfos",
    "huawei.com/Ascend310P",
    "huawei.com/Ascend310P-Unhealthy",
    "huawei.com/Ascend310P-Recovering",
];

/// Annotations of pods and nodes that are read for shared devices, besides those below `hami.io/`.
pub const DEVICE_ANNOTATIONS: [&[&str]; 3] = [CHOOSING, ASSIGNING, OF_NODES];

/// Returns the demand of a pod. Returns `None` if no container requests an extended resource.
pub(crate) fn demand_of(pod: &PodRecord) -> Option<DeviceDemand> {
    let mut all = pod.containers.iter().chain(&pod.init_containers);
    if !all.any(|container| container.requests.iter().any(|(name, _)| is_extended(name))) {
        return None;
    }
    let of_all = |containers: &[ContainerRecord]| containers.iter().map(extended).collect();
    let (containers, init_containers) = (of_all(&pod.containers), of_all(&pod.init_containers));
    let spreads = pod.annotations.get(SPREAD_POLICY).is_some_and(|policy| &**policy == "spread");
    let mut annotations =
        kept(&pod.annotations, |key| CHOOSING.contains(&key) || is_hami(key, "-uuid"));
    annotations.extend(kept(&pod.labels, |key| CHOOSING_LABELS.contains(&key)));
    let spread_group = spreads.then(|| group_of(pod)).flatten();
    Some(DeviceDemand { containers, init_containers, annotations, spread_group })
}

/// Returns the PodGroup of a pod as `namespace/name` (plugins-nodes.md 16.5).
pub(crate) fn group_of(pod: &PodRecord) -> Option<Arc<str>> {
    let name = GROUPS.iter().find_map(|&key| pod.annotations.get(key))?;
    Some(ObjectKey { namespace: pod.key.namespace.clone(), name: name.clone() }.to_string().into())
}

/// Returns the annotations that name the devices of a pod. Returns `None` if there are none.
pub(crate) fn devices_of(annotations: &Labels) -> Option<Arc<Labels>> {
    let kept =
        kept(annotations, |key| ASSIGNING.contains(&key) || is_hami(key, "-devices-allocated"));
    (!kept.is_empty()).then(|| Arc::new(kept))
}

/// Returns the annotations of a node about its shared devices. Returns `None` if there are none.
pub(crate) fn devices_of_node(annotations: &Labels) -> Option<Arc<Labels>> {
    let kept = kept(annotations, |key| {
        OF_NODES.contains(&key) || key.starts_with("hami.io/node-register-")
    });
    (!kept.is_empty()).then(|| Arc::new(kept))
}

/// True for an annotation of HAMi whose name contains a common word and ends so.
fn is_hami(key: &str, end: &str) -> bool {
    key.strip_prefix("hami.io/").is_some_and(|rest| rest.ends_with(end))
}

fn kept(annotations: &Labels, is_kept: impl Fn(&str) -> bool) -> Labels {
    let kept = annotations.iter().filter(|(key, _)| is_kept(key));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// True for the name of a resource that is not one of Kubernetes itself.
fn is_extended(name: &str) -> bool {
    name.split_once('/').is_some_and(|(domain, _)| domain != "kubernetes.io")
}

fn extended(container: &ContainerRecord) -> ContainerDemand {
    let amounts = container.requests.iter().filter(|(name, _)| is_extended(name));
    amounts.map(|(name, quantity)| (name.clone(), quantity.value())).collect()
}

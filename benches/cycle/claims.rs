//! Devices, and the claims of pods for them: the part of `shapes/5k-5k` that is allocated along
//! with the nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{
    Attribute, ClaimSource, ClusterEvent, Device, DeviceClass, DeviceObject, DeviceRequest,
    ExactRequest, NodeRecord, PodRecord, PodResourceClaim, RequestKind, ResourceClaim,
    ResourceSlice, SliceNodes,
};

const DRIVER: &str = "gpu.example.com";
const CLASS: &str = "gpu.example.com";

/// Nodes that have devices.
const POOL: &str = "pool-0";
const N_DEVICES: usize = 8;

/// The class of the devices.
pub(crate) fn class() -> ClusterEvent {
    let selector = format!("device.driver == '{DRIVER}'");
    applied(DeviceObject::Class(DeviceClass {
        name: CLASS.into(),
        selectors: vec![selector.into()],
        ..DeviceClass::default()
    }))
}

/// The devices of the node, half of them of each model.
pub(crate) fn slice(node: &NodeRecord) -> Option<ClusterEvent> {
    let devices = (0..N_DEVICES).map(|index| {
        let model = if index % 2 == 0 { "small" } else { "large" };
        let model = Attribute::Text(model.into());
        Arc::new(Device {
            name: format!("gpu-{index}").into(),
            attributes: BTreeMap::from([("model".into(), model)]),
            ..Device::default()
        })
    });
    let is_one = node.labels.get("pool").is_some_and(|pool| **pool == *POOL);
    is_one.then(|| {
        applied(DeviceObject::Slice(ResourceSlice {
            name: format!("{}-gpus", node.name).into(),
            driver: DRIVER.into(),
            pool: node.name.clone(),
            generation: 1,
            n_slices: 1,
            nodes: SliceNodes::Named(node.name.clone()),
            devices: devices.collect(),
        }))
    })
}

/// Gives the pod a claim of its own for one large device, as from a template.
pub(crate) fn claim(pod: &mut PodRecord) -> ClusterEvent {
    let mut key = pod.key.clone();
    key.name = format!("{}-gpu", key.name).into();
    let source = ClaimSource::Made(key.name.clone());
    pod.resource_claims.push(PodResourceClaim { name: "gpu".into(), source });
    let selector = format!("device.attributes['{DRIVER}'].model == 'large'");
    let exact = ExactRequest {
        class: CLASS.into(),
        selectors: vec![selector.into()],
        ..ExactRequest::default()
    };
    applied(DeviceObject::Claim(ResourceClaim {
        uid: format!("{}-gpu", pod.uid).into(),
        resource_version: "1".into(),
        controller: pod.uid.clone(),
        requests: vec![DeviceRequest { name: "gpu".into(), kind: RequestKind::Exactly(exact) }],
        key,
        ..ResourceClaim::default()
    }))
}

fn applied(object: DeviceObject) -> ClusterEvent {
    ClusterEvent::DeviceApplied(Box::new(object))
}

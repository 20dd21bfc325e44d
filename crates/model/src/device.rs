//! Devices, and the ResourceClaims, DeviceClasses and ResourceSlices as the API server has them.
//! Specification: plugins-nodes.md 6.

mod store;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_resource::Quantity;

use crate::record::ObjectKey;
use crate::selector::NodeSelectorTerm;

pub use store::{Devices, InFlight};

/// Driver, pool and name of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceId {
    /// Name of the driver.
    pub driver: Arc<str>,
    /// Name of the pool.
    pub pool: Arc<str>,
    /// Name in the pool.
    pub device: Arc<str>,
}

impl std::fmt::Display for DeviceId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

/// A ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Arc<str>,
    /// True if the claim has a deletion timestamp.
    pub deleting: bool,
    /// Uid of the controlling owner; empty if there is none.
    pub controller: Arc<str>,
    /// `spec.devices.requests`.
    pub requests: Vec<DeviceRequest>,
    /// `spec.devices.constraints`.
    pub constraints: Vec<DeviceConstraint>,
    /// `spec.devices.config`: names of requests with their configuration as JSON text. Without
    /// names an entry is for all requests.
    pub config: Vec<(Vec<Arc<str>>, Arc<str>)>,
    /// `status.allocation`.
    pub allocation: Option<Arc<Allocation>>,
    /// `status.reservedFor`.
    pub reserved_for: Vec<Consumer>,
}

/// An entry of `status.reservedFor`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// Name of the object.
    pub name: Arc<str>,
    /// Uid of the object.
    pub uid: Arc<str>,
}

/// A request of a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceRequest {
    /// Name in the claim.
    pub name: Arc<str>,
    /// The devices that the request asks for.
    pub kind: RequestKind,
}

impl DeviceRequest {
    /// Returns the request with its number of devices, as queues count it (plugins-jobs-queues.md
    /// 6.10). Returns `None` if it is not counted: alternatives, mode `All`, no class.
    pub fn counted(&self) -> Option<(&ExactRequest, u32)> {
        let RequestKind::Exactly(exact) = &self.kind else { return None };
        let AllocationMode::Count(count) = exact.mode else { return None };
        (!exact.class.is_empty()).then_some((exact, count.max(1)))
    }
}

/// The devices that a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum RequestKind {
    /// `exactly`.
    Exactly(ExactRequest),
    /// `firstAvailable`: alternatives with their names, in order of preference.
    FirstAvailable(Vec<(Arc<str>, ExactRequest)>),
    /// The request has neither `exactly` nor `firstAvailable`.
    #[default]
    Unknown,
}

/// A request for devices of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExactRequest {
    /// `deviceClassName`.
    pub class: Arc<str>,
    /// CEL expressions.
    pub selectors: Vec<Arc<str>>,
    /// Number of devices.
    pub mode: AllocationMode,
    /// `adminAccess`.
    pub admin_access: bool,
    /// `tolerations`.
    pub tolerations: Vec<DeviceToleration>,
    /// The tolerations as JSON text, which allocation results repeat; empty if there are none.
    pub tolerations_json: Arc<str>,
    /// True if the request has capacity requirements. The search for devices does not implement
    /// them (plugins-nodes.md 6.1).
    pub has_capacity: bool,
    /// `capacity.requests`: what the request consumes of each device, by capacity dimension. Only
    /// quotas of queues count it.
    pub capacity: BTreeMap<Arc<str>, Quantity>,
}

/// Number of devices that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AllocationMode {
    /// This number of devices.
    Count(u32),
    /// All devices that match.
    All,
    /// A mode that this version does not know.
    Unknown,
}

impl Default for AllocationMode {
    fn default() -> Self {
        Self::Count(1)
    }
}

/// A toleration of device taints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceToleration {
    /// Key of the taint; empty matches any key.
    pub key: Arc<str>,
    /// True for operator `Exists`; otherwise the values must be equal.
    pub exists: bool,
    /// Value of the taint; ignored if `exists` is true.
    pub value: Arc<str>,
    /// Effect of the taint; empty matches any effect.
    pub effect: Arc<str>,
}

/// A constraint that the devices of several requests must meet together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceConstraint {
    /// Names of requests, or `<request>/<subrequest>`; empty means all requests.
    pub requests: Vec<Arc<str>>,
    /// `matchAttribute`. `None` if the constraint is of a kind that this version does not know.
    pub match_attribute: Option<Arc<str>>,
}

/// `status.allocation` of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// `devices.results`.
    pub results: Vec<DeviceResult>,
    /// `devices.config`. It is empty for stored allocations, where it is not needed.
    pub config: Vec<DeviceConfig>,
    /// `nodeSelector`. `None` if every node can use the devices.
    pub node_selector: Option<Vec<NodeSelectorTerm>>,
}

/// An element of `devices.config`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceConfig {
    /// True for source `FromClass`, false for `FromClaim`.
    pub from_class: bool,
    /// Requests that the element is for; empty means all requests.
    pub requests: Vec<Arc<str>>,
    /// The configuration itself: a JSON object as text.
    pub body: Arc<str>,
}

/// A device that is allocated to a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceResult {
    /// `<request>` or `<request>/<subrequest>`.
    pub request: Arc<str>,
    /// The allocated device.
    pub device: DeviceId,
    /// True for admin access: the device stays available to other claims.
    pub admin_access: bool,
    /// Tolerations of the request as JSON text; empty if there are none.
    pub tolerations_json: Arc<str>,
}

/// A DeviceClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceClass {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// CEL expressions.
    pub selectors: Vec<Arc<str>>,
    /// `spec.config`: elements as JSON texts.
    pub config: Vec<Arc<str>>,
}

/// A ResourceSlice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceSlice {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// Name of the driver.
    pub driver: Arc<str>,
    /// Name of the pool.
    pub pool: Arc<str>,
    /// Generation of the pool. Only the slices of the highest generation count.
    pub generation: i64,
    /// `pool.resourceSliceCount`.
    pub n_slices: i64,
    /// Nodes that can use the devices.
    pub nodes: SliceNodes,
    /// Devices in the order of the object.
    pub devices: Vec<Arc<Device>>,
}

/// Nodes that can use the devices of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SliceNodes {
    /// The node with this name.
    Named(Arc<str>),
    /// All nodes.
    All,
    /// Nodes that match one of the terms.
    Matching(Vec<NodeSelectorTerm>),
    /// No node: the nodes are given per device or not at all, which is not implemented
    /// (plugins-nodes.md 6.1).
    #[default]
    Unjudged,
}

/// A device of a slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Name in the pool.
    pub name: Arc<str>,
    /// Attributes by name, `<domain>/<id>` or `<id>`.
    pub attributes: BTreeMap<Arc<str>, Attribute>,
    /// Capacities by name, `<domain>/<id>` or `<id>`.
    pub capacity: BTreeMap<Arc<str>, Quantity>,
    /// Taints of the device.
    pub taints: Vec<DeviceTaint>,
    /// True if the device needs a feature that is not implemented: counters, binding conditions or
    /// its own node selection.
    pub unjudged: bool,
    /// `allowMultipleAllocations`.
    pub shared: bool,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attribute {
    /// `int`.
    Int(i64),
    /// `bool`.
    Bool(bool),
    /// `string`.
    Text(Arc<str>),
    /// `version`.
    Version(Arc<str>),
}

/// A taint of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTaint {
    /// Key.
    pub key: Arc<str>,
    /// Value.
    pub value: Arc<str>,
    /// `NoSchedule`, `NoExecute` or another.
    pub effect: Arc<str>,
}

/// A ResourceClaim as a pod names it (plugins-nodes.md 6.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodResourceClaim {
    /// Name of the entry in the pod.
    pub name: Arc<str>,
    /// The source of the claim.
    pub source: ClaimSource,
}

/// The source of a pod's ResourceClaim.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ClaimSource {
    /// `resourceClaimName`.
    Named(Arc<str>),
    /// A claim with this name was created from a template for the pod.
    Made(Arc<str>),
    /// The entry names a template, from which no claim is needed.
    NotNeeded,
    /// The entry names a template, from which no claim was created yet.
    NotMade,
    /// The entry names neither a claim nor a template.
    Unset,
}

impl PodResourceClaim {
    /// Returns the name of the claim. Returns `None` if the pod needs none, or if none was created
    /// yet.
    pub fn claim_name(&self) -> Option<&Arc<str>> {
        match &self.source {
            ClaimSource::Named(name) | ClaimSource::Made(name) => Some(name),
            ClaimSource::NotNeeded | ClaimSource::NotMade | ClaimSource::Unset => None,
        }
    }
}

/// An object of dynamic resource allocation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum DeviceObject {
    /// A ResourceClaim.
    Claim(ResourceClaim),
    /// A DeviceClass.
    Class(DeviceClass),
    /// A ResourceSlice.
    Slice(ResourceSlice),
}

/// Kind of a [`DeviceObject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceKind {
    /// A ResourceClaim.
    Claim,
    /// A DeviceClass.
    Class,
    /// A ResourceSlice.
    Slice,
}

/// The promise to a task for one of its ResourceClaims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimPromise {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// The devices that this task, or another task of its gang, chose for the claim. `None` if the
    /// claim has devices already.
    pub allocation: Option<Arc<Allocation>>,
}

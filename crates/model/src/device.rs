//! Devices and the claims for them: rows as the API server has them. Specification:
//! plugins-nodes.md 6.

mod store;

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_resource::Quantity;

use crate::record::ObjectKey;
use crate::selector::NodeSelectorTerm;

pub use store::{Devices, InFlight};

/// Driver, pool and name of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceClaim {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: Arc<str>,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// Uid of the controlling owner; empty: none.
    pub controller: Arc<str>,
    /// `spec.devices.requests`.
    pub requests: Vec<DeviceRequest>,
    /// `spec.devices.constraints`.
    pub constraints: Vec<DeviceConstraint>,
    /// `spec.devices.config`: to which requests (none: all) the JSON text belongs.
    pub config: Vec<(Vec<Arc<str>>, Arc<str>)>,
    /// `status.allocation`.
    pub allocation: Option<Arc<Allocation>>,
    /// `status.reservedFor`.
    pub reserved_for: Vec<Consumer>,
}

/// An entry of `status.reservedFor`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consumer {
    /// Name of the object.
    pub name: Arc<str>,
    /// Uid of the object.
    pub uid: Arc<str>,
}

/// A request of a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceRequest {
    /// Name in the claim.
    pub name: Arc<str>,
    /// What is asked for.
    pub kind: RequestKind,
}

/// What a request asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RequestKind {
    /// `exactly`.
    Exactly(ExactRequest),
    /// `firstAvailable`: alternatives with their names, best first.
    FirstAvailable(Vec<(Arc<str>, ExactRequest)>),
    /// Neither.
    #[default]
    Unknown,
}

/// Devices of one class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExactRequest {
    /// `deviceClassName`.
    pub class: Arc<str>,
    /// CEL expressions.
    pub selectors: Vec<Arc<str>>,
    /// How many.
    pub mode: AllocationMode,
    /// `adminAccess`.
    pub admin_access: bool,
    /// `tolerations`, as JSON too, since results repeat them.
    pub tolerations: Vec<DeviceToleration>,
    /// The tolerations as JSON text; empty: none.
    pub tolerations_json: Arc<str>,
    /// It has capacity requirements, which nothing here can judge (6.1).
    pub has_capacity: bool,
}

/// How many devices a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationMode {
    /// So many.
    Count(u32),
    /// All that match.
    All,
    /// From an API server of another age.
    Unknown,
}

impl Default for AllocationMode {
    fn default() -> Self {
        Self::Count(1)
    }
}

/// A toleration of device taints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceToleration {
    /// Empty: any.
    pub key: Arc<str>,
    /// `Exists`; otherwise the values must be equal.
    pub exists: bool,
    /// Compared unless `exists`.
    pub value: Arc<str>,
    /// Empty: any.
    pub effect: Arc<str>,
}

/// What must hold for the devices of several requests together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceConstraint {
    /// Requests or `<request>/<subrequest>`; none: all.
    pub requests: Vec<Arc<str>>,
    /// `matchAttribute`; `None`: of a kind that is not known here.
    pub match_attribute: Option<Arc<str>>,
}

/// `status.allocation` of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// `devices.results`.
    pub results: Vec<DeviceResult>,
    /// `devices.config`; of a stored allocation nobody reads it, it is empty then.
    pub config: Vec<DeviceConfig>,
    /// `nodeSelector`; `None`: every node.
    pub node_selector: Option<Vec<NodeSelectorTerm>>,
}

/// An element of `devices.config`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Source `FromClass`, else `FromClaim`.
    pub from_class: bool,
    /// Requests that it is for; none: all.
    pub requests: Vec<Arc<str>>,
    /// The rest of the element as JSON text of an object.
    pub body: Arc<str>,
}

/// A device that a claim has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceResult {
    /// `<request>` or `<request>/<subrequest>`.
    pub request: Arc<str>,
    /// Which device.
    pub device: DeviceId,
    /// The device stays free for others.
    pub admin_access: bool,
    /// Of the request, as JSON text; empty: none.
    pub tolerations_json: Arc<str>,
}

/// A DeviceClass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceClass {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// CEL expressions.
    pub selectors: Vec<Arc<str>>,
    /// `spec.config`: elements as JSON texts.
    pub config: Vec<Arc<str>>,
}

/// A ResourceSlice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceSlice {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// Name of the driver.
    pub driver: Arc<str>,
    /// Name of the pool.
    pub pool: Arc<str>,
    /// Only the slices of the highest generation count.
    pub generation: i64,
    /// `pool.resourceSliceCount`.
    pub n_slices: i64,
    /// Nodes that can use the devices.
    pub nodes: SliceNodes,
    /// In the order of the object.
    pub devices: Vec<Arc<Device>>,
}

/// Nodes that can use the devices of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SliceNodes {
    /// The one of this name.
    Named(Arc<str>),
    /// All of them.
    All,
    /// Those that match.
    Matching(Vec<NodeSelectorTerm>),
    /// Each device says it, or nobody does; not judged here, so no node (6.1).
    #[default]
    Unjudged,
}

/// A device of a slice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Name in the pool.
    pub name: Arc<str>,
    /// By name, `<domain>/<id>` or `<id>`.
    pub attributes: BTreeMap<Arc<str>, Attribute>,
    /// Likewise.
    pub capacity: BTreeMap<Arc<str>, Quantity>,
    /// Taints of the device.
    pub taints: Vec<DeviceTaint>,
    /// It needs something that is not built: counters, binding conditions, nodes of its own.
    pub unjudged: bool,
    /// `allowMultipleAllocations`.
    pub shared: bool,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceTaint {
    /// Key.
    pub key: Arc<str>,
    /// Value.
    pub value: Arc<str>,
    /// `NoSchedule`, `NoExecute` or another.
    pub effect: Arc<str>,
}

/// A claim as a pod names it (6.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PodResourceClaim {
    /// In the pod.
    pub name: Arc<str>,
    /// Where it is.
    pub source: ClaimSource,
}

/// Where the claim of a pod is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimSource {
    /// `resourceClaimName`.
    Named(Arc<str>),
    /// Made from a template for this pod, under this name.
    Made(Arc<str>),
    /// From a template, which made none because none is needed.
    NotNeeded,
    /// From a template, not made yet.
    NotMade,
    /// The entry names neither.
    Unset,
}

/// An object of dynamic resource allocation.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceObject {
    /// A ResourceClaim.
    Claim(ResourceClaim),
    /// A DeviceClass.
    Class(DeviceClass),
    /// A ResourceSlice.
    Slice(ResourceSlice),
}

/// Its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A ResourceClaim.
    Claim,
    /// A DeviceClass.
    Class,
    /// A ResourceSlice.
    Slice,
}

/// What a task is promised of one of its claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPromise {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// The devices that this task, or another one of its gang, chose for it; `None`: it has some.
    pub allocation: Option<Arc<Allocation>>,
}

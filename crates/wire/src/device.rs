//! Claims for devices, their classes and slices. What this scheduler cannot judge is marked, so
//! that it fails closed. Specification: plugins-nodes.md 6.1, 6.2.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use vc_model::{
    Allocation, AllocationMode, Attribute, ClaimSource, Consumer, Device, DeviceClass,
    DeviceConstraint, DeviceId, DeviceRequest, DeviceResult, DeviceTaint, DeviceToleration,
    ExactRequest, PodResourceClaim, RequestKind, ResourceClaim, ResourceSlice, SliceNodes,
};
use vc_resource::Quantity;

use crate::metadata::{self, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::selector::{SlimNodeSelector, node_selector};
use crate::soft::{LenientField, LenientList, LenientMap, RawJson, object};
use crate::{Kind, WireError, finish};

/// A ResourceClaim as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimResourceClaim {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimDeviceClaimSpec>,
    pub status: LenientField<SlimClaimStatus>,
}

/// `spec` of a claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimDeviceClaimSpec {
    pub devices: LenientField<SlimDeviceClaim>,
}

/// `spec.devices` of a claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimDeviceClaim {
    pub requests: LenientList<SlimDeviceRequest>,
    pub constraints: LenientList<SlimConstraint>,
    pub config: LenientList<RawJson>,
}

/// A request of a claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimDeviceRequest {
    pub name: LenientField<Arc<str>>,
    pub exactly: LenientField<SlimExact>,
    pub first_available: LenientList<SlimExact>,
}

/// `exactly`, or an element of `firstAvailable`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimExact {
    pub name: LenientField<Arc<str>>,
    pub device_class_name: LenientField<Arc<str>>,
    pub selectors: LenientList<SlimDeviceSelector>,
    pub allocation_mode: LenientField<Arc<str>>,
    pub count: LenientField<i32>,
    pub admin_access: LenientField<bool>,
    pub tolerations: LenientList<RawJson>,
    pub capacity: LenientField<SlimCapacityRequests>,
}

/// `capacity` of a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimCapacityRequests {
    pub requests: LenientField<LenientMap<Quantity>>,
}

/// A selector of devices.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimDeviceSelector {
    pub cel: LenientField<SlimCel>,
}

/// `cel` of a selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimCel {
    pub expression: LenientField<Arc<str>>,
}

/// A constraint of a claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimConstraint {
    pub requests: LenientList<Arc<str>>,
    pub match_attribute: LenientField<Arc<str>>,
}

/// `status` of a claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimClaimStatus {
    pub allocation: LenientField<SlimAllocation>,
    pub reserved_for: LenientList<SlimConsumer>,
}

/// `status.allocation` of a claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimAllocation {
    pub devices: LenientField<SlimDeviceResults>,
    pub node_selector: LenientField<SlimNodeSelector>,
}

/// `status.allocation.devices` of a claim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimDeviceResults {
    pub results: LenientList<SlimDeviceResult>,
}

/// A device that a claim has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimDeviceResult {
    pub request: LenientField<Arc<str>>,
    pub driver: LenientField<Arc<str>>,
    pub pool: LenientField<Arc<str>>,
    pub device: LenientField<Arc<str>>,
    pub admin_access: LenientField<bool>,
}

/// An entry of `status.reservedFor`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimConsumer {
    pub name: LenientField<Arc<str>>,
    pub uid: LenientField<Arc<str>>,
}

/// A DeviceClass as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimDeviceClass {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimDeviceClassSpec>,
}

/// `spec` of a class.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimDeviceClassSpec {
    pub selectors: LenientList<SlimDeviceSelector>,
    pub config: LenientList<RawJson>,
}

/// A ResourceSlice as it is decoded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimResourceSlice {
    pub metadata: LenientField<SlimMetadata>,
    pub spec: LenientField<SlimSliceSpec>,
}

/// `spec` of a slice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimSliceSpec {
    pub driver: LenientField<Arc<str>>,
    pub pool: LenientField<SlimPool>,
    pub node_name: LenientField<Arc<str>>,
    pub all_nodes: LenientField<bool>,
    pub node_selector: LenientField<SlimNodeSelector>,
    pub devices: LenientList<SlimDevice>,
}

/// `spec.pool` of a slice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPool {
    pub name: LenientField<Arc<str>>,
    pub generation: LenientField<Quantity>,
    pub resource_slice_count: LenientField<Quantity>,
}

/// A device of a slice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimDevice {
    pub name: LenientField<Arc<str>>,
    pub attributes: LenientField<LenientMap<SlimAttribute>>,
    pub capacity: LenientField<LenientMap<SlimCapacity>>,
    pub taints: LenientList<SlimDeviceTaint>,
    pub consumes_counters: LenientList<RawJson>,
    pub binding_conditions: LenientList<RawJson>,
    pub node_name: LenientField<Arc<str>>,
    pub all_nodes: LenientField<bool>,
    pub node_selector: LenientField<RawJson>,
    pub allow_multiple_allocations: LenientField<bool>,
}

/// The value of an attribute.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimAttribute {
    pub int: LenientField<Quantity>,
    pub bool: LenientField<bool>,
    pub string: LenientField<Arc<str>>,
    pub version: LenientField<Arc<str>>,
}

/// The value of a capacity.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimCapacity {
    pub value: LenientField<Quantity>,
}

/// A taint of a device.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimDeviceTaint {
    pub key: LenientField<Arc<str>>,
    pub value: LenientField<Arc<str>>,
    pub effect: LenientField<Arc<str>>,
}

/// An entry of `spec.resourceClaims` of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodClaim {
    pub name: LenientField<Arc<str>>,
    pub resource_claim_name: LenientField<Arc<str>>,
    pub resource_claim_template_name: LenientField<Arc<str>>,
}

/// An entry of `status.resourceClaimStatuses` of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPodClaimStatus {
    pub name: LenientField<Arc<str>>,
    pub resource_claim_name: LenientField<Arc<str>>,
}

object!(
    SlimDeviceClaimSpec,
    SlimDeviceClaim,
    SlimDeviceRequest,
    SlimExact,
    SlimCapacityRequests,
    SlimDeviceSelector,
    SlimCel,
    SlimConstraint,
    SlimClaimStatus,
    SlimAllocation,
    SlimDeviceResults,
    SlimDeviceResult,
    SlimConsumer,
    SlimDeviceClassSpec,
    SlimSliceSpec,
    SlimPool,
    SlimDevice,
    SlimAttribute,
    SlimCapacity,
    SlimDeviceTaint,
    SlimPodClaim,
    SlimPodClaimStatus,
);

impl SlimResourceClaim {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<ResourceClaim, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::ResourceClaim, self.metadata, &mut problems)?;
        let spec = FieldPath::root("spec");
        let devices = spec.field("devices");
        let asked = problems.or_default(self.spec, &spec).devices;
        let asked = problems.or_default(asked, &devices);
        let status = FieldPath::root("status");
        let told = problems.or_default(self.status, &status);
        let reserved = status.field("reservedFor");
        let constraints = devices.field("constraints");
        let config = problems.list(asked.config, &devices.field("config"), |_, json, _| json.0);
        let claim = ResourceClaim {
            key: metadata.key(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            deleting: metadata.deleting,
            controller: metadata.controller_uid.clone().unwrap_or_default(),
            requests: problems.list(asked.requests, &devices.field("requests"), request),
            constraints: problems.list(asked.constraints, &constraints, constraint),
            config: config.into_iter().map(claim_config).collect(),
            allocation: allocation(told.allocation, &status.field("allocation"), &mut problems),
            reserved_for: problems.list(told.reserved_for, &reserved, consumer),
        };
        finish(claim, Kind::ResourceClaim, &metadata.namespace, &metadata.name, problems)
    }
}

fn request(
    problems: &mut Problems,
    slim: SlimDeviceRequest,
    path: &FieldPath<'_>,
) -> DeviceRequest {
    let (one, several) = (path.field("exactly"), path.field("firstAvailable"));
    let exactly = problems.read(slim.exactly, &one);
    let alternatives = problems.list(slim.first_available, &several, exact);
    let kind = match exactly {
        Some(slim) => RequestKind::Exactly(exact(problems, slim, &one).1),
        None if !alternatives.is_empty() => RequestKind::FirstAvailable(alternatives),
        None => RequestKind::Unknown,
    };
    DeviceRequest { name: problems.text(slim.name, &path.field("name")), kind }
}

fn exact(
    problems: &mut Problems,
    slim: SlimExact,
    path: &FieldPath<'_>,
) -> (Arc<str>, ExactRequest) {
    let name = problems.text(slim.name, &path.field("name"));
    let count = problems.read(slim.count, &path.field("count")).unwrap_or(0);
    let mode = problems.text(slim.allocation_mode, &path.field("allocationMode"));
    let mode = match &*mode {
        "" | "ExactCount" => AllocationMode::Count(u32::try_from(count).unwrap_or(0).max(1)),
        "All" => AllocationMode::All,
        _ => AllocationMode::Unknown,
    };
    let tolerations =
        problems.list(slim.tolerations, &path.field("tolerations"), |_, json, _| json.0);
    let request = ExactRequest {
        class: problems.text(slim.device_class_name, &path.field("deviceClassName")),
        selectors: selectors(slim.selectors, &path.field("selectors"), problems),
        mode,
        admin_access: problems.or_default(slim.admin_access, &path.field("adminAccess")),
        tolerations_json: match tolerations.is_empty() {
            true => Arc::default(),
            false => Value::Array(tolerations.clone()).to_string().into(),
        },
        tolerations: tolerations.iter().map(toleration).collect(),
        has_capacity: !matches!(slim.capacity, LenientField::Absent),
        capacity: {
            let path = path.field("capacity");
            let capacity = problems.or_default(slim.capacity, &path);
            problems.map(capacity.requests, &path.field("requests")).into_iter().collect()
        },
    };
    (name, request)
}

fn toleration(json: &Value) -> DeviceToleration {
    let text = |field: &str| json[field].as_str().unwrap_or_default().into();
    DeviceToleration {
        key: text("key"),
        exists: json["operator"].as_str() == Some("Exists"),
        value: text("value"),
        effect: text("effect"),
    }
}

fn selectors(
    slim: LenientList<SlimDeviceSelector>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Vec<Arc<str>> {
    problems.list(slim, path, |problems, slim, path| {
        let path = path.field("cel");
        let cel = problems.or_default(slim.cel, &path);
        problems.text(cel.expression, &path.field("expression"))
    })
}

fn constraint(
    problems: &mut Problems,
    slim: SlimConstraint,
    path: &FieldPath<'_>,
) -> DeviceConstraint {
    DeviceConstraint {
        requests: problems.texts(slim.requests, &path.field("requests")),
        match_attribute: problems.read(slim.match_attribute, &path.field("matchAttribute")),
    }
}

/// Requests of an element of `config`, and the rest of it as text.
fn claim_config(mut json: Value) -> (Vec<Arc<str>>, Arc<str>) {
    let requests = json.as_object_mut().and_then(|object| object.remove("requests"));
    let names = requests.iter().flat_map(|list| list.as_array().into_iter().flatten());
    let names = names.filter_map(Value::as_str).map(Arc::from).collect();
    (names, json.to_string().into())
}

fn consumer(problems: &mut Problems, slim: SlimConsumer, path: &FieldPath<'_>) -> Consumer {
    Consumer {
        name: problems.text(slim.name, &path.field("name")),
        uid: problems.text(slim.uid, &path.field("uid")),
    }
}

fn allocation(
    slim: LenientField<SlimAllocation>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<Arc<Allocation>> {
    let slim = problems.read(slim, path)?;
    let devices = path.field("devices");
    let results = problems.or_default(slim.devices, &devices).results;
    let selector = path.field("nodeSelector");
    let terms = problems.read(slim.node_selector, &selector);
    Some(Arc::new(Allocation {
        results: problems.list(results, &devices.field("results"), |problems, slim, path| {
            DeviceResult {
                request: problems.text(slim.request, &path.field("request")),
                device: DeviceId {
                    driver: problems.text(slim.driver, &path.field("driver")),
                    pool: problems.text(slim.pool, &path.field("pool")),
                    device: problems.text(slim.device, &path.field("device")),
                },
                admin_access: problems.or_default(slim.admin_access, &path.field("adminAccess")),
                tolerations_json: Arc::default(),
            }
        }),
        config: Vec::new(),
        node_selector: terms.map(|terms| node_selector(terms, &selector, problems)),
    }))
}

impl SlimDeviceClass {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<DeviceClass, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::DeviceClass, self.metadata, &mut problems)?;
        let path = FieldPath::root("spec");
        let spec = problems.or_default(self.spec, &path);
        let config = problems.list(spec.config, &path.field("config"), |_, json, _| json.0);
        let class = DeviceClass {
            name: metadata.name.clone(),
            selectors: selectors(spec.selectors, &path.field("selectors"), &mut problems),
            config: config.iter().map(|json| json.to_string().into()).collect(),
        };
        finish(class, Kind::DeviceClass, "", &metadata.name, problems)
    }
}

impl SlimResourceSlice {
    /// The record.
    ///
    /// # Errors
    /// A field that is read is malformed.
    pub fn to_record(self) -> Result<ResourceSlice, WireError> {
        let mut problems = Problems::default();
        let metadata = metadata::read(Kind::ResourceSlice, self.metadata, &mut problems)?;
        let path = FieldPath::root("spec");
        let spec = problems.or_default(self.spec, &path);
        let pool_path = path.field("pool");
        let pool = problems.or_default(spec.pool, &pool_path);
        let generation = problems.or_default(pool.generation, &pool_path.field("generation"));
        let count = pool_path.field("resourceSliceCount");
        let n_slices = problems.or_default(pool.resource_slice_count, &count);
        let node = problems.text(spec.node_name, &path.field("nodeName"));
        let all = problems.or_default(spec.all_nodes, &path.field("allNodes"));
        let selector = path.field("nodeSelector");
        let terms = problems.read(spec.node_selector, &selector);
        let nodes = match (node.is_empty(), all, terms) {
            (false, ..) => SliceNodes::Named(node),
            (true, true, _) => SliceNodes::All,
            (true, false, Some(terms)) => {
                SliceNodes::Matching(node_selector(terms, &selector, &mut problems))
            }
            (true, false, None) => SliceNodes::Unjudged,
        };
        let devices = problems.list(spec.devices, &path.field("devices"), device);
        let slice = ResourceSlice {
            name: metadata.name.clone(),
            driver: problems.text(spec.driver, &path.field("driver")),
            pool: problems.text(pool.name, &pool_path.field("name")),
            generation: generation.value(),
            n_slices: n_slices.value(),
            nodes,
            devices: devices.into_iter().map(Arc::new).collect(),
        };
        finish(slice, Kind::ResourceSlice, "", &metadata.name, problems)
    }
}

fn device(problems: &mut Problems, slim: SlimDevice, path: &FieldPath<'_>) -> Device {
    let unjudged = [&slim.consumes_counters, &slim.binding_conditions]
        .iter()
        .any(|list| matches!(list, LenientField::Good(list) if !list.is_empty()))
        || !matches!(slim.node_name, LenientField::Absent)
        || !matches!(slim.all_nodes, LenientField::Absent)
        || !matches!(slim.node_selector, LenientField::Absent);
    let attributes_path = path.field("attributes");
    let mut attributes = BTreeMap::new();
    for (name, slim) in problems.map(slim.attributes, &attributes_path) {
        attributes.extend(attribute(problems, slim, &attributes_path).map(|value| (name, value)));
    }
    let capacity_path = path.field("capacity");
    let mut capacity = BTreeMap::new();
    for (name, slim) in problems.map(slim.capacity, &capacity_path) {
        let value = problems.or_default(slim.value, &capacity_path.field("value"));
        capacity.insert(name, value);
    }
    Device {
        name: problems.text(slim.name, &path.field("name")),
        attributes,
        capacity,
        taints: problems.list(slim.taints, &path.field("taints"), |problems, slim, path| {
            DeviceTaint {
                key: problems.text(slim.key, &path.field("key")),
                value: problems.text(slim.value, &path.field("value")),
                effect: problems.text(slim.effect, &path.field("effect")),
            }
        }),
        unjudged,
        shared: {
            let path = path.field("allowMultipleAllocations");
            problems.or_default(slim.allow_multiple_allocations, &path)
        },
    }
}

/// `None`: of a type of another age.
fn attribute(
    problems: &mut Problems,
    slim: SlimAttribute,
    path: &FieldPath<'_>,
) -> Option<Attribute> {
    if let Some(value) = problems.read(slim.int, &path.field("int")) {
        return Some(Attribute::Int(value.value()));
    }
    if let Some(value) = problems.read(slim.bool, &path.field("bool")) {
        return Some(Attribute::Bool(value));
    }
    if let Some(text) = problems.read(slim.string, &path.field("string")) {
        return Some(Attribute::Text(text));
    }
    problems.read(slim.version, &path.field("version")).map(Attribute::Version)
}

/// The claims of a pod, those from templates by their names in the status (6.2).
pub(crate) fn pod_claims(
    spec: LenientList<SlimPodClaim>,
    status: LenientList<SlimPodClaimStatus>,
    problems: &mut Problems,
) -> Vec<PodResourceClaim> {
    let path = FieldPath::root("status");
    let path = path.field("resourceClaimStatuses");
    let made = problems.list(status, &path, |problems, slim, path| {
        let name = problems.text(slim.name, &path.field("name"));
        let claim = problems.read(slim.resource_claim_name, &path.field("resourceClaimName"));
        (name, claim)
    });
    let path = FieldPath::root("spec");
    problems.list(spec, &path.field("resourceClaims"), |problems, slim, path| {
        let name = problems.text(slim.name, &path.field("name"));
        let named = problems.read(slim.resource_claim_name, &path.field("resourceClaimName"));
        let template = path.field("resourceClaimTemplateName");
        let template = problems.read(slim.resource_claim_template_name, &template);
        let source = match (named, template) {
            (Some(claim), _) => ClaimSource::Named(claim),
            (None, None) => ClaimSource::Unset,
            (None, Some(_)) => match made.iter().find(|(of, _)| *of == name) {
                None => ClaimSource::NotMade,
                Some((_, None)) => ClaimSource::NotNeeded,
                Some((_, Some(claim))) => ClaimSource::Made(claim.clone()),
            },
        };
        PodResourceClaim { name, source }
    })
}

//! Claims, classes and slices as they are read, above all what is not judged here and so has to be
//! marked. Specification: plugins-nodes.md 6.1, 6.2, 6.5.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use vc_model::{
    AllocationMode, ClusterEvent, Device, DeviceObject, RequestKind, ResourceClaim, ResourceSlice,
    SliceNodes,
};
use vc_wire::{Kind, decode};

fn read(kind: Kind, object: &Value) -> DeviceObject {
    match decode(kind, object).unwrap().event {
        ClusterEvent::DeviceApplied(object) => *object,
        other => panic!("{other:?}"),
    }
}

fn slice(spec: &Value) -> ResourceSlice {
    let mut spec = spec.clone();
    spec["driver"] = "d".into();
    spec["pool"] = json!({"name": "p", "generation": 3, "resourceSliceCount": 2});
    let object = json!({"metadata": {"name": "s"}, "spec": spec});
    match read(Kind::ResourceSlice, &object) {
        DeviceObject::Slice(slice) => slice,
        other => panic!("{other:?}"),
    }
}

fn device(fields: &Value) -> Device {
    let mut fields = fields.clone();
    fields["name"] = "a".into();
    let slice = slice(&json!({"nodeName": "n", "devices": [fields]}));
    Device::clone(&slice.devices[0])
}

fn claim(devices: &Value) -> ResourceClaim {
    let object =
        json!({"metadata": {"name": "c", "namespace": "ns"}, "spec": {"devices": devices}});
    match read(Kind::ResourceClaim, &object) {
        DeviceObject::Claim(claim) => claim,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_slice_says_which_nodes_can_use_it() {
    let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "zone", "operator": "In", "values": ["a"]}]}]});
    let named = slice(&json!({"nodeName": "n"}));
    assert_eq!(named.nodes, SliceNodes::Named("n".into()));
    assert_eq!((named.generation, named.n_slices), (3, 2));
    assert_eq!(slice(&json!({"allNodes": true})).nodes, SliceNodes::All);
    let matching = slice(&json!({"nodeSelector": terms})).nodes;
    assert!(matches!(matching, SliceNodes::Matching(terms) if terms.len() == 1));
}

#[test]
fn slices_of_later_features_are_marked() {
    let per_device = json!({"perDeviceNodeSelection": true, "devices": [{"name": "a"}]});
    assert_eq!(slice(&per_device).nodes, SliceNodes::Unjudged, "each device says it");
    let counters = json!({"allNodes": true, "sharedCounters": [
        {"name": "memory", "counters": {"bytes": {"value": "40Gi"}}}]});
    let counters = slice(&counters);
    assert!(counters.devices.is_empty(), "counters alone offer nothing");
}

#[test]
fn devices_of_later_features_are_marked() {
    assert!(!device(&json!({})).unjudged);
    for fields in [
        json!({"consumesCounters": [{"counterSet": "m", "counters": {"b": {"value": "1"}}}]}),
        json!({"bindingConditions": ["ready"]}),
        json!({"nodeName": "n"}),
        json!({"allNodes": true}),
        json!({"nodeSelector": {"nodeSelectorTerms": []}}),
    ] {
        assert!(device(&fields).unjudged, "{fields}");
    }
    let listed =
        device(&json!({"attributes": {"numa": {"ints": [1, 2]}, "model": {"string": "x"}}}));
    let names: Vec<&str> = listed.attributes.keys().map(|name| &**name).collect();
    assert_eq!(names, ["model"], "a list is no value: selectors that ask for it fail");
}

#[test]
fn requests_of_later_features_are_marked() {
    let exact = |fields: Value| {
        let claim = claim(&json!({"requests": [{"name": "r", "exactly": fields}]}));
        match &claim.requests[0].kind {
            RequestKind::Exactly(exact) => exact.clone(),
            other => panic!("{other:?}"),
        }
    };
    let plain = exact(json!({"deviceClassName": "gpu"}));
    assert_eq!((plain.has_capacity, plain.mode), (false, AllocationMode::Count(1)));
    let capacity = json!({"deviceClassName": "gpu", "capacity": {"requests": {"memory": "1Gi"}}});
    let capacity = exact(capacity);
    assert!(capacity.has_capacity);
    let memory = capacity.capacity.get("memory").map(|quantity| quantity.value());
    assert_eq!(memory, Some(1 << 30));
    let mode = exact(json!({"deviceClassName": "gpu", "allocationMode": "Some"})).mode;
    assert_eq!(mode, AllocationMode::Unknown);
    let newer = claim(&json!({"requests": [{"name": "r", "someday": {}}]}));
    assert_eq!(newer.requests[0].kind, RequestKind::Unknown);
}

#[test]
fn constraints_of_later_features_are_marked() {
    let attribute = |constraint: Value| {
        let claim = claim(&json!({"requests": [], "constraints": [constraint]}));
        claim.constraints[0].match_attribute.as_deref().map(str::to_owned)
    };
    assert_eq!(attribute(json!({"matchAttribute": "d/numa"})).as_deref(), Some("d/numa"));
    assert_eq!(attribute(json!({"distinctAttribute": "d/numa"})), None);
}

#[test]
fn a_malformed_object_is_named_with_its_field() {
    let object = json!({"metadata": {"name": "s"}, "spec": {"driver": 7, "nodeName": "n"}});
    let error = decode(Kind::ResourceSlice, &object).unwrap_err().to_string();
    assert!(error.starts_with("resourceslice s: spec.driver: must be a string"), "{error}");
}

//! Nodes and HyperNodes.

use serde_json::{Value, json};
use vc_model::{HyperNodeMember, HyperNodeRecord, NodeRecord};

use super::terms::{label_selector, taints};
use super::{amounts, named, nonempty, object, present_fields};

pub(super) fn node(it: &NodeRecord) -> Value {
    let mut node = object("v1", "Node", ("", &it.name));
    if let Some(labels) = named(&it.labels) {
        node["metadata"]["labels"] = labels;
    }
    if let Some(annotations) = named(&it.annotations) {
        node["metadata"]["annotations"] = annotations;
    }
    let spec = present_fields([
        ("unschedulable", it.unschedulable.then(|| true.into())),
        ("taints", taints(&it.taints)),
    ]);
    if spec != json!({}) {
        node["spec"] = spec;
    }
    let images =
        it.images.iter().map(|(name, bytes)| json!({ "names": [&**name], "sizeBytes": bytes }));
    let images: Vec<Value> = images.collect();
    node["status"] = present_fields([
        ("allocatable", amounts(&it.allocatable)),
        ("capacity", amounts(&it.capacity)),
        ("images", (!images.is_empty()).then(|| images.into())),
    ]);
    node
}

pub(super) fn hyper_node(it: &HyperNodeRecord) -> Value {
    let mut object = object("topology.volcano.sh/v1alpha1", "HyperNode", ("", &it.name));
    super::set_identity(&mut object, &it.uid, it.created_micros);
    let member = |it: &HyperNodeMember| {
        let (kind, selector) = match it {
            HyperNodeMember::HyperNode(name) => {
                ("HyperNode", json!({ "exactMatch": { "name": &**name } }))
            }
            HyperNodeMember::Node(name) => ("Node", json!({ "exactMatch": { "name": &**name } })),
            HyperNodeMember::Pattern(pattern) => {
                ("Node", json!({ "regexMatch": { "pattern": String::from(pattern.clone()) } }))
            }
            HyperNodeMember::Labels(labels) => {
                ("Node", json!({ "labelMatch": label_selector(labels) }))
            }
        };
        json!({ "type": kind, "selector": selector })
    };
    let members: Vec<Value> = it.members.iter().map(member).collect();
    object["spec"] = present_fields([
        ("tier", Some(it.tier.into())),
        ("tierName", nonempty(&it.tier_name)),
        ("members", Some(members.into())),
    ]);
    object
}

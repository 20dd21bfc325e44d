//! Pods that would not fit a node even if it were empty.

use std::collections::HashMap;

use serde_json::Value;
use vc_model::{ClusterEvent, RequestGates, pod_request, to_resource};
use vc_resource::{Dims, Resource};
use vc_wire::Kind;

use super::{of_kind, some_of};
use crate::run::reasons::waits;
use vc_objects::field::name_of;

/// A node as a pod sees it when nothing else runs there.
type FreeResources = Resource;

pub(super) fn warnings(values: &[&Value]) -> Vec<String> {
    let mut dims = Dims::new();
    let nodes = of_kind(values, "", "Node");
    if nodes.is_empty() {
        return vec!["the cluster has no nodes".to_owned()];
    }
    let rooms: Vec<FreeResources> = nodes.iter().filter_map(|node| room(node, &mut dims)).collect();
    // By request, in the order of the first pod that makes it.
    let mut order: Vec<(String, Vec<String>)> = Vec::new();
    let mut known: HashMap<Resource, Option<usize>> = HashMap::new();
    for pod in of_kind(values, "", "Pod").into_iter().filter(|pod| waits(pod)) {
        let Some(request) = request(pod, &mut dims) else {
            continue;
        };
        let at = *known.entry(request).or_insert_with_key(|request| {
            let problem = problem(request, &rooms, &dims)?;
            order.push((problem, Vec::new()));
            Some(order.len() - 1)
        });
        if let Some(at) = at {
            order[at].1.push(name_of(pod));
        }
    }
    let describe = |(problem, pods): (String, Vec<String>)| {
        let noun = if pods.len() == 1 { "pod" } else { "pods" };
        format!("{noun} {}: {problem}", some_of(&pods))
    };
    order.into_iter().map(describe).collect()
}

fn room(node: &Value, dims: &mut Dims) -> Option<FreeResources> {
    match vc_wire::decode(Kind::Node, node).ok()?.event {
        ClusterEvent::NodeApplied(node) => Some(to_resource(&node.allocatable, dims)),
        _ => None,
    }
}

fn request(pod: &Value, dims: &mut Dims) -> Option<Resource> {
    match vc_wire::decode(Kind::Pod, pod).ok()?.event {
        ClusterEvent::PodApplied(pod) => Some(pod_request(&pod, RequestGates::default(), dims)),
        _ => None,
    }
}

/// What makes a request larger than any node: the first resource of which no node has enough, or
/// their combination.
fn problem(request: &Resource, rooms: &[FreeResources], dims: &Dims) -> Option<String> {
    if rooms.iter().any(|room| request.fits(room)) {
        return None;
    }
    let mut largest = Resource::default();
    rooms.iter().for_each(|room| largest.set_max(room));
    let Some(dim) = request.first_lacking(&largest, dims) else {
        return Some("no node has enough of everything that is requested together".to_owned());
    };
    let name = dims.name(dim);
    let amount = |of: &Resource| {
        let amounts = of.to_quantities(dims);
        let amount = amounts.into_iter().find(|(other, _)| other == name);
        amount.map_or("0".to_owned(), |(_, text)| text)
    };
    let (wanted, most) = (amount(request), amount(&largest));
    Some(format!("requests {name} {wanted}, the largest node has {most}"))
}

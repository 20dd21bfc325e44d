//! Nodes on which no devices were found for the same requests. Exact as long as no device becomes
//! free and slices, classes and nodes are the same: each device that is taken leaves less to try, so
//! that a search which has tried all in vain fails again. Specification: plugins-nodes.md 6.5, 6.9.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashSet;
use vc_model::{Cluster, DeviceConstraint, DeviceRequest, NodeId, ResourceClaim, Revision};

/// Different requests that are told apart; with more all are forgotten.
const MOST_KINDS: usize = 64;

/// What all refusals of a time depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RefusalStamp {
    version: u64,
    n_freed: u64,
    objects: Revision,
}

/// Refusals by what is asked for.
#[derive(Debug, Default)]
pub(super) struct DeviceRefusalCache {
    stamp: RefusalStamp,
    kinds: Vec<Arc<DeviceRefusals>>,
}

/// Nodes that refuse the same requests.
#[derive(Debug)]
pub(super) struct DeviceRefusals {
    /// Per claim.
    asked: Vec<(Vec<DeviceRequest>, Vec<DeviceConstraint>)>,
    /// The limit of the search.
    steps: Option<u64>,
    nodes: Mutex<FxHashSet<NodeId>>,
}

impl DeviceRefusalCache {
    /// Those of the requests of these claims together.
    pub(super) fn of(
        &mut self,
        cluster: &Cluster,
        claims: &[&ResourceClaim],
        steps: Option<u64>,
    ) -> Arc<DeviceRefusals> {
        let stamp = RefusalStamp {
            version: cluster.devices.version(),
            n_freed: cluster.devices.n_freed(),
            objects: cluster.object_changes().revision(),
        };
        if self.stamp != stamp || MOST_KINDS < self.kinds.len() {
            *self = Self { stamp, kinds: Vec::new() };
        }
        if let Some(known) = self.kinds.iter().find(|kind| kind.is_of(claims, steps)) {
            return known.clone();
        }
        let asked = claims.iter().map(|claim| (claim.requests.clone(), claim.constraints.clone()));
        let asked = asked.collect();
        let new = Arc::new(DeviceRefusals { asked, steps, nodes: Mutex::default() });
        self.kinds.push(new.clone());
        new
    }
}

impl DeviceRefusals {
    fn is_of(&self, claims: &[&ResourceClaim], steps: Option<u64>) -> bool {
        self.steps == steps
            && self.asked.len() == claims.len()
            && self.asked.iter().zip(claims).all(|((requests, constraints), claim)| {
                *requests == claim.requests && *constraints == claim.constraints
            })
    }

    pub(super) fn has(&self, node: NodeId) -> bool {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).contains(&node)
    }

    pub(super) fn add(&self, node: NodeId) {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).insert(node);
    }
}

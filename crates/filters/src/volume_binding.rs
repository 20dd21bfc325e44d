//! VolumeBinding: a pod runs where its volumes are, or can be provisioned. It reads the pod, node
//! labels, volumes, claims, classes, capacities and CSINodes, and the reservations of other tasks.
//! Specification: plugins-nodes.md 5.

mod bound;
mod matching;
mod progress;
mod provision;
mod reserve;
mod score;

use std::collections::BTreeSet;

use vc_model::{
    AccessModes, Cluster, Code, Finding, Node, NodeId, PersistentVolume, PersistentVolumeClaim,
    PodClaim, Selected, StorageClass, TaskStatus,
};

use crate::claims::{ProvisionMode, claim_not_found, claims, foreign, key, mode};
use crate::rule::{Pod, PreFilter, refused};
use bound::BoundVolume;
use matching::VolumeChoice;
pub use progress::{Progress, progress};
pub use reserve::reserve;
pub use score::{ShapePoint, score};
use vc_model::node_selector::labels_match;

const AFFINITY: &str = "node(s) didn't match PersistentVolume's node affinity";
const NO_VOLUME: &str = "node(s) didn't find available persistent volumes to bind";
const NO_ROOM: &str = "node(s) did not have enough free storage";
const GONE: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const IMMEDIATE: &str = "pod has unbound immediate PersistentVolumeClaims";

/// The claims of a pod, with what does not depend on the node.
struct PodVolumeClaims<'a> {
    pod: Pod<'a>,
    /// Volumes of the bound claims. `None` if the volume does not exist.
    bound: Vec<Option<BoundVolume<'a>>>,
    delayed: Vec<DelayedClaim<'a>>,
}

/// A claim whose volume is chosen or provisioned after its pod got a node.
struct DelayedClaim<'a> {
    claim: &'a PersistentVolumeClaim,
    class: &'a StorageClass,
    selected: Option<Selected<'a>>,
    choice: VolumeChoice<'a>,
}

/// The bindings and provisions of the delayed claims on one node.
#[derive(Default)]
struct NodeVolumeFit<'a> {
    bindings: Vec<(&'a PersistentVolumeClaim, &'a PersistentVolume)>,
    provisions: Vec<(&'a PersistentVolumeClaim, &'a StorageClass)>,
    /// Claims that another task already decided; the task only waits for them.
    awaited: Vec<&'a PersistentVolumeClaim>,
}

/// Runs the pre-filter. It skips pods without claims, and refuses pods whose claims are not usable
/// now.
pub fn pre_filter(pod: Pod<'_>) -> PreFilter<'_> {
    match PodVolumeClaims::of(pod) {
        Err(finding) => PreFilter::Refuse(finding),
        Ok(None) => PreFilter::Skip,
        Ok(Some(claims)) => PreFilter::Ask(Box::new(move |node| claims.filter(node))),
    }
}

impl<'a> PodVolumeClaims<'a> {
    /// Collects the claims of a pod. Returns `None` if the pod has none, and `Err` if one is not
    /// usable.
    fn of(pod: Pod<'a>) -> Result<Option<Self>, Finding> {
        let mut rows: Vec<&PersistentVolumeClaim> =
            claims(pod).map(|claim| usable(pod, claim)).collect::<Result<_, _>>()?;
        if rows.is_empty() {
            return Ok(None);
        }
        // Each claim counts once, however many volumes of the pod name it.
        let mut seen = BTreeSet::new();
        rows.retain(|row| seen.insert(&row.key));
        let volumes = &pod.cluster.volumes;
        let mut all = Self { pod, bound: Vec::new(), delayed: Vec::new() };
        for claim in rows {
            if claim.is_bound() {
                all.bound.push(volumes.volume(&claim.volume_name).map(BoundVolume::new));
                continue;
            }
            let mode = mode(volumes, claim).map_err(|text| refused(Code::Error, text))?;
            let ProvisionMode::Delayed(class) = mode else { return Err(immediate()) };
            if !claim.volume_name.is_empty() {
                return Err(immediate());
            }
            let selected = volumes.selected(claim);
            let choice = VolumeChoice::of(volumes, claim);
            all.delayed.push(DelayedClaim { claim, class, selected, choice });
        }
        // Matching serves the smallest request first (section 5.4).
        all.delayed.sort_by_key(|delayed| delayed.claim.request_bytes.unwrap_or(0));
        Ok(Some(all))
    }

    fn filter(&self, node: NodeId) -> Option<Finding> {
        let row = &self.pod.cluster.nodes[node];
        let mut reasons = match self.refused_by_bound(row) {
            Err(text) => return Some(refused(Code::Error, text)),
            Ok(reasons) => reasons,
        };
        match self.fit(node) {
            Err(text) => return Some(refused(Code::Error, text)),
            Ok(Err(reason)) => reasons.push(reason),
            Ok(Ok(_)) => {}
        }
        let place = |reason: &&str| [AFFINITY, NO_VOLUME, NO_ROOM].iter().position(|r| r == reason);
        reasons.sort_by_key(|reason| place(reason).unwrap_or(3));
        match reasons[..] {
            [] => None,
            [reason] => Some(Finding::new(Code::Unresolvable, reason)),
            _ => Some(refused(Code::Unresolvable, reasons.join(", "))),
        }
    }

    /// Returns each kind of failure at most once. A missing volume ends the search.
    fn refused_by_bound(&self, node: &Node) -> Result<Vec<&'static str>, String> {
        let mut reasons = Vec::new();
        for volume in &self.bound {
            let Some(volume) = volume else {
                reasons.push(GONE);
                break;
            };
            if !volume.is_reached(&self.pod.cluster.volumes, node)? && reasons.is_empty() {
                reasons.push(AFFINITY);
            }
        }
        Ok(reasons)
    }

    /// Returns what happens to the delayed claims on the node. The inner `Err` is the reason
    /// against the node.
    fn fit(&self, node: NodeId) -> Result<Result<NodeVolumeFit<'a>, &'static str>, String> {
        let mut fit = NodeVolumeFit::default();
        let mut decided = Vec::new();
        let mut open = Vec::new();
        let row = &self.pod.cluster.nodes[node];
        for delayed in &self.delayed {
            match delayed.selected {
                None => open.push(delayed),
                // A claim with a reserved volume never gets a second one (deviation of 5.8).
                Some(Selected::Volume(name)) => match self.promised(name, row) {
                    Some(volume) => fit.bindings.push((delayed.claim, volume)),
                    None => return Ok(Err(NO_VOLUME)),
                },
                Some(selected) if self.may_use(delayed, selected, node) => decided.push(delayed),
                Some(_) => return Ok(Err(NO_VOLUME)),
            }
        }
        let unmatched = matching::bind(&open, row, &mut fit);
        for delayed in decided.iter().chain(&unmatched) {
            if let Some(reason) = provision::refusal(self.pod.cluster, delayed, row)? {
                return Ok(Err(reason));
            }
        }
        fit.awaited.extend(decided.iter().map(|delayed| delayed.claim));
        fit.provisions.extend(unmatched.iter().map(|delayed| (delayed.claim, delayed.class)));
        Ok(Ok(fit))
    }

    /// Returns the volume that is reserved for a claim of the pod. Returns `None` if the node does
    /// not reach it.
    fn promised(&self, name: &str, node: &Node) -> Option<&'a PersistentVolume> {
        self.pod.cluster.volumes.volume(name).filter(|volume| reaches(volume, node))
    }

    /// True if a claim whose node is selected can be used on this node. A volume for many nodes may
    /// also be used elsewhere by the gang that selected the node (deviation of 5.8).
    fn may_use(&self, delayed: &DelayedClaim<'_>, selected: Selected<'_>, node: NodeId) -> bool {
        let cluster = self.pod.cluster;
        let owner = match selected {
            Selected::Stored(name) => return *cluster.nodes[node].name == *name,
            Selected::Promised(task) => &cluster.tasks[task],
            Selected::Volume(_) => return false,
        };
        let many = AccessModes::of(["ReadWriteMany", "ReadOnlyMany"]);
        let ours = owner.job.is_some() && owner.job == cluster.tasks[self.pod.task].job;
        let tentative = matches!(owner.status, TaskStatus::Allocated | TaskStatus::Pipelined);
        owner.node == Some(node) || (ours && tentative && delayed.claim.access_modes.any(many))
    }
}

fn immediate() -> Finding {
    Finding::new(Code::Unresolvable, IMMEDIATE)
}

/// True if a free volume can be used on the node.
fn reaches(volume: &PersistentVolume, node: &Node) -> bool {
    volume.node_affinity.as_ref().is_none_or(|terms| labels_match(terms, &node.labels))
}

/// Returns the row of a claim, or `Err` if the claim is not usable (section 5.2).
fn usable<'a>(pod: Pod<'a>, claim: &PodClaim) -> Result<&'a PersistentVolumeClaim, Finding> {
    let cluster: &'a Cluster = pod.cluster;
    let name = &claim.name;
    let text = match cluster.volumes.claim(&key(pod, claim)) {
        None if claim.ephemeral => format!(
            "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
        ),
        None => claim_not_found(name),
        Some(row) if row.lost => format!(
            "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {:?}",
            row.volume_name
        ),
        Some(row) if row.deleting => format!("persistentvolumeclaim {name:?} is being deleted"),
        Some(row) => match foreign(pod, claim, row) {
            None => return Ok(row),
            Some(text) => text,
        },
    };
    Err(refused(Code::Unresolvable, text))
}

//! VolumeBinding: a pod runs where its volumes are or can be made (plugins-nodes.md 5). Reads the
//! pod, node labels, and volumes, claims, classes, capacities and CSINodes with what is promised.

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

use crate::claims::{Mode, claim_not_found, claims, foreign, key, mode};
use crate::rule::{Pod, PreFilter, refused};
use bound::Bound;
use matching::Choice;
pub use progress::{Progress, progress};
pub use reserve::reserve;
pub use score::{ShapePoint, score};
use vc_model::node_selector::labels_match;

const AFFINITY: &str = "node(s) didn't match PersistentVolume's node affinity";
const NO_VOLUME: &str = "node(s) didn't find available persistent volumes to bind";
const NO_ROOM: &str = "node(s) did not have enough free storage";
const GONE: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const IMMEDIATE: &str = "pod has unbound immediate PersistentVolumeClaims";

/// The claims of a pod, as far as they do not depend on the node.
struct PodClaims<'a> {
    pod: Pod<'a>,
    /// Volumes of the bound claims; `None`: the volume is gone.
    bound: Vec<Option<Bound<'a>>>,
    delayed: Vec<Delayed<'a>>,
}

/// A claim whose volume is chosen or made once its pod has a node.
struct Delayed<'a> {
    claim: &'a PersistentVolumeClaim,
    class: &'a StorageClass,
    selected: Option<Selected<'a>>,
    choice: Choice<'a>,
}

/// What a node means for the delayed claims.
#[derive(Default)]
struct Fit<'a> {
    bindings: Vec<(&'a PersistentVolumeClaim, &'a PersistentVolume)>,
    provisions: Vec<(&'a PersistentVolumeClaim, &'a StorageClass)>,
    /// Decided elsewhere: only waited for.
    awaited: Vec<&'a PersistentVolumeClaim>,
}

/// Skips pods without claims; refuses those whose claims cannot be used now.
pub fn pre_filter(pod: Pod<'_>) -> PreFilter<'_> {
    match PodClaims::of(pod) {
        Err(finding) => PreFilter::Refuse(finding),
        Ok(None) => PreFilter::Skip,
        Ok(Some(claims)) => PreFilter::Ask(Box::new(move |node| claims.filter(node))),
    }
}

impl<'a> PodClaims<'a> {
    /// `None`: the pod has no claims.
    fn of(pod: Pod<'a>) -> Result<Option<Self>, Finding> {
        let mut rows: Vec<&PersistentVolumeClaim> =
            claims(pod).map(|claim| usable(pod, claim)).collect::<Result<_, _>>()?;
        if rows.is_empty() {
            return Ok(None);
        }
        // About each claim once, however many volumes of the pod name it.
        let mut seen = BTreeSet::new();
        rows.retain(|row| seen.insert(&row.key));
        let volumes = &pod.cluster.volumes;
        let mut all = Self { pod, bound: Vec::new(), delayed: Vec::new() };
        for claim in rows {
            if claim.is_bound() {
                all.bound.push(volumes.volume(&claim.volume_name).map(Bound::new));
                continue;
            }
            let mode = mode(volumes, claim).map_err(|text| refused(Code::Error, text))?;
            let Mode::Delayed(class) = mode else { return Err(immediate()) };
            if !claim.volume_name.is_empty() {
                return Err(immediate());
            }
            let selected = volumes.selected(claim);
            let choice = Choice::of(volumes, claim);
            all.delayed.push(Delayed { claim, class, selected, choice });
        }
        // In the order of the requests, for matching (5.4).
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

    /// Every kind of failure at most once; a missing volume ends the search.
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

    /// What happens to the delayed claims on the node; the inner error is the reason against it.
    fn fit(&self, node: NodeId) -> Result<Result<Fit<'a>, &'static str>, String> {
        let mut fit = Fit::default();
        let mut decided = Vec::new();
        let mut open = Vec::new();
        let row = &self.pod.cluster.nodes[node];
        for delayed in &self.delayed {
            match delayed.selected {
                None => open.push(delayed),
                // Nowhere else: no second volume is made for it (deviation of 5.8).
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

    /// The volume that is promised to a claim of the pod, if the node reaches it.
    fn promised(&self, name: &str, node: &Node) -> Option<&'a PersistentVolume> {
        self.pod.cluster.volumes.volume(name).filter(|volume| reaches(volume, node))
    }

    /// A claim that is to be provisioned for one node can be used there; if many nodes may use the
    /// volume, also elsewhere by the gang that has just decided so (deviation of 5.8).
    fn may_use(&self, delayed: &Delayed<'_>, selected: Selected<'_>, node: NodeId) -> bool {
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

/// Whether a free volume can be used on the node.
fn reaches(volume: &PersistentVolume, node: &Node) -> bool {
    volume.node_affinity.as_ref().is_none_or(|terms| labels_match(terms, &node.labels))
}

/// The row of a claim, unless there is something wrong with it (5.2).
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

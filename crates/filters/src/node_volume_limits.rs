//! NodeVolumeLimits: a driver attaches no more volumes to a node than its CSINode permits. It reads
//! the pod, the volumes in use on the node, and claims, classes, CSINodes and attachments.
//! Specification: plugins-nodes.md 4.6.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_model::{Code, Finding, Node, PodVolume, VolumeName};

use crate::claims::{claim_not_found, claims, foreign, key};
use crate::rule::{Pod, PreFilter, refused};

const REASON: &str = "node(s) exceed max volume count";

/// Runs the pre-filter. It skips pods without claims and disks. It refuses pods with a broken
/// claim, which fails on every node.
pub fn pre_filter(pod: Pod<'_>) -> PreFilter<'_> {
    let limited = |volume: &PodVolume| match volume {
        PodVolume::Claim(_) => true,
        PodVolume::Disk(disk) => disk.migrated() != vc_model::VolumeSource::Other,
    };
    if !pod.class.volumes.iter().any(limited) {
        return PreFilter::Skip;
    }
    let finding = broken(pod);
    PreFilter::Ask(Box::new(move |node| {
        finding.clone().or_else(|| filter(pod, &pod.cluster.nodes[node]))
    }))
}

/// Returns the finding about the first claim that cannot be looked up (step 1 of section 4.6).
fn broken(pod: Pod<'_>) -> Option<Finding> {
    claims(pod).find_map(|claim| {
        if claim.name.is_empty() {
            let text = "PersistentVolumeClaim had no name".to_owned();
            return Some(refused(Code::Error, text));
        }
        let key = key(pod, claim);
        let Some(row) = pod.cluster.volumes.claim(&key) else {
            let text = format!("looking up PVC {key}: {}", claim_not_found(&claim.name));
            return Some(refused(Code::Unresolvable, text));
        };
        foreign(pod, claim, row).map(|text| refused(Code::Error, text))
    })
}

fn filter(pod: Pod<'_>, node: &Node) -> Option<Finding> {
    let volumes = &pod.cluster.volumes;
    let limits = &volumes.csi_node(&node.name)?.drivers;
    if limits.iter().all(|(_, limit)| limit.is_none()) {
        return None;
    }
    let wanted = volumes.names_on(pod.class, &node.name);
    let new: BTreeSet<VolumeName> = wanted.filter(|name| !node.volumes.has(name)).collect();
    if new.is_empty() {
        return None;
    }
    // Attached volumes that no pod of the node uses. A volume that the pod will use counts once
    // (deviation).
    let unused = volumes.attachments(&node.name);
    let unused = unused.filter(|name| !node.volumes.has(name) && !new.contains(name));
    let unused: BTreeSet<VolumeName> = unused.collect();
    let mut n_more: BTreeMap<&Arc<str>, i64> = BTreeMap::new();
    for name in &new {
        *n_more.entry(&name.driver).or_default() += 1;
    }
    let exceeded = |(driver, limit): &(Arc<str>, Option<i64>)| {
        let (Some(limit), Some(more)) = (limit, n_more.get(driver)) else { return false };
        let idle = unused.iter().filter(|name| name.driver == *driver).count();
        let attached = i64::from(node.volumes.count(driver)) + idle as i64;
        *limit < attached + more
    };
    limits.iter().any(exceeded).then(|| Finding::new(Code::Unschedulable, REASON))
}

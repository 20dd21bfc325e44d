//! VolumeRestrictions: some disks are used on one node at a time, some claims by one pod at a time.
//! It reads the pod, the pods of the node, and the users of its claims.
//! Specification: plugins-nodes.md 4.9.

use vc_model::{AccessModes, Cluster, Code, Disk, Finding, NodeId, ObjectKey, PodVolume, TaskId};

use crate::claims::{claim_not_found, claims, key};
use crate::rule::{Pod, PreFilter, refused};

const DISK: &str = "node(s) had no available disk";
const IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access \
                      mode already in-use by another pod";

/// Runs the pre-filter. It skips pods without a ReadWriteOncePod claim and without a disk of the
/// four kinds.
pub fn pre_filter(pod: Pod<'_>) -> PreFilter<'_> {
    let mut exclusive = Vec::new();
    for claim in claims(pod) {
        let key = key(pod, claim);
        match pod.cluster.volumes.claim(&key) {
            None => {
                let text = claim_not_found(&claim.name);
                return PreFilter::Refuse(refused(Code::Unresolvable, text));
            }
            Some(row) if row.access_modes.any(AccessModes::READ_WRITE_ONCE_POD) => {
                exclusive.push(key);
            }
            Some(_) => {}
        }
    }
    let disks: Vec<&Disk> = disks(&pod.class.volumes).filter(|disk| is_exclusive(disk)).collect();
    if exclusive.is_empty() && disks.is_empty() {
        return PreFilter::Skip;
    }
    let in_use = exclusive.iter().any(|claim| is_used(pod.cluster, pod.task, claim));
    PreFilter::Ask(Box::new(move |node| {
        let reason = if conflicts(pod, &disks, node) {
            DISK
        } else if in_use {
            IN_USE
        } else {
            return None;
        };
        Some(Finding::new(Code::Unschedulable, reason))
    }))
}

fn disks(volumes: &[PodVolume]) -> impl Iterator<Item = &Disk> {
    volumes.iter().filter_map(|volume| match volume {
        PodVolume::Disk(disk) => Some(disk),
        PodVolume::Claim(_) => None,
    })
}

fn is_exclusive(disk: &Disk) -> bool {
    !matches!(disk, Disk::AzureDisk { .. } | Disk::Cinder { .. })
}

/// True if another pod with a node uses the claim. A pod that has ended, or was evicted in this
/// session, does not use it.
fn is_used(cluster: &Cluster, task: TaskId, claim: &ObjectKey) -> bool {
    let holds = |other: TaskId| {
        let row = &cluster.tasks[other];
        row.node.is_some() && !row.hidden && !row.status.is_terminated()
    };
    cluster.volumes.users(claim).any(|other| other != task && holds(other))
}

fn conflicts(pod: Pod<'_>, wanted: &[&Disk], node: NodeId) -> bool {
    if wanted.is_empty() {
        return false;
    }
    let cluster = pod.cluster;
    let others = cluster.nodes[node].tasks.iter().filter(|&&other| !cluster.tasks[other].hidden);
    let mut used = others.flat_map(|&other| disks(&cluster.class(other).volumes));
    used.any(|used| wanted.iter().any(|wanted| excludes(wanted, used)))
}

fn excludes(wanted: &Disk, used: &Disk) -> bool {
    match (wanted, used) {
        (Disk::GcePd { name: l, read_only: lr }, Disk::GcePd { name: r, read_only: rr }) => {
            l == r && !(*lr && *rr)
        }
        (Disk::AwsEbs { id: l }, Disk::AwsEbs { id: r }) => l == r,
        (Disk::Iscsi { iqn: l, read_only: lr }, Disk::Iscsi { iqn: r, read_only: rr }) => {
            l == r && !(*lr && *rr)
        }
        (
            Disk::Rbd { monitors: l, pool, image, read_only: lr },
            Disk::Rbd { monitors: r, pool: other_pool, image: other, read_only: rr },
        ) => {
            let shared = l.iter().any(|monitor| r.contains(monitor));
            shared && pool == other_pool && image == other && !(*lr && *rr)
        }
        _ => false,
    }
}

//! Static matching: the smallest volume that fits an unbound claim on a node (plugins-nodes.md
//! 5.4; order by capacity, then name).

use vc_model::{Node, PersistentVolume, PersistentVolumeClaim, VolumePhase, Volumes};

use super::{Delayed, Fit, reaches};

/// The volumes that a claim may get, as far as the node does not matter.
pub(super) enum Choice<'a> {
    /// This one is meant for it; where it cannot be used there is no other.
    Meant(&'a PersistentVolume),
    /// The first that can be used on the node.
    Among(Vec<&'a PersistentVolume>),
}

impl<'a> Choice<'a> {
    pub(super) fn of(volumes: &'a Volumes, claim: &PersistentVolumeClaim) -> Self {
        let mut among = Vec::new();
        let request = claim.request_bytes.unwrap_or(0);
        let fitting = volumes.volumes_from(&claim.class, request);
        for volume in fitting.filter(|volume| same_kind(volume, claim)) {
            match volumes.claim_of(volume) {
                Some((key, uid)) if *key == claim.key && (uid.is_empty() || *uid == *claim.uid) => {
                    return Self::Meant(volume);
                }
                None if is_free(volume, claim) => among.push(volume),
                _ => {}
            }
        }
        Self::Among(among)
    }

    fn on(&self, node: &Node, taken: &[&PersistentVolume]) -> Option<&'a PersistentVolume> {
        let fits = |volume: &PersistentVolume| {
            reaches(volume, node) && taken.iter().all(|other| other.name != volume.name)
        };
        match self {
            Self::Meant(volume) => Some(*volume).filter(|volume| fits(volume)),
            Self::Among(volumes) => volumes.iter().copied().find(|volume| fits(volume)),
        }
    }
}

fn same_kind(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.mode == claim.mode
        && volume.attributes_class == claim.attributes_class
        && !volume.deleting
}

fn is_free(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.phase == VolumePhase::Available
        && volume.access_modes.offer(claim.access_modes)
        && claim.selector.as_ref().is_none_or(|selector| selector.matches(&volume.labels))
}

/// Binds the claims, smallest request first, to volumes that the node reaches; what is left over.
pub(super) fn bind<'a, 'd>(
    open: &[&'d Delayed<'a>],
    node: &Node,
    fit: &mut Fit<'a>,
) -> Vec<&'d Delayed<'a>> {
    let mut unmatched = Vec::new();
    let mut taken: Vec<&PersistentVolume> = Vec::new();
    for delayed in open {
        match delayed.choice.on(node, &taken) {
            Some(volume) => {
                taken.push(volume);
                fit.bindings.push((delayed.claim, volume));
            }
            None => unmatched.push(*delayed),
        }
    }
    unmatched
}

//! Static matching: finds the smallest volume that fits an unbound claim on a node. Volumes are
//! ordered by capacity, then name.
//! Specification: plugins-nodes.md 5.4.

use std::collections::BTreeMap;

use vc_model::{Node, Operator, PersistentVolume, PersistentVolumeClaim, VolumePhase, Volumes};

use super::{DelayedClaim, NodeVolumeFit, reaches};

/// The label by which a local volume names its node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The volumes that a claim may get, independent of the node.
pub(super) enum VolumeChoice<'a> {
    /// A volume that is reserved for the claim. The claim gets no other.
    Meant(&'a PersistentVolume),
    /// The first of these volumes that can be used on the node.
    Among(VolumeCandidates<'a>),
}

/// Free volumes by capacity and name. Local volumes are indexed by the name of their node, because
/// there may be as many as nodes.
#[derive(Default)]
pub(super) struct VolumeCandidates<'a> {
    volumes: Vec<&'a PersistentVolume>,
    /// Indices of the volumes that name hosts, in order.
    of_host: BTreeMap<&'a str, Vec<usize>>,
    /// Indices of the other volumes, in order.
    anywhere: Vec<usize>,
}

impl<'a> VolumeChoice<'a> {
    pub(super) fn of(volumes: &'a Volumes, claim: &PersistentVolumeClaim) -> Self {
        let mut candidates = VolumeCandidates::default();
        let request = claim.request_bytes.unwrap_or(0);
        let fitting = volumes.volumes_from(&claim.class, request);
        for volume in fitting.filter(|volume| same_kind(volume, claim)) {
            match volumes.claim_of(volume) {
                Some((key, uid)) if *key == claim.key && (uid.is_empty() || *uid == *claim.uid) => {
                    return Self::Meant(volume);
                }
                None if is_free(volume, claim) => candidates.push(volume),
                _ => {}
            }
        }
        Self::Among(candidates)
    }

    fn on(&self, node: &Node, taken: &[&PersistentVolume]) -> Option<&'a PersistentVolume> {
        let fits = |volume: &PersistentVolume| {
            reaches(volume, node) && taken.iter().all(|other| other.name != volume.name)
        };
        match self {
            Self::Meant(volume) => Some(*volume).filter(|volume| fits(volume)),
            Self::Among(candidates) => candidates.first(node, fits),
        }
    }
}

impl<'a> VolumeCandidates<'a> {
    fn push(&mut self, volume: &'a PersistentVolume) {
        let place = self.volumes.len();
        self.volumes.push(volume);
        match hosts(volume) {
            Some(hosts) => {
                for host in hosts {
                    self.of_host.entry(host).or_default().push(place);
                }
            }
            None => self.anywhere.push(place),
        }
    }

    fn first(
        &self,
        node: &Node,
        fits: impl Fn(&PersistentVolume) -> bool,
    ) -> Option<&'a PersistentVolume> {
        let host = node.labels.get(HOSTNAME).and_then(|host| self.of_host.get(&**host));
        let fits = |place: &&usize| fits(self.volumes[**place]);
        let here = host.and_then(|places| places.iter().find(fits));
        let anywhere = self.anywhere.iter().find(fits);
        let first = here.into_iter().chain(anywhere).min()?;
        Some(self.volumes[*first])
    }
}

/// Returns the only hosts that may reach the volume. Returns `None` if it names none.
fn hosts(volume: &PersistentVolume) -> Option<impl Iterator<Item = &str>> {
    let [term] = volume.node_affinity.as_deref()? else { return None };
    let mut rules = term.match_expressions.iter();
    let rule = rules.find(|rule| *rule.key == *HOSTNAME && rule.operator == Operator::In)?;
    Some(rule.values.iter().map(|value| &**value))
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

/// Binds the claims, smallest request first, to volumes that the node reaches. Returns the
/// unmatched claims.
pub(super) fn bind<'a, 'd>(
    open: &[&'d DelayedClaim<'a>],
    node: &Node,
    fit: &mut NodeVolumeFit<'a>,
) -> Vec<&'d DelayedClaim<'a>> {
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

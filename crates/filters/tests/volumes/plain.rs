//! The rules of volumes evaluated from the objects alone: as they read, without counters
//! (plugins-nodes.md 4.6, 4.9, 5.3-5.5).

use std::collections::{BTreeMap, BTreeSet};

/// What the objects say, kept apart from the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub(crate) claims: BTreeMap<u8, PlainClaim>,
    pub(crate) volumes: BTreeMap<u8, PlainVolume>,
    /// Nodes of the second zone.
    pub(crate) second_zone: BTreeSet<u8>,
    /// The class without (`false`) and the one with a provisioner (`true`).
    pub(crate) classes: BTreeSet<bool>,
    /// The driver tells how much room there is.
    pub(crate) tells_room: bool,
    /// Room and where.
    pub(crate) capacities: BTreeMap<u8, (u8, u8)>,
    pub(crate) limits: BTreeMap<u8, u8>,
    pub(crate) attached: BTreeMap<u8, u8>,
    /// Pod to node; evicted ones are left out.
    pub(crate) placed: BTreeMap<u8, u8>,
    /// Volume to claim and pod, by what was promised.
    pub(crate) bound: BTreeMap<u8, (u8, u8)>,
    /// Claim to pod, likewise.
    pub(crate) provisioned: BTreeMap<u8, u8>,
    /// Pods and claims about which another one has decided.
    pub(crate) awaited: BTreeSet<(u8, u8)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainClaim {
    pub(crate) size: u8,
    pub(crate) volume: Option<u8>,
    /// For one pod.
    pub(crate) exclusive: bool,
    pub(crate) class: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainVolume {
    pub(crate) size: u8,
    pub(crate) claim: Option<u8>,
    /// `None`: everywhere.
    pub(crate) place: Option<u8>,
    pub(crate) class: bool,
}

/// Claims of a pod.
pub(crate) fn claims_of(pod: u8) -> Vec<u8> {
    [vec![0], vec![1], vec![0, 2], vec![3], vec![1, 2, 3]][usize::from(pod)].clone()
}

/// Places are two zones, then hosts.
pub(crate) fn at(place: u8) -> String {
    match place.checked_sub(2) {
        None => format!(" at.zone={}", place == 1),
        Some(host) => format!(" at.kubernetes.io/hostname=n{host}"),
    }
}

/// Takes out what is meant.
fn take<T: Copy>(map: &mut BTreeMap<u8, T>, is_meant: impl Fn(&T) -> bool) -> BTreeMap<u8, T> {
    let (taken, left) = std::mem::take(map).into_iter().partition(|(_, value)| is_meant(value));
    *map = left;
    taken
}

impl Objects {
    /// Names of the volumes of a pod, without those whose claim is missing.
    fn names(&self, pod: u8) -> BTreeSet<String> {
        let name = |number: u8| {
            let claim = self.claims.get(&number)?;
            match claim.volume.filter(|volume| self.volumes.contains_key(volume)) {
                Some(volume) => Some(format!("handle-v{volume}")),
                // The other class has no driver, and so no limit.
                None => {
                    (claim.class && self.classes.contains(&true)).then(|| format!("claim {number}"))
                }
            }
        };
        claims_of(pod).into_iter().filter_map(name).collect()
    }

    pub(crate) fn is_broken(&self, pod: u8) -> bool {
        claims_of(pod).iter().any(|claim| !self.claims.contains_key(claim))
    }

    pub(crate) fn exceeds(&self, pod: u8, node: u8) -> bool {
        let Some(&limit) = self.limits.get(&node) else { return false };
        let here = self.placed.iter().filter(|&(_, &on)| on == node);
        let used: BTreeSet<String> = here.flat_map(|(&pod, _)| self.names(pod)).collect();
        let new: BTreeSet<String> = self.names(pod).difference(&used).cloned().collect();
        let attached = self.attached.iter().filter(|&(_, &on)| on == node);
        let known = attached.filter(|(volume, _)| self.volumes.contains_key(volume));
        let all: BTreeSet<String> = known
            .map(|(volume, _)| format!("handle-v{volume}"))
            .chain(used)
            .chain(new.clone())
            .collect();
        !new.is_empty() && usize::from(limit) < all.len()
    }

    pub(crate) fn is_in_use(&self, pod: u8) -> bool {
        let exclusive = |claim: &u8| self.claims.get(claim).is_some_and(|row| row.exclusive);
        let mut wanted = claims_of(pod).into_iter().filter(exclusive);
        let others = || self.placed.keys().filter(|&&other| other != pod);
        wanted.any(|claim| others().any(|&other| claims_of(other).contains(&claim)))
    }

    fn is_at(&self, node: u8, place: u8) -> bool {
        match place.checked_sub(2) {
            None => (place == 1) == self.second_zone.contains(&node),
            Some(host) => host == node,
        }
    }

    fn reaches(&self, volume: u8, node: u8) -> bool {
        self.volumes[&volume].place.is_none_or(|place| self.is_at(node, place))
    }

    /// Whether a volume for the claim can be made for the node.
    fn provides(&self, claim: PlainClaim, node: u8) -> bool {
        let has_room = |&(room, place): &(u8, u8)| claim.size <= room && self.is_at(node, place);
        claim.class && (!self.tells_room || self.capacities.values().any(has_room))
    }

    /// A pod loses its node: for each claim about which it has decided, the first one that relies on
    /// that decides in its place.
    pub(crate) fn take_back(&mut self, pod: u8) {
        self.placed.remove(&pod);
        self.awaited.retain(|&(other, _)| other != pod);
        let heir = |awaited: &mut BTreeSet<(u8, u8)>, claim: u8| {
            let found = awaited.iter().find(|&&(_, of)| of == claim).copied()?;
            awaited.remove(&found);
            Some(found.0)
        };
        for (volume, (claim, _)) in take(&mut self.bound, |&(_, owner)| owner == pod) {
            let heir = heir(&mut self.awaited, claim);
            self.bound.extend(heir.map(|heir| (volume, (claim, heir))));
        }
        for (claim, _) in take(&mut self.provisioned, |&owner| owner == pod) {
            let heir = heir(&mut self.awaited, claim);
            self.provisioned.extend(heir.map(|heir| (claim, heir)));
        }
    }

    /// Whether the volumes of a pod whose claims are all there fit the node.
    pub(crate) fn fits(&self, pod: u8, node: u8) -> bool {
        let mut open = Vec::new();
        for number in claims_of(pod) {
            let claim = self.claims[&number];
            let owner = self.provisioned.get(&number);
            let promised = self.bound.iter().find(|&(_, &(of, _))| of == number);
            let fits = match (claim.volume, owner) {
                (Some(volume), _) => {
                    self.volumes.contains_key(&volume) && self.reaches(volume, node)
                }
                // Without its class, it is one that is bound before.
                _ if !self.classes.contains(&claim.class) => false,
                (None, None) if promised.is_some() => promised.is_some_and(|(volume, _)| {
                    self.volumes.contains_key(volume) && self.reaches(*volume, node)
                }),
                (None, Some(owner)) => {
                    self.placed.get(owner) == Some(&node) && self.provides(claim, node)
                }
                (None, None) => {
                    open.push((number, claim));
                    true
                }
            };
            if !fits {
                return false;
            }
        }
        // Stable: claims of one size in the order of the pod.
        open.sort_by_key(|(_, claim)| claim.size);
        let mut taken = BTreeSet::new();
        for (number, claim) in open {
            match self.choose(number, claim, node, &taken) {
                Some(volume) => drop(taken.insert(volume)),
                None if self.provides(claim, node) => {}
                None => return false,
            }
        }
        true
    }

    fn choose(&self, number: u8, claim: PlainClaim, node: u8, taken: &BTreeSet<u8>) -> Option<u8> {
        let owner = |volume: &u8| {
            let promised = self.bound.get(volume).map(|&(claim, _)| claim);
            promised.or(self.volumes[volume].claim)
        };
        let large = self
            .volumes
            .iter()
            .filter(|(_, row)| claim.size <= row.size && row.class == claim.class);
        let large: Vec<u8> = large.map(|(volume, _)| *volume).collect();
        let usable = |volume: &u8| self.reaches(*volume, node) && !taken.contains(volume);
        let mut meant: Vec<u8> =
            large.iter().copied().filter(|volume| owner(volume) == Some(number)).collect();
        meant.sort_by_key(|volume| (self.volumes[volume].size, *volume));
        if let Some(first) = meant.first() {
            return Some(*first).filter(|volume| usable(volume));
        }
        let free = large.into_iter().filter(|volume| owner(volume).is_none());
        free.filter(usable).min_by_key(|volume| (self.volumes[volume].size, *volume))
    }
}

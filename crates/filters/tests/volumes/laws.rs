//! Each filter against the rule evaluated from the objects alone, through random sequences of
//! events, tentative placements and their undoing.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use vc_filters::volume_binding::{pre_filter as binding, reserve};
use vc_filters::{Pod, node_volume_limits, volume_restrictions};
use vc_model::{
    Cluster, ClusterEvent, NodeId, ObjectKey, StorageKind, TaskId, TaskStatus, fixture,
};

use crate::support::{Rule, unchecked};

const N_NODES: u8 = 3;
const N_PODS: u8 = 5;
const N_CLAIMS: u8 = 4;
const N_VOLUMES: u8 = 4;

#[derive(Clone, Debug)]
enum Step {
    /// Claim, size, volume or none, exclusive, class.
    Claim(u8, u8, Option<u8>, bool, bool),
    /// Volume, size, claim or none, place or none, class.
    Volume(u8, u8, Option<u8>, Option<u8>, bool),
    Gone(bool, u8),
    Limit(u8, u8),
    Attach(u8, u8),
    Place(u8, u8),
    TakeBack(u8),
    Evict(u8),
}

fn steps() -> impl Strategy<Value = Step> {
    let claim =
        (0..N_CLAIMS, 1..4u8, proptest::option::of(0..N_VOLUMES), any::<bool>(), any::<bool>());
    let meant = proptest::option::weighted(0.3, 0..N_CLAIMS);
    let place = proptest::option::of(0..2 + N_NODES);
    let volume = (0..N_VOLUMES, 1..4u8, meant, place, any::<bool>());
    prop_oneof![
        5 => claim.prop_map(|(c, size, v, one, class)| Step::Claim(c, size, v, one, class)),
        5 => volume.prop_map(|(v, size, c, place, class)| Step::Volume(v, size, c, place, class)),
        1 => (any::<bool>(), 0..4u8).prop_map(|(volume, n)| Step::Gone(volume, n)),
        2 => (0..N_NODES, 0..3u8).prop_map(|(node, limit)| Step::Limit(node, limit)),
        1 => (0..N_VOLUMES, 0..N_NODES).prop_map(|(volume, node)| Step::Attach(volume, node)),
        6 => (0..N_PODS, 0..N_NODES).prop_map(|(pod, node)| Step::Place(pod, node)),
        2 => (0..N_PODS).prop_map(Step::TakeBack),
        1 => (0..N_PODS).prop_map(Step::Evict),
    ]
}

/// What the objects say, kept apart from the cluster.
#[derive(Clone, Debug, Default)]
struct Objects {
    claims: BTreeMap<u8, (u8, Option<u8>, bool, bool)>,
    volumes: BTreeMap<u8, (u8, Option<u8>, Option<u8>, bool)>,
    limits: BTreeMap<u8, u8>,
    attached: BTreeMap<u8, u8>,
    /// Pod to node; evicted ones are left out.
    placed: BTreeMap<u8, u8>,
    /// Volume to claim and pod, by what was promised.
    bound: BTreeMap<u8, (u8, u8)>,
    /// Claim to pod, likewise.
    provisioned: BTreeMap<u8, u8>,
}

/// Claims of a pod.
fn claims_of(pod: u8) -> Vec<u8> {
    [vec![0], vec![1], vec![0, 2], vec![3], vec![1, 2, 3]][usize::from(pod)].clone()
}

fn zone_of(node: u8) -> bool {
    node == 1
}

/// Two zones, then hosts.
fn at(place: u8) -> String {
    match place.checked_sub(2) {
        None => format!(" at.zone={}", place == 1),
        Some(host) => format!(" at.kubernetes.io/hostname=n{host}"),
    }
}

impl Objects {
    /// Names of the volumes of a pod, without those whose claim is missing.
    fn names(&self, pod: u8) -> BTreeSet<String> {
        let name = |claim: u8| {
            let &(_, volume, _, class) = self.claims.get(&claim)?;
            match volume.filter(|volume| self.volumes.contains_key(volume)) {
                Some(volume) => Some(format!("handle-v{volume}")),
                // The other class has no driver, and so no limit.
                None => class.then(|| format!("claim {claim}")),
            }
        };
        claims_of(pod).into_iter().filter_map(name).collect()
    }

    fn is_broken(&self, pod: u8) -> bool {
        claims_of(pod).iter().any(|claim| !self.claims.contains_key(claim))
    }

    fn exceeds(&self, pod: u8, node: u8) -> bool {
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

    fn is_in_use(&self, pod: u8) -> bool {
        let exclusive = |claim: &u8| self.claims.get(claim).is_some_and(|row| row.2);
        let mut wanted = claims_of(pod).into_iter().filter(exclusive);
        let others = || self.placed.keys().filter(|&&other| other != pod);
        wanted.any(|claim| others().any(|&other| claims_of(other).contains(&claim)))
    }

    fn reaches(&self, volume: u8, node: u8) -> bool {
        self.volumes[&volume].2.is_none_or(|place| match place.checked_sub(2) {
            None => (place == 1) == zone_of(node),
            Some(host) => host == node,
        })
    }

    /// Whether the volumes of a pod that does not refuse as a whole fit the node.
    fn fits(&self, pod: u8, node: u8) -> bool {
        let mut open = Vec::new();
        for claim in claims_of(pod) {
            let (size, volume, _, class) = self.claims[&claim];
            match (volume, self.provisioned.get(&claim)) {
                (Some(volume), _) => {
                    if !self.volumes.contains_key(&volume) || !self.reaches(volume, node) {
                        return false;
                    }
                }
                (None, Some(owner)) if self.placed.get(owner) != Some(&node) => return false,
                (None, Some(_)) => {}
                (None, None) => open.push((size, claim, class)),
            }
        }
        // Stable: claims of one size in the order of the pod.
        open.sort_by_key(|&(size, ..)| size);
        let mut taken = BTreeSet::new();
        for (size, claim, class) in open {
            match self.choose(claim, size, class, node, &taken) {
                Some(volume) => drop(taken.insert(volume)),
                None if class => {}
                None => return false,
            }
        }
        true
    }

    fn choose(
        &self,
        claim: u8,
        size: u8,
        class: bool,
        node: u8,
        taken: &BTreeSet<u8>,
    ) -> Option<u8> {
        let owner = |volume: &u8| {
            let promised = self.bound.get(volume).map(|&(claim, _)| claim);
            promised.or(self.volumes[volume].1)
        };
        let large = self.volumes.keys().copied().filter(|volume| {
            let row = self.volumes[volume];
            size <= row.0 && row.3 == class
        });
        let large: Vec<u8> = large.collect();
        let usable = |volume: &u8| self.reaches(*volume, node) && !taken.contains(volume);
        let mut meant: Vec<u8> =
            large.iter().copied().filter(|volume| owner(volume) == Some(claim)).collect();
        meant.sort_by_key(|volume| (self.volumes[volume].0, *volume));
        if let Some(first) = meant.first() {
            return Some(*first).filter(|volume| usable(volume));
        }
        let free = large.into_iter().filter(|volume| owner(volume).is_none());
        free.filter(usable).min_by_key(|volume| (self.volumes[volume].0, *volume))
    }
}

struct World {
    cluster: Cluster,
    objects: Objects,
}

impl World {
    fn new() -> Self {
        let mut text = "class s0 provisioner=kubernetes.io/no-provisioner delayed
                        class s1 provisioner=d delayed\n"
            .to_owned();
        for node in 0..N_NODES {
            text += &format!(
                "node n{node} cpu=9 zone={} label.kubernetes.io/hostname=n{node}\n",
                zone_of(node)
            );
        }
        for pod in 0..N_PODS {
            let claims: String =
                claims_of(pod).iter().map(|claim| format!(" pvc=c{claim}")).collect();
            text += &format!("job j{pod}\n  task p{claims}\n");
        }
        Self { cluster: fixture::cluster(&text), objects: Objects::default() }
    }

    fn task(&self, pod: u8) -> TaskId {
        fixture::task(&self.cluster, &format!("j{pod}/p"))
    }

    fn node(&self, node: u8) -> NodeId {
        fixture::node(&self.cluster, &format!("n{node}"))
    }

    fn apply(&mut self, text: &str) {
        fixture::apply(&mut self.cluster, text);
    }

    /// Objects of tasks that hold promises do not change here: the API server's view of them is
    /// the matter of `progress`.
    fn is_promised(&self, claim: Option<u8>, volume: Option<u8>) -> bool {
        let of_pods: BTreeSet<u8> = self.objects.placed.keys().copied().collect();
        let named =
            claim.is_some_and(|claim| of_pods.iter().any(|&pod| claims_of(pod).contains(&claim)));
        named || volume.is_some_and(|volume| self.objects.bound.contains_key(&volume))
    }

    fn take(&mut self, step: &Step) {
        let size = |size: u8| format!("{size}Gi");
        match *step {
            Step::Claim(claim, bytes, volume, one, class) => {
                if self.is_promised(Some(claim), None) {
                    return;
                }
                let mode = if one { "RWOP" } else { "RWO" };
                let mut text =
                    format!("pvc c{claim} {} class=s{} mode={mode}", size(bytes), u8::from(class));
                text += &volume.map(|volume| format!(" volume=v{volume}")).unwrap_or_default();
                self.objects.claims.insert(claim, (bytes, volume, one, class));
                self.apply(&text);
            }
            Step::Volume(volume, bytes, claim, place, class) => {
                if self.is_promised(None, Some(volume)) {
                    return;
                }
                let class_name = u8::from(class);
                let mut text = format!(
                    "pv v{volume} {} class=s{class_name} driver=d mode=RWO,RWOP",
                    size(bytes)
                );
                text += &claim.map(|claim| format!(" claim=c{claim}")).unwrap_or_default();
                text += &place.map(at).unwrap_or_default();
                self.objects.volumes.insert(volume, (bytes, claim, place, class));
                self.apply(&text);
            }
            Step::Gone(is_volume, n) => self.remove(is_volume, n),
            Step::Limit(node, limit) => {
                self.objects.limits.insert(node, limit);
                self.apply(&format!("csinode n{node} d={limit}"));
            }
            Step::Attach(volume, node) => {
                self.objects.attached.insert(volume, node);
                self.apply(&format!("attachment a{volume} d node=n{node} volume=v{volume}"));
            }
            Step::Place(pod, node) => self.place(pod, node),
            Step::TakeBack(pod) => self.take_back(pod),
            Step::Evict(pod) => self.evict_and_back(pod),
        }
    }

    fn remove(&mut self, is_volume: bool, n: u8) {
        let (claim, volume) = if is_volume { (None, Some(n)) } else { (Some(n), None) };
        if self.is_promised(claim, volume) {
            return;
        }
        let (kind, namespace, prefix) = match is_volume {
            true => (StorageKind::Volume, "", "v"),
            false => (StorageKind::Claim, "default", "c"),
        };
        let key = ObjectKey::new(namespace, &format!("{prefix}{n}"));
        self.cluster.apply(ClusterEvent::StorageDeleted { kind, key });
        match is_volume {
            true => drop(self.objects.volumes.remove(&n)),
            false => drop(self.objects.claims.remove(&n)),
        }
    }

    fn place(&mut self, pod: u8, node: u8) {
        let (task, on) = (self.task(pod), self.node(node));
        if self.objects.placed.contains_key(&pod) {
            return;
        }
        let Ok(promise) = reserve(Pod::new(&self.cluster, task), on) else { return };
        self.cluster.set_task(task, TaskStatus::Allocated, Some(on));
        self.objects.placed.insert(pod, node);
        let Some(promise) = promise else { return };
        let number = |name: &str| name[1..].parse::<u8>().expect("a number");
        for (claim, volume) in &promise.bindings {
            let before = (number(&claim.key.name), pod);
            let twice = self.objects.bound.insert(number(volume), before);
            assert_eq!(twice, None, "a volume is promised once");
        }
        for claim in &promise.provisions {
            let twice = self.objects.provisioned.insert(number(&claim.key.name), pod);
            assert_eq!(twice, None, "a claim is provisioned once");
        }
        self.cluster.reserve(task, promise);
    }

    fn take_back(&mut self, pod: u8) {
        if self.objects.placed.remove(&pod).is_some() {
            let task = self.task(pod);
            self.cluster.set_task(task, TaskStatus::Pending, None);
            self.objects.bound.retain(|_, &mut (_, owner)| owner != pod);
            self.objects.provisioned.retain(|_, &mut owner| owner != pod);
        }
    }

    /// An eviction that is taken back leaves everything as it was.
    fn evict_and_back(&mut self, pod: u8) {
        let task = self.task(pod);
        if let Some(&node) = self.objects.placed.get(&pod) {
            let before = self.cluster.nodes[self.node(node)].clone();
            self.cluster.evict_task(task);
            assert_eq!(self.cluster.check(), Ok(()));
            self.cluster.unevict_task(task, TaskStatus::Allocated);
            assert_eq!(self.cluster.nodes[self.node(node)], before);
        }
    }

    fn says(&self, rule: Rule, pod: u8, node: u8) -> Result<(), String> {
        let answer = unchecked(&self.cluster, rule, &format!("j{pod}/p"), &format!("n{node}"));
        answer.map_err(|(_, text)| text)
    }

    fn compare(&self) {
        assert_eq!(self.cluster.check(), Ok(()));
        let unplaced = (0..N_PODS).filter(|pod| !self.objects.placed.contains_key(pod));
        for (pod, node) in unplaced.flat_map(|pod| (0..N_NODES).map(move |node| (pod, node))) {
            let broken = self.objects.is_broken(pod);
            let limited = self.says(node_volume_limits::pre_filter, pod, node);
            assert_eq!(limited.is_err(), broken || self.objects.exceeds(pod, node), "{limited:?}");
            let used = self.says(volume_restrictions::pre_filter, pod, node);
            assert_eq!(used.is_err(), broken || self.objects.is_in_use(pod), "{used:?}");
            let bound = self.says(binding, pod, node);
            assert_eq!(bound.is_ok(), !broken && self.objects.fits(pod, node), "{bound:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn filters_say_what_the_objects_say(steps in vec(steps(), 1..50)) {
        let mut world = World::new();
        for step in steps {
            world.take(&step);
            world.compare();
        }
        let before = World::new();
        (0..N_PODS).for_each(|pod| world.take_back(pod));
        let volumes = &world.cluster.volumes;
        prop_assert!(volumes.reservations().next().is_none());
        for node in 0..N_NODES {
            let id = world.node(node);
            prop_assert_eq!(&world.cluster.nodes[id].volumes, &before.cluster.nodes[id].volumes);
        }
    }
}

//! Each filter against the rule evaluated from the objects alone, through random sequences of
//! events, tentative placements and their undoing.

use proptest::collection::vec;
use proptest::prelude::*;
use vc_filters::volume_binding::{pre_filter as binding, reserve};
use vc_filters::{Pod, node_volume_limits, volume_restrictions};
use vc_model::{
    Cluster, ClusterEvent, NodeId, ObjectKey, StorageKind, TaskId, TaskStatus, fixture,
};

use crate::plain::{Objects, PlainClaim, PlainVolume, at, claims_of};
use crate::support::{Rule, unchecked};

const N_NODES: u8 = 3;
const N_PODS: u8 = 5;
const N_CLAIMS: u8 = 4;
const N_VOLUMES: u8 = 4;

#[derive(Clone, Debug)]
enum VolumeStep {
    Claim(u8, PlainClaim),
    Volume(u8, PlainVolume),
    /// Node, whether it is in the second zone.
    Zone(u8, bool),
    Class(bool),
    /// Whether it tells how much room there is.
    Driver(bool),
    /// Row, room and place.
    Capacity(u8, u8, u8),
    Limit(u8, u8),
    Attach(u8, u8),
    /// An object is deleted, whether it is there or not.
    Gone(StorageKind, u8),
    Place(u8, u8),
    TakeBack(u8),
    Evict(u8),
}

fn a_claim() -> impl Strategy<Value = PlainClaim> {
    let volume = proptest::option::of(0..N_VOLUMES);
    let fields = (1..4u8, volume, any::<bool>(), any::<bool>());
    fields.prop_map(|(size, volume, exclusive, class)| PlainClaim {
        size,
        volume,
        exclusive,
        class,
    })
}

fn a_volume() -> impl Strategy<Value = PlainVolume> {
    let claim = proptest::option::weighted(0.3, 0..N_CLAIMS);
    let place = proptest::option::of(0..2 + N_NODES);
    let fields = (1..4u8, claim, place, any::<bool>());
    fields.prop_map(|(size, claim, place, class)| PlainVolume { size, claim, place, class })
}

fn a_kind() -> impl Strategy<Value = StorageKind> {
    prop_oneof![
        3 => Just(StorageKind::Volume),
        3 => Just(StorageKind::Claim),
        2 => Just(StorageKind::Class),
        2 => Just(StorageKind::CsiNode),
        1 => Just(StorageKind::CsiDriver),
        2 => Just(StorageKind::Capacity),
        1 => Just(StorageKind::Attachment),
    ]
}

fn steps() -> impl Strategy<Value = VolumeStep> {
    prop_oneof![
        5 => (0..N_CLAIMS, a_claim()).prop_map(|(n, claim)| VolumeStep::Claim(n, claim)),
        5 => (0..N_VOLUMES, a_volume()).prop_map(|(n, volume)| VolumeStep::Volume(n, volume)),
        3 => (a_kind(), 0..4u8).prop_map(|(kind, n)| VolumeStep::Gone(kind, n)),
        1 => (0..N_NODES, any::<bool>()).prop_map(|(node, second)| VolumeStep::Zone(node, second)),
        2 => any::<bool>().prop_map(VolumeStep::Class),
        1 => any::<bool>().prop_map(VolumeStep::Driver),
        2 => (0..3u8, 1..4u8, 0..2 + N_NODES)
            .prop_map(|(row, room, place)| VolumeStep::Capacity(row, room, place)),
        2 => (0..N_NODES, 0..3u8).prop_map(|(node, limit)| VolumeStep::Limit(node, limit)),
        1 => (0..N_VOLUMES, 0..N_NODES).prop_map(|(volume, node)| VolumeStep::Attach(volume, node)),
        6 => (0..N_PODS, 0..N_NODES).prop_map(|(pod, node)| VolumeStep::Place(pod, node)),
        2 => (0..N_PODS).prop_map(VolumeStep::TakeBack),
        1 => (0..N_PODS).prop_map(VolumeStep::Evict),
    ]
}

struct VolumeWorld {
    cluster: Cluster,
    objects: Objects,
}

impl VolumeWorld {
    fn new() -> Self {
        let mut text = String::new();
        for pod in 0..N_PODS {
            let claims: String =
                claims_of(pod).iter().map(|claim| format!(" pvc=c{claim}")).collect();
            text += &format!("job j{pod}\n  task p{claims}\n");
        }
        let mut world = Self { cluster: fixture::cluster(&text), objects: Objects::default() };
        [false, true].into_iter().for_each(|class| world.take(&VolumeStep::Class(class)));
        (0..N_NODES).for_each(|node| world.take(&VolumeStep::Zone(node, node == 1)));
        world
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

    fn take(&mut self, step: &VolumeStep) {
        match *step {
            VolumeStep::Claim(n, claim) => self.put_claim(n, claim),
            VolumeStep::Volume(n, volume) => self.put_volume(n, volume),
            VolumeStep::Zone(node, second) => {
                self.objects.second_zone.remove(&node);
                self.objects.second_zone.extend(second.then_some(node));
                let host = format!("label.kubernetes.io/hostname=n{node}");
                self.apply(&format!("node n{node} cpu=9 zone={second} {host}"));
            }
            VolumeStep::Class(class) => {
                self.objects.classes.insert(class);
                let provisioner = if class { "d" } else { "kubernetes.io/no-provisioner" };
                let name = u8::from(class);
                self.apply(&format!("class s{name} provisioner={provisioner} delayed"));
            }
            VolumeStep::Driver(tells_room) => {
                self.objects.tells_room = tells_room;
                self.apply(if tells_room { "csidriver d capacity" } else { "csidriver d" });
            }
            VolumeStep::Capacity(row, room, place) => {
                self.objects.capacities.insert(row, (room, place));
                self.apply(&format!("capacity k{row} {room}Gi class=s1{}", at(place)));
            }
            VolumeStep::Limit(node, limit) => {
                self.objects.limits.insert(node, limit);
                self.apply(&format!("csinode n{node} d={limit}"));
            }
            VolumeStep::Attach(volume, node) => {
                self.objects.attached.insert(volume, node);
                self.apply(&format!("attachment a{volume} d node=n{node} volume=v{volume}"));
            }
            VolumeStep::Gone(kind, n) => self.remove(kind, n),
            VolumeStep::Place(pod, node) => self.place(pod, node),
            VolumeStep::TakeBack(pod) => self.take_back(pod),
            VolumeStep::Evict(pod) => self.evict_and_back(pod),
        }
    }

    fn put_claim(&mut self, n: u8, claim: PlainClaim) {
        let PlainClaim { size, volume, exclusive, class } = claim;
        let mode = if exclusive { "RWOP" } else { "RWO" };
        let volume = volume.map(|volume| format!(" volume=v{volume}")).unwrap_or_default();
        self.objects.claims.insert(n, claim);
        self.apply(&format!("pvc c{n} {size}Gi class=s{} mode={mode}{volume}", u8::from(class)));
    }

    fn put_volume(&mut self, n: u8, volume: PlainVolume) {
        let PlainVolume { size, claim, place, class } = volume;
        let claim = claim.map(|claim| format!(" claim=c{claim}")).unwrap_or_default();
        let place = place.map(at).unwrap_or_default();
        self.objects.volumes.insert(n, volume);
        let class = u8::from(class);
        let fields = format!("{size}Gi class=s{class} driver=d mode=RWO,RWOP{claim}{place}");
        self.apply(&format!("pv v{n} {fields}"));
    }

    fn remove(&mut self, kind: StorageKind, n: u8) {
        let objects = &mut self.objects;
        let (namespace, prefix) = match kind {
            StorageKind::Volume => ("", "v"),
            StorageKind::Claim => ("default", "c"),
            StorageKind::Class => ("", "s"),
            StorageKind::CsiNode => ("", "n"),
            StorageKind::CsiDriver => ("", "d"),
            StorageKind::Capacity => ("default", "k"),
            StorageKind::Attachment => ("", "a"),
        };
        match kind {
            StorageKind::Volume => drop(objects.volumes.remove(&n)),
            StorageKind::Claim => drop(objects.claims.remove(&n)),
            StorageKind::Class => objects.classes.retain(|&class| u8::from(class) != n),
            StorageKind::CsiNode => drop(objects.limits.remove(&n)),
            StorageKind::CsiDriver => objects.tells_room = false,
            StorageKind::Capacity => drop(objects.capacities.remove(&n)),
            StorageKind::Attachment => drop(objects.attached.remove(&n)),
        }
        let number = if kind == StorageKind::CsiDriver { String::new() } else { n.to_string() };
        let key = ObjectKey::new(namespace, &format!("{prefix}{number}"));
        self.cluster.apply(ClusterEvent::StorageDeleted { kind, key });
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
        let awaited = promise.awaited.iter().map(|claim| (pod, number(&claim.key.name)));
        self.objects.awaited.extend(awaited);
        self.cluster.reserve(task, promise);
    }

    fn take_back(&mut self, pod: u8) {
        if self.objects.placed.contains_key(&pod) {
            let task = self.task(pod);
            self.cluster.set_task(task, TaskStatus::Pending, None);
            self.objects.take_back(pod);
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
        let mut world = VolumeWorld::new();
        for step in steps {
            world.take(&step);
            world.compare();
        }
        let before = VolumeWorld::new();
        (0..N_PODS).for_each(|pod| world.take_back(pod));
        let volumes = &world.cluster.volumes;
        prop_assert!(volumes.reservations().next().is_none());
        for node in 0..N_NODES {
            let id = world.node(node);
            prop_assert_eq!(&world.cluster.nodes[id].volumes, &before.cluster.nodes[id].volumes);
        }
    }
}

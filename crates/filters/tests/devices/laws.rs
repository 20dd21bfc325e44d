//! Whether a pod gets its devices on a node, against a search through everything that could be
//! given to it, after every step of random histories: claims, classes and slices come, change and
//! go, also while something is promised; tasks are placed and taken back. Specification:
//! plugins-nodes.md 6.3-6.5.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use vc_model::{
    Allocation, AllocationMode, Attribute, ClusterEvent, DeviceConstraint, DeviceId, DeviceKind,
    DeviceResult, ExactRequest, NodeSelectorTerm, ObjectKey, Operator, RequestKind, Requirement,
    ResourceClaim, ResourceSlice, SliceNodes,
};

use crate::support::{DRIVER, DeviceFixture, claim, class, device, slice_of};

const NODES: [&str; 2] = ["n1", "n2"];
/// Job, name and claims of the pods.
const PODS: [(&str, &str, &[&str]); 5] = [
    ("j", "p0", &["c0"]),
    ("j", "p1", &["c0", "c1"]),
    ("k", "p2", &["c0"]),
    ("k", "p3", &["c1", "c2"]),
    ("k", "p4", &["c2"]),
];
const CLAIMS: [&str; 3] = ["c0", "c1", "c2"];

/// A device as the test thinks of it: pool and number; its attribute is whether that is odd.
type Dev = (String, u8);

#[derive(Clone, Debug)]
struct WantedDevices {
    /// `None`: all devices.
    count: Option<u8>,
    admin: bool,
}

#[derive(Clone, Debug)]
struct RandomClaim {
    /// One, or the alternatives of the only request, best first.
    requests: Vec<WantedDevices>,
    first_available: bool,
    /// All devices have the same value of the attribute.
    alike: bool,
    /// What the API server says it has: pool, device, whether it is for the node of the pool alone.
    has: Option<(u8, u8, bool)>,
}

#[derive(Clone, Debug)]
enum DeviceStep {
    Claim(u8, RandomClaim),
    NoClaim(u8),
    /// Node or both (2), generation, slices that the pool says it has, devices.
    Slice(u8, u8, u8, Vec<u8>),
    NoSlice(u8),
    Class(bool),
    Place(u8, u8),
    TakeBack(u8),
}

fn a_claim() -> impl Strategy<Value = RandomClaim> {
    let wanted = (proptest::option::weighted(0.8, 1..3u8), prop::bool::weighted(0.15))
        .prop_map(|(count, admin)| WantedDevices { count, admin });
    let has = proptest::option::weighted(0.25, (0..3u8, 0..4u8, any::<bool>()));
    (vec(wanted, 1..3), any::<bool>(), prop::bool::weighted(0.3), has).prop_map(
        |(requests, first_available, alike, has)| {
            // `All` with a constraint is an error of its own.
            let alike = alike && requests.iter().all(|wanted| wanted.count.is_some());
            RandomClaim { requests, first_available, alike, has }
        },
    )
}

fn a_step() -> impl Strategy<Value = DeviceStep> {
    let numbers = vec(0..4u8, 0..4);
    prop_oneof![
        5 => (0..3u8, a_claim()).prop_map(|(name, claim)| DeviceStep::Claim(name, claim)),
        1 => (0..3u8).prop_map(DeviceStep::NoClaim),
        4 => (0..3u8, 1..3u8, 1..3u8, numbers).prop_map(|(node, generation, n_slices, devices)| {
            DeviceStep::Slice(node, generation, n_slices.min(1 + generation % 2), devices)
        }),
        1 => (0..3u8).prop_map(DeviceStep::NoSlice),
        1 => prop::bool::weighted(0.8).prop_map(DeviceStep::Class),
        6 => (0..5u8, 0..2u8).prop_map(|(pod, node)| DeviceStep::Place(pod, node)),
        3 => (0..5u8).prop_map(DeviceStep::TakeBack),
    ]
}

fn pool(node: u8) -> String {
    ["n1", "n2", "all"][usize::from(node)].to_owned()
}

fn id((pool, number): &Dev) -> DeviceId {
    let device = format!("d{number}").into();
    DeviceId { driver: DRIVER.into(), pool: pool.as_str().into(), device }
}

fn on(node: &str) -> NodeSelectorTerm {
    let name = Requirement {
        key: "metadata.name".into(),
        operator: Operator::In,
        values: vec![node.into()],
    };
    NodeSelectorTerm { match_fields: vec![name], ..NodeSelectorTerm::default() }
}

impl RandomClaim {
    fn record(&self, name: &str) -> ResourceClaim {
        let exact = |wanted: &WantedDevices| ExactRequest {
            class: "gpu".into(),
            mode: match wanted.count {
                Some(count) => AllocationMode::Count(count.into()),
                None => AllocationMode::All,
            },
            admin_access: wanted.admin,
            ..ExactRequest::default()
        };
        let names = ["a", "b"];
        let requests: Vec<(&str, RequestKind)> = match self.first_available {
            true => {
                let all = names.iter().zip(&self.requests);
                let all = all.map(|(name, wanted)| ((*name).into(), exact(wanted))).collect();
                vec![("r", RequestKind::FirstAvailable(all))]
            }
            false => {
                let all = names.into_iter().zip(&self.requests);
                all.map(|(name, wanted)| (name, RequestKind::Exactly(exact(wanted)))).collect()
            }
        };
        let mut record = claim(name, requests);
        let same = DeviceConstraint { requests: vec![], match_attribute: Some("gpu/odd".into()) };
        record.constraints.extend(self.alike.then_some(same));
        record.allocation = self.has.map(|(node, number, local)| {
            let result = DeviceResult {
                request: "a".into(),
                device: id(&(pool(node), number)),
                ..DeviceResult::default()
            };
            let node_selector = local.then(|| vec![on(&pool(node))]);
            Arc::new(Allocation { results: vec![result], node_selector, ..Allocation::default() })
        });
        record
    }
}

fn a_slice(node: u8, generation: u8, n_slices: u8, devices: &[u8]) -> ResourceSlice {
    let odd = |number: u8| [("gpu/odd", Attribute::Bool(number % 2 == 1))];
    let made = devices.iter().map(|&number| device(&format!("d{number}"), &odd(number)));
    let mut slice = slice_of(&pool(node), made.collect());
    slice.generation = generation.into();
    slice.n_slices = n_slices.into();
    if node == 2 {
        slice.nodes = SliceNodes::All;
    }
    slice
}

/// The pods that rely on it, the devices (those of admin access are left out), and the node that
/// they are for, if for one alone.
type PromisedDevices = (BTreeSet<u8>, Vec<Dev>, Option<u8>);

struct DeviceWorld {
    bed: DeviceFixture,
    has_class: bool,
    claims: BTreeMap<u8, RandomClaim>,
    /// Slices that the pool says it has, and the devices.
    slices: BTreeMap<u8, (u8, Vec<u8>)>,
    /// Placed pods.
    placed: BTreeMap<u8, u8>,
    /// By claim.
    promised: BTreeMap<u8, PromisedDevices>,
}

impl DeviceWorld {
    fn new() -> Self {
        let mut bed = DeviceFixture::new();
        for (job, name, claims) in PODS {
            bed.pod_of(job, name, claims);
        }
        let (claims, slices, placed, promised) = Default::default();
        Self { bed, has_class: true, claims, slices, placed, promised }
    }

    fn delete(&mut self, kind: DeviceKind, namespace: &str, name: &str) {
        let key = ObjectKey::new(namespace, name);
        self.bed.cluster.apply(ClusterEvent::DeviceDeleted { kind, key });
        assert_eq!(self.bed.cluster.check(), Ok(()));
    }

    fn take(&mut self, step: &DeviceStep) {
        match step {
            DeviceStep::Claim(name, claim) => {
                self.bed.claim(claim.record(CLAIMS[usize::from(*name)]));
                self.claims.insert(*name, claim.clone());
            }
            DeviceStep::NoClaim(name) => {
                self.claims.remove(name);
                self.delete(DeviceKind::Claim, "default", CLAIMS[usize::from(*name)]);
            }
            DeviceStep::Slice(node, generation, n_slices, devices) => {
                self.bed.slice(a_slice(*node, *generation, *n_slices, devices));
                self.slices.insert(*node, (*n_slices, devices.clone()));
            }
            DeviceStep::NoSlice(node) => {
                self.slices.remove(node);
                self.delete(DeviceKind::Slice, "", &format!("slice-{}", pool(*node)));
            }
            DeviceStep::Class(true) => {
                self.has_class = true;
                self.bed.put(vc_model::DeviceObject::Class(class("gpu")));
            }
            DeviceStep::Class(false) => {
                self.has_class = false;
                self.delete(DeviceKind::Class, "", "gpu");
            }
            DeviceStep::Place(pod, node) => self.place(*pod, *node),
            DeviceStep::TakeBack(pod) => self.take_back(*pod),
        }
    }

    fn place(&mut self, pod: u8, node: u8) {
        let (_, name, claims) = PODS[usize::from(pod)];
        let on = NODES[usize::from(node)];
        if self.placed.contains_key(&pod) || self.bed.ask(name, on).is_err() {
            return;
        }
        let promises = self.bed.promise(name, on).expect("it fits");
        for (claim, promise) in claims.iter().zip(promises) {
            let Some(allocation) = promise.allocation else { continue };
            let number = CLAIMS.iter().position(|name| name == claim).expect("a claim") as u8;
            let taken = allocation.results.iter().filter(|result| !result.admin_access);
            let devices = taken.map(|result| {
                let number = result.device.device[1..].parse().expect("a number");
                (result.device.pool.to_string(), number)
            });
            let devices: Vec<Dev> = devices.collect();
            let local = allocation.node_selector.as_ref().map(|_| node);
            let first = (BTreeSet::new(), devices.clone(), local);
            let (pods, chosen, _) = self.promised.entry(number).or_insert(first);
            assert_eq!(*chosen, devices, "devices are chosen once");
            pods.insert(pod);
        }
        self.bed.place(name, on);
        self.placed.insert(pod, node);
    }

    fn take_back(&mut self, pod: u8) {
        if self.placed.remove(&pod).is_some() {
            self.bed.undo(PODS[usize::from(pod)].1);
            self.promised.retain(|_, (pods, ..)| {
                pods.remove(&pod);
                !pods.is_empty()
            });
        }
    }

    fn taken(&self) -> BTreeSet<Dev> {
        let stored = self.claims.values().filter_map(|claim| claim.has);
        let stored = stored.map(|(node, number, _)| (pool(node), number));
        // What is stored takes the place of what was promised.
        let is_open = |name: &u8| self.claims.get(name).is_none_or(|claim| claim.has.is_none());
        let promised = self.promised.iter().filter(|(name, _)| is_open(name));
        let promised = promised.flat_map(|(_, (_, devices, _))| devices.clone());
        stored.chain(promised).collect()
    }

    /// Devices of usable pools, and whether there is a pool that is not usable.
    fn candidates(&self, node: u8) -> (Vec<Dev>, bool) {
        let here = self.slices.iter().filter(|&(&of, _)| of == node || of == 2);
        let (mut devices, mut any_broken) = (Vec::new(), false);
        for (&of, (n_slices, numbers)) in here {
            let distinct: BTreeSet<u8> = numbers.iter().copied().collect();
            match *n_slices == 1 && distinct.len() == numbers.len() {
                true => devices.extend(numbers.iter().map(|&number| (pool(of), number))),
                false => any_broken = true,
            }
        }
        devices.sort_by(|left: &Dev, right: &Dev| left.0.cmp(&right.0));
        (devices, any_broken)
    }

    /// Whether the pod fits: every way to serve its open claims is tried.
    fn fits(&self, pod: u8, node: u8) -> bool {
        let (job, _, claims) = PODS[usize::from(pod)];
        let mut open = Vec::new();
        for name in claims {
            let number = CLAIMS.iter().position(|one| one == name).expect("a claim") as u8;
            let Some(claim) = self.claims.get(&number) else { return false };
            let pinned = match (claim.has, self.promised.get(&number)) {
                (Some((of, _, local)), _) => local.then_some(of),
                (None, Some((pods, ..)))
                    if pods.iter().any(|&of| PODS[usize::from(of)].0 != job) =>
                {
                    return false;
                }
                (None, Some((.., local))) => *local,
                (None, None) => {
                    open.push(claim);
                    None
                }
            };
            if pinned.is_some_and(|only| only != node) {
                return false;
            }
        }
        if open.is_empty() {
            return true;
        }
        if !self.has_class {
            return false;
        }
        let (candidates, any_broken) = self.candidates(node);
        let of = DeviceOptions { taken: self.taken(), all: candidates, any_broken };
        of.claim(&open, 0, &mut Vec::new()) == Ok(true)
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        for pod in (0..5u8).filter(|pod| !self.placed.contains_key(pod)) {
            for node in 0..2u8 {
                let name = PODS[usize::from(pod)].1;
                let answer = self.bed.ask(name, NODES[usize::from(node)]);
                let fits = self.fits(pod, node);
                prop_assert_eq!(answer.is_ok(), fits, "{} on {}: {:?}", name, node, answer);
            }
        }
        Ok(())
    }
}

struct DeviceOptions {
    taken: BTreeSet<Dev>,
    all: Vec<Dev>,
    any_broken: bool,
}

/// A device that was given: to which claim, and for admin access.
type Given = (usize, usize, bool);

/// Whether there is a way; the search ends with an error.
type Served = Result<bool, ()>;

/// The first of these that serves, or an error before it.
fn first(ways: impl Iterator<Item = Served>) -> Served {
    for served in ways {
        if served? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl DeviceOptions {
    fn claim(&self, open: &[&RandomClaim], at: usize, given: &mut Vec<Given>) -> Served {
        let Some(claim) = open.get(at) else { return Ok(true) };
        match claim.first_available {
            true => first(
                claim
                    .requests
                    .iter()
                    .map(|wanted| self.requests(open, at, std::slice::from_ref(wanted), given)),
            ),
            false => self.requests(open, at, &claim.requests, given),
        }
    }

    /// Every set of devices for the first request, then the others.
    fn requests(
        &self,
        open: &[&RandomClaim],
        at: usize,
        rest: &[WantedDevices],
        given: &mut Vec<Given>,
    ) -> Served {
        let Some((wanted, rest)) = rest.split_first() else {
            return self.claim(open, at + 1, given);
        };
        if wanted.count.is_none() && self.any_broken {
            return Err(());
        }
        first(self.sets(wanted).into_iter().map(|chosen| {
            if !chosen.iter().all(|&n| self.may_give(at, wanted, n, given)) {
                return Ok(false);
            }
            let before = given.len();
            given.extend(chosen.iter().map(|&n| (at, n, wanted.admin)));
            let served = match self.is_alike(open[at], at, given) {
                true => self.requests(open, at, rest, given),
                false => Ok(false),
            };
            given.truncate(before);
            served
        }))
    }

    /// Of as many devices as are wanted, in the order of their positions.
    fn sets(&self, wanted: &WantedDevices) -> Vec<Vec<usize>> {
        let n_devices = self.all.len();
        let positions = |set: usize| (0..n_devices).filter(move |n| set >> n & 1 == 1).collect();
        let n_wanted = wanted.count.map_or(n_devices.max(1), usize::from);
        let sets = (0..1usize << n_devices).map(positions);
        let mut sets: Vec<Vec<usize>> =
            sets.filter(|set: &Vec<usize>| set.len() == n_wanted).collect();
        sets.sort();
        sets
    }

    fn may_give(&self, at: usize, wanted: &WantedDevices, n: usize, given: &[Given]) -> bool {
        let mut same = given.iter().filter(|(_, other, _)| *other == n);
        match wanted.admin {
            true => same.all(|(claim, ..)| *claim != at),
            false => !self.taken.contains(&self.all[n]) && same.all(|(.., admin)| *admin),
        }
    }

    fn is_alike(&self, claim: &RandomClaim, at: usize, given: &[Given]) -> bool {
        let odd = given.iter().filter(|(of, ..)| *of == at).map(|(_, n, _)| self.all[*n].1 % 2);
        !claim.alike || odd.collect::<BTreeSet<_>>().len() <= 1
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn devices_are_found_if_there_are_any(steps in vec(a_step(), 1..40)) {
        let mut world = DeviceWorld::new();
        for step in &steps {
            world.take(step);
            world.compare()?;
        }
        (0..5u8).for_each(|pod| world.take_back(pod));
        for name in CLAIMS {
            let key = ObjectKey::new("default", name);
            prop_assert!(world.bed.cluster.devices.in_flight(&key).is_none(), "left over: {}", name);
        }
        world.compare()?;
    }
}

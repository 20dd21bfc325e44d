//! vGPUs of HAMi: containers share GPUs by memory, cores and number. Specification: plugins-nodes.md
//! 16.5.

mod mig;
mod queue_amounts;
mod register;
mod request;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::DeviceUse;
use vc_model::{Code, ContainerDemand, DeviceDemand, JobId, Labels, Node};
use vc_resource::Resource;

use super::assigned::{self, Assigned};
use super::exclusive::{self, ExclusiveRules};
use super::family::{
    Annotation, Choice, DeviceFamily, DeviceNode, DevicePart, DevicePolicy, NodeProblem, Query,
    Refusal,
};
use super::locks;
use mig::GpuInstances;
pub(super) use mig::{MigGeometry, MigGroup, MigInstance};
use register::{Mode, VgpuCard};
use request::{AllowedCards, Request};

const REGISTER: &str = "volcano.sh/node-vgpu-register";
const ASSIGNED: &str = "volcano.sh/vgpu-ids-new";
/// Begins every reason, as in Volcano; what follows says more than Volcano does.
const REASON: &str = "hami-vgpuDeviceSharing error";
/// Name of the vendor in entries of annotations.
const VENDOR: &str = "NVIDIA";
const MICROS_PER_SECOND: i64 = 1_000_000;
const WHOLE: i64 = 100;

/// The kind of devices that `deviceshare.VGPUEnable` switches on.
pub(super) struct Vgpu {
    pub(super) config: VgpuConfig,
    pub(super) policy: DevicePolicy,
    /// Rules for pods that do not share cards with each other.
    pub(super) rules: ExclusiveRules,
}

/// Names of the resources of vGPUs, and how GPUs are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VgpuConfig {
    pub(super) number: String,
    pub(super) memory: String,
    pub(super) cores: String,
    /// The resource of memory in percent. Empty if there is none.
    pub(super) percentage: String,
    /// A unit of memory of a GPU in mode `mig` is so many MiB.
    pub(super) memory_factor: i64,
    pub(super) geometries: Vec<MigGeometry>,
}

impl Default for VgpuConfig {
    fn default() -> Self {
        Self {
            number: "volcano.sh/vgpu-number".to_owned(),
            memory: "volcano.sh/vgpu-memory".to_owned(),
            cores: "volcano.sh/vgpu-cores".to_owned(),
            percentage: String::new(),
            memory_factor: 1,
            geometries: mig::known_geometries(),
        }
    }
}

/// A card with the share of it that is in use.
struct UsedCard<'a> {
    index: usize,
    card: VgpuCard<'a>,
    /// Number of containers that have a share.
    n_users: i64,
    memory: i64,
    cores: i64,
    /// PodGroups of the pods that have memory or cores of it.
    groups: BTreeSet<&'a str>,
    /// True if a pod uses it that matches a rule of the pod in question.
    has_rival: bool,
    /// Its instances. `None` if it is not in mode `mig`.
    instances: Option<GpuInstances<'a>>,
}

impl<'a> UsedCard<'a> {
    /// Counts the share of a container of a pod of this PodGroup.
    fn add(&mut self, share: Assigned<'a>, group: Option<&'a str>, is_rival: bool) {
        self.n_users += 1;
        self.has_rival |= is_rival;
        self.memory = self.memory.saturating_add(share.memory);
        self.cores = self.cores.saturating_add(share.cores);
        if 0 < share.memory || 0 < share.cores {
            self.groups.extend(group);
        }
        if let Some((instances, slot)) = self.instances.as_mut().zip(share.slot) {
            instances.occupy(slot);
        }
    }

    /// True if a container with this request can get a share of the card.
    fn fits(&self, request: &Request, allowed: &AllowedCards<'_>, group: Option<&str>) -> bool {
        let Self { card, n_users, memory, cores, groups, has_rival, instances, .. } = self;
        let has_mode = allowed.mode.is_none_or(|mode| mode == card.mode.as_str());
        let needed = request.memory_of(card);
        card.is_healthy
            && has_mode
            && allowed.has_uuid(card)
            && *n_users < card.most_users
            && !(*has_rival && card.mode == Mode::HamiCore)
            && group.is_none_or(|group| !groups.contains(group))
            && needed <= card.memory.saturating_sub(*memory)
            && cores.saturating_add(request.cores) <= WHOLE
            && !(request.is_exclusive() && 0 < *n_users)
            && !(*cores == WHOLE && request.cores == 0)
            && allowed.has_model(card)
            && instances.as_ref().is_none_or(|instances| instances.find(needed).is_some())
    }

    /// Gives a container its share. A card in mode `mig` gives an instance.
    fn take(&mut self, request: &Request) -> DevicePart {
        let mut memory = request.memory_of(&self.card);
        let mut device = self.card.uuid.to_owned();
        if let Some(instances) = &mut self.instances
            && let Some((slot, slot_memory)) = instances.find(memory)
        {
            instances.occupy(slot);
            device.push_str(&format!("[{}-{}]", slot.0, slot.1));
            memory = slot_memory;
        }
        self.n_users += 1;
        self.memory += memory;
        self.cores += request.cores;
        DevicePart { device, memory, cores: request.cores }
    }
}

impl Vgpu {
    fn request(&self, container: &ContainerDemand) -> Option<Request> {
        Request::of(container, &self.config)
    }

    /// Returns the instances of a card in mode `mig`. Returns `None` if it is in another mode, or no
    /// geometry is for its model.
    fn instances(&self, card: &VgpuCard<'_>) -> Option<GpuInstances<'_>> {
        let VgpuConfig { geometries, memory_factor, .. } = &self.config;
        (card.mode == Mode::Mig)
            .then(|| GpuInstances::of(geometries, card.model, *memory_factor))
            .flatten()
    }

    /// Returns the cards of the node with their use, by index. `rules` are the rules that the pod
    /// matches. Returns `None` if the node has no cards that pods can share.
    fn cards<'a>(&'a self, at: DeviceNode<'a>, rules: &[&Labels]) -> Option<Vec<UsedCard<'a>>> {
        let node = at.node();
        let offers = |name: &&String| {
            at.cluster.dims.get(name).is_some_and(|dim| 0 < node.allocatable.get(dim))
        };
        let cards = register::parse(node.devices.as_ref()?.get(REGISTER)?).ok()?;
        let VgpuConfig { number, memory, cores, .. } = &self.config;
        if cards.is_empty() || ![number, memory, cores].iter().all(offers) {
            return None;
        }
        let cards = cards.into_iter().enumerate();
        let mut cards: Vec<UsedCard<'_>> =
            cards.map(|(index, card)| self.unused(index, card)).collect();
        for (pod, devices) in at.holders(ASSIGNED) {
            let labels = &at.cluster.classes[pod.class].labels;
            let is_rival = rules.iter().any(|rule| exclusive::matches(rule, labels));
            for share in assigned::decode(devices) {
                if let Some(used) = cards.iter_mut().find(|used| used.card.uuid == share.uuid) {
                    used.add(share, pod.device_group.as_deref(), is_rival);
                }
            }
        }
        Some(cards)
    }

    /// Returns a card that nobody uses. Without a geometry it is shared without instances.
    fn unused<'a>(&'a self, index: usize, mut card: VgpuCard<'a>) -> UsedCard<'a> {
        let instances = self.instances(&card);
        card.mode = if instances.is_some() { Mode::Mig } else { Mode::HamiCore };
        UsedCard {
            index,
            card,
            n_users: 0,
            memory: 0,
            cores: 0,
            groups: BTreeSet::new(),
            has_rival: false,
            instances,
        }
    }

    /// Gives the container its cards, and returns them with the sum of their scores. Returns `None`
    /// if too few cards fit.
    fn take(
        &self,
        cards: &mut [UsedCard<'_>],
        request: &Request,
        fits: impl Fn(&UsedCard<'_>) -> bool,
    ) -> Option<(Vec<DevicePart>, f64)> {
        match self.policy {
            DevicePolicy::Binpack => cards.sort_by_key(|it| (Reverse(it.memory), it.index)),
            DevicePolicy::Spread => cards.sort_by_key(|it| (it.n_users, it.index)),
            DevicePolicy::None => cards.sort_by_key(|it| Reverse(it.index)),
        }
        let (mut shares, mut score) = (Vec::new(), 0.0);
        for card in cards.iter_mut().filter(|card| fits(card)) {
            let was_idle = card.n_users == 0;
            shares.push(card.take(request));
            score += self.score(card, was_idle);
            if i64::try_from(shares.len()) == Ok(request.number) {
                return Some((shares, score));
            }
        }
        None
    }

    /// Returns the score of a card after the container has its share. `was_idle` is true if it had
    /// no user before.
    fn score(&self, card: &UsedCard<'_>, was_idle: bool) -> f64 {
        match self.policy {
            DevicePolicy::Binpack if card.card.memory == 0 => 0.0,
            DevicePolicy::Binpack => 100.0 * card.memory as f64 / card.card.memory as f64,
            DevicePolicy::Spread if was_idle => 100.0,
            DevicePolicy::Spread | DevicePolicy::None => 0.0,
        }
    }
}

impl DeviceFamily for Vgpu {
    fn is_requested(&self, demand: &DeviceDemand) -> bool {
        demand.containers.iter().any(|container| self.request(container).is_some())
    }

    fn choose(&self, query: Query<'_>) -> Result<Choice, Refusal> {
        let Some(demand) = query.demand() else { return Ok(Choice::default()) };
        let rules = self.rules.of_pod(&query.at.cluster.class(query.task).labels);
        let mut cards = self.cards(query.at, &rules).ok_or_else(|| Refusal {
            code: Code::Unresolvable,
            reason: format!("{REASON}: no vGPU is registered on this node"),
        })?;
        let allowed = AllowedCards::of(demand);
        check_mode(&cards, &allowed)?;
        let group = demand.spread_group.as_deref();
        let mut choice = Choice::default();
        for container in &demand.containers {
            let Some(request) = self.request(container) else {
                choice.containers.push(Vec::new());
                continue;
            };
            check_cards(&cards, &request, &allowed)?;
            let fits = |card: &UsedCard<'_>| card.fits(&request, &allowed, group);
            let taken = self.take(&mut cards, &request, fits);
            let (shares, score) =
                taken.ok_or_else(|| refusal("not enough gpu fitted on this node"))?;
            choice.containers.push(shares);
            choice.score += score;
        }
        Ok(choice)
    }

    fn annotations(&self, choice: &Choice, node: &Node, now_micros: i64) -> Vec<Annotation> {
        let devices = assigned::encode(&choice.containers, VENDOR).join(";");
        let seconds = now_micros.div_euclid(MICROS_PER_SECOND).to_string();
        vec![
            ("volcano.sh/vgpu-node".into(), node.name.clone()),
            ("volcano.sh/vgpu-time".into(), seconds.as_str().into()),
            ("volcano.sh/bind-time".into(), seconds.into()),
            (ASSIGNED.into(), devices.as_str().into()),
            ("volcano.sh/devices-to-allocate".into(), devices.into()),
            ("volcano.sh/bind-phase".into(), "allocating".into()),
        ]
    }

    fn problem(&self, node: &Node) -> Option<NodeProblem> {
        let (problem, remedy) = match register::parse(node.devices.as_ref()?.get(REGISTER)?) {
            Err(problem) => (
                format!("{problem}, its devices are not used"),
                "restart the vGPU device plugin of the node, which writes the annotation",
            ),
            Ok(cards) => {
                let is_unknown =
                    |card: &&VgpuCard<'_>| card.mode == Mode::Mig && self.instances(card).is_none();
                let VgpuCard { uuid, model, .. } = cards.iter().find(is_unknown)?;
                (
                    format!(
                        "device {uuid} is in mode mig, and no geometry is for its model {model}, \
                         it is shared as in mode hami-core"
                    ),
                    "add the model to nvidia.knownMigGeometries of the device configuration",
                )
            }
        };
        Some(NodeProblem { annotation: REGISTER.into(), problem, remedy })
    }

    fn lock(&self) -> Option<&'static str> {
        Some(locks::VGPU)
    }

    fn corrections(&self, at: DeviceNode<'_>) -> Vec<(JobId, Resource)> {
        let cards = self.cards(at, &[]).unwrap_or_default();
        queue_amounts::corrections(self, &cards, at)
    }

    fn uses(&self, at: DeviceNode<'_>) -> Vec<DeviceUse> {
        let mut cards = self.cards(at, &[]).unwrap_or_default();
        cards.sort_by_key(|card| card.index);
        cards.iter().map(|card| use_of(card, at)).collect()
    }
}

/// Returns the use of a card with that of each pod.
fn use_of(used: &UsedCard<'_>, at: DeviceNode<'_>) -> DeviceUse {
    let mut pods: BTreeMap<&Arc<str>, (i64, i64)> = BTreeMap::new();
    for (pod, devices) in at.holders(ASSIGNED) {
        for share in assigned::decode(devices).filter(|share| share.uuid == used.card.uuid) {
            let (memory, cores) = pods.entry(&pod.key.name).or_default();
            *memory = memory.saturating_add(share.memory);
            *cores = cores.saturating_add(share.cores);
        }
    }
    let pods = pods.into_iter().map(|(name, (memory, cores))| (name.clone(), memory, cores));
    DeviceUse {
        device: used.card.uuid.into(),
        n_users: used.n_users,
        memory: used.memory,
        cores: used.cores,
        memory_limit: used.card.memory,
        pods: pods.collect(),
    }
}

fn refusal(detail: &str) -> Refusal {
    Refusal { code: Code::Unschedulable, reason: format!("{REASON}: {detail}") }
}

fn check_mode(cards: &[UsedCard<'_>], allowed: &AllowedCards<'_>) -> Result<(), Refusal> {
    let modes: BTreeSet<Mode> = cards.iter().map(|it| it.card.mode).collect();
    let modes: Vec<&str> = modes.into_iter().map(Mode::as_str).collect();
    match allowed.mode.filter(|mode| !modes.contains(mode)) {
        None => Ok(()),
        Some(wanted) => {
            let modes = modes.join(",");
            let text = "is not the same as the node mode";
            Err(refusal(&format!("pod required sharing mode {wanted} {text} {modes}")))
        }
    }
}

fn check_cards(
    cards: &[UsedCard<'_>],
    request: &Request,
    allowed: &AllowedCards<'_>,
) -> Result<(), Refusal> {
    if usize::try_from(request.number).is_ok_and(|number| cards.len() < number) {
        return Err(refusal("no enough gpu cards"));
    }
    match allowed.uuid_constraints() {
        Some(constraints) if !cards.iter().any(|it| allowed.has_uuid(&it.card)) => {
            Err(refusal(&format!("no GPU matches UUID constraints {constraints}")))
        }
        _ => Ok(()),
    }
}

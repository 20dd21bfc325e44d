//! vNPUs of Ascend by HAMi: a pod gets whole NPUs, a part that a template describes, or a part of any
//! size. There is one kind for each common word of the device configuration. Specification:
//! plugins-nodes.md 16.9.

mod chip;
mod register;
mod request;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use vc_model::{Code, DeviceDemand, Node};

use super::assigned;
use super::family::{
    Annotation, Choice, DeviceFamily, DeviceNode, DevicePart, DevicePolicy, NodeProblem, Query,
    Refusal,
};
use super::locks;
pub(super) use chip::{VnpuChip, VnpuTemplate, known_chips};
use register::Npu;
use request::{NpuRequest, Wishes};

/// Annotation of a node that says whether it takes parts of any size.
const SOFT_NODE: &str = "hami-vnpu-core";
const MICROS_PER_SECOND: i64 = 1_000_000;
/// Begins the reasons, as in Volcano.
const NONE: &str = "no ascend device available";
/// Cores of an NPU for pods that get parts of any size.
const SOFT_CORES: i64 = 100;
/// Weight of the network in the score.
const NETWORK: f64 = 10.0;

/// The NPUs of one common word, as `deviceshare.AscendHAMiVNPUEnable` switches them on.
pub(super) struct Vnpu {
    pub(super) chip: VnpuChip,
    pub(super) policy: DevicePolicy,
    /// True if nodes take parts of any size, unless their annotation says something else.
    pub(super) is_soft: bool,
}

/// An NPU with what is in use of it.
struct UsedNpu {
    npu: Npu,
    n_users: i64,
    memory: i64,
    cores: i64,
}

impl UsedNpu {
    /// True if a container with this request can get a part of the NPU.
    fn fits(&self, request: &NpuRequest, wishes: &Wishes<'_>, word: &str) -> bool {
        let Self { npu, n_users, memory, cores, .. } = self;
        let total = if wishes.is_soft { SOFT_CORES } else { npu.cores };
        npu.is_healthy
            && npu.word == word
            && wishes.has_uuid(&npu.id)
            && *n_users < npu.most_users
            && request.memory_of(npu) <= npu.memory.saturating_sub(*memory)
            && request.cores <= total.saturating_sub(*cores)
            && !(total == SOFT_CORES && request.cores == SOFT_CORES && 0 < *n_users)
            && !(0 < total && *cores == total && request.cores == 0)
    }

    fn take(&mut self, request: &NpuRequest) -> DevicePart {
        let memory = request.memory_of(&self.npu);
        self.n_users += 1;
        self.memory = self.memory.saturating_add(memory);
        self.cores = self.cores.saturating_add(request.cores);
        DevicePart { device: self.npu.id.clone(), memory, cores: request.cores }
    }
}

impl Vnpu {
    fn register_key(&self) -> String {
        format!("hami.io/node-register-{}", self.chip.word)
    }

    fn assigned_key(&self) -> String {
        format!("hami.io/{}-devices-allocated", self.chip.word)
    }

    /// Returns the NPUs of the node with their use. Returns `None` if it has none that pods can have.
    fn npus(&self, at: DeviceNode<'_>) -> Option<Vec<UsedNpu>> {
        let node = at.node();
        let text = node.devices.as_ref()?.get(self.register_key().as_str())?;
        let dim = at.cluster.dims.get(&self.chip.number)?;
        let npus = register::parse(text).ok().filter(|npus| !npus.is_empty())?;
        if node.allocatable.get(dim) <= 0 {
            return None;
        }
        let unused = |npu| UsedNpu { npu, n_users: 0, memory: 0, cores: 0 };
        let mut npus: Vec<UsedNpu> = npus.into_iter().map(unused).collect();
        for (_, devices) in at.holders(&self.assigned_key()) {
            for part in assigned::decode(devices) {
                if let Some(used) = npus.iter_mut().find(|used| used.npu.id == part.uuid) {
                    used.n_users += 1;
                    used.memory = used.memory.saturating_add(part.memory);
                    used.cores = used.cores.saturating_add(part.cores);
                }
            }
        }
        Some(npus)
    }

    /// True if the node takes parts of any size.
    fn is_soft_node(&self, node: &Node) -> bool {
        let own = node.devices.as_ref().and_then(|devices| devices.get(SOFT_NODE));
        own.map_or(self.is_soft, |text| &**text == "true")
    }

    /// Returns the score of an NPU before a container gets a part of it.
    fn score(&self, used: &UsedNpu) -> f64 {
        match self.policy {
            DevicePolicy::Binpack if used.npu.memory == 0 => 0.0,
            DevicePolicy::Binpack => 100.0 * used.memory as f64 / used.npu.memory as f64,
            DevicePolicy::Spread if used.n_users == 0 => 100.0,
            DevicePolicy::Spread | DevicePolicy::None => 0.0,
        }
    }

    /// Returns the places of the NPUs that the container gets, the best ones first. Returns `None` if
    /// too few fit.
    fn places(
        &self,
        npus: &[UsedNpu],
        number: usize,
        fits: impl Fn(&UsedNpu) -> bool,
    ) -> Option<Vec<usize>> {
        let mut places: Vec<usize> = (0..npus.len()).filter(|&at| fits(&npus[at])).collect();
        places.sort_by(|&l, &r| {
            let by_score = self.score(&npus[r]).total_cmp(&self.score(&npus[l]));
            by_score.then(npus[l].npu.index.cmp(&npus[r].npu.index))
        });
        if self.has_networks(npus) {
            let mut sizes: BTreeMap<Option<i64>, usize> = BTreeMap::new();
            for &at in &places {
                *sizes.entry(npus[at].npu.network).or_default() += 1;
            }
            // The order within a network stays.
            places.sort_by_key(|&at| (Reverse(sizes[&npus[at].npu.network]), npus[at].npu.network));
        }
        places.truncate(number);
        (places.len() == number).then_some(places)
    }

    /// True if the NPUs prefer those of one network.
    fn has_networks(&self, npus: &[UsedNpu]) -> bool {
        self.chip.word.starts_with("Ascend910") && npus.iter().all(|it| it.npu.network.is_some())
    }

    /// Returns the score for NPUs of one network.
    fn network_score(&self, npus: &[UsedNpu], chosen: &[usize]) -> f64 {
        if chosen.is_empty() || !self.has_networks(npus) {
            return 0.0;
        }
        let mut sizes: BTreeMap<Option<i64>, usize> = BTreeMap::new();
        for &at in chosen {
            *sizes.entry(npus[at].npu.network).or_default() += 1;
        }
        let largest = sizes.into_values().max().unwrap_or(0);
        NETWORK * largest as f64 / chosen.len() as f64
    }

    /// Returns what the device plugin needs of each NPU, as JSON.
    fn runtime_info(&self, choice: &Choice) -> Value {
        let of = |part: &DevicePart| match (choice.is_soft, self.chip.template(part.memory)) {
            (true, _) => json!({"UUID": part.device, "memory": part.memory, "core": part.cores}),
            (false, Some(template)) => json!({"UUID": part.device, "temp": template.name}),
            (false, None) => json!({"UUID": part.device}),
        };
        choice.containers.iter().flatten().map(of).collect()
    }
}

fn refusal(code: Code, detail: &str) -> Refusal {
    Refusal { code, reason: format!("{NONE}: {detail}") }
}

impl DeviceFamily for Vnpu {
    fn is_requested(&self, demand: &DeviceDemand) -> bool {
        demand.containers.iter().any(|container| NpuRequest::of(container, &self.chip).is_some())
    }

    fn choose(&self, query: Query<'_>) -> Result<Choice, Refusal> {
        let Some(demand) = query.demand() else { return Ok(Choice::default()) };
        let (word, wishes) = (&self.chip.word, Wishes::of(demand, &self.chip.word));
        let mut npus = self.npus(query.at).ok_or_else(|| {
            refusal(Code::Unresolvable, &format!("no {word} is registered on this node"))
        })?;
        if wishes.is_soft && !self.is_soft_node(query.at.node()) {
            let detail = "the node takes no pods of huawei.com/vnpu-mode hami-core";
            return Err(refusal(Code::Unresolvable, detail));
        }
        let mut choice = Choice { is_soft: wishes.is_soft, ..Choice::default() };
        let mut all: Vec<usize> = Vec::new();
        for container in &demand.containers {
            let Some(request) = NpuRequest::of(container, &self.chip) else {
                choice.containers.push(Vec::new());
                continue;
            };
            let request = request.raised(&self.chip, wishes.is_soft)?;
            let number = usize::try_from(request.number).unwrap_or(usize::MAX);
            // A pod gets no NPU twice.
            let is_new = |used: &UsedNpu| !all.iter().any(|&at| npus[at].npu.id == used.npu.id);
            let fits = |used: &UsedNpu| is_new(used) && used.fits(&request, &wishes, word);
            let places = self.places(&npus, number, fits).ok_or_else(|| {
                let wanted =
                    format!("the request needs {number} {word} with enough memory and cores");
                refusal(Code::Unschedulable, &wanted)
            })?;
            choice.score += places.iter().map(|&at| self.score(&npus[at])).sum::<f64>();
            choice.containers.push(places.iter().map(|&at| npus[at].take(&request)).collect());
            all.extend(places);
        }
        choice.score += self.network_score(&npus, &all);
        Ok(choice)
    }

    fn annotations(&self, choice: &Choice, node: &Node, now_micros: i64) -> Vec<Annotation> {
        let word = &self.chip.word;
        let parts = assigned::encode(&choice.containers, word).into_iter();
        let devices: String = parts.map(|part| format!("{part};")).collect();
        let seconds = now_micros.div_euclid(MICROS_PER_SECOND).to_string();
        let key = |key: String| -> Cow<'static, str> { key.into() };
        vec![
            (key(format!("hami.io/{word}-devices-to-allocate")), devices.as_str().into()),
            (key(self.assigned_key()), devices.into()),
            ("predicate-time".into(), seconds.as_str().into()),
            (key(format!("huawei.com/{word}")), self.runtime_info(choice).to_string().into()),
            ("hami.io/vgpu-node".into(), node.name.clone()),
            ("hami.io/vgpu-time".into(), seconds.as_str().into()),
            ("hami.io/bind-phase".into(), "allocating".into()),
            ("hami.io/bind-time".into(), seconds.into()),
        ]
    }

    fn problem(&self, node: &Node) -> Option<NodeProblem> {
        let annotation = self.register_key();
        let problem = register::parse(node.devices.as_ref()?.get(annotation.as_str())?).err()?;
        let problem = format!("{problem}, its devices are not used");
        let remedy = "restart the Ascend device plugin of the node, which writes the annotation";
        Some(NodeProblem { annotation: annotation.into(), problem, remedy })
    }

    fn lock(&self) -> Option<&'static str> {
        Some(locks::HAMI)
    }
}

//! What the stories have around the tables of the world: volumes, claims, devices and shards as
//! objects, the controllers that bind and provision them, and answers to writes of which some fail.
//!
//! ```text
//! shard s desired=n1,n2 used=n1          # NodeShard
//! slice s1 n1 2                          # two devices on n1, on `all` or where `zone=z0`
//! claim d0 1                             # ResourceClaim for so many devices
//! deviceclass gpu
//! hypernode rack-0 label.zone=z0
//! numa n1 policy=restricted cpus=8 nodes=2
//! hypernodes listed
//! load n0 cpu=90 memory=20 age=60 interval=30  # read so many seconds ago
//! service web app=a
//! namespace other team=x
//! rank priority-1 5                      # PriorityClass
//! gone pvc c0
//! ```
//!
//! Any other line is one of `support::text` or of the fixture of vc-model.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_engine::{Effect, PreBindWrites};
use vc_model::*;

use crate::support::*;

/// Which kinds of events a watch may be late with, one bit each.
pub(super) const LATE: [fn(&ClusterEvent) -> bool; 4] = [
    |event| matches!(event, ClusterEvent::PodApplied(_) | ClusterEvent::PodDeleted { .. }),
    |event| {
        matches!(event, ClusterEvent::PodGroupApplied(_) | ClusterEvent::PodGroupDeleted { .. })
    },
    |event| {
        matches!(
            event,
            ClusterEvent::QueueApplied(_)
                | ClusterEvent::QueueDeleted { .. }
                | ClusterEvent::NodeApplied(_)
                | ClusterEvent::NodeDeleted { .. }
        )
    },
    |event| {
        matches!(
            event,
            ClusterEvent::StorageApplied(_)
                | ClusterEvent::StorageDeleted { .. }
                | ClusterEvent::DeviceApplied(_)
                | ClusterEvent::DeviceDeleted { .. }
        )
    },
];

#[derive(Default)]
pub(super) struct Edge {
    volumes: BTreeMap<Arc<str>, PersistentVolume>,
    claims: BTreeMap<ObjectKey, PersistentVolumeClaim>,
    devices: BTreeMap<ObjectKey, ResourceClaim>,
    shards: BTreeMap<Arc<str>, NodeShardRecord>,
    version: u64,
}

impl Edge {
    pub(super) fn tell(&mut self, world: &mut World, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["gone", kind, name] => self.delete(world, kind, name),
            ["budget" | "quota" | "pod", ..] => world.add(line),
            ["service", name, labels] => world.send(ClusterEvent::SelectorApplied(
                SelectorObject {
                    kind: SelectorKind::Service,
                    key: key(name),
                    selector: Some(selector(labels)),
                }
                .into(),
            )),
            ["namespace", name, ref labels @ ..] => {
                let labels = labels.first().map(|text| selector(text).match_labels);
                let labels = labels.unwrap_or_default();
                world.send(ClusterEvent::NamespaceApplied { name: name.into(), labels });
            }
            ["rank", name, value] => {
                let value = value.parse().expect("a number");
                let class = PriorityClassRecord { name: name.into(), value, global_default: false };
                world.send(ClusterEvent::PriorityClassApplied(class));
            }
            ["shard", name, desired, used] => self.put_shard(world, shard(name, desired, used)),
            ["hypernodes", listed] => {
                let is_complete = listed == "listed";
                world.send(ClusterEvent::HyperNodesListed { is_complete });
            }
            ["hypernode" | "numa", ..] => {
                fixture::events_of(line).into_iter().for_each(|event| world.send(event));
            }
            ["load", name, ref words @ ..] => {
                let loads = vec![(name.into(), load(words, world.now_micros()))];
                world.send(ClusterEvent::NodeLoadsRead(loads));
            }
            ["deviceclass", name] => {
                let class = DeviceClass { name: name.into(), ..DeviceClass::default() };
                apply_device(world, DeviceObject::Class(class));
            }
            ["slice", name, nodes, count] => {
                self.version += 1;
                apply_device(world, DeviceObject::Slice(slice(name, nodes, count)));
            }
            ["claim", name, count] => self.put_device(world, device_claim(name, count)),
            _ => fixture::storage(line).into_iter().for_each(|event| self.storage(world, event)),
        }
    }

    fn storage(&mut self, world: &mut World, event: ClusterEvent) {
        let ClusterEvent::StorageApplied(object) = event else { panic!("no storage: {event:?}") };
        match *object {
            StorageObject::Volume(volume) => drop(self.put_volume(world, volume)),
            StorageObject::Claim(claim) => drop(self.put_claim(world, claim)),
            other => world.send(ClusterEvent::StorageApplied(Box::new(other))),
        }
    }

    fn next_version(&mut self) -> Arc<str> {
        self.version += 1;
        self.version.to_string().into()
    }

    fn put_volume(&mut self, world: &mut World, mut volume: PersistentVolume) -> StorageObject {
        volume.resource_version = self.next_version();
        self.volumes.insert(volume.name.clone(), volume.clone());
        let object = StorageObject::Volume(volume);
        world.send(ClusterEvent::StorageApplied(Box::new(object.clone())));
        object
    }

    fn put_claim(&mut self, world: &mut World, mut claim: PersistentVolumeClaim) -> StorageObject {
        claim.resource_version = self.next_version();
        self.claims.insert(claim.key.clone(), claim.clone());
        let object = StorageObject::Claim(claim);
        world.send(ClusterEvent::StorageApplied(Box::new(object.clone())));
        object
    }

    fn put_device(&mut self, world: &mut World, mut claim: ResourceClaim) {
        claim.resource_version = self.next_version();
        self.devices.insert(claim.key.clone(), claim.clone());
        apply_device(world, DeviceObject::Claim(claim));
    }

    fn put_shard(&mut self, world: &mut World, shard: NodeShardRecord) {
        self.shards.insert(shard.name.clone(), shard.clone());
        world.send(ClusterEvent::NodeShardApplied(Box::new(shard)));
    }

    fn delete(&mut self, world: &mut World, kind: &str, name: &str) {
        let named = key(name);
        let bare = ObjectKey::new("", name);
        let (storage, device) = (
            |kind, key| ClusterEvent::StorageDeleted { kind, key },
            |kind, key| ClusterEvent::DeviceDeleted { kind, key },
        );
        let event = match kind {
            "node" => return world.delete_node(name),
            "queue" => return world.delete_queue(name),
            "job" => return world.delete_group(name),
            "pvc" => {
                self.claims.remove(&named);
                storage(StorageKind::Claim, named)
            }
            "pv" => {
                self.volumes.remove(name);
                storage(StorageKind::Volume, bare)
            }
            "class" => storage(StorageKind::Class, bare),
            "capacity" => storage(StorageKind::Capacity, named),
            "claim" => {
                self.devices.remove(&named);
                device(DeviceKind::Claim, named)
            }
            "slice" => device(DeviceKind::Slice, bare),
            "deviceclass" => device(DeviceKind::Class, bare),
            "shard" => {
                self.shards.remove(name);
                ClusterEvent::NodeShardDeleted { name: name.into() }
            }
            "hypernode" => ClusterEvent::HyperNodeDeleted { name: name.into() },
            "numa" => ClusterEvent::NumaTopologyDeleted { name: name.into() },
            "service" => ClusterEvent::SelectorDeleted { kind: SelectorKind::Service, key: named },
            "priority" => ClusterEvent::PriorityClassDeleted { name: name.into() },
            "namespace" => ClusterEvent::NamespaceDeleted { name: name.into() },
            "budget" => ClusterEvent::BudgetDeleted { key: named },
            "quota" => ClusterEvent::QuotaDeleted { key: named },
            _ => panic!("unknown kind: {kind}"),
        };
        world.send(event);
    }

    /// Stores what a cycle wants written; of the writes every so many fail, 0: none.
    pub(super) fn answer(&mut self, world: &mut World, effects: &[Effect], refused_every: usize) {
        let mut n_writes = 0;
        for effect in effects.iter().filter(|effect| !matches!(effect, Effect::Event { .. })) {
            n_writes += 1;
            let fails = refused_every != 0 && n_writes % refused_every == 0;
            if fails || !world.can_store(effect) {
                refuse(world, effect);
                continue;
            }
            match effect {
                Effect::PreBind { pod, uid, writes, .. } => {
                    self.write_before_bind(world, pod, uid, writes, effect);
                }
                Effect::UnreserveClaims { pod, uid, claims } => {
                    for name in claims {
                        let key =
                            ObjectKey { namespace: pod.namespace.clone(), name: name.clone() };
                        let Some(mut claim) = self.devices.get(&key).cloned() else { continue };
                        claim.reserved_for.retain(|consumer| consumer.uid != *uid);
                        self.put_device(world, claim);
                    }
                }
                Effect::DeallocateClaim { claim, .. } => {
                    if let Some(mut claim) = self.devices.get(claim).cloned() {
                        (claim.allocation, claim.reserved_for) = (None, Vec::new());
                        self.put_device(world, claim);
                    }
                }
                Effect::NodeShardStatus { shard, nodes_in_use, nodes_to_remove, nodes_to_add } => {
                    let Some(mut record) = self.shards.get(shard).cloned() else { continue };
                    record.nodes_in_use.clone_from(nodes_in_use);
                    record.nodes_to_remove.clone_from(nodes_to_remove);
                    record.nodes_to_add.clone_from(nodes_to_add);
                    self.put_shard(world, record);
                }
                _ => world.store(effect),
            }
        }
    }

    fn write_before_bind(
        &mut self,
        world: &mut World,
        pod: &ObjectKey,
        uid: &Arc<str>,
        writes: &PreBindWrites,
        effect: &Effect,
    ) {
        let Effect::PreBind { node, .. } = effect else { return };
        let claims = writes.bindings.iter().map(|(claim, _)| claim).chain(&writes.provisions);
        let is_there = claims.into_iter().all(|claim| self.claims.contains_key(&claim.key))
            && writes.bindings.iter().all(|(_, volume)| self.volumes.contains_key(volume))
            && writes.devices.iter().all(|device| self.devices.contains_key(&device.key));
        if !is_there {
            return refuse(world, effect);
        }
        let mut objects = Vec::new();
        for (claim, volume) in &writes.bindings {
            let mut volume = self.volumes[volume].clone();
            let claim = &self.claims[&claim.key];
            volume.claim = Some(ClaimRef { claim: claim.key.clone(), uid: claim.uid.clone() });
            objects.push(self.put_volume(world, volume));
        }
        for claim in &writes.provisions {
            let mut claim = self.claims[&claim.key].clone();
            claim.selected_node = Some(node.clone());
            objects.push(self.put_claim(world, claim));
        }
        let mut devices = Vec::new();
        for promise in &writes.devices {
            let mut claim = self.devices[&promise.key].clone();
            claim.allocation = claim.allocation.or_else(|| promise.allocation.clone());
            claim.reserved_for.push(Consumer { name: pod.name.clone(), uid: uid.clone() });
            self.put_device(world, claim);
            devices.push(self.devices[&promise.key].clone());
        }
        world.send(ClusterEvent::VolumesWritten { uid: uid.clone(), objects, devices });
    }

    /// What the controllers of volumes and claims do: what belongs together is bound, what has a
    /// node is provisioned, what nobody uses is given back.
    pub(super) fn controllers(&mut self, world: &mut World) {
        for mut claim in self.claims.values().cloned().collect::<Vec<_>>() {
            if claim.is_bound() {
                continue;
            }
            let is_ours = |volume: &&PersistentVolume| {
                volume.claim.as_ref().is_some_and(|of| of.claim == claim.key)
            };
            let bound = self.volumes.values().find(is_ours).cloned();
            let provisions = claim.selected_node.is_some() || &*claim.class == "fast";
            let Some(mut volume) = bound.or_else(|| provisions.then(|| provisioned(&claim))) else {
                continue;
            };
            volume.phase = VolumePhase::Other;
            (claim.volume_name, claim.bind_completed) = (volume.name.clone(), true);
            self.put_volume(world, volume);
            self.put_claim(world, claim);
        }
        for mut claim in self.devices.values().cloned().collect::<Vec<_>>() {
            let n_before = claim.reserved_for.len();
            let is_there = |consumer: &Consumer| {
                let pod = ObjectKey {
                    namespace: claim.key.namespace.clone(),
                    name: consumer.name.clone(),
                };
                world.has_pod(&pod.to_string())
            };
            claim.reserved_for.retain(is_there);
            if claim.reserved_for.len() < n_before {
                if claim.reserved_for.is_empty() {
                    claim.allocation = None;
                }
                self.put_device(world, claim);
            }
        }
    }
}

/// The API server says no, or that the object is gone.
fn refuse(world: &mut World, effect: &Effect) {
    let (error, there) = ("refused".to_owned(), world.can_store(effect));
    // Of some pods every refusal may be repeated at once.
    let may_pause = |uid: &str| uid.bytes().map(usize::from).sum::<usize>() % 3 != 0;
    match effect {
        Effect::Bind { pod, uid, node, .. } if there => {
            world.refuse(pod, uid, node, may_pause(uid));
        }
        Effect::Bind { uid, node, .. } => {
            let (pauses, uid, node) = (may_pause(uid), uid.clone(), node.clone());
            world.send(ClusterEvent::BindFailed { uid, node, error, pauses });
        }
        Effect::Evict { pod, uid, .. } if there => {
            if may_pause(uid) {
                world.send(ClusterEvent::EvictFailed { uid: uid.clone(), error });
            }
            let pod = Box::new(world.pod(&pod.to_string()).clone());
            world.send(ClusterEvent::PodRead { pod, after: ReadAfter::Eviction });
        }
        Effect::PreBind { uid, .. } => {
            let (pauses, uid) = (may_pause(uid), uid.clone());
            world.send(ClusterEvent::PreBindFailed { uid, error, pauses });
        }
        Effect::PodCondition { uid, .. }
        | Effect::ClearNomination { uid, .. }
        | Effect::RemoveGate { uid, .. } => {
            world.send(ClusterEvent::PodStatusFailed { uid: uid.clone() });
        }
        Effect::PodGroupStatus { pod_group, status, .. } => {
            let (key, status) = (pod_group.clone(), Box::new(status.clone()));
            world.send(ClusterEvent::PodGroupFailed { key, status });
        }
        Effect::QueueStatus { queue, .. } | Effect::QueueAnnotation { queue, .. } => {
            world.send(ClusterEvent::QueueFailed { name: queue.clone() });
        }
        Effect::SaveUsage { .. } => world.send(ClusterEvent::UsageNotSaved),
        Effect::NodeShardStatus { shard, .. } => {
            world.send(ClusterEvent::NodeShardFailed { name: shard.clone() });
        }
        _ => {}
    }
}

fn apply_device(world: &mut World, object: DeviceObject) {
    world.send(ClusterEvent::DeviceApplied(Box::new(object)));
}

fn selector(text: &str) -> LabelSelector {
    let (name, value) = text.split_once('=').expect("label=value");
    LabelSelector { match_labels: [(name.into(), value.into())].into(), ..Default::default() }
}

/// The nodes after `=`, each once.
fn nodes(text: &str) -> Vec<Arc<str>> {
    let names = text.split_once('=').expect("word=nodes").1;
    let mut names: Vec<Arc<str>> =
        names.split(',').filter(|name| !name.is_empty()).map(Arc::from).collect();
    names.sort();
    names.dedup();
    names
}

/// The load of a node that words such as `cpu=90 age=60` describe.
fn load(words: &[&str], now_micros: i64) -> NodeLoad {
    let number = |key: &str| -> i64 {
        let value = words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        value.expect("a word of a load").parse().expect("a number")
    };
    let [cpu, memory] = ["cpu", "memory"].map(|key| number(key) as f64);
    let [age, interval] = ["age", "interval"].map(|key| number(key) * 1_000_000);
    NodeLoad::new(cpu, memory, now_micros - age, interval).expect("percentages")
}

fn shard(name: &str, desired: &str, used: &str) -> NodeShardRecord {
    NodeShardRecord {
        name: name.into(),
        nodes_desired: nodes(desired),
        nodes_in_use: nodes(used),
        ..NodeShardRecord::default()
    }
}

fn slice(name: &str, nodes: &str, count: &str) -> ResourceSlice {
    let device = |index: u32| Device { name: format!("g{index}").into(), ..Device::default() };
    let nodes = match (nodes, nodes.split_once('=')) {
        ("all", _) => SliceNodes::All,
        (_, Some((label, value))) => SliceNodes::Matching(vec![NodeSelectorTerm {
            match_expressions: vec![Requirement {
                key: label.into(),
                operator: Operator::In,
                values: vec![value.into()],
            }],
            match_fields: Vec::new(),
        }]),
        (node, None) => SliceNodes::Named(node.into()),
    };
    ResourceSlice {
        name: name.into(),
        driver: "gpu.example.com".into(),
        pool: name.into(),
        generation: 1,
        n_slices: 1,
        nodes,
        devices: (0..count.parse().expect("a number")).map(device).map(Arc::new).collect(),
    }
}

fn device_claim(name: &str, count: &str) -> ResourceClaim {
    let mode = AllocationMode::Count(count.parse().expect("a number"));
    let exact = ExactRequest { class: "gpu".into(), mode, ..ExactRequest::default() };
    ResourceClaim {
        key: key(name),
        uid: format!("uid-{name}").into(),
        requests: vec![DeviceRequest { name: "r".into(), kind: RequestKind::Exactly(exact) }],
        ..ResourceClaim::default()
    }
}

/// The volume that a provisioner makes.
fn provisioned(claim: &PersistentVolumeClaim) -> PersistentVolume {
    PersistentVolume {
        name: format!("pv-{}", claim.key.name).into(),
        class: claim.class.clone(),
        capacity_bytes: claim.request_bytes.unwrap_or_default(),
        access_modes: claim.access_modes,
        claim: Some(ClaimRef { claim: claim.key.clone(), uid: claim.uid.clone() }),
        source: VolumeSource::Csi { driver: "d".into(), handle: claim.key.name.clone() },
        ..PersistentVolume::default()
    }
}

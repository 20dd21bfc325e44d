//! HyperNodes of a story, and what binds show about network topologies: no bind of a gang in hard mode leaves
//! the HyperNode of the pods that have a node already, whoever has placed them (I2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use vc_model::NodePattern;

use super::outside_event::OutsideEvent;
use super::witness::SentWrite;
use super::world::{group_of, has_ended, is_leaving};
use crate::rng::Rng;
use crate::serve::{HYPER_NODES, Key, Object, POD_GROUPS, PODS, Refused, Store};

/// Racks of tier 1, by the last digits of their nodes. Nodes with others are in no HyperNode.
const RACKS: [&str; 2] = ["^n[0-9]*[024]$", "^n[0-9]*[135]$"];
/// What a rack may be changed to. Nodes may be in no rack then, or in both.
const PATTERNS: [&str; 5] = [RACKS[0], RACKS[1], "^n[0-3]$", "^n[2-9]$", "^m"];
/// How long a process may take to see that HyperNodes have changed, or that another process has bound a pod.
const UNSEEN: Duration = Duration::from_secs(60);
/// How long pods may stay that a cycle evicts before it binds others of their gang elsewhere: an eviction may be
/// refused for a minute.
const LEAVING: Duration = Duration::from_secs(90);
/// How long a process may take to see that the server has begun anew.
const RESTORE_UNSEEN: Duration = Duration::from_secs(600);

/// The network topology of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TopologyWish {
    /// `None`: soft mode.
    pub(super) highest_tier: Option<u64>,
}

impl TopologyWish {
    fn drawn(rng: &mut Rng) -> Option<Self> {
        let drawn = rng.below(10);
        let highest_tier = match drawn {
            0..=5 => Some(1),
            6 => Some(2),
            _ => None,
        };
        (drawn < 9).then_some(Self { highest_tier })
    }

    /// Returns the field of a PodGroup.
    pub(super) fn spec(self) -> Value {
        match self.highest_tier {
            Some(tier) => json!({ "mode": "hard", "highestTierAllowed": tier }),
            None => json!({ "mode": "soft" }),
        }
    }
}

/// Gives jobs of these steps a network topology.
pub(super) fn give_topologies(seed: u64, steps: &mut [(u64, OutsideEvent)]) {
    let mut rng = Rng::new(seed.rotate_left(16));
    for (_, event) in steps {
        if let OutsideEvent::Job(job) = event {
            job.topology = TopologyWish::drawn(&mut rng);
        }
    }
}

/// Returns a random change of a rack.
pub(super) fn drawn_change(rng: &mut Rng) -> OutsideEvent {
    let pattern = rng.happens(800).then(|| rng.of(&PATTERNS));
    OutsideEvent::SetRack { number: usize::from(rng.happens(500)), pattern }
}

/// Creates two racks in a zone.
///
/// # Errors
/// An object is refused, which is a fault of this module.
pub(super) fn create(store: &Store) -> Result<(), Refused> {
    for (number, pattern) in RACKS.iter().enumerate() {
        set_rack(store, number, Some(pattern))?;
    }
    let member = |number: usize| json!({ "type": "HyperNode", "selector": { "exactMatch": { "name": rack(number) } } });
    store.create(&HYPER_NODES, &hyper_node("zone", 2, &json!([member(0), member(1)]))).map(drop)
}

/// Changes the nodes of a rack, which is created if it is missing. `None`: it is deleted.
///
/// # Errors
/// An object is refused, which is a fault of this module.
pub(super) fn set_rack(store: &Store, number: usize, pattern: Option<&str>) -> Result<(), Refused> {
    let key = Key::new("", &rack(number));
    let exists = store.get(&HYPER_NODES, "", &rack(number)).is_some();
    let Some(pattern) = pattern else {
        return match exists {
            true => store.delete(&HYPER_NODES, &key, &Default::default()).map(drop),
            false => Ok(()),
        };
    };
    let member = json!({ "type": "Node", "selector": { "regexMatch": { "pattern": pattern } } });
    let value = hyper_node(&rack(number), 1, &json!([member]));
    if !exists {
        return store.create(&HYPER_NODES, &value).map(drop);
    }
    let changed = store.update(&HYPER_NODES, &key, |rack| {
        rack["spec"] = value["spec"].clone();
        Ok(())
    });
    changed.map(drop)
}

fn rack(number: usize) -> String {
    format!("rack-{number}")
}

fn hyper_node(name: &str, tier: u64, members: &Value) -> Value {
    json!({
        "apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
        "metadata": { "name": name }, "spec": { "tier": tier, "members": members },
    })
}

/// A witness of the binds of a story with HyperNodes.
pub(super) struct TopologyWitness {
    /// A process may still decide by other HyperNodes, or by objects that are gone, until then.
    unseen_until: Instant,
    /// PodGroups that got a bind of a process which did not lead any more, and until when the leader may not
    /// know of it.
    late_binds: BTreeMap<String, Instant>,
    /// PodGroups whose pods a process has placed apart that could not know better.
    excused: BTreeSet<String>,
    /// PodGroups whose pods have come apart, and when.
    apart: BTreeMap<String, Instant>,
}

impl TopologyWitness {
    pub(super) fn new() -> Self {
        Self {
            unseen_until: Instant::now(),
            late_binds: BTreeMap::new(),
            excused: BTreeSet::new(),
            apart: BTreeMap::new(),
        }
    }

    /// HyperNodes have changed.
    pub(super) fn note_change(&mut self) {
        self.unseen_until = self.unseen_until.max(Instant::now() + UNSEEN);
    }

    /// The server has begun anew.
    pub(super) fn note_restore(&mut self) {
        self.unseen_until = Instant::now() + RESTORE_UNSEEN;
    }

    /// Returns a text for each PodGroup whose pods are still apart when none of them can be leaving any more, and
    /// forgets it.
    pub(super) fn take(&mut self, store: &Store) -> Vec<String> {
        let now = Instant::now();
        let is_over = |since: &Instant| *since + LEAVING <= now;
        let over = self.apart.iter().filter(|(_, since)| is_over(since));
        let found = over.filter_map(|(group, _)| what_is_apart(store, group)).collect();
        self.apart.retain(|_, since| !is_over(since));
        found
    }

    /// Looks at a bind that the server has done. `leader`: who holds the Lease.
    pub(super) fn look_at_bind(&mut self, bind: &SentWrite, leader: &str, store: &Store) {
        let (group, now) = (&bind.pod_group, Instant::now());
        if *leader != *bind.process {
            self.late_binds.insert(group.clone(), now + UNSEEN);
        }
        if what_is_apart(store, group).is_none() {
            return;
        }
        if now < self.unseen_until || self.late_binds.get(group).is_some_and(|until| now < *until) {
            self.excused.insert(group.clone());
        }
        if !self.excused.contains(group) {
            self.apart.entry(group.clone()).or_insert(now);
        }
    }
}

/// Returns a text if the gang is in hard mode, and no HyperNode of an allowed tier has all nodes of its pods.
fn what_is_apart(store: &Store, group: &str) -> Option<String> {
    let object = store.get(&POD_GROUPS, super::world::NAMESPACE, group)?;
    let highest = object.value["spec"]["networkTopology"]["highestTierAllowed"].as_u64()?;
    let pods = store.list(&PODS, None).objects;
    let of_group = |pod: &&Arc<Object>| {
        let pod = &pod.value;
        group_of(pod) == group && !has_ended(pod) && !is_leaving(pod)
    };
    let nodes: BTreeSet<&str> = pods
        .iter()
        .filter(of_group)
        .filter_map(|pod| pod.value["spec"]["nodeName"].as_str())
        .collect();
    let hyper_nodes = store.list(&HYPER_NODES, None).objects;
    let is_allowed =
        |it: &&Arc<Object>| it.value["spec"]["tier"].as_u64().is_some_and(|tier| tier <= highest);
    let holds_all = |it: &Arc<Object>| nodes.iter().all(|node| holds(&hyper_nodes, it, node));
    let is_together = hyper_nodes.iter().filter(is_allowed).any(holds_all);
    let text = || {
        format!(
            "I2: {group} must stay in a HyperNode of tier {highest}, and its pods have the nodes {nodes:?}"
        )
    };
    (!is_together).then(text)
}

/// True if the node is in the HyperNode, or in one of its members.
fn holds(hyper_nodes: &[Arc<Object>], hyper_node: &Object, node: &str) -> bool {
    let members = hyper_node.value["spec"]["members"].as_array();
    members.into_iter().flatten().any(|member| {
        let selector = &member["selector"];
        let pattern = selector["regexMatch"]["pattern"].as_str();
        if let Some(pattern) = pattern.and_then(|pattern| NodePattern::new(pattern).ok()) {
            return pattern.matches(node);
        }
        let name = &selector["exactMatch"]["name"];
        hyper_nodes.iter().any(|it| it.name() == *name && holds(hyper_nodes, it, node))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::script::{JobSpec, NodeSize};
    use crate::fuzz::world::World;
    use crate::serve::{LOG_CAPACITY, in_process};

    fn bound(world: &World, pod: &str, node: &str) {
        let placed = world.store.update(&PODS, &Key::new("default", pod), |pod| {
            pod["spec"]["nodeName"] = node.into();
            Ok(())
        });
        placed.unwrap();
    }

    fn bind_of_j() -> SentWrite {
        SentWrite {
            process: "a".into(),
            method: "POST".into(),
            path: "/api/v1/namespaces/default/pods/j-1/binding".into(),
            body: Value::Null,
            pod_group: "j".into(),
        }
    }

    /// A hard gang of two of which the first is in rack 0, and the second goes to this node.
    fn world(second: &str) -> World {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let mut world = World::new(store);
        world.begin(&[NodeSize { cpus: 4, pods: 10 }; 3]).unwrap();
        create(&world.store).unwrap();
        let topology = Some(TopologyWish { highest_tier: Some(1) });
        let job = JobSpec { pods: 2, min: 2, topology, ..JobSpec::lone("j") };
        world.apply(&OutsideEvent::Job(job)).unwrap();
        bound(&world, "j-0", "n0");
        bound(&world, "j-1", second);
        world
    }

    /// What is found once nobody can be leaving any more.
    async fn found(witness: &mut TopologyWitness, store: &Store) -> Vec<String> {
        tokio::time::advance(LEAVING).await;
        witness.take(store)
    }

    #[tokio::test(start_paused = true)]
    async fn a_bind_outside_of_the_rack_is_found() {
        let mut witness = TopologyWitness::new();
        let (together, apart) = (world("n2"), world("n1"));
        witness.look_at_bind(&bind_of_j(), "a", &together.store);
        assert_eq!(found(&mut witness, &together.store).await, [""; 0]);
        witness.look_at_bind(&bind_of_j(), "a", &apart.store);
        assert_eq!(witness.take(&apart.store), [""; 0], "the other pod may be leaving");
        let text = "I2: j must stay in a HyperNode of tier 1, and its pods have the nodes {\"n0\", \"n1\"}";
        assert_eq!(found(&mut witness, &apart.store).await, [text]);
        assert_eq!(found(&mut witness, &apart.store).await, [""; 0], "once");
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_could_know_is_left_out() {
        let apart = world("n1");
        let mut late = TopologyWitness::new();
        late.look_at_bind(&bind_of_j(), "b", &apart.store);
        late.look_at_bind(&bind_of_j(), "a", &apart.store);
        assert_eq!(found(&mut late, &apart.store).await, [""; 0]);
        let mut changed = TopologyWitness::new();
        changed.note_change();
        changed.look_at_bind(&bind_of_j(), "a", &apart.store);
        assert_eq!(found(&mut changed, &apart.store).await, [""; 0]);
        // A late bind that leaves nobody apart excuses the group only until it was seen.
        let mut seen = TopologyWitness::new();
        seen.look_at_bind(&bind_of_j(), "b", &world("n2").store);
        tokio::time::advance(UNSEEN).await;
        seen.look_at_bind(&bind_of_j(), "a", &apart.store);
        assert_eq!(found(&mut seen, &apart.store).await.len(), 1);
        // A pod that goes leaves the others together.
        let mut leaving = TopologyWitness::new();
        leaving.look_at_bind(&bind_of_j(), "a", &apart.store);
        assert_eq!(found(&mut leaving, &world("n2").store).await, [""; 0]);
    }

    #[tokio::test]
    async fn a_rack_changes_goes_and_comes_again() {
        let world = world("n1");
        set_rack(&world.store, 0, Some("^n[01]$")).unwrap();
        assert_eq!(what_is_apart(&world.store, "j"), None);
        set_rack(&world.store, 0, None).unwrap();
        set_rack(&world.store, 0, None).unwrap();
        assert!(what_is_apart(&world.store, "j").is_some());
        set_rack(&world.store, 0, Some("^n")).unwrap();
        assert_eq!(what_is_apart(&world.store, "j"), None);
    }
}

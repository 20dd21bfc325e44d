//! Jobs with a network topology on nodes in HyperNodes.

use std::sync::Arc;

use vc_engine::Engine;
use vc_model::{
    ClusterEvent, HyperNodeMember, HyperNodeRecord, NetworkTopology, PodGroupPhase, SubGroupPolicy,
};

use crate::cases::{Case, START_MICROS};
use crate::evictions;
use crate::load::{apply, base, events, gang, pending_gangs};
use crate::objects::{Gang, Shape, urgent};
use crate::tiers::{conf, tier};

pub(crate) const ALLOCATE: &str = conf!("enqueue, allocate, backfill", tier!(topology));
pub(crate) const GANG_PREEMPT: &str =
    conf!("enqueue, allocate, gangpreempt, backfill", tier!(topology));

const SUB_GROUP_SIZE: u64 = 10;
const SUB_GROUP: &str = "bench/group";
/// Nodes of a HyperNode of tier 1, and HyperNodes of tier 1 in one of tier 2.
const LEAF: u64 = 16;
const LEAVES: u64 = 8;
/// More than half of a node.
const ONE_PER_NODE: Shape = Shape { cpu_milli: 33_000, memory_gi: 4 };
const WHOLE_NODE: Shape = Shape { cpu_milli: 64_000, memory_gi: 4 };
const QUARTER: Shape = Shape { cpu_milli: 15_500, memory_gi: 62 };
/// Two gangs of a hundred fit into a HyperNode of tier 1.
const FOURTEENTH: Shape = Shape { cpu_milli: 4_500, memory_gi: 17 };
/// A tenth of a node.
const TENTH: Shape = Shape { cpu_milli: 6_400, memory_gi: 25 };

/// One job of many sub-groups, of which each fills one HyperNode.
pub(crate) fn load_sub_groups(case: &Case, engine: &mut Engine) {
    load_groups(case, engine, ONE_PER_NODE);
}

/// The same, with a pod of this shape in each sub-group.
fn load_groups(case: &Case, engine: &mut Engine, first: Shape) {
    let created_micros = START_MICROS - 3_600_000_000;
    let job = gang(0, case.n_pending, ONE_PER_NODE, PodGroupPhase::Inqueue, created_micros);
    let mut n_pods = 0;
    let job = events(&job, |_| None).into_iter().map(move |mut event| {
        match &mut event {
            ClusterEvent::PodGroupApplied(group) => {
                group.min_task_member = Default::default();
                group.sub_group_policies = vec![policy()];
            }
            ClusterEvent::PodApplied(pod) => {
                let value = (n_pods / SUB_GROUP_SIZE).to_string();
                pod.labels.insert(SUB_GROUP.into(), value.into());
                if n_pods % SUB_GROUP_SIZE == 0 {
                    pod.containers[0].requests = first.requests(1);
                }
                n_pods += 1;
            }
            _ => {}
        }
        event
    });
    let leaves = (0..case.n_nodes / SUB_GROUP_SIZE).map(|number| {
        let first = number * SUB_GROUP_SIZE;
        hyper_node(&leaf(number), 1, (first..first + SUB_GROUP_SIZE).map(node))
    });
    apply(engine, base(case).chain(leaves).chain(std::iter::once(listed())).chain(job));
}

/// The same job, while a pod runs on one node of each of the first HyperNodes, which is too full for
/// one of the job's then.
pub(crate) fn load_sub_groups_beside(case: &Case, engine: &mut Engine) {
    load_beside(case, engine, ONE_PER_NODE);
}

/// The same job and running pods, but one pod of each sub-group needs an empty node. Each pod alone
/// finds a place in every HyperNode, and no whole sub-group does.
pub(crate) fn load_masters_beside(case: &Case, engine: &mut Engine) {
    load_beside(case, engine, WHOLE_NODE);
}

fn load_beside(case: &Case, engine: &mut Engine, first: Shape) {
    let running = (0..case.n_running).flat_map(|number| {
        let created_micros = START_MICROS - 86_400_000_000;
        let one = gang(1 + number, 1, ONE_PER_NODE, PodGroupPhase::Running, created_micros);
        events(&one, |_| Some(number * SUB_GROUP_SIZE))
    });
    apply(engine, base(case).chain(running));
    load_groups(case, engine, first);
}

/// Gangs wait of which each fills one HyperNode of tier 1.
pub(crate) fn load_gangs(case: &Case, engine: &mut Engine) {
    let gangs = pending_gangs(case, PodGroupPhase::Inqueue, |_| QUARTER).map(hard);
    apply(engine, base(case).chain(tree(case.n_nodes)).chain(gangs));
}

/// Gangs wait of which two fill one HyperNode of tier 1.
pub(crate) fn load_small_gangs(case: &Case, engine: &mut Engine) {
    let gangs = pending_gangs(case, PodGroupPhase::Inqueue, |_| FOURTEENTH).map(hard);
    apply(engine, base(case).chain(tree(case.n_nodes)).chain(gangs));
}

/// Gangs wait that fit into each of some HyperNodes of tier 1.
pub(crate) fn load_flat_tree(case: &Case, engine: &mut Engine) {
    let (n_nodes, n_leaves) = (case.n_nodes, case.n_hyper_nodes);
    let leaves = (0..n_leaves).map(move |number| {
        let nodes = number * n_nodes / n_leaves..(number + 1) * n_nodes / n_leaves;
        hyper_node(&leaf(number), 1, nodes.map(node))
    });
    let gangs = pending_gangs(case, PodGroupPhase::Inqueue, |_| FOURTEENTH).map(hard);
    apply(engine, base(case).chain(leaves).chain(std::iter::once(listed())).chain(gangs));
}

/// The same gangs run.
pub(crate) fn load_running_gangs(case: &Case, engine: &mut Engine) {
    let n_leaves = case.n_nodes / LEAF;
    let running = (0..case.n_running / 100).flat_map(move |number| {
        let created_micros = START_MICROS - 86_400_000_000 + number as i64 * 1_000;
        let gang = gang(number, 100, FOURTEENTH, PodGroupPhase::Running, created_micros);
        let first = number / n_leaves * 100;
        events(&gang, |index| Some(number % n_leaves * LEAF + (first + index) % LEAF))
    });
    apply(engine, base(case).chain(tree(case.n_nodes)).chain(running.map(hard)));
}

/// Urgent gangs fit into one HyperNode of tier 1 each, once other pods are gone.
pub(crate) fn load_urgent_gangs(case: &Case, engine: &mut Engine) {
    let class = std::iter::once(ClusterEvent::PriorityClassApplied(urgent()));
    let waiting = (0..case.n_pending / case.gang_size).flat_map(|number| {
        let created_micros = START_MICROS - 3_600_000_000 + number as i64 * 1_000;
        let (number, phase) = (10_000_000 + number, PodGroupPhase::Inqueue);
        let whole = gang(number, case.gang_size, TENTH, phase, created_micros);
        events(&Gang { is_urgent: true, ..whole }, |_| None)
    });
    let running = evictions::running(case);
    let base = class.chain(base(case)).chain(tree(case.n_nodes));
    apply(engine, base.chain(running).chain(waiting.map(hard)));
}

/// One urgent gang fits into a HyperNode once other pods are gone.
pub(crate) fn load_urgent(case: &Case, engine: &mut Engine) {
    let class = std::iter::once(ClusterEvent::PriorityClassApplied(urgent()));
    let created_micros = START_MICROS - 3_600_000_000;
    let whole = gang(1_000_000, case.gang_size, TENTH, PodGroupPhase::Inqueue, created_micros);
    let waiting = events(&Gang { is_urgent: true, ..whole }, |_| None).into_iter().map(hard);
    let size = case.n_nodes / 40;
    let domains = (0..40).map(move |number| {
        hyper_node(&leaf(number), 1, (number * size..(number + 1) * size).map(node))
    });
    let domains = domains.chain(std::iter::once(listed()));
    let running = evictions::running(case);
    apply(engine, class.chain(base(case)).chain(domains).chain(running).chain(waiting));
}

/// Three tiers: leaves of 16 nodes, 8 leaves in one of tier 2, and one above all.
fn tree(n_nodes: u64) -> impl Iterator<Item = ClusterEvent> {
    let n_leaves = n_nodes.div_ceil(LEAF);
    let n_mids = n_leaves.div_ceil(LEAVES);
    let leaves = (0..n_leaves).map(move |number| {
        let nodes = number * LEAF..n_nodes.min((number + 1) * LEAF);
        hyper_node(&leaf(number), 1, nodes.map(node))
    });
    let mids = (0..n_mids).map(move |number| {
        let leaves = number * LEAVES..n_leaves.min((number + 1) * LEAVES);
        hyper_node(&mid(number), 2, leaves.map(|number| member(&leaf(number))))
    });
    let top = hyper_node("top", 3, (0..n_mids).map(|number| member(&mid(number))));
    leaves.chain(mids).chain([top, listed()])
}

fn hyper_node(
    name: &str,
    tier: i32,
    members: impl Iterator<Item = HyperNodeMember>,
) -> ClusterEvent {
    ClusterEvent::HyperNodeApplied(Box::new(HyperNodeRecord {
        name: name.into(),
        tier,
        members: members.collect(),
        ..HyperNodeRecord::default()
    }))
}

fn listed() -> ClusterEvent {
    ClusterEvent::HyperNodesListed { is_complete: true }
}

fn leaf(number: u64) -> String {
    format!("leaf-{number:05}")
}

fn mid(number: u64) -> String {
    format!("mid-{number:05}")
}

fn member(name: &str) -> HyperNodeMember {
    HyperNodeMember::HyperNode(name.into())
}

fn node(number: u64) -> HyperNodeMember {
    HyperNodeMember::Node(format!("node-{number:05}").into())
}

fn hard(mut event: ClusterEvent) -> ClusterEvent {
    if let ClusterEvent::PodGroupApplied(group) = &mut event {
        group.network_topology = Some(of_tier_1());
    }
    event
}

fn of_tier_1() -> NetworkTopology {
    NetworkTopology { soft: false, highest_tier_allowed: Some(1), highest_tier_name: Arc::from("") }
}

fn policy() -> SubGroupPolicy {
    SubGroupPolicy {
        name: "group".into(),
        network_topology: Some(of_tier_1()),
        sub_group_size: i32::try_from(SUB_GROUP_SIZE).ok(),
        min_sub_groups: 1,
        label_selector: None,
        match_label_keys: vec![SUB_GROUP.into()],
    }
}

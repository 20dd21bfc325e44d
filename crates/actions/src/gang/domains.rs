//! The domains in which a job may have pods evicted: the HyperNodes of its gradient, or the whole
//! cluster for a job without a network topology.
//! Specification: actions.md 9.3.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use vc_framework::{GradientPurpose, GradientQuery, SessionState};
use vc_model::{HyperNodeId, HyperNodeTree, JobId, NodeId};
use vc_resource::Resource;

use super::GangEvictionAttempt;

/// One domain with its room without evictions.
pub(super) struct EvictionDomain {
    pub(super) id: HyperNodeId,
    pub(super) nodes: Vec<NodeId>,
    /// Σ Idle + Releasing. A node that is used beyond what it offers takes nothing from the others.
    pub(super) room: Resource,
}

impl EvictionDomain {
    fn of(session: &SessionState<'_>, id: HyperNodeId) -> Self {
        let nodes = nodes(session, id);
        let mut room = Resource::default();
        nodes.iter().for_each(|&node| add_room(session, node, &mut room));
        Self { id, nodes, room }
    }
}

/// Returns the nodes of a HyperNode, without those that a hard shard forbids.
pub(super) fn nodes(session: &SessionState<'_>, id: HyperNodeId) -> Vec<NodeId> {
    let all = match id {
        HyperNodeTree::ROOT => &session.info().nodes,
        id => &session.info().hyper_nodes[id].nodes,
    };
    let nodes = all.iter().copied();
    nodes.filter(|&node| !session.is_outside_shard(node)).collect()
}

fn add_room(session: &SessionState<'_>, node: NodeId, room: &mut Resource) {
    let mut of_node = session.nodes[node].idle.clone();
    of_node.add(&session.nodes[node].releasing);
    clamp(&mut of_node);
    room.add(&of_node);
}

/// Sets negative amounts to 0: a node takes nothing from the others.
fn clamp(room: &mut Resource) {
    for dim in room.dims().filter(|&dim| room.get(dim) < 0).collect::<Vec<_>>() {
        room.set(dim, 0);
    }
}

/// Returns the domains to try, each once, widest first.
///
/// # Errors
/// Why there is none.
pub(super) fn domains(
    session: &SessionState<'_>,
    attempt: &GangEvictionAttempt,
) -> Result<Vec<EvictionDomain>, String> {
    if !session.view().is_in_hyper_nodes(attempt.job) {
        return Ok(vec![EvictionDomain::of(session, HyperNodeTree::ROOT)]);
    }
    let known: RefCell<FxHashMap<NodeId, Resource>> = RefCell::default();
    let may_suffice = |id: HyperNodeId| {
        let (mut known, mut room) = (known.borrow_mut(), Resource::default());
        let nodes = nodes(session, id);
        // Mostly this tells already that too much is promised to others, and reads no pods.
        if !attempt.need.fits(&not_promised(session, &nodes)) {
            return false;
        }
        for node in nodes {
            room.add(known.entry(node).or_insert_with(|| most_room(session, attempt, node)));
        }
        attempt.need.fits(&room)
    };
    let gradient = session.plugins().gradient(
        session.view(),
        GradientQuery {
            job: attempt.job,
            sub_job: None,
            under: HyperNodeTree::ROOT,
            purpose: GradientPurpose::Evict { may_suffice: &may_suffice },
        },
    );
    if let Some(problem) = gradient.problem {
        return Err(problem.text);
    }
    let mut ids: Vec<HyperNodeId> = Vec::new();
    for id in gradient.groups.into_iter().flatten() {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let max_domains = attempt.settings(session).max_domains;
    ids.truncate(usize::try_from(max_domains).unwrap_or(usize::MAX));
    let domains = ids.into_iter().map(|id| EvictionDomain::of(session, id));
    Ok(domains.filter(|domain| !domain.nodes.is_empty()).collect())
}

/// Returns what the nodes have in all, without what is promised to pods. Room with all candidates
/// gone is never more.
fn not_promised(session: &SessionState<'_>, nodes: &[NodeId]) -> Resource {
    let mut room = Resource::default();
    for &node in nodes {
        let mut of_node = session.nodes[node].allocatable.clone();
        of_node.sub(&session.nodes[node].pipelined);
        clamp(&mut of_node);
        room.add(&of_node);
    }
    room
}

/// Returns the room of a node with all its candidates gone. What is promised to other pods is not
/// room.
fn most_room(session: &SessionState<'_>, attempt: &GangEvictionAttempt, node: NodeId) -> Resource {
    let mut room = session.nodes[node].future_idle();
    let tasks = session.nodes[node].tasks.iter();
    let candidates = tasks.filter(|&&task| attempt.may_lose(session, task));
    candidates.for_each(|&task| room.add(session.request(task)));
    clamp(&mut room);
    room
}

/// Returns the HyperNodes of a domain to try for a sub-job, widest first.
pub(super) fn of_sub_job(
    session: &SessionState<'_>,
    job: JobId,
    sub_job: usize,
    domain: HyperNodeId,
) -> Vec<HyperNodeId> {
    let query = GradientQuery {
        job,
        sub_job: Some(sub_job),
        under: domain,
        purpose: GradientPurpose::Evict { may_suffice: &|_| true },
    };
    let gradient = session.plugins().gradient(session.view(), query);
    gradient.groups.into_iter().flatten().collect()
}

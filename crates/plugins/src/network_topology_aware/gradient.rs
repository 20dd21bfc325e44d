//! HyperNodeGradient: which HyperNodes a job or sub-job may use, in the order of tiers.
//! Specification: plugins-nodes.md 15.7, actions.md 2.12, A18.

use std::collections::BTreeMap;

use vc_framework::{Gradient, GradientPurpose, GradientQuery, SessionView};
use vc_model::{HyperNodeId, HyperNodeTree, JobId, TaskStatus};
use vc_resource::{Dim, Resource};

use super::totals::{HyperNodeTotals, Totals};

/// The HyperNodes at or below `under`, lowest tier first, or for evictions highest tier first and at
/// most `max_evict` of them. A HyperNode qualifies if its tier is allowed and, as long as nothing is
/// placed, if its room suffices for the least request. For evictions the room is all that its nodes
/// have.
pub(super) fn gradient(
    view: SessionView<'_>,
    query: GradientQuery<'_>,
    totals: &mut HyperNodeTotals,
    max_evict: usize,
) -> Gradient {
    let GradientQuery { job, under, purpose, .. } = query;
    let tree = &*view.info.hyper_nodes;
    let (limit, allocated, request) = match query.sub_job {
        None => (
            view.highest_tier(job),
            view.allocated_hyper_node_of_job(job),
            view.cluster.jobs[job].min_resources(),
        ),
        Some(index) => (
            view.highest_tier_of_sub_job(job, index),
            view.allocated_hyper_node(job, index),
            pending_request(view, job, index),
        ),
    };
    let Some(limit) = limit else { return Gradient::one(under) };
    let from = match search_root(tree, under, allocated, limit) {
        Ok(from) => from,
        Err(problem) => return Gradient::none(problem),
    };
    let mut by_tier: BTreeMap<i32, Vec<HyperNodeId>> = BTreeMap::new();
    let mut closest: Option<(HyperNodeId, Dim)> = None;
    let mut lacks_candidates = false;
    for id in tree.below(from).into_iter().filter(|&id| tree[id].tier <= limit) {
        let lacking = match purpose {
            _ if allocated.is_some() => None,
            GradientPurpose::Allocate => lacking(view, totals.of(view, id), &request),
            GradientPurpose::Evict { .. } => {
                request.first_lacking(&totals.of(view, id).allocatable, &view.cluster.dims)
            }
        };
        match (lacking, purpose) {
            (Some(dim), _) => closest = closest.or(Some((id, dim))),
            (None, GradientPurpose::Evict { may_suffice }) if !may_suffice(id) => {
                lacks_candidates = true;
            }
            (None, _) => by_tier.entry(tree[id].tier).or_default().push(id),
        }
    }
    if by_tier.is_empty() && lacks_candidates {
        let problem =
            format!("evictions make room for all pods in no HyperNode of tier {limit} or lower");
        return Gradient::none(problem);
    }
    if by_tier.is_empty() {
        return Gradient::none(nothing_allowed(view, from, limit, closest));
    }
    let mut groups: Vec<Vec<HyperNodeId>> = by_tier.into_values().collect();
    groups.iter_mut().for_each(|group| group.sort_unstable());
    if let GradientPurpose::Evict { .. } = purpose {
        groups = widest_first(groups, max_evict);
    }
    Gradient { groups, problem: None }
}

/// Reverses the groups, and keeps so many HyperNodes in total: the last ones of a group that does
/// not fit.
fn widest_first(groups: Vec<Vec<HyperNodeId>>, max_evict: usize) -> Vec<Vec<HyperNodeId>> {
    let mut n_left = max_evict;
    let mut kept = Vec::new();
    for mut group in groups.into_iter().rev() {
        if n_left == 0 {
            break;
        }
        group.drain(..group.len().saturating_sub(n_left));
        n_left -= group.len();
        kept.push(group);
    }
    kept
}

/// Returns the HyperNode below which to search: `under`, but near the pods that are placed.
fn search_root(
    tree: &HyperNodeTree,
    under: HyperNodeId,
    allocated: Option<HyperNodeId>,
    limit: i32,
) -> Result<HyperNodeId, String> {
    let Some(allocated) = allocated else { return Ok(under) };
    let allowed = tree.ancestors(allocated).filter(|&id| tree[id].tier <= limit).last();
    let Some(highest) = allowed else {
        let row = &tree[allocated];
        return Err(format!(
            "its placed pods need HyperNode {} of tier {}, and tier {limit} is the highest allowed",
            row.name, row.tier
        ));
    };
    match tree.lca(under, highest) {
        both if both == highest => Ok(under),
        both if both == under => Ok(highest),
        _ => {
            let (placed, asked) = (&tree[highest].name, &tree[under].name);
            Err(format!("its placed pods are in HyperNode {placed}, not in {asked}"))
        }
    }
}

fn pending_request(view: SessionView<'_>, job: JobId, sub_job: usize) -> Resource {
    let mut sum = Resource::default();
    for &task in &view.cluster.jobs[job].sub_jobs[sub_job].tasks {
        if view.cluster.tasks[task].status == TaskStatus::Pending {
            sum.add(view.cluster.request(task));
        }
    }
    sum
}

/// Returns a dimension of which the HyperNode has too little, idle and with what is being released.
/// `None` if the request may fit.
fn lacking(view: SessionView<'_>, totals: &Totals, request: &Resource) -> Option<Dim> {
    if request.fits(&totals.idle) {
        return None;
    }
    request.first_lacking(&totals.future_idle, &view.cluster.dims)
}

fn nothing_allowed(
    view: SessionView<'_>,
    from: HyperNodeId,
    limit: i32,
    closest: Option<(HyperNodeId, Dim)>,
) -> String {
    let tree = &*view.info.hyper_nodes;
    let place = match from == HyperNodeTree::ROOT || closest.is_some_and(|(id, _)| id == from) {
        true => String::new(),
        false => format!(" in {}", tree[from].name),
    };
    match closest {
        None => format!("no HyperNode{place} has tier {limit} or a lower one"),
        Some((id, dim)) => format!(
            "no HyperNode{place} of tier {limit} or lower has room for all pods: {} of tier {} has \
             too little {}",
            tree[id].name,
            tree[id].tier,
            view.cluster.dims.name(dim)
        ),
    }
}

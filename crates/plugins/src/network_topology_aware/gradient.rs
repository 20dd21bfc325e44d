//! HyperNodeGradient: which HyperNodes a job or sub-job may use, in the order of tiers.
//! Specification: plugins-nodes.md 15.7, actions.md 2.12, A18.

use std::collections::BTreeMap;

use vc_framework::{Gradient, GradientPurpose, GradientQuery, SessionView};
use vc_model::{HyperNode, HyperNodeId, HyperNodeTree, JobId, TaskStatus};
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
        let unmet = UnmetGradient { query, from, limit, request: &request };
        return Gradient::none(unmet.problem(view, totals, closest));
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

/// What no HyperNode has room for.
struct UnmetGradient<'a> {
    query: GradientQuery<'a>,
    from: HyperNodeId,
    limit: i32,
    request: &'a Resource,
}

impl UnmetGradient<'_> {
    /// Returns what the HyperNode that comes closest lacks. If no allowed HyperNode would have room
    /// with all its pods gone, the text says which field to change.
    fn problem(
        &self,
        view: SessionView<'_>,
        totals: &mut HyperNodeTotals,
        closest: Option<(HyperNodeId, Dim)>,
    ) -> String {
        let (tree, limit) = (&*view.info.hyper_nodes, self.limit);
        let place = match self.from {
            from if from == HyperNodeTree::ROOT => String::new(),
            from if closest.is_some_and(|(id, _)| id == from) => String::new(),
            from => format!(" in {}", tree[from].name),
        };
        let Some((closest, dim)) = closest else {
            return format!("no HyperNode{place} has tier {limit} or a lower one");
        };
        let mut lacking_when_empty =
            |id| self.request.first_lacking(&totals.of(view, id).allocatable, &view.cluster.dims);
        let mut allowed = tree.below(self.from).into_iter().filter(|&id| tree[id].tier <= limit);
        let never = allowed.all(|id| lacking_when_empty(id).is_some());
        let never = never.then(|| lacking_when_empty(closest)).flatten();
        let (HyperNode { name, tier, .. }, dim) = (&tree[closest], never.unwrap_or(dim));
        let text = format!(
            "no HyperNode{place} of tier {limit} or lower has room for all pods: {name} of tier \
             {tier} has too little {}",
            view.cluster.dims.name(dim)
        );
        let Some(_) = never else { return text };
        let field = topology_field(view, self.query);
        format!("{text} even when empty. Allow a higher tier in {field}, or ask for less")
    }
}

/// Returns the field of the PodGroup that limits the tier.
fn topology_field(view: SessionView<'_>, query: GradientQuery<'_>) -> String {
    let job = &view.cluster.jobs[query.job];
    match query.sub_job.map(|index| job.sub_jobs[index].policy) {
        Some(Some(policy)) => format!("spec.subGroupPolicy[{policy}].networkTopology"),
        _ => "spec.networkTopology".to_owned(),
    }
}

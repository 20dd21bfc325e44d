//! HyperNodeGradient: which HyperNodes a job or sub-job may use, in the order of tiers.
//! Specification: plugins-nodes.md 15.7, actions.md 2.12, A18.

use vc_framework::{Gradient, GradientProblem, GradientPurpose, GradientQuery, SessionView};
use vc_model::{HyperNode, HyperNodeId, HyperNodeTree, JobId, TaskStatus};
use vc_resource::{Dim, Resource};

use super::totals::Totals;

/// The HyperNodes at or below `under`, lowest tier first, or for evictions highest tier first and at
/// most `max_evict` of them. A HyperNode qualifies if its tier is allowed and, as long as nothing is
/// placed, if its room suffices for the least request. For evictions the room is all that its nodes
/// have.
pub(super) fn gradient(
    view: SessionView<'_>,
    query: GradientQuery<'_>,
    totals: &Totals,
    max_evict: usize,
) -> Gradient {
    let GradientQuery { under, purpose, .. } = query;
    let tree = &*view.info.hyper_nodes;
    let Some(terms) = Terms::of(view, query.job, query.sub_job) else {
        return Gradient::one(under);
    };
    let from = match terms.search_root(tree, under) {
        Ok(from) => from,
        Err(text) => return Gradient::none(GradientProblem { text, field: None }),
    };
    let lacks_nothing = |id: HyperNodeId| terms.lacking(view, totals, id, purpose).is_none();
    let allowed = tree.below_by_tier(from, terms.limit);
    let allowed = allowed.iter().copied();
    let found: Vec<HyperNodeId> = match purpose {
        GradientPurpose::Allocate => allowed.filter(|&id| lacks_nothing(id)).collect(),
        GradientPurpose::Evict { may_suffice } => {
            // The last ones of the highest tiers. The others are not looked at.
            let suffices = |id: &HyperNodeId| lacks_nothing(*id) && may_suffice(*id);
            let mut last: Vec<_> = allowed.rev().filter(suffices).take(max_evict).collect();
            last.reverse();
            last
        }
    };
    if found.is_empty() {
        let unmet = UnmetGradient { query, from, terms: &terms };
        return Gradient::none(unmet.problem(view, totals));
    }
    let tiers = found.chunk_by(|&l, &r| tree[l].tier == tree[r].tier);
    let mut groups: Vec<Vec<HyperNodeId>> = tiers.map(<[HyperNodeId]>::to_vec).collect();
    if let GradientPurpose::Evict { .. } = purpose {
        groups.reverse();
    }
    Gradient { groups, problem: None }
}

/// The HyperNodes of the gradients of a sub-job under each of these, with its place.
pub(super) fn gradients(
    view: SessionView<'_>,
    (job, sub_job): (JobId, usize),
    totals: &Totals,
    under: &[HyperNodeId],
) -> Vec<(usize, HyperNodeId)> {
    let tree = &*view.info.hyper_nodes;
    let under = under.iter().copied().enumerate();
    let Some(terms) = Terms::of(view, job, Some(sub_job)) else { return under.collect() };
    let qualifies = |id: HyperNodeId| {
        tree[id].tier <= terms.limit
            && terms.lacking(view, totals, id, GradientPurpose::Allocate).is_none()
    };
    let (mut found, mut below) = (Vec::new(), Vec::new());
    for (place, under) in under {
        let Ok(from) = terms.search_root(tree, under) else { continue };
        below.clear();
        tree.add_below(from, &mut below);
        found.extend(below.iter().filter(|&&id| qualifies(id)).map(|&id| (place, id)));
    }
    found
}

/// What decides which HyperNodes a job or a sub-job may use.
struct Terms {
    /// The highest tier that is allowed.
    limit: i32,
    /// The smallest HyperNode with all pods that are placed.
    allocated: Option<HyperNodeId>,
    /// The least request.
    request: Resource,
}

impl Terms {
    /// `None` if every HyperNode is allowed.
    fn of(view: SessionView<'_>, id: JobId, sub_job: Option<usize>) -> Option<Self> {
        let job = &view.cluster.jobs[id];
        let Some(index) = sub_job else {
            let (limit, request) = (view.highest_tier(id)?, job.min_resources());
            return Some(Self { limit, allocated: view.allocated_hyper_node_of_job(id), request });
        };
        let request = match job.sub_jobs.len() {
            1 => Resource::clone(&job.pending_request),
            _ => pending_request(view, id, index),
        };
        let limit = view.highest_tier_of_sub_job(id, index)?;
        Some(Self { limit, allocated: view.allocated_hyper_node(id, index), request })
    }

    /// Returns a dimension of which the HyperNode has too little: idle and with what is being
    /// released, or for evictions all that its nodes have. `None` if the request may fit, or if
    /// pods are placed already.
    fn lacking(
        &self,
        view: SessionView<'_>,
        totals: &Totals,
        id: HyperNodeId,
        purpose: GradientPurpose<'_>,
    ) -> Option<Dim> {
        let room = match purpose {
            _ if self.allocated.is_some() => return None,
            GradientPurpose::Allocate if self.request.fits(&totals.idle[id.index()]) => {
                return None;
            }
            GradientPurpose::Allocate => &totals.future_idle[id.index()],
            GradientPurpose::Evict { .. } => &totals.allocatable[id.index()],
        };
        self.request.first_lacking(room, &view.cluster.dims)
    }

    /// Returns the HyperNode below which to search: `under`, but near the pods that are placed.
    fn search_root(&self, tree: &HyperNodeTree, under: HyperNodeId) -> Result<HyperNodeId, String> {
        let (limit, Some(allocated)) = (self.limit, self.allocated) else { return Ok(under) };
        let allowed = tree.ancestors(allocated).filter(|&id| tree[id].tier <= limit).last();
        let Some(highest) = allowed else {
            let row = &tree[allocated];
            return Err(format!(
                "its placed pods need HyperNode {} of tier {}, and tier {limit} is the highest \
                 allowed",
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
}

/// Returns the sum of the requests of the Pending tasks of a sub-job.
fn pending_request(view: SessionView<'_>, job: JobId, sub_job: usize) -> Resource {
    let mut sum = Resource::default();
    for &task in &view.cluster.jobs[job].sub_jobs[sub_job].tasks {
        if view.cluster.tasks[task].status == TaskStatus::Pending {
            sum.add(view.cluster.request(task));
        }
    }
    sum
}

/// A question for which no HyperNode is left.
struct UnmetGradient<'a> {
    query: GradientQuery<'a>,
    from: HyperNodeId,
    terms: &'a Terms,
}

impl UnmetGradient<'_> {
    /// Returns what the first allowed HyperNode with too little lacks. If no allowed HyperNode would
    /// have room with all its pods gone, the text says which field to change.
    fn problem(&self, view: SessionView<'_>, totals: &Totals) -> GradientProblem {
        let (tree, limit) = (&*view.info.hyper_nodes, self.terms.limit);
        let mut allowed = tree.below(self.from);
        allowed.retain(|&id| tree[id].tier <= limit);
        let lacking = |id: HyperNodeId| {
            self.terms.lacking(view, totals, id, self.query.purpose).map(|dim| (id, dim))
        };
        let closest = allowed.iter().find_map(|&id| lacking(id));
        let place = match self.from {
            from if from == HyperNodeTree::ROOT => String::new(),
            from if closest.is_some_and(|(id, _)| id == from) => String::new(),
            from => format!(" in {}", tree[from].name),
        };
        // Those that lack nothing have too few candidates for evictions.
        if allowed.iter().any(|&id| lacking(id).is_none()) {
            let text = format!(
                "evictions make room for all pods in no HyperNode of tier {limit} or lower"
            );
            return GradientProblem { text, field: None };
        }
        let Some((closest, dim)) = closest else {
            let field = topology_field(view, self.query);
            let text = format!(
                "no HyperNode{place} has tier {limit} or a lower one. Allow a higher tier in {field}"
            );
            return GradientProblem { text, field: None };
        };
        let lacking_when_empty = |id: HyperNodeId| {
            let allocatable = &totals.allocatable[id.index()];
            self.terms.request.first_lacking(allocatable, &view.cluster.dims)
        };
        // A trial looks below one HyperNode; another one may hold all pods when it is empty.
        let mut everywhere = tree.below(HyperNodeTree::ROOT);
        everywhere.retain(|&id| tree[id].tier <= limit);
        let never = everywhere.into_iter().all(|id| lacking_when_empty(id).is_some());
        let never = never.then(|| lacking_when_empty(closest)).flatten();
        let (HyperNode { name, tier, .. }, dim) = (&tree[closest], never.unwrap_or(dim));
        let text = format!(
            "no HyperNode{place} of tier {limit} or lower has room for all pods: {name} of tier \
             {tier} has too little {}",
            view.cluster.dims.name(dim)
        );
        let Some(_) = never else { return GradientProblem { text, field: None } };
        let field = topology_field(view, self.query);
        let text =
            format!("{text} even when empty. Allow a higher tier in {field}, or ask for less");
        GradientProblem { text, field: Some(field) }
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

//! The quota trees as users see them.
//! Specification: cohort.md B.2, B.8.

use vc_cohort::{Forest, QuotaAmount, QuotaNode, Slot, is_unlimited};
use vc_framework::{QuotaAmounts, QuotaUse, SessionView};
use vc_resource::{Dim, Dims, Resource};

/// Formats an amount as a quantity, or as `unlimited`.
pub(super) fn amount_text(amount: QuotaAmount, dim: Dim, dims: &Dims) -> String {
    if is_unlimited(amount) {
        return "unlimited".to_owned();
    }
    let whole = amount.clamp(i64::MIN.into(), i64::MAX.into());
    let mut resource = Resource::new();
    resource.set(dim, i64::try_from(whole).unwrap_or(i64::MAX));
    let texts = resource.to_quantities(dims);
    let of_dim = texts.into_iter().find(|(name, _)| name == dims.name(dim));
    of_dim.map_or_else(|| whole.to_string(), |(_, text)| text)
}

/// Returns the quota and usage of every queue and cohort, by path.
pub(super) fn quota_use(view: SessionView<'_>, forest: &Forest, is_fair: bool) -> Vec<QuotaUse> {
    let of_node = |node: QuotaNode| QuotaUse {
        queue: forest.name(node).clone(),
        path: forest.path_text(node),
        is_leaf: forest.is_queue(node),
        amounts: amounts(forest, node, &view.cluster.dims),
        share: is_fair.then(|| forest.share(node).value()),
    };
    let mut all: Vec<QuotaUse> = forest.nodes().map(of_node).collect();
    all.sort_by(|l, r| l.path.cmp(&r.path));
    all
}

/// Returns the amounts of a node. A resource without quota anywhere in the tree is left out.
fn amounts(forest: &Forest, node: QuotaNode, dims: &Dims) -> Vec<QuotaAmounts> {
    let is_accounted = |slot: &Slot| !is_unlimited(forest.nominal(node, *slot));
    forest
        .slots()
        .iter()
        .filter(is_accounted)
        .map(|slot| of_slot(forest, node, slot, dims))
        .collect()
}

fn of_slot(forest: &Forest, node: QuotaNode, slot: Slot, dims: &Dims) -> QuotaAmounts {
    let dim = forest.slots().dim(slot);
    let text = |amount: QuotaAmount| amount_text(amount, dim, dims);
    let (owned, used) = (forest.subtree(node, slot), forest.usage(node, slot));
    let available = forest.available(node, slot);
    QuotaAmounts {
        resource: dims.name(dim).to_owned(),
        nominal: text(forest.total(node, slot)),
        used: text(forest.used(node, slot)),
        borrowed: text((used - owned).max(0)),
        lent: text((owned - used - available).max(0)),
        available: text(available),
    }
}

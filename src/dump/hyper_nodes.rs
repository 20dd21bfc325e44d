//! HyperNodes of a dump, as four documents. Specification: core.md 1.7.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use vc_model::{Cluster, HyperNodeId, HyperNodeTree};

use super::set;

/// Names of HyperNodes by tier.
pub(super) fn by_tier(tree: &HyperNodeTree) -> BTreeMap<String, Value> {
    let mut tiers: BTreeMap<i32, Vec<&str>> = BTreeMap::new();
    for id in tree.real() {
        tiers.entry(tree[id].tier).or_default().push(&tree[id].name);
    }
    let row = |(tier, names): (i32, Vec<&str>)| (tier.to_string(), set(names.into_iter()));
    tiers.into_iter().map(row).collect()
}

/// Tiers by name.
pub(super) fn tiers(cluster: &Cluster) -> impl Iterator<Item = (String, Value)> {
    let named: BTreeMap<String, Value> = cluster
        .hyper_nodes
        .records()
        .filter(|record| !record.tier_name.is_empty())
        .map(|record| (record.tier_name.to_string(), json!(record.tier)))
        .collect();
    named.into_iter()
}

/// Names of nodes by HyperNode.
pub(super) fn nodes<'a>(
    cluster: &'a Cluster,
    tree: &'a HyperNodeTree,
) -> impl Iterator<Item = (String, Value)> + 'a {
    tree.real().map(|id| {
        let names = tree[id].nodes.iter().map(|&node| &*cluster.nodes[node].name);
        (tree[id].name.to_string(), set(names))
    })
}

/// HyperNodes by name.
pub(super) fn records(tree: &HyperNodeTree) -> impl Iterator<Item = (String, Value)> + '_ {
    tree.real().map(|id| {
        let row = &tree[id];
        let parent = row.parent.filter(|&parent| parent != HyperNodeTree::ROOT);
        let name = |id: HyperNodeId| tree[id].name.to_string();
        let children: Map<String, Value> =
            row.children.iter().map(|&child| (name(child), json!({}))).collect();
        let record = json!({
            "Name": &*row.name,
            "Tier": row.tier,
            "Parent": parent.map(name).unwrap_or_default(),
            "Children": children,
        });
        (row.name.to_string(), record)
    })
}

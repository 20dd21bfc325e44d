//! The tree of HyperNodes: core.md 65 and 67, and members of each kind.

use std::sync::Arc;

use vc_model::fixture::{self, cluster};
use vc_model::{Cluster, ClusterEvent, HyperNodeId, HyperNodeTree, NodeId};

fn named(tree: &HyperNodeTree, name: &str) -> HyperNodeId {
    tree.real().find(|&id| &*tree[id].name == name).unwrap()
}

/// Names of the nodes of a HyperNode.
fn nodes(cluster: &Cluster, tree: &HyperNodeTree, name: &str) -> String {
    let names: Vec<&str> =
        tree[named(tree, name)].nodes.iter().map(|&node| &*cluster.nodes[node].name).collect();
    names.join(" ")
}

fn problems(tree: &HyperNodeTree) -> Vec<String> {
    tree.problems().iter().map(ToString::to_string).collect()
}

fn tree(cluster: &mut Cluster, text: &str) -> Arc<HyperNodeTree> {
    fixture::apply(cluster, text);
    cluster.hyper_node_tree()
}

#[test]
fn core_65_virtual_root() {
    let mut cluster = cluster("node n1\nnode n2");
    let empty = cluster.hyper_node_tree();
    assert!(empty.is_empty());
    assert_eq!((empty.tiers(), empty[HyperNodeTree::ROOT].nodes.len()), ((1, 1), 2));
    let tiers = tree(&mut cluster, "hypernode a tier=1 node=n1\nhypernode c tier=3 member=a");
    assert_eq!(tiers.tiers(), (1, 4));
    assert_eq!(tiers[named(&tiers, "c")].parent, Some(HyperNodeTree::ROOT));
    assert_eq!(nodes(&cluster, &tiers, "c"), "n1");
}

#[test]
fn core_67_two_parents_and_cycles_leave_the_rest_in_force() {
    let mut cluster = cluster("node n1\nnode n2");
    let claimed = tree(
        &mut cluster,
        "hypernode a node=n1
        hypernode b tier=2 member=a created=60
        hypernode c tier=2 member=a node=n2 created=30",
    );
    let parent = |tree: &HyperNodeTree, name: &str| {
        let parent = tree[named(tree, name)].parent.unwrap();
        tree[parent].name.to_string()
    };
    assert_eq!(parent(&claimed, "a"), "c", "the one that was created first keeps it");
    let second = "HyperNode a already has the parent c, so it is no member of b";
    assert_eq!(problems(&claimed), [second]);
    assert_eq!(nodes(&cluster, &claimed, "c"), "n1 n2");
    let withdrawn = tree(&mut cluster, "hypernode c tier=2 node=n2 created=30");
    assert_eq!((parent(&withdrawn, "a").as_str(), problems(&withdrawn).len()), ("b", 0));
    let cycle = tree(&mut cluster, "hypernode a node=n1 member=b created=90");
    assert_eq!(parent(&cycle, "a"), "b");
    assert_eq!(problems(&cycle), ["HyperNode b is a or above it, so it is no member: a cycle"]);
}

#[test]
fn members_by_name_pattern_and_label_follow_the_nodes() {
    let mut cluster = cluster("node n1 rack=a\nnode n2 rack=b\nnode other");
    let text = "hypernode exact node=n1 node=later
        hypernode pattern pattern=n[0-9]
        hypernode labels label.rack=a";
    let before = tree(&mut cluster, text);
    let all = |cluster: &Cluster, tree: &HyperNodeTree| {
        ["exact", "pattern", "labels"].map(|name| nodes(cluster, tree, name))
    };
    assert_eq!(all(&cluster, &before), ["n1", "n1 n2", "n1"]);
    let after = tree(&mut cluster, "node later rack=a\nnode n2 rack=a");
    assert_eq!(all(&cluster, &after), ["later n1", "n1 n2", "later n1 n2"]);
    cluster.apply(ClusterEvent::NodeDeleted { name: "n1".into() });
    let left = cluster.hyper_node_tree();
    assert_eq!(all(&cluster, &left), ["later", "n2", "later n2"]);
    assert!(Arc::ptr_eq(&left, &cluster.hyper_node_tree()), "nothing changed");
}

#[test]
fn what_contains_nodes() {
    let text = "node n1\nnode n2\nnode n3\nnode n4
        hypernode a node=n1 node=n2
        hypernode b node=n3
        hypernode zone tier=2 member=a member=b";
    let mut cluster = cluster(text);
    let tree = cluster.hyper_node_tree();
    let around = |names: &[&str]| {
        let nodes: Vec<NodeId> = names.iter().map(|name| fixture::node(&cluster, name)).collect();
        tree.around(nodes.iter().copied()).map(|id| tree[id].name.to_string())
    };
    assert_eq!(around(&[]), None);
    assert_eq!(around(&["n1", "n2"]).as_deref(), Some("a"));
    assert_eq!(around(&["n1", "n3"]).as_deref(), Some("zone"));
    assert_eq!(around(&["n1", "n4"]).as_deref(), Some("<cluster-top-hypernode>"));
}

#[test]
fn a_node_in_two_branches_is_reported_and_counts_in_both() {
    let text = "node n1\nnode n2\nnode n3
        hypernode a node=n1 node=n2
        hypernode b node=n2 node=n3";
    let mut cluster = cluster(text);
    let tree = cluster.hyper_node_tree();
    assert_eq!(problems(&tree), ["node n2 is in b and in a, and neither contains the other"]);
    let both = ["n2", "n3"].map(|name| fixture::node(&cluster, name));
    assert_eq!(tree.around(both.iter().copied()), Some(named(&tree, "b")));
}

#[test]
fn unknown_members_and_tiers_are_reported() {
    let text = "hypernode a tier=2 member=gone member=b\nhypernode b tier=2";
    let tree = cluster(text).hyper_node_tree();
    let unknown = "HyperNode gone, a member of a, does not exist";
    let tiers = "HyperNode b of tier 2 is a member of a of tier 2";
    assert_eq!(problems(&tree), [tiers, unknown]);
}

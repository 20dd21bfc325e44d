//! Node shards: the set that is ours, and when its status is to be written.

use std::sync::Arc;

use vc_model::{Cluster, ClusterEvent, NodeShardRecord, Settings, Sharding, ShardingMode};

use crate::support::*;

fn names(text: &str) -> Vec<Arc<str>> {
    text.split_whitespace().map(Arc::from).collect()
}

fn shard(name: &str, desired: &str, in_use: &str) -> ClusterEvent {
    ClusterEvent::NodeShardApplied(Box::new(NodeShardRecord {
        name: name.into(),
        nodes_desired: names(desired),
        nodes_in_use: names(in_use),
        ..NodeShardRecord::default()
    }))
}

fn deleted(name: &str) -> ClusterEvent {
    ClusterEvent::NodeShardDeleted { name: name.into() }
}

/// Nodes n1 to n3; our NodeShard is called `s`.
fn cluster(mode: ShardingMode) -> Cluster {
    let sharding = Sharding { mode, name: "s".into() };
    let mut cluster = Cluster::new(Settings { sharding, ..Settings::default() });
    for name in ["n1", "n2", "n3"] {
        apply_node(&mut cluster, node(name, "cpu=1"));
    }
    cluster
}

fn ours(cluster: &Cluster) -> String {
    let nodes = cluster.nodes_by_name().iter().map(|&id| &cluster.nodes[id]);
    let ours = nodes.filter(|node| node.in_shard).map(|node| &*node.name);
    ours.collect::<Vec<_>>().join(" ")
}

/// `inUse|toAdd` of the status that is to be written; what is written is taken as seen.
fn written(cluster: &mut Cluster) -> String {
    let Some(shard) = cluster.node_shard_to_write() else { return "-".to_owned() };
    let text = format!("{}|{}", shard.nodes_in_use.join(" "), shard.nodes_to_add.join(" "));
    assert_eq!(shard.nodes_to_remove, names(""));
    cluster.node_shard_written(shard);
    text
}

#[test]
fn core_95_desired_nodes_without_those_in_use_elsewhere() {
    let mut cluster = cluster(ShardingMode::Hard);
    assert!(cluster.lacks_node_shard());
    apply(&mut cluster, shard("other", "", "n2"));
    assert_eq!((ours(&cluster), written(&mut cluster)), ("".into(), "-".into()));
    apply(&mut cluster, shard("s", "n3 n1 n2 n1", ""));
    assert!(!cluster.lacks_node_shard());
    assert_eq!((ours(&cluster), written(&mut cluster)), ("n1 n3".into(), "n1 n3|n2".into()));
    assert_eq!(written(&mut cluster), "-");
    apply(&mut cluster, shard("other", "", ""));
    assert_eq!(written(&mut cluster), "n1 n2 n3|");
    apply(&mut cluster, shard("s", "n1 n2 n3", "n3 n2 n1"));
    assert_eq!(written(&mut cluster), "-", "equal as sets");
}

#[test]
fn without_our_shard_the_last_set_stays() {
    let mut cluster = cluster(ShardingMode::Soft);
    apply(&mut cluster, shard("s", "n1", "n1"));
    apply(&mut cluster, deleted("s"));
    apply(&mut cluster, shard("other", "", "n1"));
    assert!(cluster.lacks_node_shard());
    assert_eq!((ours(&cluster), written(&mut cluster)), ("n1".into(), "-".into()));
    apply(&mut cluster, shard("s", "n1 n2", "n1"));
    assert_eq!((ours(&cluster), written(&mut cluster)), ("n2".into(), "n2|n1".into()));
    apply(&mut cluster, deleted("other"));
    assert_eq!(ours(&cluster), "n1 n2");
}

#[test]
fn a_status_that_was_not_stored_is_written_again() {
    let mut cluster = cluster(ShardingMode::Hard);
    apply(&mut cluster, shard("s", "n1", ""));
    assert_eq!(written(&mut cluster), "n1|");
    apply(&mut cluster, ClusterEvent::NodeShardFailed { name: "s".into() });
    assert_eq!(written(&mut cluster), "n1|");
    assert_eq!(written(&mut cluster), "-");
}

#[test]
fn a_node_that_comes_later_is_in_the_shard_and_without_sharding_none_is() {
    let mut cluster = cluster(ShardingMode::Hard);
    apply(&mut cluster, shard("s", "n1 n4", "n1 n4"));
    apply_node(&mut cluster, node("n4", "cpu=1"));
    assert_eq!(ours(&cluster), "n1 n4");
    apply(&mut cluster, ClusterEvent::NodeDeleted { name: "n1".into() });
    apply_node(&mut cluster, node("n1", "cpu=2"));
    assert_eq!(ours(&cluster), "n1 n4");
    let mut off = self::cluster(ShardingMode::None);
    apply(&mut off, shard("s", "n1", ""));
    assert!(!off.lacks_node_shard());
    assert_eq!((ours(&off), written(&mut off)), ("".into(), "-".into()));
}

#[test]
fn core_93_groups_of_nodes() {
    let outside = |cluster: &Cluster| {
        let nodes = cluster.nodes_by_name().iter();
        nodes.filter(|&&node| cluster.is_outside_shard(node)).count()
    };
    let mut hard = cluster(ShardingMode::Hard);
    assert_eq!(outside(&hard), 3);
    apply(&mut hard, shard("s", "n1", ""));
    assert_eq!((outside(&hard), hard.by_shard(hard.nodes_by_name())), (2, None));
    let mut soft = cluster(ShardingMode::Soft);
    let all = soft.nodes_by_name().to_vec();
    assert_eq!(soft.by_shard(&all), Some([vec![], all.clone()]));
    apply(&mut soft, shard("s", "n1", ""));
    assert_eq!(soft.by_shard(&all), Some([all[..1].to_vec(), all[1..].to_vec()]));
    assert_eq!(outside(&soft), 0);
}

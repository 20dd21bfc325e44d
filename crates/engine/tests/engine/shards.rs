//! Sharding (core.md 4.10, 8.4; actions.md 2.6, 4.7, 5).

use std::sync::Arc;

use vc_model::{ClusterEvent, NodeShardRecord, Settings, Sharding, ShardingMode};

use crate::support::*;

use ShardingMode::{Hard, Soft};

const ACTIONS: &str = "enqueue, allocate, backfill";

/// The cluster with our NodeShard `s`, which wants and uses these nodes.
fn world(mode: ShardingMode, shard: &str, text: &str) -> World {
    let mut world = without_shard(mode, text);
    world.send(node_shard("s", shard, shard));
    world
}

fn without_shard(mode: ShardingMode, text: &str) -> World {
    let sharding = Sharding { mode, name: "s".into() };
    let options = Settings { sharding, ..Settings::default() };
    let mut all = objects("queue default");
    all.extend(objects(text));
    World::with(options, &conf(ACTIONS, "gang predicates nodeorder"), all)
}

fn names(text: &str) -> Vec<Arc<str>> {
    text.split_whitespace().map(Arc::from).collect()
}

fn node_shard(name: &str, desired: &str, in_use: &str) -> ClusterEvent {
    ClusterEvent::NodeShardApplied(Box::new(NodeShardRecord {
        name: name.into(),
        nodes_desired: names(desired),
        nodes_in_use: names(in_use),
        ..NodeShardRecord::default()
    }))
}

fn check(mode: ShardingMode, shard: &str, text: &str, decisions: &str) {
    assert_eq!(world(mode, shard, text).cycle().decisions(), decisions, "{mode:?} {shard}: {text}");
}

#[test]
fn core_93_hard_refuses_nodes_outside_the_shard() {
    let text = "node n1 cpu=1
        node n2 cpu=4
        node n3 cpu=4
        job j
          task a cpu=2";
    let cycle = world(Hard, "n1", text).cycle();
    assert_eq!(
        cycle.only(&["bind", "pod"]),
        "pod j-a Unschedulable \"0/3 nodes are unavailable: 1 Insufficient cpu, \
         2 node isn't in scheduler node shard.\""
    );
    check(Hard, "n3", text, "bind j-a n3");
}

#[test]
fn core_93_without_a_shard_hard_has_no_node_and_soft_has_one_group() {
    let text = "node n1 cpu=1
        node n2 cpu=4
        job j
          task a cpu=1";
    assert_eq!(without_shard(Hard, text).cycle().decisions(), "");
    assert_eq!(without_shard(Soft, text).cycle().decisions(), "bind j-a n2");
    let log = log_of(|| {
        let mut world = without_shard(Hard, text);
        world.cycle();
        world.cycle();
    });
    let said = log.iter().filter(|line| line.starts_with("error node shard s does not exist"));
    assert_eq!(said.count(), 1, "{log:?}");
}

#[test]
fn allocate__shard_hard() {
    let text = "node n1 cpu=10
        node n2 cpu=2
        node n3 cpu=20
        node n4 cpu=5
        job j
          task a cpu=1";
    check(Hard, "n2 n4", text, "bind j-a n4");
    check(Soft, "n2 n4", text, "bind j-a n4");
    check(ShardingMode::None, "n2 n4", text, "bind j-a n3");
    let equal = "node n1 cpu=4
        node n2 cpu=4
        job j
          task a cpu=1";
    check(Soft, "n2", equal, "bind j-a n2");
}

#[test]
fn allocate__shard_soft_keeps_idle_before_releasing() {
    let text = |other: &str| {
        format!(
            "node n1 cpu=1
             node n2 cpu=1
             node n3 cpu=1
             node n4 cpu=1
             job old running
               task a cpu=1 @n1 running deleting
               task b cpu=1 @n2 running deleting
               {other}
             job j
               task a cpu=1"
        )
    };
    // Idle nodes of others before releasing nodes of the shard.
    check(Soft, "n2", &text("task c cpu=1 @n3 running"), "bind j-a n4");
    let full = "task c cpu=1 @n3 running\n task d cpu=1 @n4 running";
    check(Soft, "n2", &text(full), "pipeline j-a n2");
}

#[test]
fn backfill__shard() {
    let text = "node n1 cpu=4
        node n2 cpu=4
        node n3 cpu=4
        job j
          task a";
    check(Hard, "n3", text, "bind j-a n3");
    check(Soft, "n3", text, "bind j-a n3");
    check(Soft, "n9", text, "bind j-a n1");
    check(Hard, "n9", text, "");
}

#[test]
fn core_95_one_status_per_cycle() {
    let text = "node 1 cpu=1
        node 2 cpu=1
        node 3 cpu=1";
    let mut world = without_shard(Hard, text);
    world.send(node_shard("other", "", "2"));
    world.send(node_shard("s", "1", ""));
    world.send(node_shard("s", "1 2 3", ""));
    assert_eq!(world.cycle().only(&["shard"]), "shard s use=1,3 remove= add=2");
    assert_eq!(world.cycle().only(&["shard"]), "");
    world.send(ClusterEvent::NodeShardFailed { name: "s".into() });
    assert_eq!(world.cycle().only(&["shard"]), "shard s use=1,3 remove= add=2");
    world.send(node_shard("s", "1 2 3", "1 3"));
    assert_eq!(world.cycle().only(&["shard"]), "shard s use=1,3 remove= add=2", "toAdd is missing");
    world.send(ClusterEvent::NodeShardDeleted { name: "other".into() });
    assert_eq!(world.cycle().only(&["shard"]), "shard s use=1,2,3 remove= add=");
    assert_eq!(world.cycle().all(), "");
}

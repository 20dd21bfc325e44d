//! actions.md "preempt, normal (TP)", "preempt, dry-run (TT)" and what of "Recording" and "Across cycles" needs
//! preempt. The cases that need HyperNodes, a capacity plugin or pod affinity come with those.

use vc_conf::Config;
use vc_engine::EngineOptions;
use vc_framework::Sample;
use vc_model::{ClusterEvent, NodeShardRecord, Sharding, ShardingMode};

use crate::support::*;

/// Legend TP.
const TP: &str = "conformance{preemptable} gang{preemptable jobPipelined jobStarving} \
    priority{taskOrder jobOrder preemptable jobPipelined jobStarving} \
    proportion{overused allocatable queueOrder}";
/// Legend TT, without the plugins that are not built.
const TT: &str = "conformance{preemptable} gang{preemptable jobPipelined jobStarving} \
    priority{taskOrder jobOrder preemptable jobPipelined jobStarving} \
    proportion{overused allocatable queueOrder predicate} predicates{preemptable predicate}";
/// TP without gang's say on who starves: members beyond the minimum preempt, too.
const ELASTIC: &str = "gang{preemptable jobPipelined} \
    priority{taskOrder jobOrder preemptable jobStarving} predicates";

fn tp() -> Config {
    conf("preempt", TP)
}

fn dry() -> Config {
    dry_with("enableTopologyAwarePreemption: true")
}

fn dry_with(arguments: &str) -> Config {
    with_arguments(conf("preempt", TT), "preempt", &format!("{{{arguments}}}"))
}

/// Who is evicted, by name.
fn evicted(config: &Config, text: &str) -> String {
    victims(&World::new(config, text).cycle())
}

fn victims(cycle: &Cycle) -> String {
    let text = cycle.only(&["evict"]);
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    names.sort_unstable();
    names.join(" ")
}

#[test]
fn preempt__idle_room() {
    let text = "node n1 cpu=10
        job pg1 min=3
          task a cpu=1 x2 @n1 running
          task b cpu=1";
    assert_eq!(evicted(&tp(), text), "");
    assert_eq!(evicted(&dry(), text), "", "dry run");
}

#[test]
fn preempt__not_starving() {
    let text = "node n1 cpu=3
        job pg1 min=1
          task a cpu=1 x2 @n1 running
        job pg2 min=1
          task a cpu=1 @n1 running
          task b cpu=1";
    assert_eq!(evicted(&tp(), text), "");
    assert_eq!(evicted(&dry(), text), "", "dry run");
}

#[test]
fn preempt__one_of_two() {
    let text = "node n1 cpu=2
        job pg1 priority=10
          task e1 cpu=1 @n1 running pre=true
          task e2 cpu=1 @n1 running pre=false
        job pg2 priority=100000 min=1
          task p cpu=1 x2";
    assert_eq!(evicted(&tp(), text), "pg1-e1");
    assert_eq!(evicted(&dry(), text), "pg1-e1", "dry run");
}

#[test]
fn preempt__large() {
    let text = "node n1 cpu=6
        job pg1 priority=10 min=1
          task e1 cpu=1 @n1 running pre=true
          task e2 cpu=1 @n1 running pre=true
          task e3 cpu=1 @n1 running pre=false
        job pg2 priority=100000
          task p cpu=5";
    assert_eq!(evicted(&tp(), text), "pg1-e1 pg1-e2");
    assert_eq!(evicted(&dry(), text), "pg1-e1 pg1-e2", "dry run");
}

#[test]
fn preempt__queue_full() {
    let text = "node n1 cpu=12
        queue q1 cap.cpu=4
        job pg1 queue=q1 priority=10 min=0
          task a cpu=3 @n1 running
        job pg2 queue=q1 priority=100000
          task p cpu=3";
    assert_eq!(evicted(&tp(), text), "pg1-a");
    assert_eq!(evicted(&dry(), text), "pg1-a", "dry run");
}

#[test]
fn preempt__queue_room() {
    let text = "node n1 cpu=12
        queue q1 cap.cpu=6
        job pg1 queue=q1 priority=10 min=1
          task a cpu=3 @n1 running
        job pg2 queue=q1 priority=100000
          task p cpu=3";
    assert_eq!(evicted(&tp(), text), "");
    assert_eq!(evicted(&dry(), text), "", "dry run");
}

#[test]
fn preempt__protected() {
    let text = "node n1 cpu=12
        queue q1 cap.cpu=3
        job pg1 queue=q1 priority=10 min=1
          task e1 cpu=1 @n1 running pre=false
          task e2 cpu=1 @n1 running pre=true
          task e3 cpu=1 @n1 running pre=true priority=100000
        job pg2 queue=q1 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "pg1-e2");
    assert_eq!(evicted(&dry(), text), "pg1-e2", "dry run");
}

#[test]
fn preempt__pod_slots() {
    let text = "node n1 cpu=12 pods=1
        job pg1 priority=10 min=0
          task v @n1 running
        job pg2 priority=100000
          task p cpu=3";
    assert_eq!(evicted(&tp(), text), "pg1-v");
    assert_eq!(evicted(&dry(), text), "pg1-v", "dry run");
}

#[test]
fn preempt__be_vs_be() {
    let text = "node n1 cpu=12 pods=1
        job pg1 priority=10 min=0
          task v @n1 running
        job pg2 priority=100000
          task p";
    assert_eq!(evicted(&tp(), text), "pg1-v");
    assert_eq!(evicted(&dry(), text), "pg1-v", "dry run");
}

#[test]
fn preempt__be_vs_request() {
    let text = "node n1 cpu=12 pods=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000
          task p";
    assert_eq!(evicted(&tp(), text), "");
    assert_eq!(evicted(&dry(), text), "", "dry run");
}

#[test]
fn preempt__policy_never() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000
          task p cpu=1 never";
    assert_eq!(evicted(&tp(), text), "");
    assert_eq!(evicted(&dry(), text), "", "dry run");
}

#[test]
fn preempt__rollback_queue() {
    let text = "node n1 cpu=10
        queue q1 cap.cpu=3
        job pg1 queue=q1 priority=10 min=0
          task e cpu=1 x2 @n1 running
        job pg2 queue=q1 priority=100000
          task p cpu=4";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__per_node_rollback() {
    let text = "node n1 cpu=3
        node n2 cpu=4
        queue q1 cap.cpu=6
        job pg1 queue=q1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 queue=q1 priority=10 min=0
          task v cpu=4 @n2 running
        job pg3 queue=q1 priority=100000
          task p cpu=3";
    assert_eq!(evicted(&tp(), text), "pg2-v");
}

#[test]
fn preempt__two_queues() {
    let text = "node n1 cpu=2
        queue q1
        queue q2
        job pg1 queue=q1 priority=10 min=0
          task r cpu=1 @n1 running
        job low queue=q2 priority=10 min=0
          task r cpu=1 @n1 running
        job high queue=q2 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "low-r");
}

#[test]
fn preempt__gang_minimum() {
    let text = "node n1 cpu=2
        job pg1 priority=10 min=2
          task v cpu=1 x2 @n1 running
        job pg2 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__gang_rollback() {
    let text = "node n1 cpu=2
        job pg1 priority=10 min=1
          task v cpu=1 x2 @n1 running
        job pg2 priority=100000 min=2
          task p cpu=1 x2";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__other_queue() {
    let text = "node n1 cpu=1
        queue q1
        queue q2
        job pg1 queue=q2 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 queue=q1 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__kube_system_class() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running class=system-node-critical
        job pg2 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__kube_system() {
    let text = "node n1 cpu=1
        job kube-system/pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__gated() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000
          task p cpu=1 gate=example.com/later";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__topology_job_hard() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000 topology=hard
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__topology_job_soft() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000 topology=soft
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__bound_victim() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 bound
        job pg2 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "pg1-v");
}

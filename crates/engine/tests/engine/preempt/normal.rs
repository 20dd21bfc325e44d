//! actions.md "preempt, normal (TP)".

use vc_framework::Sample;
use vc_model::{ClusterEvent, NodeShardRecord, Settings, Sharding, ShardingMode};

use super::*;

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

#[test]
fn preempt__intra_job() {
    let text = |n_high: u32| {
        format!(
            "node n1 cpu=2
            job j min=1
              task low cpu=1 x2 @n1 running priority=10
              task high cpu=1 x{n_high} priority=100"
        )
    };
    let config = conf("preempt", ELASTIC);
    let decided = "evict j-low-1 preempt\npipeline j-high-0 n1";
    assert_eq!(decide(&config, &text(1)), decided);
    // The second finds no victim: the gang is at its minimum.
    assert_eq!(decide(&config, &text(2)), decided);
}

#[test]
fn preempt__unresolvable_node() {
    let text = "node n1 cpu=1 taint=x:NoSchedule
        job low priority=10 min=0
          task v cpu=1 @n1 running
        job high priority=100
          task p cpu=1";
    let tiers = format!("{TP} predicates");
    assert_eq!(evicted(&conf("preempt", &tiers), text), "");
    assert_eq!(evicted(&conf("allocate, preempt", &tiers), text), "");
    assert_eq!(evicted(&conf("preempt", &tiers), &text.replace("taint=x:NoSchedule", "")), "low-v");
}

/// Transactions and attempts of a cycle, and the gauge of victims.
fn numbers(cycle: &Cycle) -> (usize, u32, u32) {
    let mut numbers = (0, 0, 0);
    for sample in &cycle.report.samples {
        match sample {
            Sample::EvictionTransaction(_) => numbers.0 += 1,
            Sample::PreemptionAttempts(n_attempts) => numbers.1 += n_attempts,
            Sample::PreemptionVictims(n_victims) => numbers.2 = *n_victims,
            _ => {}
        }
    }
    numbers
}

#[test]
fn preempt__metrics() {
    let text = "node n1 cpu=3
        node n2 cpu=1
        job low priority=10 min=0
          task v cpu=1 x3 @n1 running
        job high priority=100
          task p cpu=3";
    assert_eq!(numbers(&World::new(&tp(), text).cycle()), (1, 1, 3));
    assert_eq!(numbers(&World::new(&dry(), text).cycle()), (1, 1, 3));
    // Both members find victims, but the third does not.
    let discarded = "node n1 cpu=1
        node n2 cpu=1
        job low priority=10 min=0
          task a cpu=1 @n1 running
          task b cpu=1 @n2 running
        job high priority=100 min=3
          task p cpu=1 x3";
    assert_eq!(numbers(&World::new(&tp(), discarded).cycle()), (0, 2, 0));
}

#[test]
fn preempt__trim() {
    let text = "node n1 cpu=4
        job low1 priority=1 min=0
          task v cpu=1 @n1 running
        job low2 priority=2 min=0
          task v cpu=3 @n1 running
        job high priority=100
          task p cpu=3";
    assert_eq!(evicted(&tp(), text), "low2-v");
    let off = with_arguments(tp(), "preempt", "{trimVictims: false}");
    assert_eq!(evicted(&off, text), "low1-v low2-v");
}

#[test]
fn preempt__zero_evict() {
    let text = "node n1 cpu=1
        job high priority=100
          task p cpu=1";
    assert_eq!(decide(&conf("preempt, allocate", TP), text), "bind high-p n1");
    assert_eq!(decide(&tp(), text), "");
}

#[test]
fn preempt__shard() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        job low priority=10 min=0
          task a cpu=1 @n1 running
          task b cpu=1 @n2 running
        job high priority=100
          task p cpu=1";
    for mode in [ShardingMode::Hard, ShardingMode::Soft] {
        for (shard, victim) in [("n1", "low-a"), ("n2", "low-b")] {
            let sharding = Sharding { mode, name: "s".into() };
            let options = Settings { sharding, ..Settings::default() };
            let mut all = objects("queue default");
            all.extend(objects(text));
            let mut world = World::with(options, &tp(), all);
            world.send(ClusterEvent::NodeShardApplied(Box::new(NodeShardRecord {
                name: "s".into(),
                nodes_desired: vec![shard.into()],
                nodes_in_use: vec![shard.into()],
                ..NodeShardRecord::default()
            })));
            assert_eq!(victims(&world.cycle()), victim, "{mode:?}");
        }
    }
}

#[test]
fn preempt__device() {
    // The node is half free, but what the preemptor needs is held by the victim.
    let text = "node n1 cpu=2
        job low priority=10
          task v cpu=1 @n1 running
        job high priority=100
          task p cpu=1";
    let config =
        conf("preempt", &format!("{} predicates", TP.replacen("gang{preemptable", "gang{", 1)));
    assert_eq!(victims(&with_ports(&config, text, &["high-p", "low-v"])), "low-v");
    assert_eq!(victims(&with_ports(&config, text, &["high-p"])), "");
}

#[test]
fn preempt__sub_groups() {
    let text = "node n1 cpu=3
        job low priority=10 min=0
          task v cpu=1 @n1 x3 running
        job high priority=100 min=2 policy.g=2x1
          task p cpu=1 label.g=a x2";
    let evicted = "evict low-v-2 preempt\nevict low-v-1 preempt";
    let placed = "pipeline high-p-0 n1\npipeline high-p-1 n1";
    let tiers = "conformance gang{preemptable jobPipelined jobStarving jobReady} priority";
    let config = conf("allocate, preempt", tiers);
    let mut world = World::new(&config, text);
    let first = world.cycle();
    assert_eq!(first.decisions().lines().filter(|line| evicted.contains(*line)).count(), 2);
    assert_eq!(first.only(&["pipeline"]), placed);
    world.kubelets_and_controllers();
    assert_eq!(world.cycle().decisions(), "bind high-p-0 n1\nbind high-p-1 n1");
}

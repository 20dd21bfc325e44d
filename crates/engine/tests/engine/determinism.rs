//! `order/determinism`: the order in which objects arrive decides nothing (actions.md A9, A10).

use vc_conf::Config;

use crate::support::*;

const TEXT: &str = "node n1 cpu=4 memory=8Gi
    node n2 cpu=4 memory=8Gi
    node n3 cpu=2 memory=4Gi taint=k:NoSchedule
    node n4 cpu=3 memory=4Gi zone=a
    queue root
    queue q1 weight=2
    queue q2 cap.cpu=3
    queue q3 parent=none
    queue q4 state=Closed
    queue q5 parent=gone
    job a queue=q1 min=2 minres.cpu=2 pending
      task w cpu=1 memory=1Gi x4
    job b queue=q1 min=3 priority=5 pending
      task m cpu=1 role=m
      task w cpu=2 role=w x3
    job c queue=q2 min=1
      task w cpu=1 x5
    job d queue=q2 min=2
      task w cpu=9
      task x cpu=1
    job e queue=q3 min=1
      task be
      task run cpu=1 @n1 running
      task end cpu=1 @n2 running deleting
    job f queue=q4
      task w cpu=1
    job g queue=nowhere
      task w cpu=1
    job h min=1 minres.cpu=99 pending
      task w cpu=1 nominated=n2
    job i min=2
      task w cpu=1 x2 prefer.zone=a
      task be x2
    job k queue=q5
      task run cpu=1 @n4 running
    pod dns cpu=1 @n3 running";

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn shuffled(seed: u64) -> Vec<Object> {
    let (mut all, mut state) = (objects("queue default"), seed);
    all.extend(objects(TEXT));
    for index in (1..all.len()).rev() {
        all.swap(index, (next(&mut state) % (index as u64 + 1)) as usize);
    }
    all
}

/// Effects and reports of three cycles.
fn run(config: &Config, seed: u64) -> Vec<String> {
    let mut world = World::of(config, shuffled(seed));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let cycle = world.cycle();
        seen.push(format!("{:#?}\n{:#?}", cycle.effects, cycle.report));
        world.kubelets();
        world.tick(1);
    }
    seen
}

#[test]
fn order__determinism() {
    let configs = [
        conf(
            "enqueue, allocate, backfill",
            "priority gang conformance | overcommit drf predicates proportion nodeorder binpack",
        ),
        conf("enqueue, allocate, backfill", TA),
    ];
    for config in &configs {
        let first = run(config, 0);
        assert!(first[0].contains("Bind {"), "{}", first[0]);
        for seed in 1..=20 {
            assert_eq!(run(config, seed), first, "seed {seed}");
        }
    }
}

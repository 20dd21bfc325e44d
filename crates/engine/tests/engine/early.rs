//! What a cycle with many jobs to close hands out before it closes them is what it decides anyway, in
//! the same order. docs/performance.md (start).

use vc_engine::{CycleTime, Effect, Engine, EngineOptions};

use crate::support::*;

/// `n_jobs` jobs on a cluster that has room for most of them, one that has to make room, and one whose
/// bind fails.
fn world(n_jobs: usize) -> World {
    let mut text = "queue q2 weight=9\n".to_owned();
    for number in 0..n_jobs / 10 {
        text += &format!("node n{number:03} cpu=8\n");
    }
    for number in 0..n_jobs {
        text += &format!("job j{number:04} min=1 pending\n  task w cpu=1\n");
    }
    text += "node full cpu=4 zone=z
        job old min=1 running
          task v cpu=1 @full running x4
        job new queue=q2 min=2 priority=9
          task w cpu=2 x2 selector.zone=z";
    World::new(&conf("enqueue, allocate, backfill, preempt, reclaim", TA), &text).alone()
}

fn is_event(effect: &Effect) -> bool {
    matches!(effect, Effect::Event { .. })
}

/// Runs the same cycles with and without somebody who takes writes early. How many binds and evictions
/// were taken in each cycle.
fn n_early(mut world: World, n_cycles: usize) -> Vec<(usize, usize)> {
    let config = conf("enqueue, allocate, backfill, preempt, reclaim", TA);
    let (mut twin, _) = Engine::new(EngineOptions::default(), &config);
    twin.explain(true);
    let mut numbers = Vec::new();
    for _ in 0..n_cycles {
        let now = CycleTime { unix_micros: world.now_micros() };
        let mut early = Vec::new();
        let (rest, report) = twin.cycle_with(world.inbox(), now, &mut |effects, cluster| {
            let known = |effect: &Effect| match effect {
                Effect::Bind { uid, .. } => cluster.task(uid).is_some(),
                _ => true,
            };
            assert!(effects.iter().all(known) && !effects.iter().any(is_event));
            early.extend(effects);
        });
        let whole = world.cycle_refusing(7);
        let n = |is_it: fn(&Effect) -> bool| early.iter().filter(|&effect| is_it(effect)).count();
        let n_binds = n(|effect| matches!(effect, Effect::Bind { .. }));
        numbers.push((n_binds, n(|effect| matches!(effect, Effect::Evict { .. }))));
        let reported: Vec<&Effect> = early.iter().chain(&rest).collect();
        for events in [true, false] {
            let reported: Vec<_> =
                reported.iter().copied().filter(|it| is_event(it) == events).collect();
            let whole = whole.effects.iter().filter(|it| is_event(it) == events);
            assert_eq!(reported, whole.collect::<Vec<_>>());
        }
        assert_eq!(format!("{report:?}"), format!("{:?}", whole.report));
        world.kubelets();
        world.tick(1);
    }
    numbers
}

#[test]
fn writes_of_a_long_cycle_are_handed_out_before_its_close() {
    // What failed is tried again; pods that wait have been told other causes meanwhile.
    assert_eq!(n_early(world(1_200), 3), [(956, 3), (139, 0), (19, 0)]);
}

#[test]
fn a_short_cycle_hands_out_everything_at_once() {
    assert_eq!(n_early(world(100), 3), [(0, 0); 3]);
}

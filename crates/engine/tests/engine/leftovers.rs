//! Jobs that have some of what they want and are not tried again: those that have their minimum and
//! of whose surplus nothing fits, and gangs that give up what some members found. For each condition a
//! job that stands, exactly the change that ends it, and the job is tried again. Every cycle is compared
//! with one of the plain evaluator, messages included. Specification: actions.md 12.2 S7, core.md 3.10.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use vc_conf::Config;
use vc_engine::CacheStats;
use vc_model::QUEUE_GATE;

use crate::support::*;
use crate::unschedulable_cache::{Change, backlog_configs, changes, chart, take};

/// `a` runs, and of its surplus nothing fits: one cpu is left.
const SURPLUS: &str = "node n1 cpu=4
    job r min=1 running
      task w cpu=2 @n1 running
    job a min=1 running
      task w cpu=1 @n1 running
      task v cpu=2 x2";

/// `a` and `b` are of one shape, and each finds a place for one of two pods.
const PARTLY: &str = "node n1 cpu=4
    job r min=1 running
      task w cpu=1 @n1 running
    job a min=2 created=1
      task w cpu=2 x2
    job b min=2 created=3
      task w cpu=2 x2";

fn nudge(world: &mut World, name: &str) {
    world.add(&format!("job {name} min=1 created=9"));
}

fn cache_stats(world: &mut World) -> CacheStats {
    world.cycle();
    world.engine.cache_stats()
}

fn settled(config: &Config, text: &str) -> World {
    let mut world = World::new(config, text);
    for name in ["nudge1", "nudge2", "nudge3", "nudge4"] {
        world.cycle();
        nudge(&mut world, name);
    }
    world
}

/// Once all is settled `a` has a surplus that stands, and the change ends it.
fn surplus_ends(config: &Config, text: &str, change: impl FnOnce(&mut World)) -> World {
    let mut world = settled(config, text);
    assert_eq!(cache_stats(&mut world).n_surplus, 1);
    change(&mut world);
    assert_eq!(cache_stats(&mut world).n_surplus, 0);
    world
}

/// Once all is settled `b` gives up as `a` does, without being tried; how often after the change.
fn given_up_after(config: &Config, text: &str, change: impl FnOnce(&mut World)) -> u64 {
    let mut world = settled(config, text);
    assert_eq!(cache_stats(&mut world).n_gave_up, 1);
    change(&mut world);
    cache_stats(&mut world).n_gave_up
}

#[test]
fn fast__memo_invalidation_surplus_room() {
    let mut world = surplus_ends(&chart(), SURPLUS, |world| world.delete_pod("r-w"));
    world.cycle();
    assert_eq!(world.pod("a-v-0").node_name.as_deref(), Some("n1"));
    // It is told how many nodes there are.
    surplus_ends(&chart(), SURPLUS, |world| world.add("node n2 cpu=1"));
}

#[test]
fn fast__memo_invalidation_surplus_tasks_and_minimum() {
    surplus_ends(&chart(), SURPLUS, |world| world.delete_pod("a-v-1"));
    surplus_ends(&chart(), SURPLUS, |world| world.delete_pod("a-w"));
    surplus_ends(&chart(), SURPLUS, |world| world.add("job a min=2 running"));
}

#[test]
fn fast__memo_invalidation_surplus_queue() {
    let config = conf("allocate", "gang capacity predicates nodeorder");
    let text = "node n1 cpu=9\n queue q cap.cpu=3\n job a queue=q min=1 running
        task w cpu=2 @n1 running\n task v cpu=2 x2";
    surplus_ends(&config, text, |world| world.add("queue q cap.cpu=4"));
    let text = "node n1 cpu=9\n queue q cap.cpu=6\n
        job r queue=q min=1 running\n task w cpu=3 @n1 running
        job a queue=q min=1 running\n task w cpu=2 @n1 running\n task v cpu=2 x2";
    surplus_ends(&config, text, |world| world.delete_pod("r-w"));
}

#[test]
fn fast__memo_a_surplus_that_stands_keeps_nobody_waiting() {
    let ahead = SURPLUS.replace("job a min=1", "job a priority=9 min=1");
    let text = format!("queue default fifo\n{ahead}");
    let mut world = settled(&chart(), &text);
    world.add("job b min=1 created=9\n task w cpu=1");
    assert_eq!(cache_stats(&mut world).n_surplus, 1);
    assert_eq!(world.pod("b-w").node_name.as_deref(), Some("n1"), "a fifo queue goes on");
}

#[test]
fn fast__memo_invalidation_given_up_nodes() {
    let more = |text: &'static str| move |world: &mut World| world.add(text);
    assert_eq!(given_up_after(&chart(), PARTLY, more("node n1 cpu=6")), 0);
    // The member that finds one finds another.
    let other = "node n0 cpu=2\n pod p cpu=2 @n1 running";
    assert_eq!(given_up_after(&chart(), PARTLY, more(other)), 0);
    // It finds the same, and the others are told the same.
    assert_eq!(given_up_after(&chart(), PARTLY, more("pod p cpu=1 @n1 running")), 1);
}

/// In the first cycle, and whenever the state has changed, one gang is tried for all of its shape.
#[test]
fn fast__one_gang_of_a_shape_is_tried_in_a_state() {
    let mut world = World::new(&chart(), PARTLY);
    world.cycle();
    assert_eq!(world.engine.cache_stats().n_failed_alike, 1);
}

#[test]
fn fast__memo_invalidation_given_up_state() {
    let ahead = |world: &mut World| world.add("job c min=1 created=0\n task w cpu=1");
    assert_eq!(given_up_after(&chart(), PARTLY, ahead), 1, "both see the same");
    let between = |world: &mut World| world.add("job c min=1 created=2\n task w cpu=1");
    assert_eq!(given_up_after(&chart(), PARTLY, between), 0, "one sees it, the other does not");
}

/// Neither gang changes, but another pod keeps off what is labelled as one of them.
#[test]
fn fast__memo_invalidation_given_up_terms() {
    let labelled = |job: &str, rest: &str| {
        format!("\n job {job} min=2 created={rest}\n task w cpu=2 label.app={job} x2")
    };
    let text = format!(
        "node n1 cpu=4 zone=x\n job r min=1 running\n task w cpu=1 @n1 running {} {}",
        labelled("a", "1"),
        labelled("b", "3")
    );
    let other = |world: &mut World| world.add("pod p cpu=0 @n1 running away=zone:c");
    assert_eq!(given_up_after(&chart(), &text, other), 1);
    let change = |world: &mut World| world.add("pod p cpu=0 @n1 running away=zone:b");
    assert_eq!(given_up_after(&chart(), &text, change), 0);
}

#[test]
fn fast__memo_invalidation_given_up_gang() {
    let change = |world: &mut World| world.delete_pod("b-w-1");
    assert_eq!(given_up_after(&chart(), PARTLY, change), 0);
    let change = |world: &mut World| world.add("job b min=2 created=3 priority=9");
    assert_eq!(given_up_after(&chart(), PARTLY, change), 0);
    let change = |world: &mut World| {
        world.edit("b-w-0", |pod| pod.nominated_node = Some("n1".into()));
    };
    assert_eq!(given_up_after(&chart(), PARTLY, change), 0);
}

/// JobPipelined of sla turns true with time, of one gang and not of the other.
#[test]
fn fast__memo_invalidation_given_up_clock() {
    let config = conf("allocate", "sla{jobPipelined} gang predicates nodeorder");
    let text = PARTLY.replace("job b", "job b sla=3700s");
    let tick = |seconds: i64| {
        move |world: &mut World| {
            world.tick(seconds);
            world.add("job nudge min=1");
        }
    };
    assert_eq!(given_up_after(&config, &text, tick(90)), 1);
    assert_eq!(given_up_after(&config, &text, tick(120)), 0);
}

/// Gangs that differ in what decides when an attempt ends, or in what a member wants.
#[test]
fn fast__memo_gangs_of_another_shape_are_tried() {
    let third = "job c min=2 created=4\n task w cpu=2 x2";
    assert_eq!(cache_stats(&mut settled(&chart(), &format!("{PARTLY}\n{third}"))).n_gave_up, 2);
    for third in [
        "job c min=2 created=4\n task w cpu=2 x3",
        "job c min=3 created=4\n task w cpu=2 x3",
        "job c min=2 created=4\n task v cpu=2\n task w cpu=3",
        "job c min=2 created=4 role.w=2\n task w cpu=2 x2 role=w",
        "job c min=2 created=4 priority=5\n task w cpu=2 x2",
    ] {
        let mut world = settled(&chart(), &format!("{PARTLY}\n{third}"));
        assert_eq!(cache_stats(&mut world).n_gave_up, 1, "{third}");
    }
}

#[test]
fn fast__memo_given_up_without_a_word_is_tried() {
    let text = PARTLY.replace("cpu=2 x2", "cpu=2 x2 near=zone:db");
    assert_eq!(cache_stats(&mut settled(&chart(), &text)).n_gave_up, 0, "pods with terms");
}

/// The cache keeps the outcome of a shape as long as a gang of this shape fails.
#[test]
fn fast__memo_shapes_of_gangs_that_are_gone_are_dropped() {
    let n_kept = |world: &World| world.engine.table_sizes().unwrap()["cache.gang_outcomes"];
    let mut world = settled(&chart(), PARTLY);
    // The shape, its outcome, and that of each of the two members.
    assert_eq!(n_kept(&world), 4);
    for (job, n_left) in [("a", 4), ("b", 0)] {
        ["0", "1"].iter().for_each(|pod| world.delete_pod(&format!("{job}-w-{pod}")));
        world.delete_group(job);
        nudge(&mut world, &format!("after-{job}"));
        world.cycle();
        assert_eq!(n_kept(&world), n_left, "{job} is gone");
    }
}

#[test]
fn fast__memo_given_up_is_counted_and_explained_as_if_tried() {
    let mut world = settled(&chart(), PARTLY);
    let cycle = world.cycle();
    assert_eq!(world.engine.cache_stats().n_gave_up, 1);
    let waiting = format!("{:?}", cycle.report.waiting);
    for pod in ["a-w-0", "b-w-0"] {
        let reported = format!("{pod} can possibly be assigned to n1");
        assert!(waiting.contains(&reported), "{waiting}");
    }
    let samples = format!("{:?}", cycle.report.samples);
    assert_eq!(samples.matches("JobPlaced").count(), 2, "{samples}");
}

/// A member that was passed over without a word, before another one got the room.
#[test]
fn fast__memo_what_is_passed_over_is_no_surplus_that_stands() {
    let config = conf("allocate, preempt, allocate", "gang priority | capacity drf predicates");
    let text = format!(
        "node n0 cpu=4\n queue q cap.cpu=4
        job r queue=q min=1 running\n task w cpu=1 @n0 running
        job a queue=q min=0\n task g cpu=1 gate={QUEUE_GATE}\n task w cpu=3 x2"
    );
    let mut world = World::new(&config, &text);
    for turn in 0..6 {
        world.cycle_unanswered();
        nudge(&mut world, &format!("nudge{turn}"));
    }
}

/// Gangs, elastic jobs and jobs with roles of few shapes, in two queues.
fn backlog(jobs: &[(usize, u32, u32)]) -> String {
    let mut text = String::from(
        "node n0 cpu=5 pods=9\n node n1 cpu=5 pods=9\n node n2 cpu=6 pods=5 taint=x:NoSchedule
        queue q0\n queue q1 cap.cpu=9 fifo
        job r queue=q0 min=0 running\n task w cpu=2 @n0 running\n task v cpu=1 @n1 running\n",
    );
    for (number, (queue, cpu, kind)) in jobs.iter().enumerate() {
        let (name, node) = (format!("job w{number} queue=q{queue}"), number % 2);
        let job = match kind {
            0 => format!(
                "{name} min=1 running\n task v memory=1 @n{node} running\n task w cpu={cpu} x2"
            ),
            1 => format!(
                "{name} min=3 role.a=1 role.b=2\n task a cpu={cpu} role=a\n task b cpu={cpu} x2 role=b"
            ),
            2 => format!("{name} min=2\n task w cpu={cpu} x4"),
            _ => format!("{name} min=3\n task w cpu={cpu} x3"),
        };
        text.push_str(&format!("{job}\n"));
    }
    text
}

fn backlogs() -> impl Strategy<Value = String> {
    let job = (0..2_usize, 2..4_u32, 0..8_u32);
    prop::collection::vec(job, 4..10).prop_map(|jobs| backlog(&jobs))
}

/// How often a surplus stood, and gangs gave up without being tried.
fn live(which: usize, text: &str, changes: &[Change]) -> (u64, u64) {
    let mut world = World::new(&backlog_configs()[which], text);
    world.cycle();
    let mut found = (0, 0);
    for (turn, change) in changes.iter().enumerate() {
        take(&mut world, change);
        // Else nothing is run where nothing has changed.
        nudge(&mut world, &format!("nudge{turn}"));
        let cache_stats = cache_stats(&mut world);
        found = (found.0 + cache_stats.n_surplus, found.1 + cache_stats.n_gave_up);
    }
    found
}

/// The first pass leaves `w2` out, because it would fail as before; in the second one it waits behind a
/// job that came later.
#[test]
fn whoever_waits_behind_another_in_a_second_pass_is_told() {
    let gang = |name: &str, queue: u32, cpu: u32| {
        let tasks = format!("task a cpu={cpu} role=a\n task b cpu={cpu} x2 role=b");
        format!("job {name} queue=q{queue} min=3 role.a=1 role.b=2\n {tasks}\n")
    };
    let jobs = [gang("w0", 1, 2), gang("w2", 1, 3), gang("w3", 0, 3)];
    let text =
        format!("{}job w1 queue=q0 min=3\n task w cpu=3 x3\n{}", backlog(&[]), jobs.concat());
    let job = Change::Job;
    let changes = [job(1, 2), job(1, 1), job(3, 1), Change::Nothing, Change::Tick(150), job(2, 2)];
    live(4, &text, &changes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_is_not_tried_again_changes_nothing(
        which in 0..5_usize,
        text in backlogs(),
        changes in changes(),
    ) {
        live(which, &text, &changes);
    }
}

#[test]
fn in_random_backlogs_leftovers_stand() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let strategy = (backlogs(), changes());
    for which in 0..backlog_configs().len() {
        let mut found = (0, 0);
        for _ in 0..20 {
            let tree = strategy.new_tree(&mut runner).expect("nothing is rejected");
            let (text, changes) = tree.current();
            let (n_surplus, n_gave_up) = live(which, &text, &changes);
            found = (found.0 + n_surplus, found.1 + n_gave_up);
        }
        // Preemption touches the rows of all that starve.
        let n_least = if which == 0 { 5 } else { 0 };
        assert!(20 < found.0 && n_least <= found.1, "configuration {which}: {found:?}");
    }
}

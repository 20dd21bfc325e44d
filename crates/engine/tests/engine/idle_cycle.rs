//! A cycle in which nothing has changed is not run, and tells the same. That it would is shown by
//! every test that compares the evaluators; here: when it is not run, and when it is all the same.
//! Specification: actions.md 12.2.

use vc_conf::Config;
use vc_engine::{EngineOptions, Sample};

use crate::support::*;

/// One gang runs, one fits nowhere.
const TEXT: &str = "node n1 cpu=4
    job a min=1 running
      task w cpu=3 @n1 running
    job b min=2
      task w cpu=2 x2";

/// A world whose last cycle has decided nothing.
fn settled(config: &Config, text: &str) -> World {
    settled_with(EngineOptions::default(), config, text)
}

fn settled_with(options: EngineOptions, config: &Config, text: &str) -> World {
    let options = EngineOptions { stopwatch: Some(|| 0), ..options };
    let mut all = objects("queue default");
    all.extend(objects(text));
    let mut world = World::with(options, config, all).alone();
    for _ in 0..4 {
        world.cycle();
    }
    world
}

/// Whether the next cycle runs the actions.
fn runs(world: &mut World) -> bool {
    let timings = world.cycle().report.timings.expect("there is a stopwatch");
    !timings.actions.is_empty()
}

fn default_conf() -> Config {
    conf("enqueue, allocate, backfill", &format!("{TA} overcommit"))
}

#[test]
fn nothing_is_run_until_something_changes() {
    type Change = fn(&mut World);
    let changes: [(&str, Change); 6] = [
        ("a pod came", |world| world.add("job c\n task w cpu=9")),
        ("a pod went", |world| world.delete_pod("a-w")),
        ("a node came", |world| world.add("node n2 cpu=1")),
        ("a queue came", |world| world.add("queue q")),
        ("the configuration is another", |world| world.configure(&ta())),
        ("a report must say more", |world| world.engine.explain(false)),
    ];
    for (what, change) in changes {
        let mut world = settled(&default_conf(), TEXT);
        assert!(!runs(&mut world), "before {what}");
        change(&mut world);
        assert!(runs(&mut world), "{what}");
    }
}

#[test]
fn echoes_and_heartbeats_are_no_news() {
    let options = EngineOptions { stopwatch: Some(|| 0), ..EngineOptions::default() };
    let mut all = objects("queue default");
    all.extend(objects(TEXT));
    let mut world = World::with(options, &default_conf(), all).alone();
    let first = world.cycle();
    assert!(first.all().contains("Unschedulable"), "{}", first.all());
    assert!(!runs(&mut world), "what was written came back");
    world.add("node n1 cpu=4");
    world.edit("b-w-0", |_| {});
    assert!(!runs(&mut world));
    world.edit("b-w-0", |pod| pod.scheduled_condition = None);
    assert!(runs(&mut world), "somebody else has written it");
}

#[test]
fn what_is_said_again_in_time_is_not_forgotten() {
    let mut world = settled(&default_conf(), TEXT);
    world.tick(299);
    assert!(!runs(&mut world), "the event is repeated after 300 seconds");
    world.tick(1);
    let cycle = world.cycle();
    assert!(cycle.all().contains("Unschedulable"), "{}", cycle.all());
    assert!(!runs(&mut world), "what was said is no news");
}

#[test]
fn a_waiting_time_that_ends_is_not_missed() {
    let text = "node n1 cpu=4\n queue q cap.cpu=1\n job a queue=q pending minres.cpu=2 sla=3700s";
    let plugins = "sla{jobEnqueued} | proportion{jobEnqueued} gang";
    let mut world = settled(&conf("enqueue, allocate", plugins), text);
    assert!(!runs(&mut world));
    for _ in 0..3 {
        world.tick(30);
        assert!(runs(&mut world), "why it is not admitted was said 30 seconds ago (A44)");
        assert!(!runs(&mut world));
    }
    world.tick(9);
    assert!(!runs(&mut world), "why it is not admitted was said less than 30 seconds ago");
    world.tick(1);
    assert!(runs(&mut world), "an hour had passed before the first cycle");
    assert_eq!(world.group("a").status.phase.as_str(), "Inqueue");
}

#[test]
fn an_earlier_time_is_another_one() {
    let mut world = settled(&default_conf(), TEXT);
    world.tick(-1);
    assert!(runs(&mut world), "nobody knows what held then");
}

#[test]
fn the_report_of_a_quiet_cycle_is_that_of_the_last_one() {
    let mut world = settled(&default_conf(), TEXT);
    let (l, r) = (world.cycle().report, world.cycle().report);
    assert_eq!(format!("{l:?}"), format!("{r:?}"));
    assert!(world.engine.skipped_last_cycle());
    assert_eq!(r.samples, [Sample::UnreadyJobs(1)]);
    assert_eq!((r.n_jobs, r.n_nodes, r.waiting.len()), (2, 1, 2));
}

#[test]
fn what_is_tried_in_vain_is_counted_again_but_not_tried_again() {
    let partly = "node n1 cpu=4
        job a min=2
          task w cpu=3 x2
        job b min=0
          task w cpu=1 @n1 running";
    let config = conf("allocate, preempt, backfill", TA);
    let mut world = settled(&config, partly);
    assert!(!runs(&mut world));
    // Here the other engine runs every cycle, and both must tell the same.
    let mut world = World::new(&config, partly);
    let samples = |cycle: Cycle| -> Vec<Sample> {
        let counts = |it: &Sample| {
            matches!(it, Sample::JobPlaced { n_tasks: 1, .. } | Sample::PreemptionVictims(_))
        };
        cycle.report.samples.into_iter().filter(counts).collect()
    };
    for _ in 0..4 {
        world.tick(1);
        assert_eq!(samples(world.cycle()).len(), 2);
    }
}

#[test]
fn a_plugin_that_reads_the_clock_is_asked_in_every_cycle() {
    let mut world = settled_with(beside_silent(), &conf("allocate", "gang scorer"), TEXT);
    assert!(runs(&mut world));
}

/// The first session starts the clock.
#[test]
fn rescheduling_is_asked_when_a_run_is_due() {
    for (arguments, seconds) in [("", 300), ("interval=2m", 120)] {
        let config = conf("allocate, shuffle", &format!("gang rescheduling{{* {arguments}}}"));
        let mut world = settled(&config, TEXT);
        for _run in 0..2 {
            world.tick(seconds - 1);
            assert!(!runs(&mut world), "{arguments}");
            world.tick(1);
            assert!(runs(&mut world), "{arguments}");
            assert!(!runs(&mut world), "{arguments}");
        }
    }
}

/// It is 1:00 in the morning.
#[test]
fn tdm_is_asked_when_a_window_turns_or_a_round_is_due() {
    let cases = [
        ("", 60),
        ("tdm.revocable-zone.rz1=1:00-1:02 tdm.evict.period=5m", 121),
        ("tdm.revocable-zone.rz1=1:02-1:10 tdm.evict.period=5m", 120),
        ("tdm.revocable-zone.rz1=0:00-0:00 tdm.evict.period=2m", 120),
    ];
    for (arguments, seconds) in cases {
        let config = conf("allocate, shuffle", &format!("gang tdm{{* {arguments}}}"));
        let mut world = settled(&config, TEXT);
        world.tick(seconds - 1);
        assert!(!runs(&mut world), "{arguments}");
        world.tick(1);
        assert!(runs(&mut world), "{arguments}");
        assert!(!runs(&mut world), "{arguments}");
    }
}

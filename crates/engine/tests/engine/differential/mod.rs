//! Plain against fast evaluator over random clusters, random events and many cycles: `World` runs
//! both and compares effects and reports of every cycle, so that decisions, statuses, conditions,
//! events and messages are the same (actions.md 12.2). Quiet cycles are among them.

mod cards;
mod configs;
mod edge;
mod lines;
mod networks;
mod objects;
mod story;
mod taken;
mod undeclared;

use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use vc_engine::{EngineOptions, ExtenderClient};
use vc_model::{PodRecord, Settings, Sharding};

use crate::support::*;
use configs::Choice;
use edge::{Edge, LATE};
use objects::Theme;
use story::{Flags, Step, Story, stories, stories_about};
use taken::Taken;

/// What holds for the next cycle alone.
#[derive(Default)]
struct Next {
    refused_every: usize,
    late: u8,
}

fn tell(world: &mut World, edge: &mut Edge, step: &Step, next: &mut Next) {
    match step {
        Step::Add(text) => world.add(text),
        Step::Tell(line) => edge.tell(world, line),
        Step::DeletePod(place) => {
            world.nth_pod(*place).into_iter().for_each(|pod| world.delete_pod(&pod));
        }
        Step::Terminate(place) => edit(world, *place, |pod| pod.deleting = true),
        Step::End(place, phase) => edit(world, *place, |pod| {
            if pod.node_name.is_some() {
                pod.phase = *phase;
            }
        }),
        Step::Label(place, value) => edit(world, *place, |pod| {
            pod.labels.insert("app".into(), (*value).into());
        }),
        Step::Ungate(place) => edit(world, *place, |pod| pod.scheduling_gates.clear()),
        Step::Resize(place, cpu) => edit(world, *place, |pod| {
            let cpu = cpu.to_string().parse().expect("a quantity");
            pod.containers[0].requests = vec![("cpu".into(), cpu)];
        }),
        Step::Regroup(job, word) => regroup(world, job, word),
        Step::Kubelets => {
            world.kubelets();
            edge.controllers(world);
        }
        Step::Controllers => {
            world.kubelets_and_controllers();
            edge.controllers(world);
        }
        Step::Tick(seconds) => world.tick(*seconds),
        Step::Configure(choice) => world.configure(&choice.config()),
        Step::Refuse(every) => next.refused_every = *every,
        Step::Late(kinds) => next.late = *kinds,
    }
}

/// Changes the pod of this place, if there are so many.
fn edit(world: &mut World, place: usize, change: impl FnOnce(&mut PodRecord)) {
    if let Some(pod) = world.nth_pod(place) {
        world.edit(&pod, change);
    }
}

/// The group has this word of a job's line from now on.
fn regroup(world: &mut World, job: &str, word: &str) {
    for object in objects(&format!("job {job} {word}")) {
        let Object::Group(said) = object else {
            continue;
        };
        world.edit_group(job, |group| match word.split_once('=').map_or(word, |(name, _)| name) {
            "min" => group.min_member = said.min_member,
            "priority" => group.priority_class_name = said.priority_class_name,
            "queue" => group.queue = said.queue,
            _ => group.status.phase = said.status.phase,
        });
    }
}

fn begin(story: &Story) -> World {
    let Flags { sharding, queue_gate, bare_pods, capacity_scoring, victim_index_bytes } =
        story.flags;
    let settings = Settings {
        sharding: Sharding { mode: sharding, name: "s".into() },
        queue_gate_admission: queue_gate,
        bare_pods,
        storage_capacity_scoring: capacity_scoring,
        ..Settings::default()
    };
    let extender: Arc<dyn ExtenderClient> = Arc::new(DrawnExtender);
    let options = EngineOptions { settings, extender: Some(extender), ..beside_silent() };
    let all = with_default_queue(&story.cluster);
    let mut world = World::with(options, &story.choice.config(), all);
    victim_index_bytes.into_iter().for_each(|bytes| world.engine.set_victim_index_bytes(bytes));
    world
}

/// Returns the objects of a text, behind the queue `default`.
fn with_default_queue(text: &str) -> Vec<Object> {
    let mut all = objects("queue default");
    all.extend(objects(text));
    all
}

/// Moves every second job of a story with fairshare to another namespace: usage is that of
/// namespaces.
fn in_namespaces(story: &Story) -> Story {
    let has_usage = |choice: &Choice| {
        let tiers = choice.config().tiers;
        tiers.iter().flat_map(|tier| &tier.plugins).any(|plugin| plugin.name == "fairshare")
    };
    let moved = |text: &str| {
        (0..5).fold(text.to_owned(), |text, half| {
            let (name, other) = (format!("job j{} ", 2 * half + 1), 2 * half + 1);
            text.replace(&name, &format!("job team/j{other} "))
        })
    };
    let step = |step: &Step| match step {
        Step::Add(text) => Step::Add(moved(text)),
        Step::Regroup(job, word) => {
            let job = moved(&format!("job {job} ")).replace("job ", "");
            Step::Regroup(job.trim_end().to_owned(), word.clone())
        }
        other => other.clone(),
    };
    match has_usage(&story.choice) {
        false => story.clone(),
        true => Story {
            cluster: moved(&story.cluster),
            turns: story.turns.iter().map(|turn| turn.iter().map(step).collect()).collect(),
            ..story.clone()
        },
    }
}

/// Panics where the two differ; which shortcuts were taken.
fn live(story: &Story) -> Taken {
    let story = &in_namespaces(story);
    let (mut world, mut edge, mut taken) = (begin(story), Edge::default(), Taken::default());
    story.reported.iter().for_each(|line| edge.tell(&mut world, line));
    for steps in &story.turns {
        let mut next = Next::default();
        steps.iter().for_each(|step| tell(&mut world, &mut edge, step, &mut next));
        let is_late = |bit: &usize| next.late & (1 << bit) != 0;
        let late: Vec<_> = (0..LATE.len()).filter(is_late).map(|bit| LATE[bit]).collect();
        let late = world.keep_back(|event| late.iter().any(|is_late| is_late(event)));
        let cycle = world.cycle_unanswered();
        taken.count(&world, &cycle);
        edge.answer(&mut world, &cycle.effects, next.refused_every);
        world.catch_up(late);
    }
    taken
}

/// Runs random stories, of which so many of two hundred are wide.
fn run(seed: u64, cases: u32, wide: u32) -> Result<Taken, String> {
    run_all(seed, cases, &stories(wide))
}

/// Runs random stories of this kind.
///
/// # Errors
/// The smallest story in which the two differ, and the seed.
fn run_all(seed: u64, cases: u32, stories: &impl Strategy<Value = Story>) -> Result<Taken, String> {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let taken = Cell::new(Taken::default());
    let outcome = runner.run(stories, |story| {
        taken.set(taken.get() + live(&story));
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(taken.get()),
        Err(TestError::Fail(why, story)) => Err(format!("with seed {seed}: {why}\n{story}")),
        Err(TestError::Abort(why)) => Err(format!("with seed {seed}: aborted: {why}")),
    }
}

fn check(seed: u64, cases: u32, wide: u32) -> Taken {
    run(seed, cases, wide).unwrap_or_else(|why| panic!("{why}"))
}

/// Stories of a seed, among which all shortcuts are.
fn check_all(seed: u64) {
    let taken = check(seed, 2_500, 1);
    assert_eq!(taken.seldom(), [""; 0], "{taken:?}");
}

// Together 10,000 stories, in parts that run beside each other.

#[test]
fn fast__differential() {
    check_all(1);
}

#[test]
fn fast__differential_again() {
    check_all(2);
}

#[test]
fn fast__differential_once_more() {
    check_all(3);
}

#[test]
fn fast__differential_to_the_end() {
    check_all(4);
}

/// `make fuzz-fast`: FUZZ_FAST=forever goes on with ever new seeds until the two differ,
/// FUZZ_FAST=<seed> repeats one. Without it, a few stories of a seed of its own. FUZZ_THEME=networks
/// plays only stories of one theme.
#[test]
fn fuzz_fast() {
    let theme = std::env::var("FUZZ_THEME").ok().map(|name| Theme::of(&name));
    let reported = |seed: u64| {
        eprintln!("1000 stories with seed {seed}");
        let taken = match theme {
            Some(theme) => run_all(seed, 1_000, &stories_about(theme)),
            None => run(seed, 1_000, 6),
        };
        taken.map(|taken| eprintln!("seed {seed}: {taken:?}"))
    };
    let some = |first: u64| {
        let seeds: Vec<u64> = (first..).take(n_cores()).collect();
        check_at_once(&seeds, |&seed| reported(seed))
    };
    let outcome = match FuzzRequest::of("FUZZ_FAST", 5) {
        FuzzRequest::Few(seed) => run(seed, 20, 6).map(drop),
        FuzzRequest::Seed(seed) => reported(seed),
        FuzzRequest::Forever(first) => (first..).step_by(n_cores()).try_for_each(some),
    };
    outcome.unwrap_or_else(|why| panic!("{why}"));
}

/// Jobs of which all pods went in a cycle have nothing to place in it. A plugin that ranks the first
/// jobs of queues sees them in neither evaluator.
#[test]
fn fast__jobs_without_waiting_pods_rank_no_queue() {
    let text = "queue q2
        budget b label.app=covered allowed=0
        node n0 cpu=3 pods=3 zone=z0 host=h0
        queue q0 weight=1 reclaimable=false
        queue q1 weight=1 reclaimable=false deserved.cpu=2
        job j0 queue=q0 min=0 priority=0
          task w0 priority=0 label.app=covered
          task w1 priority=0 label.app=covered x2
          task w2 priority=0 label.app=covered
        job j2 queue=q0 min=0 priority=0
          task w0 priority=0
        job j3 queue=q1 min=0 priority=0
          task w0 cpu=1 priority=0 x2
        job j4 queue=q0 min=0 priority=0
          task r0 @n0 running cpu=3 priority=0
          task w0 priority=2
        job j5 queue=q2 min=0 priority=2
          task t0-0 x3 cpu=1 priority=0 label.app=b @n0 running";
    let all = with_default_queue(text);
    let plugins = "cohort{* reclaimWithinCohort=Any rootQuota=Cluster} priority{*}";
    let mut world = World::with(beside_silent(), &conf("preempt, reclaim", plugins), all);
    let mut edge = Edge::default();
    let mut n_evictions = 0;
    for cycle in 0..3 {
        if cycle == 1 {
            world.add("job j4 queue=q2 min=2 priority=0\n  task t0 cpu=1 x2\n");
        }
        let cycle = world.cycle_unanswered();
        n_evictions += cycle.report.n_evictions;
        edge.answer(&mut world, &cycle.effects, 0);
    }
    assert!(0 < n_evictions, "no job has lost all pods");
}

/// A clock that is set back by less than a minute opens a zone of tdm again, which had shut.
#[test]
fn fast__a_clock_that_is_set_back_ends_cached_answers() {
    let text = "node n0 cpu=0 pods=1 zone=z0 revocable=rz1
        queue q0 weight=1
        job j0 queue=q0 min=0 priority=0";
    let all = with_default_queue(text);
    let plugins = "tdm{* tdm.revocable-zone.rz1=01:00-01:02 tdm.evict.period=1m}";
    let mut world = World::with(beside_silent(), &conf("preempt", plugins), all);
    let mut edge = Edge::default();
    let mut messages = Vec::new();
    for (seconds, added) in [
        (61, ""),
        (61, ""),
        (0, "job j0 queue=q0 min=2 priority=0\n  task t0 cpu=1 x2\n"),
        (-29, ""),
    ] {
        world.tick(seconds);
        world.add(added);
        let cycle = world.cycle_unanswered();
        edge.answer(&mut world, &cycle.effects, 0);
        messages.push(cycle.effects.len());
    }
    assert!(0 < messages[2] && 0 < messages[3], "{messages:?}");
}

/// Hierarchical drf tests each candidate alone, so two pods of a queue may go together where the
/// second would be refused after the first (plugins-jobs-queues.md 4.3). The node holds more pods
/// than it allows, so the reclaimer needs both.
#[test]
fn fast__candidates_that_are_tested_alone_go_together() {
    let text = "node n0 cpu=3 pods=1
        node n1 cpu=3 pods=1
        queue q1
        queue q2 note.volcano.sh/hierarchy=root/a/y note.volcano.sh/hierarchy-weights=1/2/1
        queue q0 note.volcano.sh/hierarchy=root/a/x note.volcano.sh/hierarchy-weights=1/2/3
        job j1 queue=q1 min=0
          task t0-0 @n1 running
        job j0 queue=q0 min=1
          task w0
        job j3 queue=q2 min=1
          task t0-0 x2 @n0 running";
    let all = with_default_queue(text);
    let plugins = "drf{* hierarchy} conformance{*} | gang{*}";
    let mut world = World::with(beside_silent(), &conf("reclaim", plugins), all);
    world.add("job j1 queue=q0 min=2\n  task t0 cpu=1 x2\n");
    assert_eq!(world.cycle_unanswered().report.n_evictions, 2);
}

/// Placements of the reclaimer before a vote take what the cluster has left, and hierarchical drf reads
/// that: without them it would refuse the last two victims.
#[test]
fn fast__votes_come_after_the_placements_before_them() {
    let text = "node n1 cpu=2 pods=2
        node n2 cpu=5 pods=5
        queue q2 note.volcano.sh/hierarchy=root/a/x note.volcano.sh/hierarchy-weights=1/2/3
        queue q1 note.volcano.sh/hierarchy=root/b note.volcano.sh/hierarchy-weights=1/3
        job j7 queue=q2 min=4 priority=0
          task t0 cpu=1 x4
        job j0 queue=q2 min=4 priority=0
          task t0 cpu=1 x4
        job j1 queue=q2 min=4 priority=0
          task t0 cpu=1 x4
        job j2 queue=q2 min=4 priority=0
          task t0 cpu=1 x4
        job j3 queue=q2 min=3 priority=0
          task t0-0 cpu=1 priority=0 label.app=b class=system-node-critical
          task t0-1  priority=0 label.app=b
          task t0-2 cpu=3 priority=0 label.app=b";
    let all = with_default_queue(text);
    let plugins = "priority gang conformance | drf{* hierarchy} predicates nodeorder";
    let actions = "enqueue, allocate, preempt, reclaim, backfill";
    let mut world = World::with(beside_silent(), &conf(actions, plugins), all);
    world.add(
        "job j0 queue=q1 min=3 priority=0
          task t0-0 x2 cpu=2 priority=0 label.app=b @n2 running started=3500
          task t0-1 cpu=2 priority=0 label.app=b @n1 running",
    );
    assert_eq!(world.cycle_unanswered().report.n_evictions, 3);
}

/// What queues deserve by usage moves in steps, which are reported although nothing waits.
#[test]
fn fast__deserved_amounts_follow_usage_while_nothing_waits() {
    let mut text = String::new();
    for node in ["n3 cpu=4", "n4 cpu=4", "n5 cpu=4", "n6 cpu=6", "n7 cpu=6", "n0 cpu=4", "n8 cpu=4"]
    {
        let pods = if node.ends_with('6') { 9 } else { 5 };
        text += &format!("node {node} memory=8Gi pods={pods}\n");
    }
    text += "queue q0 weight=1\nqueue q1\n";
    for job in ["j14", "j15", "j16"] {
        text += &format!(
            "job {job} queue=q0 min=0\n  task t0 x3\n  task t1 x4 cpu=1 @n0 running\n  \
             task t2 x4 cpu=2 @n0 running\n"
        );
    }
    for job in ["j8", "j9", "j10"] {
        text += &format!("job {job} queue=q1 min=0\n  task t0-0 x4\n  task t0-1 x3\n");
    }
    let all = with_default_queue(&text);
    let plugins = "proportion fairshare{* fairshare.resourceKey=cpu fairshare.kValue=1 \
        fairshare.shareInterval=20s fairshare.minRunTime=20s fairshare.halfLifeMinutes=2} \
        nodeorder priority | gang predicates";
    let config = conf("allocate, preempt, backfill", plugins);
    let mut world = World::with(beside_silent(), &config, all);
    let mut edge = Edge::default();
    let mut deserved = Vec::new();
    for seconds in [0, 0, 0, 61, 0, 0, 0, 0] {
        world.tick(seconds);
        // From now on both queues ask for more pods than there may be.
        if deserved.len() == 1 {
            world.add("job j0 queue=q1 min=0\n  task t0-0\n");
        }
        let cycle = world.cycle_unanswered();
        edge.answer(&mut world, &cycle.effects, 0);
        deserved.push(format!("{:?}", cycle.report.queues));
    }
    deserved.dedup();
    assert!(2 < deserved.len(), "{deserved:?}");
}

/// A gang that is placed in vain holds as much as another account for whose pods no time has passed yet.
/// Later that account has used more, so its waiting job is told who comes before it.
#[test]
fn fast__accounts_that_tie_in_a_trial_are_ordered_later() {
    let mut text = String::new();
    (0..8).for_each(|queue| text += &format!("queue q{queue}\n"));
    text += "queue parent weight=1 reclaimable=false
        node n0 cpu=2 pods=2 zone=z0 host=h0
        node n1 cpu=5 pods=4 zone=z1 host=h1
        node n2 cpu=3 pods=2 zone=z2 host=h2
        queue q0 weight=2 reclaimable=false parent=parent
        queue q1 weight=2 reclaimable=false
        job j0 queue=q0 min=0 priority=0
        job team/j1 queue=q1 min=0 priority=0
          task r0 @n2 running cpu=3 priority=0 label.app=covered
        job j2 queue=q0 min=0 priority=0
          task w0 cpu=1 priority=0 x5
        job team/j3 queue=q1 min=0 priority=0
          task w0 cpu=1 priority=0 x2
        job j4 queue=q0 min=0 priority=0
        job j4 queue=q2 min=3 priority=0
          task t0 cpu=1 x3";
    let gangs = "job j10 queue=q1 min=2 priority=1\n  task t0 cpu=1 x2\n\
        job j11 queue=q1 min=2 priority=1\n  task t0 cpu=1 x2\n";
    let all = with_default_queue(&text);
    let mut world = World::with(beside_silent(), &Choice::Usual(39).config(), all);
    let mut edge = Edge::default();
    let mut told = Vec::new();
    for (number, seconds) in [0, 0, 1, 0, 0, 0].into_iter().enumerate() {
        if number == 0 {
            world.add(gangs);
        }
        world.tick(seconds);
        let cycle = world.cycle_unanswered();
        edge.answer(&mut world, &cycle.effects, 0);
        let mut waiting = cycle.report.waiting.iter();
        told.push(waiting.any(|task| task.message.contains("Behind account default")));
    }
    assert!(told.contains(&true) && told.contains(&false), "{told:?}");
}

/// Two gangs of equal pods are tried one after the other, on nodes whose load `usage` estimates. The
/// scores that the members of one find are those that the members of the other find, whatever their
/// uids are: `j10` comes before the pods on the nodes, and `j7` behind them.
#[test]
fn fast__equal_gangs_find_equal_loads() {
    let text = "queue q0 weight=1
        queue q1
        queue q2
        queue q3
        queue q4
        node n7 cpu=4 memory=8Gi pods=5 zone=z0
        node n3 cpu=6 memory=8Gi pods=9 zone=z0
        job j1 queue=q0 min=0 priority=0
          task t0-0 x4 priority=0 label.app=b
        job j2 queue=q1 min=0 priority=0
          task t0-0 priority=0 label.app=b
        job j7 queue=q0 min=4 priority=0
          task t0 cpu=1 x4
        job j10 queue=q0 min=4 priority=0
          task t0 cpu=1 x4
        job j0 queue=q2 min=2 priority=0
          task t0 cpu=2 x2
        job j1 queue=q1 min=0 priority=0
          task t0-0 cpu=2 priority=0 label.app=b @n0 running
          task t0-1 cpu=1 priority=0 label.app=b @n0 running";
    let all = with_default_queue(text);
    let mut world = World::with(beside_silent(), &Choice::Usual(26).config(), all);
    let mut edge = Edge::default();
    for line in [
        "load n3 cpu=21 memory=69 age=180 interval=90",
        "load n7 cpu=79 memory=71 age=100 interval=90",
    ] {
        edge.tell(&mut world, line);
    }
    for _ in 0..3 {
        let cycle = world.cycle_unanswered();
        edge.answer(&mut world, &cycle.effects, 0);
    }
}

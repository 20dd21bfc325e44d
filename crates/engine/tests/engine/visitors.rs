//! Queues that come and go leave nothing behind: their rows are used again, and whoever remembers
//! something of a queue does not take a later one for it. Specification: core.md 3.9, 9.2.

use proptest::prelude::*;
use vc_conf::Config;
use vc_model::{Cluster, Id};

use crate::support::*;

fn configs() -> [Config; 4] {
    let actions = "enqueue, allocate, reclaim, backfill";
    [
        conf(actions, "priority gang | overcommit drf predicates proportion nodeorder"),
        conf(actions, "priority gang | predicates capacity binpack"),
        conf(actions, "gang | drf{* hierarchy} predicates capacity{* hierarchy}"),
        conf("enqueue, allocate, preempt, reclaim", FAIR),
    ]
}

const FAIR: &str = "priority gang | predicates cohort{* fairSharing.enable=true}";

const NODES: &str = "node n0 cpu=4
    node n1 cpu=3
    queue root";

/// A queue with jobs of it, as words behind the names.
#[derive(Clone, Debug)]
struct Team {
    queue: String,
    /// Parent by place, if it is one of those before.
    parent: usize,
    jobs: Vec<String>,
}

fn teams(most: usize) -> impl Strategy<Value = Vec<Team>> {
    let queue = (1_u32..4, prop::option::of(1_u32..5), prop::option::of(1_u32..5)).prop_map(
        |(weight, cap, deserved)| {
            let amount = |name: &str, cpu: Option<u32>| {
                cpu.map_or(String::new(), |cpu| format!("{name}.cpu={cpu}"))
            };
            let (cap, deserved) = (amount("cap", cap), amount("deserved", deserved));
            format!("weight={weight} {cap} {deserved}")
        },
    );
    let job = (1_u32..3, 1_u32..4, 1_u32..6, any::<bool>()).prop_map(|(min, n, cpu, pending)| {
        let pending = if pending { "pending minres.cpu=1" } else { "" };
        format!("min={min} {pending}\n task t x{n} cpu={cpu}")
    });
    let team = (queue, 0_usize..4, prop::collection::vec(job, 0..3));
    let team = team.prop_map(|(queue, parent, jobs)| Team { queue, parent, jobs });
    prop::collection::vec(team, 1..most)
}

impl Team {
    fn come(&self, world: &mut World, name: &str, place: usize) {
        let parent = match self.parent < place {
            true => format!("{name}{}", self.parent),
            false => "root".to_owned(),
        };
        world.add(&format!("queue {name}{place} parent={parent} {}", self.queue));
        for (index, words) in self.jobs.iter().enumerate() {
            world.add(&format!("job {name}{place}-{index} queue={name}{place} {words}"));
        }
    }

    /// Everything of it goes; what is of the queue first, or last.
    fn go(&self, world: &mut World, name: &str, place: usize, queue_first: bool) {
        if queue_first {
            world.delete_queue(&format!("{name}{place}"));
            world.deliver();
        }
        for index in 0..self.jobs.len() {
            world.delete_group(&format!("{name}{place}-{index}"));
        }
        if !queue_first {
            world.delete_queue(&format!("{name}{place}"));
        }
    }
}

fn delete_pods(world: &mut World) {
    while let Some(pod) = world.nth_pod(0) {
        world.delete_pod(pod.trim_start_matches("default/"));
    }
}

/// What somebody who looks at the cluster sees of three cycles.
fn story(world: &mut World) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..3 {
        let cycle = world.cycle();
        all.push(cycle.all());
        let mut samples: Vec<String> =
            cycle.report.samples.iter().map(|sample| format!("{sample:?}")).collect();
        samples.sort();
        all.extend(samples);
        world.kubelets();
        world.tick(1);
    }
    all
}

/// The greatest number of a row of a queue.
fn n_rows_ever(cluster: &Cluster) -> usize {
    cluster.queues.ids().map(|id| id.index() + 1).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Decisions and metrics are those of a cluster that has not seen the visitors.
    #[test]
    fn queues_that_came_and_went_leave_nothing_behind(
        visits in prop::collection::vec((teams(4), any::<bool>()), 1..4),
        teams in teams(5),
        which in 0_usize..4,
    ) {
        let config = &configs()[which];
        let [mut visited, mut fresh] = [(); 2].map(|()| World::new(config, NODES));
        for (visitors, queue_first) in &visits {
            for (place, team) in visitors.iter().enumerate() {
                team.come(&mut visited, "v", place);
            }
            for _ in 0..2 {
                visited.cycle();
                visited.kubelets();
                visited.tick(1);
            }
            for (place, team) in visitors.iter().enumerate() {
                team.go(&mut visited, "v", place, *queue_first);
            }
            delete_pods(&mut visited);
            for _ in 0..2 {
                visited.cycle();
                visited.tick(1);
            }
            for _ in 0..4 {
                fresh.cycle();
                fresh.tick(1);
            }
            let cluster = visited.engine.cluster();
            prop_assert_eq!(cluster.queues.len(), fresh.engine.cluster().queues.len());
            prop_assert!(n_rows_ever(cluster) <= 2 + 3, "rows are used again");
        }
        for world in [&mut visited, &mut fresh] {
            for (place, team) in teams.iter().enumerate() {
                team.come(world, "q", place);
            }
        }
        prop_assert_eq!(story(&mut visited), story(&mut fresh));
    }
}

/// Users of metrics and of logs hear of a queue that comes back as of a new one.
#[test]
fn a_queue_that_comes_back_is_told_again() {
    let mut world = World::new(&configs()[3], NODES);
    let lent = "queue a parent=lost deserved.cpu=2\n job j queue=a\n task t cpu=1";
    let warning = "queue a: parent queue lost does not exist".to_owned();
    let mut reported = Vec::new();
    for _ in 0..2 {
        world.add(lent);
        let mut report = world.cycle().report;
        report.warnings.retain(|text| text.starts_with("queue a:"));
        let shares = report.samples.iter().map(|sample| format!("{sample:?}"));
        let shares = shares.filter(|text| text.starts_with("WeightedShare { queue: \"a\""));
        reported.push((report.warnings, shares.collect::<Vec<_>>()));
        world.delete_group("j");
        world.delete_queue("a");
        delete_pods(&mut world);
        world.cycle();
    }
    let (warnings, shares) = &reported[0];
    assert_eq!((&warnings[..], shares.len()), (&[warning][..], 1));
    assert_eq!(reported[0], reported[1]);
}

//! The fast evaluator beside the plain one (`World` compares them) over clusters of several blocks of
//! nodes, whose pods want what is remembered, what cannot be, and what only the plain evaluator can
//! tell. Each path has to be taken. Specification: actions.md 12.2 S1-S5.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use vc_engine::EvaluatorPaths;

use crate::support::*;

/// Two with a zone that is usable until 1:01 in the morning, one with a plugin that says nothing.
const CONFS: [&str; 6] = [
    "priority gang | predicates nodeorder binpack",
    "priority gang conformance | overcommit drf predicates proportion nodeorder",
    "gang | predicates binpack",
    "gang tdm{* tdm.revocable-zone.rz1=0:00-1:01} | predicates nodeorder binpack",
    "gang tdm{nodeOrder tdm.revocable-zone.rz1=0:00-1:01} | predicates nodeorder binpack",
    "gang scorer | predicates nodeorder",
];

/// What a node is like, but for its name.
fn node_kinds() -> impl Strategy<Value = Vec<String>> {
    let taint = prop_oneof![
        6 => Just(""),
        1 => Just("taint=x:NoSchedule"),
        1 => Just("taint=x:PreferNoSchedule"),
        1 => Just("taint=x:PreferNoSchedule taint=y:PreferNoSchedule"),
        1 => Just("unschedulable"),
        2 => Just("revocable=rz1"),
    ];
    let kind = (1_u32..7, 1_u32..5, 0_u32..3, 0_u32..3, taint).prop_map(
        |(cpu, memory, pods, zone, taint)| {
            let slots = if pods == 0 { "pods=1" } else { "pods=3" };
            let zone = if zone == 2 { String::new() } else { format!("zone=z{zone}") };
            format!("cpu={cpu} memory={memory}Gi {slots} pool=p{} {zone} {taint}", cpu % 2)
        },
    );
    prop::collection::vec(kind, 1..5)
}

fn jobs() -> impl Strategy<Value = Vec<String>> {
    let wants = prop_oneof![
        6 => Just(""),
        1 => Just("near=zone:a"),
        2 => Just("away=host:a"),
        1 => Just("away=zone:b like=zone:a"),
        1 => Just("like=host:a"),
        2 => Just("spread=zone:1:a"),
        1 => Just("even=zone:1:b"),
        1 => Just("even=host:1:a even=zone:1:a"),
        1 => Just("port=80"),
        1 => Just("selector.pool=p1"),
        1 => Just("prefer.pool=p0"),
        1 => Just("prefer.pool=p0 prefer.zone=z1 like=zone:b"),
        2 => Just("annotation.volcano.sh/revocable-zone=*"),
    ];
    let task = (0_u32..4, 0_u32..3, any::<bool>(), wants, 1_u32..7);
    let task = task.prop_map(|(cpu, memory, a, wants, count)| {
        let app = if a { "a" } else { "b" };
        let cpu = if cpu == 0 { String::new() } else { format!("cpu={cpu}") };
        let memory = if memory == 0 { String::new() } else { format!("memory={memory}Gi") };
        format!("x{count} {cpu} {memory} label.app={app} {wants}")
    });
    let job = (1_u32..4, prop::collection::vec(task, 1..3)).prop_map(|(min, tasks)| {
        let tasks = tasks.iter().enumerate();
        let tasks = tasks.map(|(index, words)| format!("  task t{index} {words}\n"));
        format!("min={min}\n{}", tasks.collect::<String>())
    });
    prop::collection::vec(job, 1..6)
}

#[derive(Clone, Debug, PartialEq)]
struct Case {
    which: usize,
    n_nodes: usize,
    kinds: Vec<String>,
    /// What arrives before each cycle.
    arriving: Vec<Vec<String>>,
    /// Before each cycle a node that becomes of another kind.
    changing: Vec<usize>,
}

fn cases() -> impl Strategy<Value = Case> {
    let arriving = prop::collection::vec(jobs(), 2..4);
    let changing = prop::collection::vec(0_usize..1000, 4);
    (0..CONFS.len(), 120_usize..300, node_kinds(), arriving, changing).prop_map(
        |(which, n_nodes, kinds, arriving, changing)| Case {
            which,
            n_nodes,
            kinds,
            arriving,
            changing,
        },
    )
}

impl Case {
    fn node(&self, number: usize, kind: usize) -> String {
        format!("node n{number} host=h{number} {}\n", self.kinds[kind % self.kinds.len()])
    }

    /// The paths that were taken; the world compares with the plain evaluator.
    fn run(&self) -> EvaluatorPaths {
        let nodes: String = (0..self.n_nodes).map(|number| self.node(number, number / 3)).collect();
        let mut all = objects("queue default");
        all.extend(objects(&nodes));
        let config = conf("allocate, backfill", CONFS[self.which]);
        let mut world = World::with(beside_silent(), &config, all);
        for (cycle, jobs) in self.arriving.iter().enumerate() {
            for (index, job) in jobs.iter().enumerate() {
                world.add(&format!("job j{cycle}-{index} {job}"));
            }
            let changed = self.changing[cycle] % self.n_nodes;
            world.add(&self.node(changed, self.changing[cycle]));
            world.deliver();
            world.cycle();
            world.kubelets();
            world.tick(35);
        }
        world.engine.paths().expect("the fast evaluator counts")
    }
}

#[test]
fn large_clusters_are_the_same_for_both_evaluators() {
    let config = ProptestConfig { cases: 60, ..ProptestConfig::default() };
    let taken = Cell::new(EvaluatorPaths::default());
    let run = TestRunner::new(config).run(&cases(), |case| {
        let (sum, paths) = (taken.get(), case.run());
        taken.set(EvaluatorPaths {
            filled: sum.filled + paths.filled,
            remembered: sum.remembered + paths.remembered,
            asked: sum.asked + paths.asked,
            plain: sum.plain + paths.plain,
        });
        Ok(())
    });
    assert_eq!(run, Ok(()));
    let EvaluatorPaths { filled, remembered, asked, plain } = taken.get();
    let all = [filled, remembered, asked, plain];
    assert!(all.iter().all(|&n_times| 10 < n_times), "a path is not taken: {:?}", taken.get());
}

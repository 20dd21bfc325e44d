//! Random clusters, and what happens in them between cycles, as the text of `support::text`.

use std::fmt;

use proptest::prelude::*;
use vc_model::PodPhase;

/// What happens to the objects.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Objects come or are replaced.
    Add(String),
    /// The pod of this place in the order of names, if there are so many.
    DeletePod(usize),
    DeleteNode(String),
    DeleteQueue(String),
    DeleteGroup(String),
    /// A pod that has a node ends.
    End(usize, PodPhase),
    /// A pod has another value of `app`.
    Label(usize, &'static str),
    /// Bound pods run, deleted pods go.
    Kubelets,
    /// The same, and what went is replaced.
    Controllers,
    /// Seconds pass.
    Tick(i64),
    /// Another configuration.
    Configure(usize),
    /// Of the binds of the next cycle, every so many fail.
    Refuse(usize),
}

/// A cluster, and what happens before each cycle; before many, nothing.
#[derive(Clone)]
pub(super) struct Story {
    pub(super) config: usize,
    pub(super) cluster: String,
    pub(super) turns: Vec<Vec<Step>>,
}

/// As somebody reads it who looks for the fault.
impl fmt::Debug for Story {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "configuration {}\n{}", self.config, self.cluster)?;
        self.turns.iter().try_for_each(|steps| write!(out, "\n--- {steps:?}"))
    }
}

impl fmt::Display for Story {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

const N_NODES: u32 = 5;
const N_QUEUES: u32 = 3;
const N_JOBS: u32 = 8;

fn node() -> impl Strategy<Value = String> {
    let more = prop_oneof![
        6 => Just(""),
        1 => Just("taint=dedicated:NoSchedule"),
        1 => Just("unschedulable"),
        1 => Just("revocable=rz1"),
        2 => Just("disk=ssd"),
    ];
    (0..N_NODES, 0_u32..7, 1_u32..6, 0_u32..3, 0_u32..2, more).prop_map(
        |(index, cpu, pods, zone, gpu, more)| {
            let gpu = if gpu == 0 { String::new() } else { format!("gpu={gpu}") };
            format!("node n{index} cpu={cpu} pods={pods} zone=z{zone} {gpu} {more}\n")
        },
    )
}

fn queue() -> impl Strategy<Value = String> {
    let amount = || prop::option::of(1_u32..7);
    let more = prop_oneof![
        8 => Just(""),
        1 => Just("state=Closed"),
        1 => Just("fifo"),
        1 => Just("reclaimable=false"),
        1 => Just("priority=5"),
    ];
    (0..N_QUEUES, 1_u32..4, amount(), amount(), more).prop_map(
        |(index, weight, cap, deserved, more)| {
            let word = |name: &str, cpu: Option<u32>| {
                cpu.map_or(String::new(), |cpu| format!("{name}.cpu={cpu}"))
            };
            let (cap, deserved) = (word("cap", cap), word("deserved", deserved));
            format!("queue q{index} weight={weight} {cap} {deserved} {more}\n")
        },
    )
}

/// What a pod wants beside cpu; most want nothing.
fn wants() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        12 => Just(""),
        1 => Just("near=zone:a"),
        1 => Just("away=zone:a"),
        1 => Just("away=zone:b like=zone:a"),
        1 => Just("spread=zone:1:a"),
        1 => Just("even=zone:1:b"),
        1 => Just("port=80"),
        1 => Just("gpu=1"),
        1 => Just("selector.disk=ssd"),
        1 => Just("prefer.disk=ssd"),
        1 => Just("pre=false"),
        1 => Just("never"),
        1 => Just("pvc=none"),
        1 => Just("gate=example.com/later"),
        1 => Just("class=system-node-critical"),
    ]
}

fn place() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => Just(String::new()),
        3 => (0..N_NODES).prop_map(|node| format!("@n{node} running")),
        1 => (0..N_NODES).prop_map(|node| format!("@n{node} running deleting")),
        1 => (0..N_NODES).prop_map(|node| format!("nominated=n{node}")),
    ]
}

fn task() -> impl Strategy<Value = String> {
    (0_u32..4, 0_u32..3, place(), wants(), any::<bool>(), 1_u32..4).prop_map(
        |(cpu, priority, place, wants, is_a, n_equal)| {
            let app = if is_a { "a" } else { "b" };
            let cpu = if cpu == 0 { String::new() } else { format!("cpu={cpu}") };
            let equal = if n_equal == 1 { String::new() } else { format!("x{n_equal}") };
            format!("{cpu} priority={priority} label.app={app} {wants} {place} {equal}")
        },
    )
}

/// A job whose pods have names of their own, so that it may come twice.
fn job() -> impl Strategy<Value = String> {
    let phase = prop_oneof![2 => Just(""), 1 => Just("pending"), 1 => Just("pending minres.cpu=3")];
    let tasks = prop::collection::vec(task(), 0..5);
    let head = (0..N_JOBS, 0..N_QUEUES, 0_u32..4, 0_u32..3, phase);
    (head, tasks, any::<u16>()).prop_map(|((index, queue, min, priority, phase), tasks, mark)| {
        let head = format!("job j{index} queue=q{queue} min={min} priority={priority} {phase}\n");
        let task = |(number, words)| format!("  task t{mark}-{number} {words}\n");
        head + &tasks.iter().enumerate().map(task).collect::<String>()
    })
}

fn step() -> impl Strategy<Value = Step> {
    let name = |letter: char, count: u32| (0..count).prop_map(move |n| format!("{letter}{n}"));
    prop_oneof![
        3 => node().prop_map(Step::Add),
        1 => queue().prop_map(Step::Add),
        4 => job().prop_map(Step::Add),
        2 => (0_usize..12).prop_map(Step::DeletePod),
        1 => name('n', N_NODES).prop_map(Step::DeleteNode),
        1 => name('q', N_QUEUES).prop_map(Step::DeleteQueue),
        1 => name('j', N_JOBS).prop_map(Step::DeleteGroup),
        1 => (0_usize..12).prop_map(|place| Step::End(place, PodPhase::Succeeded)),
        1 => (0_usize..12).prop_map(|place| Step::End(place, PodPhase::Failed)),
        1 => (0_usize..12, prop_oneof![Just("a"), Just("b")])
            .prop_map(|(place, app)| Step::Label(place, app)),
        4 => Just(Step::Kubelets),
        2 => Just(Step::Controllers),
        3 => prop_oneof![Just(1_i64), Just(61), Just(3600)].prop_map(Step::Tick),
        1 => (0_usize..64).prop_map(Step::Configure),
        1 => (1_usize..4).prop_map(Step::Refuse),
    ]
}

pub(super) fn stories() -> impl Strategy<Value = Story> {
    let cluster = (
        prop::collection::vec(node(), 1..6),
        prop::collection::vec(queue(), 1..4),
        prop::collection::vec(job(), 1..6),
    );
    let cluster = cluster
        .prop_map(|(nodes, queues, jobs)| nodes.concat() + &queues.concat() + &jobs.concat());
    let turns = prop::collection::vec(prop::collection::vec(step(), 0..4), 3..9);
    (0_usize..64, cluster, turns).prop_map(|(config, cluster, turns)| Story {
        config,
        cluster,
        turns,
    })
}

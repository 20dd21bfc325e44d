//! Random histories: a small cluster lives through a random sequence of events and quiet times, and
//! `World` compares each cycle with one of the plain evaluator, which remembers nothing. What is
//! shown: whatever is kept from cycle to cycle changes no decision, status, event, number or text.
//! Specification: actions.md 12.2.

use proptest::prelude::*;
use vc_bundle::{Replay, difference};
use vc_conf::Config;
use vc_engine::{About, CycleTime, Effect, Engine, EngineOptions, Evaluator};
use vc_model::{ClusterEvent, ObjectKey, PodPhase, StorageKind, fixture};

use crate::support::*;

const N_JOBS: usize = 6;

#[derive(Clone, Debug)]
enum Step {
    /// Nothing for so many seconds.
    Wait(i64),
    /// Two cycles whose writes nobody has seen yet.
    Unanswered,
    /// A cycle of whose binds every so many fail.
    Refused {
        every: usize,
    },
    /// What follows from the events alone.
    FollowUp,
    /// The clock is set back by so many seconds.
    ClockBack(i64),
    /// Bound pods run, deleted ones go.
    Kubelets,
    /// Another PodGroup, or the same anew, with so many pods.
    Job {
        job: usize,
        queue: usize,
        min: u32,
        cpu: u32,
        n_pods: usize,
        words: &'static str,
        /// Of every pod of it.
        claims: &'static str,
    },
    /// A line of volumes, claims and storage.
    Storage(&'static str),
    NoStorage(StorageKind, &'static str),
    /// All pods of the job end so.
    End {
        job: usize,
        phase: PodPhase,
    },
    /// The pods of the job are deleted.
    Delete {
        job: usize,
    },
    Node {
        node: usize,
        cpu: u32,
        words: &'static str,
    },
    NoNode {
        node: usize,
    },
    Queue {
        queue: usize,
        words: &'static str,
    },
    NoQueue {
        queue: usize,
    },
    Configure {
        which: usize,
    },
}

const N_CONFIGS: usize = 9;

fn configs() -> [Config; N_CONFIGS] {
    let evicting = "enqueue, allocate, preempt, reclaim, backfill";
    let hierarchy = "gang drf{* hierarchy} predicates nodeorder";
    [
        conf(
            "enqueue, allocate, backfill",
            "priority gang conformance | overcommit drf predicates proportion nodeorder",
        ),
        conf(evicting, "priority gang conformance | drf predicates proportion nodeorder"),
        conf(evicting, "gang priority | capacity predicates nodeorder binpack pdb"),
        conf("allocate, backfill", "priority | drf predicates"),
        conf("enqueue, allocate, reclaim, backfill", hierarchy),
        conf(
            "enqueue, allocate, backfill, shuffle",
            "sla gang tdm cdp | proportion predicates resourcequota",
        ),
        conf(evicting, "gang priority fairshare | proportion predicates pdb"),
        conf(evicting, "gang priority | cohort predicates"),
        conf(
            "enqueue, allocate, backfill, shuffle",
            "gang rescheduling task-topology | proportion predicates numa-aware",
        ),
    ]
}

/// Volumes with and without a claim, claims bound and unbound, two classes and what limits them.
const STORAGE: &[&str] = &[
    "class s0 provisioner=kubernetes.io/no-provisioner delayed",
    "class s1 provisioner=d delayed",
    "class s1 provisioner=d delayed topology.zone=a",
    "pv v0 2Gi class=s0",
    "pv v0 2Gi class=s0 at.zone=a",
    "pv v1 4Gi class=s0 driver=d claim=c1",
    "pvc c0 1Gi class=s0",
    "pvc c0 3Gi class=s1",
    "pvc c1 1Gi class=s0 volume=v1",
    "pvc c1 1Gi class=s1 selected=n0",
    "pvc c2 2Gi class=s0 mode=RWOP",
    "pvc c2 2Gi volume=v1 lost",
    "csinode n0 d=0",
    "csinode n0 d=1",
    "csidriver d capacity",
    "capacity k 2Gi class=s1 at.zone=a",
    "attachment a d node=n0 volume=v1",
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let job = 0..N_JOBS;
    let words = prop_oneof![
        4 => Just(""),
        2 => Just("pending"),
        2 => Just("pending minres.cpu=2"),
        1 => Just("minres.cpu=3 minres.gpu=1"),
        1 => Just("pre=true running"),
        1 => Just("sla=3620s pending minres.cpu=9"),
        1 => Just("role.m=2"),
        1 => Just("priority=5"),
        1 => Just("topology"),
    ];
    let claims = prop_oneof![
        4 => Just(""),
        1 => Just("pvc=c0"),
        1 => Just("pvc=c1"),
        1 => Just("pvc=c0 pvc=c2"),
    ];
    let job_step = (job.clone(), 0..3_usize, 0..4_u32, 0..4_u32, 0..4_usize, words, claims);
    let job_step = job_step.prop_map(|(job, queue, min, cpu, n_pods, words, claims)| Step::Job {
        job,
        queue,
        min,
        cpu,
        n_pods,
        words,
        claims,
    });
    let end = prop_oneof![Just(PodPhase::Succeeded), Just(PodPhase::Failed)];
    let node_words =
        prop_oneof![3 => Just(""), 1 => Just("taint=x:NoSchedule"), 1 => Just("zone=a")];
    let queue_words = prop_oneof![
        3 => Just("weight=1"),
        1 => Just("weight=3"),
        1 => Just("state=Closed"),
        1 => Just("cap.cpu=2"),
        1 => Just("deserved.cpu=2 cap.cpu=4"),
        1 => Just("priority=4"),
        1 => Just("reclaimable=false"),
        1 => Just("fifo"),
    ];
    let gone = prop_oneof![
        (0..2_usize).prop_map(|n| (StorageKind::Volume, ["v0", "v1"][n])),
        (0..3_usize).prop_map(|n| (StorageKind::Claim, ["c0", "c1", "c2"][n])),
        (0..2_usize).prop_map(|n| (StorageKind::Class, ["s0", "s1"][n])),
        Just((StorageKind::CsiNode, "n0")),
        Just((StorageKind::CsiDriver, "d")),
        Just((StorageKind::Capacity, "k")),
        Just((StorageKind::Attachment, "a")),
    ];
    let step = prop_oneof![
        4 => (0..STORAGE.len()).prop_map(|line| Step::Storage(STORAGE[line])),
        2 => gone.prop_map(|(kind, name)| Step::NoStorage(kind, name)),
        6 => prop_oneof![Just(0_i64), Just(1), Just(31), Just(301)].prop_map(Step::Wait),
        1 => Just(Step::Unanswered),
        2 => (1..3_usize).prop_map(|every| Step::Refused { every }),
        2 => Just(Step::FollowUp),
        1 => prop_oneof![Just(1), Just(45), Just(3_700)].prop_map(Step::ClockBack),
        4 => Just(Step::Kubelets),
        6 => job_step,
        1 => (job.clone(), end).prop_map(|(job, phase)| Step::End { job, phase }),
        1 => job.prop_map(|job| Step::Delete { job }),
        2 => (0..3_usize, 1..6_u32, node_words).prop_map(|(node, cpu, words)| Step::Node { node, cpu, words }),
        1 => (0..3_usize).prop_map(|node| Step::NoNode { node }),
        1 => (0..3_usize, queue_words).prop_map(|(queue, words)| Step::Queue { queue, words }),
        1 => (1..3_usize).prop_map(|queue| Step::NoQueue { queue }),
        1 => (0..N_CONFIGS).prop_map(|which| Step::Configure { which }),
    ];
    prop::collection::vec(step, 4..20)
}

/// Names of a job's pods that exist.
fn pods(world: &World, job: usize) -> Vec<String> {
    let names = (0..4).map(|index| format!("j{job}-t-{index}"));
    names.filter(|name| world.has_pod(name)).collect()
}

fn take(world: &mut World, step: &Step) {
    match *step {
        Step::Wait(seconds) => world.tick(seconds),
        Step::Unanswered => {
            world.cycle_unanswered();
            world.cycle_unanswered();
        }
        Step::Refused { every } => drop(world.cycle_refusing(every)),
        Step::FollowUp => {
            for effect in world.engine_follow_up() {
                world.store(&effect);
            }
        }
        Step::ClockBack(seconds) => world.tick(-seconds),
        Step::Kubelets => world.kubelets(),
        Step::Storage(line) => {
            fixture::storage(line).into_iter().for_each(|event| world.send(event));
        }
        Step::NoStorage(kind, name) => {
            let is_namespaced = matches!(kind, StorageKind::Claim | StorageKind::Capacity);
            let namespace = if is_namespaced { "default" } else { "" };
            let key = ObjectKey::new(namespace, name);
            world.send(ClusterEvent::StorageDeleted { kind, key });
        }
        Step::Job { job, queue, min, cpu, n_pods, words, claims } => {
            for pod in pods(world, job) {
                world.delete_pod(&pod);
            }
            let cpu = if cpu == 0 { String::new() } else { format!("cpu={cpu}") };
            let pods = format!("task t {cpu} {claims} x{n_pods}");
            let pods = if n_pods == 0 { String::new() } else { pods };
            world.add(&format!("job j{job} queue=q{queue} min={min} {words}\n{pods}"));
        }
        Step::End { job, phase } => {
            for pod in pods(world, job) {
                world.edit(&pod, |pod| {
                    pod.node_name.get_or_insert_with(|| "n0".into());
                    pod.phase = phase;
                });
            }
        }
        Step::Delete { job } => {
            for pod in pods(world, job) {
                world.delete_pod(&pod);
            }
        }
        Step::Node { node, cpu, words } => world.add(&format!("node n{node} cpu={cpu} {words}")),
        Step::NoNode { node } => world.delete_node(&format!("n{node}")),
        Step::Queue { queue, words } => world.add(&format!("queue q{queue} {words}")),
        Step::NoQueue { queue } => world.delete_queue(&format!("q{queue}")),
        Step::Configure { which } => world.configure(&configs()[which]),
    }
}

const VOLUMES: &str = "class s0 provisioner=kubernetes.io/no-provisioner delayed
    class s1 provisioner=d delayed
    pv v0 2Gi class=s0
    pvc c0 1Gi class=s0
    pvc c1 1Gi class=s1";
const START: &str = "node n0 cpu=4\n node n1 cpu=2\n queue q0\n queue q1 weight=2\n
    job j0 queue=q0 min=2\n task t cpu=1 x2\n job j1 queue=q1 min=2\n task t cpu=9 x2";

/// Takes a step and runs a cycle. Some steps follow each other at once, most are followed by a cycle
/// without events.
fn play(world: &mut World, step: &Step) {
    take(world, step);
    world.cycle();
    if !matches!(step, Step::Kubelets) {
        world.cycle();
    }
}

/// Plays a history in which another engine follows from a step on.
fn followed(which: usize, (at, follow): (usize, fn(&mut World)), steps: &[Step]) {
    let mut world = World::new(&configs()[which], START).alone();
    take(&mut world, &Step::Storage(VOLUMES));
    for (step, place) in steps.iter().zip(0..) {
        if place == at.min(steps.len() - 1) {
            follow(&mut world);
        }
        play(&mut world, step);
    }
    world.cycle();
}

/// 48 random cases, or as many as `FUZZ_REPLAY` says.
fn random_cases() -> ProptestConfig {
    let asked = std::env::var("FUZZ_REPLAY").ok().and_then(|number| number.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(48), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(random_cases())]

    #[test]
    fn what_is_remembered_changes_nothing(which in 0..N_CONFIGS, steps in steps()) {
        let mut world = World::new(&configs()[which], START);
        take(&mut world, &Step::Storage(VOLUMES));
        world.cycle();
        for step in &steps {
            play(&mut world, step);
        }
        world.cycle();
    }

    #[test]
    fn ans_100_a_stored_state_of_any_moment_decides_the_same(
        which in 0..N_CONFIGS,
        at in 0..12_usize,
        steps in steps(),
    ) {
        followed(which, (at, World::follow_stored), &steps);
    }

    #[test]
    fn ans_104_the_replay_of_a_bundle_decides_the_same(
        which in 0..N_CONFIGS,
        first in 0..6_usize,
        at in 0..40_u64,
        steps in steps(),
    ) {
        let mut world = World::new(&configs()[which], START).alone();
        take(&mut world, &Step::Storage(VOLUMES));
        world.cycle();
        for (step, place) in steps.iter().zip(0..) {
            if place == first.min(steps.len() - 1) {
                world.keep_history();
            }
            play(&mut world, step);
        }
        let bundle = world.bundle();
        let (from, last) = (bundle.manifest().first_cycle, bundle.manifest().last_cycle);
        prop_assert_eq!(last, world.engine.n_cycles());
        for at in [None, Some((from + at).min(last))] {
            let mut replay = Replay::new(&bundle, at).expect("the cycle is in it");
            prop_assert!(at.is_none_or(|at| replay.engine().n_cycles() <= at));
            while let Some(step) = replay.step() {
                prop_assert_eq!(difference(&step), (None, None));
                prop_assert!(step.is_same);
            }
            prop_assert_eq!(replay.engine().n_cycles(), last);
        }
    }

    #[test]
    fn ans_57_a_twin_of_any_moment_decides_the_same(
        which in 0..N_CONFIGS,
        at in 0..12_usize,
        steps in steps(),
    ) {
        followed(which, (at, World::follow), &steps);
    }
}

#[test]
fn ans_57_a_digest_depends_on_object_node_and_order() {
    let bind = |uid: &str, node: &str| Effect::Bind {
        pod: ObjectKey::new("ns", "p"),
        uid: uid.into(),
        node: node.into(),
        annotations: Vec::new(),
        node_lock: None,
    };
    let (one, other) = (bind("u1", "n1"), bind("u2", "n1"));
    let same = digest(&[one.clone(), other.clone()]);
    assert_eq!(same, digest(&[one.clone(), other.clone()]));
    for effects in [
        vec![other.clone(), one.clone()],
        vec![one.clone()],
        vec![],
        vec![bind("u1", "n2"), other.clone()],
        vec![Effect::Resync { pod: ObjectKey::new("ns", "p"), uid: "u1".into() }, other],
    ] {
        assert_ne!(same, digest(&effects), "{effects:?}");
    }
}

#[test]
fn ans_57_an_engine_that_asks_services_has_no_twin() {
    let has_twin =
        |config: &Config| Engine::new(EngineOptions::default(), config).0.twin().is_some();
    assert!(has_twin(&conf("allocate", "gang predicates")));
    assert!(!has_twin(&conf("allocate", "gang extender predicates")));
}

/// A copy that forgot the last round of `tdm` would begin another one at once.
#[test]
fn ans_58_a_copy_has_what_plugins_remember() {
    let zones = "tdm{* tdm.revocable-zone.rz1=0:00-0:01 tdm.evict.period=10m} conformance";
    let text = "node n1 cpu=4 revocable=rz1\n job low min=0\n task a cpu=1 pre=true @n1 running";
    let mut world = World::new(&conf("allocate, shuffle", zones), text);
    world.tick(7_200);
    assert_eq!(world.cycle().only(&["evict"]), "evict low-a shuffle");
    world.add("job more min=0\n  task b cpu=1 pre=true @n1 running");
    world.tick(1);
    assert_eq!(world.cycle().only(&["evict"]), "", "the next round is not due");
    let evicted = |engine: &mut Engine, seconds: i64| {
        let now = CycleTime { unix_micros: engine.last_micros() + seconds * 1_000_000 };
        let (effects, _report) = engine.cycle(Vec::new(), now);
        effects.iter().filter(|effect| matches!(effect, Effect::Evict { .. })).count()
    };
    let mut copy = world.engine.copy();
    assert_eq!((evicted(&mut copy, 1), evicted(&mut copy, 600)), (0, 1));
}

/// What was reported once is not reported by an engine that goes on from a copy or from a stored state.
#[test]
fn ans_100_what_was_reported_is_not_reported_again() {
    let text = "node n1 cpu=4\n queue root\n queue q guarantee.cpu=100\n
        queue bad annotation.volcano.sh/nodegroup-resource-limits=x\n
        queue deep parent=q\n job inner queue=q\n  task t cpu=1\n
        job far queue=deep min=2\n  task t cpu=1
        job hard min=1 topology=hard:0\n  task t cpu=1";
    for plugins in ["proportion nodegroup", "capacity{* hierarchy}"] {
        let plugins = format!("gang predicates {plugins}");
        let mut world = World::new(&conf("enqueue, allocate", &plugins), text).alone();
        let hyper_node = fixture::events_of("hypernode a tier=1 member=none");
        hyper_node.into_iter().for_each(|event| world.send(event));
        world.send(ClusterEvent::HyperNodesListed { is_complete: true });
        let first = world.cycle();
        let said = first.only(&["event"]);
        assert!(
            said.contains("InvalidHyperNode") && said.contains("InvalidNetworkTopology"),
            "{said}"
        );
        let is_of_queue =
            |effect: &&Effect| matches!(effect, Effect::Event { about: About::Queue { .. }, .. });
        assert!(first.effects.iter().any(|effect| is_of_queue(&effect)), "{plugins}");
        world.cycle();
        let engine = world.engine.twin().unwrap();
        let now_micros = engine.last_micros();
        let stored = engine.into_checkpoint(now_micros).unwrap();
        for mut again in [world.engine.copy(), Engine::restore(stored, Evaluator::Fast)] {
            let now = CycleTime { unix_micros: now_micros };
            let (effects, _report) = again.cycle(Vec::new(), now);
            assert_eq!(effects, [], "{plugins}");
        }
    }
}

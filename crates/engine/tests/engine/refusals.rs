//! A group that enqueue refuses is left out until something changes that the votes read of it, or a
//! group before it is admitted: for each condition exactly that change. Every cycle is compared with
//! one of the plain evaluator, which asks for every group in every cycle. Specification: actions.md
//! 12.2 S7, 12.3.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use vc_conf::Config;
use vc_model::PodGroupPhase::{Inqueue, Pending};

use crate::support::*;

const CHART: &str =
    "priority gang conformance | overcommit drf predicates proportion nodeorder binpack";

fn chart() -> Config {
    conf("enqueue, allocate, backfill", CHART)
}

/// How many groups stand in the next cycle.
fn stand(world: &mut World) -> u64 {
    world.cycle();
    world.engine.cache_stats().n_revalidated
}

/// A world whose writes have all come back, in which so many groups are refused in vain.
fn settled(config: &Config, text: &str, n_groups: u64) -> World {
    let mut world = World::new(config, text);
    for _ in 0..4 {
        world.cycle();
    }
    for name in ["nudge1", "nudge2", "nudge3"] {
        world.add(&format!("job {name} min=1"));
        world.cycle();
    }
    world.add("job nudge4 min=1");
    assert_eq!(stand(&mut world), n_groups, "a cycle in which something else has changed");
    world
}

/// `a` wants more cpus than there are, and all the room for devices.
const REFUSED: &str = "node n1 cpu=4 gpu=1
    queue c1
    queue z1
    job a min=1 created=5 pending minres.cpu=9 minres.gpu=1
      task w cpu=9 gpu=1";

#[test]
fn fast__memo_invalidation_a_group_before_it_is_admitted() {
    let ahead = ["created=1", "queue=c1 created=9", "priority=9 created=9"];
    for words in ahead {
        let mut world = settled(&chart(), REFUSED, 1);
        world.add(&format!("job b min=1 {words} pending minres.gpu=1"));
        let cycle = world.cycle();
        assert_eq!(world.group("b").status.phase, Inqueue);
        assert_eq!(world.engine.cache_stats().n_revalidated, 0, "{words}");
        let reported = "resource in cluster is overused: overused cpu, overused nvidia.com/gpu";
        assert!(cycle.all().contains(reported), "{words}: {}", cycle.all());
    }
}

#[test]
fn fast__memo_holds_where_a_group_behind_it_is_admitted() {
    for words in ["created=9", "queue=z1 created=1"] {
        let mut world = settled(&chart(), REFUSED, 1);
        world.add(&format!("job b min=1 {words} pending minres.gpu=1"));
        world.cycle();
        assert_eq!(world.group("b").status.phase, Inqueue);
        assert_eq!(world.engine.cache_stats().n_revalidated, 1, "{words}");
    }
}

#[test]
fn fast__memo_holds_where_others_are_refused() {
    let mut world = settled(&chart(), REFUSED, 1);
    world.add("job b min=1 created=1 pending minres.cpu=8\n job c min=1 pending minres.cpu=9");
    assert_eq!(stand(&mut world), 1);
    world.cycle();
    world.add("job nudge5 min=1");
    assert_eq!(stand(&mut world), 3);
    world.add("job c min=1 pending minres.cpu=10");
    assert_eq!(stand(&mut world), 2, "only what changed is asked for");
}

#[test]
fn fast__memo_invalidation_waiting_time() {
    let config = conf("enqueue, allocate", "sla gang | overcommit predicates nodeorder");
    let text = "node n1 cpu=4
        job a min=1 pending sla=3720s minres.cpu=9
        job b min=1 pending sla=3660s minres.cpu=9
        job c min=1 pending minres.cpu=9";
    let mut world = settled(&config, text, 3);
    world.tick(30);
    world.add("job nudge5 min=1");
    assert_eq!(stand(&mut world), 0, "they are told again");
    world.tick(29);
    world.add("job nudge6 min=1");
    assert_eq!(stand(&mut world), 3);
    world.tick(1);
    world.cycle();
    let phases = ["a", "b", "c"].map(|job| world.group(job).status.phase);
    assert_eq!(phases, [Pending, Inqueue, Pending]);
}

#[test]
fn fast__memo_invalidation_room_of_one_queue() {
    let config = conf("enqueue, allocate", "gang | proportion predicates nodeorder");
    let text = "node n1 cpu=20
        queue p cap.cpu=5
        queue q cap.cpu=5
        job r queue=p min=1 running minres.cpu=3\n task w cpu=3 @n1 running
        job s queue=q min=1 running minres.cpu=3\n task w cpu=3 @n1 running
        job a queue=p min=1 pending minres.cpu=4
        job b queue=q min=1 pending minres.cpu=4";
    let mut world = settled(&config, text, 2);
    world.delete_pod("s-w");
    assert_eq!(stand(&mut world), 1);
    let phases = ["a", "b"].map(|job| world.group(job).status.phase);
    assert_eq!(phases, [Pending, Inqueue]);
}

#[test]
fn fast__memo_invalidation_quota_of_a_namespace() {
    let config = conf("enqueue, allocate", "gang | resourcequota predicates nodeorder");
    let text = "node n1 cpu=20
        quota x/q hard.cpu=2
        quota y/q hard.cpu=2
        job x/a min=1 pending minres.cpu=4
        job y/b min=1 pending minres.cpu=4";
    let mut world = settled(&config, text, 2);
    world.add("quota y/q hard.cpu=3");
    assert_eq!(stand(&mut world), 1, "the words of one are others");
    world.add("quota y/q hard.cpu=4");
    assert_eq!(stand(&mut world), 1);
    assert_eq!(world.group("y/b").status.phase, Inqueue);
}

/// Whoever refuses a group: that its queue is not open comes first (C-33).
#[test]
fn fast__memo_invalidation_a_queue_that_is_closed() {
    let mut world = settled(&chart(), REFUSED, 1);
    world.add("queue default state=Closed");
    let cycle = world.cycle();
    assert!(cycle.only(&["group"]).contains("queue default is Closed"), "{}", cycle.all());
    assert_eq!(world.engine.cache_stats().n_revalidated, 0);
}

#[test]
fn fast__memo_invalidation_a_second_enqueue() {
    let config = conf("enqueue, allocate, enqueue", CHART);
    let mut world = World::new(&config, REFUSED);
    for turn in 0..8 {
        world.cycle();
        world.add(&format!("job nudge{turn} min=1\n task w cpu=1"));
    }
    world.add("job b min=1 created=1 pending minres.gpu=1");
    world.cycle();
}

#[test]
fn why_nobody_goes_for_a_group_is_told_again_when_it_is_due() {
    let config = conf("enqueue, allocate, preempt", CHART);
    let mut world = settled(&config, REFUSED, 1);
    for second in (10..=600).step_by(10) {
        world.tick(10);
        world.add(&format!("job nudge-{second} min=1"));
        let cycle = world.cycle();
        let is_reported_here = cycle.all().contains("PodGroup a Normal PreemptionSkipped");
        assert_eq!(is_reported_here, second % 300 == 0, "{second}");
        // Why it is refused is told every 30 seconds (A44).
        assert_eq!(
            world.engine.cache_stats().n_revalidated,
            u64::from(second % 30 != 0),
            "{second}"
        );
    }
}

#[derive(Clone, Debug)]
enum Change {
    Nothing,
    /// A group wants so much; it is older or younger than others.
    Group(usize, u32, u32),
    DeleteGroup(usize),
    /// A pod comes to a node from outside.
    Pod(u32),
    DeletePod(usize),
    Node(u32),
    /// It may hold so much; nothing: it is closed.
    Queue(u32, u32),
    Kubelets,
    Tick(i64),
    Unanswered,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        3 => Just(Change::Nothing),
        3 => (0..10_usize, 1..8_u32, 0..9_u32).prop_map(|(n, cpu, age)| Change::Group(n, cpu, age)),
        1 => (0..10_usize).prop_map(Change::DeleteGroup),
        1 => (1..3_u32).prop_map(Change::Pod),
        1 => (0..6_usize).prop_map(Change::DeletePod),
        1 => (3..9_u32).prop_map(Change::Node),
        1 => (0..2_u32, 0..9_u32).prop_map(|(queue, cpu)| Change::Queue(queue, cpu)),
        1 => Just(Change::Kubelets),
        1 => Just(Change::Tick(150)),
        1 => Just(Change::Unanswered),
    ];
    prop::collection::vec(change, 6..24)
}

/// Some groups of two namespaces in two queues, some with pods, some with a waiting time.
fn group(number: usize, cpu: u32, age: u32) -> String {
    let (namespace, queue) = (["x", "y"][number % 2], number / 2 % 2);
    let sla = if number.is_multiple_of(3) { "sla=3900s" } else { "" };
    let gpu = if number % 4 == 1 { "minres.gpu=1" } else { "" };
    let task =
        if number.is_multiple_of(2) { format!("\n task w cpu={cpu}") } else { String::new() };
    format!(
        "job {namespace}/g{number} queue=q{queue} min=1 created={age} pending {sla} {gpu} \
         minres.cpu={cpu}{task}"
    )
}

fn take(world: &mut World, change: &Change, turn: usize) {
    match *change {
        Change::Nothing => world.add(&format!("job nudge{turn} min=1")),
        Change::Group(number, cpu, age) => {
            let pod = format!("{}/g{number}-w", ["x", "y"][number % 2]);
            if world.has_pod(&pod) {
                world.delete_pod(&pod);
            }
            world.add(&group(number, cpu, age));
        }
        Change::DeleteGroup(number) => {
            world.delete_group(&format!("{}/g{number}", ["x", "y"][number % 2]));
        }
        Change::Pod(cpu) => world.add(&format!("pod p{turn} cpu={cpu} @n0 running")),
        Change::DeletePod(place) => {
            world.nth_pod(place).into_iter().for_each(|pod| world.delete_pod(&pod));
        }
        Change::Node(cpu) => world.add(&format!("node n0 cpu={cpu} gpu=1")),
        Change::Queue(queue, 0) => world.add(&format!("queue q{queue} state=Closed")),
        Change::Queue(queue, cpu) => world.add(&format!("queue q{queue} cap.cpu={cpu}")),
        Change::Kubelets => world.kubelets(),
        Change::Tick(seconds) => world.tick(seconds),
        Change::Unanswered => {
            world.cycle_unanswered();
        }
    }
}

fn configs() -> [Config; 6] {
    let all = "enqueue, allocate, preempt, reclaim, backfill";
    [
        chart(),
        conf(all, CHART),
        conf("enqueue, allocate, backfill", "sla gang drf | overcommit proportion predicates"),
        conf(all, "priority gang | capacity resourcequota predicates nodeorder"),
        conf("enqueue, allocate, enqueue", "gang | overcommit resourcequota predicates"),
        conf("reclaim, enqueue, allocate", "gang sla | proportion predicates"),
    ]
}

/// How many groups stood.
fn live(which: usize, changes: &[Change]) -> u64 {
    let text = "node n0 cpu=5 gpu=1
        queue q0
        queue q1 cap.cpu=4
        quota y/q hard.cpu=3";
    let mut world = World::new(&configs()[which], text);
    for (number, cpu) in [(0, 7), (1, 6), (3, 5), (6, 9), (9, 9)] {
        world.add(&group(number, cpu, 4));
    }
    let mut n_revalidated = 0;
    for (turn, change) in changes.iter().enumerate() {
        take(&mut world, change, turn);
        world.cycle();
        n_revalidated += world.engine.cache_stats().n_revalidated;
    }
    n_revalidated
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_refusal_that_stands_changes_nothing(which in 0..6_usize, changes in changes()) {
        live(which, &changes);
    }
}

#[test]
fn in_random_clusters_refusals_stand() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    // With a second enqueue every group is asked for.
    for which in [0, 1, 2, 3, 5] {
        let mut n_revalidated = 0;
        for _ in 0..20 {
            let tree = changes().new_tree(&mut runner).expect("nothing is rejected");
            n_revalidated += live(which, &tree.current());
        }
        assert!(100 < n_revalidated, "configuration {which}: {n_revalidated}");
    }
}

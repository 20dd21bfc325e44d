//! A failure of allocate stands until something changes that it depends on: for each condition that
//! the rule on repeated failures (S7) names a job that fails, exactly that change, and the job is
//! tried again; beside it changes that leave it alone. Every cycle is compared with one of the plain evaluator, which tries every job in
//! every cycle, messages included. Specification: actions.md 12.2 S7, test list `fast/*`.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use vc_conf::Config;
use vc_model::{ClusterEvent, QUEUE_GATE};

use crate::support::*;

const CHART: &str =
    "priority gang conformance | overcommit drf predicates proportion nodeorder binpack";

/// `a` finds no place: `n1` is full, `n2` is tainted.
const FULL: &str = "node n1 cpu=4
    node n2 cpu=4 gpu=1 taint=x:NoSchedule
    job r min=1 running
      task w cpu=3 @n1 running
    job a min=2
      task w cpu=2 x2";

pub(crate) fn chart() -> Config {
    conf("enqueue, allocate, backfill", CHART)
}

/// Some job that nobody waits for comes, and leaves no trace on nodes.
fn nudge(world: &mut World) {
    world.add("job nudge min=1");
}

/// Whether so many failures stand in the next cycle.
fn stand(world: &mut World) -> u64 {
    world.cycle();
    world.engine.cache_stats().n_revalidated
}

/// A world whose writes have all come back, in which one job has failed in vain.
fn settled(config: &Config, text: &str) -> World {
    let mut world = World::new(config, text);
    for _ in 0..4 {
        world.cycle();
    }
    nudge(&mut world);
    world.cycle();
    world.delete_group("nudge");
    assert_eq!(stand(&mut world), 1, "a cycle in which something else has changed");
    world
}

/// The change lets the failure stand no longer.
fn is_tried_after(config: &Config, text: &str, change: impl FnOnce(&mut World)) -> World {
    let mut world = settled(config, text);
    change(&mut world);
    assert_eq!(stand(&mut world), 0);
    world
}

/// The change does not matter to the job.
fn stands_after(config: &Config, text: &str, change: impl FnOnce(&mut World)) {
    let mut world = settled(config, text);
    change(&mut world);
    assert_eq!(stand(&mut world), 1);
}

#[test]
fn fast__memo_invalidation_pending_tasks() {
    is_tried_after(&chart(), FULL, |world| {
        world.add("pod a-w-2 cpu=2");
        world.edit("a-w-2", |pod| {
            pod.annotations.insert("scheduling.k8s.io/group-name".into(), "a".into());
        });
    });
    is_tried_after(&chart(), FULL, |world| world.delete_pod("a-w-0"));
}

#[test]
fn fast__memo_invalidation_classes() {
    let mut world = is_tried_after(&chart(), FULL, |world| {
        for pod in ["a-w-0", "a-w-1"] {
            world.edit(pod, |pod| pod.tolerations = vec![tolerates_everything()]);
        }
    });
    world.cycle();
    assert_eq!(world.pod("a-w-0").node_name.as_deref(), Some("n2"));
}

fn tolerates_everything() -> vc_model::Toleration {
    vc_model::Toleration {
        key: "".into(),
        operator: vc_model::TolerationOperator::Exists,
        value: "".into(),
        effect: None,
    }
}

#[test]
fn fast__memo_invalidation_minimums() {
    is_tried_after(&chart(), FULL, |world| world.add("job a min=1"));
}

#[test]
fn fast__memo_invalidation_nominations() {
    is_tried_after(&chart(), FULL, |world| {
        world.edit("a-w-0", |pod| pod.nominated_node = Some("n1".into()));
    });
    let mut world = is_tried_after(&chart(), FULL, |world| {
        world.edit("a-w-0", |pod| pod.nominated_node = Some("n1".into()));
    });
    world.cycle();
    nudge(&mut world);
    assert_eq!(world.pod("a-w-0").nominated_node, None, "a nomination without claim is cleared");
    assert_eq!(stand(&mut world), 1);
}

/// `a` is not admitted: it wants more than there is.
const REFUSED: &str = "node n1 cpu=4
    job a min=1 pending minres.cpu=9
      task w cpu=9";

#[test]
fn fast__memo_invalidation_refusals() {
    stands_after(&chart(), REFUSED, |world| world.add("node n2 cpu=1"));
    stands_after(&chart(), REFUSED, |world| world.add("job b min=1 pending minres.cpu=1"));
    is_tried_after(&chart(), REFUSED, |world| world.add("job a min=1 pending minres.cpu=8"));
    // Its words would be others.
    is_tried_after(&chart(), REFUSED, |world| {
        world.add("job a min=1 pending minres.cpu=9 minres.gpu=1");
    });
    let mut world = is_tried_after(&chart(), REFUSED, |world| world.add("node n2 cpu=9"));
    world.cycle();
    assert_eq!(world.pod("a-w").node_name.as_deref(), Some("n2"), "it was admitted");
}

#[test]
fn fast__memo_invalidation_refusals_of_another_plugin() {
    let config = conf("enqueue, allocate", "gang | overcommit proportion predicates");
    let text = format!("{REFUSED}\n queue small weight=1 cap.cpu=2");
    let mut world = settled(&config, &text);
    world.add("node n2 cpu=9");
    world.add("queue default weight=1 cap.cpu=5");
    assert_eq!(stand(&mut world), 0, "proportion refuses it now");
    world.add("queue default weight=1 cap.cpu=4");
    assert_eq!(stand(&mut world), 0, "queues are not what they were");
    nudge(&mut world);
    assert_eq!(stand(&mut world), 1);
}

#[test]
fn fast__memo_refusals_are_told_again_when_they_are_due() {
    let mut world = settled(&chart(), REFUSED);
    for second in (10..=360).step_by(10) {
        world.tick(10);
        nudge(&mut world);
        let n_events = world.cycle().only(&["event"]).lines().count();
        world.delete_group("nudge");
        let is_due = second % 30 == 0;
        assert_eq!(0 < n_events, is_due, "{second}");
        assert_eq!(world.engine.cache_stats().n_revalidated, u64::from(!is_due), "{second}");
    }
}

#[test]
fn fast__memo_invalidation_topology() {
    is_tried_after(&chart(), FULL, |world| world.add("job a min=2 topology"));
}

#[test]
fn fast__memo_invalidation_room() {
    let mut world = is_tried_after(&chart(), FULL, |world| world.delete_pod("r-w"));
    world.cycle();
    assert_eq!(world.pod("a-w-1").node_name.as_deref(), Some("n1"));
    is_tried_after(&chart(), FULL, |world| world.add("node n1 cpu=8"));
    is_tried_after(&chart(), FULL, |world| world.add("node n3 cpu=1"));
    // Enough for one of two: a try that places something does not stand.
    let mut world = is_tried_after(&chart(), FULL, |world| world.add("node n3 cpu=2"));
    for _ in 0..3 {
        assert_eq!(stand(&mut world), 0);
        nudge(&mut world);
    }
}

#[test]
fn fast__memo_invalidation_room_in_another_dimension() {
    let config = conf("allocate", "gang predicates nodeorder");
    let text = "node n1 cpu=4\n job r min=1 running\n task w cpu=3 @n1 running
        job a min=1\n task w cpu=1 gpu=1";
    let mut world = is_tried_after(&config, text, |world| {
        world.add("job s min=1 running\n task w cpu=1 @n1 running");
    });
    let message = world.cycle().report.waiting[0].message.clone();
    let first = "0/1 nodes are unavailable: 1 Insufficient cpu. ";
    assert!(message.starts_with(first), "what it lacks first: {message}");
    stands_after(&config, text, |world| {
        world.add("job s min=1 running\n task w memory=1 @n1 running");
    });
}

#[test]
fn fast__memo_invalidation_ready() {
    let text = "node n1 cpu=4 unschedulable\n job a min=1\n task w cpu=1";
    is_tried_after(&chart(), text, |world| world.add("node n1 cpu=4"));
}

#[test]
fn fast__memo_invalidation_labels_and_taints() {
    let text = "node n1 cpu=4 disk=hdd\n job a min=1\n task w cpu=1 selector.disk=ssd";
    is_tried_after(&chart(), text, |world| world.add("node n1 cpu=4 disk=ssd"));
    stands_after(&chart(), text, |world| world.add("node n1 cpu=4 disk=tape"));
    is_tried_after(&chart(), FULL, |world| world.add("node n2 cpu=4 gpu=1"));
}

#[test]
fn fast__memo_invalidation_devices() {
    let text = "node n1 cpu=4\n job a min=1\n task w cpu=1 gpu=1";
    is_tried_after(&chart(), text, |world| world.add("node n1 cpu=4 gpu=1"));
    let mut world = World::new(&chart(), "node n1 cpu=4\n job a min=1\n task w cpu=9 pvc=none");
    for _ in 0..6 {
        assert_eq!(stand(&mut world), 0, "volumes and claims are looked for in every cycle");
        nudge(&mut world);
    }
}

#[test]
fn fast__memo_invalidation_terms() {
    let text = "node n1 cpu=4 zone=a\n job a min=1\n task w cpu=1 near=zone:db";
    let mut world = World::new(&chart(), text);
    for _ in 0..6 {
        assert_eq!(stand(&mut world), 0, "a pod with terms is tried in every cycle");
        nudge(&mut world);
    }
    world.add("pod db cpu=1 @n1 running label.app=db");
    world.cycle();
    assert_eq!(world.pod("a-w").node_name.as_deref(), Some("n1"));
    // Terms of others, too.
    let text =
        "node n1 cpu=1 zone=a\n node n2 cpu=1 zone=b\n job a min=1\n task w cpu=2 label.app=a";
    is_tried_after(&chart(), text, |world| world.add("pod p cpu=1 @n1 running away=zone:a"));
}

#[test]
fn fast__memo_invalidation_allocatable() {
    let config = conf("allocate", "gang capacity predicates nodeorder");
    let text = "node n1 cpu=9\n queue q cap.cpu=4\n job r queue=q min=1 running
        task w cpu=3 @n1 running\n job a queue=q min=2\n task w cpu=2 x2";
    let mut world = is_tried_after(&config, text, |world| world.delete_pod("r-w"));
    world.cycle();
    assert_eq!(world.pod("a-w-1").node_name.as_deref(), Some("n1"));
    is_tried_after(&config, text, |world| world.add("queue q cap.cpu=9"));
}

#[test]
fn fast__memo_invalidation_overused() {
    // A queue with what it deserves, and one that asks for more than there is left.
    let text = "node n1 cpu=4 pods=4\n queue q\n queue p
        job r queue=q min=1 running\n task w cpu=2 x2 @n1 running
        job b queue=p min=1\n task w cpu=2 x2
        job a queue=q min=2\n task w cpu=2 x2";
    let mut world = settled(&chart(), text);
    nudge(&mut world);
    let cycle = world.cycle();
    let text = format!("{:?}", cycle.report.waiting);
    assert!(text.contains("queue q is overused"), "{text}");
    assert_eq!(world.engine.cache_stats().n_revalidated, 1, "of job b, which is tried in its turn");
    world.delete_pod("r-w-0");
    let text = format!("{:?}", world.cycle().report.waiting);
    assert!(!text.contains("queue q is overused"), "{text}");
}

#[test]
fn fast__memo_invalidation_configuration() {
    let other = conf("enqueue, allocate", CHART);
    is_tried_after(&chart(), FULL, |world| world.configure(&other));
}

#[test]
fn fast__memo_invalidation_clock() {
    let config = conf("allocate", "gang scorer predicates nodeorder");
    let mut all = objects("queue default");
    all.extend(objects(FULL));
    let mut world = World::with(beside_silent(), &config, all);
    for _ in 0..6 {
        assert_eq!(stand(&mut world), 0, "filters that read the clock are asked in every cycle");
        world.tick(1);
    }
    // A zone becomes usable at 1:01 in the morning.
    let config =
        conf("allocate", "gang tdm{* tdm.revocable-zone.rz1=1:01-2:00} predicates nodeorder");
    let text = "node n1 cpu=4 revocable=rz1\n node n2 cpu=1
        job a min=2\n task w cpu=2 x2 annotation.volcano.sh/revocable-zone=*";
    stands_after(&config, text, |world| world.tick(59));
    let mut world = is_tried_after(&config, text, |world| {
        world.tick(60);
        nudge(world);
    });
    world.cycle();
    assert_eq!(world.pod("a-w-1").node_name.as_deref(), Some("n1"));
    // JobPipelined of sla turns true with time.
    let text = "node n1 cpu=1\n job a min=1 sla=3610s\n task w cpu=2";
    let mut world = settled(&conf("allocate", "sla gang predicates nodeorder"), text);
    world.tick(60);
    nudge(&mut world);
    world.cycle();
}

#[test]
fn fast__memo_holds_while_others_come_and_go() {
    type Change = fn(&mut World);
    let changes: [(&str, Change); 5] = [
        ("a heartbeat", |world| world.add("node n2 cpu=4 gpu=1 taint=x:NoSchedule")),
        ("a pod where it may not go", |world| world.add("pod dns cpu=1 @n2 running")),
        ("a job of another kind", |world| world.add("job b min=1\n task w cpu=1 gpu=1")),
        ("a job that gets the last room", |world| world.add("job b min=1\n task w cpu=1")),
        ("a namespace", |world| {
            let labels = [("team".into(), "x".into())].into();
            world.send(ClusterEvent::NamespaceApplied { name: "other".into(), labels });
        }),
    ];
    for (what, change) in changes {
        let mut world = settled(&chart(), FULL);
        change(&mut world);
        nudge(&mut world);
        assert_eq!(stand(&mut world), 1, "{what}");
    }
}

#[test]
fn what_stands_is_told_again_in_time() {
    let mut world = settled(&chart(), FULL);
    world.tick(200);
    nudge(&mut world);
    let cycle = world.cycle();
    assert!(!cycle.all().contains("PodGroup a Warning"), "{}", cycle.all());
    assert_eq!(world.engine.cache_stats().n_revalidated, 1);
    world.tick(100);
    let cycle = world.cycle();
    assert!(cycle.all().contains("PodGroup a Warning"), "{}", cycle.all());
    assert_eq!(world.engine.cache_stats().n_revalidated, 1, "told, but not tried");
    nudge(&mut world);
    world.tick(299);
    let cycle = world.cycle();
    assert!(!cycle.all().contains("PodGroup a Warning"), "{}", cycle.all());
}

#[test]
fn a_job_is_not_told_what_another_condition_replaced() {
    let mut world = settled(&chart(), FULL);
    world.edit("a-w-0", |pod| pod.scheduled_condition = None);
    let cycle = world.cycle();
    assert!(cycle.all().contains("pod a-w-0 Unschedulable"), "{}", cycle.all());
    world.send(ClusterEvent::PodStatusFailed { uid: world.pod("a-w-1").uid.clone() });
    let cycle = world.cycle();
    assert!(cycle.all().contains("pod a-w-1 Unschedulable"), "{}", cycle.all());
}

#[test]
fn what_is_passed_over_without_a_word_is_looked_at_again() {
    let config = conf("allocate", "gang capacity predicates nodeorder");
    let text = format!(
        "node n1 cpu=9\n queue q cap.cpu=9\n job r queue=q min=1 running\n task w cpu=2 @n1 running
        job a queue=q min=2\n task g cpu=1 gate={QUEUE_GATE}\n task t cpu=7.5"
    );
    let mut world = World::new(&config, &text);
    for _ in 0..6 {
        assert_eq!(stand(&mut world), 0, "the gated task might be refused by the queue");
        nudge(&mut world);
    }
    // A queue that fills up has a word for it.
    world.add("job s queue=q min=1 running\n task w cpu=7 @n1 running");
    world.cycle();
}

#[test]
fn a_second_try_in_a_session_may_find_something_else() {
    let config = conf("allocate, preempt, allocate", CHART);
    let text = "node n1 cpu=4
        job low min=0 running\n task v cpu=3 @n1 running
        job a min=1 priority=1\n task w cpu=5
        job b min=1 priority=9\n task w cpu=3";
    let mut world = World::new(&config, text);
    for turn in 0..8 {
        world.cycle();
        nudge(&mut world);
        match turn {
            3 => world.kubelets(),
            5 => world.add("job c min=1 priority=5\n task w cpu=1"),
            _ => {}
        }
    }
}

#[test]
fn where_jobs_wait_for_others_all_are_tried() {
    let base = chart();
    let waits = with_arguments(base.clone(), "allocate", "{headOfLine: queue}");
    let repairs = with_arguments(base, "allocate", "{gangRepairFirst: true}");
    let quotas = conf("allocate", "gang predicates nodeorder cohort{*}");
    for config in [waits, repairs, quotas] {
        let mut world = World::new(&config, FULL);
        for _ in 0..6 {
            assert_eq!(stand(&mut world), 0);
            nudge(&mut world);
        }
    }
}

/// What happens in a cluster in which many jobs wait.
pub(crate) fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        3 => Just(Change::Nothing),
        2 => (0..4_usize, 1..4_u32).prop_map(|(node, cpu)| Change::Job(node, cpu)),
        1 => (0..12_usize).prop_map(Change::Delete),
        1 => (0..3_u32, 1..7_u32).prop_map(|(node, cpu)| Change::Node(node, cpu)),
        1 => (0..2_u32, 1..9_u32).prop_map(|(queue, cpu)| Change::Queue(queue, cpu)),
        1 => Just(Change::Kubelets),
        1 => Just(Change::Tick(150)),
        1 => Just(Change::Unanswered),
    ];
    prop::collection::vec(change, 6..24)
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Nothing,
    /// A small job comes, or comes anew.
    Job(usize, u32),
    /// A pod goes.
    Delete(usize),
    Node(u32, u32),
    Queue(u32, u32),
    Kubelets,
    Tick(i64),
    /// A cycle whose writes nobody has seen yet.
    Unanswered,
}

pub(crate) fn take(world: &mut World, change: &Change) {
    match *change {
        Change::Nothing => {}
        Change::Job(number, cpu) => {
            let queue = number % 2;
            let name = format!("s{number}-w");
            if world.has_pod(&name) {
                world.delete_pod(&name);
            }
            world.add(&format!("job s{number} queue=q{queue} min=1\n task w cpu={cpu}"));
        }
        Change::Delete(place) => {
            world.nth_pod(place).into_iter().for_each(|pod| world.delete_pod(&pod));
        }
        Change::Node(node, cpu) => world.add(&format!("node n{node} cpu={cpu} pods=5")),
        Change::Queue(queue, cpu) => world.add(&format!("queue q{queue} cap.cpu={cpu}")),
        Change::Kubelets => world.kubelets(),
        Change::Tick(seconds) => world.tick(seconds),
        Change::Unanswered => {
            world.cycle_unanswered();
        }
    }
}

/// Gangs of few shapes in two queues, too large for what is left.
fn backlog(jobs: &[(usize, u32, u32, u32)]) -> String {
    let mut text = String::from(
        "node n0 cpu=4 pods=5\n node n1 cpu=3 pods=5\n node n2 cpu=6 pods=5 taint=x:NoSchedule
        queue q0\n queue q1 cap.cpu=9
        job r queue=q0 min=0 running\n task w cpu=3 @n0 running\n task v cpu=2 @n1 running\n",
    );
    for (number, (queue, min, cpu, words)) in jobs.iter().enumerate() {
        let words = match words {
            0 => format!("label.job=w{number}"),
            1 => format!("x2\n task g cpu=1 gate={QUEUE_GATE}"),
            2 => "x3\n task v cpu=1 priority=-1".to_owned(),
            _ => "x3".to_owned(),
        };
        text.push_str(&format!(
            "job w{number} queue=q{queue} min={min}\n task w cpu={cpu} {words}\n"
        ));
    }
    text
}

fn backlogs() -> impl Strategy<Value = String> {
    let job = (0..2_usize, 0..4_u32, 2..5_u32, 0..6_u32);
    prop::collection::vec(job, 2..8).prop_map(|jobs| backlog(&jobs))
}

pub(crate) fn backlog_configs() -> [Config; 5] {
    let all = "enqueue, allocate, preempt, reclaim, backfill";
    [
        chart(),
        conf(all, CHART),
        conf("reclaim, allocate, backfill", "gang priority | capacity predicates nodeorder"),
        conf("enqueue, allocate, backfill", "sla gang drf predicates proportion nodeorder"),
        conf("allocate, preempt, allocate, backfill", "gang priority | capacity drf predicates"),
    ]
}

/// How often failures stood.
fn live(which: usize, text: &str, changes: &[Change]) -> u64 {
    let mut world = World::new(&backlog_configs()[which], text);
    world.cycle();
    let mut n_revalidated = 0;
    for change in changes {
        take(&mut world, change);
        world.cycle();
        n_revalidated += world.engine.cache_stats().n_revalidated;
    }
    n_revalidated
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_failure_that_stands_changes_nothing(
        which in 0..5_usize,
        text in backlogs(),
        changes in changes(),
    ) {
        live(which, &text, &changes);
    }
}

#[test]
fn in_random_backlogs_failures_stand() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let strategy = (backlogs(), changes());
    for which in 0..backlog_configs().len() {
        let mut n_revalidated = 0;
        for _ in 0..20 {
            let tree = strategy.new_tree(&mut runner).expect("nothing is rejected");
            let (text, changes) = tree.current();
            n_revalidated += live(which, &text, &changes);
        }
        assert!(100 < n_revalidated, "configuration {which}: {n_revalidated}");
    }
}

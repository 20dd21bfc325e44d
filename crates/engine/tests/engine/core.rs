//! Numbered cases of core.md that concern the engine.

use vc_framework::{Effect, EvictReason, Plugin, PluginEntry, Points, SessionView};
use vc_model::{
    ClusterEvent, Code, Finding, FitErrors, NodeId, ObjectKey, PodGroupPhase, ReadAfter, TaskId,
    TaskStatus,
};

use crate::support::*;

fn config() -> vc_conf::Config {
    conf("enqueue, allocate, backfill", "priority gang conformance | drf predicates nodeorder")
}

#[test]
fn core_61_missing_queue_is_told_once() {
    let text = "node n1 cpu=4
        job j queue=q
          task a cpu=1
        job r queue=q running
          task a cpu=1 @n1 running";
    let mut world = World::new(&config(), text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    assert_eq!(
        cycle.only(&["group", "event"]),
        "group j Inqueue Unschedulable \"queue q does not exist\"\n\
         event PodGroup j Warning Unschedulable \"queue q does not exist\"\n\
         group r Running Unschedulable \"queue q does not exist\"\n\
         event PodGroup r Warning Unschedulable \"queue q does not exist\""
    );
    assert_eq!(world.cycle().all(), "");
    let waiting = &world.cycle_unanswered().report.waiting;
    assert_eq!(waiting[0].message, "queue q does not exist");
    world.add("queue q");
    assert_eq!(world.cycle().decisions(), "bind j-a n1");
    world.delete_queue("q");
    let reported = world.cycle().only(&["event"]);
    assert!(reported.contains("queue q does not exist"), "it begins again: {reported}");
}

#[test]
fn core_64_binding_stays_until_a_node_name_is_seen() {
    let text = "node n1 cpu=1
        job j
          task a cpu=1
        job k
          task a cpu=1";
    let mut world = World::new(&config(), text);
    assert_eq!(world.cycle_unanswered().decisions(), "bind j-a n1");
    world.edit("j-a", |pod| pod.priority = Some(7));
    assert_eq!(world.cycle_unanswered().decisions(), "");
    let status = |world: &World| {
        let cluster = world.engine.cluster();
        cluster.tasks[task(cluster, "j-a")].status
    };
    assert_eq!(status(&world), TaskStatus::Binding);
    world.edit("j-a", |pod| pod.node_name = Some("n1".into()));
    world.deliver();
    assert_eq!(status(&world), TaskStatus::Bound);
}

#[test]
fn core_71_lower_task_priority_is_evicted_first() {
    let text = "node n1 cpu=4
        job a priority=5 created=0
          task v cpu=1 priority=9 @n1 running
        job b priority=5 created=1
          task v cpu=1 priority=3 @n1 running
        job p priority=10
          task a cpu=1";
    let mut stage = Stage::new(&config(), Vec::new(), text);
    stage.session(|session| {
        let preemptor = session.tasks[task(session, "p-a")].job;
        let mut victims = vec![task(session, "a-v"), task(session, "b-v")];
        victims.sort_by(|&l, &r| session.plugins().victim_order(session.view(), preemptor, l, r));
        assert_eq!(victims, [task(session, "b-v"), task(session, "a-v")]);
    });
}

#[test]
fn core_72_nodes_worth_evicting() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        job j
          task a cpu=2
          task b cpu=2";
    let mut stage = Stage::new(&config(), Vec::new(), text);
    stage.session(|session| {
        let (n1, n2) = (node(session, "n1"), node(session, "n2"));
        let (a, b) = (task(session, "j-a"), task(session, "j-b"));
        let mut errors = FitErrors::default();
        errors.add(n1, &[Finding::new(Code::Unschedulable, "full")]);
        errors.add(n2, &[Finding::new(Code::Unresolvable, "tainted")]);
        session.note_fit_errors(a, errors.into());
        assert_eq!(session.nodes_worth_evicting(a), [n1]);
        assert_eq!(session.nodes_worth_evicting(b), [n1, n2]);
    });
}

#[test]
fn core_77_message_after_discard() {
    let text = "node n1 cpu=1
        job j min=2
          task a cpu=1
          task b cpu=1";
    let reported = World::new(&config(), text).cycle().only(&["pod"]);
    let a = "pod j-a Schedulable \"Pod default/j-a can possibly be assigned to n1, once \
        minAvailable is satisfied. 1 of 2 members have room.\"";
    assert_eq!(reported.lines().next(), Some(a));
}

#[test]
fn core_78_one_bind_with_the_uid_and_no_annotations() {
    let text = "node n1 cpu=1
        job j
          task a cpu=1";
    let cycle = World::new(&config(), text).cycle();
    let binds = cycle.effects.iter().filter(|effect| matches!(effect, Effect::Bind { .. }));
    let bind = Effect::Bind {
        pod: ObjectKey::new("default", "j-a"),
        uid: "uid-default-j-a".into(),
        node: "n1".into(),
        annotations: Vec::new(),
        node_lock: None,
    };
    assert_eq!(binds.collect::<Vec<_>>(), [&bind]);
    assert_eq!(cycle.report.n_binds, 1);
}

#[test]
fn core_79_failed_bind_is_told_and_tried_again() {
    let text = "node n1 cpu=1
        job j
          task a cpu=1";
    let mut world = World::new(&config(), text);
    world.cycle_unanswered();
    let pod = world.pod("j-a").clone();
    let (uid, node) = (pod.uid.clone(), "n1".into());
    world.send(ClusterEvent::BindFailed { uid, node, error: "conflict".to_owned(), pauses: false });
    let cycle = world.cycle_unanswered();
    assert_eq!(cycle.decisions(), "", "the pod was not read again yet");
    assert_eq!(
        cycle.only(&["pod"]),
        "pod j-a SchedulerError \"failed to bind to node n1: conflict\""
    );
    world.send(ClusterEvent::PodRead { pod: Box::new(pod), after: ReadAfter::Bind });
    assert_eq!(world.cycle_unanswered().decisions(), "bind j-a n1");
}

#[test]
fn core_81_evicted_pod_stays_releasing_until_it_is_seen() {
    let text = "node n1 cpu=1
        job v
          task a cpu=1 @n1 running
        job p
          task a cpu=1";
    let mut world = World::new(&config(), text);
    let mut stage = Stage::new(&config(), Vec::new(), text);
    let outbox = stage.session(|session| {
        let (victim, waiting) = (task(session, "v-a"), task(session, "p-a"));
        let mut statement = session.statement();
        statement.evict(victim, EvictReason::Preempt, Some(waiting)).expect("it runs");
        statement.commit();
    });
    assert_eq!(
        outbox.effects,
        [Effect::Evict {
            pod: ObjectKey::new("default", "v-a"),
            uid: "uid-default-v-a".into(),
            pod_group: Some(Box::new((ObjectKey::new("default", "v"), "pg-default-v".into()))),
            reason: EvictReason::Preempt,
            for_pod: Some(Box::new(ObjectKey::new("default", "p-a"))),
            for_pod_group: Some(Box::new(ObjectKey::new("default", "p"))),
            message: None,
        }]
    );
    let mut after = |event: ClusterEvent| {
        stage.cluster.apply(event);
        let cluster = &stage.cluster;
        cluster.task_named(&key("v-a")).map(|task| cluster.tasks[task].status)
    };
    let running = Box::new(world.pod("v-a").clone());
    assert_eq!(after(ClusterEvent::PodApplied(running.clone())), Some(TaskStatus::Releasing));
    assert_eq!(
        after(ClusterEvent::PodRead { pod: running, after: ReadAfter::Eviction }),
        Some(TaskStatus::Running)
    );
    world.edit("v-a", |pod| pod.deleting = true);
    let deleting = Box::new(world.pod("v-a").clone());
    assert_eq!(after(ClusterEvent::PodApplied(deleting.clone())), Some(TaskStatus::Releasing));
    let (key, uid) = (deleting.key, deleting.uid);
    assert_eq!(after(ClusterEvent::PodDeleted { key, uid }), None);
}

#[test]
fn core_82_one_condition_for_an_unchanged_message() {
    let text = "node n1 cpu=1
        job j
          task a cpu=2";
    let mut world = World::new(&config(), text);
    let reported: Vec<String> = (0..5).map(|_| world.cycle().only(&["pod"])).collect();
    let first = "pod j-a Unschedulable \"0/1 nodes are unavailable: 1 Insufficient cpu. It fits on no \
        node even when empty: requests 2 cpu, largest node 1.\"";
    assert_eq!(reported, [first, "", "", "", ""]);
    world.add("node n2 cpu=1");
    let changed = world.cycle().only(&["pod"]);
    assert!(changed.contains("0/2 nodes are unavailable: 2 Insufficient cpu."), "{changed}");
}

#[test]
fn core_82_condition_that_could_not_be_written_is_sent_again() {
    let text = "node n1 cpu=1
        job j
          task a cpu=2";
    let mut world = World::new(&config(), text);
    let first = world.cycle_unanswered().only(&["pod"]);
    assert_eq!(world.cycle_unanswered().only(&["pod"]), "");
    let uid = world.pod("j-a").uid.clone();
    world.send(ClusterEvent::PodStatusFailed { uid });
    assert_eq!(world.cycle_unanswered().only(&["pod"]), first);
}

#[test]
fn core_83_nomination_is_kept_by_cycles_without_evictions() {
    let text = "node n1 cpu=1
        job v
          task a cpu=1 @n1 running deleting
        job p
          task a cpu=1 nominated=n1";
    let mut world = World::new(&config(), text);
    for cycle in 0..3 {
        let cycle_did = world.cycle();
        assert_eq!(cycle_did.decisions(), "pipeline p-a n1");
        assert!(!cycle_did.all().contains("nominated"), "cycle {cycle}: {}", cycle_did.all());
    }
}

/// Phase after a cycle that places nothing.
fn phase(text: &str) -> PodGroupPhase {
    let mut world = World::new(&conf("backfill", "gang predicates"), text);
    world.cycle();
    world.group("j").status.phase
}

#[test]
fn core_84_phases() {
    use PodGroupPhase::*;
    let cases = [
        ("job j min=1\n task a cpu=1 @n1 running deleting", Running),
        ("job j min=2\n task a cpu=1 @n1 running\n task b cpu=1 @n1 running deleting", Running),
        ("job j min=2\n task a cpu=1 x2 @n1 running deleting", Running),
        ("job j min=2 pending\n task a cpu=1 deleting\n task b cpu=1", Pending),
        ("job j min=2\n task a cpu=1 deleting\n task b cpu=1", Inqueue),
        ("job j min=2\n task a cpu=1 x2 @n1 succeeded", Completed),
        ("job j min=2\n task a cpu=1 @n1 succeeded\n task b cpu=1 @n1 failed", Completed),
        ("job j min=2 running\n task a cpu=1 @n1 running deleting", Pending),
        ("job j min=2 running\n task a cpu=1 @n1 running\n task b cpu=1", Unknown),
        ("job j min=1\n task a cpu=1 @n1 succeeded\n task b cpu=1", Running),
        ("job j min=1\n task a cpu=1 @n1 bound", Running),
        ("job j min=0 pending", Pending),
    ];
    for (job, expected) in cases {
        assert_eq!(phase(&format!("node n1 cpu=9\n{job}")), expected, "{job}");
    }
}

#[test]
fn core_85_time_and_transition_id_are_no_change() {
    let text = "node n1 cpu=1
        job j min=2
          task a cpu=1 x2";
    let mut world = World::new(&config(), text);
    assert_ne!(world.cycle().only(&["group"]), "");
    let first = world.group("j").status.conditions.clone();
    for _ in 0..3 {
        world.tick(1);
        assert_eq!(world.cycle().only(&["group"]), "");
    }
    assert_eq!(world.group("j").status.conditions, first);
    let id = &first[0].transition_id;
    assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
    assert_eq!(&*first[0].last_transition_time, "2026-01-01T01:00:00Z");
}

#[test]
fn core_86_refused_status_is_written_again_and_pods_are_told_all_the_same() {
    let text = "node n1 cpu=1
        job j min=2
          task a cpu=1 x2";
    let mut world = World::new(&config(), text);
    let cycle = world.cycle_unanswered();
    let written = cycle.only(&["group"]);
    assert_eq!(cycle.only(&["pod"]).lines().count(), 2);
    assert_eq!(world.cycle_unanswered().only(&["group"]), "", "it is on its way");
    world.refuse_group_status("j");
    assert_eq!(world.cycle_unanswered().only(&["group"]), written);
}

#[test]
fn core_87_one_event_for_a_waiting_group() {
    let text = "node n1 cpu=1
        job j min=2
          task a cpu=1 x2";
    let mut world = World::new(&config(), text);
    let mut at = Vec::new();
    for second in 0..601 {
        if world.cycle().all().contains("event PodGroup j Warning Unschedulable \"1/2 tasks") {
            at.push(second);
        }
        world.tick(1);
    }
    assert_eq!(at, [0, 300, 600]);
}

/// Else nothing would be said until the clock is where it was.
#[test]
fn a_clock_that_is_set_back_silences_nobody() {
    let text = "node n1 cpu=1
        job j min=2
          task a cpu=1 x2";
    let mut world = World::new(&config(), text);
    let mut reported = |seconds| {
        world.tick(seconds);
        world.cycle().all().contains("event PodGroup j Warning Unschedulable \"1/2 tasks")
    };
    assert_eq!(
        [0, 1, -2, -3600, 1, 300].map(&mut reported),
        [true, false, false, true, false, true]
    );
}

#[test]
fn core_87_group_that_is_placed_at_once_gets_none() {
    let text = "node n1 cpu=2
        job j min=2
          task a cpu=1 x2";
    let mut world = World::new(&config(), text);
    assert_eq!(world.cycle().only(&["event"]), "");
    assert_eq!(
        world.cycle().only(&["event"]),
        "event PodGroup j Normal Scheduled \"pod group is ready\""
    );
    assert_eq!(world.cycle().only(&["event"]), "");
}

#[test]
fn core_91_every_node_is_looked_at() {
    // A11: the sampling of 8.1 would have left out the last node of 1000 and of 6000.
    for n_nodes in [10, 1000, 6000] {
        let mut text = String::from("job j\n task a cpu=1 prefer.zone=best\n");
        for index in 0..n_nodes {
            let zone = if index + 1 == n_nodes { "best" } else { "other" };
            text.push_str(&format!("node n{index:04} cpu=4 zone={zone}\n"));
        }
        assert_eq!(decide(&config(), &text), format!("bind j-a n{:04}", n_nodes - 1));
    }
}

/// Scores nodes by the number in their label `score`.
struct ByLabel;

impl Plugin for ByLabel {
    fn points(&self) -> Points {
        Points::NODE_ORDER
    }
    fn node_order(&self, view: SessionView<'_>, _: TaskId, node: NodeId) -> Result<f64, String> {
        let label = view.cluster.nodes[node].labels.get("score").expect("every node has it");
        label.parse().map_err(|_| format!("no number: {label}"))
    }
}

#[test]
fn core_94_best_node() {
    let best = |scores: [&str; 4]| {
        let mut text = String::from("job j\n task a cpu=1\n");
        for (index, score) in scores.iter().enumerate() {
            text.push_str(&format!("node n{} cpu=1 score={score}\n", index + 1));
        }
        let by_label = PluginEntry::new("scorer", |_, _| Box::new(ByLabel));
        let mut stage = Stage::new(&conf("allocate", "scorer"), vec![by_label], &text);
        let mut best = None;
        stage.session(|session| {
            let waiting = task(session, "j-a");
            assert_eq!(session.choose(waiting, &[]), None);
            let choice = session.choose(waiting, &session.info().nodes);
            best = choice.map(|node| session.nodes[node].name.to_string());
        });
        best
    };
    assert_eq!(best(["1", "1", "2", "2"]).as_deref(), Some("n3"));
    assert_eq!(best(["-4", "-3", "-2", "-5"]).as_deref(), Some("n3"));
    assert_eq!(best(["NaN", "NaN", "NaN", "NaN"]), None);
}

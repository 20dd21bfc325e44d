//! `--bare-pods=schedule`: pods without PodGroup, each a job of one task.

use vc_conf::Config;
use vc_framework::{Effect, EvictReason};
use vc_model::{ClusterEvent, Labels, PodGroupPhase, PriorityClassRecord, Settings};

use crate::support::*;

fn config() -> Config {
    conf("enqueue, allocate, backfill", "priority gang conformance | drf predicates proportion")
}

fn world(config: &Config, text: &str) -> World {
    let options = Settings { bare_pods: true, ..Settings::default() };
    let mut all = objects("queue default");
    all.extend(objects(text));
    World::with(options, config, all)
}

fn in_queue(name: &str) -> Labels {
    [("scheduling.volcano.sh/queue-name".into(), name.into())].into()
}

#[test]
fn bare_pods_are_left_alone_unless_they_are_wanted() {
    let text = "node n1 cpu=4
        pod a cpu=1";
    let cycle = World::new(&config(), text).cycle();
    assert_eq!(cycle.only(&["bind", "group", "event"]), "");
    let reported = cycle.only(&["pod"]);
    let why = "pod a Unschedulable \"the pod belongs to no PodGroup: annotation";
    assert!(reported.starts_with(why), "{reported}");
    assert!(cycle.report.waiting[0].message.starts_with("the pod belongs to no PodGroup"));
}

#[test]
fn bare_pods_are_bound_and_told_and_have_no_pod_group() {
    let text = "node n1 cpu=4
        pod a cpu=1
        pod best-effort
        pod picky cpu=1 selector.zone=none";
    let mut world = world(&config(), text);
    let cycle = world.cycle();
    assert_eq!(
        cycle.only(&["bind", "pod", "group", "event"]),
        "bind a n1\n\
         bind best-effort n1\n\
         pod picky Unschedulable \"0/1 nodes are unavailable: 1 node(s) didn't match Pod's node \
         affinity/selector.\""
    );
    let waiting = &cycle.report.waiting[0];
    assert_eq!((&*waiting.pod.name, &*waiting.pod_group.name), ("picky", ""));
    assert_eq!(&*waiting.queue, "default");
    world.kubelets();
    assert_eq!(world.cycle().only(&["bind", "pod", "group", "event"]), "");
    assert_eq!(world.cycle().all(), "", "nothing is written in a steady state");
}

#[test]
fn bare_pods_count_in_the_queue_that_they_name() {
    let text = "node n1 cpu=4
        queue q cap.cpu=1
        pod a cpu=1
        pod b cpu=1
        pod c cpu=1";
    let mut world = world(&config(), text);
    world.edit("a", |pod| pod.annotations = in_queue("q"));
    world.edit("b", |pod| pod.labels = in_queue("q"));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind c n1\nbind a n1");
    assert_eq!(
        cycle.only(&["queue"]),
        "queue default cpu=1 memory=0 pods=1\nqueue q cpu=1 memory=0 pods=1"
    );
    world.kubelets();
    world.delete_pod("a");
    assert_eq!(world.cycle().decisions(), "bind b n1");
}

#[test]
fn bare_pods_of_a_missing_or_closed_queue_are_told_so_once() {
    let text = "node n1 cpu=4
        pod lost cpu=1
        pod shut cpu=1
        queue closed state=Closed";
    let mut world = world(&config(), text);
    world.edit("lost", |pod| pod.annotations = in_queue("none"));
    world.edit("shut", |pod| pod.annotations = in_queue("closed"));
    let cycle = world.cycle();
    assert_eq!(
        cycle.only(&["bind", "pod", "group", "event"]),
        "pod shut Unschedulable \"queue closed is Closed\"\n\
         pod lost Unschedulable \"queue none does not exist\""
    );
    assert_eq!(world.cycle().all(), "");
    world.add("queue none");
    assert_eq!(world.cycle().decisions(), "bind lost n1");
}

#[test]
fn bare_pods_have_the_priority_of_their_class() {
    let text = "node n1 cpu=1
        pod a cpu=1
        pod b cpu=1";
    let mut world = world(&config(), text);
    world.edit("b", |pod| pod.priority_class_name = "high".into());
    let class = PriorityClassRecord { name: "high".into(), value: 7, global_default: false };
    world.send(ClusterEvent::PriorityClassApplied(class));
    assert_eq!(world.cycle().decisions(), "bind b n1");
}

#[test]
fn bare_pods_are_admitted_like_pod_groups() {
    let config = conf("enqueue, allocate", "overcommit{* overcommit-factor=1} gang predicates");
    let text = "node n1 cpu=1
        pod a cpu=1
        pod b cpu=1";
    let mut world = world(&config, text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "bind a n1");
    assert_eq!(cycle.only(&["group", "event"]), "");
    let reported = cycle.only(&["pod"]);
    assert!(
        reported.starts_with("pod b Unschedulable ") && reported.lines().count() == 1,
        "{reported}"
    );
    let waiting = &cycle.report.waiting;
    assert_eq!((waiting.len(), &*waiting[0].pod.name), (1, "b"));
    world.kubelets();
    assert_eq!(world.cycle().only(&["group", "event", "pod"]), "");
}

#[test]
fn bare_pods_that_run_are_past_admission_after_a_restart() {
    let text = "node n1 cpu=4
        pod a cpu=1
        pod b cpu=1 @n1 running";
    let mut world = world(&config(), text);
    world.cycle();
    world.kubelets();
    world.restart(&config());
    world.deliver();
    let cluster = world.engine.cluster();
    for name in ["a", "b"] {
        let job = cluster.job_of(task(cluster, name)).expect("it is a job");
        assert_eq!(job.phase(), PodGroupPhase::Running, "{name}");
    }
    assert_eq!(world.cycle().all(), "");
}

#[test]
fn bare_pods_that_are_evicted_name_no_pod_group() {
    let text = "node n1 cpu=1
        pod a cpu=1 @n1 running";
    let mut stage = Stage::of(world(&config(), text), &config(), Vec::new());
    let outbox = stage.session(|session| {
        let victim = task(session, "a");
        let mut statement = session.statement();
        statement.evict(victim, EvictReason::Preempt, None).expect("it runs");
        assert!(statement.commit());
    });
    let [Effect::Evict { pod_group, .. }] = &outbox.effects[..] else {
        panic!("one eviction: {:?}", outbox.effects)
    };
    assert_eq!(*pod_group, None);
}

//! Our own decisions stay until the watch shows them: core.md 4.5, 11 (a) and (b).

use vc_model::{
    Cluster, ClusterEvent, ObjectKey, Pause, PodCondition, PodGroupRecord, PodRecord, ReadAfter,
    Settings, TaskStatus,
};
use vc_resource::Dim;

use super::support::{
    apply, apply_group, apply_node, apply_pod, group, id, member, node, requesting, row, running,
};

fn cluster() -> Cluster {
    let mut cluster = Cluster::new(Settings::default());
    apply_node(&mut cluster, node("n", "cpu=10"));
    apply_group(&mut cluster, group("j", 1));
    apply_pod(&mut cluster, waiting());
    cluster
}

fn waiting() -> PodRecord {
    requesting(member("p", "j"), "cpu=4")
}

fn bind(cluster: &mut Cluster) {
    let (task, node) = (id(cluster, "p"), cluster.node("n"));
    cluster.set_task(task, TaskStatus::Binding, node);
}

fn evict(cluster: &mut Cluster) {
    let task = id(cluster, "p");
    cluster.evict_task(task);
    cluster.tasks[task].evicting = true;
    cluster.reveal_task(task);
}

/// The pod was read again after a write that failed.
fn read_again(cluster: &mut Cluster, pod: PodRecord, after: ReadAfter) {
    apply(cluster, ClusterEvent::PodRead { pod: Box::new(pod), after });
}

fn idle(cluster: &Cluster) -> i64 {
    cluster.nodes[cluster.node("n").unwrap()].idle.get(Dim::CPU)
}

fn releasing(cluster: &Cluster) -> i64 {
    cluster.nodes[cluster.node("n").unwrap()].releasing.get(Dim::CPU)
}

fn status(cluster: &Cluster) -> TaskStatus {
    row(cluster, "p").status
}

#[test]
fn core_64_a_binding_task_waits_for_its_node_name() {
    let mut cluster = cluster();
    bind(&mut cluster);
    apply_pod(&mut cluster, PodRecord { labels: [("x".into(), "y".into())].into(), ..waiting() });
    assert_eq!((status(&cluster), idle(&cluster)), (TaskStatus::Binding, 6_000));
    apply_pod(&mut cluster, PodRecord { node_name: Some("n".into()), ..waiting() });
    assert_eq!((status(&cluster), idle(&cluster)), (TaskStatus::Bound, 6_000));
}

#[test]
fn core_64_a_failed_bind_waits_for_the_resync() {
    let mut cluster = cluster();
    bind(&mut cluster);
    let (uid, node) = ("p".into(), "n".into());
    apply(
        &mut cluster,
        ClusterEvent::BindFailed { uid, node, error: "conflict".to_owned(), pauses: false },
    );
    assert_eq!(status(&cluster), TaskStatus::Binding);
    read_again(&mut cluster, waiting(), ReadAfter::Bind);
    assert_eq!((status(&cluster), idle(&cluster)), (TaskStatus::Pending, 10_000));
    bind(&mut cluster);
    let bound = PodRecord { node_name: Some("n".into()), ..waiting() };
    read_again(&mut cluster, bound, ReadAfter::Bind);
    assert_eq!(status(&cluster), TaskStatus::Bound, "the answer was lost, the bind was not");
}

/// A gang of two, one of whose pods pauses after a refused bind.
fn refused_member() -> Cluster {
    let mut cluster = cluster();
    apply_group(&mut cluster, PodGroupRecord { resource_version: "2".into(), ..group("j", 2) });
    bind(&mut cluster);
    let task = id(&cluster, "p");
    cluster.set_pause(task, Some(Pause::Bind("refused".into())));
    cluster
}

#[test]
fn a_member_of_a_gang_that_pauses_keeps_its_place_until_it_is_given_up() {
    let mut cluster = refused_member();
    read_again(&mut cluster, waiting(), ReadAfter::Bind);
    assert_eq!((status(&cluster), idle(&cluster)), (TaskStatus::Binding, 6_000));
    let condition = PodRecord { nominated_node: Some("n".into()), ..waiting() };
    apply_pod(&mut cluster, condition);
    assert!(row(&cluster, "p").keeps_place && row(&cluster, "p").nominated_node.is_some());
    let task = id(&cluster, "p");
    cluster.give_up_place(task);
    assert_eq!((status(&cluster), idle(&cluster)), (TaskStatus::Pending, 10_000));
    assert!(!row(&cluster, "p").keeps_place);
}

#[test]
fn a_kept_place_ends_with_its_node_or_when_the_pod_is_bound_after_all() {
    let mut cluster = refused_member();
    apply(&mut cluster, ClusterEvent::NodeDeleted { name: "n".into() });
    read_again(&mut cluster, waiting(), ReadAfter::Bind);
    assert_eq!(status(&cluster), TaskStatus::Pending);

    let mut cluster = refused_member();
    read_again(&mut cluster, waiting(), ReadAfter::Bind);
    apply_pod(&mut cluster, PodRecord { node_name: Some("n".into()), ..waiting() });
    assert_eq!((status(&cluster), idle(&cluster)), (TaskStatus::Bound, 6_000));
    assert!(!row(&cluster, "p").keeps_place);
}

#[test]
fn a_place_that_is_given_up_on_a_node_that_is_gone_leaves_nothing() {
    let mut cluster = refused_member();
    read_again(&mut cluster, waiting(), ReadAfter::Bind);
    apply(&mut cluster, ClusterEvent::NodeDeleted { name: "n".into() });
    let task = id(&cluster, "p");
    assert!(cluster.tasks[task].keeps_place);
    cluster.give_up_place(task);
    assert_eq!((status(&cluster), cluster.nodes.len()), (TaskStatus::Pending, 0));
}

#[test]
fn a_read_for_the_nomination_undoes_no_bind_that_was_decided_since() {
    let mut cluster = cluster();
    let nominated = || PodRecord { nominated_node: Some("n".into()), ..waiting() };
    read_again(&mut cluster, nominated(), ReadAfter::Nomination);
    assert_eq!(row(&cluster, "p").nominated_node.as_deref(), Some("n"));
    bind(&mut cluster);
    read_again(&mut cluster, nominated(), ReadAfter::Nomination);
    assert_eq!((status(&cluster), idle(&cluster)), (TaskStatus::Binding, 6_000));
    let unknown = PodRecord { uid: "other".into(), ..nominated() };
    read_again(&mut cluster, unknown, ReadAfter::Nomination);
    assert!(cluster.task("other").is_none(), "the watch has deleted it already");
}

#[test]
fn an_evicted_task_is_releasing_until_the_pod_shows_it() {
    let mut cluster = cluster();
    apply_pod(&mut cluster, running(waiting(), "n"));
    evict(&mut cluster);
    apply_pod(&mut cluster, running(waiting(), "n"));
    assert_eq!((status(&cluster), releasing(&cluster)), (TaskStatus::Releasing, 4_000));
    let unknown = PodRecord { phase: vc_model::PodPhase::Unknown, ..running(waiting(), "n") };
    apply_pod(&mut cluster, unknown);
    assert_eq!(status(&cluster), TaskStatus::Releasing, "the node does not answer");
    apply_pod(&mut cluster, PodRecord { deleting: true, ..running(waiting(), "n") });
    assert_eq!(status(&cluster), TaskStatus::Releasing);
    assert!(!row(&cluster, "p").evicting, "from now on the pod itself says so");
    let gone = ClusterEvent::PodDeleted { key: ObjectKey::new("ns", "p"), uid: "p".into() };
    apply(&mut cluster, gone);
    assert_eq!((releasing(&cluster), idle(&cluster)), (0, 10_000));
}

#[test]
fn a_failed_eviction_is_undone_by_the_resync() {
    let mut cluster = cluster();
    apply_pod(&mut cluster, running(waiting(), "n"));
    evict(&mut cluster);
    read_again(&mut cluster, running(waiting(), "n"), ReadAfter::Eviction);
    assert_eq!((status(&cluster), releasing(&cluster)), (TaskStatus::Running, 0));
    assert!(!row(&cluster, "p").evicting);
}

/// The bind was not answered; the watch showed it, and the pod was evicted, before the read was.
#[test]
fn a_read_after_a_bind_undoes_no_eviction_that_was_decided_since() {
    let mut cluster = cluster();
    bind(&mut cluster);
    let bound = || PodRecord { node_name: Some("n".into()), ..waiting() };
    apply_pod(&mut cluster, bound());
    evict(&mut cluster);
    for answer in [waiting(), bound(), running(waiting(), "n")] {
        read_again(&mut cluster, answer, ReadAfter::Bind);
        assert_eq!((status(&cluster), releasing(&cluster)), (TaskStatus::Releasing, 4_000));
        assert!(row(&cluster, "p").evicting);
    }
    read_again(&mut cluster, running(waiting(), "n"), ReadAfter::Eviction);
    assert_eq!((status(&cluster), releasing(&cluster)), (TaskStatus::Running, 0));
}

#[test]
fn an_evicted_task_whose_bind_is_not_seen_yet_keeps_both_decisions() {
    let mut cluster = cluster();
    bind(&mut cluster);
    evict(&mut cluster);
    apply_pod(&mut cluster, waiting());
    assert_eq!((status(&cluster), releasing(&cluster)), (TaskStatus::Releasing, 4_000));
    apply_pod(&mut cluster, PodRecord { node_name: Some("n".into()), ..waiting() });
    assert_eq!(status(&cluster), TaskStatus::Releasing);
}

#[test]
fn an_evicted_task_that_ends_by_itself_has_ended() {
    let mut cluster = cluster();
    apply_pod(&mut cluster, running(waiting(), "n"));
    evict(&mut cluster);
    let ended = PodRecord { phase: vc_model::PodPhase::Failed, ..running(waiting(), "n") };
    apply_pod(&mut cluster, ended);
    assert_eq!((status(&cluster), idle(&cluster)), (TaskStatus::Failed, 10_000));
}

#[test]
fn a_successor_of_the_same_name_replaces_the_pod() {
    let mut cluster = cluster();
    apply_pod(&mut cluster, running(waiting(), "n"));
    let uid = "second".into();
    apply_pod(&mut cluster, PodRecord { uid, ..waiting() });
    assert_eq!((cluster.task("p"), cluster.tasks.len()), (None, 1));
    assert_eq!(idle(&cluster), 10_000);
    let late = ClusterEvent::PodDeleted { key: ObjectKey::new("ns", "p"), uid: "p".into() };
    apply(&mut cluster, late);
    assert!(cluster.task("second").is_some(), "a late event does not hit it");
}

#[test]
fn a_condition_that_could_not_be_written_is_forgotten() {
    let mut cluster = cluster();
    let task = id(&cluster, "p");
    let condition = PodCondition { status: "".into(), reason: "".into(), message: "".into() };
    cluster.tasks[task].condition = Some(condition.into());
    cluster.tasks[task].nominated_node = Some("n".into());
    apply(&mut cluster, ClusterEvent::PodStatusFailed { uid: "p".into() });
    let row = row(&cluster, "p");
    assert_eq!((&row.condition, &row.nominated_node), (&None, &None));
}

#[test]
fn the_answer_about_a_pod_that_is_gone_by_now_is_forgotten() {
    let mut cluster = cluster();
    evict(&mut cluster);
    apply(
        &mut cluster,
        ClusterEvent::PodDeleted { key: ObjectKey::new("ns", "p"), uid: "p".into() },
    );
    let terminating = PodRecord { deleting: true, ..running(waiting(), "n") };
    let version = cluster.version();
    read_again(&mut cluster, terminating.clone(), ReadAfter::Eviction);
    assert!(cluster.task("p").is_none());
    assert_eq!((idle(&cluster), releasing(&cluster)), (10_000, 0));
    assert_eq!(cluster.version(), version);
    // Nor does it take the place of a successor of its name.
    let successor = PodRecord { uid: "other".into(), ..waiting() };
    apply_pod(&mut cluster, successor);
    read_again(&mut cluster, terminating, ReadAfter::Eviction);
    assert!(cluster.task("other").is_some() && cluster.task("p").is_none());
}

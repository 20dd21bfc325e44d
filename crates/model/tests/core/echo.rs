//! A PodGroup status of ours is taken from our write until the watch shows that version or a newer
//! one: core.md 11 (c).

use vc_model::{
    Cluster, ClusterEvent, ObjectKey, PodGroupPhase, PodGroupRecord, PodGroupStatus, Settings,
};

use super::support::{apply, apply_group, group};
use PodGroupPhase::{Inqueue, Pending, Running};

fn key() -> ObjectKey {
    ObjectKey::new("ns", "j")
}

fn shows(cluster: &mut Cluster, version: u32, phase: PodGroupPhase) {
    let status = PodGroupStatus { phase, ..PodGroupStatus::default() };
    let resource_version = version.to_string().into();
    apply_group(cluster, PodGroupRecord { resource_version, status, ..group("j", 1) });
}

/// As the engine does at session close.
fn decide(cluster: &mut Cluster, phase: PodGroupPhase) {
    let job = cluster.job(&key()).unwrap();
    cluster.set_phase(job, phase);
    cluster.jobs[job].pod_group.as_mut().unwrap().status_in_flight = true;
}

fn written(cluster: &mut Cluster, version: u32, phase: PodGroupPhase) {
    let resource_version = version.to_string().into();
    let status = Box::new(PodGroupStatus { phase, ..PodGroupStatus::default() });
    apply(cluster, ClusterEvent::PodGroupWritten { key: key(), resource_version, status });
}

fn failed(cluster: &mut Cluster, phase: PodGroupPhase) {
    let status = Box::new(PodGroupStatus { phase, ..PodGroupStatus::default() });
    apply(cluster, ClusterEvent::PodGroupFailed { key: key(), status });
}

fn phase(cluster: &Cluster) -> PodGroupPhase {
    cluster.jobs[cluster.job(&key()).unwrap()].phase()
}

fn new_cluster() -> Cluster {
    let mut cluster = Cluster::new(Settings::default());
    shows(&mut cluster, 5, Pending);
    cluster
}

#[test]
fn older_versions_are_echoes_of_the_past() {
    let mut cluster = new_cluster();
    decide(&mut cluster, Inqueue);
    shows(&mut cluster, 6, Pending);
    assert_eq!(phase(&cluster), Inqueue, "on its way");
    written(&mut cluster, 9, Inqueue);
    shows(&mut cluster, 7, Pending);
    assert_eq!(phase(&cluster), Inqueue, "stored as 9, the watch is behind");
    shows(&mut cluster, 9, Inqueue);
    assert_eq!(phase(&cluster), Inqueue);
    shows(&mut cluster, 10, Running);
    assert_eq!(phase(&cluster), Running, "somebody else");
}

#[test]
fn versions_are_numbers_not_texts() {
    let mut cluster = new_cluster();
    decide(&mut cluster, Inqueue);
    written(&mut cluster, 10, Inqueue);
    shows(&mut cluster, 9, Pending);
    assert_eq!(phase(&cluster), Inqueue);
    shows(&mut cluster, 11, Pending);
    assert_eq!(phase(&cluster), Pending);
}

#[test]
fn the_watch_may_be_ahead_of_the_answer() {
    let mut cluster = new_cluster();
    decide(&mut cluster, Inqueue);
    shows(&mut cluster, 7, Running);
    assert_eq!(phase(&cluster), Inqueue, "may be before or after our write");
    written(&mut cluster, 6, Inqueue);
    assert_eq!(phase(&cluster), Running, "it was after");
}

#[test]
fn the_echo_of_a_write_does_not_hide_a_later_one() {
    let mut cluster = new_cluster();
    decide(&mut cluster, Inqueue);
    decide(&mut cluster, Running);
    written(&mut cluster, 6, Inqueue);
    shows(&mut cluster, 6, Inqueue);
    assert_eq!(phase(&cluster), Running, "the second write is on its way");
    written(&mut cluster, 7, Running);
    shows(&mut cluster, 7, Running);
    shows(&mut cluster, 8, Pending);
    assert_eq!(phase(&cluster), Pending);
}

#[test]
fn a_status_that_was_not_stored_is_what_the_api_shows() {
    let mut cluster = new_cluster();
    decide(&mut cluster, Inqueue);
    failed(&mut cluster, Inqueue);
    assert_eq!(phase(&cluster), Pending);
    shows(&mut cluster, 6, Running);
    assert_eq!(phase(&cluster), Running);
}

/// A write without answer was stored after all, and the next one was refused for that.
#[test]
fn a_newer_version_counts_more_than_what_was_stored_before_it() {
    let mut cluster = new_cluster();
    decide(&mut cluster, Inqueue);
    written(&mut cluster, 6, Inqueue);
    decide(&mut cluster, Running);
    failed(&mut cluster, Running);
    assert_eq!(phase(&cluster), Inqueue, "nobody has seen it stored");
    decide(&mut cluster, Pending);
    shows(&mut cluster, 7, Running);
    failed(&mut cluster, Pending);
    assert_eq!(phase(&cluster), Running);
}

#[test]
fn a_status_that_was_not_stored_does_not_undo_a_later_one() {
    let mut cluster = new_cluster();
    decide(&mut cluster, Inqueue);
    decide(&mut cluster, Running);
    failed(&mut cluster, Inqueue);
    assert_eq!(phase(&cluster), Running, "the second write is on its way");
    shows(&mut cluster, 6, Pending);
    assert_eq!(phase(&cluster), Running, "still on its way");
    failed(&mut cluster, Running);
    assert_eq!(phase(&cluster), Pending);
}

#[test]
fn a_status_that_was_not_stored_is_the_one_before_that_was() {
    let mut cluster = new_cluster();
    decide(&mut cluster, Inqueue);
    written(&mut cluster, 6, Inqueue);
    decide(&mut cluster, Running);
    failed(&mut cluster, Running);
    assert_eq!(phase(&cluster), Inqueue, "stored as 6, the watch is behind");
    shows(&mut cluster, 5, Pending);
    assert_eq!(phase(&cluster), Inqueue);
    shows(&mut cluster, 7, Pending);
    assert_eq!(phase(&cluster), Pending, "somebody else");
}

#[test]
fn another_group_of_the_same_name_starts_from_nothing() {
    let mut cluster = new_cluster();
    decide(&mut cluster, Inqueue);
    apply_group(&mut cluster, PodGroupRecord { uid: "second".into(), ..group("j", 1) });
    assert_eq!(phase(&cluster), Pending);
}

#[test]
fn the_same_version_again_changes_nothing() {
    let mut cluster = new_cluster();
    shows(&mut cluster, 5, Running);
    assert_eq!(phase(&cluster), Pending);
}

#[test]
fn spec_changes_are_taken_while_a_status_is_on_its_way() {
    let mut cluster = new_cluster();
    decide(&mut cluster, Inqueue);
    let record = PodGroupRecord { resource_version: "6".into(), ..group("j", 3) };
    apply_group(&mut cluster, record);
    let job = &cluster.jobs[cluster.job(&key()).unwrap()];
    assert_eq!((job.min_available, job.phase()), (3, Inqueue));
}

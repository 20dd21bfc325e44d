//! Random clusters that broke a law, as small as they can be told, and why they did.

use super::{Run, live};

fn check(run: Run, text: &str) {
    if let Err(why) = live(run, text) {
        panic!("{run:?}: {why}\n{text}");
    }
}

/// The room that one eviction makes for two members is planned for both, also by a scheduler that
/// knows no more than what their pods say (2.11).
#[test]
fn a_gang_keeps_the_places_of_all_members_over_a_restart() {
    let text = "node n0 cpu=4
        queue q0 deserved.cpu=2
        queue q1
        job j0 queue=q1 min=2 priority=1
          task w0 cpu=1
          task w1 cpu=1
        job j3 queue=q0 min=0
          task w0 cpu=2
          task w1 cpu=1
        job j4 queue=q1 min=0
          task r0 cpu=4 @n0 running";
    check(Run { config: 7, lag: 3, restart: Some(1) }, text);
}

/// The plugin tdm lets a member without a mark of its own take pods that it keeps from the member that
/// is placed first: the certificate says for whom each victim goes.
#[test]
fn a_victim_is_judged_for_the_pod_that_gets_its_room() {
    let marked_first = "node n0 cpu=3
        node n1 cpu=5
        queue q0
        job j3 queue=q0 min=3 priority=1
          task w0 cpu=1 priority=1 pre=true
          task w1 cpu=3
          task w2 cpu=1 priority=1
        job j4 queue=q0 min=0
          task r0 cpu=2 @n1 running pre=true";
    check(Run { config: 14, lag: 1, restart: None }, marked_first);
    let on_freed_node = "node n0 cpu=6
        node n1 cpu=4
        queue q0
        queue q1
        job j0 queue=q0 min=3 priority=2
          task r0 cpu=1 @n0 running
          task w0 cpu=4 priority=1 pre=true
          task w1 cpu=2
        job j1 queue=q0 min=0
          task r0 cpu=1 @n0 running pre=true
          task r1 cpu=2 @n0 running
        job j4 queue=q1 min=0
          task w0 cpu=1";
    check(Run { config: 15, lag: 1, restart: None }, on_freed_node);
}

/// Pods that replace victims lower the share of the queue for which a place was made: the member that
/// it owed the place replaces another one instead (11.2, 6.3).
#[test]
fn a_place_is_not_owed_once_its_queue_may_have_less() {
    let text = "node n0 cpu=6
        node n1 cpu=4
        node n2 cpu=3
        queue q0 weight=3 reclaimable=false
        queue q1 weight=2 reclaimable=false
        job j1 queue=q0 min=0 priority=2
          task w0 cpu=4
        job j2 queue=q1 min=0 priority=1
          task r0 cpu=3 @n1 running
          task w0 cpu=1
        job j3 queue=q0 min=3
          task r0 cpu=1 @n1 running
          task r1 cpu=1 @n2 running
          task w0 cpu=3
        job j4 queue=q1 min=0
          task r0 cpu=1 @n2 running
          task w0 cpu=1
          task w1 cpu=1 priority=1";
    check(Run { config: 9, lag: 3, restart: None }, text);
}

/// A gang that gangpreempt breaks waits anew as a whole. A place that was made for one of its members
/// before goes to another one of them, and more room is made for it.
#[test]
fn a_place_is_not_owed_to_a_gang_that_is_broken() {
    let text = "node n0 cpu=3
        node n1 cpu=6
        node n2 cpu=3
        node n3 cpu=4
        node n4 cpu=6
        queue q0 reclaimable=false
        queue q1 cap.cpu=7
        job j0 queue=q1 min=2
          task r0 cpu=2 @n1 running
          task r1 cpu=4 @n4 running
          task w0 cpu=3 x4
        job j2 queue=q0 min=0 priority=2
          task r0 cpu=3 @n0 running
          task w0 cpu=3 priority=1 x3
        job j3 queue=q0 min=3
          task r0 cpu=1 @n1 running
          task w0 cpu=1 priority=1
          task w1 cpu=2 x2
        job j4 queue=q1 min=0
          task r0 cpu=1 @n1 running
          task r1 cpu=2 @n4 running";
    check(Run { config: 9, lag: 2, restart: None }, text);
}

/// Members of a gang that waited for room before the evicting statement are held on their nodes with
/// those that the statement places (2.11).
#[test]
fn a_gang_keeps_the_places_that_it_had_before_the_evictions() {
    let by_reclaim = "node n3 cpu=5
        node n4 cpu=5
        node n5 cpu=5
        queue q0
        queue q1 weight=3 reclaimable=false
        job j0 queue=q1 min=1
          task r0 cpu=4 @n3 running
        job j1 queue=q1 min=0
          task w1 cpu=2 x2
        job j2 queue=q0 min=0 priority=1
          task r0 cpu=3 @n4 running
          task r1 cpu=2 @n5 running
        job j3 queue=q0 min=2
          task r0 cpu=1 @n3 running
          task r1 cpu=2 @n4 running pre=false
          task r2 cpu=3 @n5 running
        job j4 queue=q0 min=2 priority=1
          task w0 cpu=1 x3";
    check(Run { config: 5, lag: 1, restart: None }, by_reclaim);
    let by_preempt = "node n0 cpu=4
        node n1 cpu=2
        node n2 cpu=4
        node n3 cpu=5
        queue q0 weight=2 reclaimable=false
        queue q1 weight=3 reclaimable=false
        job j0 queue=q0 min=2 priority=2
          task w0 cpu=4
          task w1 cpu=1 x3
        job j1 queue=q1 min=0
          task r0 cpu=2 @n1 running
          task r1 cpu=2 @n3 running
          task r2 cpu=3 @n3 running
        job j2 queue=q0 min=0
          task w0 cpu=1 pre=false x2
          task w1 cpu=1 x2
        job j3 queue=q1 min=0
          task r0 cpu=4 @n2 running
        job j4 queue=q1 min=0 priority=1
          task w0 cpu=3 x3";
    check(Run { config: 4, lag: 2, restart: None }, by_preempt);
}

/// Backfill tries a best-effort member that waits for room anew, and keeps it for the cycle. The pod is
/// nominated all the same: after a restart its node is planned for it (2.11, A26).
#[test]
fn a_best_effort_member_keeps_its_nomination_through_backfill() {
    let text = "node n0 cpu=3 pods=4
        node n1 cpu=3 pods=2
        queue q0
        queue q1
        job j0 queue=q1 min=2 priority=1
          task w0 cpu=1
          task w1
        job j1 queue=q0 min=0
          task r0 @n0 running
        job j2 queue=q0 min=0
          task w0 cpu=1
        job j3 queue=q0 min=0
          task w0 cpu=2
        job j4 queue=q1 min=0
          task r0 @n0 running
          task r1 cpu=3 @n1 running";
    check(Run { config: 3, lag: 2, restart: Some(1) }, text);
}

/// Shuffle drains a zone also of a member whose gang has just become complete by evictions (8).
#[test]
fn shuffle_may_take_a_member_of_a_gang_for_which_pods_went() {
    let text = "node n0 cpu=5
        node n1 cpu=6 volcano.sh/revocable-zone=shut
        queue q0
        job j2 queue=q0 min=2 priority=1
          task r0 cpu=1 @n1 running pre=true
          task w0 cpu=2
        job j3 queue=q0 min=0
          task r0 cpu=4 @n0 running pre=true";
    check(Run { config: 14, lag: 1, restart: None }, text);
}

/// A place was planned without all pods that were evicted before, whoever gets their room. It is kept
/// while any of them terminates and filters count it (4.1).
#[test]
fn a_place_is_kept_while_victims_of_others_terminate_there() {
    let text = "node n0 cpu=2 pods=3
        node n1 cpu=6 pods=2
        node n2 cpu=2 pods=3
        queue q0 cap.cpu=4
        queue q1 reclaimable=false
        job j1 queue=q0 min=0
          task r0 cpu=1 @n1 running
          task r1 cpu=1 @n1 running
          task w0
        job j2 queue=q0 min=0
          task r0 cpu=2 @n0 running
          task w0
          task w1
        job j3 queue=q0 min=0 priority=1
          task w0 cpu=1
        job j4 queue=q1 min=0
          task w0 cpu=3
          task w1
          task w2 cpu=3";
    check(Run { config: 5, lag: 2, restart: None }, text);
}

/// A best-effort member that has a place made by evictions keeps it while its gang waits, also if
/// backfill finds it another one that cannot be bound yet (actions.md 5, A26).
#[test]
fn a_best_effort_member_keeps_its_place_while_its_gang_waits() {
    let taken_by_another_job = "node n0 cpu=6 pods=5
        node n1 cpu=4 pods=2
        node n2 cpu=2 pods=2
        queue q0 weight=1 reclaimable=false
        queue q1 weight=1 reclaimable=true cap.cpu=2
        job j0 queue=q1 min=0 priority=0
          task r0 @n0 running priority=0 label.app=covered
          task r1 @n1 running cpu=3 priority=0 label.app=covered
          task r2 @n2 running priority=0 label.app=covered
          task w0 priority=0 label.app=covered
          task w1 priority=0 label.app=covered
        job j1 queue=q0 min=0 priority=0
          task w0 priority=0 label.app=covered
        job j2 queue=q0 min=0 priority=0
        job j3 queue=q0 min=2 priority=0
          task w0 cpu=3 priority=1
          task w1 priority=0
        job j4 queue=q0 min=3 priority=1
          task r0 @n2 running priority=0
          task w0 cpu=4 priority=0
          task w1 priority=0";
    check(Run { config: 2, lag: 1, restart: None }, taken_by_another_job);
    let by_a_pod_of_no_gang = "node n0 cpu=5 pods=4
        node n1 cpu=4 pods=4
        queue q0 weight=1 reclaimable=false
        queue q1 weight=1 reclaimable=false
        job j0 queue=q1 min=0 priority=0
          task r0 @n0 running cpu=1 priority=0 label.app=covered
          task r1 @n1 running priority=0 label.app=covered
          task w0 cpu=3 priority=0 label.app=covered
          task w1 cpu=1 priority=1 label.app=covered
        job j2 queue=q0 min=3 priority=2
          task w0 priority=0
          task w1 priority=0
          task w2 cpu=2 priority=0
        job j3 queue=q0 min=0 priority=0
          task r0 @n0 running priority=0
          task r1 @n1 running cpu=3 priority=0
          task w0 priority=0
        job j4 queue=q0 min=1 priority=1
          task w0 cpu=2 priority=0";
    check(Run { config: 0, lag: 1, restart: None }, by_a_pod_of_no_gang);
    let evicted_for_again = "node n0 cpu=3 pods=3
        node n1 cpu=6 pods=3
        queue q0 weight=1 reclaimable=false
        job j0 queue=q0 min=2 priority=1
          task w0 priority=0 label.app=covered
          task w1 cpu=4 priority=0 label.app=covered
        job j1 queue=q0 min=0 priority=0
          task r0 @n1 running cpu=1 priority=0 label.app=covered
          task w0 priority=0 label.app=covered
          task w1 cpu=1 priority=0 label.app=covered
        job j3 queue=q0 min=0 priority=0
          task r0 @n1 running cpu=2 priority=0
          task w0 cpu=2 priority=0
          task w1 cpu=1 priority=0
          task w2 cpu=3 priority=1";
    check(Run { config: 0, lag: 1, restart: None }, evicted_for_again);
}

/// Pods that replace victims lower the share of a queue: it has room for one member of a gang, and
/// not for both, so neither is owed its place (11.2).
#[test]
fn a_gang_is_owed_nothing_once_its_queue_has_no_room_for_all_members() {
    let text = "node n0 cpu=4
        node n1 cpu=3
        node n2 cpu=2
        queue q0 weight=3 reclaimable=false
        queue q1 weight=2 reclaimable=false
        job j0 queue=q1 min=0 priority=1
          task w0 cpu=1 priority=0 label.app=covered
        job j2 queue=q0 min=0 priority=0
          task r0 @n0 running cpu=3 priority=0
          task w0 cpu=3 priority=1
        job j3 queue=q1 min=0 priority=1
          task r0 @n1 running cpu=3 priority=2
        job j4 queue=q1 min=2 priority=2
          task w0 cpu=1 priority=0
          task w1 cpu=2 priority=0";
    check(Run { config: 4, lag: 2, restart: None }, text);
}

/// A member may have more evicted after pods that replaced victims have lowered the share of its
/// queue. The other members of its job have used up the share, although no eviction was for them.
#[test]
fn members_that_waited_before_the_evictions_use_the_share_first() {
    // The order of the members decides which of them is left out.
    for priority_of_last in [0, 1] {
        let text = format!(
            "budget b label.app=covered allowed=0
        node n0 cpu=6 pods=20
        queue q0 weight=2 reclaimable=true
        queue q1 weight=2 reclaimable=false
        job j0 queue=q1 min=2 priority=1
          task w0 cpu=1 priority=0 label.app=covered
          task w1 cpu=1 priority=0 label.app=covered
          task w2 cpu=1 priority={priority_of_last} label.app=covered
        job j3 queue=q0 min=0 priority=0
          task r0 @n0 running cpu=4 priority=0
          task w0 cpu=1 priority=0
        job j4 queue=q1 min=0 priority=0
          task r0 @n0 running cpu=1 priority=0
          task w0 cpu=1 priority=0
          task w1 cpu=1 priority=0"
        );
        check(Run { config: 10, lag: 2, restart: None }, &text);
    }
}

/// The other members of a gang are bound by backfill, and use up the share of the queue. The member
/// for which a pod went gets its slot all the same: backfill does not ask the queue either.
#[test]
fn a_best_effort_member_gets_its_slot_in_an_overused_queue() {
    let text = "node n0 cpu=2 pods=2
        node n1 cpu=5 pods=5
        queue q0 weight=1 reclaimable=false
        queue q1 weight=1 reclaimable=false
        job j2 queue=q0 min=0 priority=0
          task w0 cpu=1 priority=0
          task w1 cpu=1 priority=0
          task w2 priority=0
        job j3 queue=q1 min=0 priority=0
          task r0 @n0 running priority=0
          task w0 cpu=1 priority=0
          task w1 cpu=1 priority=0
        job j4 queue=q1 min=3 priority=1
          task w0 priority=0
          task w1 priority=0
          task w2 priority=0";
    check(Run { config: 0, lag: 1, restart: None }, text);
}

/// Members that have places on idle nodes are not bound while another one waits, and count for the
/// gang for which further pods go.
#[test]
fn a_gang_is_complete_with_members_that_wait_on_idle_nodes() {
    let text = "node n0 cpu=4 pods=20
        node n1 cpu=3 pods=20
        node n2 cpu=2 pods=20
        queue q0 weight=1 reclaimable=false
        queue q1 weight=1 reclaimable=false cap.cpu=3
        job j1 queue=q0 min=0 priority=0
          task r0 @n0 running cpu=2 priority=0 label.app=covered
          task w0 cpu=3 priority=0 label.app=covered
        job j3 queue=q1 min=0 priority=0
          task r0 @n0 running cpu=2 priority=0
          task w0 cpu=2 priority=0
        job j4 queue=q0 min=3 priority=1
          task w0 cpu=1 priority=0 x3
          task w1 cpu=3 priority=0 x2";
    check(Run { config: 4, lag: 2, restart: None }, text);
}

/// Two members of a job take the places of a less important job one after the other, and that job
/// finds others each time. With kubelets that are slow, this ends after more than 18 cycles.
#[test]
fn evictions_of_a_long_chain_end() {
    let text = "node n0 cpu=2 pods=20
        node n1 cpu=5 pods=20
        node n2 cpu=6 pods=20
        node n3 cpu=6 pods=20
        node n4 cpu=6 pods=20
        queue q0 weight=2 reclaimable=false
        queue q1 weight=3 reclaimable=false
        job j0 queue=q0 min=0 priority=1
          task w0 cpu=1 priority=0 label.app=covered
        job j1 queue=q1 min=0 priority=0
          task w0 cpu=1 priority=0 label.app=covered x3
          task w1 cpu=2 priority=0 label.app=covered x2
        job j2 queue=q0 min=0 priority=2
          task w0 cpu=2 priority=0 x2
          task w1 cpu=4 priority=1 x2
        job j3 queue=q1 min=0 priority=0
          task w0 cpu=2 priority=0 x4
        job j4 queue=q0 min=3 priority=0
          task r0 @n2 running cpu=2 priority=0
          task w0 cpu=2 priority=0 x2";
    check(Run { config: 9, lag: 3, restart: None }, text);
}

/// Room was made for a member of a gang in the same cycle, so gangreclaim takes the gang neither as a
/// whole nor below its minimum.
#[test]
fn a_gang_for_which_pods_went_is_not_broken() {
    let text = "node n0 cpu=2 pods=2
        node n1 cpu=2 pods=2
        queue q0 weight=2 reclaimable=false
        queue q1 weight=1 reclaimable=true
        job j0 queue=q1 min=0 priority=0
          task r0 @n1 running priority=0
        job j1 queue=q0 min=0 priority=0
          task w0 cpu=1 priority=2
          task w1 cpu=1 priority=0
          task w2 priority=0
        job j3 queue=q1 min=2 priority=1
          task r0 @n0 running priority=0
          task r1 @n1 running priority=0
          task w0 cpu=1 priority=0";
    check(Run { config: 9, lag: 1, restart: None }, text);
}

/// After a restart the victims are unknown: as long as pods terminate on the planned nodes, a job whose
/// queue is overused in this cycle keeps its place (2.11).
#[test]
fn a_place_is_kept_over_a_restart_while_the_queue_is_overused() {
    let text = "node n0 cpu=3 pods=2
        node n1 cpu=4 pods=2
        node n2 cpu=2 pods=3
        queue q0 weight=2 reclaimable=false
        queue q1 weight=1 reclaimable=false
        job j0 queue=q1 min=0 priority=0
          task w0 cpu=1 priority=0  label.app=covered
        job j1 queue=q0 min=0 priority=0
          task r0 @n1 running priority=0  label.app=covered
        job j2 queue=q1 min=3 priority=1
          task w0 priority=0
          task w1 priority=0
          task w2 priority=0
        job j3 queue=q0 min=0 priority=0
          task w0 priority=0
          task w1 cpu=2 priority=0
          task w2 cpu=4 priority=0
        job j4 queue=q1 min=0 priority=0
          task r0 @n2 running priority=0
          task w0 cpu=1 priority=0";
    check(Run { config: 0, lag: 3, restart: Some(1) }, text);
}

/// The queue of a member has no room for one cycle, so its planned node looks free. No pod is evicted
/// beside it for another job, which would lose the place again (2.11).
#[test]
fn room_is_kept_for_a_member_whose_queue_has_none_for_a_cycle() {
    let text = "node n0 cpu=3 pods=20
        node n1 cpu=6 pods=20
        node n2 cpu=4 pods=20
        node n3 cpu=6 pods=20
        node n4 cpu=6 pods=20
        node n5 cpu=2 pods=20
        node n6 cpu=4 pods=20
        node n7 cpu=6 pods=20
        queue q0 weight=3 reclaimable=false
        queue q1 weight=1 reclaimable=false
        job j0 queue=q0 min=0 priority=0
          task r0 @n4 running cpu=1 priority=0  label.app=covered
        job j1 queue=q1 min=0 priority=1
          task r0 @n3 running cpu=2 priority=0  label.app=covered
          task r1 @n4 running cpu=2 priority=0  label.app=covered
          task w0 cpu=2 priority=1  label.app=covered x4
        job j2 queue=q1 min=2 priority=0
          task r0 @n4 running cpu=2 priority=0 pre=false
          task r1 @n7 running cpu=3 priority=0
          task r2 @n7 running cpu=2 priority=0
        job j3 queue=q0 min=0 priority=0
        job j4 queue=q0 min=0 priority=0
          task r0 @n2 running cpu=4 priority=1
          task r1 @n3 running cpu=1 priority=0
          task w0 cpu=3 priority=0   x2
          task w1 cpu=1 priority=0   x3
          task w2 cpu=4 priority=2   x3";
    check(Run { config: 4, lag: 2, restart: None }, text);
}

/// The queue of a member has no room as a cycle begins, so its hold ends; a reclaim of that cycle makes
/// room in the queue, and the member gets another node.
#[test]
fn a_place_is_not_owed_once_the_queue_had_no_room_for_a_cycle() {
    let text = "node n0 cpu=5 pods=20
        node n1 cpu=3 pods=20
        node n2 cpu=6 pods=20
        node n3 cpu=2 pods=20
        node n4 cpu=3 pods=20
        node n5 cpu=4 pods=20
        node n6 cpu=4 pods=20
        queue q0 weight=1 reclaimable=false
        queue q1 weight=1 reclaimable=true
        job j0 queue=q1 min=0 priority=2
          task r0 @n2 running cpu=1 priority=0  label.app=covered
          task r1 @n3 running cpu=1 priority=0  label.app=covered
          task r2 @n4 running cpu=2 priority=0  label.app=covered
          task r3 @n5 running cpu=1 priority=0  label.app=covered
          task r4 @n6 running cpu=2 priority=0  label.app=covered
        job j1 queue=q1 min=0 priority=1
          task r0 @n3 running cpu=1 priority=0  label.app=covered
          task w0 cpu=4 priority=0  label.app=covered
        job j2 queue=q1 min=0 priority=0
          task r0 @n4 running cpu=1 priority=0
          task w0 cpu=1 priority=1   x2
          task w1 cpu=2 priority=0
        job j3 queue=q0 min=0 priority=0
          task r0 @n0 running cpu=1 priority=0
          task r1 @n5 running cpu=3 priority=0
          task w0 cpu=3 priority=1   x3
        job j4 queue=q0 min=0 priority=0";
    check(Run { config: 5, lag: 2, restart: None }, text);
}

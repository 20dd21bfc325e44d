//! Stories in which the two evaluators differed, or a certificate did not hold, as small as they can
//! be told: `World` compares and verifies.

use vc_model::{
    AllocationMode, ClusterEvent, DeviceObject, DeviceRequest, ExactRequest, NodeShardRecord,
    RequestKind, ResourceClaim, Settings, Sharding, ShardingMode, fixture,
};

use crate::support::*;

/// For so many devices.
fn claim(name: &str, count: u32) -> ClusterEvent {
    let mode = AllocationMode::Count(count);
    let exact = ExactRequest { class: "gpu".into(), mode, ..ExactRequest::default() };
    let claim = ResourceClaim {
        key: key(name),
        uid: name.into(),
        requests: vec![DeviceRequest { name: "r".into(), kind: RequestKind::Exactly(exact) }],
        ..ResourceClaim::default()
    };
    ClusterEvent::DeviceApplied(Box::new(DeviceObject::Claim(claim)))
}

#[test]
fn devices_of_jobs_that_nobody_looks_at_stay_in_the_status_of_their_queue() {
    let chart =
        "priority gang conformance | overcommit drf predicates proportion nodeorder binpack";
    let text = "node n0 cpu=1
        queue q
        job j queue=q min=0 running
          task a device=d @n0 running";
    let mut world = World::new(&conf("enqueue, allocate, backfill", chart), text);
    world.send(claim("d", 2));
    let stated = |cycle: &Cycle| cycle.only(&["queue"]);
    assert!(stated(&world.cycle()).contains("deviceclass/gpu=2"));
    // The job is settled now.
    world.tick(1);
    world.add("job k queue=q min=0");
    assert_eq!(stated(&world.cycle()), "");
}

#[test]
fn when_the_last_node_goes_pods_that_their_queue_kept_out_hear_of_it() {
    let tiers = "gang priority | predicates proportion{queueOrder allocatable}";
    let text = "node n0 cpu=2 pods=2
        queue q
        queue r guarantee.cpu=2
        job j queue=q min=0
          task a
        job k queue=q min=0
          task a cpu=1";
    let mut world = World::new(&conf("allocate, backfill", tiers), text);
    let reported = |cycle: &Cycle| cycle.only(&["pod"]);
    let no_room = "pod k-a Unschedulable \"queue q has no room: insufficient cpu. Limit of queue q: 0 \
        cpu (deserved), used 0, asked 1.\"";
    assert_eq!(reported(&world.cycle()), no_room);
    assert_eq!(reported(&world.cycle()), "");
    world.delete_node("n0");
    assert_eq!(reported(&world.cycle()), "pod k-a Unschedulable \"0/0 nodes are unavailable\"");
    world.tick(1);
    world.add("queue s");
    assert_eq!(reported(&world.cycle()), "");
}

#[test]
fn who_lost_its_pods_to_others_is_not_told_that_its_queue_has_no_room() {
    let tiers = "priority proportion predicates nodeorder";
    let text = "queue q
        node n cpu=6 pods=4
        job victim queue=q min=0 running
          task a @n running
        job holder queue=q min=0 running
          task a priority=2 cpu=1 x3 @n running
        job vip queue=q min=0 priority=1
          task a";
    for second in ["reclaim", "gangreclaim"] {
        let mut world = World::new(&conf(&format!("preempt, {second}"), tiers), text);
        let cycle = world.cycle();
        assert_eq!(cycle.decisions(), "evict victim-a preempt\npipeline vip-a n");
        assert!(!cycle.all().contains("PodGroup victim"), "{}", cycle.all());
    }
}

/// A node that has room and was nominated before is of no use outside a hard shard (actions.md 2.6).
#[test]
fn nobody_is_placed_by_preempt_where_it_was_nominated_outside_the_shard() {
    let text = "node n1 cpu=6
        node n2 cpu=1
        job low min=0
          task a cpu=1 @n2 running
        job high min=2 priority=9
          task a cpu=1 nominated=n1
          task b cpu=1";
    let tiers = "gang{jobReady jobPipelined jobStarving} \
        priority{jobOrder taskOrder preemptable jobStarving} predicates";
    let sharding = Sharding { mode: ShardingMode::Hard, name: "s".into() };
    let options = Settings { sharding, ..Settings::default() };
    let mut all = objects("queue default");
    all.extend(objects(text));
    let mut world = World::with(options, &conf("allocate, preempt", tiers), all);
    let nodes_desired = vec!["n2".into()];
    let shard = NodeShardRecord { name: "s".into(), nodes_desired, ..Default::default() };
    world.send(ClusterEvent::NodeShardApplied(Box::new(shard)));
    assert_eq!(world.cycle().decisions(), "");
}

/// The certificate is looked at with the same eyes: pods whose PodGroup is gone hold no quota.
#[test]
fn pods_without_their_group_hold_no_quota() {
    let text = "node n cpu=9
        queue q cap.cpu=4 deserved.cpu=4
        job low queue=q min=0 running
          task a cpu=3 @n running
        job gone queue=q min=0 running
          task a cpu=1 @n running
        job high queue=q priority=1
          task a cpu=4";
    let tiers = "priority gang | predicates cohort{* withinClusterQueue=LowerPriority}";
    let mut world = World::new(&conf("allocate, preempt", tiers), text);
    world.delete_group("gone");
    assert_eq!(world.cycle().decisions(), "evict low-a preempt\npipeline high-a n");
}

/// What a claim keeps counts as use of its queue against everybody else (cohort.md B.7), for whoever
/// checks the certificate, too.
#[test]
fn a_queue_is_above_its_quota_by_what_its_claims_keep() {
    let text = "node n cpu=2
        queue q1 deserved.cpu=1
        queue q2 deserved.cpu=2
        job within queue=q2 min=0 running
          task a cpu=2 @n running
        job owed queue=q2 min=0
          task a cpu=1 nominated=n
        job high queue=q1
          task a cpu=1";
    let tiers = "priority gang | predicates cohort{* reclaimWithinCohort=Any}";
    let mut world = World::new(&conf("gangreclaim", tiers), text);
    assert_eq!(world.cycle().decisions(), "evict within-a gangreclaim\npipeline high-a n");
}

/// Who decides about a claim that jobs share depends on who was placed first; whoever checks the
/// certificate is not told that.
#[test]
fn what_was_promised_before_an_eviction_is_not_promised_anew_to_check_it() {
    let text = "node n1 cpu=3
        node n2 cpu=2
        job other min=0
          task a cpu=1 pvc=c
        job j min=0 priority=9
          task low cpu=2 @n2 running
          task a priority=3 cpu=2 pvc=c
          task b priority=2 cpu=2 pvc=c
        job leaving min=0
          task v cpu=3 @n1 running deleting";
    let mut world = World::new(&conf("preempt", "priority | predicates"), text);
    let storage = "class slow provisioner=d delayed
        csinode n1 d=9
        csinode n2 d=9
        pvc c 1Gi class=slow mode=RWX";
    fixture::storage(storage).into_iter().for_each(|event| world.send(event));
    let decided = "evict j-low preempt\npipeline j-a n1\npipeline j-b n2\npipeline other-a n1";
    assert_eq!(world.cycle().decisions(), decided);
}

/// It waits for what others have cleared, and the other pod of its job fits nowhere for long.
#[test]
fn backfill_tries_who_waits_for_room_whatever_stands_of_its_job() {
    let text = "node n cpu=2 pods=2
        job low min=0
          task v cpu=1 x2 @n running
        job high min=0 priority=2
          task a cpu=2
        job j min=0 priority=1
          task a
          task b cpu=9";
    let mut world = World::new(&conf("preempt, allocate, backfill", "priority | predicates"), text);
    let decided = "evict low-v-1 preempt\nevict low-v-0 preempt\npipeline high-a n\npipeline j-a n";
    assert_eq!(world.cycle().decisions(), decided);
}

/// A gang that preempts nobody does not end like one that may: their members differ in the policy.
#[test]
fn gangs_of_one_shape_have_one_preemption_policy() {
    let text = "node n cpu=2
        queue q
        job a queue=q min=1 priority=1
          task w cpu=4 never
        job b queue=q min=1 priority=1
          task w cpu=4";
    let tiers = "gang priority | predicates proportion nodeorder";
    let mut world = World::new(&conf("allocate, reclaim, preempt", tiers), text);
    let cycle = world.cycle();
    let reported = cycle.only(&["event"]);
    assert!(
        reported.contains("a Normal PreemptionSkipped \"reclaim: 1 policy Never"),
        "{reported}"
    );
    assert!(
        !reported.contains("b Normal PreemptionSkipped \"reclaim: 1 policy Never"),
        "{reported}"
    );
}

/// Keeping one victim of gangreclaim makes another one needless: the members may join any pod of their
/// kind in the zone, and none would be there if all were evicted.
#[test]
fn victims_of_a_gang_that_another_one_makes_needless_stay() {
    let text = "node n1 cpu=6 zone=z0
        node n2 cpu=1 zone=z2
        node n3 cpu=1 zone=z0
        queue q
        queue r
        job j1 queue=q min=0 running
          task b cpu=1 x6 @n1 running
          task a cpu=1 label.app=a @n3 running
        job j2 queue=q min=0 running
          task a cpu=1 label.app=a @n2 running
        job vip queue=r min=2
          task a cpu=3 x2 label.app=a near=zone:a";
    let mut world = World::new(&conf("gangreclaim, allocate", "priority predicates binpack"), text);
    let decisions = world.cycle().decisions();
    assert!(!decisions.contains("evict j1-a") && !decisions.contains("evict j2-a"), "{decisions}");
    assert_eq!(decisions.matches("evict j1-b").count(), 6, "{decisions}");
}

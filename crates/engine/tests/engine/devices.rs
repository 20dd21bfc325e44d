//! Binds that wait for claims of devices: reserved as a gang, taken back when they fail, and never
//! stuck behind devices that nobody can use. Specification: plugins-nodes.md 6.4, 6.7, test cases
//! 77, 80, 82, 83; core.md cases 80 and 89.

use std::sync::Arc;

use vc_engine::Effect;
use vc_model::*;

use crate::support::*;

const DRIVER: &str = "gpu.example.com";

fn apply(world: &mut World, object: DeviceObject) {
    world.send(ClusterEvent::DeviceApplied(Box::new(object)));
}

/// A class, and one device `a` that every node can use.
fn offer(world: &mut World, nodes: SliceNodes) {
    let class = DeviceClass { name: "gpu".into(), ..DeviceClass::default() };
    apply(world, DeviceObject::Class(class));
    let slice = ResourceSlice {
        name: "slice".into(),
        driver: DRIVER.into(),
        pool: "pool".into(),
        generation: 1,
        n_slices: 1,
        nodes,
        devices: vec![Arc::new(Device { name: "a".into(), ..Device::default() })],
    };
    apply(world, DeviceObject::Slice(slice));
}

/// A claim for one device.
fn claim(version: &str) -> ResourceClaim {
    let exact = ExactRequest { class: "gpu".into(), ..ExactRequest::default() };
    ResourceClaim {
        key: key("c"),
        uid: "uid-c".into(),
        resource_version: version.into(),
        requests: vec![DeviceRequest { name: "r".into(), kind: RequestKind::Exactly(exact) }],
        ..ResourceClaim::default()
    }
}

fn uses_claim(world: &mut World, pod: &str) {
    let entry = PodResourceClaim { name: "gpu".into(), source: ClaimSource::Named("c".into()) };
    world.edit(pod, |pod| pod.resource_claims = vec![entry]);
}

/// The edge has reserved what the pod was promised.
fn reserved(world: &mut World, effects: &[Effect], version: &str) {
    for effect in effects {
        let Effect::PreBind { uid, writes, .. } = effect else { continue };
        let mut stored = claim(version);
        stored.allocation = writes.devices[0].allocation.clone();
        stored.reserved_for = vec![Consumer { name: "p".into(), uid: uid.clone() }];
        world.send(ClusterEvent::VolumesWritten {
            uid: uid.clone(),
            objects: Vec::new(),
            devices: vec![stored],
        });
    }
}

fn gang(config: &vc_conf::Config) -> World {
    let text = "node n1 cpu=4
        node n2 cpu=4
        job j min=2
          task a cpu=1
          task b cpu=1";
    let mut world = World::new(config, text);
    offer(&mut world, SliceNodes::All);
    apply(&mut world, DeviceObject::Claim(claim("1")));
    uses_claim(&mut world, "j-a");
    uses_claim(&mut world, "j-b");
    world
}

#[test]
fn nodes_77_a_gang_that_shares_a_claim_is_bound() {
    let mut world = gang(&ta());
    let cycle = world.cycle();
    // Whoever is written first writes the devices, too.
    assert_eq!(cycle.only(&["prebind", "bind"]), "prebind j-a n1 c:a\nprebind j-b n2 c:a");
    reserved(&mut world, &cycle.effects, "2");
    assert_eq!(world.cycle().only(&["bind"]), "bind j-a n1\nbind j-b n2");
    assert!(world.engine.cluster().devices.in_flight(&key("c")).is_none());
}

#[test]
fn nodes_77_a_gang_waits_for_its_devices_however_late_the_answers_come() {
    let mut world = gang(&ta());
    let cycle = world.cycle();
    let is_pre_bind = |effect: &&Effect| matches!(effect, Effect::PreBind { .. });
    let writes: Vec<Effect> = cycle.effects.iter().filter(is_pre_bind).cloned().collect();
    let waits =
        |node: &str| format!("waiting on node {node} for its ResourceClaims to be reserved");
    let reported = format!("pod j-a Binding {:?}\npod j-b Binding {:?}", waits("n1"), waits("n2"));
    let others =
        "pod j-a Binding \"waiting on node n1 for the volumes or devices of other pods of its \
        PodGroup\""
            .to_owned();
    for (index, version) in ["2", "3"].into_iter().enumerate() {
        // A cycle for another reason.
        world.tick(700);
        let wanted = if index == 0 { &reported } else { &others };
        assert_eq!(world.cycle().only(&["bind", "resync", "pod"]), *wanted);
        reserved(&mut world, &writes[index..=index], version);
    }
    assert_eq!(world.cycle().only(&["bind"]), "bind j-a n1\nbind j-b n2");
}

#[test]
fn nodes_82_a_failed_bind_gives_the_claim_back() {
    let mut world = gang(&ta());
    let cycle = world.cycle();
    reserved(&mut world, &cycle.effects, "2");
    // The last answer names the second pod as the consumer.
    world.cycle();
    let uid = world.pod("j-b").uid.clone();
    let (node, error) = ("n2".into(), "refused".to_owned());
    world.send(ClusterEvent::BindFailed { uid, node, error, pauses: false });
    let cycle = world.cycle_unanswered();
    assert_eq!(cycle.only(&["unreserve"]), "unreserve j-b c");
}

#[test]
fn a_pre_bind_that_fails_withdraws_the_gang_and_frees_the_devices() {
    let mut world = gang(&ta());
    world.cycle();
    let uid = world.pod("j-a").uid.clone();
    let error = "claim default/c got allocated elsewhere in the meantime".to_owned();
    world.send(ClusterEvent::PreBindFailed { uid, error, pauses: false });
    let cycle = world.cycle_unanswered();
    // Whoever is withdrawn with it first, then the one that failed.
    assert_eq!(cycle.only(&["resync"]), "resync j-b\nresync j-a");
    let all = cycle.all();
    let reported = "execute preBind for pod default/j-a failed: claim default/c got allocated \
                elsewhere in the meantime, resync the task";
    assert!(all.contains(reported), "{all}");
    let sibling = "bind withdrawn with its gang: preBind of pod default/j-a failed";
    assert!(all.contains(sibling), "{all}");
    assert!(world.engine.cluster().devices.in_flight(&key("c")).is_none());
}

#[test]
fn nodes_80_devices_that_keep_their_only_pod_out_are_taken_away() {
    let text = "node n1 cpu=4
        job j min=1
          task a cpu=1";
    let mut world = World::new(&ta(), text);
    offer(&mut world, SliceNodes::All);
    let name = Requirement {
        key: "metadata.name".into(),
        operator: Operator::In,
        values: vec!["gone".into()],
    };
    let term = NodeSelectorTerm { match_fields: vec![name], ..NodeSelectorTerm::default() };
    let mut pinned = claim("1");
    let node_selector = Some(vec![term]);
    pinned.allocation = Some(Arc::new(Allocation { node_selector, ..Allocation::default() }));
    apply(&mut world, DeviceObject::Claim(pinned.clone()));
    uses_claim(&mut world, "j-a");
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["bind", "prebind", "deallocate"]), "deallocate c");
    apply(&mut world, DeviceObject::Claim(claim("2")));
    assert_eq!(world.cycle().only(&["prebind"]), "prebind j-a n1 c:a");
}

#[test]
fn nodes_80_only_the_claim_that_is_in_the_way_loses_its_devices() {
    let text = "node n1 cpu=4
        job j min=1
          task a cpu=1";
    let mut world = World::new(&ta(), text);
    offer(&mut world, SliceNodes::All);
    let allocated = |name: &str, node_selector| ResourceClaim {
        key: key(name),
        uid: name.into(),
        allocation: Some(Arc::new(Allocation { node_selector, ..Allocation::default() })),
        ..claim("1")
    };
    apply(&mut world, DeviceObject::Claim(allocated("anywhere", None)));
    let nowhere = Some(vec![NodeSelectorTerm::default()]);
    apply(&mut world, DeviceObject::Claim(allocated("nowhere", nowhere)));
    let entry = |name: &str| PodResourceClaim {
        name: name.into(),
        source: ClaimSource::Named(name.into()),
    };
    let entries = vec![entry("anywhere"), entry("nowhere")];
    world.edit("j-a", |pod| pod.resource_claims = entries);
    assert_eq!(world.cycle().only(&["bind", "deallocate"]), "deallocate nowhere");
}

#[test]
fn devices_that_another_pod_has_a_right_to_stay() {
    let text = "node n1 cpu=4
        job j min=1
          task a cpu=1";
    let mut world = World::new(&ta(), text);
    offer(&mut world, SliceNodes::All);
    let mut pinned = claim("1");
    let nowhere = Some(vec![NodeSelectorTerm::default()]);
    pinned.allocation =
        Some(Arc::new(Allocation { node_selector: nowhere, ..Allocation::default() }));
    pinned.reserved_for = vec![Consumer { name: "other".into(), uid: "other".into() }];
    apply(&mut world, DeviceObject::Claim(pinned));
    uses_claim(&mut world, "j-a");
    assert_eq!(world.cycle().only(&["bind", "deallocate"]), "");
}

#[test]
fn nodes_83_claims_are_ignored_where_they_are_switched_off() {
    let off = conf(
        "allocate",
        "gang | predicates{* predicate.DynamicResourceAllocationEnable=false} nodeorder",
    );
    assert_eq!(gang(&off).cycle().only(&["bind", "prebind"]), "bind j-a n1\nbind j-b n2");
    let options = Settings { dynamic_resources: false, ..Settings::default() };
    let text = objects("queue default\nnode n1 cpu=4\njob j min=1\n  task a cpu=1");
    let mut world = World::with(options, &ta(), text);
    uses_claim(&mut world, "j-a");
    assert_eq!(world.cycle().only(&["bind"]), "bind j-a n1", "the server has no claims");
}

#[test]
fn core_80_a_pre_bind_that_fails_gives_back_volumes_and_devices() {
    let text = "node n1 cpu=4
        job j min=1
          task a cpu=1 pvc=data";
    let mut world = World::new(&ta(), text);
    offer(&mut world, SliceNodes::All);
    apply(&mut world, DeviceObject::Claim(claim("1")));
    uses_claim(&mut world, "j-a");
    let storage = "class slow provisioner=d delayed
        csinode n1 d=9
        pvc data 1Gi class=slow version=1";
    fixture::storage(storage).into_iter().for_each(|event| world.send(event));
    let prebind = world.cycle().only(&["prebind", "bind"]);
    assert!(prebind.contains("prebind j-a n1") && prebind.contains("c:a"), "{prebind}");
    let promised = |world: &World| {
        let cluster = world.engine.cluster();
        let volumes = cluster.volumes.reservations().count() + cluster.volumes.held().count();
        (volumes, cluster.devices.in_flight(&key("c")).is_some())
    };
    assert_ne!(promised(&world), (0, false));
    // The volumes are written, the devices are not.
    let uid = world.pod("j-a").uid.clone();
    let error = "claim default/c got allocated elsewhere in the meantime".to_owned();
    world.send(ClusterEvent::PreBindFailed { uid, error, pauses: false });
    let effects = world.engine_follow_up();
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Bind { .. })), "{effects:?}");
    assert_eq!(promised(&world), (0, false));
}

#[test]
fn core_89_a_claim_that_pods_share_counts_once() {
    let mut world = gang(&ta());
    let status = |cycle: &Cycle| cycle.only(&["queue"]);
    let cycle = world.cycle();
    let expected = "queue default cpu=2 deviceclass/gpu=1 memory=0 pods=2";
    assert_eq!(sorted(&status(&cycle)), expected);
    reserved(&mut world, &cycle.effects, "2");
    assert_eq!(status(&world.cycle()), "", "nothing has changed");
    // Also while they run, and no action looks at their job any more.
    for job in ["k", "l", "m"] {
        world.kubelets();
        world.add(&format!("job {job} min=1\n task a cpu=9"));
        assert_eq!(status(&world.cycle()), "", "nothing has changed beside {job}");
    }
}

/// The words of a line about a queue in the order of their names.
fn sorted(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    words[2..].sort_unstable();
    words.join(" ")
}

#[test]
fn nodes_23_a_pod_with_a_claim_can_wait_for_room() {
    let text = "node n1 cpu=2
        job k min=1
          task v cpu=2 @n1 running deleting
        job j min=1
          task a cpu=1";
    let mut world = World::new(&ta(), text);
    offer(&mut world, SliceNodes::Named("n1".into()));
    apply(&mut world, DeviceObject::Claim(claim("1")));
    uses_claim(&mut world, "j-a");
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["pipeline", "bind", "prebind"]), "pipeline j-a n1");
    let in_flight = |world: &World| world.engine.cluster().devices.in_flight(&key("c")).is_some();
    assert!(!in_flight(&world), "what it was promised ends with the session");
    let (key, uid) = (world.pod("k-v").key.clone(), world.pod("k-v").uid.clone());
    world.send(ClusterEvent::PodDeleted { key, uid });
    assert_eq!(world.cycle().only(&["pipeline", "prebind"]), "prebind j-a n1 c:a");
    assert!(in_flight(&world));
}

/// What a task that only waits for room has chosen for both stays chosen (deviation of 2.6).
#[test]
fn nodes_77_devices_of_who_is_bound_stay_taken_when_who_chose_them_waits_for_room() {
    let text = "node n1 cpu=2
        node n2 cpu=1
        job leaving
          task v cpu=2 @n1 running deleting
        job j min=1
          task a priority=2 cpu=2
          task b priority=1 cpu=1
        job other min=0
          task c cpu=0";
    let conf = conf("allocate, backfill", "priority gang | predicates nodeorder");
    let mut world = World::new(&conf, text);
    offer(&mut world, SliceNodes::All);
    apply(&mut world, DeviceObject::Claim(claim("1")));
    uses_claim(&mut world, "j-a");
    uses_claim(&mut world, "j-b");
    let cycle = world.cycle_unanswered();
    assert_eq!(cycle.only(&["prebind", "pipeline"]), "prebind j-b n2 c:a\npipeline j-a n1");
    // Nothing is stored yet.
    let device = DeviceId { driver: DRIVER.into(), pool: "pool".into(), device: "a".into() };
    assert!(world.engine.cluster().devices.is_taken(&device));
}

#[test]
fn a_claim_that_went_while_it_was_written_stays_gone() {
    let mut world = gang(&ta());
    let effects = world.cycle_unanswered().effects;
    world.send(ClusterEvent::DeviceDeleted { kind: DeviceKind::Claim, key: key("c") });
    reserved(&mut world, &effects, "2");
    world.deliver();
    assert!(world.engine.cluster().devices.claim(&key("c")).is_none());
    // Another one of its name is not what was written.
    apply(&mut world, DeviceObject::Claim(ResourceClaim { uid: "other".into(), ..claim("1") }));
    reserved(&mut world, &effects, "2");
    world.deliver();
    let stored = world.engine.cluster().devices.claim(&key("c")).unwrap().clone();
    assert_eq!((&*stored.uid, stored.allocation), ("other", None));
}

#[test]
fn c06_claims_count_from_the_moment_when_the_server_has_them() {
    let text = "queue default\nnode n1 cpu=4\njob j min=1\n  task a cpu=1";
    let options = Settings { dynamic_resources: false, ..Settings::default() };
    let mut world = World::with(options, &ta(), objects(text));
    world.add("job full min=1\n task big cpu=9");
    let off = world.cycle();
    assert_eq!(off.only(&["bind"]), "bind j-a n1");
    world.serve_devices();
    world.add("job k min=1\n task b cpu=1");
    uses_claim(&mut world, "k-b");
    assert_eq!(world.cycle().only(&["bind", "prebind"]), "", "the claim is not known");
    offer(&mut world, SliceNodes::All);
    apply(&mut world, DeviceObject::Claim(claim("1")));
    assert_eq!(world.cycle().only(&["prebind"]), "prebind k-b n1 c:a");
}

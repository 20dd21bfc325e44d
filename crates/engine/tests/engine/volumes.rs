//! Binds that wait for volumes: written with the commit, bound as a gang, withdrawn as a gang.
//! Specification: plugins-nodes.md 2.7, 2.8, 5.6-5.8, test cases 17, 19, 21, 61 to 63.

use vc_engine::Effect;
use vc_model::*;

use crate::support::*;

const SLOW: &str = "class slow provisioner=d delayed
                    csinode n1 d=9
                    csinode n2 d=9\n";
const LOCAL: &str = "class local provisioner=kubernetes.io/no-provisioner delayed\n";
const NODES: &str = "node n1 cpu=4
                     node n2 cpu=4\n";

/// Objects and storage.
fn world(text: &str, storage: &str) -> World {
    let mut world = World::new(&ta(), text);
    tell(&mut world, storage);
    world
}

fn tell(world: &mut World, storage: &str) {
    fixture::storage(storage).into_iter().for_each(|event| world.send(event));
}

/// The edge has written what the claims need.
fn written(world: &mut World, pod: &str, storage: &str) {
    let object = |event| match event {
        ClusterEvent::StorageApplied(object) => *object,
        other => panic!("no object: {other:?}"),
    };
    let objects = fixture::storage(storage).into_iter().map(object).collect();
    let uid = world.pod(pod).uid.clone();
    world.send(ClusterEvent::VolumesWritten { uid, objects, devices: Vec::new() });
}

fn is_free_of_promises(world: &World) -> bool {
    let volumes = &world.engine.cluster().volumes;
    volumes.reservations().next().is_none() && volumes.held().next().is_none()
}

const GANG: &str = "job j min=2
                      task a cpu=3 pvc=ca
                      task b cpu=3 pvc=cb\n";
const CLAIMS: &str = "pvc ca 1Gi class=slow version=1
                      pvc cb 1Gi class=slow version=1\n";

/// A gang of two whose claims are to be provisioned; the writes are stored.
fn waiting_gang() -> World {
    let mut world = world(&format!("{NODES}{GANG}"), &format!("{SLOW}{CLAIMS}"));
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["prebind", "bind"]), "prebind j-a n1 ca\nprebind j-b n2 cb");
    written(&mut world, "j-a", "pvc ca 1Gi class=slow version=2 selected=n1");
    written(&mut world, "j-b", "pvc cb 1Gi class=slow version=2 selected=n2");
    world
}

#[test]
fn allocate__volumes() {
    let text = |cpu: u32| {
        format!(
            "node n1 cpu={cpu}
            job j min=2
              task a cpu=1 pvc=da
              task b cpu=1 pvc=db"
        )
    };
    let storage = "pv va 1Gi claim=da phase=Bound\npv vb 1Gi claim=db phase=Bound
        pvc da 1Gi volume=va\npvc db 1Gi volume=vb";
    let mut full = world(&text(1), storage);
    assert_eq!(full.cycle().only(&["bind", "prebind"]), "");
    assert_eq!(full.group("j").status.phase, PodGroupPhase::Inqueue);
    let decisions = world(&text(2), storage).cycle().only(&["bind", "prebind"]);
    assert_eq!(decisions, "bind j-a n1\nbind j-b n1");
}

#[test]
fn nodes_61_a_gang_is_bound_when_all_its_volumes_are() {
    let mut world = waiting_gang();
    assert_eq!(world.cycle().only(&["prebind", "bind"]), "");
    tell(
        &mut world,
        "pv va 1Gi class=slow driver=d claim=ca version=3 phase=Bound
                      pvc ca 1Gi class=slow version=3 selected=n1 volume=va",
    );
    assert_eq!(world.cycle().only(&["prebind", "bind"]), "", "the other one still waits");
    tell(
        &mut world,
        "pv vb 1Gi class=slow driver=d claim=cb version=3 phase=Bound
                      pvc cb 1Gi class=slow version=3 selected=n2 volume=vb",
    );
    assert_eq!(world.cycle().only(&["prebind", "bind"]), "bind j-a n1\nbind j-b n2");
    assert!(is_free_of_promises(&world));
    assert_eq!(world.cycle().only(&["prebind", "bind", "resync"]), "");
}

#[test]
fn nodes_21_nodes_61_a_failure_of_one_withdraws_the_whole_gang() {
    let mut world = waiting_gang();
    tell(
        &mut world,
        "pv va 1Gi class=slow driver=d claim=ca version=3 phase=Bound
                      pvc ca 1Gi class=slow version=3 selected=n1 volume=va
                      pvc cb 1Gi class=slow version=3",
    );
    let cycle = world.cycle();
    let text = "execute preBind for pod default/j-b failed: binding volumes: provisioning failed \
                for PVC \"cb\", resync the task";
    let sibling = "bind withdrawn with its gang: preBind of pod default/j-b failed";
    assert_eq!(
        cycle.only(&["pod", "resync", "bind", "prebind"]),
        format!(
            "pod j-a SchedulerError {sibling:?}\nresync j-a\npod j-b SchedulerError {text:?}\n\
             resync j-b"
        )
    );
    assert!(is_free_of_promises(&world));
    // The pods were looked at: they are tried again, on what is bound now.
    assert_eq!(world.cycle().only(&["bind", "prebind"]), "prebind j-b n2 cb");
}

#[test]
fn a_refused_write_withdraws_the_whole_gang() {
    let mut world = world(&format!("{NODES}{GANG}"), &format!("{SLOW}{CLAIMS}"));
    world.cycle();
    let uid = world.pod("j-a").uid.clone();
    world.send(ClusterEvent::PreBindFailed {
        uid,
        error: "binding volumes: no such claim".into(),
        pauses: false,
    });
    let cycle = world.cycle();
    let text = "execute preBind for pod default/j-a failed: binding volumes: no such claim, \
                resync the task";
    assert!(cycle.only(&["pod"]).contains(&format!("pod j-a SchedulerError {text:?}")));
    assert_eq!(cycle.only(&["resync", "bind"]), "resync j-b\nresync j-a");
    assert!(is_free_of_promises(&world));
}

#[test]
fn a_time_out_withdraws_the_whole_gang() {
    let argument = "predicates{predicate volumebinding.bindTimeoutSeconds=30}";
    let conf = conf("enqueue, allocate", &TA.replace("predicates{predicate}", argument));
    let mut world = World::new(&conf, &format!("{NODES}{GANG}"));
    tell(&mut world, &format!("{SLOW}{CLAIMS}"));
    world.cycle();
    written(&mut world, "j-a", "pvc ca 1Gi class=slow version=2 selected=n1");
    written(&mut world, "j-b", "pvc cb 1Gi class=slow version=2 selected=n2");
    world.tick(29);
    assert_eq!(world.cycle().only(&["resync", "bind"]), "");
    world.tick(1);
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["resync", "bind"]), "resync j-a\nresync j-b");
    let text = "failed: binding volumes: context deadline exceeded, resync the task";
    assert_eq!(cycle.only(&["pod"]).matches(text).count(), 2);
    assert!(is_free_of_promises(&world));
    // What was written stays: each pod fits only where its claim is to be provisioned.
    assert_eq!(world.cycle().only(&["prebind", "bind", "resync"]), "");
    assert_eq!(world.engine.cluster().volumes.held().count(), 2);
}

#[test]
fn members_without_volumes_wait_with_the_gang_and_others_do_not() {
    let text = "job j min=2
                  task a cpu=1 pvc=ca
                  task b cpu=1
                job k
                  task c cpu=1\n";
    let mut world = world(&format!("{NODES}{text}"), &format!("{SLOW}{CLAIMS}"));
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["bind"]).lines().count(), 1);
    assert!(cycle.only(&["bind"]).starts_with("bind k-c "));
    let asked = cycle.only(&["prebind"]);
    let node = asked.split(' ').nth(2).expect("a node");
    let node = &format!("selected={node}");
    written(&mut world, "j-a", &format!("pvc ca 1Gi class=slow version=2 {node}"));
    tell(&mut world, "pv va 1Gi class=slow driver=d claim=ca version=3 phase=Bound");
    tell(&mut world, &format!("pvc ca 1Gi class=slow version=3 {node} volume=va"));
    let binds = world.cycle().only(&["bind"]);
    assert!(binds.contains("bind j-a ") && binds.contains("bind j-b "), "{binds}");
}

#[test]
fn an_elastic_member_does_not_hold_the_gang_nor_take_it_back() {
    let text = "job j min=1
                  task a cpu=1
                  task b cpu=1 pvc=ca\n";
    let mut world = world(&format!("{NODES}{text}"), &format!("{SLOW}{CLAIMS}"));
    let mut seen = world.cycle().only(&["bind", "prebind"]);
    seen += &world.cycle().only(&["bind", "prebind"]);
    assert!(seen.contains("bind j-a"), "{seen}");
    let uid = world.pod("j-b").uid.clone();
    world.send(ClusterEvent::PreBindFailed { uid, error: "refused".into(), pauses: false });
    assert_eq!(world.cycle().only(&["resync"]), "resync j-b");
}

#[test]
fn nodes_19_nodes_62_a_gang_that_is_given_up_leaves_its_volumes() {
    let text = "job first min=2 priority=9
                  task a cpu=1 pvc=ca
                  task b cpu=99 pvc=cb
                job second
                  task c cpu=1 pvc=cc\n";
    let storage = "pv v 1Gi class=local version=1
                   pvc ca 1Gi class=local version=1
                   pvc cb 1Gi class=local version=1
                   pvc cc 1Gi class=local version=1";
    let mut world = world(&format!("{NODES}{text}"), &format!("{LOCAL}{storage}"));
    let cycle = world.cycle();
    let decided = cycle.only(&["prebind", "bind"]);
    assert!(decided.starts_with("prebind second-c ") && decided.ends_with(" cc=v"), "{decided}");
}

#[test]
fn nodes_62_one_volume_binds_one_pod() {
    let text = "job j
                  task a cpu=1 pvc=ca
                job k
                  task b cpu=1 pvc=cb\n";
    let storage = "pv v 1Gi class=local version=1
                   pvc ca 1Gi class=local version=1
                   pvc cb 1Gi class=local version=1";
    let mut world = world(&format!("{NODES}{text}"), &format!("{LOCAL}{storage}"));
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["prebind"]).lines().count(), 1);
    let refused = "2 node(s) didn't find available persistent volumes to bind";
    assert!(cycle.only(&["pod"]).contains(refused), "{}", cycle.only(&["pod"]));
}

#[test]
fn nodes_63_a_gang_on_two_nodes_shares_a_claim() {
    let text = "job j min=2
                  task a cpu=3 pvc=c
                  task b cpu=3 pvc=c\n";
    for (mode, expected) in [("RWX", "prebind j-a n1 c"), ("RWO", "")] {
        let storage = format!("{SLOW}pvc c 1Gi class=slow version=1 mode={mode}");
        let mut world = world(&format!("{NODES}{text}"), &storage);
        assert_eq!(world.cycle().only(&["prebind", "bind"]), expected, "{mode}");
        if mode == "RWO" {
            assert!(is_free_of_promises(&world));
            continue;
        }
        let claim = "pvc c 1Gi class=slow mode=RWX selected=n1";
        written(&mut world, "j-a", &format!("{claim} version=2"));
        tell(&mut world, "pv v 1Gi class=slow driver=d claim=c version=3 phase=Bound");
        tell(&mut world, &format!("{claim} version=3 volume=v"));
        assert_eq!(world.cycle().only(&["bind"]), "bind j-a n1\nbind j-b n2");
    }
}

/// What a task that only waits for room has decided is never written (deviation of 5.8).
#[test]
fn nodes_63_who_is_bound_decides_where_a_sibling_only_waits_for_room() {
    let text = |cpu: u32| {
        format!(
            "node n1 cpu=2
            node n2 cpu={cpu}
            job leaving
              task v cpu=2 @n1 running deleting
            job j min=1
              task a priority=2 cpu=2 pvc=c
              task b priority=1 cpu=1 pvc=c"
        )
    };
    let conf = conf("allocate", "priority gang | predicates nodeorder");
    for (cpu, mode, expected) in [
        (1, "RWX", "prebind j-b n2 c\npipeline j-a n1"),
        (1, "RWO", "pipeline j-a n1"),
        (2, "RWO", "prebind j-a n2 c"),
    ] {
        let mut world = World::new(&conf, &text(cpu));
        tell(&mut world, &format!("{SLOW}pvc c 1Gi class=slow version=1 mode={mode}"));
        let cycle = world.cycle();
        assert_eq!(cycle.only(&["prebind", "bind", "pipeline"]), expected, "{mode}");
        assert_eq!(world.cycle().only(&["resync"]), "", "{mode}");
    }
}

/// In Kubernetes the claim would be provisioned for the other node, too (deviation of 5.8).
#[test]
fn nodes_63_a_volume_that_is_promised_is_not_passed_by() {
    let text = "node n1 cpu=4 zone=a
        node n2 cpu=4 zone=b
        job j min=1
          task a cpu=3 pvc=c
          task b cpu=3 pvc=c";
    for mode in ["RWO", "RWX"] {
        let mut world = World::new(&ta(), text);
        let storage = format!(
            "{SLOW}pv v 1Gi class=slow mode={mode} version=1 at.zone=a
            pvc c 1Gi class=slow version=1 mode={mode}"
        );
        tell(&mut world, &storage);
        assert_eq!(world.cycle().only(&["prebind", "bind"]), "prebind j-a n1 c=v", "{mode}");
    }
}

#[test]
fn nodes_17_a_missing_claim_is_named_for_every_node() {
    let text = "node n3 cpu=4
                job j
                  task a cpu=1 pvc=data
                job k
                  task b cpu=1\n";
    let mut world = world(&format!("{NODES}{text}"), "");
    let cycle = world.cycle();
    let reported = "0/3 nodes are unavailable: 3 plugin VolumeZone pre-predicates failed \
                persistentvolumeclaim \"data\" not found.";
    assert!(cycle.only(&["pod"]).contains(&format!("{reported:?}")), "{}", cycle.only(&["pod"]));
    assert_eq!(cycle.only(&["bind"]).lines().count(), 1, "others are scheduled");
    tell(
        &mut world,
        "pv v 1Gi claim=data phase=Bound
                      pvc data 1Gi volume=v",
    );
    assert_eq!(world.cycle().only(&["bind"]).lines().count(), 1, "without any event of the pod");
}

#[test]
fn a_pod_that_is_gone_or_evicted_while_it_waits_takes_its_promises_along() {
    let mut world = waiting_gang();
    world.delete_pod("j-a");
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["bind"]), "");
    tell(
        &mut world,
        "pv vb 1Gi class=slow driver=d claim=cb version=3 phase=Bound
                      pvc cb 1Gi class=slow version=3 selected=n2 volume=vb",
    );
    world.cycle();
    let cluster = world.engine.cluster();
    assert!(cluster.volumes.reservations().next().is_none());
    let annotations = |effect: &Effect| matches!(effect, Effect::PreBind { .. });
    assert!(!world.cycle().effects.iter().any(annotations));
}

/// Who is evicted for `high`.
fn evicted_for(text: &str, storage: &str) -> String {
    let tiers = "conformance{preemptable} gang{jobPipelined jobStarving} \
        priority{taskOrder jobOrder preemptable jobPipelined jobStarving} predicates";
    let mut world = World::new(&conf("preempt", tiers), text);
    tell(&mut world, storage);
    world.cycle().only(&["evict"])
}

#[test]
fn a_preemptor_evicts_who_holds_what_its_volumes_need() {
    let text = "node n1 cpu=8
        job low priority=1
          task with cpu=1 pvc=single @n1 running
          task without cpu=1 @n1 running
        job high priority=100
          task p cpu=1 pvc=single\n";
    let claim = "pv v 1Gi claim=single phase=Bound\n pvc single 1Gi volume=v mode=";
    assert_eq!(evicted_for(text, &format!("{claim}RWOP")), "evict low-with preempt");
    assert_eq!(evicted_for(text, &format!("{claim}RWO")), "", "allocate can place it");
    let elsewhere =
        "pv v 1Gi claim=single phase=Bound at.zone=b\n pvc single 1Gi volume=v mode=RWOP";
    assert_eq!(evicted_for(text, elsewhere), "", "eviction does not bring the volume here");
    let limited = text.replace("pvc=single @n1", "pvc=other @n1");
    let full = "csinode n1 d=1
        pv o 1Gi driver=d claim=other phase=Bound
        pvc other 1Gi volume=o
        pv v 1Gi driver=d claim=single phase=Bound
        pvc single 1Gi volume=v";
    assert_eq!(evicted_for(&limited, full), "evict low-with preempt");
}

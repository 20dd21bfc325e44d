//! Atoms, each in the sets of the smallest cluster that has it. Specification: answers.md 20, case 27.

use std::sync::Arc;

use vc_engine::EngineOptions;
use vc_model::fixture::events_of;
use vc_model::{
    ClusterEvent, DeviceClass, DeviceObject, HostPort, LabelSelector, NodeShardRecord, PodAffinity,
    PodRecord, PodSelector, PodTerm, Protocol, Settings, Sharding, ShardingMode, SpreadConstraint,
    Unsatisfiable,
};

use crate::support::{Asked, conf};

const PLAIN: &str = "gang predicates nodeorder";

/// Runs a cycle over the objects of the text, of which `edit` changes the pods.
fn asked_with(tiers: &str, text: &str, edit: impl Fn(&mut PodRecord)) -> Asked {
    let mut events = events_of(text);
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event {
            edit(pod);
        }
    }
    let mut it = Asked::new(&conf("enqueue, allocate", tiers), "");
    it.cycle(events);
    it
}

fn asked(text: &str) -> Asked {
    asked_with(PLAIN, text, |_| {})
}

/// Selects pods with the label `app` of this value.
fn of_app(app: &str) -> LabelSelector {
    let labels = [(Arc::from("app"), Arc::from(app))].into();
    LabelSelector { match_labels: labels, ..LabelSelector::default() }
}

/// Pods with the label `app` of this value in the same zone.
fn near(app: &str) -> PodTerm {
    let namespaces = vec!["default".into()];
    let pods = PodSelector { labels: Some(of_app(app)), namespaces, ..PodSelector::default() };
    PodTerm { pods, topology_key: "zone".into() }
}

#[test]
fn ans_27_gates_and_members_alone_and_beside_others() {
    let busy = "node n cpu=4\njob k running\n task a cpu=4 @n running\n";
    for (text, expected) in [
        ("node n cpu=4\njob j\n task a cpu=1 gate=x".to_owned(), "gates"),
        (format!("{busy}job j\n task a cpu=1 gate=x"), "gates + room/cpu"),
        ("node n cpu=4\njob j min=3\n task a cpu=1 x2".to_owned(), "members"),
        ("node n cpu=4\njob j min=3\n task a cpu=1 gate=x x2".to_owned(), "gates + members"),
        (format!("{busy}job j min=2\n task a cpu=1"), "members + room/cpu"),
    ] {
        assert_eq!(asked(&text).sets("j"), [expected], "{text}");
    }
}

#[test]
fn ans_27_nodes_outside_the_hard_shard() {
    let sharding = Sharding { mode: ShardingMode::Hard, name: "s".into() };
    let options = EngineOptions::from(Settings { sharding, ..Settings::default() });
    let text = "node n cpu=4\nnode m cpu=1\njob j\n task a cpu=2";
    let mut it = Asked::with_options(options, &conf("allocate", PLAIN), text);
    let nodes_desired = vec!["m".into()];
    let shard = NodeShardRecord { name: "s".into(), nodes_desired, ..NodeShardRecord::default() };
    it.cycle(vec![ClusterEvent::NodeShardApplied(Box::new(shard))]);
    assert_eq!(it.sets("j"), ["shard"]);
}

#[test]
fn ans_27_a_port_of_the_node_that_another_pod_has() {
    let text = "node n cpu=4\njob k running\n task a cpu=1 @n running\njob j\n task a cpu=1";
    let it = asked_with(PLAIN, text, |pod| {
        let port = HostPort { port: 80, protocol: Protocol::Tcp, ip: "0.0.0.0".into() };
        pod.containers[0].host_ports.push(port);
    });
    assert_eq!(it.sets("j"), ["filter/NodePorts"]);
}

#[test]
fn ans_27_affinities_of_the_pod_itself() {
    let text = "node n cpu=4 zone=a\njob k running\n task a cpu=1 @n running label.app=web
        job j\n task a cpu=1 label.app=api";
    let [to_db, not_to_web] = [
        PodAffinity { required: vec![near("db")], ..PodAffinity::default() },
        PodAffinity { anti_required: vec![near("web")], ..PodAffinity::default() },
    ];
    for (affinity, atom) in [(to_db, "filter/PodAffinity"), (not_to_web, "filter/PodAntiAffinity")]
    {
        let it = asked_with(PLAIN, text, |pod| {
            if pod.node_name.is_none() {
                pod.pod_affinity = Some(Arc::new(affinity.clone()));
            }
        });
        assert_eq!(it.sets("j"), [atom]);
    }
}

#[test]
fn ans_27_a_zone_that_has_its_part_of_the_pods() {
    let text = "node a cpu=4 zone=a\nnode b cpu=4 zone=b taint=x:NoSchedule
        job k running\n task a cpu=1 @a running label.app=web
        job j\n task a cpu=1 label.app=web";
    let it = asked_with(PLAIN, text, |pod| {
        if pod.node_name.is_none() {
            pod.spread = vec![SpreadConstraint {
                topology_key: "zone".into(),
                when: Unsatisfiable::DoNotSchedule,
                labels: Some(of_app("web")),
                ..SpreadConstraint::default()
            }];
        }
    });
    assert_eq!(it.sets("j"), ["taint/x:NoSchedule", "filter/TopologySpread"]);
}

#[test]
fn ans_27_rules_about_volumes_that_exist() {
    let zone = "label.topology.kubernetes.io/zone";
    let bound = |node: &str, volume: &str| {
        format!(
            "node n cpu=4 {node}\npv v 1Gi claim=c phase=Bound {volume}\npvc c 1Gi volume=v
             job j\n task a cpu=1 pvc=c"
        )
    };
    let limited = "node n cpu=4\ncsinode n d=1
        pv v 1Gi driver=d claim=c phase=Bound\npvc c 1Gi volume=v
        pv w 1Gi driver=d claim=e phase=Bound\npvc e 1Gi volume=w
        job k running\n task a cpu=1 pvc=c @n running\njob j\n task a cpu=1 pvc=e";
    let disk = "node n cpu=4\njob k running\n task a cpu=1 disk=x @n running
        job j\n task a cpu=1 disk=x";
    for (text, atom) in [
        (bound(&format!("{zone}=a"), &format!("{zone}=b")), "filter/VolumeZone"),
        (bound("zone=a", "at.zone=b"), "filter/VolumeBinding"),
        (limited.to_owned(), "filter/VolumeLimits + room/attachable-volumes-csi-d"),
        (disk.to_owned(), "filter/VolumeRestrictions"),
    ] {
        assert_eq!(asked(&text).sets("j"), [atom], "{text}");
    }
}

#[test]
fn ans_27_devices_of_a_class_that_is_missing_and_of_one_without_devices() {
    let mut it = asked("node n cpu=4\nclaim c class=gpu count=1\njob j\n task a cpu=1 claim=c");
    assert_eq!(it.sets("j"), ["need/Devices"]);
    let class = DeviceClass { name: "gpu".into(), ..DeviceClass::default() };
    it.cycle(vec![ClusterEvent::DeviceApplied(Box::new(DeviceObject::Class(class)))]);
    assert_eq!(it.sets("j"), ["filter/Devices"]);
}

#[test]
fn ans_27_a_revocable_zone_for_pods_that_are_not_marked() {
    // The window is open all day.
    let tiers = "gang predicates tdm{tdm.revocable-zone.z=\"0:00-0:00\"}";
    let text = "node n cpu=4 label.volcano.sh/revocable-zone=z\njob j\n task a cpu=1";
    let it = asked_with(tiers, text, |_| {});
    assert_eq!(it.sets("j"), ["filter/RevocableZone"]);
}

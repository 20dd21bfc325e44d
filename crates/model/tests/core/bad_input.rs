//! Objects that are wrong, extreme or incomplete never harm the tables (C-20).

use vc_model::{Cluster, ClusterEvent, ObjectKey, PodRecord, Settings};
use vc_resource::Dim;

use super::support::{
    apply, apply_node, apply_pod, container, node, pod, requesting, row, running,
};

#[test]
fn a_pod_that_could_not_be_read_waits_with_the_reason() {
    let mut cluster = Cluster::new(Settings::default());
    let reason = "spec.affinity: not an object";
    apply_pod(&mut cluster, PodRecord { invalid: Some(reason.into()), ..pod("p") });
    assert_eq!(row(&cluster, "p").invalid.as_deref(), Some(reason));
    apply_pod(&mut cluster, pod("p"));
    assert_eq!(row(&cluster, "p").invalid, None);
}

#[test]
fn a_request_for_a_resource_that_cannot_be_counted_is_never_placed() {
    let mut cluster = Cluster::new(Settings::default());
    let many = (3..1024).map(|n| format!("x/{n:04}=1")).collect::<Vec<_>>().join(" ");
    apply_pod(&mut cluster, requesting(pod("many"), &many));
    apply_pod(&mut cluster, requesting(pod("one"), "x/1024=1"));
    assert_eq!(row(&cluster, "many").invalid, None);
    let expected = "not counted: x/1024: 1024 resource names were seen since the scheduler started, \
                    and it counts no more until it is restarted";
    assert_eq!(row(&cluster, "one").invalid.as_deref(), Some(expected));
}

#[test]
fn names_that_count_nowhere_are_dropped_without_harm() {
    let mut cluster = Cluster::new(Settings::default());
    apply_pod(&mut cluster, requesting(pod("p"), "requests.cpu=1 count/pods=3 cpu=1"));
    let task = row(&cluster, "p");
    assert_eq!(task.invalid, None);
    assert_eq!(cluster.classes[task.class].request.get(Dim::CPU), 1_000);
}

#[test]
fn amounts_at_the_edge_come_back_exactly() {
    let mut cluster = Cluster::new(Settings::default());
    apply_node(&mut cluster, node("n", "cpu=10 memory=9223372036854775807"));
    let before = cluster.nodes[cluster.node("n").unwrap()].clone();
    let huge = PodRecord {
        containers: vec![container("memory=9223372036854775807"), container("cpu=1E")],
        ..pod("p")
    };
    apply_pod(&mut cluster, running(huge, "n"));
    let key = ObjectKey::new("ns", "p");
    apply(&mut cluster, ClusterEvent::PodDeleted { key, uid: "p".into() });
    assert_eq!(cluster.nodes[cluster.node("n").unwrap()], before);
}

#[test]
fn events_about_what_nobody_knows_are_ignored() {
    let mut cluster = Cluster::new(Settings::default());
    let key = ObjectKey::new("ns", "x");
    let (name, uid): (std::sync::Arc<str>, std::sync::Arc<str>) = ("x".into(), "x".into());
    for event in [
        ClusterEvent::PodDeleted { key: key.clone(), uid: uid.clone() },
        ClusterEvent::PodStatusFailed { uid },
        ClusterEvent::NodeDeleted { name: name.clone() },
        ClusterEvent::PodGroupDeleted { key: key.clone() },
        ClusterEvent::PodGroupWritten {
            key: key.clone(),
            resource_version: "x".into(),
            status: Box::default(),
        },
        ClusterEvent::PodGroupFailed { key, status: Box::default() },
        ClusterEvent::QueueDeleted { name: name.clone() },
        ClusterEvent::QueueFailed { name: name.clone() },
        ClusterEvent::PriorityClassDeleted { name: name.clone() },
        ClusterEvent::NamespaceDeleted { name },
    ] {
        apply(&mut cluster, event);
    }
    assert!(cluster.tasks.is_empty() && cluster.nodes.is_empty() && cluster.jobs.is_empty());
}

#[test]
fn keys_are_ordered_as_the_text_with_the_slash() {
    let mut keys: Vec<ObjectKey> = [("a", "z"), ("a-b", "a"), ("a0", "a"), ("a", "b"), ("", "x")]
        .map(|(namespace, name)| ObjectKey::new(namespace, name))
        .to_vec();
    let mut texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
    keys.sort();
    texts.sort();
    assert_eq!(keys.iter().map(ToString::to_string).collect::<Vec<_>>(), texts);
    assert_eq!(texts[1], "a-b/a", "before the shorter namespace, whose slash is larger");
}

//! Remedies `addNodes` where pods keep others away from all nodes. Specification: answers.md 20, cases 33, 34.

use std::sync::Arc;

use vc_answers::{Change, Remedy, RemedyChange, RemedyKind};
use vc_model::fixture::events_of;
use vc_model::{
    ClusterEvent, HostPort, LabelSelector, PodAffinity, PodRecord, PodSelector, PodTerm, Protocol,
    SpreadConstraint, Unsatisfiable,
};

use crate::support::{Asked, conf};

/// Two nodes with a pod each, a tainted one without, and a gang of two that waits.
const WEB: &str = "queue default
    node n0 cpu=8 host=n0 zone=a
    node n1 cpu=8 host=n1 zone=a
    node t cpu=8 host=t zone=b taint=x:NoSchedule
    job k min=2 running
      task a cpu=1 @n0 running label.app=web
      task b cpu=1 @n1 running label.app=web
    job j min=2
      task a cpu=1 label.app=web x2";

/// Asks about the objects of a text whose pods were edited.
fn asked(text: &str, edit: fn(&mut PodRecord)) -> Asked {
    let mut events = events_of(text);
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event {
            edit(pod);
        }
    }
    let mut it = Asked::new(&conf("allocate", "gang predicates"), "");
    it.cycle(events);
    it
}

fn waits(pod: &PodRecord) -> bool {
    pod.node_name.is_none()
}

fn web() -> LabelSelector {
    let labels = [(Arc::from("app"), Arc::from("web"))].into();
    LabelSelector { match_labels: labels, ..LabelSelector::default() }
}

/// Returns an affinity that keeps away from pods of the web, by the values of a label of their nodes.
fn away_from_web(key: &str) -> Option<Arc<PodAffinity>> {
    let namespaces = vec!["default".into()];
    let pods = PodSelector { labels: Some(web()), namespaces, ..PodSelector::default() };
    let term = PodTerm { pods, topology_key: key.into() };
    Some(Arc::new(PodAffinity { anti_required: vec![term], ..PodAffinity::default() }))
}

fn add_port(pod: &mut PodRecord) {
    let port = HostPort { ip: "0.0.0.0".into(), protocol: Protocol::Tcp, port: 8080 };
    pod.containers[0].host_ports.push(port);
}

fn keep_waiting_pods_away(pod: &mut PodRecord) {
    pod.pod_affinity = if waits(pod) { away_from_web("host") } else { None };
}

fn keep_others_away(pod: &mut PodRecord) {
    pod.pod_affinity = if waits(pod) { None } else { away_from_web("host") };
}

fn keep_others_out_of_the_zone(pod: &mut PodRecord) {
    pod.pod_affinity = if waits(pod) { None } else { away_from_web("zone") };
}

/// The tainted node counts as one without a pod.
fn spread_waiting_pods(pod: &mut PodRecord) {
    if waits(pod) {
        pod.spread = vec![SpreadConstraint {
            topology_key: "host".into(),
            max_skew: 1,
            when: Unsatisfiable::DoNotSchedule,
            labels: Some(web()),
            ..SpreadConstraint::default()
        }];
    }
}

/// Returns the remedies of the job `j` that add nodes.
fn added_nodes(it: &Asked) -> Vec<Remedy> {
    let remedies = it.why("j").unblock.into_iter();
    remedies.filter(|remedy| remedy.kind == RemedyKind::AddNodes).collect()
}

/// Returns how many pods of the job `j` get a node with these changes.
fn n_placed(it: &Asked, changes: Vec<Change>) -> usize {
    let placed = it.what_if(changes).placed;
    placed.iter().filter(|row| row.pod.name.starts_with("j-")).count()
}

/// A change of a pod.
type EditPod = fn(&mut PodRecord);

#[test]
fn ans_34_pods_keep_others_away_from_all_nodes_but_empty_ones() {
    let cases: [(EditPod, &str); 4] = [
        (add_port, "2 more nodes like n0"),
        (keep_waiting_pods_away, "2 more nodes like n0"),
        // The waiting pods may share a node.
        (keep_others_away, "1 more node like n0"),
        (spread_waiting_pods, "2 more nodes like n0"),
    ];
    for (edit, expected) in cases {
        let it = asked(WEB, edit);
        let added = added_nodes(&it);
        let texts: Vec<&str> = added.iter().map(|remedy| remedy.text.as_str()).collect();
        assert_eq!(texts, [expected]);
        let change = added[0].change.clone().unwrap();
        assert_eq!(n_placed(&it, change.as_changes()), 2, "{expected}");
        let RemedyChange::AddNodes { like, count } = change else { unreachable!("adds nodes") };
        let less = RemedyChange::AddNodes { like, count: count - 1 };
        let less = if count == 1 { Vec::new() } else { less.as_changes() };
        assert_eq!(n_placed(&it, less), 0, "{expected}");
    }
}

#[test]
fn ans_34_an_empty_node_that_is_refused_as_well_is_not_tried() {
    let it = asked(WEB, keep_others_out_of_the_zone);
    assert_eq!(it.sets("j"), ["taint/x:NoSchedule", "filter/AntiAffinityOfOthers"]);
    assert!(added_nodes(&it).is_empty());
}

#[test]
fn ans_34_a_node_has_all_the_volumes_that_it_may_have() {
    let text = "queue default
        class slow provisioner=d delayed
        pv v 5Gi class=slow claim=old driver=d
        pvc old 5Gi class=slow volume=v
        pvc new 5Gi class=slow
        node n cpu=8
        csinode n d=1
        job k running
          task a cpu=1 @n running pvc=old
        job j
          task a cpu=1 pvc=new";
    let it = asked(text, |_| {});
    let added = added_nodes(&it);
    let texts: Vec<&str> = added.iter().map(|remedy| remedy.text.as_str()).collect();
    assert_eq!(texts, ["1 more node like n"], "{:?}", it.sets("j"));
    let change = added[0].change.clone().unwrap();
    assert_eq!(n_placed(&it, change.as_changes()), 1);
}

/// Each node is a shape of its own. One remedy of the user comes before the shapes.
#[test]
fn ans_34_eight_shapes_are_tried_of_which_an_empty_node_admits_the_job() {
    let mut text = "queue default\n".to_owned();
    for at in 0..12 {
        text.push_str(&format!("node n{at:02} cpu={}\njob k{at} running\n", 8 + at));
        text.push_str(&format!(" task a cpu=1 @n{at:02} running\n"));
    }
    text.push_str("job j\n task a cpu=1");
    let it = asked(&text, add_port);
    let texts: Vec<String> = added_nodes(&it).into_iter().map(|remedy| remedy.text).collect();
    let expected: Vec<String> = (0..7).map(|at| format!("1 more node like n{at:02}")).collect();
    assert_eq!(texts, expected);
    assert_eq!(it.why("j").unblock.len(), 8);
}

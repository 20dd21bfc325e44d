//! The filters for volumes as `predicates` runs them: order of the reasons, switches, promises.
//! Specification: plugins-nodes.md 2.1-2.6, 4.7, 4.9, 5.

use serde_json::json;
use vc_framework::{Plugin, SessionInfo, SessionView};
use vc_model::{Cluster, TaskStatus, fixture};

use crate::bed::plugin;

/// What PrePredicate says, else the reasons against the node.
fn says(cluster: &Cluster, plugin: &dyn Plugin, task: &str, node: &str) -> Vec<String> {
    let info = SessionInfo::default();
    let view = SessionView { cluster, info: &info };
    let (task, node) = (fixture::task(cluster, task), fixture::node(cluster, node));
    if let Err(text) = plugin.pre_predicate(view, task) {
        return vec![text];
    }
    let mut findings = Vec::new();
    plugin.predicate(view, task, node, &mut findings);
    findings.iter().map(|finding| finding.reason.text(&cluster.dims)).collect()
}

fn without(switch: &str) -> Box<dyn Plugin> {
    plugin("predicates", &[(switch, json!(false))])
}

const TEXT: &str = "node n1 cpu=4 label.topology.kubernetes.io/zone=a zone=a
    csinode n1 d=0
    pv elsewhere 1Gi driver=d claim=c phase=Bound at.zone=b label.topology.kubernetes.io/zone=b
    pv held 1Gi claim=single phase=Bound
    pvc c 1Gi volume=elsewhere
    pvc single 1Gi volume=held mode=RWOP
    pod user pvc=single @n1 running
    pod p pvc=c
    pod q pvc=missing
    pod r pvc=single
    pod e ephemeral=x";

#[test]
fn nodes_51_each_filter_can_be_switched_off() {
    let cluster = fixture::cluster(TEXT);
    let all = plugin("predicates", &[]);
    let (full, zone) = ("node(s) exceed max volume count", "node(s) had no available volume zone");
    let affinity = "node(s) didn't match PersistentVolume's node affinity";
    let in_use = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access \
                  mode already in-use by another pod";
    assert_eq!(says(&cluster, &*all, "p", "n1"), [full, zone]);
    let off = without("predicate.NodeVolumeLimitsEnable");
    assert_eq!(says(&cluster, &*off, "p", "n1"), [zone]);
    let off = without("predicate.VolumeZoneEnable");
    assert_eq!(says(&cluster, &*off, "p", "n1"), [full, affinity]);
    assert_eq!(says(&cluster, &*all, "r", "n1"), [in_use]);
    let off = without("predicate.VolumeRestrictionsEnable");
    assert!(says(&cluster, &*off, "r", "n1").is_empty());
}

#[test]
fn nodes_17_who_names_a_missing_claim() {
    let cluster = fixture::cluster(TEXT);
    let all = plugin("predicates", &[]);
    let missing = "pre-predicates failed persistentvolumeclaim \"missing\" not found";
    assert_eq!(says(&cluster, &*all, "q", "n1"), [format!("plugin VolumeZone {missing}")]);
    let off = without("predicate.VolumeZoneEnable");
    assert_eq!(says(&cluster, &*off, "q", "n1"), [format!("plugin VolumeBinding {missing}")]);
    let waits = "plugin VolumeBinding pre-predicates failed waiting for ephemeral volume \
                 controller to create the persistentvolumeclaim \"e-x\"";
    assert_eq!(says(&cluster, &*all, "e", "n1"), [waits]);
}

#[test]
fn volume_binding_is_off_as_a_whole() {
    let cluster = fixture::cluster(
        "node n1 cpu=4
         class slow provisioner=d delayed
         pvc c 1Gi class=slow
         pod p pvc=c
         pod none",
    );
    let info = SessionInfo::default();
    let view = SessionView { cluster: &cluster, info: &info };
    let node = fixture::node(&cluster, "n1");
    let promised = |plugin: &dyn Plugin, task| {
        plugin
            .reserve(view, fixture::task(&cluster, task), node, TaskStatus::Allocated)
            .expect("it fits")
    };
    let seconds = json!(7);
    let on = plugin("predicates", &[("volumebinding.bindTimeoutSeconds", seconds)]);
    let promise = promised(&*on, "p").expect("a claim to provision");
    assert_eq!((promise.provisions.len(), promise.timeout_micros), (1, 7_000_000));
    assert_eq!(promised(&*on, "none"), None);
    assert_eq!(promised(&*without("predicate.VolumeBindingEnable"), "p"), None);
}

#[test]
fn storage_scores_only_with_their_gate() {
    let text = "node n1 cpu=4 zone=a
         node n2 cpu=4 zone=b
         class local provisioner=kubernetes.io/no-provisioner delayed
         pv v5 5Gi class=local at.zone=a
         pv v10 10Gi class=local at.zone=b
         pvc c 5Gi class=local
         pod p pvc=c";
    for (gate, expected) in [(false, [0.0, 0.0]), (true, [0.0, 250.0])] {
        let mut cluster = fixture::cluster(text);
        cluster.settings.storage_capacity_scoring = gate;
        let info = SessionInfo::default();
        let view = SessionView { cluster: &cluster, info: &info };
        let weighted = plugin("predicates", &[("volumebinding.weight", json!(5))]);
        let nodes = ["n1", "n2"].map(|name| fixture::node(&cluster, name));
        let mut scores = [0.0; 2];
        let task = fixture::task(&cluster, "p");
        assert_eq!(weighted.batch_node_order(view, task, &nodes, &mut scores), Ok(()));
        assert_eq!(scores, expected);
        assert_eq!(
            weighted.as_vectorized().and_then(|plugin| plugin.columns(view, task)).is_some(),
            !gate
        );
    }
}

#[test]
fn nodes_11_a_pre_score_counts_is_left_out_or_fails() {
    let text = "node n1 cpu=4
         class local provisioner=kubernetes.io/no-provisioner delayed
         pv v10 10Gi class=local
         pvc c 5Gi class=local
         pod fits pvc=c
         pod none
         pod broken pvc=gone";
    let mut cluster = fixture::cluster(text);
    cluster.settings.storage_capacity_scoring = true;
    let info = SessionInfo::default();
    let view = SessionView { cluster: &cluster, info: &info };
    let predicates = plugin("predicates", &[]);
    let score = |pod: &str| {
        let mut scores = [0.0];
        let task = fixture::task(&cluster, pod);
        let nodes = [fixture::node(&cluster, "n1")];
        predicates.batch_node_order(view, task, &nodes, &mut scores).map(|()| scores[0])
    };
    assert_eq!(score("fits"), Ok(50.0), "half of the volume is used");
    assert_eq!(score("none"), Ok(0.0), "left out");
    let text = "pre-score plugin VolumeBinding failed: persistentvolumeclaim \"gone\" not found";
    assert_eq!(score("broken"), Err(text.to_owned()));
}

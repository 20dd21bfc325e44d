//! VolumeBinding: pre-filter and filter.

use vc_filters::volume_binding::pre_filter as binding;
use vc_model::{Code, fixture};

use crate::support::{ask, refusal, skips, unresolvable};

const AFFINITY: &str = "node(s) didn't match PersistentVolume's node affinity";
const NO_VOLUME: &str = "node(s) didn't find available persistent volumes to bind";
const NO_ROOM: &str = "node(s) did not have enough free storage";
const GONE: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

/// Two nodes in two zones, a class without and one with a provisioner.
const BASE: &str = "node n1 cpu=4 zone=a
                    node n2 cpu=4 zone=b
                    class local provisioner=kubernetes.io/no-provisioner delayed
                    class slow provisioner=d delayed
                    class fast provisioner=d
                    class odd provisioner=d modeless\n";

fn with(text: &str) -> vc_model::Cluster {
    fixture::cluster(&format!("{BASE}{text}"))
}

#[test]
fn nodes_52_nodes_53_claims_that_cannot_be_used_now() {
    let cluster = with(
        "pvc e-x 1Gi class=fast owner=default-e
         pvc foreign-x 1Gi class=fast owner=other
         pvc going 1Gi class=slow deleting
         pvc lost 1Gi volume=pv lost
         pvc half 1Gi class=slow volume=pv incomplete
         pvc odd 1Gi class=odd
         pod e ephemeral=x
         pod waits ephemeral=x
         pod foreign ephemeral=x
         pod going pvc=going
         pod lost pvc=lost
         pod missing pvc=gone pvc=going
         pod half pvc=half
         pod odd pvc=odd
         pod none",
    );
    for (pod, text) in [
        ("e", "pod has unbound immediate PersistentVolumeClaims"),
        (
            "waits",
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"waits-x\"",
        ),
        (
            "foreign",
            "PVC default/foreign-x was not created for pod default/foreign (pod is not owner)",
        ),
        ("going", "persistentvolumeclaim \"going\" is being deleted"),
        ("lost", "persistentvolumeclaim \"lost\" bound to non-existent persistentvolume \"pv\""),
        ("missing", "persistentvolumeclaim \"gone\" not found"),
        ("half", "pod has unbound immediate PersistentVolumeClaims"),
    ] {
        assert_eq!(refusal(&cluster, binding, pod), text);
    }
    let text = "VolumeBindingMode not set for StorageClass \"odd\"".to_owned();
    assert_eq!(ask(&cluster, binding, "odd", "n1"), Err((Code::Error, text)));
    assert!(skips(&cluster, binding, "none"));
}

#[test]
fn nodes_56_a_volume_meant_for_a_claim_is_the_only_one() {
    let cluster = with(
        "pv mine 9Gi class=local claim=c at.zone=a
         pv free 1Gi class=local at.zone=b
         pvc c 1Gi class=local
         pod p pvc=c",
    );
    assert_eq!(ask(&cluster, binding, "p", "n1"), Ok(()));
    assert_eq!(ask(&cluster, binding, "p", "n2"), unresolvable(NO_VOLUME));
}

#[test]
fn nodes_57_what_cannot_be_provisioned() {
    let cluster = with(
        "class in-a provisioner=d delayed topology.zone=a
         pvc c 1Gi class=local
         pvc d 1Gi class=in-a
         pvc e 1Gi class=slow
         pod p pvc=c
         pod q pvc=d
         pod r pvc=e",
    );
    for (pod, node, expected) in [
        ("p", "n1", unresolvable(NO_VOLUME)),
        ("q", "n1", Ok(())),
        ("q", "n2", unresolvable(NO_VOLUME)),
        ("r", "n1", Ok(())),
    ] {
        assert_eq!(ask(&cluster, binding, pod, node), expected, "{pod} {node}");
    }
}

#[test]
fn nodes_58_storage_that_is_too_small_for_a_claim() {
    let mut cluster = with(
        "pvc c 10Gi class=slow
         pod p pvc=c",
    );
    let fits = |cluster: &vc_model::Cluster, node| ask(cluster, binding, "p", node);
    assert_eq!(fits(&cluster, "n1"), Ok(()), "the driver is not known");
    fixture::apply(&mut cluster, "csidriver d");
    assert_eq!(fits(&cluster, "n1"), Ok(()), "it does not say how much there is");
    fixture::apply(&mut cluster, "csidriver d capacity");
    assert_eq!(fits(&cluster, "n1"), unresolvable(NO_ROOM), "nothing is known to be there");
    fixture::apply(&mut cluster, "capacity k1 5Gi class=slow at.zone=a");
    assert_eq!(fits(&cluster, "n1"), unresolvable(NO_ROOM));
    fixture::apply(&mut cluster, "capacity k2 20Gi class=slow at.zone=a");
    assert_eq!(fits(&cluster, "n1"), Ok(()));
    assert_eq!(fits(&cluster, "n2"), unresolvable(NO_ROOM));
    fixture::apply(&mut cluster, "capacity k2 20Gi class=slow at.zone=a maximum=5Gi");
    assert_eq!(fits(&cluster, "n1"), unresolvable(NO_ROOM));
    fixture::apply(&mut cluster, "capacity k3 20Gi class=slow");
    assert_eq!(fits(&cluster, "n2"), unresolvable(NO_ROOM), "no node reaches it");
}

#[test]
fn nodes_59_reasons_of_bound_claims_add_up() {
    let cluster = with(
        "pv va 1Gi claim=c phase=Bound at.zone=a
         pvc c 1Gi volume=va
         pvc d 1Gi volume=gone
         pod p pvc=c pvc=d
         pod q pvc=c",
    );
    assert_eq!(ask(&cluster, binding, "p", "n1"), unresolvable(GONE));
    assert_eq!(ask(&cluster, binding, "p", "n2"), unresolvable(&format!("{AFFINITY}, {GONE}")));
    assert_eq!(ask(&cluster, binding, "q", "n1"), Ok(()));
    assert_eq!(ask(&cluster, binding, "q", "n2"), unresolvable(AFFINITY));
}

#[test]
fn reasons_of_bound_and_delayed_claims_stand_in_their_order() {
    let cluster = with(
        "pv va 1Gi claim=c phase=Bound at.zone=a
         pvc c 1Gi volume=va
         pvc d 1Gi volume=gone
         pvc e 1Gi class=local
         pod p pvc=e pvc=c pvc=d",
    );
    let all = format!("{AFFINITY}, {NO_VOLUME}, {GONE}");
    assert_eq!(ask(&cluster, binding, "p", "n2"), unresolvable(&all));
}

#[test]
fn nodes_60_a_claim_with_a_selected_node_is_used_there() {
    let cluster = with(
        "pvc c 1Gi class=slow selected=n1
         pod p pvc=c",
    );
    assert_eq!(ask(&cluster, binding, "p", "n1"), Ok(()));
    assert_eq!(ask(&cluster, binding, "p", "n2"), unresolvable(NO_VOLUME));
}

#[test]
fn a_volume_must_be_what_the_claim_asks_for() {
    let free = "pvc c 5Gi class=local mode=RWO match.disk=ssd
         pod p pvc=c\n";
    for (volume, fits) in [
        ("pv v 5Gi class=local label.disk=ssd", true),
        ("pv v 5Gi class=local label.disk=ssd mode=RWO,RWX", true),
        ("pv v 4Gi class=local label.disk=ssd", false),
        ("pv v 5Gi class=slow label.disk=ssd", false),
        ("pv v 5Gi class=local label.disk=hdd", false),
        ("pv v 5Gi class=local label.disk=ssd mode=ROX", false),
        ("pv v 5Gi class=local label.disk=ssd deleting", false),
        ("pv v 5Gi class=local label.disk=ssd phase=Released", false),
        ("pv v 5Gi class=local label.disk=ssd claim=other", false),
    ] {
        let cluster = with(&format!("{free}{volume}"));
        let expected = if fits { Ok(()) } else { unresolvable(NO_VOLUME) };
        assert_eq!(ask(&cluster, binding, "p", "n1"), expected, "{volume}");
    }
}

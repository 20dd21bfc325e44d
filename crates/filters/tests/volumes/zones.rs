//! VolumeZone.

use vc_filters::volume_zone::pre_filter as zone;
use vc_model::fixture;

use crate::support::{ask, refusal, skips, unresolvable};

const REASON: &str = "node(s) had no available volume zone";

#[test]
fn nodes_50_the_zones_of_a_volume_are_a_set() {
    let cluster = fixture::cluster(
        "node a cpu=1 label.topology.kubernetes.io/zone=a
         node b cpu=1 label.topology.kubernetes.io/zone=b
         node c cpu=1 label.topology.kubernetes.io/zone=c
         node region cpu=1 label.topology.kubernetes.io/region=r
         node nowhere cpu=1
         pv v 1Gi claim=c phase=Bound label.topology.kubernetes.io/zone=a__b
         pv old 1Gi claim=d phase=Bound label.failure-domain.beta.kubernetes.io/zone=a
         pv free 1Gi claim=e phase=Bound
         pvc c 1Gi volume=v
         pvc d 1Gi volume=old
         pvc e 1Gi volume=free
         pod p pvc=c
         pod q pvc=d
         pod r pvc=e",
    );
    for (pod, node, expected) in [
        ("p", "a", Ok(())),
        ("p", "b", Ok(())),
        ("p", "c", unresolvable(REASON)),
        ("p", "region", unresolvable(REASON)),
        ("p", "nowhere", Ok(())),
        ("q", "a", Ok(())),
        ("q", "b", unresolvable(REASON)),
    ] {
        assert_eq!(ask(&cluster, zone, pod, node), expected, "{pod} {node}");
    }
    assert!(skips(&cluster, zone, "r"));
}

#[test]
fn claims_that_are_neither_bound_nor_delayed_fit_nowhere() {
    let cluster = fixture::cluster(
        "class slow provisioner=d delayed
         class fast provisioner=d
         class odd provisioner=d modeless
         pvc none 1Gi
         pvc lost-class 1Gi class=gone
         pvc odd 1Gi class=odd
         pvc now 1Gi class=fast
         pvc later 1Gi class=slow
         pvc bound 1Gi volume=gone
         pod p pvc=missing
         pod q pvc=none
         pod r pvc=lost-class
         pod s pvc=odd
         pod t pvc=now
         pod u pvc=bound
         pod v pvc=later
         pod w ephemeral=x",
    );
    for (pod, text) in [
        ("p", "persistentvolumeclaim \"missing\" not found"),
        ("q", "PersistentVolumeClaim had no pv name and storageClass name"),
        ("r", "storageclass.storage.k8s.io \"gone\" not found"),
        ("s", "VolumeBindingMode not set for StorageClass \"odd\""),
        ("t", "PersistentVolume had no name"),
        ("u", "persistentvolume \"gone\" not found"),
    ] {
        assert_eq!(refusal(&cluster, zone, pod), text);
    }
    assert!(skips(&cluster, zone, "v") && skips(&cluster, zone, "w"));
}

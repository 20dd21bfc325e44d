//! Bound volumes of types that were part of Kubernetes: where the kubelet leaves them to CSI, the
//! node affinity of the driver counts (plugins-nodes.md 5.3, 4.6).

use vc_filters::volume_binding::pre_filter as binding;
use vc_model::{Code, fixture};

use crate::support::{ask, unresolvable};

const AFFINITY: &str = "node(s) didn't match PersistentVolume's node affinity";

/// `new` has the labels of the driver, as only CSI knows them; `old` those of Kubernetes.
const NODES: &str =
    "node new cpu=4 label.topology.ebs.csi.aws.com/zone=a label.topology.gke.io/zone=a-b-c
     node old cpu=4 label.topology.kubernetes.io/zone=a
     csinode new migrates=kubernetes.io/aws-ebs migrates=kubernetes.io/gce-pd
     csinode old migrates=kubernetes.io/cinder
     pvc c 1Gi volume=v
     pod p pvc=c\n";

fn answers(volume: &str) -> [Result<(), (Code, String)>; 2] {
    let cluster = fixture::cluster(&format!("{NODES}pv v 1Gi claim=c phase=Bound {volume}"));
    ["new", "old"].map(|node| ask(&cluster, binding, "p", node))
}

#[test]
fn zones_have_the_label_of_the_driver_where_the_node_leaves_volumes_to_it() {
    let no = || unresolvable(AFFINITY);
    for (volume, new, old) in [
        ("ebs=vol-1 at.topology.kubernetes.io/zone=a", Ok(()), Ok(())),
        ("ebs=vol-1 at.topology.kubernetes.io/zone=b", no(), no()),
        ("ebs=vol-1 at.failure-domain.beta.kubernetes.io/zone=a", Ok(()), no()),
        // A volume without affinity is where its labels say.
        ("label.topology.kubernetes.io/zone=a ebs=vol-1", Ok(()), Ok(())),
        ("label.topology.kubernetes.io/zone=b__c ebs=vol-1", no(), Ok(())),
        ("label.topology.kubernetes.io/zone=a-b-c__a-b-d gce=disk", Ok(()), Ok(())),
        ("ebs=vol-1", Ok(()), Ok(())),
        // Those of CSI are as they are stored.
        ("driver=ebs.csi.aws.com at.topology.kubernetes.io/zone=a", no(), Ok(())),
    ] {
        assert_eq!(answers(volume), [new, old], "{volume}");
    }
}

#[test]
fn a_volume_that_its_driver_has_no_name_for_fits_where_the_kubelet_mounts_it() {
    let [new, old] = answers("ebs=aws://a/disk-1");
    let text = "could not translate pv: Invalid format for AWS volume (aws://a/disk-1)";
    assert_eq!(new, Err((Code::Error, text.to_owned())));
    assert_eq!(old, Ok(()));
    let [new, _] = answers("label.topology.kubernetes.io/zone=a-b-c__d-e-f gce=disk");
    let (code, text) = new.unwrap_err();
    assert_eq!(code, Code::Error);
    assert!(text.ends_with("are of several regions"), "{text}");
}

#[test]
fn the_csi_node_is_asked_anew() {
    let mut cluster = fixture::cluster(&format!(
        "{NODES}pv v 1Gi claim=c phase=Bound ebs=vol-1 at.failure-domain.beta.kubernetes.io/zone=a"
    ));
    assert_eq!(ask(&cluster, binding, "p", "new"), Ok(()));
    fixture::apply(&mut cluster, "csinode new migrates=kubernetes.io/gce-pd");
    assert_eq!(ask(&cluster, binding, "p", "new"), unresolvable(AFFINITY));
}

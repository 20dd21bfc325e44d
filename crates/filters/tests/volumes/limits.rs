//! NodeVolumeLimits and VolumeRestrictions.

use vc_filters::node_volume_limits::pre_filter as limits;
use vc_filters::volume_restrictions::pre_filter as restrictions;
use vc_model::{Code, fixture};

use crate::support::{ask, refusal, skips, unresolvable, unschedulable};

const FULL: &str = "node(s) exceed max volume count";
const DISK: &str = "node(s) had no available disk";
const IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access \
                      mode already in-use by another pod";

#[test]
fn nodes_47_a_volume_counts_once_per_node() {
    let cluster = fixture::cluster(
        "node n1 cpu=4
         csinode n1 d=2 other=0
         pv v1 1Gi driver=d claim=c1 phase=Bound
         pv v2 1Gi driver=d claim=c2 phase=Bound
         pv v3 1Gi driver=d claim=c3 phase=Bound
         pv nfs 1Gi claim=c4 phase=Bound
         pvc c1 1Gi volume=v1
         pvc c2 1Gi volume=v2
         pvc c3 1Gi volume=v3
         pvc c4 1Gi volume=nfs
         pod a pvc=c1 @n1 running
         pod b pvc=c2 @n1 running
         pod new pvc=c3
         pod same pvc=c2
         pod both pvc=c1 pvc=c2
         pod mixed pvc=c2 pvc=c3
         pod free pvc=c4
         pod plain",
    );
    for (pod, expected) in [
        ("new", unschedulable(FULL)),
        ("mixed", unschedulable(FULL)),
        ("same", Ok(())),
        ("both", Ok(())),
        ("free", Ok(())),
    ] {
        assert_eq!(ask(&cluster, limits, pod, "n1"), expected, "{pod}");
    }
    assert!(skips(&cluster, limits, "plain"));
}

#[test]
fn nodes_48_two_pods_share_one_unbound_claim() {
    let cluster = fixture::cluster(
        "node n1 cpu=4
         csinode n1 d=1
         class slow provisioner=d delayed
         pvc c1 1Gi class=slow
         pvc c2 1Gi class=slow
         pod a pvc=c1 @n1 running
         pod b pvc=c1
         pod c pvc=c2",
    );
    assert_eq!(ask(&cluster, limits, "b", "n1"), Ok(()));
    assert_eq!(ask(&cluster, limits, "c", "n1"), unschedulable(FULL));
}

#[test]
fn nodes_49_an_attachment_that_no_pod_uses_is_reused() {
    let cluster = fixture::cluster(
        "node n1 cpu=4
         csinode n1 d=1
         pv v1 1Gi driver=d claim=c1 phase=Bound
         pv v2 1Gi driver=d claim=c2 phase=Bound
         pvc c1 1Gi volume=v1
         pvc c2 1Gi volume=v2
         attachment a1 d node=n1 volume=v1
         pod again pvc=c1
         pod other pvc=c2",
    );
    assert_eq!(ask(&cluster, limits, "again", "n1"), Ok(()));
    assert_eq!(ask(&cluster, limits, "other", "n1"), unschedulable(FULL));
}

#[test]
fn nodes_without_limits_take_any_number_and_broken_claims_none() {
    let cluster = fixture::cluster(
        "node n1 cpu=4
         node n2 cpu=4
         csinode n1 d=1
         csinode n2 d
         class slow provisioner=d delayed
         pvc c1 1Gi class=slow
         pvc new-scratch 1Gi class=slow owner=somebody
         pod a pvc=c1 @n2 running
         pod two pvc=c1 pvc=c2
         pod new ephemeral=scratch",
    );
    let missing = "looking up PVC default/c2: persistentvolumeclaim \"c2\" not found";
    assert_eq!(ask(&cluster, limits, "two", "n1"), unresolvable(missing));
    let foreign = "PVC default/new-scratch was not created for pod default/new (pod is not owner)";
    assert_eq!(ask(&cluster, limits, "new", "n1"), Err((Code::Error, foreign.to_owned())));
    let mut cluster = cluster;
    fixture::apply(&mut cluster, "pvc c2 1Gi class=slow");
    assert_eq!(ask(&cluster, limits, "two", "n1"), unschedulable(FULL));
    assert_eq!(ask(&cluster, limits, "two", "n2"), Ok(()));
}

#[test]
fn migrated_volumes_count_for_their_driver_where_there_is_a_csi_node() {
    let cluster = fixture::cluster(
        "node n1 cpu=4
         node n2 cpu=4
         csinode n1 ebs.csi.aws.com=1
         pv v1 1Gi ebs=aws://a/vol-1 claim=c1 phase=Bound
         pv v2 1Gi ebs=aws://a/disk-2 claim=c3 phase=Bound
         class old provisioner=kubernetes.io/aws-ebs delayed
         pvc c1 1Gi volume=v1
         pvc c2 1Gi class=old
         pvc c3 1Gi volume=v2
         pod a pvc=c1 @n1 running
         pod b pvc=c1 @n2 running
         pod new pvc=c2
         pod unknown pvc=c3",
    );
    assert_eq!(ask(&cluster, limits, "new", "n1"), unschedulable(FULL));
    assert_eq!(ask(&cluster, limits, "new", "n2"), Ok(()));
    assert_eq!(ask(&cluster, limits, "unknown", "n1"), Ok(()), "its driver has no name for it");
}

#[test]
fn nodes_51_a_claim_of_one_pod_is_used_by_one_pod() {
    let cluster = fixture::cluster(
        "node n1 cpu=4
         node n2 cpu=4
         pvc c 1Gi mode=RWOP
         pvc d 1Gi mode=RWO
         pod user pvc=c pvc=d @n1 running
         pod next pvc=c
         pod beside pvc=d
         pod lost pvc=missing",
    );
    for node in ["n1", "n2"] {
        assert_eq!(ask(&cluster, restrictions, "next", node), unschedulable(IN_USE));
    }
    assert!(skips(&cluster, restrictions, "beside"));
    let text = refusal(&cluster, restrictions, "lost");
    assert_eq!(text, "persistentvolumeclaim \"missing\" not found");
    let mut cluster = cluster;
    fixture::apply(&mut cluster, "pod user pvc=c pvc=d @n1 succeeded");
    assert_eq!(ask(&cluster, restrictions, "next", "n2"), Ok(()));
}

#[test]
fn a_disk_is_on_one_node_unless_everybody_reads() {
    let cluster = fixture::cluster(
        "node n1 cpu=4
         node n2 cpu=4
         pod w disk=one @n1 running
         pod r disk=two:ro @n1 running
         pod same disk=one
         pod reads disk=two:ro
         pod writes disk=two",
    );
    for (pod, node, expected) in [
        ("same", "n1", unschedulable(DISK)),
        ("same", "n2", Ok(())),
        ("reads", "n1", Ok(())),
        ("writes", "n1", unschedulable(DISK)),
    ] {
        assert_eq!(ask(&cluster, restrictions, pod, node), expected, "{pod} {node}");
    }
}

#[test]
fn nodes_20_a_volume_of_a_victim_is_free_until_it_is_taken_back() {
    let mut cluster = fixture::cluster(
        "node n1 cpu=4
         csinode n1 d=1
         pv v1 1Gi driver=d claim=c1 phase=Bound
         pv v2 1Gi driver=d claim=c2 phase=Bound
         pvc c1 1Gi volume=v1 mode=RWOP
         pvc c2 1Gi volume=v2
         job j
           task victim pvc=c1 @n1 running
         pod new pvc=c2
         pod next pvc=c1",
    );
    let n1 = fixture::node(&cluster, "n1");
    let before = cluster.nodes[n1].clone();
    assert_eq!(ask(&cluster, limits, "new", "n1"), unschedulable(FULL));
    let victim = fixture::task(&cluster, "j/victim");
    cluster.evict_task(victim);
    assert_eq!(ask(&cluster, limits, "new", "n1"), Ok(()));
    assert_eq!(ask(&cluster, restrictions, "next", "n1"), Ok(()));
    cluster.unevict_task(victim, vc_model::TaskStatus::Running);
    assert_eq!(cluster.nodes[n1], before);
}

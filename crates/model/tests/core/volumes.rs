//! Claims in requests, limits of nodes (core.md cases 36 to 38 and 56), and what is promised.

use vc_model::{Cluster, ClusterEvent, Settings, StorageKind, fixture};

fn request(cluster: &Cluster, task: &str, name: &str) -> Option<i64> {
    assert_eq!(cluster.check(), Ok(()));
    let request = cluster.request(fixture::task(cluster, task));
    cluster.dims.get(name).filter(|&dim| request.has(dim)).map(|dim| request.get(dim))
}

#[test]
fn core_36_a_claim_is_an_attachment_and_no_best_effort() {
    let cluster = fixture::cluster(
        "pv v 1Gi driver=d/x claim=c phase=Bound
         pvc c 1Gi volume=v
         pod p pvc=c pvc=c",
    );
    assert_eq!(request(&cluster, "p", "attachable-volumes-csi-d-x"), Some(2));
    assert!(!cluster.tasks[fixture::task(&cluster, "p")].best_effort);
}

#[test]
fn core_37_what_is_not_counted() {
    let text = "class local provisioner=rancher.io/local-path delayed
         class static provisioner=kubernetes.io/no-provisioner delayed
         class ours provisioner=d delayed
         class named provisioner=x driver=d delayed
         pv nfs 1Gi claim=bound phase=Bound
         pvc a 1Gi class=local
         pvc b 1Gi
         pvc c 1Gi class=static
         pvc bound 1Gi volume=nfs
         pvc e 1Gi class=named
         pvc f 1Gi class=ours
         pod p pvc=a pvc=b pvc=c pvc=bound
         pod q pvc=e pvc=f";
    let mut cluster = fixture::cluster(text);
    assert!(cluster.tasks[fixture::task(&cluster, "p")].best_effort);
    assert_eq!(request(&cluster, "q", "attachable-volumes-csi-d"), Some(2));
    let ignored_provisioners = vec!["d".into()];
    cluster = Cluster::new(Settings { ignored_provisioners, ..Settings::default() });
    fixture::apply(&mut cluster, text);
    assert!(cluster.tasks[fixture::task(&cluster, "q")].best_effort);
}

#[test]
fn core_38_a_pod_before_its_claim_gets_the_count_with_the_claim() {
    let mut cluster = fixture::cluster(
        "node n cpu=4
         job j
           task a pvc=c
           task b pvc=c @n running",
    );
    let name = "attachable-volumes-csi-d";
    for (event, expected) in [
        ("pvc c 1Gi class=slow", None),
        ("class slow provisioner=d delayed", Some(1)),
        ("pvc c 1Gi class=slow volume=v", Some(1)),
        ("pv v 1Gi claim=c phase=Bound", None),
        ("pv v 1Gi claim=c driver=d phase=Bound", Some(1)),
        ("class slow provisioner=other delayed", Some(1)),
    ] {
        fixture::apply(&mut cluster, event);
        for task in ["j/a", "j/b"] {
            assert_eq!(request(&cluster, task, name), expected, "{event}");
        }
        let job = &cluster.jobs[fixture::job(&cluster, "j")];
        let total = cluster.dims.get(name).map_or(0, |dim| job.total_request().get(dim));
        assert_eq!(total, expected.unwrap_or(0) * 2, "{event}");
    }
    let key = vc_model::ObjectKey::new("default", "c");
    cluster.apply(ClusterEvent::StorageDeleted { kind: StorageKind::Claim, key });
    assert_eq!(request(&cluster, "j/a", name), None);
}

#[test]
fn progress_of_a_claim_changes_no_node() {
    let mut cluster = fixture::cluster(
        "node n cpu=4
         class slow provisioner=d delayed
         pvc c 1Gi class=slow version=1
         pod p pvc=c @n running",
    );
    let before = cluster.node_changes().revision();
    for event in [
        "pvc c 1Gi class=slow version=2 selected=n",
        "class slow provisioner=d delayed topology.zone=a",
        "csidriver d capacity",
        "capacity k 5Gi class=slow everywhere",
        "attachment a d node=n volume=v",
    ] {
        fixture::apply(&mut cluster, event);
        assert_eq!(
            (cluster.check(), cluster.node_changes().revision()),
            (Ok(()), before),
            "{event}"
        );
    }
    fixture::apply(&mut cluster, "pvc c 1Gi class=slow version=3 selected=n volume=v");
    assert!(before < cluster.node_changes().revision(), "it has another name now");
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn core_56_the_limits_of_a_node_are_amounts() {
    let mut cluster = fixture::cluster("csinode n x y=3\nnode n cpu=4");
    let amount = |cluster: &Cluster, driver: &str| {
        assert_eq!(cluster.check(), Ok(()));
        let node = &cluster.nodes[fixture::node(cluster, "n")];
        let dim = cluster.dims.get(&format!("attachable-volumes-csi-{driver}"))?;
        assert_eq!(node.allocatable.get(dim), node.capacity.get(dim));
        node.allocatable.has(dim).then(|| node.allocatable.get(dim))
    };
    assert_eq!(amount(&cluster, "x"), Some(2_147_483_647));
    assert_eq!(amount(&cluster, "y"), Some(3));
    fixture::apply(&mut cluster, "csinode n y=5");
    assert_eq!((amount(&cluster, "x"), amount(&cluster, "y")), (None, Some(5)));
    fixture::apply(&mut cluster, "node n cpu=8");
    assert_eq!(amount(&cluster, "y"), Some(5));
    let key = vc_model::ObjectKey::new("", "n");
    cluster.apply(ClusterEvent::StorageDeleted { kind: StorageKind::CsiNode, key });
    assert_eq!(amount(&cluster, "y"), None);
}

//! VolumeBinding: what is promised, and how that comes along. Static matching shows in it.

use vc_filters::volume_binding::{
    Progress, ShapePoint, pre_filter as binding, progress, reserve, score,
};
use vc_model::{Cluster, ClusterEvent, Reservation, TaskStatus, fixture};

use crate::support::{ask, pod, unresolvable};

const NO_VOLUME: &str = "node(s) didn't find available persistent volumes to bind";

/// What the pod is promised on the node: bindings, provisions, awaited claims.
fn promised(cluster: &Cluster, task: &str, node: &str) -> [Vec<String>; 3] {
    let reservation = reserve(pod(cluster, task), fixture::node(cluster, node));
    let Reservation { bindings, provisions, awaited, .. } =
        reservation.expect("it fits").unwrap_or_default();
    let pair = |(claim, volume): &(vc_model::ReservedClaim, std::sync::Arc<str>)| {
        format!("{}={volume}", claim.key.name)
    };
    let name = |claim: &vc_model::ReservedClaim| claim.key.name.to_string();
    [
        bindings.iter().map(pair).collect(),
        provisions.iter().map(name).collect(),
        awaited.iter().map(name).collect(),
    ]
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// Gives the task the node with what goes along.
fn place(cluster: &mut Cluster, task: &str, node: &str, status: TaskStatus) {
    let (id, node) = (fixture::task(cluster, task), fixture::node(cluster, node));
    let reservation = reserve(pod(cluster, task), node).expect("it fits");
    cluster.set_task(id, status, Some(node));
    if let Some(reservation) = reservation {
        cluster.reserve(id, reservation);
    }
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn nodes_54_the_smallest_volume_of_the_node() {
    let cluster = fixture::cluster(
        "node n1 cpu=4 zone=a
         node n2 cpu=4 zone=b
         class local provisioner=kubernetes.io/no-provisioner delayed
         pv big 10Gi class=local at.zone=a
         pv middle 6Gi class=local at.zone=a
         pv small 5Gi class=local at.zone=b
         pvc c 5Gi class=local
         pod p pvc=c",
    );
    assert_eq!(promised(&cluster, "p", "n1"), [strings(&["c=middle"]), vec![], vec![]]);
    assert_eq!(promised(&cluster, "p", "n2")[0], ["c=small"]);
}

#[test]
fn nodes_55_small_requests_choose_first() {
    let cluster = fixture::cluster(
        "node n1 cpu=4
         class local provisioner=kubernetes.io/no-provisioner delayed
         pv v10 10Gi class=local
         pv v8 8Gi class=local
         pvc big 8Gi class=local
         pvc small 5Gi class=local
         pod p pvc=big pvc=small",
    );
    assert_eq!(promised(&cluster, "p", "n1")[0], ["small=v8", "big=v10"]);
}

#[test]
fn nodes_62_two_pods_never_get_the_same_volume() {
    let mut cluster = fixture::cluster(
        "node n1 cpu=4
         class local provisioner=kubernetes.io/no-provisioner delayed
         pv v 5Gi class=local
         pvc c 5Gi class=local
         pvc d 5Gi class=local
         job j min=2
           task a pvc=c
           task b pvc=d",
    );
    let before = format!("{:?}", cluster.volumes);
    place(&mut cluster, "j/a", "n1", TaskStatus::Allocated);
    assert_eq!(ask(&cluster, binding, "j/b", "n1"), unresolvable(NO_VOLUME));
    let a = fixture::task(&cluster, "j/a");
    cluster.set_task(a, TaskStatus::Pending, None);
    assert_eq!(format!("{:?}", cluster.volumes), before, "as if nothing had been tried");
    assert_eq!(promised(&cluster, "j/b", "n1")[0], ["d=v"]);
}

#[test]
fn nodes_63_a_gang_shares_a_delayed_claim_that_many_nodes_may_use() {
    for (mode, elsewhere) in [("RWX", true), ("ROX", true), ("RWO", false)] {
        let mut cluster = fixture::cluster(&format!(
            "node n1 cpu=4
             node n2 cpu=4
             class slow provisioner=d delayed
             pvc c 5Gi class=slow mode={mode}
             job j min=2
               task a pvc=c
               task b pvc=c
             job k
               task other pvc=c"
        ));
        place(&mut cluster, "j/a", "n1", TaskStatus::Allocated);
        assert_eq!(promised(&cluster, "j/b", "n1"), [vec![], vec![], strings(&["c"])]);
        let refused = || unresolvable(NO_VOLUME);
        let expected = if elsewhere { Ok(()) } else { refused() };
        assert_eq!(ask(&cluster, binding, "j/b", "n2"), expected, "{mode}");
        assert_eq!(ask(&cluster, binding, "k/other", "n2"), refused(), "of another gang");
        assert_eq!(ask(&cluster, binding, "k/other", "n1"), Ok(()));
        let (a, n1) = (fixture::task(&cluster, "j/a"), fixture::node(&cluster, "n1"));
        cluster.set_task(a, TaskStatus::Binding, Some(n1));
        assert_eq!(ask(&cluster, binding, "j/b", "n2"), refused(), "committed");
    }
}

/// What the task has been promised: bindings, provisions, awaited claims.
fn has(cluster: &Cluster, task: &str) -> [usize; 3] {
    let reservation = cluster.volumes.reservation(fixture::task(cluster, task));
    let none = Reservation::default();
    let Reservation { bindings, provisions, awaited, .. } = reservation.unwrap_or(&none);
    [bindings.len(), provisions.len(), awaited.len()]
}

const BINDS: [usize; 3] = [1, 0, 0];
const PROVISIONS: [usize; 3] = [0, 1, 0];
const AWAITS: [usize; 3] = [0, 0, 1];

/// Two tasks on n1 share a claim, which is bound to a volume of that node or provisioned for it.
fn sharing(volume: &str) -> Cluster {
    let mut cluster = fixture::cluster(&format!(
        "node n1 cpu=4 zone=a
         node n2 cpu=4 zone=b
         class slow provisioner=d delayed
         {volume}
         pvc c 5Gi class=slow
         job j min=2
           task a pvc=c
           task b pvc=c
           task later pvc=c"
    ));
    place(&mut cluster, "j/a", "n1", TaskStatus::Pipelined);
    place(&mut cluster, "j/b", "n1", TaskStatus::Allocated);
    cluster
}

fn take_back(cluster: &mut Cluster, task: &str) {
    cluster.set_task(fixture::task(cluster, task), TaskStatus::Pending, None);
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn nodes_63_a_decision_lasts_as_long_as_somebody_relies_on_it() {
    for (volume, decides) in [("", PROVISIONS), ("pv v 5Gi class=slow at.zone=a", BINDS)] {
        let mut cluster = sharing(volume);
        assert_eq!([has(&cluster, "j/a"), has(&cluster, "j/b")], [decides, AWAITS]);
        take_back(&mut cluster, "j/a");
        assert_eq!(has(&cluster, "j/b"), decides);
        assert_eq!(ask(&cluster, binding, "j/a", "n2"), unresolvable(NO_VOLUME));
        place(&mut cluster, "j/a", "n1", TaskStatus::Pipelined);
        assert_eq!(has(&cluster, "j/a"), AWAITS);
        ["j/a", "j/b"].iter().for_each(|task| take_back(&mut cluster, task));
        assert_eq!(ask(&cluster, binding, "j/a", "n2"), Ok(()), "it is open again");
        assert_eq!(cluster.volumes.reservations().count(), 0);
    }
}

#[test]
fn nodes_63_who_is_bound_decides() {
    for (volume, decides) in [("", PROVISIONS), ("pv v 5Gi class=slow at.zone=a", BINDS)] {
        let mut cluster = sharing(volume);
        let b = fixture::task(&cluster, "j/b");
        cluster.set_task(b, TaskStatus::Binding, Some(fixture::node(&cluster, "n1")));
        cluster.hold(b, 0);
        assert_eq!([has(&cluster, "j/a"), has(&cluster, "j/b")], [AWAITS, decides]);
        // What it has decided is sent: nobody takes that over, and nobody inherits it.
        place(&mut cluster, "j/later", "n1", TaskStatus::Allocated);
        let later = fixture::task(&cluster, "j/later");
        cluster.set_task(later, TaskStatus::Binding, Some(fixture::node(&cluster, "n1")));
        cluster.hold(later, 0);
        take_back(&mut cluster, "j/a");
        assert_eq!([has(&cluster, "j/b"), has(&cluster, "j/later")], [decides, AWAITS]);
        take_back(&mut cluster, "j/b");
        assert_eq!(has(&cluster, "j/later"), AWAITS);
        let failed = Progress::Failed("provisioning failed for PVC \"c\"".to_owned());
        assert_eq!(progress(&cluster, later), failed);
    }
}

#[test]
fn nodes_63_a_volume_that_is_promised_is_not_passed_by() {
    let cluster = sharing("pv v 5Gi class=slow at.zone=a");
    assert_eq!(ask(&cluster, binding, "j/later", "n1"), Ok(()));
    assert_eq!(ask(&cluster, binding, "j/later", "n2"), unresolvable(NO_VOLUME));
}

#[test]
fn a_claim_that_a_pod_names_twice_gets_one_volume() {
    for (volume, expected) in [
        ("", [vec![], strings(&["c"]), vec![]]),
        ("pv v 5Gi class=slow", [strings(&["c=v"]), vec![], vec![]]),
    ] {
        let cluster = fixture::cluster(&format!(
            "node n1 cpu=4
             class slow provisioner=d delayed
             {volume}
             pvc c 5Gi class=slow
             pod p pvc=c pvc=c"
        ));
        assert_eq!(promised(&cluster, "p", "n1"), expected);
    }
}

/// A gang of one pod that waits on n1 for a claim `c`; the writes are stored.
fn waiting(text: &str) -> Cluster {
    let mut cluster = fixture::cluster(&format!(
        "node n1 cpu=4 zone=a
         class slow provisioner=d delayed
         class local provisioner=kubernetes.io/no-provisioner delayed
         {text}
         job j
           task a pvc=c"
    ));
    place(&mut cluster, "j/a", "n1", TaskStatus::Binding);
    let task = fixture::task(&cluster, "j/a");
    cluster.hold(task, 0);
    cluster
}

fn written(cluster: &mut Cluster, object: &str) {
    let objects = fixture::storage(object).into_iter().map(|event| match event {
        ClusterEvent::StorageApplied(object) => *object,
        other => panic!("no object: {other:?}"),
    });
    let (uid, objects) = ("default-j-a".into(), objects.collect());
    cluster.apply(ClusterEvent::VolumesWritten { uid, objects, devices: Vec::new() });
}

fn state(cluster: &Cluster) -> Progress {
    assert_eq!(cluster.check(), Ok(()));
    progress(cluster, fixture::task(cluster, "j/a"))
}

fn failed(text: &str) -> Progress {
    Progress::Failed(text.to_owned())
}

#[test]
fn nodes_61_a_provisioned_claim_is_waited_for() {
    let claim = |more: &str| format!("pvc c 1Gi class=slow selected=n1 {more}");
    let fresh = || {
        let mut cluster = waiting("pvc c 1Gi class=slow version=1");
        assert_eq!(state(&cluster), Progress::Waiting, "nothing is written");
        written(&mut cluster, &claim("version=2"));
        assert_eq!(state(&cluster), Progress::Waiting, "not provisioned yet");
        cluster
    };
    let bound = "pv v 1Gi class=slow driver=d claim=c at.zone=";
    for (then, expected) in [
        ("pvc c 1Gi class=slow version=1".to_owned(), Progress::Waiting),
        ("pvc c 1Gi class=slow version=3".to_owned(), failed("provisioning failed for PVC \"c\"")),
        (
            "pvc c 1Gi class=slow version=3 plain".to_owned(),
            failed("selectedNode annotation reset for PVC \"c\""),
        ),
        (
            "pvc c 1Gi class=slow version=3 selected=n2".to_owned(),
            failed("provisioning failed for PVC \"c\""),
        ),
        (claim("version=3 volume=v"), Progress::Waiting),
        (format!("{bound}a\n{}", claim("version=3 volume=v incomplete")), Progress::Waiting),
        (format!("{bound}a\n{}", claim("version=3 volume=v")), Progress::Ready),
        (
            format!("{bound}b\n{}", claim("version=3 volume=v")),
            failed(
                "pv \"v\" node affinity doesn't match node \"n1\": no matching NodeSelectorTerms",
            ),
        ),
    ] {
        let mut cluster = fresh();
        fixture::storage(&then).into_iter().for_each(|event| cluster.apply(event));
        assert_eq!(state(&cluster), expected, "{then}");
    }
    let mut cluster = fresh();
    cluster.apply(ClusterEvent::NodeDeleted { name: "n1".into() });
    assert_eq!(state(&cluster), failed("failed to get node \"n1\": node \"n1\" not found"));
    let mut cluster = fresh();
    let key = vc_model::ObjectKey::new("default", "c");
    cluster.apply(ClusterEvent::StorageDeleted { kind: vc_model::StorageKind::Claim, key });
    assert_eq!(state(&cluster), failed("persistentvolumeclaim \"c\" not found"));
}

#[test]
fn a_static_binding_is_waited_for() {
    let fresh = || {
        let mut cluster = waiting(
            "pv v 1Gi class=local version=1 at.zone=a
             pvc c 1Gi class=local version=1",
        );
        assert_eq!(state(&cluster), Progress::Waiting);
        written(&mut cluster, "pv v 1Gi class=local version=5 claim=c at.zone=a");
        assert_eq!(state(&cluster), Progress::Waiting);
        cluster
    };
    for (then, expected) in [
        ("pv v 1Gi class=local version=6", failed("ClaimRef got reset for pv \"v\"")),
        ("pvc c 1Gi class=local version=7 volume=v", Progress::Ready),
        (
            "pv v 1Gi class=local version=6 claim=c at.zone=b",
            failed(
                "pv \"v\" node affinity doesn't match node \"n1\": no matching NodeSelectorTerms",
            ),
        ),
    ] {
        let mut cluster = fresh();
        fixture::storage(then).into_iter().for_each(|event| cluster.apply(event));
        assert_eq!(state(&cluster), expected, "{then}");
    }
}

#[test]
fn an_answer_never_undoes_what_the_watch_told_after_it() {
    let mut cluster = waiting("pvc c 1Gi class=slow version=1");
    fixture::apply(&mut cluster, "pvc c 1Gi class=slow version=9 selected=n1 volume=v");
    written(&mut cluster, "pvc c 1Gi class=slow version=2 selected=n1");
    let key = vc_model::ObjectKey::new("default", "c");
    assert_eq!(&*cluster.volumes.claim(&key).expect("the claim").resource_version, "9");
}

#[test]
fn scores_follow_the_curve() {
    let cluster = fixture::cluster(
        "node n1 cpu=4 zone=a
         node n2 cpu=4 zone=b
         node n3 cpu=4 zone=c
         class local provisioner=kubernetes.io/no-provisioner delayed
         class slow provisioner=d delayed
         csidriver d capacity
         capacity ka 10Gi class=slow at.zone=a
         capacity kb 40Gi class=slow at.zone=b
         pv v5 5Gi class=local at.zone=a
         pv v10 10Gi class=local at.zone=b
         pvc c 5Gi class=local
         pvc d 10Gi class=slow
         pod p pvc=c
         pod q pvc=d
         pod none",
    );
    let point = |utilization, score| ShapePoint { utilization, score };
    let shape = [point(0, 10), point(100, 0)];
    let nodes = ["n1", "n2", "n3"].map(|name| fixture::node(&cluster, name));
    let scores = |task| score(pod(&cluster, task), &nodes, &shape);
    assert_eq!(scores("p"), Ok(Some(vec![0, 50, 0])));
    assert_eq!(scores("q"), Ok(Some(vec![0, 75, 0])));
    assert_eq!(scores("none"), Ok(None));
    let bend = [point(20, 2), point(60, 10), point(80, 5)];
    let bent = score(pod(&cluster, "p"), &nodes, &bend);
    assert_eq!(bent, Ok(Some(vec![50, 80, 0])));
}

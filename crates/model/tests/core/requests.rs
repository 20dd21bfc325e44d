//! Requests of pods: core.md 3.5, plugins-nodes.md 7.1.

use proptest::prelude::*;
use vc_model::fixture::parts::{fields, toleration};
use vc_model::{
    Cluster, ClusterEvent, ContainerRecord, InPlace, NonZero, ObjectKey, PodRecord, RequestGates,
    Settings, TolerationOperator, non_zero_request, pod_request,
};
use vc_resource::{Dim, Dims};

use super::support::{container, labels, list, pod};

const GATES: RequestGates = RequestGates { in_place_resize: true, pod_level_resources: true };

fn sidecar(requests: &str) -> ContainerRecord {
    ContainerRecord { restartable: true, ..container(requests) }
}

/// Cpu in millicores, memory in bytes, pods.
fn amounts_with(record: &PodRecord, gates: RequestGates) -> (i64, i64, i64) {
    let request = pod_request(record, gates, &mut Dims::new());
    (request.get(Dim::CPU), request.get(Dim::MEMORY), request.get(Dim::PODS))
}

fn amounts(record: &PodRecord) -> (i64, i64, i64) {
    amounts_with(record, GATES)
}

fn cpu(containers: &[&str], init: Vec<ContainerRecord>) -> i64 {
    let containers = containers.iter().map(|requests| container(requests)).collect();
    amounts(&PodRecord { containers, init_containers: init, ..pod("p") }).0
}

#[test]
fn core_31_init_containers_run_one_by_one_before_the_others() {
    let record = PodRecord {
        containers: vec![container("cpu=1 memory=1G"), container("cpu=2 memory=1G")],
        init_containers: vec![container("cpu=2 memory=5G"), container("cpu=2 memory=1G")],
        ..pod("p")
    };
    assert_eq!(amounts(&record), (3_000, 5_000_000_000, 1));
}

#[test]
fn core_32_sidecars_run_beside_what_starts_after_them() {
    let before = vec![container("cpu=5"), sidecar("cpu=1"), sidecar("cpu=2"), sidecar("cpu=3")];
    assert_eq!(cpu(&["cpu=1"], before), 7_000);
    let between = vec![
        container("cpu=5"),
        sidecar("cpu=1"),
        sidecar("cpu=2"),
        container("cpu=5"),
        sidecar("cpu=3"),
    ];
    assert_eq!(cpu(&["cpu=1"], between), 8_000);
}

#[test]
fn core_33_pod_level_replaces_and_overhead_is_added() {
    let containers = PodRecord {
        containers: vec![container("cpu=100")],
        init_containers: vec![sidecar("cpu=10"), container("cpu=200")],
        ..pod("p")
    };
    assert_eq!(amounts(&containers).0, 210_000);
    let whole = PodRecord { pod_requests: list("cpu=250"), ..containers };
    assert_eq!(amounts(&whole).0, 250_000);
    let with_overhead = PodRecord { overhead: list("cpu=250"), ..whole };
    assert_eq!(amounts(&with_overhead), (500_000, 0, 1));
}

#[test]
fn core_33_pod_level_replaces_only_cpu_memory_and_huge_pages() {
    let record = PodRecord {
        containers: vec![container("cpu=1 nvidia.com/gpu=1")],
        pod_requests: list("memory=1G hugepages-2Mi=4Mi nvidia.com/gpu=8"),
        ..pod("p")
    };
    let mut dims = Dims::new();
    let request = pod_request(&record, GATES, &mut dims);
    let amount = |name: &str| request.get(dims.get(name).unwrap());
    assert_eq!((amount("cpu"), amount("memory")), (1_000, 1_000_000_000));
    assert_eq!((amount("nvidia.com/gpu"), amount("hugepages-2Mi")), (1_000, 4_194_304_000));
}

/// Limits of cpu in millicores and of memory in bytes, of the pod as a task.
fn limits(record: PodRecord, gates: RequestGates) -> (i64, i64) {
    let mut cluster = Cluster::new(Settings { gates, ..Settings::default() });
    cluster.apply(ClusterEvent::PodApplied(Box::new(record)));
    let task = cluster.tasks.ids().next().expect("the pod");
    let limits = cluster.class(task).limits;
    (limits.cpu_milli, limits.memory_bytes)
}

#[test]
fn nodes_106_limits_are_summed_like_requests() {
    let limited = |limits: &str| ContainerRecord { limits: list(limits), ..container("cpu=1") };
    let start = ContainerRecord { limits: list("cpu=5"), ..container("") };
    let side = ContainerRecord { limits: list("cpu=1 memory=1Mi"), ..sidecar("") };
    let record = PodRecord {
        scheduler_name: "volcano".into(),
        containers: vec![limited("cpu=2"), limited("cpu=1"), limited("")],
        init_containers: vec![side, start],
        ..pod("p")
    };
    assert_eq!(limits(record.clone(), GATES), (6_000, 1 << 20));
    // The overhead counts where there is a limit.
    let overhead = list("cpu=250m memory=1Mi");
    let unlimited = PodRecord { containers: vec![limited("memory=1Mi")], overhead, ..pod("p") };
    let unlimited = PodRecord { scheduler_name: "volcano".into(), ..unlimited };
    assert_eq!(limits(unlimited, GATES), (0, 2 << 20));
    let whole = PodRecord { pod_limits: list("cpu=9 nvidia.com/gpu=1"), ..record };
    assert_eq!(limits(whole.clone(), GATES), (9_000, 1 << 20));
    let gates = RequestGates { pod_level_resources: false, ..GATES };
    assert_eq!(limits(whole, gates), (6_000, 1 << 20));
}

#[test]
fn core_34_pod_level_is_ignored_by_a_server_without_it() {
    let record = PodRecord {
        containers: vec![container("cpu=1")],
        pod_requests: list("cpu=250"),
        ..pod("p")
    };
    let gates = RequestGates { pod_level_resources: false, ..GATES };
    assert_eq!(amounts_with(&record, gates).0, 1_000);
}

#[test]
fn core_35_a_resized_container_counts_the_larger_of_wanted_and_held() {
    let in_place = InPlace { requests: list("cpu=1"), allocated: list("cpu=1500m") };
    let resized = ContainerRecord { in_place: Some(in_place), ..container("cpu=2") };
    let record = PodRecord { containers: vec![resized.clone()], ..pod("p") };
    assert_eq!(amounts(&record).0, 2_000);
    let infeasible = PodRecord { resize_infeasible: true, ..record };
    assert_eq!(amounts(&infeasible).0, 1_500);
    let gates = RequestGates { in_place_resize: false, ..GATES };
    assert_eq!(amounts_with(&infeasible, gates).0, 2_000);
    // An ordinary init container cannot be resized, a restartable one can.
    let init = PodRecord { init_containers: vec![resized.clone()], ..pod("p") };
    let infeasible_init = PodRecord { resize_infeasible: true, ..init };
    assert_eq!(amounts(&infeasible_init).0, 2_000);
    let sidecar = ContainerRecord { restartable: true, ..resized };
    let infeasible_sidecar = PodRecord { init_containers: vec![sidecar], ..infeasible_init };
    assert_eq!(amounts(&infeasible_sidecar).0, 1_500);
}

#[test]
fn scorers_count_a_default_for_containers_that_request_nothing() {
    let of = |containers: Vec<ContainerRecord>, init_containers: Vec<ContainerRecord>| {
        let record = PodRecord { containers, init_containers, ..pod("p") };
        non_zero_request(&record, GATES, &mut Dims::new())
    };
    let amounts =
        |cpu_milli, memory_mib: i64| NonZero { cpu_milli, memory_bytes: memory_mib << 20 };
    assert_eq!(of(vec![container("")], vec![]), amounts(100, 200));
    assert_eq!(of(vec![container("cpu=0 memory=0")], vec![]), amounts(0, 0), "explicit");
    assert_eq!(of(vec![container("cpu=1"), container("memory=1Mi")], vec![]), amounts(1_100, 201));
    assert_eq!(of(vec![container("cpu=1")], vec![container("memory=1Gi")]), amounts(1_000, 1_024));
    assert_eq!(of(vec![container("cpu=1")], vec![sidecar("")]), amounts(1_100, 400));
}

/// Every part of a pod that a shape is made from, in one of a few versions.
fn dealt() -> impl Strategy<Value = PodRecord> {
    let requests =
        prop::sample::select(vec!["", "cpu=1", "cpu=2 memory=1Gi", "x/a=1 cpu=1", "x/b=2"]);
    let of = |few: usize| prop::collection::vec(requests.clone(), 0..few);
    (of(3), of(2), requests.clone(), requests.clone(), (0..2_u8, 0..2_u8, 0..3_u8, 0..7_u8))
        .prop_map(|(containers, init, overhead, whole, (resized, image, selector, seldom))| {
            let made = |requests: &&str| ContainerRecord {
                image: ["a", "b:1"][usize::from(image)].into(),
                restartable: seldom == 1,
                in_place: (seldom == 2)
                    .then(|| InPlace { requests: list("cpu=3"), allocated: list("cpu=1") }),
                ..container(requests)
            };
            let mut record = PodRecord {
                containers: containers.iter().map(made).collect(),
                init_containers: init.iter().map(made).collect(),
                overhead: list(overhead),
                pod_requests: list(if seldom == 3 { whole } else { "" }),
                resize_infeasible: resized == 1,
                node_selector: [None, Some(labels("")), Some(labels("a=b"))][usize::from(selector)]
                    .clone(),
                ..pod("p")
            };
            if seldom == 4 {
                record.tolerations = vec![toleration("a", TolerationOperator::Exists, "", None)];
            }
            if seldom == 5 {
                record.node_affinity.required = Some(vec![fields(vec![])]);
            }
            if seldom == 6 {
                record.resource_strategy = Some(Default::default());
            }
            record
        })
}

proptest! {
    #[test]
    fn shape_of_a_row(kinds in prop::collection::vec((dealt(), 1..4_usize), 1..8)) {
        let row = kinds.iter().flat_map(|(record, n)| std::iter::repeat_n(record, *n));
        let mut together = Cluster::default();
        for (number, record) in row.enumerate() {
            let name = format!("p-{number}");
            let record = PodRecord {
                key: ObjectKey::new("ns", &name),
                uid: name.as_str().into(),
                ..record.clone()
            };
            // The numbers of dimensions come from what came before.
            let mut alone = Cluster::default();
            alone.dims = together.dims.clone();
            for cluster in [&mut together, &mut alone] {
                cluster.apply(ClusterEvent::PodApplied(Box::new(record.clone())));
            }
            let seen = |cluster: &Cluster| {
                let task = cluster.task(&name).expect("the pod is there");
                (cluster.class(task).clone(), cluster.tasks[task].invalid.clone())
            };
            prop_assert_eq!(seen(&together), seen(&alone));
        }
    }
}

//! What flags and feature gates switch off is not asked for, what they name is used. Specification:
//! core.md 1.1, 1.3, 4.1.

use serde_json::Value;
use vc_scheduler::meter::State;
use vc_sim::serve::QUEUES;

use crate::cluster::{Cluster, is, no_fault, pod};

const CSI: [&str; 2] =
    ["/apis/storage.k8s.io/v1/csidrivers", "/apis/storage.k8s.io/v1/csistoragecapacities"];
const PRIORITIES: [&str; 1] = ["/apis/scheduling.k8s.io/v1/priorityclasses"];
const CONTROLLERS: [&str; 3] =
    ["/api/v1/replicationcontrollers", "/apis/apps/v1/replicasets", "/apis/apps/v1/statefulsets"];
const NUMA_TOPOLOGIES: [&str; 1] = ["/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies"];
const BUDGETS: [&str; 1] = ["/apis/policy/v1/poddisruptionbudgets"];
const DEVICES: [&str; 3] = [
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
];
const SHARDS: [&str; 1] = ["/apis/shard.volcano.sh/v1alpha1/nodeshards"];

/// Requests of a scheduler with these arguments until its cycles run.
async fn asked(args: &[&str]) -> Vec<String> {
    let cluster = Cluster::start(Vec::new(), args, no_fault).await;
    cluster.replica.reaches(State::Leading { synced: true }).await;
    let log = cluster.replica.log.lock().unwrap().clone();
    cluster.stop().await;
    log
}

#[tokio::test]
async fn core_4_1_kinds_that_are_switched_off_are_not_asked_for() {
    let cases: [(&[&str], &[&str]); 8] = [
        (&["--csi-storage=false"], &CSI),
        (&["--priority-class=false"], &PRIORITIES),
        (&["--feature-gates=PriorityClass=false"], &PRIORITIES),
        (&["--feature-gates=WorkLoadSupport=false"], &CONTROLLERS),
        (&["--feature-gates=PodDisruptionBudgetsSupport=false"], &BUDGETS),
        (&["--feature-gates=ResourceTopology=false"], &NUMA_TOPOLOGIES),
        (&["--feature-gates=DynamicResourceAllocation=false"], &DEVICES),
        (&["--scheduler-sharding-mode=none"], &SHARDS),
    ];
    let with_all = asked(&["--scheduler-sharding-mode=soft"]).await;
    for (args, paths) in cases {
        let without = asked(args).await;
        for path in paths {
            let is_path = |line: &String| *line == format!("GET {path}");
            assert!(with_all.iter().any(is_path), "{path}\n{with_all:#?}");
            assert!(!without.iter().any(is_path), "{args:?}: {path}");
        }
    }
}

#[tokio::test]
async fn the_default_queue_is_made_and_gets_what_names_none() {
    let mut pod = pod("alone", "", "1");
    pod["metadata"]["annotations"] = Value::Null;
    let args = ["--default-queue=ours", "--bare-pods=schedule"];
    let cluster = Cluster::start(vec![pod], &args, no_fault).await;
    cluster.bound("alone").await;
    let is_used = |queue: &Value| is(queue, "ours") && queue["status"]["allocated"]["cpu"] == "1";
    cluster.until(&QUEUES, is_used).await;
    cluster.stop().await;
}

//! What is off unless a flag asks for it: the queue admission gate and node shards. Specification:
//! core.md 4.10, 7.8.

use serde_json::{Value, json};

use crate::api::until;
use crate::cluster::Cluster;
use crate::objects::{gang, node_of};
use crate::process::Scheduler;

const GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";
const SOON: [&str; 2] = ["--leader-elect=false", "--schedule-period=100ms"];
pub(crate) const WITH_GATES: &str = "--feature-gates=SchedulingGatesQueueAdmission=true";
pub(crate) const WITH_SHARDS: &str = "--scheduler-sharding-mode=hard";
const OUR_SHARD: &str = "/apis/shard.volcano.sh/v1alpha1/nodeshards/volcano";

/// A gang of one pod that waits for the scheduler to take its gate away.
pub(crate) async fn submit_gated(cluster: &Cluster, name: &str, more: &[&str]) {
    let mut objects = gang(cluster.namespace, name, 1, "100m");
    let gates = [&[GATE], more].concat().into_iter().map(|gate| json!({"name": gate}));
    objects[1]["spec"]["schedulingGates"] = gates.collect();
    objects[1]["metadata"]["annotations"][GATE] = json!("true");
    for object in objects {
        cluster.api.create(&object).await.unwrap();
    }
}

/// The nodes that our scheduler, or another, shall have.
pub(crate) async fn make_shard(cluster: &Cluster, name: &str, nodes: &[&str]) {
    let shard = json!({"apiVersion": "shard.volcano.sh/v1alpha1", "kind": "NodeShard",
        "metadata": {"name": name}, "spec": {"nodesDesired": nodes}});
    cluster.api.create(&shard).await.unwrap();
}

fn gates(pod: &Value) -> usize {
    pod["spec"]["schedulingGates"].as_array().map_or(0, Vec::len)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_90_only_a_pod_without_other_gates_is_let_in() {
    let cluster = Cluster::take("gates", 1).await;
    submit_gated(&cluster, "mine", &[]).await;
    submit_gated(&cluster, "others", &["example.com/budget"]).await;
    let args = [&SOON[..], &[WITH_GATES]].concat();
    let _scheduler = Scheduler::start_with(&cluster, &args).await;
    let pods = cluster.running("mine", 1).await;
    assert_eq!(gates(&pods[0]), 0);
    cluster.audit.bound_once(["mine-0"]).await;
    let waits = &cluster.pods("others").await[0];
    assert_eq!((gates(waits), node_of(waits)), (2, ""));
    assert_eq!(waits["status"]["conditions"][0]["reason"], "SchedulingGated");
    let touched = |asked: &crate::audit::Asked| asked.is_write() && asked.name == "others-0";
    assert_eq!(cluster.audit.count(touched), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_95_a_shard_holds_its_pods_and_says_what_it_uses() {
    let cluster = Cluster::take("shards", 3).await;
    make_shard(&cluster, "other", &["node-1"]).await;
    let in_use = json!({"status": {"nodesInUse": ["node-1"]}});
    let other = "/apis/shard.volcano.sh/v1alpha1/nodeshards/other/status";
    cluster.api.merge(other, &in_use).await.unwrap();
    make_shard(&cluster, "volcano", &["node-1", "node-2"]).await;
    let args = [&SOON[..], &[WITH_SHARDS]].concat();
    let _scheduler = Scheduler::start_with(&cluster, &args).await;
    cluster.submit("inside", 2, "3").await;
    for pod in cluster.running("inside", 2).await {
        assert_eq!(node_of(&pod), "node-2");
    }
    until("the status of the shard", async || {
        let status = cluster.api.get(OUR_SHARD).await.unwrap()["status"].take();
        let is_whole = status["nodesInUse"] == json!(["node-2"]);
        (is_whole && status["nodesToAdd"] == json!(["node-1"])).then_some(())
    })
    .await;
}

//! Evictions from end to end, with victims that take their time: the room that was made is kept for
//! whom it was made, across a restart of the scheduler too, and nobody else has to go. Specification:
//! actions.md 2.11, 6, 7 (A16), issue 4947.

use serde_json::{Value, json};

use crate::api::{text, until};
use crate::audit::Asked;
use crate::cluster::Cluster;
use crate::evictions::{preempting, submit_important};
use crate::kubelet::STAYS;
use crate::objects::{gang, name, node_of, refusal};
use crate::process::{Scheduler, shipped_conf};

const SOON: [&str; 2] = ["--leader-elect=false", "--schedule-period=100ms"];

/// Pods whose kubelet does not end them before it is told; one of them is enough for the gang.
async fn submit_stubborn(cluster: &Cluster, name: &str, queue: &str, n_pods: u32, cpu: &str) {
    let mut objects = gang(cluster.namespace, name, n_pods, cpu);
    objects[0]["spec"] = json!({"minMember": 1, "queue": queue});
    for object in &mut objects {
        object["metadata"]["annotations"][STAYS] = json!("true");
        cluster.api.create(object).await.unwrap();
    }
}

/// Its kubelet ends it now.
async fn end(cluster: &Cluster, pod: &str) {
    let change = json!({"metadata": {"annotations": {STAYS: null}}});
    let path = cluster.path(&format!("pods/{pod}"));
    cluster.api.merge(&path, &change).await.unwrap();
    until("the victim is gone", async || cluster.api.get(&path).await.err()).await;
}

/// The pods that the scheduler has deleted.
fn victims(cluster: &Cluster) -> Vec<String> {
    let ours = |asked: &Asked| asked.is("delete", "pods") && asked.namespace == cluster.namespace;
    cluster.audit.all().into_iter().filter(ours).map(|asked| asked.name).collect()
}

async fn first_victim(cluster: &Cluster) -> String {
    until("a victim", async || victims(cluster).pop()).await
}

/// Pods that request nothing are placed whatever waits: each proves more cycles.
async fn some_cycles(cluster: &Cluster, round: &str) {
    for index in 0..4 {
        let tick = format!("tick-{round}-{index}");
        cluster.submit(&tick, 1, "0").await;
        cluster.running(&tick, 1).await;
    }
}

fn nominated(pod: &Value) -> &str {
    text(&pod["status"]["nominatedNodeName"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cycle_no_second_eviction_while_the_victim_stays_not_even_after_a_restart() {
    let cluster = Cluster::take("stubborn", 1).await;
    let conf = preempting(&cluster);
    let args = [&SOON[..], &[conf.as_str()]].concat();
    let scheduler = Scheduler::start_with(&cluster, &args).await;
    submit_stubborn(&cluster, "low", "default", 2, "4").await;
    cluster.running("low", 2).await;
    submit_important(&cluster, "high", "4").await;
    let victim = first_victim(&cluster).await;
    let waits = cluster.pod("high-0", |pod| nominated(pod) == "node-0").await;
    assert_eq!(refusal(&waits).unwrap().0, "Unschedulable");
    some_cycles(&cluster, "first").await;
    assert_eq!(victims(&cluster), [victim.as_str()]);

    scheduler.kill().await;
    let _second = Scheduler::start_with(&cluster, &args).await;
    some_cycles(&cluster, "second").await;
    assert_eq!(victims(&cluster), [victim.as_str()]);
    let waits = cluster.pod("high-0", |pod| node_of(pod).is_empty()).await;
    assert_eq!(nominated(&waits), "node-0");

    end(&cluster, &victim).await;
    cluster.running("high", 1).await;
    assert_eq!(victims(&cluster), [victim.as_str()]);
    cluster.audit.bound_once(["high-0"]).await;
}

/// A gang in queue b takes back what b deserves; the controller re-creates the victim at once, and
/// that pod waits: one eviction in total.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cycle_claim_a_recreated_victim_does_not_take_the_room_back() {
    let cluster = Cluster::take("reclaiming", 1).await;
    for queue in ["a", "b"] {
        let object = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": queue}, "spec": {"weight": 1, "reclaimable": true}});
        cluster.api.create(&object).await.unwrap();
    }
    let conf = cluster.dir().join("reclaiming.conf");
    let text = shipped_conf().replace("allocate, backfill", "allocate, reclaim, backfill");
    std::fs::write(&conf, text).unwrap();
    let conf = format!("--scheduler-conf={}", conf.display());
    let args = [&SOON[..], &[conf.as_str()]].concat();
    let _scheduler = Scheduler::start_with(&cluster, &args).await;
    submit_stubborn(&cluster, "rich", "a", 2, "4").await;
    cluster.running("rich", 2).await;
    let mut poor = gang(cluster.namespace, "poor", 1, "4");
    poor[0]["spec"]["queue"] = json!("b");
    for object in &poor {
        cluster.api.create(object).await.unwrap();
    }
    let victim = first_victim(&cluster).await;
    some_cycles(&cluster, "stays").await;
    end(&cluster, &victim).await;
    let mut again = gang(cluster.namespace, "rich", 1, "4").remove(1);
    again["metadata"]["name"] = json!(victim);
    cluster.api.create(&again).await.unwrap();
    cluster.running("poor", 1).await;
    some_cycles(&cluster, "after").await;
    assert_eq!(victims(&cluster), [victim.as_str()]);
    let pods = cluster.pods("rich").await;
    let waits: Vec<&str> = pods.iter().filter(|pod| node_of(pod).is_empty()).map(name).collect();
    assert_eq!(waits, [victim.as_str()]);
    for (queue, cpu) in [("a", "4"), ("b", "4")] {
        cluster.allocated(queue, cpu).await;
    }
}

/// With the plugin pdb a budget without room protects the pods that would go first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_without_room_protects_its_pods() {
    let cluster = Cluster::take("budgets", 1).await;
    let conf = cluster.dir().join("budgets.conf");
    let rules = shipped_conf()
        .replace("allocate, backfill", "allocate, preempt, backfill")
        .replace("  - name: conformance\n", "  - name: conformance\n  - name: pdb\n");
    assert!(rules.contains("- name: pdb"), "{rules}");
    std::fs::write(&conf, rules).unwrap();
    let conf = format!("--scheduler-conf={}", conf.display());
    let args = [&SOON[..], &[conf.as_str()]].concat();
    let _scheduler = Scheduler::start_with(&cluster, &args).await;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept", "namespace": cluster.namespace},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"gang": "kept"}}}});
    cluster.api.create(&budget).await.unwrap();
    let path = "/apis/policy/v1/namespaces/budgets/poddisruptionbudgets/kept/status";
    let status = json!({"status": {"disruptionsAllowed": 0, "currentHealthy": 1,
        "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1}});
    cluster.api.merge(path, &status).await.unwrap();

    let old = lonely(&cluster, "free").await;
    // The younger one is the first to go, by whole seconds.
    until("the next second", async || {
        let probe = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"generateName": "now-", "namespace": cluster.namespace}});
        let now = cluster.api.create(&probe).await.unwrap();
        (text(&old) < text(&now["metadata"]["creationTimestamp"])).then_some(())
    })
    .await;
    lonely(&cluster, "kept").await;
    submit_important(&cluster, "high", "4").await;
    cluster.running("high", 1).await;
    assert_eq!(victims(&cluster), ["free-0"]);
}

/// Runs a gang of one pod that it can do without; its creation.
async fn lonely(cluster: &Cluster, name: &str) -> Value {
    let mut objects = gang(cluster.namespace, name, 1, "4");
    objects[0]["spec"]["minMember"] = json!(0);
    let group = cluster.api.create(&objects[0]).await.unwrap();
    cluster.api.create(&objects[1]).await.unwrap();
    cluster.running(name, 1).await;
    group["metadata"]["creationTimestamp"].clone()
}

//! A gang of higher priority takes the room of another. Specification: core.md 7.2 (C-24).

use serde_json::json;

use crate::api::{text, until};
use crate::audit::Asked;
use crate::cluster::Cluster;
use crate::objects::{LABEL, condition, gang, name};
use crate::process::{Scheduler, shipped_conf};

/// The shipped configuration and the action preempt, as an argument.
pub(crate) fn preempting(cluster: &Cluster) -> String {
    let conf = cluster.dir().join(format!("{}.conf", cluster.namespace));
    let text = shipped_conf().replace("allocate, backfill", "allocate, preempt, backfill");
    assert!(text.contains("preempt"));
    std::fs::write(&conf, text).unwrap();
    format!("--scheduler-conf={}", conf.display())
}

/// A gang of one pod that goes before those of [`Cluster::submit`].
pub(crate) async fn submit_important(cluster: &Cluster, name: &str, cpu: &str) {
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "important", "labels": {LABEL: ""}}, "value": 1000});
    cluster.api.create(&class).await.unwrap();
    for mut object in gang(cluster.namespace, name, 1, cpu) {
        object["spec"]["priorityClassName"] = json!("important");
        // The admission of pods learns of a class a little later.
        until("the priority class", async || cluster.api.create(&object).await.ok()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_81_a_victim_is_marked_deleted_and_told() {
    let cluster = Cluster::take("evictions", 1).await;
    let conf = preempting(&cluster);
    let args = ["--leader-elect=false", "--schedule-period=100ms", conf.as_str()];
    let _scheduler = Scheduler::start_with(&cluster, &args).await;
    let mut low = gang(cluster.namespace, "low", 2, "4");
    low[0]["spec"]["minMember"] = json!(1);
    for object in &low {
        cluster.api.create(object).await.unwrap();
    }
    let pods = cluster.running("low", 2).await;
    submit_important(&cluster, "high", "4").await;
    cluster.running("high", 1).await;

    let deleted = |asked: &Asked| asked.is("delete", "pods") && asked.is_done();
    cluster.audit.comes_to(1, deleted).await;
    let all = cluster.audit.all();
    let [delete] = &all.iter().filter(|asked| deleted(asked)).collect::<Vec<_>>()[..] else {
        panic!("exactly one pod makes room")
    };
    let victim = pods.iter().find(|pod| name(pod) == delete.name).unwrap();
    assert_eq!(delete.body["preconditions"]["uid"], victim["metadata"]["uid"]);
    let marked = |asked: &&Asked| asked.is("update", "pods/status") && asked.name == delete.name;
    let mark = &all.iter().find(marked).unwrap().body;
    assert_eq!(condition(mark, "Ready").unwrap()["reason"], "Evict");
    let target = condition(mark, "DisruptionTarget").unwrap();
    assert_eq!(target["reason"], "PreemptionByScheduler");
    assert!(text(&target["message"]).starts_with("volcano: preempting"), "{target}");
    let reported = "Pod is evicted, because of preempt: for PodGroup";
    let reported = format!("{reported} {}/high", cluster.namespace);
    cluster.event(&delete.name, ("Warning", "Evict", &reported)).await;
    cluster.event("low", ("Normal", "Evict", "preempt")).await;
}

//! What pods, groups, queues and events say after the scheduler has done its work, and how few
//! writes that takes.

use serde_json::{Value, json};

use crate::api::{text, until};
use crate::audit::Asked;
use crate::cluster::{Cluster, POD_GROUPS};
use crate::objects::{condition, gang, name, node_of, phase, refusal};
use crate::process::Scheduler;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_18_core_62_core_78_a_gang_runs_ends_and_all_is_told() {
    let cluster = Cluster::take("gangs", 2).await;
    let scheduler = Scheduler::start(&cluster).await;
    for (queue, reclaimable) in [("root", false), ("default", true)] {
        let path = format!("/apis/scheduling.volcano.sh/v1beta1/queues/{queue}");
        let made = until("the queues", async || cluster.api.get(&path).await.ok()).await;
        assert_eq!(made["spec"]["weight"], 1);
        assert_eq!(made["spec"]["reclaimable"], reclaimable);
    }
    cluster.submit("train", 3, "4").await;
    let pods = cluster.running("train", 3).await;
    for pod in &pods {
        was_bound_once(&cluster, pod).await;
        let reported = format!("Successfully assigned gangs/{} to {}", name(pod), node_of(pod));
        let event = cluster.event(name(pod), ("Normal", "Scheduled", &reported)).await;
        assert_eq!(event["source"]["component"], "volcano");
    }
    let group = group_with(&cluster, "running", 3).await;
    let scheduled = condition(&group, "Scheduled").unwrap();
    assert_eq!(scheduled["status"], "True");
    assert_eq!(scheduled["reason"], "tasks in gang are ready to be scheduled");
    cluster.event("train", ("Normal", "Scheduled", "pod group is ready")).await;
    for queue in ["default", "root"] {
        cluster.allocated(queue, "12").await;
    }
    finish(&cluster, &pods).await;
    cluster.in_phase("train", "Completed").await;
    group_with(&cluster, "succeeded", 3).await;
    for queue in ["default", "root"] {
        cluster.allocated(queue, "0").await;
    }
    assert!(scheduler.terminate().await.success());
    assert_eq!(cluster.audit.count(|asked| asked.code == 403), 0);
}

/// With the uid, and without annotations, for no plugin has made any (C-25).
async fn was_bound_once(cluster: &Cluster, pod: &Value) {
    let of_pod = |asked: &Asked| asked.is_binding() && asked.name == name(pod);
    cluster.audit.comes_to(1, of_pod).await;
    let bind = cluster.audit.all().into_iter().find(of_pod).unwrap();
    assert!(bind.is_done());
    assert_eq!(bind.body["metadata"]["uid"], pod["metadata"]["uid"]);
    assert_eq!(bind.body["metadata"]["annotations"], Value::Null);
    assert_eq!(bind.body["target"]["name"], node_of(pod));
}

async fn group_with(cluster: &Cluster, count: &str, wanted: u32) -> Value {
    let path = cluster.path(&format!("{POD_GROUPS}/train"));
    until(&format!("{wanted} {count}"), async || {
        let group = cluster.api.get(&path).await.unwrap();
        (group["status"][count] == wanted).then_some(group)
    })
    .await
}

/// As their kubelets say it.
async fn finish(cluster: &Cluster, pods: &[Value]) {
    for pod in pods {
        let path = cluster.path(&format!("pods/{}/status", name(pod)));
        cluster.api.merge(&path, &json!({"status": {"phase": "Succeeded"}})).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_without_a_group_runs_as_the_chart_says() {
    let cluster = Cluster::take("bare-pods", 1).await;
    let _scheduler = Scheduler::start(&cluster).await;
    let mut pod = gang(cluster.namespace, "bare", 1, "1").remove(1);
    pod["metadata"]["annotations"].take();
    cluster.api.create(&pod).await.unwrap();
    let pod = cluster.pod("bare-0", |pod| phase(pod) == "Running").await;
    was_bound_once(&cluster, &pod).await;
    cluster.allocated("default", "1").await;
    let groups = cluster.api.list(&cluster.path(POD_GROUPS)).await;
    assert!(groups.is_empty(), "nobody makes a group for it: {groups:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_82_core_87_what_cannot_run_is_told_once() {
    let cluster = Cluster::take("refusals", 2).await;
    cluster.submit("big", 2, "9").await;
    // A group without pods and without status that enqueue refuses.
    let mut void = gang(cluster.namespace, "void", 1, "1").remove(0);
    void["spec"]["minResources"] = json!({"cpu": "1000"});
    cluster.api.create(&void).await.unwrap();
    let _scheduler = Scheduler::start(&cluster).await;
    cluster.in_phase("void", "Pending").await;
    for pod in ["big-0", "big-1"] {
        let refused = cluster.pod(pod, |pod| refusal(pod).is_some()).await;
        let (reason, message) = refusal(&refused).unwrap();
        assert_eq!(reason, "Unschedulable");
        assert!(message.contains("2 Insufficient cpu"), "{message}");
        cluster.event(pod, ("Warning", "FailedScheduling", message)).await;
    }
    let path = cluster.path(&format!("{POD_GROUPS}/big"));
    let group = until("the group says so", async || {
        let group = cluster.api.get(&path).await.unwrap();
        condition(&group, "Unschedulable").is_some().then_some(group)
    })
    .await;
    assert_eq!(phase(&group), "Inqueue");
    let found = condition(&group, "Unschedulable").unwrap();
    assert_eq!(found["reason"], "NotEnoughResources");
    let message = text(&found["message"]);
    assert!(message.starts_with("2/2 tasks in gang unschedulable: "), "{message}");
    cluster.event("big", ("Warning", "Unschedulable", message)).await;
    // Each small gang that runs proves more cycles.
    small(&cluster, 0).await;
    let settled = writes_about(&cluster, "big");
    assert_eq!(
        cluster.audit.count(|asked| asked.is("update", "podgroups") && asked.name == "void"),
        1
    );
    for index in 1..6 {
        small(&cluster, index).await;
    }
    assert_eq!(writes_about(&cluster, "big"), settled);
    for pod in ["big-0", "big-1"] {
        let puts = |asked: &Asked| asked.is("update", "pods/status");
        assert_eq!(cluster.audit.count(|asked| puts(asked) && asked.name == pod), 1);
    }
    let events = cluster.api.list(&cluster.path("events")).await;
    for event in events.iter().filter(|event| event["type"] == "Warning") {
        assert_eq!(event["count"], 1, "{event}");
    }
}

async fn small(cluster: &Cluster, index: usize) {
    let gang = format!("small-{index}");
    cluster.submit(&gang, 1, "100m").await;
    cluster.running(&gang, 1).await;
}

/// Events included: they carry the name of their object.
fn writes_about(cluster: &Cluster, prefix: &str) -> usize {
    let about = |name: &str| name.starts_with(prefix);
    let here = |namespace: &str| namespace == cluster.namespace;
    cluster.audit.count(|asked| asked.is_write() && here(&asked.namespace) && about(&asked.name))
}

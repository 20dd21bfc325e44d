//! Volumes end to end: the scheduler writes what a gang's claims need, the simulated provisioner
//! makes them, fails or is late, and the gang is bound as a whole. Specification: plugins-nodes.md
//! 2.8, 5.7.

use serde_json::{Value, json};
use vc_sim::serve::{CLAIMS, PODS, PROVISION_FAILURES, PROVISION_SECONDS, VOLUMES};

use crate::cluster::{
    Cluster, Fault, SILENT, all_gone, condition, count, folder, gang, is, no_fault, pod, pod_group,
    poll, waits,
};

const SELECTED: &str = "volume.kubernetes.io/selected-node";

fn class(name: &str, provisioner: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
}

fn claim(name: &str, class: &str, annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}})
}

/// A gang of which each pod has a claim of its name, with these annotations.
fn stored_gang(name: &str, annotations: &[Value]) -> Vec<Value> {
    let mut objects = vec![class("slow", "sim.example.com")];
    for index in 0..2 {
        let name = format!("node-{index}");
        let driver =
            json!({"name": "sim.example.com", "nodeID": name, "allocatable": {"count": 1}});
        objects.push(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
            "metadata": {"name": name}, "spec": {"drivers": [driver]}}));
    }
    let n_pods = u32::try_from(annotations.len()).unwrap();
    for mut object in gang(name, n_pods, "1") {
        if object["kind"] == "Pod" {
            let source = json!({"claimName": object["metadata"]["name"]});
            object["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": source}]);
        }
        objects.push(object);
    }
    for (index, annotations) in annotations.iter().enumerate() {
        objects.push(claim(&format!("{name}-{index}"), "slow", annotations.clone()));
    }
    objects
}

fn is_bound(claim: &Value, name: &str) -> bool {
    is(claim, name) && claim["status"]["phase"] == "Bound"
}

#[tokio::test]
async fn a_gang_is_bound_with_its_volumes() {
    let objects = stored_gang("train", &[json!({}), json!({PROVISION_SECONDS: "0.2"})]);
    let cluster = Cluster::start(objects, &[], no_fault).await;
    for name in ["train-0", "train-1"] {
        cluster.bound(name).await;
        let claim = cluster.until(&CLAIMS, |claim| is_bound(claim, name)).await;
        let pod = cluster.until(&PODS, |pod| is(pod, name)).await;
        // One attachment per node: the gang is spread by the limit.
        assert_eq!(claim["metadata"]["annotations"][SELECTED], pod["spec"]["nodeName"]);
        let volume = &claim["spec"]["volumeName"];
        cluster.until(&VOLUMES, |value| value["metadata"]["name"] == *volume).await;
        let path = format!("PUT /api/v1/namespaces/default/persistentvolumeclaims/{name}");
        assert_eq!(count(&cluster.replica.log, &path), 1);
    }
    cluster.stop().await;
}

#[tokio::test]
async fn a_bind_that_waits_for_its_volumes_does_not_wait_for_the_next_period() {
    let objects = stored_gang("train", &[json!({}), json!({PROVISION_SECONDS: "0.2"})]);
    let args = ["--schedule-trigger=period", "--schedule-period=1h"];
    let cluster = Cluster::start(objects, &args, no_fault).await;
    for name in ["train-0", "train-1"] {
        cluster.bound(name).await;
    }
    cluster.stop().await;
}

#[tokio::test]
async fn nodes_61_a_failing_provisioner_takes_the_gang_back_until_it_succeeds() {
    let objects = stored_gang("train", &[json!({}), json!({PROVISION_FAILURES: "1"})]);
    let args = ["--schedule-trigger=period", "--schedule-period=300ms"];
    let cluster = Cluster::start(objects, &args, no_fault).await;
    // Both are looked for from the beginning: the next attempt may follow at once.
    let reported = |name| cluster.until(&PODS, move |pod| waits(pod, name, "SchedulerError"));
    let (_, failed) = tokio::join!(reported("train-0"), reported("train-1"));
    let text = condition(&failed, "PodScheduled").unwrap()["message"].as_str().unwrap();
    assert_eq!(
        text,
        "execute preBind for pod default/train-1 failed: binding volumes: provisioning failed for \
         PVC \"train-1\", resync the task"
    );
    for name in ["train-0", "train-1"] {
        cluster.bound(name).await;
        let path = format!("POST /api/v1/namespaces/default/pods/{name}/binding");
        assert_eq!(count(&cluster.replica.log, &path), 1, "never bound before");
    }
    cluster.stop().await;
}

#[tokio::test]
async fn nodes_61_a_provisioner_that_is_too_late_takes_the_gang_back() {
    let conf = folder("late").join("scheduler.conf");
    let text = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n\
                \x20 - name: predicates\n    arguments:\n\
                \x20     volumebinding.bindTimeoutSeconds: 1\n";
    std::fs::write(&conf, text).unwrap();
    let conf = format!("--scheduler-conf={}", conf.display());
    let objects = stored_gang("train", &[json!({}), json!({PROVISION_SECONDS: "never"})]);
    let args = ["--schedule-trigger=period", "--schedule-period=300ms", &conf];
    let cluster = Cluster::start(objects, &args, no_fault).await;
    let failed = cluster.until(&PODS, |pod| waits(pod, "train-1", "SchedulerError")).await;
    let text = condition(&failed, "PodScheduled").unwrap()["message"].as_str().unwrap();
    assert!(
        text.ends_with("binding volumes: context deadline exceeded, resync the task"),
        "{text}"
    );
    let reported = cluster.until(&PODS, |pod| waits(pod, "train-0", "SchedulerError")).await;
    assert!(!reported["spec"]["nodeName"].is_string());
    let bind = "POST /api/v1/namespaces/default/pods/train-0/binding";
    assert_eq!(count(&cluster.replica.log, bind), 0);
    cluster.stop().await;
}

#[tokio::test]
async fn a_refused_claim_is_told_and_tried_again() {
    const CLAIM: &str = "PUT /api/v1/namespaces/default/persistentvolumeclaims/train-0";
    let refuse: Fault = |line, before| (line == CLAIM && before == 0).then_some(500);
    let objects = stored_gang("train", &[json!({})]);
    let cluster = Cluster::start(objects, &["--schedule-period=50ms"], refuse).await;
    let failed = cluster.until(&PODS, |pod| waits(pod, "train-0", "SchedulerError")).await;
    let text = condition(&failed, "PodScheduled").unwrap()["message"].as_str().unwrap();
    assert!(text.contains("failed: binding volumes: no luck, resync the task"), "{text}");
    cluster.bound("train-0").await;
    assert_eq!(count(&cluster.replica.log, CLAIM), 2);
    cluster.stop().await;
}

/// After the five seconds for the last writes an answer that comes late, or never, leads to nothing.
#[tokio::test]
async fn c05_a_write_that_is_never_answered_is_given_up_at_the_end() {
    const CLAIM: &str = "PUT /api/v1/namespaces/default/persistentvolumeclaims/train-0";
    let silent: Fault = |line, _| (line == CLAIM).then_some(SILENT);
    let cluster = Cluster::start(stored_gang("train", &[json!({})]), &[], silent).await;
    let log = cluster.replica.log.clone();
    poll("the claim is written", async || (0 < count(&log, CLAIM)).then_some(())).await;
    cluster.stop().await;
    let n_sent = log.lock().unwrap().len();
    all_gone(&log).await;
    assert_eq!(log.lock().unwrap().len(), n_sent);
}

#[tokio::test]
async fn local_volumes_and_ephemeral_claims_are_bound() {
    let template = json!({"spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let mut member = pod("local-0", "local", "1");
    member["spec"]["volumes"] =
        json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]);
    let terms = json!([{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}]}]);
    let disk = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local", "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}});
    let class = class("local", "kubernetes.io/no-provisioner");
    let objects = vec![class, disk, pod_group("local", 1), member];
    let cluster = Cluster::start(objects, &[], no_fault).await;
    cluster.bound("local-0").await;
    let pod = cluster.until(&PODS, |pod| is(pod, "local-0")).await;
    assert_eq!(pod["spec"]["nodeName"], "node-1");
    let claim = cluster.until(&CLAIMS, |claim| is_bound(claim, "local-0-scratch")).await;
    assert_eq!(claim["spec"]["volumeName"], "disk");
    let disk = cluster.until(&VOLUMES, |volume| volume["status"]["phase"] == "Bound").await;
    assert_eq!(disk["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"], "yes");
    cluster.stop().await;
}

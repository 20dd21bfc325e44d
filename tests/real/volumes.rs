//! Gangs whose volumes are made once their nodes are chosen: bound when all are there; when one
//! fails or takes too long, nobody is bound and nothing stays promised. Specification:
//! plugins-nodes.md 5.6-5.8.

use serde_json::{Value, json};

use crate::api::{Api, POLL, text, until};
use crate::audit::Asked;
use crate::cluster::Cluster;
use crate::objects::{LABEL, gang, name, node_of, refusal};
use crate::process::Scheduler;

const SELECTED: &str = "volume.kubernetes.io/selected-node";
const COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const CLASS: &str = "vc-test-delayed";

/// A class whose volumes are made by the test, and nodes that can attach three of them each.
pub(crate) async fn storage(api: &Api, n_nodes: u32) {
    let labels = json!({LABEL: ""});
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": CLASS, "labels": labels}, "provisioner": "test.example.com",
        "volumeBindingMode": "WaitForFirstConsumer"});
    api.create(&class).await.unwrap();
    for index in 0..n_nodes {
        let name = format!("node-{index}");
        let driver =
            json!({"name": "test.example.com", "nodeID": name, "allocatable": {"count": 3}});
        let node = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
            "metadata": {"name": name, "labels": labels}, "spec": {"drivers": [driver]}});
        api.create(&node).await.unwrap();
    }
}

fn claim(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "annotations": {"test/of": name}},
        "spec": {"storageClassName": CLASS, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}})
}

/// A gang of which each pod has a claim of its name.
pub(crate) async fn submit(cluster: &Cluster, gang_name: &str, n_pods: u32, cpu: &str) {
    for mut object in gang(cluster.namespace, gang_name, n_pods, cpu) {
        if object["kind"] == "Pod" {
            let name = name(&object).to_owned();
            let source = json!({"claimName": name});
            object["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": source}]);
            cluster.api.create(&claim(cluster.namespace, &name)).await.unwrap();
        }
        cluster.api.create(&object).await.unwrap();
    }
}

async fn selected(cluster: &Cluster, claim: &str) -> String {
    let path = cluster.path(&format!("persistentvolumeclaims/{claim}"));
    until(&format!("a node selected for {claim}"), async || {
        let claim = cluster.api.get(&path).await.ok()?;
        let node = text(&claim["metadata"]["annotations"][SELECTED]).to_owned();
        (!node.is_empty()).then_some(node)
    })
    .await
}

/// Makes a volume that any claim may have.
pub(crate) async fn offer(api: &Api, name: &str) {
    api.create(&volume(name)).await.unwrap();
    let available = json!({"status": {"phase": "Available"}});
    api.merge(&format!("/api/v1/persistentvolumes/{name}/status"), &available).await.unwrap();
}

fn volume(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {LABEL: ""}},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "csi": {"driver": "test.example.com", "volumeHandle": name}}})
}

/// A claim and the volume that it is bound to, which every node reaches.
pub(crate) async fn bound_claim(cluster: &Cluster, name: &str) {
    cluster.api.create(&claim(cluster.namespace, name)).await.unwrap();
    bind(cluster, name, None).await;
}

/// What a provisioner does.
async fn provision(cluster: &Cluster, claim: &str) {
    let node = selected(cluster, claim).await;
    bind(cluster, claim, Some(&node)).await;
}

/// Makes the volume of a claim and binds the two.
async fn bind(cluster: &Cluster, claim: &str, node: Option<&str>) {
    let path = cluster.path(&format!("persistentvolumeclaims/{claim}"));
    let stored = cluster.api.get(&path).await.unwrap();
    let mut object = volume_for(&stored);
    if let Some(node) = node {
        let terms = json!([{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]);
        object["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": terms}});
    }
    cluster.api.create(&object).await.unwrap();
    attach(&cluster.api, &stored, name(&object)).await.unwrap();
}

/// A volume that this claim alone may have.
fn volume_for(claim: &Value) -> Value {
    let metadata = &claim["metadata"];
    let mut object = volume(&format!("pv-{}-{}", text(&metadata["namespace"]), name(claim)));
    object["spec"]["storageClassName"] = claim["spec"]["storageClassName"].clone();
    object["spec"]["claimRef"] = json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
        "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]});
    object
}

async fn attach(api: &Api, claim: &Value, volume: &str) -> kube::Result<()> {
    let namespace = text(&claim["metadata"]["namespace"]);
    let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{}", name(claim));
    let bound = json!({"metadata": {"annotations": {COMPLETED: "yes"}},
        "spec": {"volumeName": volume}});
    api.merge(&path, &bound).await?;
    let status = json!({"status": {"phase": "Bound"}});
    api.merge(&format!("{path}/status"), &status).await?;
    Ok(())
}

/// What binds claims to the volumes that are meant for them, and makes those that are to be made,
/// until it is dropped.
pub(crate) async fn controllers(api: Api) {
    loop {
        let volumes = api.list("/api/v1/persistentvolumes").await;
        for claim in api.list("/api/v1/persistentvolumeclaims").await {
            if claim["spec"]["volumeName"].is_string() {
                continue;
            }
            let of = |volume: &&Value| {
                let of = &volume["spec"]["claimRef"];
                of["name"] == claim["metadata"]["name"]
                    && of["namespace"] == claim["metadata"]["namespace"]
            };
            if let Some(volume) = volumes.iter().find(of) {
                drop(attach(&api, &claim, name(volume)).await);
            } else if claim["metadata"]["annotations"][SELECTED].is_string() {
                drop(api.create(&volume_for(&claim)).await);
            }
        }
        tokio::time::sleep(POLL).await;
    }
}

fn binds(cluster: &Cluster) -> usize {
    cluster.audit.count(Asked::is_binding)
}

/// Waits until every pod of the gang says that what precedes its bind failed, and none is bound.
async fn withdrawn(cluster: &Cluster, gang: &str, culprit: &str) {
    for pod in cluster.pods(gang).await {
        let reported = cluster.pod(name(&pod), |pod| {
            refusal(pod).is_some_and(|(reason, text)| {
                reason == "SchedulerError" && text.contains("preBind")
            })
        });
        assert_eq!(node_of(&reported.await), "");
    }
    let pod = cluster.pod(culprit, |pod| refusal(pod).is_some()).await;
    let (_, text) = refusal(&pod).unwrap();
    let expected = format!("execute preBind for pod {}/{culprit} failed: ", cluster.namespace);
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(binds(cluster), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_61_a_gang_is_bound_when_its_volumes_are_made() {
    let cluster = Cluster::take("volumes", 2).await;
    storage(&cluster.api, 2).await;
    let _scheduler = Scheduler::start(&cluster).await;
    submit(&cluster, "train", 3, "3").await;
    for claim in ["train-0", "train-1"] {
        provision(&cluster, claim).await;
    }
    selected(&cluster, "train-2").await;
    // Each gang that runs meanwhile proves more cycles.
    cluster.submit("other", 1, "100m").await;
    cluster.running("other", 1).await;
    let of_gang = |asked: &Asked| asked.is_binding() && asked.name.starts_with("train");
    assert_eq!(cluster.audit.count(of_gang), 0, "one volume is missing");
    provision(&cluster, "train-2").await;
    for pod in cluster.running("train", 3).await {
        let path = cluster.path(&format!("persistentvolumeclaims/{}", name(&pod)));
        let claim = cluster.api.get(&path).await.unwrap();
        assert_eq!(claim["metadata"]["annotations"][SELECTED], node_of(&pod));
    }
    cluster.audit.comes_to(3, of_gang).await;
    assert_eq!(cluster.audit.count(|asked| asked.code == 403), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_61_a_failure_of_the_provisioner_takes_the_whole_gang_back() {
    let cluster = Cluster::take("volume-failure", 2).await;
    storage(&cluster.api, 2).await;
    // No cycle in between tries it again: the conditions can be read.
    let args = ["--leader-elect=false", "--schedule-trigger=period", "--schedule-period=3s"];
    let _scheduler = Scheduler::start_with(&cluster, &args).await;
    submit(&cluster, "train", 2, "5").await;
    provision(&cluster, "train-0").await;
    selected(&cluster, "train-1").await;
    let path = cluster.path("persistentvolumeclaims/train-1");
    let reset = json!({"metadata": {"annotations": {SELECTED: null}}});
    cluster.api.merge(&path, &reset).await.unwrap();
    withdrawn(&cluster, "train", "train-1").await;
    // Nothing was left over: the gang is tried again, and the next attempt succeeds.
    provision(&cluster, "train-1").await;
    cluster.running("train", 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_61_a_time_out_takes_the_whole_gang_back() {
    let cluster = Cluster::take("volume-time-out", 2).await;
    storage(&cluster.api, 2).await;
    let conf = cluster.dir().join("volume-time-out.conf");
    let text = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n\
                \x20 - name: predicates\n    arguments:\n\
                \x20     volumebinding.bindTimeoutSeconds: 1\n";
    std::fs::write(&conf, text).unwrap();
    let conf = format!("--scheduler-conf={}", conf.display());
    let args = ["--leader-elect=false", "--schedule-trigger=period", "--schedule-period=3s", &conf];
    let _scheduler = Scheduler::start_with(&cluster, &args).await;
    submit(&cluster, "train", 2, "5").await;
    let first = selected(&cluster, "train-0").await;
    withdrawn(&cluster, "train", "train-0").await;
    // What was written stays (5.7), what was promised does not: the volume of the node is used.
    assert_eq!(selected(&cluster, "train-0").await, first);
    provision(&cluster, "train-0").await;
    provision(&cluster, "train-1").await;
    cluster.running("train", 2).await;
}

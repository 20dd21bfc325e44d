//! Gangs whose pods have claims for devices, made from a template or shared: bound with the devices
//! that were chosen and with every pod as a consumer. Specification: plugins-nodes.md 2.6, 6.7.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::text;
use crate::cluster::Cluster;
use crate::objects::{LABEL, gang, name, node_of, refusal};
use crate::process::Scheduler;

const DRIVER: &str = "gpu.example.com";
const CLASS: &str = "gpu.example.com";
const CLAIMS: &str = "resourceclaims";
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// A class, and two devices on each node.
pub(crate) async fn devices(cluster: &Cluster, n_nodes: u32) {
    let selector = json!({"cel": {"expression": format!("device.driver == '{DRIVER}'")}});
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": {"name": CLASS, "labels": {LABEL: ""}}, "spec": {"selectors": [selector]}});
    cluster.api.create(&class).await.unwrap();
    for index in 0..n_nodes {
        let node = format!("node-{index}");
        slice(cluster, &node, json!({"nodeName": node}), &["gpu-0", "gpu-1"]).await;
    }
}

async fn slice(cluster: &Cluster, pool: &str, nodes: Value, devices: &[&str]) {
    let devices: Vec<Value> = devices.iter().map(|name| json!({"name": name})).collect();
    let mut spec = nodes;
    spec["driver"] = DRIVER.into();
    spec["pool"] = json!({"name": pool, "generation": 1, "resourceSliceCount": 1});
    spec["devices"] = devices.into();
    let slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("slice-{pool}"), "labels": {LABEL: ""}}, "spec": spec});
    cluster.api.create(&slice).await.unwrap();
}

fn claim(cluster: &Cluster, name: &str) -> Value {
    let request = json!({"name": "gpu", "exactly": {"deviceClassName": CLASS}});
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": cluster.namespace},
        "spec": {"devices": {"requests": [request]}}})
}

fn path(cluster: &Cluster, claim: &str) -> String {
    format!("/apis/resource.k8s.io/v1/namespaces/{}/{CLAIMS}/{claim}", cluster.namespace)
}

/// A gang of which each pod has a claim from a template, made as the controller makes it.
pub(crate) async fn submit(cluster: &Cluster, gang_name: &str, n_pods: u32) {
    for mut object in gang(cluster.namespace, gang_name, n_pods, "100m") {
        if object["kind"] != "Pod" {
            cluster.api.create(&object).await.unwrap();
            continue;
        }
        let claims = json!([{"name": "gpu", "resourceClaimTemplateName": "gpu"}]);
        object["spec"]["resourceClaims"] = claims;
        let pod = cluster.api.create(&object).await.unwrap();
        let mut made = claim(cluster, &format!("{}-gpu", name(&pod)));
        made["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod",
            "name": name(&pod), "uid": pod["metadata"]["uid"], "controller": true}]);
        cluster.api.create(&made).await.unwrap();
        let statuses = json!([{"name": "gpu", "resourceClaimName": name(&made)}]);
        let status = json!({"status": {"resourceClaimStatuses": statuses}});
        let path = cluster.path(&format!("pods/{}/status", name(&pod)));
        cluster.api.merge(&path, &status).await.unwrap();
    }
}

/// Pool and device that a claim has.
fn device(claim: &Value) -> (String, String) {
    let result = &claim["status"]["allocation"]["devices"]["results"][0];
    (text(&result["pool"]).to_owned(), text(&result["device"]).to_owned())
}

fn consumers(claim: &Value) -> Vec<&str> {
    let list = claim["status"]["reservedFor"].as_array();
    list.into_iter().flatten().map(|consumer| text(&consumer["name"])).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gang_with_claims_from_a_template_gets_its_devices() {
    let cluster = Cluster::take("devices", 2).await;
    devices(&cluster, 2).await;
    let _scheduler = Scheduler::start(&cluster).await;
    submit(&cluster, "train", 4).await;
    let mut taken = BTreeSet::new();
    for pod in cluster.running("train", 4).await {
        let claim = cluster.api.get(&path(&cluster, &format!("{}-gpu", name(&pod)))).await.unwrap();
        let (pool, device) = device(&claim);
        assert_eq!(pool, node_of(&pod), "a device of its own node");
        assert!(taken.insert((pool, device)), "each device once");
        assert_eq!(consumers(&claim), [name(&pod)]);
        assert_eq!(claim["metadata"]["finalizers"], json!([FINALIZER]));
    }
    submit(&cluster, "late", 1).await;
    // Before its claim is there the pod waits for that.
    let all_taken = |pod: &Value| {
        refusal(pod).is_some_and(|(_, why)| why.contains("cannot allocate all claims"))
    };
    cluster.pod("late-0", all_taken).await;
    assert_eq!(cluster.audit.count(|asked| asked.code == 403), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_77_a_gang_shares_one_claim() {
    let cluster = Cluster::take("shared-device", 2).await;
    devices(&cluster, 0).await;
    slice(&cluster, "fabric", json!({"allNodes": true}), &["channel"]).await;
    cluster.api.create(&claim(&cluster, "shared")).await.unwrap();
    let _scheduler = Scheduler::start(&cluster).await;
    for mut object in gang(cluster.namespace, "train", 2, "5") {
        if object["kind"] == "Pod" {
            let claims = json!([{"name": "channel", "resourceClaimName": "shared"}]);
            object["spec"]["resourceClaims"] = claims;
        }
        cluster.api.create(&object).await.unwrap();
    }
    cluster.running("train", 2).await;
    let shared = cluster.api.get(&path(&cluster, "shared")).await.unwrap();
    assert_eq!(device(&shared), ("fabric".to_owned(), "channel".to_owned()));
    let consumers: BTreeSet<&str> = consumers(&shared).into_iter().collect();
    assert_eq!(consumers, BTreeSet::from(["train-0", "train-1"]), "one allocation, both reserved");
}

//! A simulated kubelet of all nodes: bound pods run at once, deleted ones are gone at once. It
//! writes with PATCH and as administrator. Facts: docs/spec/real-apiserver.md 8.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::{Api, text};

const PAUSE: Duration = Duration::from_millis(20);
/// Annotation of a pod that takes its time to end.
pub(crate) const STAYS: &str = "vc-scheduler.test/stays";
const BOUND: &str = "/api/v1/pods?fieldSelector=spec.nodeName!%3D";

/// Runs until it is dropped; while the server does not answer it waits.
pub(crate) async fn run(api: Api) {
    loop {
        for pod in api.list(&format!("{BOUND},status.phase%3DPending")).await {
            drop(start(&api, &pod).await);
        }
        for pod in api.list(BOUND).await {
            let metadata = &pod["metadata"];
            let stays = metadata["annotations"][STAYS].is_string();
            if metadata["deletionTimestamp"].is_string() && !stays {
                drop(api.delete(&path(&pod)).await);
            }
        }
        sleep(PAUSE).await;
    }
}

fn path(pod: &Value) -> String {
    let metadata = &pod["metadata"];
    format!("/api/v1/namespaces/{}/pods/{}", text(&metadata["namespace"]), text(&metadata["name"]))
}

async fn start(api: &Api, pod: &Value) -> kube::Result<Value> {
    let conditions = ["Initialized", "Ready", "ContainersReady"];
    let conditions = conditions.map(|kind| json!({"type": kind, "status": "True"}));
    let status = json!({"status": {"phase": "Running", "podIP": "10.1.2.3",
        "podIPs": [{"ip": "10.1.2.3"}], "conditions": conditions, "containerStatuses": [
            {"name": "main", "image": "x", "imageID": "x", "ready": true, "restartCount": 0,
                "state": {"running": {}}}]}});
    let path = format!("{}/status", path(pod));
    api.patch(&path, "application/strategic-merge-patch+json", &status).await
}

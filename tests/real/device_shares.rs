//! What a device plugin reads of a pod after its bind: the simulated plugin of `vcsim serve` registers GPUs
//! on a node of a real API server, and takes the annotations of the bind. Specification:
//! plugins-nodes.md 16.5, 16.8.

use serde_json::{Value, json};
use vc_sim::serve::devices::{allocate, confirm, register};

use crate::audit::Asked;
use crate::cluster::Cluster;
use crate::objects::{gang, node, node_of, refusal};
use crate::process::{Scheduler, shipped_conf};

const NODE: &str = "gpu-node";
const DEVICES: &str = "volcano.sh/devices-to-allocate";

/// The shipped configuration with deviceshare, as an argument.
fn with_shares(cluster: &Cluster) -> String {
    let conf = cluster.dir().join(format!("{}.conf", cluster.namespace));
    let plugin = "  - name: deviceshare\n    arguments: {deviceshare.VGPUEnable: true}\n";
    std::fs::write(&conf, format!("{}\n{plugin}", shipped_conf().trim_end())).unwrap();
    format!("--scheduler-conf={}", conf.display())
}

/// A pod that wants this much memory of one GPU, in MiB.
async fn submit(cluster: &Cluster, name: &str, memory: &str) {
    let mut objects = gang(cluster.namespace, name, 1, "1");
    let amounts =
        json!({"cpu": "1", "volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": memory});
    objects[1]["spec"]["containers"][0]["resources"] =
        json!({"requests": amounts, "limits": amounts});
    for object in objects {
        cluster.api.create(&object).await.unwrap();
    }
}

/// Waits until the pod is bound, lets the device plugin take its annotations, and returns the GPU.
async fn served(cluster: &Cluster, pod: &str) -> String {
    let mut bound = cluster.pod(pod, |pod| !node_of(pod).is_empty()).await;
    assert_eq!(node_of(&bound), NODE);
    let node = cluster.api.get(&format!("/api/v1/nodes/{NODE}")).await.unwrap();
    assert_eq!(allocate(&bound, &node), Ok(true), "{}", bound["metadata"]["annotations"]);
    let devices = bound["metadata"]["annotations"][DEVICES].as_str().unwrap_or_default();
    let gpu = devices.split(',').next().unwrap_or_default().to_owned();
    confirm(&mut bound);
    let taken = json!({"metadata": {"annotations": bound["metadata"]["annotations"]}});
    cluster.api.merge(&cluster.path(&format!("pods/{pod}")), &taken).await.unwrap();
    gpu
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_155_the_device_plugin_reads_what_the_bind_has_written() {
    let cluster = Cluster::take("device-shares", 1).await;
    let mut gpus = node(NODE, "8");
    register(&mut gpus, 2, 16_384);
    cluster.api.create(&gpus).await.unwrap();
    let conf = with_shares(&cluster);
    let arguments = ["--leader-elect=false", "--schedule-period=100ms", &conf];
    let _scheduler = Scheduler::start_with(&cluster, &arguments).await;
    submit(&cluster, "first", "10000").await;
    let first = served(&cluster, "first-0").await;
    submit(&cluster, "second", "10000").await;
    let second = served(&cluster, "second-0").await;
    assert_ne!(first, second, "neither GPU has room for both");
    submit(&cluster, "third", "10000").await;
    let waits = |pod: &Value| refusal(pod).is_some_and(|(_, why)| why.contains("gpu"));
    cluster.pod("third-0", waits).await;
    submit(&cluster, "fourth", "6000").await;
    let fourth = served(&cluster, "fourth-0").await;
    assert!([first, second].contains(&fourth), "{fourth}");
    // The shipped role without `deviceConfig.enabled` may not read the device configuration; the defaults
    // are in force.
    let refused = |asked: &Asked| asked.code == 403 && asked.resource != "configmaps";
    assert_eq!(cluster.audit.count(refused), 0);
}

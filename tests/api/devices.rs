//! The ConfigMap with the device configuration, and what a device plugin reads of a pod after its
//! bind. Specification: plugins-nodes.md 16.2, 16.5 and 16.7.

use serde_json::{Value, json};
use vc_sim::serve::PODS;

use crate::cluster::{Cluster, count, folder, gang, is, no_fault};

const CONF: &str = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  \
    - name: predicates\n  - name: deviceshare\n    arguments: {deviceshare.VGPUEnable: true}\n";
const DEVICES: &str = "nvidia:\n  resourceMemoryName: example.com/vram\n  knownMigGeometries:\n  \
    - models: [X1]\n    allowedGeometries:\n    - group: group1\n      geometries:\n      \
    - {name: small, memory: 10240, count: 7}\n";
const GET: &str = "GET /api/v1/namespaces/kube-system/configmaps/volcano-vgpu-device-config";

fn config_map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "volcano-vgpu-device-config", "namespace": "kube-system"},
        "data": {"device-config.yaml": DEVICES}})
}

/// A node with one GPU in mode `mig`, as a device plugin registers it.
fn node() -> Value {
    let amounts = json!({"cpu": "8", "memory": "16Gi", "pods": "110", "example.com/vram": "81920",
        "volcano.sh/vgpu-number": "7", "volcano.sh/vgpu-cores": "100"});
    let register = "GPU-0,7,81920,NVIDIA-X1,true,mig:";
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "gpu-node", "annotations": {"volcano.sh/node-vgpu-register": register}},
        "status": {"capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

fn with_gpu(mut objects: Vec<Value>) -> Vec<Value> {
    let amounts = json!({"cpu": "1", "example.com/vram": "8000"});
    let resources = json!({"requests": amounts, "limits": amounts});
    objects[1]["spec"]["containers"][0]["resources"] = resources;
    objects
}

/// Waits until the pod runs on the node, and returns the values of these annotations.
async fn running<const N: usize>(cluster: &Cluster, name: &str, keys: [&str; N]) -> [String; N] {
    let runs = |pod: &Value| is(pod, name) && pod["status"]["phase"] == "Running";
    let pod = cluster.until(&PODS, runs).await;
    assert_eq!(pod["spec"]["nodeName"], "gpu-node");
    let annotations = &pod["metadata"]["annotations"];
    keys.map(|key| annotations[format!("volcano.sh/{key}")].as_str().unwrap_or_default().to_owned())
}

/// The names and the geometry of the ConfigMap are in force from the first cycle on, and the
/// annotations of the bound pod tell the device plugin its instance.
#[tokio::test]
async fn nodes_148_the_device_plugin_reads_the_instance_of_the_config_map() {
    let path = folder("devices").join("volcano-scheduler.conf");
    std::fs::write(&path, CONF).unwrap();
    let objects = [vec![config_map(), node()], with_gpu(gang("train", 1, "1"))].concat();
    let file = format!("--scheduler-conf={}", path.display());
    let cluster = Cluster::start(objects, &[&file], no_fault).await;
    let keys = ["vgpu-node", "bind-phase", "vgpu-ids-new", "bind-time"];
    let [node, phase, devices, time] = running(&cluster, "train-0", keys).await;
    assert_eq!((&*node, &*devices), ("gpu-node", "GPU-0[group1-0],NVIDIA,10240,0:"));
    // Its resource has another name, so that the simulated device plugin is not asked.
    assert_eq!(phase, "allocating");
    assert!(0 < time.parse::<i64>().unwrap());
    assert!(0 < count(&cluster.replica.log, GET));
    cluster.stop().await;
}

/// The device plugin of the node finds all that it needs in the annotations of the bind, and unlocks
/// the node, so that the second pod is bound.
#[tokio::test]
async fn nodes_155_the_device_plugin_serves_one_pod_after_the_other() {
    let path = folder("locks").join("volcano-scheduler.conf");
    let locks = "{deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: true}";
    std::fs::write(&path, CONF.replace("{deviceshare.VGPUEnable: true}", locks)).unwrap();
    let mut node = node();
    let register = "GPU-0,7,81920,NVIDIA-X1,true,hami-core:";
    node["metadata"]["annotations"]["volcano.sh/node-vgpu-register"] = json!(register);
    for list in ["capacity", "allocatable"] {
        node["status"][list]["volcano.sh/vgpu-memory"] = json!("81920");
    }
    let with_gpu = |mut objects: Vec<Value>| {
        let amounts = json!({"cpu": "1", "volcano.sh/vgpu-memory": "8000"});
        objects[1]["spec"]["containers"][0]["resources"] =
            json!({"requests": amounts, "limits": amounts});
        objects
    };
    let gangs = [with_gpu(gang("one", 1, "1")), with_gpu(gang("two", 1, "1"))].concat();
    let file = format!("--scheduler-conf={}", path.display());
    let objects = [vec![node], gangs].concat();
    let cluster = Cluster::start(objects, &[&file], no_fault).await;
    for pod in ["one-0", "two-0"] {
        let keys = ["bind-phase", "devices-to-allocate", "vgpu-ids-new"];
        let read = running(&cluster, pod, keys).await;
        assert_eq!(read, ["success", "", "GPU-0,NVIDIA,8000,0:"]);
    }
    cluster.stop().await;
}

/// Without a kind of devices that needs it the ConfigMap is not read.
#[tokio::test]
async fn a_config_map_that_nothing_needs_is_not_read() {
    let path = folder("no-devices").join("volcano-scheduler.conf");
    std::fs::write(&path, CONF.replace("VGPUEnable", "GPUSharingEnable")).unwrap();
    let file = format!("--scheduler-conf={}", path.display());
    let cluster = Cluster::start(gang("train", 1, "1"), &[&file], no_fault).await;
    cluster.bound("train-0").await;
    assert_eq!(count(&cluster.replica.log, GET), 0);
    cluster.stop().await;
}

//! The device plugin of vGPUs on simulated nodes: it registers GPUs in annotations of its node, and
//! gives a bound pod the GPUs that the annotations of the bind name, as
//! volcano-vgpu-device-plugin does. Specification: plugins-nodes.md 16.5 and 16.8.

use serde_json::{Value, json};

use super::clock;
use super::object::{items, text};

/// Containers that can share a GPU.
const SHARES: u32 = 10;
const REGISTER: &str = "volcano.sh/node-vgpu-register";
const HANDSHAKE: &str = "volcano.sh/node-vgpu-handshake";
const NODE: &str = "volcano.sh/vgpu-node";
const TIME: &str = "volcano.sh/bind-time";
const PHASE: &str = "volcano.sh/bind-phase";
const DEVICES: &str = "volcano.sh/devices-to-allocate";
const LOCK: &str = "hamivgpu";
const VENDOR: &str = "NVIDIA";

/// Registers this many GPUs of a node, each with so much memory in MiB.
pub fn register(node: &mut Value, number: u32, memory: u32) {
    if number == 0 {
        return;
    }
    let name = text(node, "/metadata/name").to_owned();
    let entry = |at: u32| format!("GPU-{name}-{at},{SHARES},{memory},NVIDIA-vcsim,true,hami-core:");
    let cards: String = (0..number).map(entry).collect();
    node["metadata"]["annotations"][REGISTER] = json!(cards);
    node["metadata"]["annotations"][HANDSHAKE] = json!(format!("Reported {}", clock::timestamp()));
    let number = u64::from(number);
    for (resource, amount) in [
        ("volcano.sh/vgpu-number", number * u64::from(SHARES)),
        ("volcano.sh/vgpu-memory", number * u64::from(memory)),
        ("volcano.sh/vgpu-cores", number * 100),
    ] {
        for list in ["capacity", "allocatable"] {
            node["status"][list][resource] = json!(amount.to_string());
        }
    }
}

/// Gives a bound pod its GPUs. Returns false if the pod has none to get.
///
/// # Errors
/// Why the annotations of the bind are not what the device plugin needs.
pub fn allocate(pod: &Value, node: &Value) -> Result<bool, String> {
    let annotation = |key: &str| pod["metadata"]["annotations"][key].as_str().unwrap_or_default();
    let wanted: Vec<u64> = items(pod, "/spec/containers").iter().map(gpus).collect();
    let Some(cards) = node["metadata"]["annotations"][REGISTER].as_str() else { return Ok(false) };
    if wanted.iter().all(|&number| number == 0) || annotation(PHASE) == "success" {
        return Ok(false);
    }
    if annotation(PHASE) != "allocating" {
        return Err(format!("{PHASE} is {:?} in place of allocating", annotation(PHASE)));
    }
    if annotation(NODE) != text(node, "/metadata/name") {
        return Err(format!("{NODE} names {:?}", annotation(NODE)));
    }
    if annotation(TIME).parse::<i64>().is_err() {
        return Err(format!("{TIME} is no number of seconds: {:?}", annotation(TIME)));
    }
    let known: Vec<&str> = cards.split(':').filter_map(|card| card.split(',').next()).collect();
    let mut parts = annotation(DEVICES).split(';');
    for (at, &number) in wanted.iter().enumerate() {
        let part = parts.next().unwrap_or_default();
        let devices: Vec<&str> = part.split(':').filter(|entry| !entry.is_empty()).collect();
        if u64::try_from(devices.len()) != Ok(number) {
            let found = devices.len();
            return Err(format!("container {at} has {found} GPUs in {DEVICES}, it wants {number}"));
        }
        devices.iter().try_for_each(|device| check(device, &known))?;
    }
    Ok(true)
}

/// Writes to the pod what the device plugin answers: nothing is left to allocate.
pub fn confirm(pod: &mut Value) {
    let annotations = &mut pod["metadata"]["annotations"];
    annotations[PHASE] = json!("success");
    annotations[DEVICES] = json!("");
}

/// Writes to the pod that it cannot run, as a kubelet does.
pub(super) fn refuse(pod: &mut Value, problem: &str) {
    pod["metadata"]["annotations"][PHASE] = json!("failed");
    let message = format!("Allocate failed due to {problem}, which is unexpected");
    pod["status"]["phase"] = json!("Failed");
    pod["status"]["reason"] = json!("UnexpectedAdmissionError");
    pod["status"]["message"] = json!(message);
}

/// True if the node is locked for vGPUs.
pub(super) fn is_locked(node: &Value) -> bool {
    node["metadata"]["annotations"][LOCK].is_string()
}

/// Removes the lock of the node.
pub(super) fn unlock(node: &mut Value) {
    if let Some(annotations) = node["metadata"]["annotations"].as_object_mut() {
        annotations.remove(LOCK);
    }
}

/// Returns the number of GPUs that a container requests; memory alone is that of one.
fn gpus(container: &Value) -> u64 {
    let amount = |name: &str| {
        let of = |list: &str| match &container["resources"][list][name] {
            Value::String(text) => text.parse::<u64>().ok(),
            other => other.as_u64(),
        };
        of("limits").or_else(|| of("requests"))
    };
    let memory = amount("volcano.sh/vgpu-memory");
    amount("volcano.sh/vgpu-number").or(memory.map(|_| 1)).unwrap_or(0)
}

/// # Errors
/// The entry is no share of a GPU of the node.
fn check(entry: &str, known: &[&str]) -> Result<(), String> {
    let fields: Vec<&str> = entry.split(',').collect();
    let [device, vendor, memory, cores] = fields[..] else {
        return Err(format!("{entry:?} in {DEVICES} has not 4 fields"));
    };
    let uuid = device.split('[').next().unwrap_or(device);
    let is_amount = |text: &str| text.parse::<u64>().is_ok();
    match vendor == VENDOR && known.contains(&uuid) && is_amount(memory) && is_amount(cores) {
        true => Ok(()),
        false => Err(format!("{entry:?} in {DEVICES} is no share of a GPU of the node")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(devices: &str) -> Value {
        let wants = |resources: Value| json!({"resources": {"limits": resources}});
        json!({"metadata": {"annotations": {PHASE: "allocating", NODE: "n", TIME: "7",
            DEVICES: devices}},
        "spec": {"containers": [
            wants(json!({})),
            wants(json!({"volcano.sh/vgpu-memory": "100"})),
            wants(json!({"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-memory": "5"})),
        ]}})
    }

    fn node() -> Value {
        let mut node = json!({"metadata": {"name": "n"}});
        register(&mut node, 2, 16384);
        node
    }

    #[test]
    fn a_node_registers_its_gpus() {
        let node = node();
        let cards = "GPU-n-0,10,16384,NVIDIA-vcsim,true,hami-core:\
            GPU-n-1,10,16384,NVIDIA-vcsim,true,hami-core:";
        assert_eq!(node["metadata"]["annotations"][REGISTER], cards);
        let allocatable = &node["status"]["allocatable"];
        assert_eq!(allocatable["volcano.sh/vgpu-memory"], "32768");
        assert_eq!(allocatable["volcano.sh/vgpu-number"], "20");
        assert_eq!(allocatable["volcano.sh/vgpu-cores"], "200");
        let mut without = json!({"metadata": {"name": "n"}});
        register(&mut without, 0, 1);
        assert_eq!(without, json!({"metadata": {"name": "n"}}));
    }

    #[test]
    fn the_parts_have_to_be_those_of_the_containers() {
        let right = ";GPU-n-0,NVIDIA,100,0:;GPU-n-0,NVIDIA,5,0:GPU-n-1[g-1],NVIDIA,5,0:";
        assert_eq!(allocate(&pod(right), &node()), Ok(true));
        let of_wrong_containers = "GPU-n-0,NVIDIA,100,0:;GPU-n-0,NVIDIA,5,0:GPU-n-1,NVIDIA,5,0:;";
        for (devices, problem) in [
            (
                of_wrong_containers,
                "container 0 has 1 GPUs in volcano.sh/devices-to-allocate, it wants 0",
            ),
            ("", "container 1 has 0 GPUs in volcano.sh/devices-to-allocate, it wants 1"),
            (
                ";GPU-x,NVIDIA,1,0:",
                "\"GPU-x,NVIDIA,1,0\" in volcano.sh/devices-to-allocate is no share of a GPU of the node",
            ),
            (
                ";GPU-n-0,NVIDIA,1:",
                "\"GPU-n-0,NVIDIA,1\" in volcano.sh/devices-to-allocate has not 4 fields",
            ),
        ] {
            assert_eq!(allocate(&pod(devices), &node()), Err(problem.to_owned()), "{devices}");
        }
        let mut elsewhere = pod(right);
        elsewhere["metadata"]["annotations"][NODE] = json!("m");
        let problem = "volcano.sh/vgpu-node names \"m\"";
        assert_eq!(allocate(&elsewhere, &node()), Err(problem.to_owned()));
        let mut unnamed = pod(right);
        unnamed["metadata"]["annotations"] = json!({});
        let problem = "volcano.sh/bind-phase is \"\" in place of allocating";
        assert_eq!(allocate(&unnamed, &node()), Err(problem.to_owned()));
    }

    #[test]
    fn what_it_answers() {
        let mut served = pod("x");
        confirm(&mut served);
        assert_eq!(served["metadata"]["annotations"][PHASE], "success");
        assert_eq!(allocate(&served, &node()), Ok(false));
        refuse(&mut served, "it");
        assert_eq!(served["status"]["reason"], "UnexpectedAdmissionError");
        let mut locked = json!({"metadata": {"annotations": {LOCK: "t", "x": "y"}}});
        assert!(is_locked(&locked));
        unlock(&mut locked);
        assert!(!is_locked(&locked));
        assert_eq!(locked, json!({"metadata": {"annotations": {"x": "y"}}}));
    }
}

//! Simulated nodes: `node-0`, `node-1`, ... all of one size, spread over ten zones.

use serde_json::{Value, json};

use super::clock;

/// Zones that nodes are dealt over, in turn.
const ZONES: u32 = 10;

/// The node of that number. Amounts are quantities.
pub(super) fn node(number: u32, cpu: &str, memory: &str, pods: u32) -> Value {
    let name = format!("node-{number}");
    let amounts = json!({
        "cpu": cpu, "memory": memory, "pods": pods.to_string(), "ephemeral-storage": "500Gi",
    });
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "topology.kubernetes.io/region": "sim",
                "topology.kubernetes.io/zone": format!("zone-{}", number % ZONES),
            },
        },
        "spec": {},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [
                condition("Ready", "True", "KubeletReady"),
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            ],
            "addresses": [
                { "type": "InternalIP", "address": address(number) },
                { "type": "Hostname", "address": name },
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.36.0+vcsim", "operatingSystem": "linux",
                "architecture": "amd64", "osImage": "vcsim", "kernelVersion": "0",
                "containerRuntimeVersion": "vcsim://0", "machineID": "", "systemUUID": "",
                "bootID": "", "kubeProxyVersion": "",
            },
        },
    })
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    let now = clock::timestamp();
    json!({
        "type": kind, "status": status, "reason": reason,
        "lastTransitionTime": now, "lastHeartbeatTime": now,
    })
}

/// An address in 10.0.0.0/9.
fn address(number: u32) -> String {
    let bytes = number.to_be_bytes();
    format!("10.{}.{}.{}", bytes[1] & 0x7f, bytes[2], bytes[3])
}

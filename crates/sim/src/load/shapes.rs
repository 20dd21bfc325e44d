//! The objects of a load: nodes, a queue, PodGroups and pods of the one shape that all measurements
//! share, so that figures compare. A pod is what Volcano's Job controller makes of a Job of one
//! task: projected token volume, default tolerations, an owner, four labels, six annotations.

use serde_json::{Value, json};

/// How many nodes and gangs there are, and what a pod asks for.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Nodes of 64 CPUs, 256Gi and 110 pods that are created first.
    pub nodes: u32,
    /// HyperNodes of tier 1 between which the nodes are divided. With one or more every gang has to
    /// stay in one of them.
    pub hyper_nodes: u32,
    /// Gangs, each with a PodGroup.
    pub gangs: u32,
    /// Pods of a gang, all of which it needs.
    pub size: u32,
    /// CPU request and limit of a pod, a quantity.
    pub cpu: String,
    /// Memory request and limit of a pod, a quantity.
    pub memory: String,
    /// Where the gangs are.
    pub namespace: String,
    /// The queue of the gangs.
    pub queue: String,
    /// Names of the gangs are this and a number.
    pub prefix: String,
    /// The scheduler of the pods.
    pub scheduler_name: String,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            nodes: 100,
            hyper_nodes: 0,
            gangs: 10,
            size: 10,
            cpu: "1".to_owned(),
            memory: "1Gi".to_owned(),
            namespace: "load".to_owned(),
            queue: "load".to_owned(),
            prefix: "gang".to_owned(),
            scheduler_name: "volcano".to_owned(),
        }
    }
}

/// A path to POST to, and what.
#[derive(Clone, Debug)]
pub struct LoadObject {
    /// Of the collection.
    pub path: String,
    /// The object.
    pub body: Value,
}

/// When what runs already was created.
const CREATED: &str = "2026-01-01T00:00:00Z";
const VOLCANO: &str = "/apis/scheduling.volcano.sh/v1beta1";

impl Workload {
    /// All pods.
    pub fn n_pods(&self) -> usize {
        self.gangs as usize * self.size as usize
    }

    /// What must exist before the gangs: namespace and queue.
    pub fn surroundings(&self) -> [LoadObject; 2] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": self.namespace}});
        let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": self.queue}, "spec": {"weight": 1, "reclaimable": true},
            "status": {"state": "Open"}});
        [
            LoadObject { path: "/api/v1/namespaces".to_owned(), body: namespace },
            LoadObject { path: format!("{VOLCANO}/queues"), body: queue },
        ]
    }

    /// The node of that number.
    pub fn node(&self, number: u32) -> LoadObject {
        LoadObject { path: "/api/v1/nodes".to_owned(), body: node(number) }
    }

    /// The HyperNode of that number, with its part of the nodes.
    pub fn hyper_node(&self, number: u32) -> LoadObject {
        let first = |number: u32| {
            u64::from(self.nodes) * u64::from(number) / u64::from(self.hyper_nodes.max(1))
        };
        let members: Vec<Value> = (first(number)..first(number + 1))
            .filter_map(|node| u32::try_from(node).ok())
            .map(|node| json!({"type": "Node", "selector": {"exactMatch": {"name": node_name(node)}}}))
            .collect();
        let body = json!({"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
            "metadata": {"name": format!("rack-{number:05}")},
            "spec": {"tier": 1, "members": members}});
        LoadObject { path: "/apis/topology.volcano.sh/v1alpha1/hypernodes".to_owned(), body }
    }

    /// The PodGroup of a gang.
    pub fn pod_group(&self, gang: u32) -> LoadObject {
        let path = format!("{VOLCANO}/namespaces/{}/podgroups", self.namespace);
        let mut body = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
            "metadata": {"name": self.gang_name(gang), "namespace": self.namespace,
                "ownerReferences": [self.owner(gang)]},
            "spec": {"minMember": self.size, "minTaskMember": {"worker": self.size},
                "queue": self.queue},
            "status": {"phase": "Pending"},
        });
        if let Some(total) = self.total_requests() {
            body["spec"]["minResources"] = total;
        }
        if 0 < self.hyper_nodes {
            body["spec"]["networkTopology"] = json!({"mode": "hard", "highestTierAllowed": 1});
        }
        LoadObject { path, body }
    }

    /// A pod of a gang.
    pub fn pod(&self, gang: u32, index: u32) -> LoadObject {
        let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
        let job = self.gang_name(gang);
        let body = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("{job}-worker-{index}"), "namespace": self.namespace,
                "ownerReferences": [self.owner(gang)],
                "labels": {
                    "volcano.sh/job-name": job, "volcano.sh/job-namespace": self.namespace,
                    "volcano.sh/queue-name": self.queue, "volcano.sh/task-spec": "worker",
                },
                "annotations": {
                    "scheduling.k8s.io/group-name": job, "volcano.sh/job-name": job,
                    "volcano.sh/job-version": "0", "volcano.sh/queue-name": self.queue,
                    "volcano.sh/task-spec": "worker",
                    "volcano.sh/template-uid": format!("{job}-worker"),
                },
            },
            "spec": self.pod_spec(),
        });
        LoadObject { path, body }
    }

    /// The PodGroup of a gang whose pods all run, as it is stored.
    pub fn running_pod_group(&self, gang: u32) -> Value {
        let mut group = self.pod_group(gang).body;
        group["metadata"]["uid"] = self.uid(1, gang, 0).into();
        group["metadata"]["creationTimestamp"] = CREATED.into();
        group["status"] = json!({"phase": "Running", "running": self.size, "conditions": [
            {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled",
                "transitionID": "4d0b9ae6-9b5f-4bd6-97ee-ae1d9b0b3a1e", "lastTransitionTime": CREATED},
        ]});
        group
    }

    /// A pod of a gang that runs on the node of that number, as it is stored.
    pub fn running_pod(&self, gang: u32, index: u32, node: u32) -> Value {
        let mut pod = self.pod(gang, index).body;
        let condition = |kind: &str| {
            json!({"type": kind, "status": "True", "lastProbeTime": null,
                "lastTransitionTime": CREATED})
        };
        let conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
        let address = format!("10.{}.{}.{}", gang >> 16 & 255, gang >> 8 & 255, gang & 255);
        pod["metadata"]["uid"] = self.uid(2, gang, index).into();
        pod["metadata"]["creationTimestamp"] = CREATED.into();
        pod["spec"]["nodeName"] = node_name(node).into();
        pod["status"] = json!({
            "phase": "Running", "startTime": CREATED, "qosClass": "Guaranteed",
            "hostIP": "10.0.0.1", "podIP": address, "podIPs": [{"ip": address}],
            "conditions": conditions,
            "containerStatuses": [{
                "name": "main", "image": "registry.example.com/team/train:v1", "ready": true,
                "imageID": "registry.example.com/team/train@sha256:0123456789abcdef",
                "containerID": format!("containerd://{gang:032x}{index:032x}"),
                "restartCount": 0, "started": true, "lastState": {},
                "state": {"running": {"startedAt": CREATED}},
            }],
        });
        pod
    }

    /// Position of a pod among all, by its name.
    pub fn position(&self, pod: &str) -> Option<usize> {
        let rest = pod.strip_prefix(&self.prefix)?.strip_prefix('-')?;
        let (gang, index) = rest.split_once("-worker-")?;
        let (gang, index): (usize, usize) = (gang.parse().ok()?, index.parse().ok()?);
        let position = gang * self.size as usize + index;
        (index < self.size as usize && position < self.n_pods()).then_some(position)
    }

    /// The path to which a binding of the pod at a position is POSTed.
    pub(super) fn binding_path(&self, position: usize) -> String {
        let name = self.pod_name(position);
        format!("/api/v1/namespaces/{}/pods/{name}/binding", self.namespace)
    }

    /// The name of the pod at a position.
    pub(super) fn pod_name(&self, position: usize) -> String {
        let size = self.size.max(1) as usize;
        format!("{}-{}-worker-{}", self.prefix, position / size, position % size)
    }

    fn gang_name(&self, gang: u32) -> String {
        format!("{}-{gang}", self.prefix)
    }

    fn owner(&self, gang: u32) -> Value {
        json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "name": self.gang_name(gang), "uid": format!("00000000-0000-4000-8000-{gang:012x}"),
            "controller": true, "blockOwnerDeletion": true})
    }

    /// Another one for every object of every prefix.
    fn uid(&self, kind: u8, gang: u32, index: u32) -> String {
        let add = |hash: u16, byte| hash.wrapping_mul(31).wrapping_add(u16::from(byte));
        let prefix = self.prefix.bytes().fold(0, add);
        format!(
            "{kind:08x}-{prefix:04x}-4000-8000-{:012x}",
            u64::from(gang) << 16 | u64::from(index)
        )
    }

    /// Of a whole gang; absent when an amount cannot be read, which the server will say.
    fn total_requests(&self) -> Option<Value> {
        let total = |amount: &str| {
            let amount: vc_resource::Quantity = amount.parse().ok()?;
            let milli = amount.milli().checked_mul(i64::from(self.size))?;
            Some(match milli % 1000 {
                0 => (milli / 1000).to_string(),
                _ => format!("{milli}m"),
            })
        };
        Some(json!({"cpu": total(&self.cpu)?, "memory": total(&self.memory)?}))
    }

    fn pod_spec(&self) -> Value {
        let amounts = json!({"cpu": self.cpu, "memory": self.memory});
        let toleration = |key: &str| {
            json!({"key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300})
        };
        let token = json!({"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}});
        let authority = json!({"configMap": {"name": "kube-root-ca.crt",
            "items": [{"key": "ca.crt", "path": "ca.crt"}]}});
        let namespace = json!({"downwardAPI": {"items": [{"path": "namespace",
            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}});
        json!({
            "schedulerName": self.scheduler_name, "restartPolicy": "Never",
            "serviceAccountName": "default",
            "tolerations": [
                toleration("node.kubernetes.io/not-ready"),
                toleration("node.kubernetes.io/unreachable"),
            ],
            "volumes": [{"name": "token",
                "projected": {"defaultMode": 420, "sources": [token, authority, namespace]}}],
            "containers": [{
                "name": "main", "image": "registry.example.com/team/train:v1",
                "command": ["python", "-m", "train"],
                "env": [{"name": "VC_TASK_INDEX", "value": "0"}, {"name": "MODE", "value": "a"}],
                "resources": {"requests": amounts, "limits": amounts},
                "volumeMounts": [{"name": "token", "readOnly": true,
                    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
            }],
        })
    }
}

fn node_name(number: u32) -> String {
    format!("node-{number:05}")
}

/// 64 CPUs, 256Gi, 110 pods, 500Gi of storage; ten zones, ten pools.
fn node(number: u32) -> Value {
    let name = node_name(number);
    let amounts =
        json!({"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"});
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": "",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64", "topology.kubernetes.io/region": "region-1",
            "topology.kubernetes.io/zone": format!("zone-{}", number % 10),
            "node.kubernetes.io/instance-type": "type-64",
            "pool": format!("pool-{}", number / 10 % 10),
        }},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [
            condition("Ready", "True", "KubeletReady"),
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        ]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_names_are_inverse() {
        let workload = Workload { gangs: 3, size: 7, ..Workload::default() };
        for position in 0..workload.n_pods() {
            assert_eq!(workload.position(&workload.pod_name(position)), Some(position));
        }
        for foreign in ["gang-3-worker-0", "gang-0-worker-7", "gang-x-worker-0", "other", "gang-"] {
            assert_eq!(workload.position(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn what_runs_has_a_node_and_a_status() {
        let workload = Workload { size: 2, ..Workload::default() };
        let (first, second) = (workload.running_pod(1, 0, 7), workload.running_pod(1, 1, 8));
        assert_eq!(first["spec"]["nodeName"], node(7)["metadata"]["name"]);
        assert_eq!(first["status"]["conditions"].as_array().map(Vec::len), Some(4));
        let uid = |pod: &Value| pod["metadata"]["uid"].as_str().unwrap().to_owned();
        assert_ne!(uid(&first), uid(&second));
        let other = Workload { size: 2, prefix: "other".to_owned(), ..Workload::default() };
        assert_ne!(uid(&first), uid(&other.running_pod(1, 0, 7)));
        assert_eq!(workload.running_pod_group(1)["status"]["running"], 2);
    }

    #[test]
    fn hyper_nodes_divide_the_nodes() {
        let workload = Workload { nodes: 10, hyper_nodes: 3, ..Workload::default() };
        let members = |number: u32| -> Vec<String> {
            let body = workload.hyper_node(number).body;
            let members = body["spec"]["members"].as_array().unwrap().iter();
            let name =
                |it: &Value| it["selector"]["exactMatch"]["name"].as_str().unwrap().to_owned();
            members.map(name).collect()
        };
        let sizes: Vec<usize> = (0..3).map(|number| members(number).len()).collect();
        assert_eq!(sizes, [3, 3, 4]);
        let all: Vec<String> = (0..3).flat_map(members).collect();
        let nodes: Vec<String> = (0..10).map(node_name).collect();
        assert_eq!(all, nodes);
        assert_eq!(workload.pod_group(0).body["spec"]["networkTopology"]["mode"], "hard");
        let flat = Workload { hyper_nodes: 0, ..workload };
        assert!(flat.pod_group(0).body["spec"].get("networkTopology").is_none());
    }

    #[test]
    fn a_gang_asks_for_the_sum_of_its_pods() {
        let workload =
            Workload { size: 3, cpu: "500m".into(), memory: "1Gi".into(), ..Workload::default() };
        let group = workload.pod_group(0).body;
        assert_eq!(group["spec"]["minResources"], json!({"cpu": "1500m", "memory": "3221225472"}));
        assert_eq!(group["spec"]["minMember"], 3);
        let pod = workload.pod(2, 1);
        assert_eq!(pod.path, "/api/v1/namespaces/load/pods");
        assert_eq!(pod.body["metadata"]["annotations"].as_object().map(|it| it.len()), Some(6));
        assert_eq!(pod.body["metadata"]["labels"].as_object().map(|it| it.len()), Some(4));
    }
}

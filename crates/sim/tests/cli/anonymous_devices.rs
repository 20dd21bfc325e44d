//! Bundles without names of clusters with shared devices. Specification: answers.md 15 (ANS-102).

use vc_bundle::Bundle;

use crate::common::{file, folder, vcsim};

const GPUS: &str = "GPU-apollo-0,10,16000,NVIDIA-A10,true,hami-core:";
const NPUS: &str = concat!(
    r#"[{"id":"apollo-A","index":0,"count":7,"devmem":21527,"devcore":8,"#,
    r#""type":"Ascend310P","health":true}]"#
);
const QUEUE: &str = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n\
                     metadata: {name: default}\nspec: {weight: 1}\nstatus: {state: Open}\n---\n";

/// A node of this name with annotations, labels and amounts as YAML.
fn node(name: &str, annotations: &str, labels: &str, amounts: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, annotations: {{{annotations}}}, \
         labels: {{{labels}}}}}\nstatus: {{allocatable: {{cpu: \"8\", memory: 16Gi, pods: \"99\", \
         {amounts}}}}}\n---\n"
    )
}

/// A pod of this name and its PodGroup.
fn pod(name: &str, annotations: &str, labels: &str, requests: &str) -> String {
    format!(
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}}}\n\
         spec: {{minMember: 1, queue: default}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: \
         {name}, annotations: {{scheduling.k8s.io/group-name: {name}{annotations}}}, labels: \
         {{{labels}}}}}\nspec:\n  schedulerName: volcano\n  containers: [{{name: c, image: i, \
         resources: {{requests: {{cpu: \"1\", {requests}}}}}}}]\nstatus: {{phase: Pending}}\n---\n"
    )
}

/// Runs a cluster with one pod that gets a device. Returns the inputs of its bundle without names.
fn anonymous_inputs(test: &str, switch: &str, objects: &str) -> String {
    let conf = format!(
        "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  \
         - name: predicates\n  - name: deviceshare\n    \
         arguments: {{{switch}: true, deviceshare.NodeLockEnable: true}}\n"
    );
    let conf = file(&format!("{test}_conf"), "scheduler.conf", &conf);
    let cluster = file(&format!("{test}_cluster"), "cluster.yaml", &format!("{QUEUE}{objects}"));
    let folder = folder(test);
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (named, shared) = (path("named.tar.gz"), path("shared.tar.gz"));
    let flags = ["run", "--cycles", "3", "--kubelet", "instant", "--scheduler-conf", &conf];
    let called = vcsim(&[&flags[..], &["--bundle", &named, &cluster]].concat());
    assert_eq!(called.code, 0, "{}", called.stderr);
    let called = vcsim(&["replay", "--anonymize", "--to-bundle", &shared, &named]);
    let same = "1..3: 3 cycles, 1 bind, 0 evictions: the same\n";
    assert_eq!((called.code, &*called.stdout), (0, same), "{}", called.stderr);
    let called = vcsim(&["replay", &shared]);
    assert_eq!((called.code, &*called.stdout), (0, same), "{}", called.stderr);
    let bundle = Bundle::read(&*std::fs::read(&shared).unwrap()).unwrap();
    let inputs = String::from_utf8_lossy(bundle.file("inputs-0.cbor").unwrap()).into_owned();
    assert!(!inputs.contains("apollo"), "{inputs}");
    inputs
}

/// The name of the pod consists of words in the annotation.
#[test]
fn ans_102_a_node_with_vgpus_decides_the_same_without_names() {
    let gpus = format!("volcano.sh/node-vgpu-register: \"{GPUS}\"");
    let amounts = "volcano.sh/vgpu-number: \"10\", volcano.sh/vgpu-memory: \"16000\", \
        volcano.sh/vgpu-cores: \"100\"";
    let chosen = ", volcano.sh/vgpu-mode: hami-core, nvidia.com/use-gputype: a10";
    let requests = "volcano.sh/vgpu-memory: \"6000\"";
    let objects = node("apollo-gpu", &gpus, "", amounts) + &pod("core-hami", chosen, "", requests);
    let inputs = anonymous_inputs("anonymous_vgpu", "deviceshare.VGPUEnable", &objects);
    assert!(inputs.contains("NVIDIA-A10,true,hami-core:"), "{inputs}");
}

/// The name of the pod consists of names of fields in the annotation.
#[test]
fn ans_102_a_node_with_npus_decides_the_same_without_names() {
    let npus = format!("hami.io/node-register-Ascend310P: '{NPUS}'");
    let amounts = "huawei.com/Ascend310P: \"7\"";
    let requests = "huawei.com/Ascend310P: \"1\", huawei.com/Ascend310P-memory: \"6000\"";
    let objects = node("apollo-npu", &npus, "", amounts) + &pod("count-devmem", "", "", requests);
    let switch = "deviceshare.AscendHAMiVNPUEnable";
    let inputs = anonymous_inputs("anonymous_npu", switch, &objects);
    assert!(inputs.contains("\"devmem\":21527"), "{inputs}");
}

#[test]
fn ans_102_a_node_with_chips_of_mind_cluster_decides_the_same_without_names() {
    let chips = "huawei.com/Ascend310P: \"Ascend310P-0,Ascend310P-1\"";
    let labels = "accelerator: huawei-Ascend310P, servertype: Ascend310P-8";
    let amounts = "huawei.com/npu-core: \"16\"";
    let asked = "ring-controller.atlas: ascend-310P, vnpu-level: high";
    let requests = "huawei.com/npu-core: \"2\"";
    let node = node("apollo-chips", chips, labels, amounts);
    let objects = node + &pod("servertype-level", "", asked, requests);
    let switch = "deviceshare.AscendMindClusterVNPUEnable";
    let inputs = anonymous_inputs("anonymous_chips", switch, &objects);
    assert!(inputs.contains("Ascend310P-0,Ascend310P-1"), "{inputs}");
}

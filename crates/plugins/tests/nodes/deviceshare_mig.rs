//! The plugin `deviceshare` with GPUs in mode `mig` and a device configuration. Specification:
//! plugins-nodes.md 16.2 and 16.7, test case 148.

use serde_json::{Value, json};
use vc_framework::Plugin;
use vc_model::{NodeRecord, PodRecord, TaskStatus};

use crate::bed::{PluginFixture, built, node, plugin, pod, running};

const VGPU: &str = "deviceshare.VGPUEnable";
const CONFIG: &str = "deviceshare.DeviceConfig";
const IDS: &str = "volcano.sh/vgpu-ids-new";
const MEMORY: &str = "volcano.sh/vgpu-memory";
const NUMBER: &str = "volcano.sh/vgpu-number";
const CORES: &str = "volcano.sh/vgpu-cores";
const NOT_FITTED: &str = "hami-vgpuDeviceSharing error: not enough gpu fitted on this node";

fn with_config(config: Value) -> Box<dyn Plugin> {
    plugin("deviceshare", &[(VGPU, json!(true)), (CONFIG, config)])
}

/// A plugin that knows these groups of pairs of memory and count for the model X1.
fn mig(factor: i64, groups: &[(&str, &[(i64, i64)])]) -> Box<dyn Plugin> {
    let types = |types: &[(i64, i64)]| -> Vec<Value> {
        let one = |(memory, count)| json!({"name": "it", "memory": memory, "count": count});
        types.iter().map(|&it| one(it)).collect()
    };
    let groups: Vec<Value> = groups
        .iter()
        .map(|&(name, list)| json!({"group": name, "geometries": types(list)}))
        .collect();
    let geometry = json!({"models": ["X1"], "allowedGeometries": groups});
    with_config(json!({"nvidia": {"gpuMemoryFactor": factor, "knownMigGeometries": [geometry]}}))
}

/// Node `n` with this annotation.
fn registered(text: &str) -> NodeRecord {
    let amounts = [(NUMBER, "40"), (MEMORY, "400000"), (CORES, "400"), ("x.io/gpus", "9")];
    let annotations = [("volcano.sh/node-vgpu-register".into(), text.into())].into();
    NodeRecord { annotations, ..node("n", &amounts) }
}

/// Node `n` with the card A of 90000 in mode `mig`.
fn card() -> NodeRecord {
    registered("A,10,90000,NVIDIA-X1,true,mig:")
}

fn holder(name: &str, devices: &str) -> PodRecord {
    let mut pod = running(pod(name, &[(MEMORY, "1")]), "n");
    pod.annotations.insert(IDS.into(), devices.into());
    pod
}

/// What a pod with this request gets. `held` are the devices of running pods.
fn choose(plugin: &dyn Plugin, node: NodeRecord, held: &[&str], p: PodRecord) -> String {
    let held = held.iter().enumerate().map(|(at, ids)| holder(&format!("h{at}"), ids));
    let bed = PluginFixture::new(vec![node], held.chain([p]).collect());
    let reserved = plugin.reserve(bed.view(), bed.task("p"), bed.node("n"), TaskStatus::Allocated);
    let reasons = bed.reasons(plugin, "p", "n");
    match reserved {
        Ok(reservation) => {
            assert_eq!(reasons, [""; 0]);
            let shares = reservation.and_then(|it| it.shares).unwrap_or_default();
            shares.get(IDS).map_or("", |ids| &**ids).to_owned()
        }
        Err(why) => {
            assert_eq!(reasons, [why.as_str()]);
            why
        }
    }
}

fn asking(memory: &str) -> PodRecord {
    pod("p", &[(MEMORY, memory)])
}

#[test]
fn nodes_148_a_request_takes_the_smallest_instance_that_holds_it() {
    let two = mig(0, &[("group1", &[(20480, 1), (10240, 1)])]);
    assert_eq!(choose(&*two, card(), &[], asking("10")), "A[group1-1],NVIDIA,10240,0:");
    assert_eq!(choose(&*two, card(), &[], asking("10241")), "A[group1-0],NVIDIA,20480,0:");
    assert_eq!(choose(&*two, card(), &[], asking("20481")), NOT_FITTED);
    // A unit of requests is 2 MiB.
    let factor = mig(2, &[("group1", &[(10240, 1), (20480, 1)])]);
    assert_eq!(choose(&*factor, card(), &[], asking("6144")), "A[group1-1],NVIDIA,10240,0:");
    let single = mig(0, &[("group1", &[(10240, 1)])]);
    let taken = ["A[group1-0],NVIDIA,10240,0:"];
    assert_eq!(choose(&*single, card(), &taken, asking("10")), NOT_FITTED);
    let groups = mig(0, &[("group1", &[(10240, 7)]), ("group2", &[(20480, 3)])]);
    assert_eq!(choose(&*groups, card(), &[], asking("15000")), "A[group2-0],NVIDIA,20480,0:");
}

/// The example of 16.7, and what follows when slots become free.
#[test]
fn nodes_148_slots_of_one_group() {
    let example = mig(1, &[("group1", &[(10240, 7)]), ("group2", &[(20480, 3), (10240, 1)])]);
    let first = "A[group2-0],NVIDIA,20480,0:";
    let chosen = |held: &[&str], memory: &str| choose(&*example, card(), held, asking(memory));
    assert_eq!(chosen(&[], "15000"), first);
    assert_eq!(chosen(&[first], "8000"), "A[group2-3],NVIDIA,10240,0:");
    // The small instance is taken: a large one serves, until all are taken.
    let small = "A[group2-3],NVIDIA,10240,0:";
    assert_eq!(chosen(&[first, small], "8000"), "A[group2-1],NVIDIA,20480,0:");
    let all = [first, small, "A[group2-1],NVIDIA,20480,0:", "A[group2-2],NVIDIA,20480,0:"];
    assert_eq!(chosen(&all, "8000"), NOT_FITTED);
    // While a slot of the first group is taken, the second one is not possible.
    assert_eq!(chosen(&["A[group1-4],NVIDIA,10240,0:"], "15000"), NOT_FITTED);
    assert_eq!(chosen(&["A[group1-0],NVIDIA,10240,0:"], "1"), "A[group1-1],NVIDIA,10240,0:");
    // Slots of two groups, or of one that is not known, cannot be: the card takes nobody.
    let both = ["A[group1-0],NVIDIA,1,0:", "A[group2-0],NVIDIA,1,0:"];
    assert_eq!(chosen(&both, "1"), NOT_FITTED);
    assert_eq!(chosen(&["A[other-0],NVIDIA,1,0:"], "1"), NOT_FITTED);
}

#[test]
fn nodes_148_containers_of_a_pod_get_slots_of_their_own() {
    let groups = mig(1, &[("group1", &[(10240, 2)])]);
    let mut p = pod("p", &[(MEMORY, "9000"), (CORES, "20")]);
    p.containers = vec![p.containers[0].clone(); 2];
    let two = "A[group1-0],NVIDIA,10240,20:;A[group1-1],NVIDIA,10240,20:";
    assert_eq!(choose(&*groups, card(), &[], p.clone()), two);
    p.containers.push(p.containers[0].clone());
    assert_eq!(choose(&*groups, card(), &[], p), NOT_FITTED);
}

#[test]
fn nodes_148_geometries_that_are_built_in() {
    let known = plugin("deviceshare", &[(VGPU, json!(true))]);
    let node = registered("A,10,81920,NVIDIA-NVIDIA A100-SXM4-80GB,true,mig:");
    let chosen = choose(&*known, node, &[], asking("15000"));
    assert_eq!(chosen, "A[group2-0],NVIDIA,20480,0:");
}

/// Without a geometry the card is shared as one of mode `hami-core`, and a warning says so.
#[test]
fn a_mode_mig_without_geometry() {
    let node = || registered("A,10,9,NVIDIA-X2,true,mig:");
    let known = || mig(1, &[("group1", &[(10240, 2)])]);
    assert_eq!(choose(&*known(), node(), &[], asking("1")), "A,NVIDIA,1,0:");
    let (_, warnings) =
        PluginFixture::new(vec![node()], vec![asking("1")]).scores(&mut *known(), "p");
    let warning = "node n: annotation volcano.sh/node-vgpu-register: device A is in mode mig, and no \
        geometry is for its model NVIDIA-X2, it is shared as in mode hami-core\nhint: add the model \
        to nvidia.knownMigGeometries of the device configuration";
    assert_eq!(warnings, [warning]);
    let (_, warnings) =
        PluginFixture::new(vec![card()], vec![asking("1")]).scores(&mut *known(), "p");
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn the_mode_of_a_pod_selects_cards() {
    let known = mig(1, &[("group1", &[(10240, 2)])]);
    let mixed = || registered("A,10,90000,NVIDIA-X1,true,mig:B,10,90000,NVIDIA-X2,true,mps:");
    let asked = |mode: &str| {
        let mut pod = asking("1");
        pod.annotations.insert("volcano.sh/vgpu-mode".into(), mode.into());
        pod
    };
    let instance = "A[group1-0],NVIDIA,10240,0:";
    assert_eq!(choose(&*known, mixed(), &[], asked("mig")), instance);
    assert_eq!(choose(&*known, mixed(), &[], asked("hami-core")), "B,NVIDIA,1,0:");
}

#[test]
fn resources_with_names_of_the_configuration() {
    let names =
        json!({"resourceCountName": "x.io/gpus", "resourceMemoryPercentageName": "x.io/percent"});
    let named = with_config(json!({"nvidia": names, "other": 1}));
    let node = || registered("A,10,1000,NVIDIA-X1,true,hami-core:");
    let asked = |amounts: &[(&str, &str)]| choose(&*named, node(), &[], pod("p", amounts));
    assert_eq!(asked(&[("x.io/gpus", "1")]), "A,NVIDIA,1000,0:");
    assert_eq!(asked(&[("x.io/gpus", "1"), ("x.io/percent", "33")]), "A,NVIDIA,330,0:");
    assert_eq!(asked(&[(MEMORY, "70")]), "A,NVIDIA,70,0:");
}

#[test]
fn geometries_that_make_no_sense_are_left_out() {
    let geometry = |models: Value, group: &str, memory: i64| {
        let types = json!([{"name": "t", "memory": memory, "count": 1}]);
        json!({"models": models, "allowedGeometries": [{"group": group, "geometries": types}]})
    };
    let list = json!([
        geometry(json!([]), "g", 1),
        geometry(json!(["X1"]), "a-b", 1),
        geometry(json!(["X1"]), "g", 0)
    ]);
    let config = json!({"nvidia": {"knownMigGeometries": list}});
    let (_, warnings) = built("deviceshare", &[(VGPU, json!(true)), (CONFIG, config)]);
    let messages: Vec<&str> = warnings.iter().map(|warning| &*warning.message).collect();
    let expected = [
        "nvidia.knownMigGeometries[0] names no models, it is left out",
        "nvidia.knownMigGeometries[1]: group \"a-b\" is no name that annotations can hold, it is left out",
        "nvidia.knownMigGeometries[2]: instance \"t\" of g has memory 0 and count 1, it is left out",
    ];
    assert_eq!(messages, expected);
}

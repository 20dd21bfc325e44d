//! The plugin `deviceshare`. Specification: plugins-nodes.md 16, test cases 138 to 147.

use serde_json::{Value, json};
use vc_framework::{Plugin, SessionInfo, SessionView};
use vc_model::{ContainerRecord, NodeRecord, PodPhase, PodRecord, TaskStatus};

use crate::bed::{PluginFixture, built, node, plugin, pod, running};

const VGPU: &str = "deviceshare.VGPUEnable";
const IDS: &str = "volcano.sh/vgpu-ids-new";
const MEMORY: &str = "volcano.sh/vgpu-memory";
const NUMBER: &str = "volcano.sh/vgpu-number";
const CORES: &str = "volcano.sh/vgpu-cores";
const REASON: &str = "hami-vgpuDeviceSharing error: ";
const NOT_FITTED: &str = "not enough gpu fitted on this node";

fn vgpu(policy: &str) -> Box<dyn Plugin> {
    let weight = ("deviceshare.ScheduleWeight", json!(1));
    let policy: (&str, Value) = ("deviceshare.SchedulePolicy", json!(policy));
    plugin("deviceshare", &[(VGPU, json!(true)), weight, policy])
}

/// Node `n` with these cards, written as `<uuid>:<memory>` or `<uuid>:<memory>:<model>`, which ten
/// containers can share.
fn cards(cards: &[&str]) -> NodeRecord {
    let entry = |card: &&str| {
        let mut parts = card.split(':');
        let (uuid, memory) = (parts.next().expect("a uuid"), parts.next().expect("memory"));
        format!("{uuid},10,{memory},{},true,hami-core:", parts.next().unwrap_or("NVIDIA-A100"))
    };
    let text: String = cards.iter().map(entry).collect();
    registered(&text)
}

fn registered(text: &str) -> NodeRecord {
    let amounts = [(NUMBER, "40"), (MEMORY, "400000"), (CORES, "400"), ("cpu", "9")];
    let annotations = [("volcano.sh/node-vgpu-register".into(), text.into())].into();
    NodeRecord { annotations, ..node("n", &amounts) }
}

fn with(mut pod: PodRecord, key: &str, value: &str) -> PodRecord {
    pod.annotations.insert(key.into(), value.into());
    pod
}

/// A pod of its own PodGroup that runs and has these devices.
fn holder(name: &str, devices: &str) -> PodRecord {
    let pod = with(running(pod(name, &[(MEMORY, "1")]), "n"), IDS, devices);
    with(pod, "scheduling.k8s.io/group-name", name)
}

/// The devices that the pod `p` gets on node `n`, or why it gets none. Filter and allocation agree.
fn choice(plugin: &dyn Plugin, bed: &PluginFixture) -> String {
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
            why.strip_prefix(REASON).unwrap_or(&why).to_owned()
        }
    }
}

fn choose(policy: &str, node: NodeRecord, mut pods: Vec<PodRecord>, p: PodRecord) -> String {
    pods.push(p);
    choice(&*vgpu(policy), &PluginFixture::new(vec![node], pods))
}

fn score(policy: &str, card: &str, held: &[&str], p: PodRecord) -> f64 {
    let mut pods: Vec<PodRecord> =
        held.iter().enumerate().map(|(at, ids)| holder(&format!("h{at}"), ids)).collect();
    pods.push(p);
    PluginFixture::new(vec![cards(&[card])], pods).scores(&mut *vgpu(policy), "p").0[0]
}

/// The score of a node is rounded; before the deviation a shared card scored like an idle one.
#[test]
fn nodes_140_scores() {
    let asked = || pod("p", &[(MEMORY, "1000")]);
    assert_eq!(score("binpack", "G:30000", &["G,NVIDIA,3000,0:"], asked()), 13.0);
    assert_eq!(score("spread", "G:30000", &[], asked()), 100.0);
    assert_eq!(score("spread", "G:30000", &["G,NVIDIA,3000,0:"], asked()), 0.0);
    assert_eq!(score("", "G:30000", &[], asked()), 0.0);
    assert_eq!(score("binpack", "G:0", &[], pod("p", &[(NUMBER, "1")])), 0.0);
}

#[test]
fn nodes_141_without_memory_each_card_is_taken_whole() {
    let node = cards(&["A:30000", "B:20000", "C:30000"]);
    let whole = pod("p", &[(NUMBER, "3"), (CORES, "100")]);
    let devices = "C,NVIDIA,30000,100:B,NVIDIA,20000,100:A,NVIDIA,30000,100:";
    assert_eq!(choose("", node.clone(), vec![], whole.clone()), devices);
    let busy = || vec![holder("h", "B,NVIDIA,1,0:")];
    assert_eq!(choose("", node.clone(), busy(), whole), NOT_FITTED);
    let four = pod("p", &[(NUMBER, "4"), (MEMORY, "1")]);
    assert_eq!(choose("", node, vec![], four), "no enough gpu cards");
}

#[test]
fn nodes_142_the_policy_orders_the_cards() {
    let node = || cards(&["A:9000", "B:9000", "C:9000"]);
    let held = || vec![holder("h1", "B,NVIDIA,3000,0:"), holder("h2", "A,NVIDIA,1000,0:")];
    let asked = || pod("p", &[(MEMORY, "2000")]);
    assert_eq!(choose("binpack", node(), held(), asked()), "B,NVIDIA,2000,0:");
    assert_eq!(choose("spread", node(), held(), asked()), "C,NVIDIA,2000,0:");
    assert_eq!(choose("", node(), held(), asked()), "C,NVIDIA,2000,0:");
    assert_eq!(choose("any other", node(), vec![], asked()), "C,NVIDIA,2000,0:");
    // The containers of a pod see what the earlier ones took.
    let mut three = asked();
    three.containers = vec![three.containers[0].clone(); 3];
    let shared = "A,NVIDIA,2000,0:;A,NVIDIA,2000,0:;A,NVIDIA,2000,0:";
    assert_eq!(choose("binpack", node(), vec![], three.clone()), shared);
    let apart = "A,NVIDIA,2000,0:;B,NVIDIA,2000,0:;C,NVIDIA,2000,0:";
    assert_eq!(choose("spread", node(), vec![], three), apart);
}

/// The parts are counted like the containers of the pod, so that the device plugin finds them.
#[test]
fn a_container_without_a_request_has_an_empty_part() {
    let mut p = pod("p", &[(MEMORY, "2000"), (CORES, "30")]);
    p.containers.insert(0, ContainerRecord::default());
    assert_eq!(choose("", cards(&["A:9000"]), vec![], p), ";A,NVIDIA,2000,30:");
}

#[test]
fn nodes_143_lists_of_models_and_uuids() {
    let node = || cards(&["A:9000:NVIDIA-A100", "B:9000:NVIDIA-Tesla V100", "C:9000:MLU370"]);
    let asked = |annotations: &[(&str, &str)]| {
        annotations
            .iter()
            .fold(pod("p", &[(MEMORY, "1")]), |pod, (key, value)| with(pod, key, value))
    };
    let chosen = |annotations: &[(&str, &str)]| choose("", node(), vec![], asked(annotations));
    let [a, b] = ["A,NVIDIA,1,0:", "B,NVIDIA,1,0:"];
    let (model, no_model) = ("nvidia.com/use-gputype", "nvidia.com/nouse-gputype");
    let (uuid, no_uuid) = ("volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid");
    // Card C is of another vendor.
    assert_eq!(chosen(&[]), b);
    for (annotations, expected) in [
        (&[(model, "a100")][..], a),
        (&[(model, "H100, A100")], a),
        (&[(model, "H100")], NOT_FITTED),
        (&[(no_model, "v100")], a),
        (&[(no_model, "v100,A100")], NOT_FITTED),
        (&[(model, "A100"), (no_model, "A100")], a),
        (&[(model, " , "), (no_model, "")], b),
        (&[(uuid, "A")], a),
        (&[(uuid, " B ,A")], b),
        (&[(no_uuid, "B")], a),
        (&[(uuid, "A,B"), (no_uuid, "B")], a),
        (&[(uuid, ","), (no_uuid, " ")], b),
    ] {
        assert_eq!(chosen(annotations), expected, "{annotations:?}");
    }
    let none = "no GPU matches UUID constraints";
    let (key, no_key) = (uuid, no_uuid);
    assert_eq!(chosen(&[(uuid, "unknown")]), format!("{none} {key}=\"unknown\""));
    let both = format!("{none} {key}=\"A\", {no_key}=\"A\"");
    assert_eq!(chosen(&[(uuid, "A"), (no_uuid, "A")]), both);
    let part = choose("", cards(&["GPU-1:9"]), vec![], asked(&[(uuid, "GPU")]));
    assert_eq!(part, format!("{none} {key}=\"GPU\""));
}

#[test]
fn nodes_144_pods_of_one_group_share_no_card() {
    let policy = "volcano.sh/vgpu-podgroup-policy";
    let [first, second] = ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"];
    let of = |pod: PodRecord, key: &str, group: &str| {
        let mut pod = with(pod, key, group);
        if key == second {
            pod.annotations.remove(first);
        }
        pod
    };
    let spreading = |key: &str| of(with(pod("p", &[(MEMORY, "1")]), policy, "spread"), key, "g");
    let held = |ids: &str, key: &str, group: &str| vec![of(holder("h", ids), key, group)];
    let two = || cards(&["A:9", "B:9"]);
    for key in [first, second] {
        let on_b = held("B,NVIDIA,1,0:", key, "g");
        assert_eq!(choose("", two(), on_b, spreading(key)), "A,NVIDIA,1,0:");
        let on_both = held("A,NVIDIA,0,1:B,NVIDIA,1,0:", key, "g");
        assert_eq!(choose("", two(), on_both, spreading(key)), NOT_FITTED);
        let of_another = held("B,NVIDIA,1,0:", key, "other");
        assert_eq!(choose("", two(), of_another, spreading(key)), "B,NVIDIA,1,0:");
        let with_nothing = held("B,NVIDIA,0,0:", key, "g");
        assert_eq!(choose("", two(), with_nothing, spreading(key)), "B,NVIDIA,1,0:");
    }
    let mut elsewhere = holder("h", "B,NVIDIA,1,0:");
    elsewhere.key.namespace = "other".into();
    let elsewhere = vec![of(elsewhere, first, "g")];
    assert_eq!(choose("", two(), elsewhere, spreading(first)), "B,NVIDIA,1,0:");
    let packed = of(with(pod("p", &[(MEMORY, "1")]), policy, "pack"), first, "g");
    assert_eq!(choose("", two(), held("B,NVIDIA,1,0:", first, "g"), packed), "B,NVIDIA,1,0:");
}

#[test]
fn a_card_is_full_in_each_of_its_amounts() {
    let one = |amounts: &[(&str, &str)], ids: &[&str]| {
        let pods = ids.iter().enumerate().map(|(at, ids)| holder(&format!("h{at}"), ids));
        choose("", cards(&["A:100"]), pods.collect(), pod("p", amounts))
    };
    assert_eq!(one(&[(MEMORY, "50")], &["A,NVIDIA,50,0:"]), "A,NVIDIA,50,0:");
    assert_eq!(one(&[(MEMORY, "51")], &["A,NVIDIA,50,0:"]), NOT_FITTED);
    assert_eq!(one(&[(MEMORY, "1"), (CORES, "60")], &["A,NVIDIA,1,40:"]), "A,NVIDIA,1,60:");
    assert_eq!(one(&[(MEMORY, "1"), (CORES, "61")], &["A,NVIDIA,1,40:"]), NOT_FITTED);
    assert_eq!(one(&[(MEMORY, "1"), (CORES, "100")], &["A,NVIDIA,1,0:"]), NOT_FITTED);
    assert_eq!(one(&[(MEMORY, "1")], &["A,NVIDIA,1,100:"]), NOT_FITTED);
    assert_eq!(one(&[(MEMORY, "1")], &["A,NVIDIA,1,0:"; 10]), NOT_FITTED);
    assert_eq!(one(&[(MEMORY, "1")], &["A,NVIDIA,1,0:"; 9]), "A,NVIDIA,1,0:");
    // Each container of a pod counts (deviation (c) of 16.3).
    let two = "A,NVIDIA,30,0:;A,NVIDIA,30,0:";
    assert_eq!(one(&[(MEMORY, "41")], &[two]), NOT_FITTED);
    assert_eq!(one(&[(MEMORY, "40")], &[two]), "A,NVIDIA,40,0:");
}

#[test]
fn a_node_that_offers_no_vgpu_is_refused() {
    let asked = || pod("p", &[(MEMORY, "1")]);
    let none = "no vGPU is registered on this node";
    assert_eq!(choose("", registered(""), vec![], asked()), none);
    let mut node = cards(&["A:9"]);
    node.allocatable.retain(|(name, _)| &**name != CORES);
    assert_eq!(choose("", node, vec![], asked()), none);
    assert_eq!(
        choose("", registered("A,10,9,NVIDIA,false,hami-core:"), vec![], asked()),
        NOT_FITTED
    );
    let mut without = cards(&["A:9"]);
    without.annotations.clear();
    assert_eq!(choose("", without, vec![], pod("p", &[("cpu", "1")])), "");
}

#[test]
fn the_sharing_mode_is_that_of_the_node() {
    let mode = |mode| with(pod("p", &[(MEMORY, "1")]), "volcano.sh/vgpu-mode", mode);
    assert_eq!(choose("", cards(&["A:9"]), vec![], mode("hami-core")), "A,NVIDIA,1,0:");
    let text = "pod required sharing mode mps is not the same as the node mode hami-core";
    assert_eq!(choose("", cards(&["A:9"]), vec![], mode("mps")), text);
}

/// Adding a pod again, after its allocation or not, and removing it, keeps the use of the card right.
#[test]
fn nodes_146_a_pod_counts_once() {
    use vc_model::ClusterEvent::{PodApplied, PodDeleted};
    let held = || Box::new(holder("h", "A,NVIDIA,60,0:"));
    let asked = pod("p", &[(MEMORY, "40")]);
    let mut bed = PluginFixture::new(vec![cards(&["A:100"])], vec![asked, *held()]);
    bed.apply(PodApplied(held()));
    assert_eq!(choice(&*vgpu(""), &bed), "A,NVIDIA,40,0:");
    bed.apply(PodApplied(Box::new(pod("p", &[(MEMORY, "41")]))));
    assert_eq!(choice(&*vgpu(""), &bed), NOT_FITTED);
    let key = held().key;
    bed.apply(PodDeleted { key, uid: "h".into() });
    assert_eq!(choice(&*vgpu(""), &bed), "A,NVIDIA,41,0:");
}

/// Case 147: a bind that fails leaves no devices, and the annotations of a pod without node count
/// for nothing.
#[test]
fn nodes_147_annotations_of_a_pod_without_node_hold_nothing() {
    let left = PodRecord { node_name: None, ..holder("h", "A,NVIDIA,100,100:") };
    let asked = pod("p", &[(MEMORY, "100")]);
    assert_eq!(choose("", cards(&["A:100"]), vec![left], asked), "A,NVIDIA,100,0:");
}

/// Pods get cards by memory, or by number.
fn gpu(argument: &str, node: NodeRecord, pods: Vec<PodRecord>, p: PodRecord) -> String {
    let plugin = plugin("deviceshare", &[(argument, json!(true))]);
    let bed = PluginFixture::new(vec![node], [pods, vec![p]].concat());
    let reasons = bed.reasons(&*plugin, "p", "n");
    match plugin.reserve(bed.view(), bed.task("p"), bed.node("n"), TaskStatus::Allocated) {
        Ok(reservation) => {
            assert_eq!(reasons, [""; 0]);
            let shares = reservation.and_then(|it| it.shares).unwrap_or_default();
            shares.get(GPU_INDEX).map_or("", |ids| &**ids).to_owned()
        }
        Err(why) => {
            assert_eq!(reasons, [why.as_str()]);
            why
        }
    }
}

const SHARING: &str = "deviceshare.GPUSharingEnable";
const BY_NUMBER: &str = "deviceshare.GPUNumberEnable";
const GPU_MEMORY: &str = "volcano.sh/gpu-memory";
const GPU_NUMBER: &str = "volcano.sh/gpu-number";
const GPU_INDEX: &str = "volcano.sh/gpu-index";
const NO_MEMORY: &str = "GpuShare no enough gpu memory on node n";
const NO_NUMBER: &str = "GpuNumber no enough gpu number on node n";

fn gpus() -> NodeRecord {
    node("n", &[(GPU_MEMORY, "400"), (GPU_NUMBER, "4")])
}

fn on_gpu(name: &str, requests: &[(&str, &str)], ids: &str) -> PodRecord {
    with(running(pod(name, requests), "n"), GPU_INDEX, ids)
}

#[test]
fn nodes_138_the_request_is_the_largest_init_container_or_the_sum() {
    let container = |mib: &str| pod("p", &[(GPU_MEMORY, mib)]).containers.remove(0);
    let asked = |init: &[&str], containers: &[&str]| PodRecord {
        init_containers: init.iter().map(|mib| container(mib)).collect(),
        containers: containers.iter().map(|mib| container(mib)).collect(),
        ..pod("p", &[])
    };
    for (init, containers, fits) in [
        (&[][..], &["60", "40"][..], true),
        (&[], &["60", "41"], false),
        (&["100", "90"], &["30"], true),
        (&["101"], &["30"], false),
        (&["10"], &["60", "41"], false),
    ] {
        let expected = if fits { "0" } else { NO_MEMORY };
        let found = gpu(SHARING, gpus(), vec![], asked(init, containers));
        assert_eq!(found, expected, "{init:?} {containers:?}");
    }
}

#[test]
fn nodes_139_an_oversubscribed_card_is_never_offered() {
    let asked = |mib| pod("p", &[(GPU_MEMORY, mib)]);
    let held = |mib: &str, id: &str| on_gpu(&format!("h{mib}{id}"), &[(GPU_MEMORY, mib)], id);
    let crowded = || vec![held("80", "0"), held("90", "0"), held("95", "1")];
    assert_eq!(gpu(SHARING, gpus(), crowded(), asked("1")), "1");
    assert_eq!(gpu(SHARING, gpus(), crowded(), asked("6")), "2");
    let full = (0..4).map(|id| held("101", &id.to_string())).collect();
    assert_eq!(gpu(SHARING, gpus(), full, asked("1")), NO_MEMORY);
    assert_eq!(gpu(SHARING, gpus(), vec![], asked("101")), NO_MEMORY);
    let ended = PodRecord { phase: PodPhase::Succeeded, ..held("100", "0") };
    assert_eq!(gpu(SHARING, gpus(), vec![ended], asked("100")), "0");
}

#[test]
fn whole_cards_are_the_lowest_that_are_idle() {
    let asked = |number| pod("p", &[(GPU_NUMBER, number)]);
    let held = || vec![on_gpu("h", &[(GPU_NUMBER, "1")], "1")];
    assert_eq!(gpu(BY_NUMBER, gpus(), held(), asked("2")), "0,2");
    assert_eq!(gpu(BY_NUMBER, gpus(), held(), asked("3")), "0,2,3");
    assert_eq!(gpu(BY_NUMBER, gpus(), held(), asked("4")), NO_NUMBER);
    assert_eq!(gpu(BY_NUMBER, gpus(), held(), asked("0")), "");
    let unhealthy = |ids: &str| {
        let mut node = gpus();
        node.annotations.insert("volcano.sh/gpu-unhealthy-ids".into(), ids.into());
        gpu(BY_NUMBER, node, held(), asked("1"))
    };
    assert_eq!(unhealthy("0, 3"), "2");
    assert_eq!(unhealthy(""), "0");
    assert_eq!(unhealthy("0,x"), NO_NUMBER);
    let without_memory = node("n", &[(GPU_NUMBER, "4")]);
    assert_eq!(gpu(BY_NUMBER, without_memory, vec![], asked("1")), NO_NUMBER);
}

#[test]
fn the_time_of_the_choice_is_written_in_nanoseconds() {
    let plugin = plugin("deviceshare", &[(SHARING, json!(true))]);
    let bed = PluginFixture::new(vec![gpus()], vec![pod("p", &[(GPU_MEMORY, "1")])]);
    let info = SessionInfo { now_micros: 1_700_000_000_000_001, ..SessionInfo::default() };
    let view = SessionView { cluster: &bed.cluster, info: &info };
    let reserved = plugin.reserve(view, bed.task("p"), bed.node("n"), TaskStatus::Allocated);
    let shares = reserved.unwrap().unwrap().shares.unwrap();
    let written: Vec<(&str, &str)> = shares.iter().map(|(key, value)| (&**key, &**value)).collect();
    let time = ("volcano.sh/predicate-time", "1700000000000001000");
    assert_eq!(written, [(GPU_INDEX, "0"), time]);
}

#[test]
fn nodes_149_pods_of_one_rule_share_no_gpu() {
    let rules = json!([{"app": "training", "team": "ml"}, {"workload": "inference"}, {}]);
    let (plugin, warnings) =
        built("deviceshare", &[(VGPU, json!(true)), ("deviceshare.GPUExclusiveRules", rules)]);
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].message, "rule 3 has no labels, it is left out");
    let labelled = |mut pod: PodRecord, labels: &[(&str, &str)]| {
        pod.labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        pod
    };
    let (training, inference) =
        ([("app", "training"), ("team", "ml")], [("workload", "inference")]);
    // The number of GPUs that a pod with these labels can have.
    let sees = |labels: &[(&str, &str)]| {
        let fits = |number: &usize| {
            let p = pod("p", &[(NUMBER, &number.to_string()), (MEMORY, "1")]);
            let pods = vec![
                labelled(holder("h0", "A,NVIDIA,1,0:"), &training),
                labelled(holder("h1", "B,NVIDIA,1,0:"), &inference),
                labelled(p, labels),
            ];
            let node = cards(&["A:9", "B:9", "C:9", "D:9"]);
            PluginFixture::new(vec![node], pods).findings(&*plugin, "p", "n").is_empty()
        };
        (1..=4).rev().find(fits).unwrap_or(0)
    };
    assert_eq!(sees(&training), 3);
    assert_eq!(sees(&inference), 3);
    assert_eq!(sees(&[]), 4);
    assert_eq!(sees(&[training[0], training[1], inference[0]]), 2);
    assert_eq!(sees(&[training[0], training[1], ("more", "x")]), 3);
    assert_eq!(sees(&[training[0]]), 4);
    assert_eq!(sees(&[training[0], ("team", "web")]), 4);
}

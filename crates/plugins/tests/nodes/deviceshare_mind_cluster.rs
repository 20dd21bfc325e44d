//! The plugin `deviceshare` with Ascend 310P chips by MindCluster. Specification: plugins-nodes.md
//! 16.10, test cases 156 to 160.

use serde_json::json;
use vc_framework::Plugin;
use vc_model::{ClusterEvent, Code, Labels, NodeRecord, PodRecord, TaskStatus};

use crate::bed::{PluginFixture, node, plugin, pod, running};

const CORES: &str = "huawei.com/npu-core";
const REAL: &str = "huawei.com/AscendReal";
const LIST: &str = "huawei.com/Ascend310P";
const UNHEALTHY: &str = "huawei.com/Ascend310P-Unhealthy";

fn mind_cluster() -> Box<dyn Plugin> {
    let arguments = [
        ("deviceshare.AscendMindClusterVNPUEnable", json!(true)),
        ("deviceshare.ScheduleWeight", json!(1)),
    ];
    plugin("deviceshare", &arguments)
}

/// A node whose device plugin lists these chips, of 8 AI cores each.
fn chips(name: &str, list: &str) -> NodeRecord {
    let mut node = node(name, &[(CORES, "32"), ("cpu", "9")]);
    let labels = [("accelerator", "huawei-Ascend310P"), ("servertype", "Ascend310P-8")];
    node.labels.extend(labels.map(|(key, value)| (key.into(), value.into())));
    node.annotations.insert(LIST.into(), list.into());
    node
}

fn asking(name: &str, cores: &str, labels: &[(&str, &str)]) -> PodRecord {
    let mut pod = pod(name, &[(CORES, cores)]);
    let all = [("ring-controller.atlas", "ascend-310P")];
    pod.labels.extend(all.iter().chain(labels).map(|&(key, value)| (key.into(), value.into())));
    pod
}

/// Pod `p` of the highest level.
fn high(cores: &str) -> PodRecord {
    asking("p", cores, &[("vnpu-level", "high")])
}

/// A pod that has these chips of a node, as `0-vir04`, or `0-vir04=REAL` once the device plugin has
/// reported what it has made.
fn holder(name: &str, node: &str, chips: &str) -> PodRecord {
    let (chips, real) = chips.split_once('=').unwrap_or((chips, ""));
    let mut pod = running(asking(name, "1", &[]), node);
    pod.annotations.insert(CORES.into(), chips.into());
    if !real.is_empty() {
        pod.annotations.insert(REAL.into(), real.into());
    }
    pod
}

fn bed(list: &str, held: &[&str], p: PodRecord) -> PluginFixture {
    let held = held.iter().enumerate().map(|(at, chips)| holder(&format!("h{at}"), "n", chips));
    PluginFixture::new(vec![chips("n", list)], held.chain([p]).collect())
}

/// The chips that the pod `p` gets on node `n`, or why it gets none. Filter and allocation agree.
fn choice(bed: &PluginFixture) -> String {
    let plugin = mind_cluster();
    let reserved = plugin.reserve(bed.view(), bed.task("p"), bed.node("n"), TaskStatus::Allocated);
    let reasons = bed.reasons(&*plugin, "p", "n");
    match reserved {
        Ok(reservation) => {
            assert_eq!(reasons, [""; 0]);
            let shares = reservation.and_then(|it| it.shares).expect("chips");
            assert_eq!(shares.get("predicate-time").map(|time| &**time), Some("0"));
            shares[CORES].to_string()
        }
        Err(why) => {
            assert_eq!(reasons, [why.as_str()]);
            why.strip_prefix("no Ascend310P chip available: ").unwrap_or(&why).to_owned()
        }
    }
}

fn choose(list: &str, held: &[&str], p: PodRecord) -> String {
    choice(&bed(list, held, p))
}

const TWO: &str = "Ascend310P-0,Ascend310P-1";
const OF_2_CORES: &str = "0-vir02_1c=Ascend310P-2c.1cpu-100-0_0";

#[test]
fn nodes_158_a_part_comes_from_the_chip_with_the_least_room() {
    let none = |name: &str, cores: i64, cpus: i64| {
        format!(
            "the request needs {cores} AI cores and {cpus} AI CPUs of one chip ({name}), no chip \
             has them free"
        )
    };
    let full = ["0-vir04=a-0_0", "0-vir02_1c=a-0_1", "0-vir01=a-0_2"];
    for (held, cores, expected) in [
        (&[][..], "4", "0-vir04"),
        (&["1-vir01=a-1_0"], "4", "1-vir04"),
        (&[OF_2_CORES], "2", "0-vir02"),
        (&full, "1", "0-vir01"),
        (&full, "2", "1-vir02"),
        // The three AI CPUs that are left do for a smaller template.
        (&["0-vir04=a-0_0", "1=Ascend310P-1"], "4", "0-vir04_3c"),
        (&["0-vir04=a-0_0", "0-vir01=b-0_1", "0-vir01=c-0_1", "1=x"], "2", "0-vir02_1c"),
        (&["0-vir04=a-0_0", "0-vir04_3c=b-0_1", "1=x"], "1", &none("vir01", 1, 1)),
    ] {
        assert_eq!(choose(TWO, held, high(cores)), expected, "{held:?} {cores}");
    }
}

#[test]
fn nodes_158_parts_share_the_unit_for_images() {
    let dvpp = |value| asking("p", "4", &[("vnpu-dvpp", value)]);
    let one = "Ascend310P-0";
    for (held, value, is_possible) in [
        ("0-vir04_3c_ndvpp=a-0_0", "yes", true),
        ("0-vir01=a-0_0", "yes", false),
        ("0-vir01=a-0_0", "null", true),
        ("0-vir01=a-0_0", "no", true),
    ] {
        let chosen = choose(one, &[held], dvpp(value));
        assert_eq!(chosen.starts_with("0-"), is_possible, "{held} {value}: {chosen}");
    }
    let taken = |cores| choose(one, &["0-vir04_4c_dvpp=a-0_0"], asking("p", cores, &[]));
    assert!(taken("1").starts_with("the request needs 1 AI cores"));
    assert_eq!(choose(one, &["0-vir04_4c_dvpp=a-0_0"], dvpp("no")), "0-vir04_3c_ndvpp");
}

#[test]
fn nodes_158_groups_of_parts_limit_their_size() {
    let group = |at: usize| format!("0-vir01=Ascend310P-1c-10{at}-0_{at}");
    let held: Vec<String> = (0..4).map(group).collect();
    let held: Vec<&str> = held.iter().map(String::as_str).collect();
    let ask = |n_groups: usize, cores| choose("Ascend310P-0", &held[..n_groups], high(cores));
    assert_eq!(ask(2, "4"), "0-vir04");
    assert!(ask(3, "4").starts_with("the request needs 4 AI cores"));
    assert_eq!(ask(3, "2"), "0-vir02");
    assert!(ask(4, "2").starts_with("the request needs 2 AI cores"));
    assert_eq!(ask(4, "1"), "0-vir01");
}

#[test]
fn nodes_159_whole_chips_are_chips_without_pods() {
    let list = "Ascend310P-0,Ascend310P-1,Ascend310P-2";
    assert_eq!(choose(list, &["1-vir01=a-1_0"], high("16")), "0,2");
    let lacking = "the request needs 2 whole chips, 1 are free";
    assert_eq!(choose(list, &["1-vir01=a-1_0", "0=Ascend310P-0"], high("16")), lacking);
    // A list of free chips does not name those of pods.
    assert_eq!(choose("Ascend310P-2", &["0-vir04=a-0_0"], high("1")), "0-vir01");
}

#[test]
fn nodes_159_the_device_plugin_reports_one_kind_of_parts_after_the_other() {
    let waits = "the device plugin has not reported the chips of another pod yet, whose template \
                 differs";
    assert_eq!(choose(TWO, &["0-vir04"], high("2")), waits);
    assert_eq!(choose(TWO, &["0-vir04"], high("8")), waits);
    assert_eq!(choose(TWO, &["0"], high("8")), "1");
    // The chip of a pod that is not reported yet takes no other part.
    assert_eq!(choose(TWO, &["0-vir04"], high("4")), "1-vir04");
    assert_eq!(choose(TWO, &["0-vir04=a-0_0"], high("2")), "0-vir02");
}

#[test]
fn nodes_157_reports_of_the_device_plugin() {
    let report = |pairs: &[(&str, &str)]| -> Labels {
        pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect()
    };
    let read = |pairs| ClusterEvent::DeviceReportsRead(vec![("n".into(), report(pairs))]);
    let mut bed = bed(TWO, &[], high("1"));
    assert_eq!(choice(&bed), "0-vir01");
    bed.apply(read(&[(UNHEALTHY, "Ascend310P-0")]));
    assert_eq!(choice(&bed), "1-vir01");
    bed.apply(read(&[("nodedNodeHealtyStatus", "PreSeparate")]));
    assert_eq!(choice(&bed), "node is PreSeparate, due to nodeD reported node status");
    bed.apply(read(&[("nodedNodeHealtyStatus", "Healthy"), (LIST, "Ascend310P-7")]));
    assert_eq!(choice(&bed), "7-vir01");
    // A report of nothing takes the earlier one away.
    bed.apply(ClusterEvent::DeviceReportsRead(Vec::new()));
    assert_eq!(choice(&bed), "0-vir01");
    // A node that comes later has its report.
    bed.apply(read(&[(LIST, "Ascend310P-5")]));
    bed.apply(ClusterEvent::NodeDeleted { name: "n".into() });
    bed.apply(ClusterEvent::NodeApplied(Box::new(chips("n", TWO))));
    assert_eq!(choice(&bed), "5-vir01");
}

#[test]
fn nodes_157_a_node_without_chips_is_refused_for_good() {
    let plugin = mind_cluster();
    let mut broken = bed("Ascend910-0", &[], high("1"));
    let finding = &broken.findings(&*plugin, "p", "n")[0];
    assert_eq!(finding.code, Code::Unresolvable);
    assert_eq!(choice(&broken), "no Ascend310P is registered on this node");
    let mut plugin = mind_cluster();
    let (_, warnings) = broken.scores(&mut *plugin, "p");
    assert_eq!(
        warnings,
        ["node n: annotation huawei.com/Ascend310P: not the name of a chip: \"Ascend910-0\", its \
          devices are not used\nhint: restart the Ascend device plugin of the node, which writes it"]
    );
    broken.apply(ClusterEvent::NodeApplied(Box::new(chips("n", TWO))));
    assert_eq!(broken.scores(&mut *plugin, "p").1, [""; 0]);
}

#[test]
fn nodes_160_the_node_with_the_fewest_free_cores_scores() {
    let scores = |held: &[(&str, &str)], p| {
        let nodes = ["a", "b", "c"].map(|name| chips(name, "Ascend310P-0"));
        let holders = held.iter().enumerate().map(|(at, (node, chips))| {
            let mut pod = holder(&format!("h{at}"), node, chips);
            let cores = "4".parse().expect("a quantity");
            pod.containers[0].requests = vec![(CORES.into(), cores)];
            pod
        });
        let bed = PluginFixture::new(nodes.to_vec(), holders.chain([p]).collect());
        bed.scores(&mut *mind_cluster(), "p").0
    };
    assert_eq!(scores(&[], high("1")), [8.0, 0.0, 0.0]);
    assert_eq!(scores(&[("b", "0-vir04=a-0_0")], high("1")), [0.0, 8.0, 0.0]);
    // On b the pod would get vir04_3c.
    assert_eq!(scores(&[("b", "0-vir04=a-0_0")], high("4")), [16.0, 8.0, 0.0]);
    // Pods that request no chips score nothing.
    assert_eq!(scores(&[], pod("p", &[("cpu", "1")])), [0.0; 3]);
}

//! The plugin `deviceshare` with NPUs of Ascend by HAMi. Specification: plugins-nodes.md 16.9, test
//! cases 151 to 153.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use vc_framework::Plugin;
use vc_model::{Code, NodeRecord, PodRecord, TaskStatus};

use crate::bed::{PluginFixture, built, node, plugin, pod, running};

const HAMI: &str = "deviceshare.AscendHAMiVNPUEnable";
const CONFIG: &str = "deviceshare.DeviceConfig";
const NUMBER: &str = "huawei.com/Ascend310P";
const MEMORY: &str = "huawei.com/Ascend310P-memory";
const CORES: &str = "huawei.com/Ascend310P-core";
const ALLOCATED: &str = "hami.io/Ascend310P-devices-allocated";
const SEVERAL: &str =
    "vNPU does not support partial memory allocation when requesting multiple devices";

fn vnpu(policy: &str) -> Box<dyn Plugin> {
    let policy: (&str, Value) = ("deviceshare.SchedulePolicy", json!(policy));
    plugin("deviceshare", &[(HAMI, json!(true)), ("deviceshare.ScheduleWeight", json!(1)), policy])
}

fn npu(id: &str, index: i64, memory: i64) -> Value {
    json!({"id": id, "index": index, "count": 7, "devmem": memory, "devcore": 8,
        "type": "Ascend310P", "numa": 0, "health": true})
}

/// Node `n` with these NPUs.
fn registered(npus: &[Value]) -> NodeRecord {
    let text = Value::from(npus.to_vec()).to_string();
    let annotations = [("hami.io/node-register-Ascend310P".into(), text.into())].into();
    NodeRecord { annotations, ..node("n", &[(NUMBER, "14")]) }
}

fn two() -> NodeRecord {
    registered(&[npu("A", 0, 21527), npu("B", 1, 21527)])
}

fn with(mut pod: PodRecord, key: &str, value: &str) -> PodRecord {
    pod.annotations.insert(key.into(), value.into());
    pod
}

fn asking(number: &str, memory: &str) -> PodRecord {
    pod("p", &[(NUMBER, number), (MEMORY, memory)])
}

fn bed(node: NodeRecord, held: &[&str], p: PodRecord) -> PluginFixture {
    let held = held.iter().enumerate().map(|(at, ids)| {
        with(running(pod(&format!("h{at}"), &[(NUMBER, "1")]), "n"), ALLOCATED, ids)
    });
    PluginFixture::new(vec![node], held.chain([p]).collect())
}

/// What the bind writes, or why there is none. Filter and allocation agree.
fn written(
    plugin: &dyn Plugin,
    node: NodeRecord,
    held: &[&str],
    p: PodRecord,
) -> Result<BTreeMap<String, String>, (Code, String)> {
    let bed = bed(node, held, p);
    let reserved = plugin.reserve(bed.view(), bed.task("p"), bed.node("n"), TaskStatus::Allocated);
    let findings = bed.findings(plugin, "p", "n");
    match reserved {
        Ok(reservation) => {
            assert_eq!(findings, []);
            let shares = reservation.and_then(|it| it.shares).unwrap_or_default();
            Ok(shares.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect())
        }
        Err(why) => {
            assert_eq!(bed.reasons(plugin, "p", "n"), [why.as_str()]);
            Err((findings[0].code, why))
        }
    }
}

fn choose(policy: &str, node: NodeRecord, held: &[&str], p: PodRecord) -> String {
    match written(&*vnpu(policy), node, held, p) {
        Ok(written) => written[ALLOCATED].clone(),
        Err((code, why)) => format!("{code:?} {why}"),
    }
}

const TOO_FEW: &str = "Unschedulable no ascend device available: the request needs 1 Ascend310P with \
    enough memory and cores";

#[test]
fn nodes_151_requests() {
    let chosen = |number: &str, memory: &str| choose("", two(), &[], asking(number, memory));
    assert_eq!(chosen("1", "1024"), "A,Ascend310P,3072,0:;");
    assert_eq!(chosen("2", "1024"), format!("Error {SEVERAL}"));
    assert_eq!(chosen("2", "21527"), "A,Ascend310P,21527,0:B,Ascend310P,21527,0:;");
    assert_eq!(chosen("2", "0"), "A,Ascend310P,21527,0:B,Ascend310P,21527,0:;");
    let few = TOO_FEW.replace("needs 1", "needs 3");
    assert_eq!(chosen("3", "21527"), few);
    let most = "Unresolvable no ascend device available: 24577 MiB are more than an NPU has, 24576";
    assert_eq!(chosen("1", "24577"), most);
    let none = "Unresolvable no ascend device available: no Ascend310P is registered on this node";
    assert_eq!(choose("", node("n", &[(NUMBER, "1")]), &[], asking("1", "1")), none);
    let mut without = two();
    without.allocatable.retain(|(name, _)| &**name != NUMBER);
    assert_eq!(choose("", without, &[], asking("1", "1")), none);
    // Only the memory is requested.
    let one = pod("p", &[(MEMORY, "6000")]);
    assert_eq!(choose("", two(), &[], one), "A,Ascend310P,6144,0:;");
}

#[test]
fn nodes_151_an_npu_is_full_in_each_of_its_amounts() {
    let one = |held: &[&str], p: PodRecord| choose("", registered(&[npu("A", 0, 21527)]), held, p);
    let half = "A,Ascend310P,12288,0:;";
    assert_eq!(one(&[half], asking("1", "6144")), "A,Ascend310P,6144,0:;");
    assert_eq!(one(&[half], asking("1", "6145")), TOO_FEW);
    assert_eq!(one(&["A,Ascend310P,1,0:;"; 7], asking("1", "1")), TOO_FEW);
    let cores = |cores: &str| pod("p", &[(NUMBER, "1"), (MEMORY, "1"), (CORES, cores)]);
    assert_eq!(one(&["A,Ascend310P,1,5:;"], cores("3")), "A,Ascend310P,3072,3:;");
    assert_eq!(one(&["A,Ascend310P,1,5:;"], cores("4")), TOO_FEW);
    assert_eq!(one(&["A,Ascend310P,1,8:;"], asking("1", "1")), TOO_FEW);
    let ill = json!({"id": "A", "count": 7, "devmem": 9999, "type": "Ascend310P", "health": false});
    assert_eq!(choose("", registered(&[ill]), &[], asking("1", "1")), TOO_FEW);
    let other = json!({"id": "A", "count": 7, "devmem": 9999, "type": "Ascend910", "health": true});
    assert_eq!(choose("", registered(&[other]), &[], asking("1", "1")), TOO_FEW);
}

#[test]
fn nodes_151_parts_of_any_size_need_the_node_to_support_them() {
    let soft = |cores: &str| {
        let amounts = [(NUMBER, "1"), (MEMORY, "1000"), (CORES, cores)];
        with(pod("p", &amounts), "huawei.com/vnpu-mode", "hami-core")
    };
    let on = |value: &str| {
        let mut node = two();
        node.annotations.insert("hami-vnpu-core".into(), value.into());
        node
    };
    let refused = "Unresolvable no ascend device available: the node takes no pods of \
        huawei.com/vnpu-mode hami-core";
    assert_eq!(choose("", two(), &[], soft("30")), refused);
    assert_eq!(choose("", on("false"), &[], soft("30")), refused);
    assert_eq!(choose("", on("true"), &[], soft("30")), "A,Ascend310P,1000,30:;");
    let held = ["A,Ascend310P,1000,70:;", "B,Ascend310P,1000,71:;"];
    assert_eq!(choose("", on("true"), &held, soft("30")), "A,Ascend310P,1000,30:;");
    assert_eq!(choose("", on("true"), &held, soft("31")), TOO_FEW);
    assert_eq!(choose("", on("true"), &["A,Ascend310P,1,0:;"], soft("100")), {
        "B,Ascend310P,1000,100:;"
    });
    let by_config = plugin(
        "deviceshare",
        &[
            (HAMI, json!(true)),
            (CONFIG, json!({"vnpus": {"hamiVnpuCore": true, "configs": [chip()]}})),
        ],
    );
    assert_eq!(written(&*by_config, two(), &[], soft("30")).unwrap()[ALLOCATED], {
        "A,Ascend310P,1000,30:;"
    });
}

#[test]
fn nodes_152_scores() {
    let score = |policy: &str, memory: i64, held: &[&str]| {
        let bed = bed(registered(&[npu("A", 0, memory)]), held, asking("1", "0"));
        bed.scores(&mut *vnpu(policy), "p").0[0]
    };
    assert_eq!(score("spread", 20000, &[]), 100.0);
    assert_eq!(score("spread", 20000, &["A,Ascend310P,0,0:;"]), 0.0);
    assert_eq!(score("binpack", 20000, &["A,Ascend310P,0,0:;"]), 0.0);
    assert_eq!(score("binpack", 0, &[]), 0.0);
    let part = bed(two(), &["B,Ascend310P,6144,0:;"], asking("1", "3072"));
    // 100 * 6144 / 21527, rounded.
    assert_eq!(part.scores(&mut *vnpu("binpack"), "p").0[0], 29.0);
}

#[test]
fn nodes_152_the_policy_orders_the_npus() {
    let held = ["A,Ascend310P,3072,0:;"];
    let chosen = |policy: &str| choose(policy, two(), &held, asking("1", "3000"));
    assert_eq!(chosen("binpack"), "A,Ascend310P,3072,0:;");
    assert_eq!(chosen("spread"), "B,Ascend310P,3072,0:;");
    assert_eq!(chosen(""), "A,Ascend310P,3072,0:;");
    // Each container of a pod gets other NPUs.
    let mut p = asking("1", "3000");
    p.containers = vec![p.containers[0].clone(); 2];
    let apart = "A,Ascend310P,3072,0:;B,Ascend310P,3072,0:;";
    assert_eq!(choose("binpack", two(), &held, p.clone()), apart);
    p.containers.push(p.containers[0].clone());
    assert_eq!(choose("binpack", two(), &held, p), TOO_FEW);
}

#[test]
fn npus_that_annotations_allow() {
    let asked = |key: &str, value: &str| with(asking("1", "3000"), key, value);
    let (wanted, avoided) = ("hami.io/use-Ascend310P-uuid", "hami.io/no-use-Ascend310P-uuid");
    let b = "B,Ascend310P,3072,0:;";
    assert_eq!(choose("", two(), &[], asked(wanted, "B")), b);
    assert_eq!(choose("", two(), &[], asked(avoided, "A, C")), b);
    assert_eq!(choose("", two(), &[], with(asked(wanted, "A"), avoided, "A")), TOO_FEW);
}

fn chip() -> Value {
    json!({"chipName": "310P3", "commonWord": "Ascend310P", "resourceName": NUMBER,
        "resourceMemoryName": MEMORY, "memoryAllocatable": 21527, "memoryCapacity": 24576,
        "aiCore": 8, "aiCPU": 7, "templates": [{"name": "vir01", "memory": 3072, "aiCore": 1}]})
}

#[test]
fn nodes_153_shapes_of_the_configuration() {
    let with_vnpus = |vnpus: Value| {
        let arguments = [(HAMI, json!(true)), (CONFIG, json!({"vnpus": vnpus}))];
        let (plugin, warnings) = built("deviceshare", &arguments);
        let messages: Vec<String> = warnings.into_iter().map(|it| it.message).collect();
        let chosen = written(&*plugin, two(), &[], asking("1", "3000"));
        (chosen.map(|it| it.get(ALLOCATED).cloned()), messages)
    };
    let given = (Ok(Some("A,Ascend310P,3072,0:;".to_owned())), Vec::new());
    assert_eq!(with_vnpus(json!({"configs": [chip()]})), given);
    assert_eq!(with_vnpus(json!([chip()])), given);
    assert_eq!(with_vnpus(json!({"hamiVnpuCore": false, "configs": []})), (Ok(None), Vec::new()));
    let (_, warnings) = with_vnpus(json!([chip(), chip(), {"commonWord": "x"}]));
    let expected = [
        "vnpus[1] has the commonWord of an earlier one, it is left out",
        "vnpus[2] has no commonWord, resourceName or memoryAllocatable, it is left out",
    ];
    assert_eq!(warnings, expected);
}

/// What the device plugin of HAMi reads after the bind.
#[test]
fn the_bind_writes_what_the_device_plugin_reads() {
    let expected = |devices: &str, runtime: &str| {
        let pairs = [
            (ALLOCATED, devices),
            ("hami.io/Ascend310P-devices-to-allocate", devices),
            ("hami.io/bind-phase", "allocating"),
            ("hami.io/bind-time", "0"),
            ("hami.io/vgpu-node", "n"),
            ("hami.io/vgpu-time", "0"),
            ("huawei.com/Ascend310P", runtime),
            ("predicate-time", "0"),
        ];
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    };
    let of = |p: PodRecord| written(&*vnpu(""), two(), &[], p).unwrap();
    let part = expected("A,Ascend310P,6144,0:;", r#"[{"UUID":"A","temp":"vir02"}]"#);
    assert_eq!(of(asking("1", "6000")), part);
    let whole = expected("A,Ascend310P,21527,0:;", r#"[{"UUID":"A"}]"#);
    assert_eq!(of(asking("1", "20000")), whole);
}

/// NPUs of the network with most of them that fit come first, and one network scores.
#[test]
fn npus_of_one_network_come_first() {
    let on = |id: &str, index: i64, network: i64| {
        json!({"id": id, "index": index, "count": 4, "devmem": 65536, "devcore": 20,
            "type": "Ascend910B", "health": true, "custominfo": {"NetworkID": network}})
    };
    let text = json!([on("A", 0, 1), on("B", 1, 2), on("C", 2, 2), on("D", 3, 1), on("E", 4, 2)]);
    let annotations = [("hami.io/node-register-Ascend910B".into(), text.to_string().into())].into();
    let node = NodeRecord { annotations, ..node("n", &[("huawei.com/Ascend910B", "20")]) };
    let chip = json!({"commonWord": "Ascend910B", "resourceName": "huawei.com/Ascend910B",
        "memoryAllocatable": 65536, "memoryCapacity": 65536});
    let config = (CONFIG, json!({"vnpus": [chip]}));
    let weight = ("deviceshare.ScheduleWeight", json!(1));
    let mut plugin = plugin("deviceshare", &[(HAMI, json!(true)), config, weight]);
    let mut chosen = |number: &str| {
        let bed = bed(node.clone(), &[], pod("p", &[("huawei.com/Ascend910B", number)]));
        let (task, place) = (bed.task("p"), bed.node("n"));
        let reserved = plugin.reserve(bed.view(), task, place, TaskStatus::Allocated);
        let shares = reserved.unwrap().unwrap().shares.unwrap();
        let devices = shares["hami.io/Ascend910B-devices-allocated"].to_string();
        let ids: String = devices.split(':').filter_map(|entry| entry.split(',').next()).collect();
        (ids, bed.scores(&mut *plugin, "p").0[0])
    };
    assert_eq!(chosen("3"), ("BCE;".to_owned(), 10.0));
    // 3 of 4 are in one network: 7.5, rounded.
    assert_eq!(chosen("4"), ("BCEA;".to_owned(), 8.0));
}

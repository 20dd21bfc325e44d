//! Random lines of `edge`: what there is beside nodes, queues, jobs and pods.

use proptest::prelude::*;

use super::objects::{Size, Theme};
use super::story::pick;

const FIRST_VOLUMES: [&str; 8] = [
    "class local provisioner=kubernetes.io/no-provisioner delayed",
    "class slow provisioner=d delayed",
    "pv v0 3Gi class=local at.zone=z0",
    "pv v1 3Gi class=local mode=RWX at.zone=z1",
    "pvc c0 1Gi class=local",
    "pvc c1 1Gi class=slow",
    "pvc c2 1Gi class=slow mode=RWX",
    "pvc c3 1Gi class=local mode=RWX",
];

const FIRST_DEVICES: [&str; 5] =
    ["deviceclass gpu", "slice s0 n0 2", "slice s1 all 1", "claim d0 1", "claim d1 2"];

const FIRST_HYPER_NODES: [&str; 4] = [
    "hypernode rack-0 named=rack label.zone=z0",
    "hypernode rack-1 named=rack label.zone=z1",
    "hypernode hall tier=2 named=hall member=rack-0 member=rack-1",
    "hypernodes listed",
];

/// What the cluster has from the beginning.
pub(super) fn first_lines(size: Size) -> Vec<String> {
    let csi = (0..size.nodes).map(|node| format!("csinode n{node} d=2 e"));
    match size.theme {
        Theme::Room
        | Theme::Neighbours
        | Theme::Groups
        | Theme::Cards
        | Theme::Roles
        | Theme::Usages => Vec::new(),
        Theme::Loads => (0..size.nodes).map(first_load).collect(),
        Theme::Volumes => FIRST_VOLUMES.map(str::to_owned).into_iter().chain(csi).collect(),
        Theme::Numa => (0..size.nodes).map(|node| format!("numa n{node} {}", CPUS[0].1)).collect(),
        Theme::Devices => FIRST_DEVICES.map(str::to_owned).into(),
        Theme::Networks => FIRST_HYPER_NODES.map(str::to_owned).into(),
    }
}

/// A line for the edge.
pub(super) fn line(size: Size) -> impl Strategy<Value = String> {
    let (volumes, claims, networks, loads, numa) = match size.theme {
        Theme::Room
        | Theme::Neighbours
        | Theme::Groups
        | Theme::Cards
        | Theme::Roles
        | Theme::Usages => (2, 2, 1, 1, 1),
        Theme::Volumes => (12, 1, 1, 1, 1),
        Theme::Devices => (1, 12, 1, 1, 1),
        Theme::Networks => (1, 1, 12, 1, 1),
        Theme::Loads => (1, 1, 1, 20, 1),
        Theme::Numa => (1, 1, 1, 1, 12),
    };
    let cpus = (0..size.nodes, pick(CPUS));
    prop_oneof![
        1 => pick(SELECTORS).prop_map(str::to_owned),
        3 => budget(),
        1 => quota(),
        2 => pick(STORAGE).prop_map(str::to_owned),
        volumes => volume(),
        claims => devices(size),
        3 => shard(size),
        networks => network(size).prop_map(str::to_owned),
        loads => load(size),
        numa => cpus.prop_map(|(node, cpus)| format!("numa n{node} {cpus}")),
        1 => pick(GONE).prop_map(str::to_owned),
        1 => (0_u32..3, 0_u32..6).prop_map(|(name, value)| format!("rank priority-{name} {value}")),
        1 => (0..size.nodes, 0_u32..3)
            .prop_map(|(node, limit)| format!("csinode n{node} d={limit} e")),
    ]
}

/// A change of the HyperNodes. Only stories about them have names of tiers.
fn network(size: Size) -> impl Strategy<Value = &'static str> {
    match size.theme {
        Theme::Networks => pick(&[NETWORKS, NAMED_NETWORKS].concat()),
        _ => pick(NETWORKS),
    }
}

/// A load of a node that changes the order of the nodes, or fills one.
fn first_load(node: u32) -> String {
    let (cpu, memory) = (node * 37 % 90, node * 23 % 90);
    format!("load n{node} cpu={cpu} memory={memory} age={} interval=90", node * 60 % 320)
}

fn load(size: Size) -> impl Strategy<Value = String> {
    let percent = || prop_oneof![3 => 0_u32..79, 1 => 79_u32..82, 1 => 82_u32..130];
    let age = prop_oneof![4 => Just(0), 2 => Just(240), 1 => Just(300), 1 => Just(301)];
    let interval = prop_oneof![3 => Just(30), 2 => Just(90), 1 => Just(7200)];
    (0..size.nodes, percent(), percent(), age, interval).prop_map(
        |(node, cpu, memory, age, interval)| {
            format!("load n{node} cpu={cpu} memory={memory} age={age} interval={interval}")
        },
    )
}
/// The CPUs of a node.
const CPUS: &[(u32, &str)] = &[
    (3, "policy=single-numa-node cpus=8 nodes=2"),
    (2, "policy=restricted cpus=8 nodes=2 free=1-7 reserved=1"),
    (2, "policy=best-effort cpus=8 nodes=4 free=0-1,4-6"),
    (1, "policy=restricted cpus=4 nodes=2 free=2-3"),
    (1, "policy=none cpus=8"),
    (1, "policy=restricted"),
    (1, "policy=best-effort manager=none cpus=4"),
];

const SELECTORS: &[(u32, &str)] = &[
    (1, "service web app=a"),
    (1, "service web app=b"),
    (1, "namespace other team=x"),
    (1, "namespace other"),
    (1, "namespace default team=x"),
];

const STORAGE: &[(u32, &str)] = &[
    (2, "class local provisioner=kubernetes.io/no-provisioner delayed"),
    (2, "class slow provisioner=d delayed"),
    (1, "class slow provisioner=d delayed topology.zone=z0"),
    (1, "class fast provisioner=d"),
    (1, "csidriver d capacity"),
    (1, "csidriver d"),
    (1, "capacity s1 5Gi class=slow at.zone=z0"),
    (1, "capacity s2 1Gi class=slow at.zone=z1"),
    (1, "attachment a1 d node=n1 volume=v1"),
];

const NETWORKS: &[(u32, &str)] = &[
    (2, "hypernode rack-0 node=n0 node=n1"),
    (1, "hypernode rack-0 label.zone=z0"),
    (1, "hypernode rack-1 pattern=n[23]"),
    (2, "hypernode rack-2 label.zone=z2"),
    (1, "hypernode rack-2 tier=2 node=n1 node=n4"),
    (2, "hypernode hall tier=2 member=rack-0 member=rack-2"),
    (1, "hypernode hall tier=2 member=rack-0 member=rack-1 member=gone"),
    (1, "hypernode spine tier=3 member=hall"),
    (1, "hypernode rack-1 tier=2 member=hall"),
    (1, "gone hypernode rack-0"),
    (1, "gone hypernode hall"),
    (1, "hypernodes listed"),
    (1, "hypernodes unlisted"),
];

/// Tiers with names, of which one may stand for two tiers.
const NAMED_NETWORKS: &[(u32, &str)] = &[
    (1, "hypernode rack-0 named=rack label.zone=z0"),
    (1, "hypernode rack-2 named=rack label.zone=z2"),
    (1, "hypernode rack-2 tier=2 named=hall label.zone=z2"),
    (2, "hypernode hall tier=2 named=hall member=rack-0 member=rack-1"),
    (1, "hypernode hall tier=2 named=hall member=rack-0 member=rack-1 member=rack-2"),
    (1, "hypernode hall tier=3 named=hall member=rack-1"),
    (1, "hypernode spine tier=3 named=hall member=hall"),
];

const GONE: &[(u32, &str)] = &[
    (1, "gone numa n0"),
    (1, "gone budget b0"),
    (1, "gone quota k0"),
    (1, "gone pvc c0"),
    (1, "gone pvc c2"),
    (1, "gone pv v0"),
    (1, "gone pv v1"),
    (1, "gone class slow"),
    (1, "gone capacity s1"),
    (1, "gone claim d0"),
    (1, "gone claim d1"),
    (1, "gone slice s0"),
    (1, "gone deviceclass gpu"),
    (1, "gone shard s"),
    (1, "gone service web"),
    (1, "gone priority priority-1"),
    (1, "gone namespace other"),
];

fn budget() -> impl Strategy<Value = String> {
    (0_u32..2, pick(&[(1, "a"), (1, "b")]), 0_u32..3, 0_u32..4).prop_map(
        |(name, app, allowed, healthy)| {
            format!("budget b{name} label.app={app} allowed={allowed} healthy={healthy}")
        },
    )
}

fn quota() -> impl Strategy<Value = String> {
    (0_u32..2, 1_u32..9).prop_map(|(name, cpu)| format!("quota k{name} hard.cpu={cpu}"))
}

fn volume() -> impl Strategy<Value = String> {
    let class = || pick(&[(2, "class=local"), (2, "class=slow"), (1, "class=fast"), (1, "")]);
    let at = pick(&[(2, ""), (1, "at.zone=z0"), (1, "at.zone=z1,z2"), (1, "at.host=h1,h2")]);
    let mode = || pick(&[(3, ""), (1, "mode=RWX"), (1, "mode=RWOP")]);
    let driver = pick(&[(2, ""), (1, "driver=d"), (1, "ebs=vol-1")]);
    let claimed = pick(&[(3, ""), (1, "claim=c0"), (1, "claim=c1")]);
    let volume = (0_u32..3, 1_u32..4, class(), mode(), at, driver, claimed).prop_map(
        |(name, size, class, mode, at, driver, claimed)| {
            format!("pv v{name} {size}Gi {class} {mode} {at} {driver} {claimed}")
        },
    );
    let bound = pick(&[(4, ""), (1, "volume=v0"), (1, "volume=v1 incomplete"), (1, "selected=n1")]);
    let claim = (0_u32..4, 1_u32..4, class(), mode(), bound).prop_map(
        |(name, size, class, mode, bound)| format!("pvc c{name} {size}Gi {class} {mode} {bound}"),
    );
    prop_oneof![2 => volume, 3 => claim]
}

fn devices(size: Size) -> impl Strategy<Value = String> {
    let nodes = prop_oneof![
        3 => (0..size.nodes).prop_map(|node| format!("n{node}")),
        1 => Just("all".to_owned()),
        1 => Just("zone=z0".to_owned()),
    ];
    prop_oneof![
        3 => (0_u32..3, nodes, 1_u32..4)
            .prop_map(|(name, nodes, count)| format!("slice s{name} {nodes} {count}")),
        2 => (0_u32..2, 1_u32..3).prop_map(|(name, count)| format!("claim d{name} {count}")),
        2 => Just("deviceclass gpu".to_owned()),
    ]
}

/// Nodes that ours wants and uses; those of another one.
fn shard(size: Size) -> impl Strategy<Value = String> {
    let nodes = move || {
        prop::collection::vec(0..size.nodes, 0..usize::try_from(size.nodes).unwrap_or_default())
            .prop_map(|nodes| {
                let names: Vec<String> = nodes.iter().map(|node| format!("n{node}")).collect();
                names.join(",")
            })
    };
    let name = pick(&[(3, "s"), (1, "foreign")]);
    (name, nodes(), nodes())
        .prop_map(|(name, desired, in_use)| format!("shard {name} desired={desired} used={in_use}"))
}

//! Jobs with a network topology, from end to end: HyperNodes come, change and go while jobs wait, a
//! leader is killed in the middle of a job, and room is made in one HyperNode. Specification:
//! core.md 4.9, actions.md 4.5, 9.3, plugins-nodes.md 15.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::api::{text, until};
use crate::audit::Asked;
use crate::cluster::{Cluster, POD_GROUPS};
use crate::leaders::{SHORT, leader_after};
use crate::objects::{LABEL, condition, gang, name, node_of, refusal};
use crate::process::{Scheduler, metrics, shipped_conf};
use crate::restarts::{SLOW, something_waits};

const HYPER_NODES: &str = "/apis/topology.volcano.sh/v1alpha1/hypernodes";
const SOON: [&str; 2] = ["--leader-elect=false", "--schedule-period=100ms"];

/// The shipped configuration with network-topology-aware, as an argument.
fn with_topology(cluster: &Cluster, actions: &str) -> String {
    let conf = cluster.dir().join(format!("{}.conf", cluster.namespace));
    let text = shipped_conf().replace("enqueue, allocate, backfill", actions);
    std::fs::write(&conf, format!("{}\n  - name: network-topology-aware\n", text.trim_end()))
        .unwrap();
    format!("--scheduler-conf={}", conf.display())
}

fn hyper_node(name: &str, nodes: &[&str]) -> Value {
    let member = |node: &&str| json!({"type": "Node", "selector": {"exactMatch": {"name": node}}});
    let members: Vec<Value> = nodes.iter().map(member).collect();
    json!({"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
        "metadata": {"name": name}, "spec": {"tier": 1, "members": members}})
}

/// A gang that stays in a HyperNode of tier 1.
fn hard_gang(cluster: &Cluster, name: &str, n_pods: u32, cpu: &str) -> Vec<Value> {
    let mut objects = gang(cluster.namespace, name, n_pods, cpu);
    objects[0]["spec"]["networkTopology"] = json!({"mode": "hard", "highestTierAllowed": 1});
    objects
}

async fn create(cluster: &Cluster, objects: &[Value]) {
    for object in objects {
        cluster.api.create(object).await.unwrap();
    }
}

/// All pods of the gang wait, and say this.
async fn wait_for(cluster: &Cluster, gang_name: &str, why: &str) {
    until(&format!("{gang_name} says: {why}"), async || {
        let pods = cluster.pods(gang_name).await;
        assert!(pods.iter().all(|pod| node_of(pod).is_empty()));
        let says = |pod: &Value| refusal(pod).is_some_and(|(_, text)| text.contains(why));
        (!pods.is_empty() && pods.iter().all(says)).then_some(())
    })
    .await;
}

async fn nodes_of(cluster: &Cluster, gang_name: &str, n_pods: usize) -> Vec<String> {
    let pods = cluster.running(gang_name, n_pods).await;
    let mut nodes: Vec<String> = pods.iter().map(|pod| node_of(pod).to_owned()).collect();
    nodes.sort();
    nodes
}

/// The number of pods that the scheduler has deleted.
fn n_evictions(cluster: &Cluster) -> usize {
    cluster.audit.count(|asked| is_eviction(cluster, asked))
}

fn is_eviction(cluster: &Cluster, asked: &Asked) -> bool {
    asked.is("delete", "pods") && asked.namespace == cluster.namespace
}

/// Nobody has been evicted by the end of the cycle: a pod without a request that comes now is bound in a
/// later one. All of these pods still run.
async fn nobody_goes(cluster: &Cluster, gangs: &[&str]) {
    create(cluster, &gang(cluster.namespace, "probe", 1, "0")).await;
    cluster.running("probe", 1).await;
    for name in gangs {
        let pods = cluster.pods(name).await;
        let leaves = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
        assert!(pods.len() == 2 && !pods.iter().any(leaves), "{pods:?}");
    }
    assert_eq!(n_evictions(cluster), 0);
}

/// Two pods have been evicted, and no more.
async fn two_go(cluster: &Cluster) {
    cluster.audit.comes_to(2, |asked| is_eviction(cluster, asked)).await;
}

/// Creates the objects of a gang with a PriorityClass of their own.
async fn create_urgent(cluster: &Cluster, objects: Vec<Value>) {
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "urgent", "labels": {LABEL: ""}}, "value": 1000});
    // It may be there already.
    let _ = cluster.api.create(&class).await;
    for mut object in objects {
        object["spec"]["priorityClassName"] = json!("urgent");
        until("the priority class", async || cluster.api.create(&object).await.ok()).await;
    }
}

/// The queues `lender` and `claimer` of equal weights.
fn two_queues() -> [Value; 2] {
    ["lender", "claimer"].map(|queue| {
        json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": queue, "labels": {LABEL: ""}}, "spec": {"weight": 1}})
    })
}

fn of_queue(mut objects: Vec<Value>, queue: &str) -> Vec<Value> {
    objects[0]["spec"]["queue"] = json!(queue);
    objects
}

/// Two racks of two nodes.
fn two_racks() -> [Value; 2] {
    [hyper_node("rack-a", &["node-0", "node-1"]), hyper_node("rack-b", &["node-2", "node-3"])]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hyper_nodes_come_change_and_go_while_jobs_wait() {
    let cluster = Cluster::take("hyper-nodes", 4).await;
    let conf = with_topology(&cluster, "enqueue, allocate, backfill");
    let _scheduler = Scheduler::start_with(&cluster, &[SOON[0], SOON[1], &conf]).await;
    create(&cluster, &hard_gang(&cluster, "first", 2, "6")).await;
    wait_for(&cluster, "first", "network topology: no HyperNode exists").await;
    let racks = [hyper_node("rack-a", &["node-0"]), hyper_node("rack-b", &["node-1", "node-2"])];
    create(&cluster, &racks).await;
    assert_eq!(nodes_of(&cluster, "first", 2).await, ["node-1", "node-2"]);
    create(&cluster, &hard_gang(&cluster, "second", 2, "6")).await;
    let short = "network topology: no HyperNode of tier 1 or lower has room for all pods";
    wait_for(&cluster, "second", short).await;
    let larger = json!({"spec": hyper_node("rack-a", &["node-0", "node-3"])["spec"]});
    cluster.api.merge(&format!("{HYPER_NODES}/rack-a"), &larger).await.unwrap();
    assert_eq!(nodes_of(&cluster, "second", 2).await, ["node-0", "node-3"]);
    create(&cluster, &hard_gang(&cluster, "third", 2, "6")).await;
    wait_for(&cluster, "third", short).await;
    for rack in ["rack-a", "rack-b"] {
        cluster.api.delete(&format!("{HYPER_NODES}/{rack}")).await.unwrap();
    }
    wait_for(&cluster, "third", "network topology: no HyperNode exists").await;
    // Nobody has moved.
    assert_eq!(nodes_of(&cluster, "first", 2).await, ["node-1", "node-2"]);
    assert_eq!(nodes_of(&cluster, "second", 2).await, ["node-0", "node-3"]);
    assert_eq!(cluster.audit.count(|asked| asked.code == 403), 0);
}

/// Four sub-groups of two, each of which fills a rack of its own.
fn in_sub_groups(cluster: &Cluster) -> Vec<Value> {
    let mut objects = gang(cluster.namespace, "job", 8, "6");
    objects[0]["spec"]["subGroupPolicy"] = json!([{"name": "pair", "subGroupSize": 2,
        "minSubGroups": 4, "matchLabelKeys": ["pair"],
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}]);
    for (index, pod) in objects[1..].iter_mut().enumerate() {
        pod["metadata"]["labels"]["pair"] = json!((index / 2).to_string());
    }
    objects
}

/// Returns the racks of the members that are bound, by pair.
async fn racks_of_pairs(cluster: &Cluster) -> BTreeMap<String, Vec<u32>> {
    let mut racks: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for pod in cluster.pods("job").await.iter().filter(|pod| !node_of(pod).is_empty()) {
        let number: u32 = node_of(pod).trim_start_matches("node-").parse().unwrap();
        let pair = text(&pod["metadata"]["labels"]["pair"]).to_owned();
        racks.entry(pair).or_default().push(number / 2);
    }
    racks
}

/// Killed when a sub-group has one of two members bound, the leader leaves none that its successor
/// could not complete in its rack.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sub_groups_stay_in_their_racks_when_the_leader_is_killed() {
    let cluster = Cluster::take("sub-groups", 8).await;
    for rack in 0..4 {
        let nodes = [format!("node-{}", 2 * rack), format!("node-{}", 2 * rack + 1)];
        let nodes = nodes.each_ref().map(String::as_str);
        create(&cluster, &[hyper_node(&format!("rack-{rack}"), &nodes)]).await;
    }
    let conf = with_topology(&cluster, "enqueue, allocate, backfill");
    create(&cluster, &in_sub_groups(&cluster)).await;
    let slow = [&SHORT[..], &[SLOW[0], "--kube-api-burst=1", &conf]].concat();
    let first = Scheduler::start_with(&cluster, &slow).await;
    let leader = leader_after(&cluster, "").await;
    let _second = Scheduler::start_with(&cluster, &[&SHORT[..], &[&conf]].concat()).await;
    until("a pair of which one member is bound", async || {
        racks_of_pairs(&cluster).await.values().any(|racks| racks.len() == 1).then_some(())
    })
    .await;
    first.kill().await;
    something_waits(&cluster).await;
    leader_after(&cluster, &leader).await;
    cluster.running("job", 8).await;
    let racks = racks_of_pairs(&cluster).await;
    assert_eq!(racks.len(), 4);
    assert!(racks.values().all(|racks| racks.len() == 2 && racks[0] == racks[1]), "{racks:?}");
    let twice = cluster.audit.binds().into_iter().filter(|(_, n_binds)| 1 < *n_binds);
    assert_eq!(twice.collect::<Vec<_>>(), []);
}

/// Fills a node with a pod of this size.
async fn fill(cluster: &Cluster, node: &str, cpu: &str) {
    let filler = format!("fill-{node}-{cpu}");
    let mut objects = gang(cluster.namespace, &filler, 1, cpu);
    objects[1]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    create(cluster, &objects).await;
    cluster.running(&filler, 1).await;
}

/// After a restart a member that comes late joins the rack of the one that runs, although the other
/// rack is fuller, which the plugin prefers. With its rack full the next one waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_the_rack_of_the_pods_that_run() {
    let cluster = Cluster::take("restart-in-rack", 4).await;
    let (a, b) = (["node-0", "node-1"], ["node-2", "node-3"]);
    create(&cluster, &[hyper_node("rack-a", &a), hyper_node("rack-b", &b)]).await;
    let conf = with_topology(&cluster, "enqueue, allocate, backfill");
    let args = [SOON[0], SOON[1], &conf];
    let first = Scheduler::start_with(&cluster, &args).await;
    let mut objects = hard_gang(&cluster, "job", 3, "3");
    objects[0]["spec"]["minMember"] = json!(1);
    let late = objects.split_off(2);
    create(&cluster, &objects).await;
    let node = nodes_of(&cluster, "job", 1).await.remove(0);
    let (own, other) = if a.contains(&&*node) { (a, b) } else { (b, a) };
    for node in other {
        fill(&cluster, node, "4").await;
    }
    assert_eq!(first.terminate().await.code(), Some(0));
    let _second = Scheduler::start_with(&cluster, &args).await;
    create(&cluster, &late[..1]).await;
    let nodes = nodes_of(&cluster, "job", 2).await;
    assert!(nodes.iter().all(|node| own.contains(&&**node)), "{nodes:?}");
    for node in own {
        let n_members = nodes.iter().filter(|of| *of == node).count();
        fill(&cluster, node, &(8 - 3 * n_members).to_string()).await;
    }
    create(&cluster, &late[1..]).await;
    let waits = cluster.pod("job-2", |pod| refusal(pod).is_some()).await;
    assert_eq!(node_of(&waits), "");
}

/// Fields that make no sense are told on their objects, and a gang beside them is bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topologies_that_make_no_sense_hold_nobody_up() {
    let cluster = Cluster::take("bad-topologies", 2).await;
    let mut rack = hyper_node("rack-a", &["node-0", "node-1"]);
    let mut broken = hyper_node("rack-x", &["node-9"]);
    rack["spec"]["tier"] = json!(2);
    broken["spec"]["tier"] = json!(2);
    broken["spec"]["members"][0]["selector"] = json!({"regexMatch": {"pattern": "("}});
    let of_hyper_nodes = |name: &str, tier: u32, members: &[&str]| {
        let mut made = hyper_node(name, members);
        made["spec"]["tier"] = json!(tier);
        let members = made["spec"]["members"].as_array_mut().unwrap();
        members.iter_mut().for_each(|member| member["type"] = json!("HyperNode"));
        made
    };
    let others = [
        of_hyper_nodes("loop-1", 3, &["loop-2"]),
        of_hyper_nodes("loop-2", 4, &["loop-1"]),
        of_hyper_nodes("parent-1", 5, &["rack-a"]),
        of_hyper_nodes("parent-2", 6, &["rack-a"]),
        of_hyper_nodes("lonely", 7, &["gone"]),
    ];
    create(&cluster, &[&[rack, broken][..], &others].concat()).await;
    let conf = with_topology(&cluster, "enqueue, allocate, backfill");
    let _scheduler = Scheduler::start_with(&cluster, &[SOON[0], SOON[1], &conf]).await;
    create(&cluster, &hard_gang(&cluster, "below", 1, "1")).await;
    let mut unknown = hard_gang(&cluster, "unknown", 1, "1");
    unknown[0]["spec"]["networkTopology"] = json!({"mode": "hard", "highestTierName": "room"});
    create(&cluster, &unknown).await;
    let of_policy = |name: &str, size: u32| {
        let mut objects = gang(cluster.namespace, name, size, "7");
        objects[0]["spec"]["subGroupPolicy"] = json!([{"name": "pair", "subGroupSize": size,
            "minSubGroups": 1, "matchLabelKeys": ["pair"],
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2}}]);
        objects
    };
    let mut large = of_policy("large", 3);
    large[1..].iter_mut().for_each(|pod| pod["metadata"]["labels"]["pair"] = json!("0"));
    create(&cluster, &[large, of_policy("nokey", 1)].concat()).await;
    let mut good = hard_gang(&cluster, "good", 2, "6");
    good[0]["spec"]["networkTopology"]["highestTierAllowed"] = json!(2);
    create(&cluster, &good).await;
    assert_eq!(nodes_of(&cluster, "good", 2).await, ["node-0", "node-1"]);
    let below = "spec.networkTopology.highestTierAllowed: no HyperNode has tier 1 or a lower one; the \
        lowest tier is 2";
    cluster.event("below", ("Warning", "InvalidNetworkTopology", below)).await;
    until("the condition of the PodGroup", async || {
        let path = cluster.path(&format!("{POD_GROUPS}/below"));
        let group = cluster.api.get(&path).await.ok()?;
        let says = condition(&group, "Unschedulable")?;
        let pattern =
            "HyperNode rack-x: spec.members[0].selector.regexMatch.pattern: not a regular";
        let said = text(&says["message"]);
        (said.contains(below) && said.contains(pattern)).then_some(())
    })
    .await;
    let none = "spec.networkTopology.highestTierName: no HyperNode has the tier name room, so that it \
        sets no limit";
    cluster.event("unknown", ("Warning", "InvalidNetworkTopology", none)).await;
    let missing = "spec.subGroupPolicy[0].matchLabelKeys: label pair is missing on 1 pods, first on \
        nokey-0, so that they are in no sub-group";
    cluster.event("nokey", ("Warning", "InvalidNetworkTopology", missing)).await;
    wait_for(&cluster, "large", "higher tier in spec.subGroupPolicy[0].networkTopology").await;
    bad_fields_are_counted(&cluster).await;
    let starts = [
        "HyperNode rack-x: spec.members[0].selector.regexMatch.pattern: not a regular",
        "HyperNode loop-",
        "HyperNode rack-a already has the parent parent-1, so it is no member of parent-2",
        "HyperNode gone, a member of lonely, does not exist",
    ];
    for start in starts {
        until(&format!("the event {start}"), async || {
            let events = cluster.api.list("/api/v1/namespaces/default/events").await;
            let is_it = |event: &Value| {
                event["involvedObject"]["kind"] == "HyperNode"
                    && event["reason"] == "InvalidHyperNode"
                    && text(&event["message"]).starts_with(start)
            };
            events.iter().any(is_it).then_some(())
        })
        .await;
    }
}

/// Each wrong field of a HyperNode and of a PodGroup has a series.
async fn bad_fields_are_counted(cluster: &Cluster) {
    let series = [
        ("volcano_hypernode_problems", "rack-x", "spec.members[0].selector.regexMatch.pattern"),
        ("volcano_hypernode_problems", "parent-2", "spec.members"),
        ("volcano_hypernode_problems", "lonely", "spec.members"),
        ("volcano_network_topology_problems", "below", "spec.networkTopology.highestTierAllowed"),
        ("volcano_network_topology_problems", "unknown", "spec.networkTopology.highestTierName"),
        ("volcano_network_topology_problems", "nokey", "spec.subGroupPolicy[0].matchLabelKeys"),
        ("volcano_network_topology_problems", "large", "spec.subGroupPolicy[0].networkTopology"),
    ];
    for (family, object, field) in series {
        let labels = [format!("=\"{object}\""), format!("field=\"{field}\"")];
        until(&format!("{family} of {object}"), async || {
            let scraped = metrics(cluster).await;
            let is_it = |line: &str| {
                line.starts_with(family)
                    && labels.iter().all(|label| line.contains(&**label))
                    && line.ends_with(" 1")
            };
            scraped.lines().any(is_it).then_some(())
        })
        .await;
    }
}

/// Rack a holds a gang at its minimum, rack b an elastic job: only that one loses its pods. A member
/// that is killed returns to the rack of the other one, although the other rack is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gangpreempt_empties_the_rack_that_costs_least() {
    let cluster = Cluster::take("cheapest-rack", 4).await;
    create(&cluster, &two_racks()).await;
    let conf = with_topology(&cluster, "enqueue, allocate, gangpreempt, backfill");
    let _scheduler = Scheduler::start_with(&cluster, &[SOON[0], SOON[1], &conf]).await;
    create(&cluster, &hard_gang(&cluster, "whole", 2, "8")).await;
    let rack_of_whole = nodes_of(&cluster, "whole", 2).await;
    let mut elastic = gang(cluster.namespace, "elastic", 2, "8");
    elastic[0]["spec"]["minMember"] = json!(1);
    create(&cluster, &elastic).await;
    let cheap = nodes_of(&cluster, "elastic", 2).await;
    // One member of it is needed.
    let none = json!({"spec": {"minMember": 0}});
    let path = cluster.path(&format!("{POD_GROUPS}/elastic"));
    cluster.api.merge(&path, &none).await.unwrap();
    create_urgent(&cluster, hard_gang(&cluster, "urgent", 2, "8")).await;
    assert_eq!(nodes_of(&cluster, "urgent", 2).await, cheap);
    assert_eq!(nodes_of(&cluster, "whole", 2).await, rack_of_whole);
    two_go(&cluster).await;
    // The other rack becomes free.
    for pod in cluster.pods("whole").await {
        cluster.api.delete(&cluster.path(&format!("pods/{}", name(&pod)))).await.unwrap();
    }
    until("the end of the other gang", async || {
        cluster.pods("whole").await.is_empty().then_some(())
    })
    .await;
    let pods = cluster.pods("urgent").await;
    let killed = name(&pods[0]).to_owned();
    cluster.api.delete(&cluster.path(&format!("pods/{killed}"))).await.unwrap();
    let mut again = hard_gang(&cluster, "urgent", 2, "8");
    again.retain(|object| object["kind"] == "Pod" && name(object) == killed);
    again[0]["spec"]["priorityClassName"] = json!("urgent");
    create(&cluster, &again).await;
    assert_eq!(nodes_of(&cluster, "urgent", 2).await, cheap);
}

/// A hard gang for which no rack suffices takes nothing from another queue; one of the size of a rack
/// takes the rack of the elastic job, and the gang at its minimum stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gangreclaim_empties_the_rack_that_costs_least_or_none() {
    let cluster = Cluster::take("reclaimed-rack", 4).await;
    create(&cluster, &two_racks()).await;
    create(&cluster, &two_queues()).await;
    let conf = with_topology(&cluster, "enqueue, allocate, gangreclaim, backfill");
    let _scheduler = Scheduler::start_with(&cluster, &[SOON[0], SOON[1], &conf]).await;
    create(&cluster, &of_queue(hard_gang(&cluster, "whole", 2, "8"), "lender")).await;
    let rack_of_whole = nodes_of(&cluster, "whole", 2).await;
    let mut elastic = of_queue(gang(cluster.namespace, "elastic", 2, "8"), "lender");
    elastic[0]["spec"]["minMember"] = json!(0);
    create(&cluster, &elastic).await;
    let cheap = nodes_of(&cluster, "elastic", 2).await;
    create(&cluster, &of_queue(hard_gang(&cluster, "wide", 3, "5"), "claimer")).await;
    let short = "network topology: no HyperNode of tier 1 or lower has room for all pods";
    wait_for(&cluster, "wide", short).await;
    nobody_goes(&cluster, &["whole", "elastic"]).await;
    create(&cluster, &of_queue(hard_gang(&cluster, "claim", 2, "8"), "claimer")).await;
    assert_eq!(nodes_of(&cluster, "claim", 2).await, cheap);
    assert_eq!(nodes_of(&cluster, "whole", 2).await, rack_of_whole);
    two_go(&cluster).await;
}

/// Both racks run a gang at its minimum. A gang for which no rack suffices takes nobody's place, and one of
/// the size of a rack takes that of a whole gang.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gangpreempt_takes_a_whole_gang_or_nobody() {
    let cluster = Cluster::take("whole-gangs", 4).await;
    create(&cluster, &two_racks()).await;
    let conf = with_topology(&cluster, "enqueue, allocate, gangpreempt, backfill");
    let _scheduler = Scheduler::start_with(&cluster, &[SOON[0], SOON[1], &conf]).await;
    let mut racks = Vec::new();
    for name in ["low-1", "low-2"] {
        create(&cluster, &hard_gang(&cluster, name, 2, "8")).await;
        racks.push(nodes_of(&cluster, name, 2).await);
    }
    create_urgent(&cluster, hard_gang(&cluster, "wide", 3, "5")).await;
    let short = "network topology: no HyperNode of tier 1 or lower has room for all pods";
    wait_for(&cluster, "wide", short).await;
    nobody_goes(&cluster, &["low-1", "low-2"]).await;
    create_urgent(&cluster, hard_gang(&cluster, "urgent", 2, "8")).await;
    let taken = nodes_of(&cluster, "urgent", 2).await;
    assert!(racks.contains(&taken), "{taken:?} of {racks:?}");
    two_go(&cluster).await;
}

/// A gang in hard mode takes room back from another queue in one rack.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reclaim_takes_all_room_in_one_rack() {
    let cluster = Cluster::take("reclaim-in-rack", 4).await;
    create(&cluster, &two_racks()).await;
    create(&cluster, &two_queues()).await;
    let conf = with_topology(&cluster, "enqueue, allocate, reclaim, backfill");
    let _scheduler = Scheduler::start_with(&cluster, &[SOON[0], SOON[1], &conf]).await;
    let mut elastic = of_queue(gang(cluster.namespace, "elastic", 4, "8"), "lender");
    elastic[0]["spec"]["minMember"] = json!(0);
    create(&cluster, &elastic).await;
    cluster.running("elastic", 4).await;
    create(&cluster, &of_queue(hard_gang(&cluster, "claim", 2, "8"), "claimer")).await;
    let taken = nodes_of(&cluster, "claim", 2).await;
    let racks = [["node-0", "node-1"], ["node-2", "node-3"]];
    assert!(racks.iter().any(|rack| taken == *rack), "{taken:?}");
    two_go(&cluster).await;
}

/// A HyperNode of this tier with one selector.
fn hyper_node_by(name: &str, tier: u32, selector: &Value) -> Value {
    json!({"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": [{"type": "Node", "selector": selector}]}})
}

/// Gives a node this label, or takes it away.
async fn label_rack(cluster: &Cluster, node: &str, rack: Option<&str>) {
    let labels = json!({"metadata": {"labels": {"rack": rack}}});
    cluster.api.merge(&format!("/api/v1/nodes/{node}"), &labels).await.unwrap();
}

/// Rack a has its nodes by a pattern, rack b by a label. Jobs take the next tier where the first is short,
/// and wait where the highest one is; a node comes into a rack and leaves it by its label.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racks_by_pattern_and_label_follow_their_nodes() {
    let cluster = Cluster::take("selected-racks", 4).await;
    label_rack(&cluster, "node-2", Some("b")).await;
    let mut zone = hyper_node("zone", &["rack-a", "rack-b"]);
    (zone["spec"]["tier"], zone["spec"]["tierName"]) = (json!(2), json!("zone"));
    let members = zone["spec"]["members"].as_array_mut().unwrap();
    members.iter_mut().for_each(|member| member["type"] = json!("HyperNode"));
    let by_pattern = json!({"regexMatch": {"pattern": "^node-[01]$"}});
    let by_label = json!({"labelMatch": {"matchLabels": {"rack": "b"}}});
    let racks =
        [hyper_node_by("rack-a", 1, &by_pattern), hyper_node_by("rack-b", 1, &by_label), zone];
    create(&cluster, &racks).await;
    let conf = with_topology(&cluster, "enqueue, allocate, backfill");
    let _scheduler = Scheduler::start_with(&cluster, &[SOON[0], SOON[1], &conf]).await;
    create(&cluster, &hard_gang(&cluster, "pair", 2, "5")).await;
    assert_eq!(nodes_of(&cluster, "pair", 2).await, ["node-0", "node-1"]);
    let in_zone = |name: &str, n_pods: u32, cpu: &str| {
        let mut objects = gang(cluster.namespace, name, n_pods, cpu);
        objects[0]["spec"]["networkTopology"] = json!({"mode": "hard", "highestTierName": "zone"});
        objects
    };
    create(&cluster, &in_zone("three", 3, "3")).await;
    let nodes = nodes_of(&cluster, "three", 3).await;
    assert!(nodes.iter().all(|node| node != "node-3"), "outside of the zone: {nodes:?}");
    create(&cluster, &in_zone("more", 2, "4")).await;
    wait_for(&cluster, "more", "of tier 2 or lower has room for all pods").await;
    label_rack(&cluster, "node-3", Some("b")).await;
    let nodes = nodes_of(&cluster, "more", 2).await;
    assert!(nodes.iter().all(|node| ["node-2", "node-3"].contains(&node.as_str())), "{nodes:?}");
    label_rack(&cluster, "node-3", None).await;
    for pod in cluster.pods("more").await {
        cluster.api.delete(&cluster.path(&format!("pods/{}", name(&pod)))).await.unwrap();
    }
    // The scheduler may see a pod before it sees the node.
    for number in 0.. {
        let late = format!("late-{number}");
        create(&cluster, &in_zone(&late, 1, "6")).await;
        let short = "of tier 2 or lower has room for all pods";
        let waits = |pod: &Value| refusal(pod).is_some_and(|(_, text)| text.contains(short));
        let is_decided = |pod: &Value| waits(pod) || !node_of(pod).is_empty();
        if waits(&cluster.pod(&format!("{late}-0"), is_decided).await) {
            break;
        }
        cluster.api.delete(&cluster.path(&format!("pods/{late}-0"))).await.unwrap();
    }
}

/// Pods in soft mode are in one rack if there is room, and in two if there is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_soft_gang_stays_in_one_rack_if_it_can() {
    let cluster = Cluster::take("soft-gangs", 4).await;
    create(&cluster, &two_racks()).await;
    let conf = with_topology(&cluster, "enqueue, allocate, backfill");
    let _scheduler = Scheduler::start_with(&cluster, &[SOON[0], SOON[1], &conf]).await;
    let racks = async |name: &str, n_pods: u32, cpu: &str| {
        let mut objects = gang(cluster.namespace, name, n_pods, cpu);
        objects[0]["spec"]["networkTopology"] = json!({"mode": "soft"});
        create(&cluster, &objects).await;
        let nodes = nodes_of(&cluster, name, n_pods as usize).await;
        let racks = nodes.iter().map(|node| ["node-0", "node-1"].contains(&node.as_str()));
        racks.collect::<BTreeSet<bool>>().len()
    };
    // Each pod of the pair needs a node of its own.
    assert_eq!((racks("pair", 2, "5").await, racks("five", 5, "3").await), (1, 2));
}

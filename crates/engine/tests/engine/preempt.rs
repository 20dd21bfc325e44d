//! actions.md "preempt, normal (TP)", "preempt, dry-run (TT)" and what of "Recording" and "Across
//! cycles" needs preempt. The cases that need HyperNodes, a capacity plugin or pod affinity come
//! with those.

use vc_conf::Config;
use vc_engine::EngineOptions;
use vc_framework::{Sample, Session};
use vc_model::{ClusterEvent, HostPort, NodeId, NodeShardRecord, Protocol, Sharding, ShardingMode};
use vc_resource::Resource;

use crate::support::*;

/// Legend TP.
const TP: &str = "conformance{preemptable} gang{preemptable jobPipelined jobStarving} \
    priority{taskOrder jobOrder preemptable jobPipelined jobStarving} \
    proportion{overused allocatable queueOrder}";
/// Legend TT, without the plugins that are not built.
const TT: &str = "conformance{preemptable} gang{preemptable jobPipelined jobStarving} \
    priority{taskOrder jobOrder preemptable jobPipelined jobStarving} \
    proportion{overused allocatable queueOrder predicate} predicates{preemptable predicate}";
/// TP without gang's say on who starves: members beyond the minimum preempt, too.
const ELASTIC: &str = "gang{preemptable jobPipelined} \
    priority{taskOrder jobOrder preemptable jobStarving} predicates";

fn tp() -> Config {
    conf("preempt", TP)
}

fn dry() -> Config {
    dry_with("enableTopologyAwarePreemption: true")
}

fn dry_with(arguments: &str) -> Config {
    with_arguments(conf("preempt", TT), "preempt", &format!("{{{arguments}}}"))
}

/// Who is evicted, by name.
fn evicted(config: &Config, text: &str) -> String {
    victims(&World::new(config, text).cycle())
}

fn victims(cycle: &Cycle) -> String {
    let text = cycle.only(&["evict"]);
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    names.sort_unstable();
    names.join(" ")
}

#[test]
fn preempt__idle_room() {
    let text = "node n1 cpu=10
        job pg1 min=3
          task a cpu=1 x2 @n1 running
          task b cpu=1";
    assert_eq!(evicted(&tp(), text), "");
    assert_eq!(evicted(&dry(), text), "", "dry run");
}

#[test]
fn preempt__not_starving() {
    let text = "node n1 cpu=3
        job pg1 min=1
          task a cpu=1 x2 @n1 running
        job pg2 min=1
          task a cpu=1 @n1 running
          task b cpu=1";
    assert_eq!(evicted(&tp(), text), "");
    assert_eq!(evicted(&dry(), text), "", "dry run");
}

#[test]
fn preempt__one_of_two() {
    let text = "node n1 cpu=2
        job pg1 priority=10
          task e1 cpu=1 @n1 running pre=true
          task e2 cpu=1 @n1 running pre=false
        job pg2 priority=100000 min=1
          task p cpu=1 x2";
    assert_eq!(evicted(&tp(), text), "pg1-e1");
    assert_eq!(evicted(&dry(), text), "pg1-e1", "dry run");
}

#[test]
fn preempt__large() {
    let text = "node n1 cpu=6
        job pg1 priority=10 min=1
          task e1 cpu=1 @n1 running pre=true
          task e2 cpu=1 @n1 running pre=true
          task e3 cpu=1 @n1 running pre=false
        job pg2 priority=100000
          task p cpu=5";
    assert_eq!(evicted(&tp(), text), "pg1-e1 pg1-e2");
    assert_eq!(evicted(&dry(), text), "pg1-e1 pg1-e2", "dry run");
}

#[test]
fn preempt__queue_full() {
    let text = "node n1 cpu=12
        queue q1 cap.cpu=4
        job pg1 queue=q1 priority=10 min=0
          task a cpu=3 @n1 running
        job pg2 queue=q1 priority=100000
          task p cpu=3";
    assert_eq!(evicted(&tp(), text), "pg1-a");
    assert_eq!(evicted(&dry(), text), "pg1-a", "dry run");
}

#[test]
fn preempt__queue_room() {
    let text = "node n1 cpu=12
        queue q1 cap.cpu=6
        job pg1 queue=q1 priority=10 min=1
          task a cpu=3 @n1 running
        job pg2 queue=q1 priority=100000
          task p cpu=3";
    assert_eq!(evicted(&tp(), text), "");
    assert_eq!(evicted(&dry(), text), "", "dry run");
}

#[test]
fn preempt__protected() {
    let text = "node n1 cpu=12
        queue q1 cap.cpu=3
        job pg1 queue=q1 priority=10 min=1
          task e1 cpu=1 @n1 running pre=false
          task e2 cpu=1 @n1 running pre=true
          task e3 cpu=1 @n1 running pre=true priority=100000
        job pg2 queue=q1 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "pg1-e2");
    assert_eq!(evicted(&dry(), text), "pg1-e2", "dry run");
}

#[test]
fn preempt__pod_slots() {
    let text = "node n1 cpu=12 pods=1
        job pg1 priority=10 min=0
          task v @n1 running
        job pg2 priority=100000
          task p cpu=3";
    assert_eq!(evicted(&tp(), text), "pg1-v");
    assert_eq!(evicted(&dry(), text), "pg1-v", "dry run");
}

#[test]
fn preempt__be_vs_be() {
    let text = "node n1 cpu=12 pods=1
        job pg1 priority=10 min=0
          task v @n1 running
        job pg2 priority=100000
          task p";
    assert_eq!(evicted(&tp(), text), "pg1-v");
    assert_eq!(evicted(&dry(), text), "pg1-v", "dry run");
}

#[test]
fn preempt__be_vs_request() {
    let text = "node n1 cpu=12 pods=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000
          task p";
    assert_eq!(evicted(&tp(), text), "");
    assert_eq!(evicted(&dry(), text), "", "dry run");
}

#[test]
fn preempt__policy_never() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000
          task p cpu=1 never";
    assert_eq!(evicted(&tp(), text), "");
    assert_eq!(evicted(&dry(), text), "", "dry run");
}

#[test]
fn preempt__rollback_queue() {
    let text = "node n1 cpu=10
        queue q1 cap.cpu=3
        job pg1 queue=q1 priority=10 min=0
          task e cpu=1 x2 @n1 running
        job pg2 queue=q1 priority=100000
          task p cpu=4";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__per_node_rollback() {
    let text = "node n1 cpu=3
        node n2 cpu=4
        queue q1 cap.cpu=6
        job pg1 queue=q1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 queue=q1 priority=10 min=0
          task v cpu=4 @n2 running
        job pg3 queue=q1 priority=100000
          task p cpu=3";
    assert_eq!(evicted(&tp(), text), "pg2-v");
}

#[test]
fn preempt__two_queues() {
    let text = "node n1 cpu=2
        queue q1
        queue q2
        job pg1 queue=q1 priority=10 min=0
          task r cpu=1 @n1 running
        job low queue=q2 priority=10 min=0
          task r cpu=1 @n1 running
        job high queue=q2 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "low-r");
}

#[test]
fn preempt__gang_minimum() {
    let text = "node n1 cpu=2
        job pg1 priority=10 min=2
          task v cpu=1 x2 @n1 running
        job pg2 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__gang_rollback() {
    let text = "node n1 cpu=2
        job pg1 priority=10 min=1
          task v cpu=1 x2 @n1 running
        job pg2 priority=100000 min=2
          task p cpu=1 x2";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__other_queue() {
    let text = "node n1 cpu=1
        queue q1
        queue q2
        job pg1 queue=q2 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 queue=q1 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__kube_system_class() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running class=system-node-critical
        job pg2 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__kube_system() {
    let text = "node n1 cpu=1
        job kube-system/pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__gated() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000
          task p cpu=1 gate=example.com/later";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__topology_job_hard() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000 topology=hard
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__topology_job_soft() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 running
        job pg2 priority=100000 topology=soft
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "");
}

#[test]
fn preempt__bound_victim() {
    let text = "node n1 cpu=1
        job pg1 priority=10 min=0
          task v cpu=1 @n1 bound
        job pg2 priority=100000
          task p cpu=1";
    assert_eq!(evicted(&tp(), text), "pg1-v");
}

#[test]
fn preempt__intra_job() {
    let text = |n_high: u32| {
        format!(
            "node n1 cpu=2
            job j min=1
              task low cpu=1 x2 @n1 running priority=10
              task high cpu=1 x{n_high} priority=100"
        )
    };
    let config = conf("preempt", ELASTIC);
    let decided = "evict j-low-1 preempt\npipeline j-high-0 n1";
    assert_eq!(decide(&config, &text(1)), decided);
    // The second finds no victim: the gang is at its minimum.
    assert_eq!(decide(&config, &text(2)), decided);
}

#[test]
fn preempt__unresolvable_node() {
    let text = "node n1 cpu=1 taint=x:NoSchedule
        job low priority=10 min=0
          task v cpu=1 @n1 running
        job high priority=100
          task p cpu=1";
    let tiers = format!("{TP} predicates");
    assert_eq!(evicted(&conf("preempt", &tiers), text), "");
    assert_eq!(evicted(&conf("allocate, preempt", &tiers), text), "");
    assert_eq!(evicted(&conf("preempt", &tiers), &text.replace("taint=x:NoSchedule", "")), "low-v");
}

/// Transactions and attempts of a cycle, and the largest gauge of victims.
fn numbers(cycle: &Cycle) -> (usize, usize, u32) {
    let samples = &cycle.report.samples;
    let count = |wanted: fn(&Sample) -> bool| samples.iter().filter(|s| wanted(s)).count();
    let victims = samples.iter().filter_map(|sample| match sample {
        Sample::PreemptionVictims(n_victims) => Some(*n_victims),
        _ => None,
    });
    (
        count(|sample| matches!(sample, Sample::EvictionTransaction(_))),
        count(|sample| matches!(sample, Sample::PreemptionAttempt)),
        victims.max().unwrap_or_default(),
    )
}

#[test]
fn preempt__metrics() {
    let text = "node n1 cpu=3
        node n2 cpu=1
        job low priority=10 min=0
          task v cpu=1 x3 @n1 running
        job high priority=100
          task p cpu=3";
    assert_eq!(numbers(&World::new(&tp(), text).cycle()), (1, 1, 3));
    assert_eq!(numbers(&World::new(&dry(), text).cycle()), (1, 1, 3));
    // Both members find victims, but the third does not.
    let discarded = "node n1 cpu=1
        node n2 cpu=1
        job low priority=10 min=0
          task a cpu=1 @n1 running
          task b cpu=1 @n2 running
        job high priority=100 min=3
          task p cpu=1 x3";
    assert_eq!(numbers(&World::new(&tp(), discarded).cycle()), (0, 2, 1));
}

#[test]
fn preempt__trim() {
    let text = "node n1 cpu=4
        job low1 priority=1 min=0
          task v cpu=1 @n1 running
        job low2 priority=2 min=0
          task v cpu=3 @n1 running
        job high priority=100
          task p cpu=3";
    assert_eq!(evicted(&tp(), text), "low2-v");
    let off = with_arguments(tp(), "preempt", "{trimVictims: false}");
    assert_eq!(evicted(&off, text), "low1-v low2-v");
}

#[test]
fn preempt__zero_evict() {
    let text = "node n1 cpu=1
        job high priority=100
          task p cpu=1";
    assert_eq!(decide(&conf("preempt, allocate", TP), text), "bind high-p n1");
    assert_eq!(decide(&tp(), text), "");
}

#[test]
fn preempt__nominated_missing() {
    let text = "node n1 cpu=1
        job low priority=10 min=0
          task v cpu=1 @n1 running
        job high priority=100
          task p cpu=1 nominated=n9";
    let mut world = World::new(&tp(), text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    assert!(cycle.only(&["pod"]).ends_with("nominated=-"), "{}", cycle.all());
    assert_eq!(world.cycle().decisions(), "evict low-v preempt\npipeline high-p n1");
}

#[test]
fn preempt__nominated_fits() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        job low priority=10 min=0
          task v cpu=1 @n2 running
        job high priority=100 min=2
          task a cpu=1 nominated=n1
          task b cpu=1";
    let decided = "evict low-v preempt\npipeline high-a n1\npipeline high-b n2";
    assert_eq!(decide(&tp(), text), decided);
}

const VICTIM_LEAVES: &str = "node n1 cpu=2
    job low priority=10 min=0
      task gone cpu=1 @n1 running deleting evicted
      task v cpu=1 @n1 running
    job high priority=100
      task p cpu=2 priority=100 nominated=n1";

#[test]
fn preempt__nominated_wait() {
    assert_eq!(evicted(&tp(), VICTIM_LEAVES), "");
    // It goes for a reason of its own.
    assert_eq!(evicted(&tp(), &VICTIM_LEAVES.replace(" evicted", "")), "low-v");
}

#[test]
fn preempt__nominated_unresolvable() {
    let text = "node n1 cpu=1 taint=x:NoSchedule
        node n2 cpu=1
        job low priority=10 min=0
          task v cpu=1 @n2 running
        job high priority=100
          task p cpu=1 nominated=n1";
    let config = conf("preempt", &format!("{TP} predicates"));
    assert_eq!(decide(&config, text), "evict low-v preempt\npipeline high-p n2");
}

#[test]
fn preempt__discard_no_nomination() {
    let text = "node n1 cpu=2
        job low priority=10 min=1
          task v cpu=1 x2 @n1 running
        job high priority=100 min=2
          task p cpu=1 x2";
    let cycle = World::new(&tp(), text).cycle();
    assert_eq!(cycle.decisions(), "");
    assert!(!cycle.all().contains("nominated="), "{}", cycle.all());
}

#[test]
fn preempt__nomination_of_a_committed_eviction() {
    let text = "node n1 cpu=1
        job low priority=10 min=0
          task v cpu=1 @n1 running
        job high priority=100
          task p cpu=1";
    let cycle = World::new(&tp(), text).cycle();
    assert!(cycle.only(&["pod"]).ends_with("nominated=n1"), "{}", cycle.all());
}

#[test]
fn preempt__shard() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        job low priority=10 min=0
          task a cpu=1 @n1 running
          task b cpu=1 @n2 running
        job high priority=100
          task p cpu=1";
    for mode in [ShardingMode::Hard, ShardingMode::Soft] {
        for (shard, victim) in [("n1", "low-a"), ("n2", "low-b")] {
            let sharding = Sharding { mode, name: "s".into() };
            let options = EngineOptions { sharding, ..EngineOptions::default() };
            let mut all = objects("queue default");
            all.extend(objects(text));
            let mut world = World::with(options, &tp(), all);
            world.send(ClusterEvent::NodeShardApplied(Box::new(NodeShardRecord {
                name: "s".into(),
                nodes_desired: vec![shard.into()],
                nodes_in_use: vec![shard.into()],
                ..NodeShardRecord::default()
            })));
            assert_eq!(victims(&world.cycle()), victim, "{mode:?}");
        }
    }
}

/// All nodes are compared.
fn dry_all() -> Config {
    dry_with("enableTopologyAwarePreemption: true, minCandidateNodesPercentage: 100")
}

#[test]
fn dry__reprieve_order() {
    let text = "node n1 cpu=5
        job j1 priority=1 min=0
          task v cpu=1 @n1 running
        job j5 priority=5 min=0
          task v cpu=1 @n1 running
        job j9 priority=9 min=0
          task v cpu=3 @n1 running
        job high priority=100
          task p cpu=4";
    assert_eq!(evicted(&dry(), text), "j1-v j9-v");
}

/// Two full nodes, with victims of one job each.
fn two_nodes(a: &str, b: &str) -> String {
    let tasks = |words: &str, node: &str| -> String {
        let line = |(index, task): (usize, &str)| format!("task v{index} @{node} running {task}\n");
        words.split(',').enumerate().map(line).collect()
    };
    format!(
        "node na cpu=2\nnode nb cpu=2\njob a min=0 priority=10\n{}job b min=0 priority=10\n{}\
         job high priority=100\ntask p cpu=2",
        tasks(a, "na"),
        tasks(b, "nb")
    )
}

#[test]
fn dry__levels() {
    let cases = [
        ("level1", "cpu=1 priority=5,cpu=1 priority=5", "cpu=2 priority=9", "a-v0 a-v1"),
        ("level1", "cpu=2 priority=9", "cpu=1 priority=5,cpu=1 priority=5", "b-v0 b-v1"),
        (
            "level2",
            "cpu=1 priority=5,cpu=1 priority=3",
            "cpu=1 priority=5,cpu=1 priority=1",
            "b-v0 b-v1",
        ),
        ("level2, fewer", "cpu=2 priority=5", "cpu=1 priority=5,cpu=1 priority=1", "a-v0"),
        ("level2, fewer", "cpu=1 priority=5,cpu=1 priority=1", "cpu=2 priority=5", "b-v0"),
        ("level4", "cpu=2 priority=5 started=9", "cpu=2 priority=5 started=1", "a-v0"),
        ("level4", "cpu=2 priority=5 started=1", "cpu=2 priority=5 started=9", "b-v0"),
        ("level5", "cpu=2 priority=5 started=1", "cpu=2 priority=5 started=1", "a-v0"),
    ];
    for (level, a, b, victims) in cases {
        assert_eq!(evicted(&dry_all(), &two_nodes(a, b)), victims, "{level}: {a} | {b}");
    }
}

#[test]
fn dry__level1_max() {
    // The first victim of na is the pod of the more important job; the other has more pod priority.
    let text = "node na cpu=2
        node nb cpu=2
        job important priority=50 min=0
          task v cpu=1 @na running priority=1
        job other priority=10 min=0
          task a cpu=1 @na running priority=9
          task b cpu=2 @nb running priority=5
        job high priority=100
          task p cpu=2";
    assert_eq!(evicted(&dry_all(), text), "other-b");
}

#[test]
fn dry__workers() {
    let text = "node n1 cpu=1\nnode n2 cpu=1\nnode n3 cpu=1\nnode n4 cpu=1
        job low priority=10 min=0
          task a cpu=1 @n1 running priority=4
          task b cpu=1 @n2 running priority=2
          task c cpu=1 @n3 running priority=3
          task d cpu=1 @n4 running priority=1
        job high priority=100
          task p cpu=1";
    let of = |n_workers: u32| {
        let arguments = format!(
            "enableTopologyAwarePreemption: true, minCandidateNodesAbsolute: 2, \
             topologyAwarePreemptWorkerNum: {n_workers}"
        );
        decide(&dry_with(&arguments), text)
    };
    assert!(of(1).starts_with("evict low-"), "{}", of(1));
    assert_eq!([of(4), of(16)], [of(1), of(1)]);
    // With all nodes as candidates the offset does not matter.
    assert_eq!(evicted(&dry_all(), text), "low-d");
}

#[test]
fn dry__zero_victims() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        job low priority=10 min=0
          task v cpu=1 @n2 running
        job high priority=100 min=2
          task p cpu=1 x2";
    let decided = "evict low-v preempt\npipeline high-p-0 n1\npipeline high-p-1 n2";
    assert_eq!(decide(&dry_all(), text), decided);
}

#[test]
fn dry__queue_never_fits() {
    let text = "node n1 cpu=2
        queue q1 cap.cpu=1
        job low queue=q1 priority=10 min=0
          task v cpu=1 @n1 running
        job high queue=q1 priority=100
          task p cpu=2";
    assert_eq!(evicted(&dry(), text), "");
}

/// Job `high` and the pod on n1 with the same host port.
fn with_ports(config: &Config, text: &str, pods: &[&str]) -> Cycle {
    let mut world = World::new(config, text);
    for pod in pods {
        world.edit(pod, |pod| pod.containers[0].host_ports.push(host_port()));
    }
    world.cycle()
}

fn host_port() -> HostPort {
    HostPort { ip: "0.0.0.0".into(), protocol: Protocol::Tcp, port: 8080 }
}

#[test]
fn dry__hostport() {
    let text = "node n1 cpu=2
        job low priority=10 min=0
          task v cpu=1 @n1 running
          task holder cpu=1 @n1 running pre=false
        job high priority=100
          task p cpu=1";
    assert_eq!(victims(&with_ports(&dry(), text, &["high-p", "low-holder"])), "");
    assert_eq!(victims(&with_ports(&dry(), text, &["high-p"])), "low-v");
    assert_eq!(victims(&with_ports(&dry(), text, &["high-p", "low-v"])), "low-v");
}

#[test]
fn preempt__device() {
    // The node is half free, but what the preemptor needs is held by the victim.
    let text = "node n1 cpu=2
        job low priority=10
          task v cpu=1 @n1 running
        job high priority=100
          task p cpu=1";
    let config =
        conf("preempt", &format!("{} predicates", TP.replacen("gang{preemptable", "gang{", 1)));
    assert_eq!(victims(&with_ports(&config, text, &["high-p", "low-v"])), "low-v");
    assert_eq!(victims(&with_ports(&config, text, &["high-p"])), "");
}

/// Sums, statuses and shares. What is absent equals 0.
fn tables(session: &Session<'_>) -> (Vec<[Resource; 4]>, String) {
    let node = |id: &NodeId| {
        let row = &session.nodes[*id];
        [row.used.clone(), row.releasing.clone(), row.pipelined.clone(), row.idle.clone()]
    };
    let tasks: Vec<_> = session.tasks.iter().map(|(id, row)| (id, row.status, row.node)).collect();
    let jobs: Vec<_> = session.jobs.iter().map(|(id, row)| (id, row.counts.clone())).collect();
    let queues = session.facts().queues.iter();
    let shares: Vec<_> =
        queues.map(|&queue| session.hooks().queue_share(session.ask(), queue)).collect();
    let nodes = session.facts().nodes.iter();
    (nodes.map(node).collect(), format!("{tasks:?} {jobs:?} {shares:?}"))
}

#[test]
fn dry__isolation() {
    // Room can be made for one member only.
    let text = "node n1 cpu=3
        queue q1 cap.cpu=3
        job low queue=q1 priority=10 min=1
          task v cpu=1 x3 @n1 running
        job high queue=q1 priority=100 min=3
          task p cpu=1 x3";
    let mut stage = Stage::new(&dry(), Vec::new(), text);
    let outbox = stage.session(|session| {
        let before = tables(session);
        run(session, "preempt");
        assert_eq!(tables(session), before);
    });
    assert_eq!(outbox.effects, []);
    let tried = outbox.samples.iter().filter(|sample| **sample == Sample::PreemptionAttempt);
    assert_eq!(tried.count(), 2);
}

/// A victim that takes its time, and what waits for its room.
const SLOW_VICTIM: &str = "node n1 cpu=2
    node n2 cpu=2
    job low priority=10 min=0
      task a cpu=2 @n1 running
      task b cpu=2 @n2 running
    job high priority=100
      task p cpu=2";

fn whole() -> Config {
    conf(
        "enqueue, allocate, preempt, reclaim, backfill",
        "priority gang conformance | predicates nodeorder",
    )
}

#[test]
fn cycle__no_second_eviction() {
    let mut world = World::new(&whole(), SLOW_VICTIM);
    assert_eq!(world.cycle().decisions(), "evict low-a preempt\npipeline high-p n1");
    for _ in 0..5 {
        world.tick(1);
        assert_eq!(world.cycle().decisions(), "pipeline high-p n1");
        assert_eq!(world.pod("high-p").nominated_node.as_deref(), Some("n1"));
    }
    world.kubelets();
    assert_eq!(world.cycle().decisions(), "bind high-p n1");
}

#[test]
fn cycle__restart_while_a_victim_terminates() {
    let mut world = World::new(&whole(), SLOW_VICTIM);
    world.cycle();
    // More urgent, but the room is not for it.
    world.add("job later priority=100 created=9\n task p cpu=2");
    world.restart(&whole());
    let cycle = world.cycle();
    assert_eq!(victims(&cycle), "low-b", "{}", cycle.all());
    assert!(cycle.decisions().contains("pipeline high-p n1"), "{}", cycle.all());
    assert!(cycle.decisions().contains("pipeline later-p n2"), "{}", cycle.all());
}

#[test]
fn cycle__node_lost_while_a_victim_terminates() {
    let mut world = World::new(&whole(), SLOW_VICTIM);
    world.cycle();
    world.delete_pod("low-a");
    world.delete_node("n1");
    // 6.5 row 3: not in the cycle that finds the node gone.
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    assert!(cycle.only(&["pod"]).ends_with("nominated=-"), "{}", cycle.all());
    assert_eq!(world.cycle().decisions(), "evict low-b preempt\npipeline high-p n2");
    assert_eq!(world.pod("high-p").nominated_node.as_deref(), Some("n2"));
}

#[test]
fn cycle__claim_beyond_the_minimum() {
    // The preemptor is ready all the time; what the room was made for comes first all the same.
    let text = "node n1 cpu=2
        job low priority=1 min=0
          task v cpu=1 @n1 running
        job high priority=100 min=1
          task a cpu=1 @n1 running
          task b cpu=1
        job other priority=1
          task p cpu=1";
    let tiers = "gang{preemptable jobPipelined jobReady jobOrder} \
        priority{taskOrder jobOrder preemptable jobStarving} predicates";
    let mut world = World::new(&conf("allocate, preempt", tiers), text);
    assert_eq!(world.cycle().decisions(), "evict low-v preempt\npipeline high-b n1");
    assert_eq!(world.cycle().decisions(), "pipeline high-b n1");
    world.kubelets_and_controllers();
    assert_eq!(world.cycle().decisions(), "bind high-b n1");
    assert_eq!(victims(&world.cycle()), "");
}

#[test]
fn cycle__dummy_succeeded() {
    let text = "node n1 cpu=3
        job low priority=10 min=2
          task a cpu=1 @n1 running
          task b cpu=1 @n1 running
          task c cpu=1 @n1 succeeded deleting evicted
        job high priority=100 min=1
          task p cpu=2";
    assert_eq!(evicted(&tp(), text), "");
    // One that really is done counts for its gang.
    assert_eq!(evicted(&tp(), &text.replace(" deleting evicted", "")), "low-b");
}

#[test]
fn log__preempt() {
    let text = "node n1 cpu=2
        job low priority=10 min=1
          task v cpu=1 x2 @n1 running
        job high priority=100
          task p cpu=1
        job huge priority=90
          task p cpu=9
        job never priority=80
          task p cpu=1 never
        job wide priority=70 topology=hard
          task p cpu=1";
    let logged = |config: &Config| {
        let mut world = World::new(config, text);
        let lines = log_of(|| {
            world.cycle();
        });
        lines.join("\n")
    };
    let expected = [
        "5 Enter Preempt ...",
        "3 Job <default/wide> Queue <default> skip preemption, reason: jobs containing \
         networkTopology do not support preemption",
        "3 Considering Task <default/high-p> on Node <n1>.",
        "3 Try to preempt Task <default/low-v-1> for Task <default/high-p>",
        "3 Preempted <",
        "> for Task <default/high-p> requested <",
        "3 Committing operations ...",
        "3 Considering Task <default/huge-p> on Node <n1>.",
        "3 No validated victims on Node <n1>: not enough resources: requested <",
        "3 No preemptor task in job <default/huge>.",
        "3 Preemptor <default/never-p> failed to preempt Task , err: not eligible: ",
        "4 No preemptors in Queue <default>, break.",
        "5 Leaving Preempt ...",
    ];
    let log = logged(&tp());
    let mut rest = &log[..];
    for line in expected {
        let place = rest.find(line).unwrap_or_else(|| panic!("{line}\n{log}"));
        rest = &rest[place + line.len()..];
    }
    let log = logged(&dry());
    assert!(
        log.contains("3 Try to preempt Task <default/low-v-1> for Task <default/high-p>"),
        "{log}"
    );
}

#[test]
fn cycle__no_second_eviction_where_filters_see_the_victim() {
    // The slot of the victim is taken until it is gone, so that the claim cannot be served before.
    let text = "node n1 cpu=9 pods=1
        node n2 cpu=9 pods=1
        queue q1
        queue q2
        job low queue=q1 priority=10 min=0
          task a cpu=1 @n1 running
          task b cpu=1 @n2 running
        job high queue=q1 priority=100
          task p cpu=1";
    for (text, reason) in
        [(text.to_owned(), "preempt"), (text.replace("high queue=q1", "high queue=q2"), "reclaim")]
    {
        let mut world = World::new(&whole(), &text);
        let first = world.cycle().only(&["evict"]);
        assert!(first.ends_with(reason) && first.lines().count() == 1, "{first}");
        for _ in 0..5 {
            world.tick(1);
            assert_eq!(world.cycle().only(&["evict"]), "");
        }
        world.kubelets();
        let bound = world.cycle().decisions();
        assert!(bound.starts_with("bind high-p n"), "{bound}");
    }
}

#[test]
fn cycle__claim_of_a_best_effort_pod() {
    // The slot goes to the pod that it was made for, not to the one that lost it.
    let text = "node n1 cpu=9 pods=1
        job low priority=10 min=0
          task v @n1 running
        job high priority=100
          task p";
    let mut world = World::new(&whole(), text);
    assert_eq!(world.cycle().decisions(), "evict low-v preempt\npipeline high-p n1");
    world.kubelets_and_controllers();
    assert_eq!(world.cycle().decisions(), "bind high-p n1");
}

#[test]
fn preempt__sub_groups() {
    let text = "node n1 cpu=3
        job low priority=10 min=0
          task v cpu=1 @n1 x3 running
        job high priority=100 min=2 policy.g=2x1
          task p cpu=1 label.g=a x2";
    let evicted = "evict low-v-2 preempt\nevict low-v-1 preempt";
    let placed = "pipeline high-p-0 n1\npipeline high-p-1 n1";
    let tiers = "conformance gang{preemptable jobPipelined jobStarving jobReady} priority";
    let config = conf("allocate, preempt", tiers);
    let mut world = World::new(&config, text);
    let first = world.cycle();
    assert_eq!(first.decisions().lines().filter(|line| evicted.contains(*line)).count(), 2);
    assert_eq!(first.only(&["pipeline"]), placed);
    world.kubelets_and_controllers();
    assert_eq!(world.cycle().decisions(), "bind high-p-0 n1\nbind high-p-1 n1");
}

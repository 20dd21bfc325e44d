//! Cases of the specification about where allocate places jobs with a network topology, by both
//! evaluators. Specification: actions.md 2.12, 4.5, 4.6, "allocate, network topology" of its cases;
//! core.md 66; plugins-nodes.md 136.

use vc_conf::Config;
use vc_framework::Report;
use vc_model::{Cluster, ClusterEvent, FitErrors, SubJob, TaskId, fixture};

use crate::support::*;

/// Two racks of two nodes each in a zone, and a node outside. The virtual root has tier 3.
pub(crate) const RACKS: &str = "hypernode rack-a node=n1 node=n2
    hypernode rack-b node=n3 node=n4
    hypernode zone tier=2 member=rack-a member=rack-b";

/// Four racks in two zones in a hall.
const THREE_TIERS: &str = "hypernode rack-a node=n1 node=n2
    hypernode rack-b node=n3 node=n4
    hypernode rack-c node=n5 node=n6
    hypernode rack-d node=n7 node=n8
    hypernode zone-1 tier=2 member=rack-a member=rack-b
    hypernode zone-2 tier=2 member=rack-c member=rack-d
    hypernode hall tier=3 member=zone-1 member=zone-2";

/// Among nodes of one score the first by name is taken.
fn config() -> Config {
    conf("allocate", "gang | predicates network-topology-aware")
}

/// Returns the lines of nodes n1, n2 and so on of 4 cpu each.
fn nodes(n_nodes: u32) -> String {
    (1..=n_nodes).map(|index| format!("node n{index} cpu=4\n")).collect()
}

/// Returns a world with the objects of the text and with HyperNodes, whose list is complete.
pub(crate) fn world_with_hyper_nodes(config: &Config, hyper_nodes: &str, text: &str) -> World {
    let mut world = World::new(config, text);
    apply_hyper_nodes(&mut world, hyper_nodes);
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    world
}

/// Adds or replaces HyperNodes.
pub(crate) fn apply_hyper_nodes(world: &mut World, hyper_nodes: &str) {
    fixture::events_of(hyper_nodes).into_iter().for_each(|event| world.send(event));
}

/// Returns the decisions of the first cycle.
fn first_decisions(hyper_nodes: &str, text: &str) -> String {
    world_with_hyper_nodes(&config(), hyper_nodes, text).cycle().decisions()
}

/// Returns the nodes of the binds, in name order.
fn bound_nodes(cycle: &Cycle) -> String {
    let binds = cycle.only(&["bind"]);
    let mut nodes: Vec<&str> =
        binds.lines().filter_map(|line| line.split(' ').next_back()).collect();
    nodes.sort_unstable();
    nodes.join(" ")
}

/// Returns the message of the pod's condition as the line of the cycle has it, in quotes.
fn wait_message(cycle: &Cycle, pod: &str) -> String {
    let start = format!("pod {pod} Unschedulable ");
    let lines = cycle.only(&["pod"]);
    lines.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_default().to_owned()
}

/// Returns the topologies of the PodGroup j and of its policies as text.
fn topologies(cluster: &Cluster) -> String {
    let job = cluster.job(&key("j")).expect("the job is known");
    let group = cluster.jobs[job].pod_group.as_ref().expect("the job has a PodGroup");
    format!("{:?} {:?}", group.network_topology, group.policies)
}

/// A sub-group in soft mode may use the tiers that its job may use, or all tiers if the job has no
/// limit. The PodGroup keeps its fields.
#[test]
fn core_66_a_soft_sub_group_has_the_limit_of_its_job() {
    // The topology of the job, that of its policy, and the highest tiers of both.
    for (own, policy, of_job, of_sub_job) in [
        ("topology=soft", "soft", Some(3), Some(3)),
        ("topology=hard:2", "soft", Some(2), Some(2)),
        ("topology=hard:1", "soft", Some(1), Some(1)),
        ("topology=soft", "hard:1", Some(3), Some(1)),
        ("", "soft", None, Some(3)),
    ] {
        let job = format!("job j min=1 {own} policy.g=1x1:{policy}\n task p cpu=1 label.g=a");
        let world = world_with_hyper_nodes(&config(), RACKS, &format!("{}{job}", nodes(5)));
        let mut stage = Stage::of(world, &config(), Vec::new());
        let before = topologies(&stage.cluster);
        let outbox = stage.session(|session| {
            let job = session.job(&key("j")).expect("the job is known");
            let of_policy = |sub_job: &SubJob| sub_job.policy == Some(0);
            let sub_job = session.jobs[job].sub_jobs.iter().position(of_policy);
            let sub_job = sub_job.expect("the pod has a label");
            let view = session.view();
            let limits = (view.highest_tier(job), view.highest_tier_of_sub_job(job, sub_job));
            assert_eq!(limits, (of_job, of_sub_job), "{own} {policy}");
            run(session, "allocate");
        });
        assert_eq!(lines(&outbox.effects, &Report::default()), ["bind j-p n1"], "{own} {policy}");
        assert_eq!(topologies(&stage.cluster), before, "{own} {policy}");
    }
}

/// A soft sub-group of a hard job stays in the zone that its job may use. That of a soft job leaves
/// it.
#[test]
fn core_66_a_soft_sub_group_stays_below_the_limit_of_its_job() {
    for (own, wanted) in [("topology=soft", "n1 n2 n3 n4 n5"), ("topology=hard:2", "")] {
        let job = format!("job j min=5 {own} policy.g=5x1:soft\n task p cpu=4 label.g=a x5");
        let cycle = world_with_hyper_nodes(&config(), RACKS, &format!("{}{job}", nodes(5))).cycle();
        assert_eq!(bound_nodes(&cycle), wanted, "{own}: {}", cycle.all());
    }
}

/// A HyperNode of tier 1 is taken although one of tier 2 has a score of 100 and it has 1.
#[test]
fn net__lowest_tier_wins() {
    for own in ["topology=hard:2", "topology=soft", "policy.g=1x1:hard:2"] {
        // In one tier the score decides.
        for (tier, node) in [(1, "n1"), (2, "n2")] {
            let hyper_nodes =
                format!("hypernode rack tier={tier} node=n1\nhypernode hall tier=2 node=n2");
            let text = format!(
                "node n1 cpu=100\nnode n2 cpu=1\njob j min=1 {own}\n task p cpu=1 label.g=a"
            );
            let wanted = format!("bind j-p {node}");
            assert_eq!(first_decisions(&hyper_nodes, &text), wanted, "{own}, tier {tier}");
        }
    }
}

/// Outcome of one run of allocate: the state, the share of the queue, fit errors, and effects.
#[derive(Debug, PartialEq)]
struct AllocateOutcome {
    state: State,
    share: Option<f64>,
    fit_errors: Vec<Option<FitErrors>>,
    n_transactions: usize,
    effects: Vec<String>,
}

/// Runs allocate once. Returns its outcome and the state before it.
fn run_allocate(hyper_nodes: &str, text: &str) -> (AllocateOutcome, State) {
    let plugins = "gang drf | proportion predicates network-topology-aware";
    let config = conf("allocate", plugins);
    let mut stage =
        Stage::of(world_with_hyper_nodes(&config, hyper_nodes, text), &config, Vec::new());
    let before = State::of(&stage.cluster);
    let mut outcome = None;
    let outbox = stage.session(|session| {
        run(session, "allocate");
        let queue = session.queue("default").expect("it exists");
        let share = session.plugins().queue_share(session.view(), queue);
        let tasks = || session.tasks.iter().map(|(task, _)| task);
        let errors = |task| session.records.fit_errors.get(task).map(|errors| (**errors).clone());
        let has_transaction = |task: &TaskId| session.records.last_transaction.get(*task).is_some();
        outcome = Some(AllocateOutcome {
            state: State::of(session),
            share: share.map(|share| share.share),
            fit_errors: tasks().map(errors).collect(),
            n_transactions: tasks().filter(has_transaction).count(),
            effects: Vec::new(),
        });
    });
    let mut outcome = outcome.expect("the session has run");
    outcome.effects = lines(&outbox.effects, &Report::default());
    (outcome, before)
}

/// A trial in a HyperNode that fails, or that has a lower score than another one, leaves nothing.
/// All is as if that HyperNode did not exist.
#[test]
fn net__trial_isolation() {
    // Both racks have 6 cpu: rack-a has a place for one pod of 2 cpu, rack-b has two.
    let broken = "node n1 cpu=3\nnode n2 cpu=1\nnode n3 cpu=1\nnode n4 cpu=1
        node n5 cpu=4\nnode n6 cpu=1\nnode n7 cpu=1\n";
    let broken_racks = "hypernode rack-b node=n5 node=n6 node=n7
        hypernode rack-a node=n1 node=n2 node=n3 node=n4";
    // The second rack becomes full, which is better.
    let uneven = "node n1 cpu=8\nnode n2 cpu=8\nnode n3 cpu=2\nnode n4 cpu=2\n";
    let uneven_racks = "hypernode RACK node=n3 node=n4\nhypernode OTHER node=n1 node=n2";
    let sub_groups = "job j min=2 topology=hard policy.g=1x2
          task p cpu=2 label.g=a
          task q cpu=2 label.g=b
          task r cpu=9 label.g=c";
    let named =
        |rack: &str, other: &str| uneven_racks.replace("RACK", rack).replace("OTHER", other);
    let gang = |n_pods: u32| format!("job j min={n_pods} topology=hard\n task p cpu=2 x{n_pods}");
    for (hyper_nodes, nodes, job, wanted) in [
        // The gang of three fails in both.
        (broken_racks.to_owned(), broken, gang(3), vec![]),
        // The gang of two fails in the first.
        (broken_racks.to_owned(), broken, gang(2), vec!["bind j-p-0 n5", "bind j-p-1 n5"]),
        // It has room in both. The one that loses is tried first, or last.
        (
            named("rack-b", "rack-a"),
            uneven,
            sub_groups.to_owned(),
            vec!["bind j-p n3", "bind j-q n4"],
        ),
        (
            named("rack-a", "rack-b"),
            uneven,
            sub_groups.to_owned(),
            vec!["bind j-p n3", "bind j-q n4"],
        ),
    ] {
        let text = format!("{nodes}{job}");
        let (outcome, before) = run_allocate(&hyper_nodes, &text);
        assert_eq!(outcome.effects, wanted, "{hyper_nodes}");
        assert_eq!(outcome.state == before, wanted.is_empty(), "{hyper_nodes}");
        let alone = hyper_nodes.lines().next().unwrap_or_default();
        assert_eq!(outcome, run_allocate(alone, &text).0, "{hyper_nodes}");
    }
}

/// The virtual root is one tier above all HyperNodes and has all nodes.
#[test]
fn net__virtual_root() {
    let racks = "hypernode rack-a node=n1 node=n2\nhypernode rack-b node=n3 node=n4";
    let all = "n1 n2 n3 n4 n5";
    for (own, wanted) in [("hard:2", all), ("hard:7", all), ("soft", all), ("hard:1", "")] {
        let job = format!("job j min=5 topology={own}\n task p cpu=4 x5");
        let cycle = world_with_hyper_nodes(&config(), racks, &format!("{}{job}", nodes(5))).cycle();
        assert_eq!(bound_nodes(&cycle), wanted, "{own}: {}", cycle.all());
    }
}

/// Without HyperNodes a soft job is placed as one without a topology. A hard one waits (A45).
#[test]
fn net__virtual_root_without_hyper_nodes() {
    let config = conf("allocate", "gang | predicates nodeorder network-topology-aware");
    let cycle = |own: &str| {
        let nodes = "node n1 cpu=5\nnode n2 cpu=8\nnode n3 cpu=7\n";
        let job = format!("job j min=3{own}\n task p cpu=2 x3");
        world_with_hyper_nodes(&config, "", &format!("{nodes}{job}")).cycle()
    };
    let plain = cycle("").decisions();
    assert_eq!(plain, "bind j-p-0 n2\nbind j-p-1 n3\nbind j-p-2 n1");
    assert_eq!(cycle(" topology=soft").decisions(), plain);
    let hard = cycle(" topology=hard");
    assert_eq!(hard.decisions(), "");
    let why = "network topology: no HyperNode exists. Remove networkTopology to place the pods \
        without. PodGroup default/j asks for a HyperNode of tier 1 at most (mode hard).";
    assert_eq!(wait_message(&hard, "j-p-0"), format!("{why:?}"));
}

/// A pod whose rack is full waits for it, however much the other racks have. With a limit of tier 2
/// it gets the other rack of its zone.
#[test]
fn net__hard_t1_full() {
    let two = RACKS.replace("rack-b", "rack-c").replace("n3", "n5").replace("n4", "n6");
    for (hyper_nodes, tier, wanted) in [
        (&*two, 1, ""),
        (THREE_TIERS, 1, ""),
        (&*two, 2, "bind j-q n1"),
        (THREE_TIERS, 2, "bind j-q n7"),
    ] {
        let text = format!(
            "{}job b min=1\n task r cpu=4 @n6 running
            job j min=2 topology=hard:{tier}\n task r cpu=4 @n5 running\n task q cpu=4",
            nodes(8)
        );
        let cycle = world_with_hyper_nodes(&config(), hyper_nodes, &text).cycle();
        assert_eq!(cycle.decisions(), wanted, "{tier}: {hyper_nodes}");
        if wanted.is_empty() {
            let said = wait_message(&cycle, "j-q");
            let full = "\"In hyperNode rack-c: 0/2 nodes are unavailable: 2 Insufficient cpu.";
            assert!(said.starts_with(full), "{hyper_nodes}: {said}");
        }
    }
}

/// Four pods that need a node each fill two racks, although the names of the nodes alternate
/// between three racks.
#[test]
fn net__lca_even() {
    let racks = "hypernode rack-a node=n1 node=n4
        hypernode rack-b node=n2 node=n5
        hypernode rack-c node=n3 node=n6
        hypernode zone tier=2 member=rack-a member=rack-b member=rack-c";
    let text = format!("{}job j min=4 topology=hard:2\n task p cpu=4 x4", nodes(6));
    let wanted = "bind j-p-0 n1\nbind j-p-1 n4\nbind j-p-2 n2\nbind j-p-3 n5";
    assert_eq!(first_decisions(racks, &text), wanted);
    // Without a topology the pods go by the names of the nodes.
    let plain = conf("allocate", "gang | predicates");
    let text = text.replace(" topology=hard:2", "");
    let decided = world_with_hyper_nodes(&plain, racks, &text).cycle().decisions();
    assert_eq!(decided, "bind j-p-0 n1\nbind j-p-1 n2\nbind j-p-2 n3\nbind j-p-3 n4");
}

/// A rack is preferred to a place across racks. If no rack has room, the zone is used. If the zone
/// has none, the gang waits, whatever is free outside.
#[test]
fn net__tier_1_short_then_2_then_pending() {
    let gang = |cpu: u32| format!("job j min=2 topology=hard:2\n task p cpu={cpu} x2");
    let text = |busy: &str, cpu: u32| format!("{}job b min=0\n{busy}{}", nodes(5), gang(cpu));
    // By names n2 and n3 would come first.
    let one_rack = " task r cpu=4 @n1 running\n";
    assert_eq!(first_decisions(RACKS, &text(one_rack, 4)), "bind j-p-0 n3\nbind j-p-1 n4");
    // Each rack has 6 cpu, and a place for one pod of 3 cpu.
    let broken = " task r cpu=2 @n2 running\n task s cpu=2 @n4 running\n";
    assert_eq!(first_decisions(RACKS, &text(broken, 3)), "bind j-p-0 n1\nbind j-p-1 n3");
    // Only n2 is free in the zone, and n5 outside. Rack a has as many places as the zone (S12).
    let full = " task r cpu=4 @n1 running\n task s cpu=4 @n3 running\n task t cpu=4 @n4 running\n";
    let mut world = world_with_hyper_nodes(&config(), RACKS, &text(full, 4));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let why = "network topology: no HyperNode of tier 2 or lower has room for all pods: rack-a \
        of tier 1 has too little cpu";
    assert_eq!(wait_message(&cycle, "j-p-0"), format!("{why:?}"));
    world.delete_pod("b-s");
    assert_eq!(world.cycle().decisions(), "bind j-p-0 n2\nbind j-p-1 n3");
}

/// A soft gang that has room in one rack stays there, although nodeorder alone would spread it.
#[test]
fn net__soft_stays_in_one_rack() {
    let text = "node n1 cpu=8\nnode n2 cpu=8\nnode n3 cpu=8\nnode n4 cpu=8
        job b min=0\n task r cpu=1 @n2 running\n task s cpu=1 @n4 running
        job j min=2 topology=soft\n task p cpu=2 x2";
    let aware = conf("allocate", "gang | predicates nodeorder network-topology-aware");
    let decided = world_with_hyper_nodes(&aware, RACKS, text).cycle().decisions();
    assert_eq!(decided, "bind j-p-0 n1\nbind j-p-1 n2");
    let spread = conf("allocate", "gang | predicates nodeorder");
    let text = text.replace(" topology=soft", "");
    let decided = world_with_hyper_nodes(&spread, RACKS, &text).cycle().decisions();
    assert_eq!(decided, "bind j-p-0 n1\nbind j-p-1 n3");
}

/// The master goes to the rack that is left by sub-groups of two, and gets no place that one of them
/// needs.
#[test]
fn sub__two_policies() {
    let racks = "hypernode rack-a node=n1 node=n2\nhypernode rack-b node=n3 node=n4
        hypernode rack-c node=n5\nhypernode zone tier=2 member=rack-a member=rack-b member=rack-c";
    let text = |n_pairs: u32, min: u32| {
        let pairs: String = (0..n_pairs)
            .map(|pair| format!("task w{pair} cpu=4 x2 label.worker={pair}\n"))
            .collect();
        format!(
            "job j min={min} topology=hard:2 policy.master=1x1:hard:1 policy.worker=2x{n_pairs}:hard:1
              task m cpu=4 label.master=0\n{pairs}"
        )
    };
    let decided = first_decisions(racks, &format!("{}{}", nodes(5), text(2, 5)));
    assert_eq!(decided.lines().count(), 5, "{decided}");
    assert!(decided.contains("bind j-m n5"), "{decided}");
    // sub/min-one-group: two racks, of which one has one node.
    let racks = "hypernode rack-a node=n1 node=n2\nhypernode rack-b node=n3
        hypernode zone tier=2 member=rack-a member=rack-b";
    let decided = first_decisions(racks, &format!("{}{}", nodes(3), text(1, 3)));
    assert_eq!(decided.lines().count(), 3, "{decided}");
    assert!(decided.contains("bind j-m n3"), "{decided}");
}

/// Two of four masters and one of two pairs of workers are needed, and four nodes have room.
#[test]
fn sub__many_masters_and_min_member_5() {
    let text = |min: u32| {
        format!(
            "{}job j min={min} topology=hard:2 policy.master=1x2:hard:1 policy.worker=2x1:hard:1
              task m1 cpu=4 label.master=1\n task m2 cpu=4 label.master=2
              task m3 cpu=4 label.master=3\n task m4 cpu=4 label.master=4
              task w cpu=4 label.worker=1 x2\n task v cpu=4 label.worker=2 x2",
            nodes(4)
        )
    };
    let decided = first_decisions(RACKS, &text(3));
    let count = |start: &str| decided.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((count("bind j-m"), count("bind j-w"), count("bind ")), (2, 2, 4), "{decided}");
    assert_eq!(first_decisions(RACKS, &text(5)), "");
}

/// Sub-groups with pods of different sizes: each goes to the rack that it fills, whichever comes
/// first, so that both find room.
#[test]
fn sub__sizes() {
    let text = "node n1 cpu=4\nnode n2 cpu=4\nnode n3 cpu=2\nnode n4 cpu=2
        job j min=4 topology=hard:2 policy.g=2x2:hard:1
          task big cpu=4 x2 label.g=BIG
          task small cpu=2 x2 label.g=SMALL";
    for (big, small) in [("1", "2"), ("2", "1")] {
        let text = text.replace("BIG", big).replace("SMALL", small);
        let decided = first_decisions(RACKS, &text);
        let mut binds: Vec<&str> = decided.lines().collect();
        binds.sort_unstable();
        let wanted =
            ["bind j-big-0 n1", "bind j-big-1 n2", "bind j-small-0 n3", "bind j-small-1 n4"];
        assert_eq!(binds, wanted, "{big} {small}");
    }
    // One sub-group with both sizes. The other rack has room for pods of 2 cpu only.
    let mixed = "node n1 cpu=2\nnode n2 cpu=2\nnode n3 cpu=2\nnode n4 cpu=4
        job j min=2 topology=hard:2 policy.g=2x1:hard:1
          task big cpu=4 label.g=a
          task small cpu=2 label.g=a";
    let decided = first_decisions(RACKS, mixed);
    let mut binds: Vec<&str> = decided.lines().collect();
    binds.sort_unstable();
    assert_eq!(binds, ["bind j-big n4", "bind j-small n3"]);
}

/// A sub-group of four pods waits if each rack has two nodes, whatever its job may use. It is told
/// which field sets the limit.
#[test]
fn sub__too_small() {
    for (own, place) in [("topology=hard:2", " in zone"), ("topology=soft", " in zone"), ("", "")] {
        let job = |size: u32| {
            let pods = format!("task p cpu=4 label.g=a x{size}");
            format!("{}job j min={size} {own} policy.g={size}x1:hard:1\n {pods}", nodes(5))
        };
        let cycle = world_with_hyper_nodes(&config(), RACKS, &job(4)).cycle();
        assert_eq!(cycle.decisions(), "", "{own}");
        let why = format!(
            "network topology: sub-group default/j/g-a: no HyperNode{place} of tier 1 or lower has \
             room for all pods: rack-a of tier 1 has too little cpu even when empty. Allow a higher \
             tier in spec.subGroupPolicy[0].networkTopology, or ask for less"
        );
        assert_eq!(wait_message(&cycle, "j-p-0"), format!("{why:?}"), "{own}");
        // Two pods have room.
        assert_eq!(first_decisions(RACKS, &job(2)), "bind j-p-0 n1\nbind j-p-1 n2", "{own}");
    }
}

/// A node that gets the label of a rack belongs to the rack and to all HyperNodes above it. Each
/// gang needs every node of the HyperNode of its tier.
#[test]
fn nodes_136_a_node_that_gets_its_label_late_counts_in_all_ancestors() {
    let hyper_nodes = "hypernode rack-a label.rack=a
        hypernode rack-b node=n3
        hypernode rack-c node=n4
        hypernode zone tier=2 member=rack-a member=rack-b
        hypernode hall tier=3 member=zone member=rack-c";
    for (tier, wanted) in [(1, "n1 n2"), (2, "n1 n2 n3"), (3, "n1 n2 n3 n4")] {
        let job = format!("job j min={0} topology=hard:{tier}\n task p cpu=4 x{0}", tier + 1);
        let nodes = nodes(5).replace("node n1", "node n1 rack=a");
        let mut world = world_with_hyper_nodes(&config(), hyper_nodes, &format!("{nodes}{job}"));
        for _ in 0..2 {
            assert_eq!(world.cycle().decisions(), "", "{tier}");
        }
        world.add("node n2 cpu=4 rack=a");
        let cycle = world.cycle();
        assert_eq!(bound_nodes(&cycle), wanted, "{tier}: {}", cycle.all());
    }
}

/// Racks by label and by name: a gang that waits is placed once a node of the rack arrives, and the
/// next one waits once a node has gone.
#[test]
fn net__nodes_join_and_leave() {
    let racks = "hypernode rack-a label.rack=a\nhypernode rack-b pattern=^b[0-9]+$";
    // What rack b has is in use. The other nodes are free, but in no rack.
    let text = "node a1 cpu=4 rack=a\nnode b1 cpu=8\nnode xb2 cpu=8\nnode b3x cpu=8
        job other min=0\n task r cpu=8 @b1 running\n";
    let gang = |name: &str| format!("job {name} min=2 topology=hard\n task p cpu=4 x2");
    let mut world = world_with_hyper_nodes(&config(), racks, &format!("{text}{}", gang("j")));
    let short = "network topology: no HyperNode of tier 1 or lower has room for all pods: rack-a of \
        tier 1 has too little cpu";
    assert_eq!(world.cycle().decisions(), "");
    // A node without the label does not help.
    world.add("node a2 cpu=4");
    assert_eq!(world.cycle().decisions(), "");
    world.add("node a3 cpu=4 rack=a");
    assert_eq!(world.cycle().decisions(), "bind j-p-0 a1\nbind j-p-1 a3");
    world.kubelets();
    world.add(&gang("k"));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    assert_eq!(wait_message(&cycle, "k-p-0"), format!("{short:?}"));
    world.add("node b12 cpu=8");
    assert_eq!(world.cycle().decisions(), "bind k-p-0 b12\nbind k-p-1 b12");
    world.kubelets();
    // With b12 in its place, its room would be free for the next gang.
    for pod in ["k-p-0", "k-p-1"] {
        world.delete_pod(pod);
    }
    world.delete_node("b12");
    world.add(&gang("l"));
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    assert_eq!(wait_message(&cycle, "l-p-0"), format!("{short:?}"));
    world.add("node b12 cpu=8");
    assert_eq!(world.cycle().decisions(), "bind l-p-0 b12\nbind l-p-1 b12");
}

/// A node whose label changes leaves one rack and joins the other.
#[test]
fn net__nodes_join_and_leave_by_label() {
    let racks = "hypernode rack-a label.rack=a\nhypernode rack-b label.rack=b";
    let text = "node n1 cpu=4 rack=a\nnode n2 cpu=4 rack=a\nnode n3 cpu=4 rack=b
        job b min=0\n task r cpu=4 @n1 running
        job j min=2 topology=hard\n task p cpu=4 x2";
    let mut world = world_with_hyper_nodes(&config(), racks, text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let why = "network topology: no HyperNode of tier 1 or lower has room for all pods: rack-a of \
        tier 1 has too little cpu";
    assert_eq!(wait_message(&cycle, "j-p-0"), format!("{why:?}"));
    // If rack a still had n2, it would be taken: its name comes first.
    world.delete_pod("b-r");
    world.add("node n2 cpu=4 rack=b");
    assert_eq!(world.cycle().decisions(), "bind j-p-0 n2\nbind j-p-1 n3");
    world.kubelets();
    world.add("node n4 cpu=4\njob k min=2 topology=hard\n task p cpu=4 x2");
    assert_eq!(world.cycle().decisions(), "");
    world.add("node n4 cpu=4 rack=a");
    assert_eq!(world.cycle().decisions(), "bind k-p-0 n1\nbind k-p-1 n4");
}

/// A pod that replaces a killed one returns to the rack of its gang, although nodeorder prefers the
/// nodes of the other rack, which are empty. If the rack has become full, it waits.
#[test]
fn net__killed_pod_returns_to_its_rack() {
    let text = format!(
        "{}job b min=0\n task r cpu=1 @n1 running\n task s cpu=1 @n2 running
        job j min=2 topology=hard\n task p cpu=2 @n1 running\n task q cpu=2 @n2 running",
        nodes(5)
    );
    let aware = "gang | predicates nodeorder network-topology-aware";
    let killed = |plugins: &str, text: &str| {
        let mut world = world_with_hyper_nodes(&conf("allocate", plugins), RACKS, text);
        assert_eq!(world.cycle().decisions(), "");
        world.edit("j-q", |pod| pod.deleting = true);
        world.kubelets_and_controllers();
        world
    };
    assert_eq!(killed(aware, &text).cycle().decisions(), "bind j-qr n2");
    let anywhere = text.replace(" topology=hard", "");
    assert_eq!(
        killed("gang | predicates nodeorder", &anywhere).cycle().decisions(),
        "bind j-qr n3"
    );
    let mut full = killed(aware, &text);
    full.add("job late\n task r cpu=2 @n2 running");
    let cycle = full.cycle();
    assert_eq!(cycle.decisions(), "");
    let said = wait_message(&cycle, "j-qr");
    let wanted = "\"In hyperNode rack-a: 0/2 nodes are unavailable: 2 Insufficient cpu.";
    assert!(said.starts_with(wanted), "{said}");
    full.delete_pod("late-r");
    assert_eq!(full.cycle().decisions(), "bind j-qr n2");
}

/// "Even when empty" and its remedy are said only if no HyperNode would ever do, not of the one that
/// was tried last.
#[test]
fn a_rack_that_is_only_in_use_needs_no_higher_tier() {
    let racks = "hypernode rack-a node=n1 node=n2\nhypernode rack-b node=n3";
    for (busy, is_never) in
        [("job b min=0\n task r cpu=4 @n1 running\n task s cpu=4 @n2 running", false), ("", true)]
    {
        let n_pods = if is_never { 3 } else { 2 };
        let job = format!("job j min={n_pods} topology=hard\n task p cpu=4 x{n_pods}");
        let text = format!("{}{busy}\n{job}", nodes(3));
        let cycle = world_with_hyper_nodes(&config(), racks, &text).cycle();
        let said = wait_message(&cycle, "j-p-0");
        assert!(said.contains("no HyperNode of tier 1 or lower"), "{said}");
        assert_eq!(said.contains("even when empty"), is_never, "{said}");
    }
}

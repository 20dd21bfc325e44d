//! Jobs with a network topology in HyperNodes, by both evaluators. Specification: actions.md 4.5,
//! plugins-nodes.md 15.

use proptest::prelude::*;
use vc_conf::Config;
use vc_framework::{HyperNodeProblemCount, Sample};
use vc_model::{ClusterEvent, NodeId, Task, TaskId, TaskStatus, fixture};

use crate::support::*;

fn config() -> Config {
    conf("allocate, backfill", "gang | predicates nodeorder network-topology-aware")
}

/// Two racks of two nodes each in a zone, and a node outside.
const RACKS: &str = "hypernode rack-a node=n1 node=n2
    hypernode rack-b node=n3 node=n4
    hypernode zone tier=2 member=rack-a member=rack-b";

const NODES: &str = "node n1 cpu=4\nnode n2 cpu=4\nnode n3 cpu=4\nnode n4 cpu=4\nnode n5 cpu=4\n";

fn world(text: &str) -> World {
    let mut world = World::new(&config(), &format!("{NODES}{text}"));
    told(&mut world, RACKS);
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    world
}

fn told(world: &mut World, hyper_nodes: &str) {
    fixture::events_of(hyper_nodes).into_iter().for_each(|event| world.send(event));
}

#[test]
fn a_hard_job_fills_one_rack() {
    let mut world = world("job j min=4 topology=hard\n task p cpu=2 x4");
    let bound = world.cycle().decisions().replace('\n', ", ");
    let nodes: Vec<&str> = bound.split_whitespace().filter(|word| word.starts_with('n')).collect();
    assert_eq!(nodes.len(), 4, "{bound}");
    let in_a = |node: &&str| ["n1", "n2"].contains(&node.trim_end_matches(','));
    assert!(nodes.iter().all(in_a) || !nodes.iter().any(in_a), "{bound}");
}

#[test]
fn a_hard_job_takes_the_next_rack_if_the_first_is_short() {
    let busy = "job b min=1\n task r cpu=3 @n1 running\n";
    let mut world = world(&format!("{busy}job j min=2 topology=hard\n task p cpu=4 x2"));
    let bound = world.cycle().decisions();
    assert!(bound.contains("n3") && bound.contains("n4"), "{bound}");
}

#[test]
fn a_hard_job_waits_if_no_rack_has_room_and_says_what_is_short() {
    let short = "network topology: no HyperNode of tier 1 or lower has room for all pods: rack-a of \
        tier 1 has too little cpu even when empty. Allow a higher tier in spec.networkTopology, or ask \
        for less";
    for (job, wanted) in [
        ("job j min=1 topology=hard\n task p cpu=5", "In hyperNode rack-a: 0/2 nodes are unavail"),
        ("job j min=3 topology=hard\n task p cpu=4 x3", short),
        ("job j min=3 minres.cpu=12 topology=hard\n task p cpu=4 x3", short),
    ] {
        let cycle = world(job).cycle();
        assert_eq!(cycle.decisions(), "");
        let said = cycle.all();
        assert!(said.contains(wanted), "{job}: {said}");
    }
}

#[test]
fn a_soft_job_may_use_the_whole_cluster() {
    let mut world = world("job j min=5 topology=soft\n task p cpu=4 x5");
    assert_eq!(world.cycle().report.n_binds, 5);
}

#[test]
fn a_pod_that_died_returns_to_the_rack_of_the_others() {
    let mut world = world(
        "job b min=1\n task r cpu=4 @n1 running
        job j min=2 topology=hard
          task p cpu=1 @n3 running
          task q cpu=2",
    );
    let bound = world.cycle().decisions();
    assert!(["bind j-q n3", "bind j-q n4"].contains(&bound.as_str()), "{bound}");
    // The rack of the pod that runs is full: the other one is no way out.
    let full = "job b min=1\n task r cpu=3 @n3 running\n task s cpu=4 @n4 running
        job j min=2 topology=hard
          task p cpu=1 @n3 running
          task q cpu=2";
    assert_eq!(self::world(full).cycle().decisions(), "");
}

#[test]
fn hyper_nodes_that_change_while_a_job_waits_count() {
    let mut world = world("job j min=3 topology=hard\n task p cpu=4 x3");
    assert_eq!(world.cycle().decisions(), "");
    told(&mut world, "hypernode rack-b node=n3 node=n4 node=n5");
    assert_eq!(world.cycle().report.n_binds, 3);
}

#[test]
fn a_tier_that_no_hyper_node_has_is_said() {
    let mut world = world("job j min=1 topology=hard\n task p cpu=1");
    told(
        &mut world,
        "hypernode rack-a tier=2 node=n1
        hypernode rack-b tier=2 node=n3
        hypernode zone tier=3 member=rack-a member=rack-b",
    );
    let said = world.cycle().all();
    assert!(said.contains("network topology: no HyperNode has tier 1 or a lower one"), "{said}");
}

#[test]
fn what_is_wrong_with_a_hyper_node_is_said_once_and_the_rest_is_in_force() {
    let mut world = world("job j min=2 topology=hard\n task p cpu=4 x2");
    told(&mut world, "hypernode other tier=2 created=60 member=rack-a member=gone");
    let cycle = world.cycle();
    assert_eq!(cycle.report.n_binds, 2);
    let said: Vec<&str> =
        cycle.report.warnings.iter().filter_map(|warning| warning.lines().next()).collect();
    let wanted = [
        "HyperNode gone, a member of other, does not exist",
        "HyperNode rack-a already has the parent zone, so it is no member of other",
    ];
    assert_eq!(said, wanted);
    let counts = |samples: &[Sample]| {
        samples.iter().find_map(|sample| match sample {
            Sample::HyperNodeProblems(counts) => {
                let text = |it: &HyperNodeProblemCount| {
                    format!("{} {} {}", it.hyper_node, it.field, it.n_problems)
                };
                Some(counts.iter().map(text).collect::<Vec<String>>())
            }
            _ => None,
        })
    };
    assert_eq!(counts(&cycle.report.samples), Some(vec!["other spec.members 2".to_owned()]));
    world.add("node n6 cpu=1");
    assert_eq!(world.cycle().report.warnings, [""; 0]);
    world.send(ClusterEvent::HyperNodeDeleted { name: "other".into() });
    assert_eq!(counts(&world.cycle().report.samples), Some(Vec::new()));
}

#[test]
fn sub_groups_stay_in_one_domain_each() {
    let mut world = world(
        "job j min=4 policy.g=2x2:hard
          task p cpu=3 x2 label.g=a
          task q cpu=3 x2 label.g=b",
    );
    let bound = world.cycle().decisions();
    let node = |pod: &str| {
        let line = bound.lines().find(|line| line.contains(pod)).unwrap_or_default();
        line.split(' ').next_back().unwrap_or_default().to_owned()
    };
    let rack = |pod: &str| if ["n1", "n2"].contains(&node(pod).as_str()) { 'a' } else { 'b' };
    assert_eq!(bound.lines().count(), 4, "{bound}");
    assert_eq!((rack("j-p-0"), rack("j-q-0")), (rack("j-p-1"), rack("j-q-1")), "{bound}");
    assert_ne!(rack("j-p-0"), rack("j-q-0"), "{bound}");
}

#[test]
fn a_pod_without_a_topology_stays_outside_of_hyper_nodes() {
    let mut world = world("job j min=1\n task p cpu=1");
    assert_eq!(world.cycle().decisions(), "bind j-p n5");
}

#[test]
fn best_effort_members_wait_for_hyper_nodes_too() {
    let mut world = World::new(&config(), &format!("{NODES}job j min=1 topology=hard\n task b"));
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    assert!(cycle.all().contains("network topology: no HyperNode exists"), "{}", cycle.all());
    told(&mut world, RACKS);
    assert_eq!(world.cycle().report.n_binds, 1);
}

/// Whoever has no pod to place is told of nothing that keeps pods from a place, by either evaluator.
#[test]
fn a_job_without_a_pod_to_place_is_not_told_of_hyper_nodes() {
    let conf = conf("allocate, backfill", "gang | predicates nodeorder");
    let job = "job j min=0 topology=hard policy.g=2x1:hard\n task t label.g=0 @n1 running\n";
    let mut world = World::new(&conf, &format!("{NODES}{job}"));
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    let said = [world.cycle().all(), world.cycle().all()].concat();
    assert!(said.contains("pod group is not ready") && !said.contains("topology"), "{said}");
}

#[test]
fn a_topology_without_a_limit_keeps_pods_close_all_the_same() {
    let job = "job j min=2 topology=hard:name=unknown\n task p cpu=1 @n3 running\n task q cpu=1";
    let bound = world(job).cycle().decisions();
    assert!(["bind j-q n3", "bind j-q n4"].contains(&bound.as_str()), "{bound}");
}

#[test]
fn a_pod_on_a_node_that_has_gone_does_not_count() {
    let mut world = world(
        "job j min=2 topology=hard
          task r cpu=1 @n1 running
          task s cpu=1 @n2 running
          task q cpu=1",
    );
    world.send(ClusterEvent::NodeDeleted { name: "n2".into() });
    assert_eq!(world.cycle().decisions(), "bind j-q n1");
}

#[test]
fn a_best_effort_member_may_use_each_branch_of_a_node() {
    let nodes = "node n1 cpu=4\nnode n2 cpu=4\nnode n3 cpu=4 pods=1\n";
    let job = "job j min=1 topology=hard\n task r cpu=1 @n3 running\n task b";
    let mut world = World::new(&config(), &format!("{nodes}{job}"));
    told(&mut world, "hypernode a node=n1 node=n2\nhypernode b node=n2 node=n3");
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    assert_eq!(world.cycle().decisions(), "bind j-b n2");
}

#[test]
fn members_of_the_tier_of_their_parent_have_totals_too() {
    let mut world = world(
        "job b min=1\n task r cpu=1 @n1 running
        job j min=2 topology=hard\n task p cpu=4 x2",
    );
    told(&mut world, "hypernode zone tier=1 member=rack-a member=rack-b");
    let bound = world.cycle().decisions();
    assert!(bound.contains("n3") && bound.contains("n4"), "{bound}");
}

/// A job of a story, and the highest tiers in which it and its sub-groups may be.
#[derive(Clone, Debug)]
struct JobOfStory {
    text: String,
    limit: Option<i32>,
    limit_of_sub_groups: Option<i32>,
}

/// Sub-group policies, with the highest tier in which a sub-group may be.
const POLICIES: [(&str, Option<i32>); 10] = [
    ("", None),
    ("", None),
    ("", None),
    ("policy.g=1x1:hard", Some(1)),
    ("policy.g=2x1:hard", Some(1)),
    ("policy.g=2x2:hard", Some(1)),
    ("policy.g=2x1:hard:2", Some(2)),
    ("policy.g=3x1:hard:name=zone", Some(2)),
    ("policy.g=2x1:soft", None),
    ("policy.g=2x0:hard", Some(1)),
];

/// Cpus, tasks, minimum, mode, how many pods of the job run, queue, priority, policy, and which of the
/// pods have the label of the policy.
type Words = (u8, u8, u8, u8, u8, u8, u8, usize, u8);

fn job_of_story(place: usize, words: Words) -> JobOfStory {
    let (cpu, n_tasks, min, mode, n_run, queue, priority, policy, labels) = words;
    let (topology, limit) = [
        (" topology=hard", Some(1)),
        (" topology=hard", Some(1)),
        (" topology=soft", None),
        ("", None),
        (" topology=hard:name=zone", Some(2)),
    ][usize::from(mode)];
    let (policy, limit_of_sub_groups) = POLICIES[policy];
    let min = min.min(n_tasks);
    let mut text =
        format!("job j{place} queue=q{queue} priority={priority} min={min}{topology} {policy}\n");
    if 0 < n_run {
        let label = ["", "label.g=0"][usize::from(labels % 2)];
        text += &format!("  task r cpu=1 x{n_run} {label} @n{} running\n", place % 6 + 1);
    }
    // Those of `p2` are in no sub-group.
    let n_pods = match labels {
        0 => [0, 0, n_tasks],
        1 | 2 => [n_tasks.div_ceil(2), n_tasks / 2, 0],
        _ => [n_tasks / 3, n_tasks / 3, n_tasks - 2 * (n_tasks / 3)],
    };
    for ((at, label), n_pods) in ["label.g=0", "label.g=1", ""].iter().enumerate().zip(n_pods) {
        if 0 < n_pods {
            text += &format!("  task p{at} cpu={cpu} x{n_pods} {label}\n");
        }
    }
    JobOfStory { text, limit, limit_of_sub_groups }
}

/// Jobs and HyperNodes at random.
fn stories() -> impl Strategy<Value = (String, Vec<JobOfStory>)> {
    let policy = 0_usize..POLICIES.len();
    let job = (0_u8..5, 1_u8..6, 0_u8..6, 0_u8..5, 0_u8..5, 0_u8..2, 0_u8..3, policy, 0_u8..5);
    let jobs = prop::collection::vec(job, 1..7);
    let racks = prop::collection::vec(0_u8..4, 6);
    (racks, jobs).prop_map(|(racks, jobs)| {
        let mut hyper_nodes = String::new();
        for rack in 0..3 {
            let nodes = racks.iter().zip(1..).filter(|(of, _)| **of == rack);
            let nodes: String = nodes.map(|(_, node)| format!(" node=n{node}")).collect();
            hyper_nodes += &format!("hypernode rack-{rack}{nodes}\n");
        }
        hyper_nodes += "hypernode zone tier=2 named=zone member=rack-0 member=rack-1";
        let jobs = jobs.into_iter().enumerate();
        let jobs = jobs.map(|(place, words)| job_of_story(place, words));
        (hyper_nodes, jobs.collect())
    })
}

/// Returns which limit the pods of the job exceed, or `None`. Pods that terminate do not count. Pods that
/// ran from the beginning count only beside one that was placed.
fn exceeded(world: &World, place: usize, job: &JobOfStory) -> Option<String> {
    let mut cluster = world.engine.cluster().clone();
    let tree = cluster.hyper_node_tree();
    let row = cluster.job(&vc_model::ObjectKey::new("default", &format!("j{place}")))?;
    let row = &cluster.jobs[row];
    let check = |name: &str, tasks: &[TaskId], limit: Option<i32>| {
        let stays = |task: &&Task| task.status != TaskStatus::Releasing && task.node.is_some();
        let placed: Vec<&Task> =
            tasks.iter().map(|&task| &cluster.tasks[task]).filter(stays).collect();
        let nodes: Vec<NodeId> = placed.iter().filter_map(|task| task.node).collect();
        let (limit, tier) = (limit?, tree[tree.around(nodes.iter().copied())?].tier);
        let is_new = placed.iter().any(|task| task.key.name.contains("-p"));
        let text = || format!("{name} is in tier {tier}, and {limit} is the highest allowed");
        (is_new && limit < tier).then(text)
    };
    let sub_groups = row.sub_jobs.iter().filter(|sub_job| sub_job.policy.is_some());
    let mut of_sub_groups =
        sub_groups.map(|sub| check(&sub.id, &sub.tasks, job.limit_of_sub_groups));
    check(&row.key.to_string(), &row.tasks, job.limit).or_else(|| of_sub_groups.find_map(|it| it))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Both evaluators agree in every cycle, and no pod of a job or of a sub-group with a hard topology
    /// leaves the HyperNode of the others of a tier that is allowed.
    #[test]
    fn hard_jobs_and_sub_groups_stay_within_their_tier((hyper_nodes, jobs) in stories()) {
        let text: String = jobs.iter().map(|job| job.text.as_str()).collect();
        let nodes: String = (1..=6).map(|node| format!("node n{node} cpu=6 pods=9\n")).collect();
        let all = "enqueue, allocate, preempt, reclaim, gangpreempt, gangreclaim, backfill";
        let plugins = "priority gang conformance | proportion drf predicates nodeorder binpack \
            network-topology-aware";
        let queues = "queue q0\nqueue q1 weight=3\n";
        let mut world = World::new(&conf(all, plugins), &format!("{queues}{nodes}{text}"));
        told(&mut world, &hyper_nodes);
        world.send(ClusterEvent::HyperNodesListed { is_complete: true });
        let mut done = String::new();
        for _ in 0..4 {
            done += &format!("---\n{}\n", world.cycle().decisions());
            world.kubelets();
            for (place, job) in jobs.iter().enumerate() {
                prop_assert_eq!(exceeded(&world, place, job), None, "{}", done);
            }
        }
    }
}

/// What cannot mean what its author wanted is an event on the PodGroup, once.
#[test]
fn topologies_that_make_no_sense_are_told_with_their_field() {
    let mut world = world("job j min=1 topology=hard:0\n task p cpu=1");
    let told = |cycle: &Cycle| {
        let all = cycle.only(&["event"]);
        let lines = all.lines().filter(|line| line.contains("InvalidNetworkTopology"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let below = "spec.networkTopology.highestTierAllowed: no HyperNode has tier 0 or a lower one; the \
        lowest tier is 1";
    assert_eq!(
        told(&world.cycle()),
        [format!("event PodGroup j Warning InvalidNetworkTopology \"{below}\"")]
    );
    world.add("job k min=1 topology=hard\n task p cpu=1");
    assert_eq!(told(&world.cycle()), [""; 0]);
    world.edit_group("k", |group| {
        let topology = group.network_topology.as_mut().expect("it has one");
        (topology.highest_tier_allowed, topology.highest_tier_name) = (None, "rack".into());
    });
    let unknown = "spec.networkTopology.highestTierName: no HyperNode has the tier name rack, so that it \
        sets no limit";
    assert_eq!(
        told(&world.cycle()),
        [format!("event PodGroup k Warning InvalidNetworkTopology \"{unknown}\"")]
    );
    world.add("job l min=1 policy.g=1x1\n task p cpu=1\n task q cpu=1 label.g=a");
    let missing = "spec.subGroupPolicy[0].matchLabelKeys: label g is missing on 1 pods, first on l-p, so \
        that they are in no sub-group";
    assert_eq!(
        told(&world.cycle()),
        [format!("event PodGroup l Warning InvalidNetworkTopology \"{missing}\"")]
    );
}

/// A job that failed for another reason hears of it when HyperNodes cannot be read any more; one of
/// which nothing waits hears of a field that makes no sense.
#[test]
fn changes_of_hyper_nodes_reach_jobs_that_nobody_looks_at() {
    let config = conf("allocate", "gang | proportion predicates network-topology-aware");
    let text = "queue q\nnode n1 cpu=4\njob full queue=q min=1\n task r cpu=4 @n1 running
        job j queue=q min=2 topology=hard\n task p cpu=1 x2";
    let mut world = World::new(&config, text);
    told(&mut world, "hypernode rack-a node=n1");
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    world.cycle();
    world.cycle();
    world.send(ClusterEvent::HyperNodesListed { is_complete: false });
    let said = world.cycle().all();
    assert!(said.contains("network topology: hyperNodes cannot be read any more"), "{said}");
    let mut world = self::world("job j min=1 running topology=hard\n task r cpu=1 @n1 running");
    world.cycle();
    world.cycle();
    told(&mut world, "hypernode rack-a tier=2 node=n1\nhypernode rack-b tier=2 node=n3");
    let said = world.cycle().all();
    assert!(said.contains("InvalidNetworkTopology"), "{said}");
}

/// Gangs with a network topology end alike if it is the same. The pods are told of the HyperNode with
/// most places, which is tried although it has too few.
#[test]
fn one_hard_gang_of_a_shape_is_tried_and_the_closest_hyper_node_named() {
    let config = conf("allocate", "gang | predicates network-topology-aware");
    for (second, n_alike) in [("hard", 1), ("hard:2", 0), ("soft", 0)] {
        // Both racks have 6 cpu: rack-a has a place for one pod of 2 cpu, rack-b has two.
        let text = format!(
            "node n1 cpu=3\n node n2 cpu=1\n node n3 cpu=1\n node n4 cpu=1
             node n5 cpu=4\n node n6 cpu=1\n node n7 cpu=1
             job a min=3 topology=hard\n task w cpu=2 x3
             job b min=3 created=1 topology={second}\n task w cpu=2 x3"
        );
        let mut world = World::new(&config, &text);
        told(&mut world, "hypernode rack-a node=n1 node=n2 node=n3 node=n4");
        told(&mut world, "hypernode rack-b node=n5 node=n6 node=n7");
        told(&mut world, "hypernode hall tier=2 member=rack-a member=rack-b");
        world.send(ClusterEvent::HyperNodesListed { is_complete: true });
        let said = world.cycle().all();
        assert_eq!(world.engine.cache_stats().n_failed_alike, n_alike, "{second}: {said}");
        assert!(said.contains("In hyperNode rack-b: 0/3 nodes are unavailable"), "{said}");
        assert!(!said.contains("In hyperNode rack-a"), "{said}");
    }
}

/// A sub-group that no allowed HyperNode can hold is told which field sets the limit. One that has to
/// wait for room is not.
#[test]
fn a_sub_group_that_no_hyper_node_can_hold_is_told_which_field_sets_the_limit() {
    let short = "of tier 1 or lower has room for all pods: rack-a of tier 1 has too little cpu";
    let remedy = " even when empty. Allow a higher tier in spec.subGroupPolicy[0].networkTopology, \
        or ask for less\"";
    for (busy, cpu, end) in [(0, 5, remedy), (1, 4, "\"")] {
        let text = format!(
            "job b min=1\n task r cpu={busy} @n1 running\n task s cpu={busy} @n3 running
             job j min=2 topology=hard:2 policy.g=2x1:hard:1\n task p cpu={cpu} label.g=a x2"
        );
        let cycle = world(&text).cycle();
        let said = cycle.all();
        let told = cycle.report.samples.iter().find_map(|sample| match sample {
            Sample::NetworkTopologyProblems(fields) => Some(fields.as_slice()),
            _ => None,
        });
        let field = "spec.subGroupPolicy[0].networkTopology".into();
        let never = [(vc_model::ObjectKey::new("default", "j"), field)];
        assert_eq!(told, (busy == 0).then_some(&never[..]), "{said}");
        for start in ["pod j-p-0 Unschedulable", "event PodGroup j Warning", "group j Inqueue"] {
            let line = said.lines().find(|line| line.starts_with(start)).unwrap_or_default();
            assert!(line.contains("sub-group default/j/g-a: no HyperNode"), "{start}: {said}");
            assert!(line.ends_with(&format!("{short}{end}")), "{start}: {said}");
        }
    }
}

/// Pods of a sub-group that ran in two racks before do not spoil what is done for another sub-group.
#[test]
fn a_sub_group_that_is_apart_does_not_prevent_evictions_for_others() {
    let config = conf("reclaim", "gang conformance | proportion predicates network-topology-aware");
    let text = format!(
        "{NODES}queue q0\nqueue q1\n
        job low queue=q0 min=0
          task r cpu=3 @n1 running
          task s cpu=4 @n2 running
          task t cpu=3 @n3 running
          task u cpu=4 @n4 running
          task v cpu=4 @n5 running
        job j queue=q1 min=3 policy.g=1x1:hard
          task a cpu=1 label.g=0 @n1 running
          task b cpu=1 label.g=0 @n3 running
          task c cpu=4 label.g=1"
    );
    let mut world = World::new(&config, &text);
    told(&mut world, RACKS);
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    let done = world.cycle().decisions();
    assert!(done.contains("pipeline j-c"), "{done}");
}

/// HyperNodes that change under another sub-group do not end the plan of this one: the room is kept.
#[test]
fn a_sub_group_that_comes_apart_does_not_end_the_plan_of_another() {
    let plugins = "priority gang conformance | proportion predicates network-topology-aware";
    let text = format!(
        "{NODES}queue q0\nqueue q1\n
        job low queue=q0 min=0
          task r cpu=3 @n1 running
          task s cpu=3 @n2 running
          task t cpu=4 @n3 running
          task u cpu=4 @n4 running
          task v cpu=4 @n5 running
        job j queue=q1 min=3 priority=1 policy.g=1x1:hard
          task a cpu=1 label.g=0 @n1 running
          task b cpu=1 label.g=0 @n2 running
          task c cpu=4 label.g=1"
    );
    let mut world = World::new(&conf("allocate, reclaim", plugins), &text);
    told(&mut world, RACKS);
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    let first = world.cycle().decisions();
    world.kubelets();
    told(&mut world, "hypernode rack-a node=n1");
    world.add("job k queue=q1 priority=9 min=1\n task p cpu=4");
    let second = world.cycle().decisions();
    assert!(second.contains("bind j-c"), "{first}\n---\n{second}");
}

//! The shortcuts by the names of actions.md: what they must not change, seen from outside. `World`
//! runs the plain evaluator beside the fast one in each of them and compares every cycle. Stories are
//! in `differential`. Specification: actions.md 12.2 S6, S16, test cases `fast/...`.

use crate::support::*;

/// No task of the gang gets a place that the others cannot have too. Volcano names the node of each
/// that could have been placed, so that the places are looked for all the same.
#[test]
fn fast__bound_a_gang_that_is_one_too_many_is_told_the_same_words() {
    let mut text = String::from("job j min=1000\n task a cpu=1 x1000\n");
    for index in 0..9 {
        text.push_str(&format!("node n{index} cpu=111 pods=200\n"));
    }
    let mut world = World::new(&conf("allocate", "priority gang | predicates nodeorder"), &text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let reported = cycle.only(&["pod"]);
    let count = |words: &str| reported.lines().filter(|line| line.contains(words)).count();
    assert_eq!(count("can possibly be assigned to n"), 999, "{reported}");
    assert_eq!(count("0/9 nodes are unavailable: 9 Insufficient cpu."), 1, "{reported}");
    let group = cycle.only(&["group"]);
    assert!(group.contains("Pending: 1 Unschedulable, 999 Schedulable"), "{group}");
    world.add("node n9 cpu=1 pods=200");
    assert_eq!(world.cycle().decisions().lines().count(), 1000);
}

/// The last place on the best node is taken. What the others are worth beside it changes with that,
/// although nothing happens on them, and so does their order among each other.
#[test]
fn fast__another_extreme_changes_scores_of_nodes_that_do_not_change() {
    let mut text = String::from(
        "node both cpu=1 memory=4Gi disk=ssd zone=a
        node half cpu=10 memory=10Gi disk=ssd
        job r min=0 running
          task a cpu=7 memory=7Gi @half running
        job j min=2
          task a cpu=1 memory=1Gi x2 prefer.disk=ssd prefer.zone=a",
    );
    // Among few nodes, all scores are worked out anew after each placement.
    (0..60).for_each(|node| text.push_str(&format!("\nnode n{node} cpu=100 memory=100Gi")));
    let scorer = "nodeorder{* leastrequested.weight=2 balancedresource.weight=0}";
    let config = conf("allocate", &format!("gang | predicates {scorer}"));
    // Beside `both`, `half` is preferred half as much as it is alone: 140 against 198, then 240.
    assert_eq!(decide(&config, &text), "bind j-a-0 both\nbind j-a-1 half");
}

/// The same where the extreme is that of a node which another pod rules out for this one.
#[test]
fn fast__a_node_that_other_pods_rule_out_is_no_extreme() {
    let mut text = String::from(
        "node both cpu=9 memory=9Gi disk=ssd zone=a host=h1
        node half cpu=10 memory=10Gi disk=ssd host=h2
        job r min=0 running
          task a @both running label.app=x
          task b cpu=7 memory=7Gi @half running
        job j
          task a cpu=1 memory=1Gi away=host:x prefer.disk=ssd prefer.zone=a",
    );
    // Among few nodes, all are asked at once.
    (0..20).for_each(|node| text.push_str(&format!("\nnode n{node} cpu=100 memory=100Gi")));
    let scorer = "nodeorder{* leastrequested.weight=2 balancedresource.weight=0}";
    let config = conf("allocate", &format!("gang | predicates {scorer}"));
    assert_eq!(decide(&config, &text), "bind j-a half");
}

/// What an image is worth on a node depends on how many nodes have it.
#[test]
fn fast__an_image_that_comes_to_another_node_counts_on_all_of_them() {
    let mut world = image_on_3_of_120_nodes();
    world.add("node n3 cpu=1 memory=1Gi image=web:20000");
    world.add("job second\n task a cpu=1 memory=1Gi image=web");
    // 40 and 65 on four of them, against 98.
    assert_eq!(world.cycle().decisions(), "bind second-a n1");
}

#[test]
fn fast__an_image_counts_more_on_all_nodes_when_others_go() {
    let mut world = image_on_3_of_120_nodes();
    (2..32).for_each(|node| world.delete_node(&format!("small{node}")));
    world.add("job second\n task a cpu=1 memory=1Gi image=web");
    // 40 and 65 on three of 90 nodes, against 98.
    assert_eq!(world.cycle().decisions(), "bind second-a n1");
}

/// A world in which the pod of a first job was placed for the room on `n2`.
fn image_on_3_of_120_nodes() -> World {
    let mut text = String::from(
        "node n1 cpu=10 memory=10Gi image=web:20000
        node n2 cpu=100 memory=100Gi
        node n3 cpu=1 memory=1Gi
        job r min=0 running
          task a cpu=5 memory=5Gi @n1 running
        job first
          task a cpu=1 memory=1Gi image=web",
    );
    // Among few nodes, all scores are worked out anew when two change.
    for node in 0..117 {
        let image = if node < 2 { "image=web:20000" } else { "" };
        text.push_str(&format!("\nnode small{node} cpu=1 memory=1Gi {image}"));
    }
    let scorer = "nodeorder{* balancedresource.weight=0}";
    let mut world = World::new(&conf("allocate", &format!("gang | predicates {scorer}")), &text);
    // 40 and 48 for the image on three nodes of 120, against 99.
    assert_eq!(world.cycle().decisions(), "bind first-a n2");
    world
}

/// As many nodes as before, but those between them in the order of names have moved up.
#[test]
fn fast__nodes_that_are_exchanged_move_the_others() {
    let text = "node n1 cpu=9
        node n2 cpu=9 disk=ssd
        node n3 cpu=9
        job first
          task a cpu=1 selector.disk=ssd";
    let mut world = World::new(&conf("allocate", "gang | predicates nodeorder"), text);
    assert_eq!(world.cycle().decisions(), "bind first-a n2");
    world.delete_node("n1");
    world.add("node n4 cpu=9\n job second\n task a cpu=1 selector.disk=ssd");
    assert_eq!(world.cycle().decisions(), "bind second-a n2");
}

/// A queue without a path has no sort key among those of a tree: as long as it has jobs all pairs are
/// compared, and from then on the others play a tournament (S17). Every world is compared with the
/// plain evaluator.
#[test]
fn fast__queues_of_a_tree_take_turns_beside_one_without_a_path() {
    let queue = |name: &str, path: &str| {
        format!(
            "queue {name} note.volcano.sh/hierarchy=root/{path} \
             note.volcano.sh/hierarchy-weights=1/1/1\n"
        )
    };
    let mut text = "node n1 cpu=8\n".to_owned();
    for (name, path) in [("qa", "x/a"), ("qb", "x/b"), ("qc", "y/c"), ("qd", "y/d")] {
        text.push_str(&queue(name, path));
    }
    text.push_str("job plain\n task w cpu=1\n");
    for name in ["qa", "qb", "qc", "qd"] {
        let jobs = (0..3).map(|number| format!("job {name}{number} queue={name}\n task w cpu=1\n"));
        text.extend(jobs);
    }
    let mut world = World::new(&conf("allocate", "gang | drf{* hierarchy} predicates"), &text);
    let decisions = world.cycle().decisions();
    let n_of = |queue: &str| decisions.matches(&format!("bind {queue}")).count();
    let counts = ["plain", "qa", "qb", "qc", "qd"].map(n_of);
    assert_eq!(counts.iter().sum::<usize>(), 8, "{decisions}");
    assert_eq!((counts[0], counts[1] + counts[2], counts[3] + counts[4]), (1, 4, 3), "{decisions}");
}

/// The last node goes, and another one comes.
#[test]
fn fast__a_cluster_may_lose_all_its_nodes() {
    let text = "node n1 cpu=2\n job first min=0\n task a cpu=1\n task b x2";
    let mut world = World::new(&conf("allocate, backfill", "gang | predicates nodeorder"), text);
    assert_eq!(world.cycle().decisions().lines().count(), 3);
    world.delete_node("n1");
    world.add("job second min=0\n task a cpu=1\n task b x2");
    assert_eq!(world.cycle().decisions(), "");
    world.add("node n2 cpu=9");
    assert_eq!(world.cycle().decisions().lines().count(), 3);
}

/// Nodes come before, between and behind those that stay, and get the ids of those that went. Labels
/// and scores of each node go with it to its new position: the plain evaluator reads all of them anew.
#[test]
fn fast__nodes_come_between_others_and_take_over_their_ids() {
    let node = |name: &str, at: u32| format!("node {name} cpu={} at={at}\n", 2 + at);
    let text = ["n10", "n20", "n30", "n40"].map(|name| node(name, 1)).concat();
    let plugins = "gang | predicates nodeorder binpack";
    let mut world = World::new(&conf("allocate, backfill", plugins), &text);
    let mut n_jobs = 0;
    let mut place = |world: &mut World, expected: &[usize]| {
        for (at, &n_pods) in expected.iter().enumerate() {
            n_jobs += 1;
            world.add(&format!("job j{n_jobs} min=0\n task t cpu=1 x{n_pods} selector.at={at}"));
        }
        let decisions = world.cycle().decisions();
        assert_eq!(decisions.lines().count(), expected.iter().sum::<usize>(), "{decisions}");
    };
    place(&mut world, &[0, 5]);
    ["n20", "n30"].iter().for_each(|name| world.delete_node(name));
    place(&mut world, &[0, 1]);
    world.add(&[node("n00", 2), node("n25", 0), node("n26", 3)].concat());
    place(&mut world, &[2, 0, 4, 5]);
    ["n00", "n40"].iter().for_each(|name| world.delete_node(name));
    world.add(&[node("n15", 2), node("n50", 0), node("n60", 3)].concat());
    place(&mut world, &[2, 0, 4, 5]);
}

/// What `b` gave to `a` puts it before `c`, while nobody of either had a turn (S17).
#[test]
fn fast__the_contest_sees_queues_that_lose_pods_to_others() {
    let text = "node n1 cpu=13 pods=30 at=1
        node n2 cpu=2 pods=30 at=2
        queue a deserved.cpu=4
        queue other deserved.cpu=4
        queue b deserved.cpu=4
        queue c deserved.cpu=4
        queue d deserved.cpu=1
        job other queue=other min=0 running
          task w cpu=2 @n1 running
        job rb queue=b min=0 running
          task w cpu=1 x6 @n1 running
        job rc queue=c min=0 running
          task w cpu=1 x5 @n1 running pre=false
        job rd queue=d min=0 running
          task w cpu=1 x2 @n2 running
        job ja queue=a min=2
          task x cpu=1 x2 selector.at=1
        job jb queue=b
          task x cpu=1 selector.at=2
        job jc queue=c
          task x cpu=1 selector.at=2";
    let tiers = "gang{jobStarving jobPipelined} capacity{reclaimable queueOrder} predicates";
    let decisions = decide(&conf("reclaim", tiers), text);
    let expected = "evict rb-w-5 reclaim\nevict rb-w-4 reclaim\nevict rd-w-1 reclaim\n\
        pipeline ja-x-0 n1\npipeline ja-x-1 n1\npipeline jb-x n2";
    assert_eq!(decisions, expected);
}

/// Decisions, messages and reports are those of one thread, however many work at the same time.
#[test]
fn fast__parallel_1_to_16_threads_have_the_same_outcome() {
    let alone = outcome();
    assert!(alone.contains("Evict {") && alone.contains("Bind {"), "{alone}");
    for n_threads in [2, 4, 16] {
        let threads: Vec<_> = (0..n_threads).map(|_| std::thread::spawn(outcome)).collect();
        for thread in threads {
            assert_eq!(thread.join().expect("it ends"), alone);
        }
    }
}

fn outcome() -> String {
    let tiers = "priority gang conformance | drf predicates proportion nodeorder binpack";
    let config = conf("enqueue, allocate, preempt, reclaim, backfill", tiers);
    let config = with_arguments(config, "preempt", "{enableTopologyAwarePreemption: true}");
    let mut world = World::new(&config, CLUSTER);
    let mut seen = String::new();
    for _ in 0..4 {
        let cycle = world.cycle();
        seen.push_str(&format!("{:#?}\n{:#?}\n", cycle.effects, cycle.report));
        world.kubelets();
        world.tick(1);
    }
    seen
}

const CLUSTER: &str = "node n1 cpu=4 zone=a
    node n2 cpu=4 zone=a
    node n3 cpu=4 zone=b
    node n4 cpu=2 zone=b
    queue q weight=2
    job low min=1 priority=1 running
      task w cpu=2 x2 @n1 running
      task x cpu=2 x2 @n2 running
    job high min=3 priority=9
      task w cpu=2 x3
    job wide queue=q min=2
      task w cpu=1 x2 spread=zone:1:a label.app=a
    job none min=2
      task w cpu=9 x2";

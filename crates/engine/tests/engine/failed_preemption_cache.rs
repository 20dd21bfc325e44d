//! A search for victims that found nothing is not run again as long as every node lacks what it
//! lacked: for each thing that this depends on exactly that change, and somebody is evicted; beside it
//! changes that cost a look at the nodes that changed, or none. Every cycle is compared with one of
//! the plain evaluator, which searches all nodes in every cycle, messages included. Specification:
//! actions.md 12.2 S7, test list `fast/*`.

use vc_conf::Config;
use vc_model::{ClusterEvent, TaskStatus};

use crate::support::*;

/// The votes of both actions read candidates and their jobs alone.
const TIERS: &str = "priority{preemptable jobStarving taskOrder jobOrder} \
    gang{preemptable reclaimable jobStarving jobPipelined jobReady jobOrder} \
    conformance{preemptable reclaimable} cdp{preemptable reclaimable} | \
    capacity{allocatable queueOrder} predicates{predicate} nodeorder{nodeOrder}";

/// `a` finds nobody: on `n1` a pod of its own priority runs, on `n2` a gang that would break, on `n3`
/// pods that must stay; `n4` is tainted.
const VAIN: &str = "node n1 cpu=4
    node n2 cpu=4
    node n3 cpu=4
    node n4 cpu=4 gpu=1 taint=x:NoSchedule
    job equal min=0 priority=5 running
      task w cpu=4 @n1 running
    job gang min=2 priority=1 running
      task w cpu=2 x2 @n2 running
    job fixed min=0 priority=1 running
      task w cpu=4 @n3 running pre=false
    job a min=1 priority=5
      task w cpu=4";

fn config() -> Config {
    conf("allocate, preempt", TIERS)
}

/// `a` finds nobody in another queue.
const VAIN_RECLAIM: &str = "node n1 cpu=4
    node n2 cpu=4
    queue mine
    queue other reclaimable=false
    queue rich
    job kept queue=other min=0 running
      task w cpu=4 @n1 running
    job gang queue=rich min=2 running
      task w cpu=2 x2 @n2 running
    job a queue=mine min=1
      task w cpu=4";

fn reclaiming() -> Config {
    conf("allocate, reclaim", TIERS)
}

/// Some job that nobody waits for comes, and leaves no trace on nodes.
fn nudge(world: &mut World) {
    world.add("job nudge min=1");
}

/// Searches that were not run in the next cycle, and nodes that were looked at for that.
fn spared(world: &mut World) -> (u64, u64) {
    let cycle = world.cycle();
    assert_eq!(cycle.only(&["evict"]), "");
    let cache_stats = world.engine.cache_stats();
    (cache_stats.n_known_infeasible, cache_stats.n_probed)
}

/// A world whose writes have all come back, in which `a` searches in vain.
fn settled(config: &Config, text: &str) -> World {
    let mut world = World::new(config, text);
    let (n_searches, n_nodes) = settle(&mut world);
    assert!(0 < n_searches && n_nodes == 0, "{n_searches} {n_nodes}");
    world.delete_group("nudge");
    assert_eq!(spared(&mut world), (n_searches, 0), "a cycle in which something else has changed");
    world
}

/// Lets all writes come back, each in a cycle with a session; what is spared in the last one.
fn settle(world: &mut World) -> (u64, u64) {
    for _ in 0..4 {
        nudge(world);
        world.cycle();
        world.delete_group("nudge");
        world.cycle();
    }
    nudge(world);
    spared(world)
}

/// Who is evicted after this change.
fn evicted_after(config: &Config, text: &str, change: impl FnOnce(&mut World)) -> String {
    let mut world = settled(config, text);
    change(&mut world);
    let evicted = world.cycle().only(&["evict"]);
    let names = evicted.lines().filter_map(|line| line.split_whitespace().nth(1));
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn fast__failed_preemption_stands() {
    // Between jobs, and inside the job.
    let mut world = settled(&config(), VAIN);
    nudge(&mut world);
    assert_eq!(spared(&mut world), (2, 0));
    let mut world = settled(&reclaiming(), VAIN_RECLAIM);
    nudge(&mut world);
    assert_eq!(spared(&mut world), (1, 0));
}

#[test]
fn fast__failed_preemption_looks_at_changed_nodes() {
    let mut world = settled(&config(), VAIN);
    world.edit("fixed-w", |pod| pod.labels = [("x".into(), "y".into())].into_iter().collect());
    assert_eq!(spared(&mut world), (2, 2), "n3, for either search");
    world.delete_pod("gang-w-0");
    let mut world = settled(&config(), VAIN);
    world.add("node n5 cpu=1");
    assert_eq!(spared(&mut world), (2, 2));
    world.delete_node("n5");
    assert_eq!(spared(&mut world), (2, 2));
    world.add("node n2 cpu=4 zone=b");
    assert_eq!(spared(&mut world), (2, 2));
}

#[test]
fn fast__failed_preemption_of_many_kinds_is_one_each() {
    let mut text = VAIN.to_owned();
    for job in 0..20 {
        text.push_str(&format!("\n job b{job} min=1 priority=5\n task w cpu={} x2", 3 + job % 4));
    }
    let mut world = settled(&config(), &text);
    nudge(&mut world);
    // Requests of 3, 4, 5 and 6, between jobs and inside a job; `a` asks for 4.
    assert_eq!(spared(&mut world), (8, 0));
    assert!(0 < world.engine.cache_stats().n_repeated);
}

#[test]
fn fast__failed_preemption_ends_with_a_victim() {
    let after = |change: fn(&mut World)| evicted_after(&config(), VAIN, change);
    assert_eq!(after(|world| world.add("job equal min=0 priority=4 running")), "equal-w");
    assert_eq!(after(|world| world.add("job gang min=0 priority=1 running")), "gang-w-1 gang-w-0");
    let may_go = |world: &mut World| {
        world.edit("fixed-w", |pod| {
            pod.annotations.insert("volcano.sh/preemptable".into(), "true".into());
        });
    };
    assert_eq!(after(may_go), "fixed-w");
    // A pod that terminates makes room; nobody need go.
    assert_eq!(after(|world| world.delete_pod("equal-w")), "");
    let grown = |world: &mut World| {
        world.add("job cheap min=0 priority=1 running\n task w cpu=4 @n5 running\n node n5 cpu=4");
    };
    assert_eq!(after(grown), "cheap-w");
    // The class is the job's.
    let risen = |world: &mut World| world.add("job a min=1 priority=6");
    assert_eq!(after(risen), "equal-w");
}

#[test]
fn fast__failed_preemption_ends_with_a_group() {
    let text =
        VAIN.replace("job equal min=0 priority=5 running", "job equal min=0 priority=4 running");
    let mut world = World::new(&config(), &text);
    world.delete_group("equal");
    assert_eq!(settle(&mut world), (2, 0), "its pods belong to nobody");
    world.add("job equal min=0 priority=4 running");
    assert_eq!(world.cycle().only(&["evict"]).lines().count(), 1);
}

#[test]
fn fast__failed_preemption_ends_with_the_taint() {
    let text = format!("{VAIN}\n job cheap min=0 priority=1 running\n task w cpu=4 @n4 running");
    assert_eq!(evicted_after(&config(), &text, |world| world.add("node n4 cpu=4")), "cheap-w");
    // What allocate finds hopeless differs, not what a filter says.
    let mut world = settled(&config(), &text);
    world.add("node n4 cpu=4 taint=y:NoSchedule");
    assert_eq!(spared(&mut world), (2, 2));
}

#[test]
fn fast__failed_preemption_ends_with_the_quota() {
    let text = "node n1 cpu=4
        node n2 cpu=4
        queue q cap.cpu=4
        job r queue=q min=1 priority=9 running
          task w cpu=4 @n1 running
        job cheap queue=q min=0 priority=1 running
          task w cpu=0 @n2 running pre=false
        job a queue=q min=1 priority=5
          task w cpu=4";
    let config = conf("preempt", TIERS);
    let mut world = settled(&config, text);
    nudge(&mut world);
    assert_eq!(spared(&mut world), (2, 0), "between jobs, and inside the job");
    // Room in the queue, none on nodes.
    world.add("queue q cap.cpu=8");
    world.cycle();
    assert_eq!(world.engine.cache_stats().n_known_infeasible, 0);
    // The queue is emptied, without a change of its object: every node is looked at.
    let mut world = settled(&config, text);
    world.edit("r-w", |pod| pod.phase = vc_model::PodPhase::Succeeded);
    world.add("node n1 cpu=1\n node n2 cpu=1");
    assert_eq!(spared(&mut world), (2, 4), "between jobs, and inside the job");
}

#[test]
fn fast__failed_preemption_ends_with_the_queue() {
    let after = |change: fn(&mut World)| evicted_after(&reclaiming(), VAIN_RECLAIM, change);
    assert_eq!(after(|world| world.add("queue other")), "kept-w");
    assert_eq!(after(|world| world.add("job kept queue=rich min=0 running")), "kept-w");
    assert_eq!(after(|world| world.add("job gang queue=rich min=0 running")), "gang-w-1 gang-w-0");
}

/// `a` finds nobody: `rich` and `poor` have what they deserve. What their pods hold goes by cpu and slots;
/// nobody can be evicted on `n3`.
const FAIR: &str = "node n1 cpu=4 pods=9
    node n2 cpu=4 pods=9
    node n3 cpu=3 pods=9 taint=x:NoSchedule
    queue mine deserved.cpu=3 deserved.pods=9
    queue rich deserved.cpu=4 deserved.pods=9
    queue poor deserved.cpu=4 deserved.pods=9
    job r queue=rich min=0 running
      task w cpu=2 x2 @n1 running
    job p queue=poor min=0 running
      task w cpu=2 x2 @n2 running
    job a queue=mine min=1
      task w cpu=2";

/// The same where `rich` has more: its only pod that may go is too small.
const UNFAIR: &str = "node n1 cpu=4 pods=9
    node n2 cpu=4 pods=9
    node n3 cpu=4 pods=9 taint=x:NoSchedule
    queue mine deserved.cpu=4 deserved.pods=9
    queue rich deserved.cpu=1 deserved.pods=1 cap.cpu=4
    queue poor deserved.cpu=4 deserved.pods=9
    job r queue=rich min=0 running
      task w cpu=1 @n1 running
      task kept cpu=3 @n1 running pre=false
    job far queue=rich min=0 running
      task w cpu=2 x2 @n3 running
    job p queue=poor min=0 running
      task w cpu=2 x2 @n2 running
    job a queue=mine min=1
      task w cpu=4";

/// Votes read how queues stand to their shares.
const BY_QUEUE: [&str; 3] = [
    "gang{jobStarving jobPipelined jobReady jobOrder} | proportion predicates nodeorder",
    "gang{jobStarving jobPipelined jobReady jobOrder} | capacity predicates nodeorder",
    "gang{jobStarving jobPipelined jobReady jobOrder} | capacity{* hierarchy} predicates nodeorder",
];

fn by_queue() -> impl Iterator<Item = Config> {
    BY_QUEUE.iter().map(|tiers| conf("allocate, reclaim", tiers))
}

/// Nodes that are looked at after this change, without a victim.
fn looked_at_after(config: &Config, text: &str, change: impl FnOnce(&mut World)) -> u64 {
    let mut world = settled(config, text);
    change(&mut world);
    let (n_searches, n_nodes) = spared(&mut world);
    assert_eq!(n_searches, 1);
    n_nodes
}

#[test]
fn fast__failed_preemption_looks_where_queues_stand_otherwise() {
    let end = |name: &'static str| {
        move |world: &mut World| world.edit(name, |pod| pod.phase = vc_model::PodPhase::Succeeded)
    };
    let more = |queue: &'static str| {
        let text = format!("job more queue={queue} min=0 running\n task w cpu=1 @n3 running");
        move |world: &mut World| world.add(&text)
    };
    for config in by_queue() {
        let after =
            |text: &str, change: &dyn Fn(&mut World)| looked_at_after(&config, text, change);
        assert_eq!(after(FAIR, &|_| {}), 0);
        assert_eq!(after(FAIR, &more("mine")), 1, "n3; nobody takes from the own queue");
        let with_less =
            FAIR.replace("cpu=2 x2 @n1", "cpu=1 x2 @n1").replace("n1 cpu=4", "n1 cpu=3");
        assert_eq!(after(&with_less, &more("rich")), 1, "n3; it has no more than its share still");
        assert_eq!(after(UNFAIR, &end("far-w-0")), 2, "n3, and n1 for the votes");
        assert_eq!(after(UNFAIR, &end("p-w-0")), 1, "n2; the place there is not enough");
    }
}

#[test]
fn fast__failed_preemption_ends_with_the_share_of_a_queue() {
    let by_proportion = by_queue().next().expect("the first one");
    for config in by_queue() {
        let after = |change: fn(&mut World)| evicted_after(&config, FAIR, change);
        let elsewhere = |world: &mut World| {
            world.add("job more queue=rich min=0 running\n task w cpu=2 @n3 running");
        };
        assert_eq!(after(elsewhere), "r-w-1", "n1 has not changed");
        assert_eq!(after(|world| world.add("queue rich deserved.cpu=2 cap.cpu=2")), "r-w-1");
    }
    // Another queue, and the cluster.
    let more = FAIR.to_owned() + "\n job b queue=poor min=1\n task w cpu=2 x3";
    let heavy = |world: &mut World| world.add("queue poor weight=9 deserved.cpu=4");
    assert_eq!(evicted_after(&by_proportion, &more, heavy), "r-w-1");
    let less = |world: &mut World| world.add("node n3 cpu=1 taint=x:NoSchedule");
    assert_eq!(
        evicted_after(&by_proportion, &more.replace("queue mine", "queue mine weight=9"), less),
        "r-w-1"
    );
}

#[test]
fn fast__failed_preemption_ends_with_the_size_of_the_cluster() {
    // Of `rich` one pod may go; with a smaller cluster behind the guarantee of `mine` both.
    let text = "node n1 cpu=4 pods=9
        node n2 cpu=3 pods=9 taint=x:NoSchedule
        queue mine guarantee.cpu=4 guarantee.pods=4
        queue rich deserved.cpu=9 deserved.pods=9
        job r queue=rich min=0 running
          task w cpu=2 x2 @n1 running
        job a queue=mine min=1
          task w cpu=4";
    let flat = by_queue().nth(1).expect("the second one");
    let less = |world: &mut World| world.add("node n2 cpu=1 pods=9 taint=x:NoSchedule");
    assert_eq!(evicted_after(&flat, text, less), "r-w-1 r-w-0");
}

#[test]
fn fast__failed_preemption_ends_with_what_the_own_queue_has() {
    // With a place more `mine` had more memory than it deserves, and `rich` has less: it could take it
    // back.
    let text = "node n1 cpu=4 memory=4Gi
        node n2 cpu=4 memory=4Gi taint=x:NoSchedule
        queue mine deserved.cpu=4 deserved.memory=3Gi
        queue rich deserved.cpu=2 deserved.memory=8Gi
        job r queue=rich min=0 running
          task w cpu=2 memory=2Gi x2 @n1 running
        job held queue=mine min=0 running
          task w cpu=1 memory=2Gi @n2 running
        job a queue=mine min=1
          task w cpu=2 memory=2Gi";
    for config in by_queue().skip(1) {
        let end = |world: &mut World| {
            world.edit("held-w", |pod| pod.phase = vc_model::PodPhase::Succeeded);
        };
        assert_eq!(evicted_after(&config, text, end), "r-w-1");
    }
}

#[test]
fn fast__failed_preemption_ends_with_the_clock() {
    let text = "node n1 cpu=4
        job cheap min=0 priority=1 running
          task w cpu=4 @n1 running
        job a min=1 priority=5
          task w cpu=4";
    let mut world = World::new(&config(), text);
    let now_micros = world.now_micros();
    world.edit("cheap-w", |pod| {
        pod.annotations.insert("volcano.sh/cooldown-time".into(), "600s".into());
        pod.scheduled_micros = Some(now_micros);
    });
    assert_eq!(settle(&mut world), (2, 0), "it was placed a moment ago");
    world.tick(601);
    assert_eq!(world.cycle().only(&["evict"]).lines().count(), 1);
}

#[test]
fn fast__failed_preemption_asks_votes_that_read_more() {
    // drf compares shares of jobs, which change anywhere.
    let tiers = "gang{jobStarving jobPipelined} drf{preemptable} | predicates";
    let text = "node n1 cpu=4
        node n2 cpu=4
        job r min=0 running
          task w cpu=4 @n1 running
        job a min=1
          task w cpu=4
        job s min=0 running
          task w cpu=4 @n2 running";
    let mut world = World::new(&conf("preempt", tiers), text);
    let (n_searches, n_nodes) = settle(&mut world);
    assert!(0 < n_searches && 0 < n_nodes, "{n_searches} {n_nodes}");
}

#[test]
fn fast__failed_preemption_asks_budgets_of_whom_they_cover() {
    let tiers = "priority{preemptable jobStarving} \
        gang{preemptable jobStarving jobPipelined} pdb{preemptable} | predicates";
    let text = "node n1 cpu=4
        node n2 cpu=4
        budget one label.app=covered
        job r min=0 running
          task w cpu=4 @n1 running label.app=covered
        job gang min=2 running
          task w cpu=2 x2 @n2 running label.app=other
        job a priority=9
          task w cpu=4";
    let config = conf("preempt", tiers);
    let looked_at = |change: fn(&mut World)| {
        let mut world = World::new(&config, text);
        settle(&mut world);
        change(&mut world);
        nudge(&mut world);
        spared(&mut world)
    };
    assert_eq!(looked_at(|_| {}), (2, 1), "n1, between jobs");
    assert_eq!(
        looked_at(|world| world.add("budget one allowed=0 healthy=3 label.app=covered")),
        (2, 1)
    );
    let (n_searches, _) = looked_at(|world| world.add("budget two label.app=other"));
    assert_eq!(n_searches, 0, "gang need not protect the pods on n2 any more");
    let relabelled = |world: &mut World| {
        world.edit("gang-w-0", |pod| {
            pod.labels = [("app".into(), "covered".into())].into_iter().collect()
        });
    };
    assert_eq!(looked_at(relabelled), (2, 3), "n1 and n2, and n2 inside the job");
}

#[test]
fn fast__failed_preemption_in_a_tree_of_queues_stands_while_their_branches_do() {
    // A pod of `rich` less, and one of `mine` more: both queues had as much.
    let note = |name: &str| {
        format!(
            "queue {name} note.volcano.sh/hierarchy=root/{name} note.volcano.sh/hierarchy-weights=1/1"
        )
    };
    let text = format!(
        "node n1 cpu=4
        node n2 cpu=4 taint=x:NoSchedule
        {}
        {}
        job r queue=rich min=0 running
          task w cpu=2 x2 @n1 running
        job a queue=mine min=1
          task w cpu=2 x2
        job b queue=mine min=1
          task w cpu=2 x3",
        note("mine"),
        note("rich")
    );
    let tiers = "gang{jobStarving jobPipelined jobReady jobOrder} | drf{* hierarchy} predicates";
    let config = conf("allocate, reclaim", tiers);
    let mut world = World::new(&config, &text);
    assert_eq!(settle(&mut world), (2, 0), "neither branch has changed");
    assert_eq!(
        world.engine.cache_stats().n_repeated,
        3,
        "further pods of a job fail as the first one"
    );
    world.add("job more queue=rich min=0 running\n task w cpu=2 @n2 running");
    assert_eq!(world.cycle().only(&["evict"]), "evict r-w-1 reclaim", "n1 has not changed");
}

/// Votes are shared by queues that stand alike. On n3 is a pod of `one`, which only the others may
/// evict, and `x` and `y` part from each other below `team`. Each world has the plain evaluator
/// beside it.
#[test]
fn fast__failed_preemption_shares_votes_between_queues() {
    let queues = ["rich", "one", "two", "team/x", "team/y"].map(|path| {
        let name = path.trim_start_matches("team/");
        format!(
            "queue {name} note.volcano.sh/hierarchy=root/{path} \
             note.volcano.sh/hierarchy-weights=1/1/1"
        )
    });
    let text = format!(
        "node n1 cpu=4
        node n2 cpu=4
        node n3 cpu=4
        {}
        job r queue=rich min=0 running
          task w cpu=2 x2 @n1 running
          task v cpu=2 x2 @n2 running
        job t queue=rich min=0 running
          task w cpu=2 @n3 running
        job o queue=one min=0 running
          task w cpu=2 @n3 running
        job b queue=two min=3
          task w cpu=2 x3
        job c queue=x min=3
          task w cpu=2 x3
        job d queue=y min=3
          task w cpu=2 x3
        job a queue=one min=3
          task w cpu=2 x3",
        queues.join("\n")
    );
    let tiers = "gang{jobStarving jobPipelined jobReady jobOrder} | drf{* hierarchy} predicates";
    let mut world = World::new(&conf("allocate, reclaim", tiers), &text);
    let evicted = world.cycle().only(&["evict"]);
    assert_eq!(evicted.lines().count(), 3, "one gang of the four gets its room: {evicted}");
    let (n_searches, n_nodes) = settle(&mut world);
    assert!(0 < n_searches && n_nodes < 3 * n_searches, "{n_searches} {n_nodes}");
    for (group, queue) in [("a", "one"), ("c", "x"), ("d", "y"), ("b", "two")] {
        world.delete_group(group);
        world.add(&format!("job {group}1 queue={queue} min=2\n task w cpu=2 x4"));
        world.cycle();
        nudge(&mut world);
        world.cycle();
        world.delete_group("nudge");
    }
}

#[test]
fn fast__failed_preemption_is_forgotten_with_its_job() {
    let mut world = settled(&config(), VAIN);
    world.delete_pod("a-w");
    world.delete_group("a");
    for _ in 0..3 {
        nudge(&mut world);
        assert_eq!(spared(&mut world), (0, 0));
        world.delete_group("nudge");
        world.cycle();
    }
    let cluster = world.engine.cluster();
    assert!(cluster.tasks.iter().all(|(_, task)| task.status == TaskStatus::Running));
    world.add("job a min=1 priority=5\n task w cpu=4");
    world.cycle();
    assert_eq!(world.engine.cache_stats().n_known_infeasible, 0);
    world.send(ClusterEvent::QueueDeleted { name: "none".into() });
}

//! The shortcuts of evictions are taken in the random clusters in which they are compared with the
//! plain search, and where they pay (actions.md 12.2 S7-S9).

use proptest::strategy::ValueTree;
use vc_engine::CacheStats;

use super::*;

/// What three cycles of this many random clusters of the law take.
fn cache_stats(
    law: &str,
    seed: u64,
    n_clusters: usize,
    victim_index_bytes: Option<usize>,
) -> CacheStats {
    let law = laws().into_iter().find(|it| it.name == law).expect("it is listed");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let strategy = (clusters(&law.shape), law.configs.clone());
    let mut sum = CacheStats::default();
    for _ in 0..n_clusters {
        let (text, config) = strategy.new_tree(&mut runner).expect("nothing is rejected").current();
        let mut world = World::new(&configs()[config], &text);
        victim_index_bytes.into_iter().for_each(|most| world.engine.set_victim_index_bytes(most));
        for _ in 0..3 {
            world.cycle();
            let cache_stats = world.engine.cache_stats();
            sum.n_repeated += cache_stats.n_repeated;
            sum.n_resumed += cache_stats.n_resumed;
            sum.n_skipped_nodes += cache_stats.n_skipped_nodes;
            sum.n_forgotten += cache_stats.n_forgotten;
            world.kubelets_and_controllers();
        }
    }
    sum
}

#[test]
fn random_clusters_take_the_shortcuts() {
    let cache_stats = cache_stats("alike", 9, 100, None);
    assert!(100 < cache_stats.n_repeated, "{cache_stats:?}");
    assert!(100 < cache_stats.n_resumed, "{cache_stats:?}");
    assert_eq!(cache_stats.n_forgotten, 0);
}

#[test]
fn random_clusters_do_not_tell_which_walks_had_to_go() {
    // Only the walk at hand is kept, or a few.
    for (victim_index_bytes, n_forgotten) in [(0, 20), (1_500, 3)] {
        let cache_stats = cache_stats("alike", 9, 100, Some(victim_index_bytes));
        assert!(
            100 < cache_stats.n_resumed && n_forgotten < cache_stats.n_forgotten,
            "{cache_stats:?}"
        );
    }
}

#[test]
fn walks_of_many_shapes_are_dropped_and_begun_anew() {
    let n_nodes = 12;
    let mut text = String::new();
    for node in 0..n_nodes {
        text.push_str(&format!("node n{node} cpu=8 memory=64Gi pods=20\n"));
        text.push_str(&format!(
            "job r{node} min=1 priority=1\n  task a cpu=1 x8 @n{node} running\n"
        ));
    }
    for job in 0..40 {
        // The shapes come in turns, so that each comes back.
        let memory = 1 + job % 8;
        text.push_str(&format!(
            "job w{job} min=2 priority=9\n  task a cpu=1 memory={memory}Gi x2\n"
        ));
    }
    let tiers = "gang{preemptable jobPipelined jobStarving} \
        priority{preemptable taskOrder jobStarving} predicates nodeorder";
    let run = |victim_index_bytes: Option<usize>| {
        let mut world = World::new(&conf("preempt", tiers), &text);
        victim_index_bytes.into_iter().for_each(|most| world.engine.set_victim_index_bytes(most));
        let cycle = world.cycle();
        assert_eq!(cycle.report.n_evictions, 80);
        (format!("{:#?}", cycle.effects), world.engine.cache_stats())
    };
    let (all, kept) = run(None);
    assert_eq!((kept.n_resumed, kept.n_forgotten), (80, 0));
    for (victim_index_bytes, n_forgotten) in [(0, 38..40), (3_000, 20..40), (1 << 20, 0..1)] {
        let (few, cache_stats) = run(Some(victim_index_bytes));
        assert_eq!(few, all, "{victim_index_bytes}");
        assert!(
            cache_stats.n_resumed == 80 && n_forgotten.contains(&cache_stats.n_forgotten),
            "{cache_stats:?}"
        );
    }
}

#[test]
fn a_failure_is_searched_for_once() {
    let mut text = String::from("node n1 cpu=4\n");
    for job in 0..5 {
        text.push_str(&format!("job r{job} min=0\n  task a cpu=1 @n1 running\n"));
        text.push_str(&format!("job w{job} min=3\n  task a cpu=1 x3 label.job=w{job}\n"));
    }
    let tiers = "gang{preemptable jobPipelined jobStarving} \
        priority{preemptable jobOrder taskOrder jobStarving} predicates nodeorder";
    let mut world = World::new(&conf("preempt", tiers), &text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    // Five jobs of three equal tasks, of which one is tried, in either phase.
    let (n_repeated, n_equal_gangs) = (3 - 1, 2 * 4);
    assert_eq!(
        world.engine.cache_stats(),
        CacheStats { n_repeated, n_equal_gangs, ..CacheStats::default() }
    );
}

#[test]
fn equal_tasks_find_their_nodes_by_resuming() {
    let mut text = String::from("queue mine\nqueue theirs\n");
    for node in 0..5 {
        text.push_str(&format!("node n{node} cpu=2\n"));
    }
    text.push_str("job low queue=theirs min=0 priority=1\n");
    for node in 0..5 {
        text.push_str(&format!("  task v{node} cpu=1 x2 @n{node} running\n"));
    }
    for (queue, action) in [("mine", "reclaim"), ("theirs", "preempt")] {
        let waiting = format!("job high queue={queue} min=4 priority=2\n  task p cpu=1 x4\n");
        let tiers = "gang{jobPipelined jobStarving} priority{preemptable} \
            proportion{reclaimable queueOrder preemptive} predicates nodeorder";
        let mut world = World::new(&conf(action, tiers), &(text.clone() + &waiting));
        let cycle = world.cycle();
        assert_eq!(cycle.report.n_evictions, 4, "{action}");
        assert_eq!(
            world.engine.cache_stats(),
            CacheStats { n_resumed: 4, ..CacheStats::default() },
            "{action}"
        );
    }
}

#[test]
fn a_node_whose_pods_are_refused_is_passed_over_until_their_job_changes() {
    let mut text = String::new();
    for node in 0..3 {
        text.push_str(&format!("node a{node} cpu=1\n"));
        text.push_str(&format!("job r{node} min=1\n  task a cpu=1 @a{node} running\n"));
    }
    text.push_str("node b0 cpu=3\njob low min=0\n  task a cpu=1 x3 @b0 running\n");
    text.push_str("job high priority=1 min=3\n  task a cpu=1 x3\n");
    let tiers = "gang{preemptable jobPipelined jobStarving} \
        priority{preemptable jobOrder taskOrder jobStarving} predicates";
    let mut world = World::new(&conf("preempt", tiers), &text);
    let cycle = world.cycle();
    assert_eq!(cycle.report.n_evictions, 3);
    let cache_stats = world.engine.cache_stats();
    assert_eq!(
        cache_stats,
        CacheStats { n_resumed: 3, n_skipped_nodes: 6, ..CacheStats::default() }
    );
}

/// Of the three members of `r` two may go. The first job takes them from `n1`, so that it gets nothing
/// on `n2`, and gives up for want of a third place. The second one takes one of them for good, after
/// which the third one, which is like the first, may take one on `n2`, and need not go to `n3`.
#[test]
fn a_node_is_back_with_its_job_although_nothing_happened_there() {
    let text = "node n1 cpu=1
        node n2 cpu=1
        node n3 cpu=1
        job r min=1
          task a cpu=500m x2 @n1 running
          task b cpu=1 @n2 running
        job low min=0
          task a cpu=1 @n3 running
        job p priority=1 min=3 created=1
          task a cpu=1 x3
        job q priority=1 created=2
          task a cpu=500m
        job s priority=1 created=3
          task a cpu=1";
    let tiers = "gang{preemptable jobPipelined jobStarving} \
        priority{preemptable jobOrder taskOrder jobStarving} predicates";
    let mut world = World::new(&conf("preempt", tiers), text);
    let expected = "evict r-a-1 preempt\nevict r-b preempt\npipeline q-a n1\npipeline s-a n2";
    assert_eq!(world.cycle().decisions(), expected);
    assert!(0 < world.engine.cache_stats().n_resumed);
}

/// What the order of nodes depends on beside their rows is not remembered.
#[test]
fn nodes_beside_other_pods_are_tried_in_the_order_of_all_scores() {
    let text = "node n1 cpu=1 zone=a
        node n2 cpu=1 zone=b
        job friend priority=9 running
          task a @n2 running label.app=x
        job low min=0
          task a cpu=1 @n1 running
          task b cpu=1 @n2 running
        job high priority=5
          task a cpu=1 like=zone:x x2";
    let tiers = "gang{preemptable jobPipelined jobStarving} \
        priority{preemptable taskOrder jobStarving} predicates nodeorder";
    let mut world = World::new(&conf("preempt", tiers), text);
    assert_eq!(world.cycle().decisions(), "evict low-b preempt\npipeline high-a-0 n2");
    assert_eq!(world.engine.cache_stats().n_resumed, 1);
}

#[test]
fn equal_tasks_resume_on_a_node_with_many_candidates() {
    let mut text = String::from("node n cpu=90 pods=200\n");
    for job in 0..9 {
        // What goes first changes with what has gone: shares of jobs decide.
        text.push_str(&format!("job r{job} min=2\n  task a cpu=1 x10 @n running\n"));
    }
    text.push_str("job high priority=1 min=30\n  task a cpu=1 x30\n");
    let tiers = "gang{preemptable jobPipelined jobStarving jobOrder} drf{jobOrder} \
        priority{preemptable taskOrder jobStarving} predicates nodeorder";
    let mut world = World::new(&conf("preempt", tiers), &text);
    let cycle = world.cycle();
    assert_eq!(cycle.report.n_evictions, 30);
    let cache_stats = world.engine.cache_stats();
    assert_eq!(cache_stats, CacheStats { n_resumed: 30, ..CacheStats::default() });
}

#[test]
fn what_is_passed_over_comes_back_with_its_jobs() {
    let n_nodes = 40;
    let mut text = String::new();
    (0..n_nodes).for_each(|node| text.push_str(&format!("node n{node} cpu=3\n")));
    for job in 0..n_nodes {
        // Members on three nodes, of which one or two may go.
        text.push_str(&format!("job r{job} min={}\n", 1 + job % 2));
        for member in 0..3 {
            let node = (7 * job + 13 * member) % n_nodes;
            text.push_str(&format!("  task a{member} cpu=1 @n{node} running\n"));
        }
    }
    for (job, size) in [("p", 25), ("q", 20), ("r", 25)] {
        text.push_str(&format!("job {job} priority=1 min={size}\n  task a cpu=1 x{size}\n"));
    }
    let tiers = "gang{preemptable jobPipelined jobStarving} \
        priority{preemptable taskOrder jobStarving} predicates nodeorder binpack";
    let mut world = World::new(&conf("preempt", tiers), &text);
    let cycle = world.cycle();
    assert_eq!(cycle.report.n_evictions, 45, "60 may go, which is too few for the last one");
    let cache_stats = world.engine.cache_stats();
    assert!(45 <= cache_stats.n_resumed && 45 < cache_stats.n_skipped_nodes, "{cache_stats:?}");
}

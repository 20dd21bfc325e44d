//! Nodes with many pods: whom trimming spares, and who is evicted first where names are mixed. Each
//! world runs the plain evaluator beside the fast one and compares. Specification: actions.md 2.9, 6.6
//! with A28, 6.7.3, 7.3 with A38, 12.2 S9, S11; core.md 5.4.

use proptest::prelude::*;
use vc_conf::Config;
use vc_engine::CacheStats;

use crate::support::*;

const TIERS: &str = "gang{jobPipelined jobStarving} priority{preemptable taskOrder jobStarving} \
    proportion{reclaimable queueOrder preemptive} predicates nodeorder";

fn configs() -> [Config; 3] {
    let dry =
        with_arguments(conf("preempt", TIERS), "preempt", "{enableTopologyAwarePreemption: true}");
    [conf("preempt", TIERS), conf("reclaim", TIERS), dry]
}

/// A pod: cpu, memory, priority, host port.
type Pod = (u32, u32, u32, Option<u16>);

fn pod(most: u32) -> impl Strategy<Value = Pod> {
    (1..most, 1..most, 0..4_u32, prop::option::weighted(0.2, 80..83_u16))
}

fn line((cpu, memory, priority, port): Pod) -> String {
    let port = port.map_or(String::new(), |port| format!("port={port}"));
    format!("cpu={cpu} memory={memory}Gi priority={priority} {port}\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Host ports and memory keep victims that cpu alone would spare.
    #[test]
    fn trimming_at_once_spares_the_same_victims(
        pods in prop::collection::vec((pod(6), 0..4_u32), 2..40),
        wanted in prop::collection::vec(pod(40), 1..4),
        spare in (0..4_u32, 0..4_u32),
    ) {
        let sum = |of: fn(&Pod) -> u32| pods.iter().map(|(pod, _)| of(pod)).sum::<u32>();
        let (cpu, memory) = (sum(|pod| pod.0) + spare.0, sum(|pod| pod.1) + spare.1);
        let mut text = format!("node n cpu={cpu} memory={memory}Gi pods=200\nqueue mine\n");
        let mut ports = std::collections::BTreeSet::new();
        for job in 0..4 {
            text.push_str(&format!("job r{job} min=0 priority={job}\n"));
            for (place, (pod, _)) in pods.iter().enumerate().filter(|(_, it)| it.1 == job) {
                let port = pod.3.filter(|&port| ports.insert(port));
                let pod = (pod.0, pod.1, pod.2, port);
                text.push_str(&format!("task v{place} @n running {}", line(pod)));
            }
        }
        for (config, queue) in configs().iter().zip(["default", "mine", "default"]) {
            let mut text = format!("{text}job high queue={queue} min=1 priority=9\n");
            for (place, &(cpu, memory, _, port)) in wanted.iter().enumerate() {
                text.push_str(&format!("task w{place} {}", line((cpu, memory, 9, port))));
            }
            World::new(config, &text).cycle();
        }
    }

    /// An index is compared with an index only, so that each of three pods may come before the next
    /// one: then a part of a sorted list is not what sorting the part gives.
    #[test]
    fn where_names_are_mixed_candidates_are_in_one_order(
        pods in prop::collection::vec((prop::option::of(0..9_u32), 0..9_u32), 70),
    ) {
        let cache_stats = hits_of_one_by_one(&pods);
        prop_assert_eq!(cache_stats.n_resumed, 8);
    }
}

/// Each of these comes after the next in the order of victims: `a` before `c` by index, `c` before
/// `b` and `b` before `a` by age.
#[test]
fn preempt__order_of_pods_that_have_none_is_that_of_all_candidates() {
    let mut text = String::from("node n cpu=10700m pods=200\n");
    for (job, task, created) in [("x", "v", 9), ("a", "v-1", 3), ("c", "v-2", 1), ("b", "v", 2)] {
        text.push_str(&format!(
            "job {job} min=0\ntask {task} cpu=1 created={created} @n running\n"
        ));
    }
    text.push_str("job keep min=0\ntask v cpu=100m x67 pre=false @n running\n");
    text.push_str("job high priority=1 min=2\ntask p cpu=1 priority=1 x2\n");
    let mut world = World::new(&conf("preempt", TIERS), &text);
    let evicted = world.cycle().only(&["evict"]);
    assert!(evicted.contains("x-v") && evicted.contains("a-v-1"), "{evicted}");
    assert_eq!(evicted.lines().count(), 2);
}

/// Eight pods need one of these each: index and age.
fn hits_of_one_by_one(pods: &[(Option<u32>, u32)]) -> CacheStats {
    let mut text = format!("node n cpu={} pods=200\n", pods.len());
    for (place, (index, created)) in pods.iter().enumerate() {
        let name = index.map_or(format!("v{place}"), |index| format!("v{place}-{index}"));
        // A job of its own for each: what is evicted changes only its job.
        text.push_str(&format!(
            "job r{place} min=0\ntask {name} cpu=1 created={created} @n running\n"
        ));
    }
    text.push_str("job high priority=1 min=8\ntask p cpu=1 priority=1 x8\n");
    let mut world = World::new(&conf("preempt", TIERS), &text);
    let cycle = world.cycle();
    assert_eq!(cycle.report.n_evictions, 8);
    world.engine.cache_stats()
}

/// The large one is needed, and many less important ones were evicted before it.
#[test]
fn preempt__A28_many_small_victims_are_spared_for_one_large() {
    let n_small = 300;
    let large = 2 * n_small;
    let mut text = format!("node n cpu={} pods=1000\njob low min=0 priority=1\n", 3 * n_small);
    text.push_str(&format!("task v cpu=1 x{n_small} @n running\n"));
    // Of equal priority it would go first, by name, and nobody else.
    text.push_str(&format!("job mid min=0 priority=2\ntask v cpu={large} priority=2 @n running\n"));
    text.push_str(&format!("job high priority=9\ntask p cpu={large} priority=9\n"));
    let [preempt, _, dry] = configs();
    for config in [preempt, dry] {
        let cycle = World::new(&config, &text).cycle();
        assert_eq!(cycle.only(&["evict"]).lines().count(), 1);
        assert!(cycle.only(&["evict"]).contains("mid-v"), "{}", cycle.decisions());
    }
}

//! Simulations of the gang actions that are spared because too few members could find room, and
//! victims that are given back together: where that is done, where it may not be, and that it
//! changes nothing; `World` compares with the plain evaluator (actions.md 12.2 S15, 9.5, A41).

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use vc_conf::Config;
use vc_engine::CacheStats;

use crate::support::gang::*;
use crate::support::*;

/// Each job has a pod on each node, and nothing else is there: who goes leaves pieces everywhere.
fn pieces(n_nodes: usize, n_jobs: usize, waiting: &str) -> String {
    let mut text = String::new();
    for node in 0..n_nodes {
        let disk = if node + 1 == n_nodes { "disk=ssd" } else { "" };
        text.push_str(&format!("node n{node} cpu={n_jobs} pods=20 zone=z{} {disk}\n", node % 2));
    }
    for job in 0..n_jobs {
        text.push_str(&format!("job a{job} priority=1 min=0\n"));
        for node in 0..n_nodes {
            text.push_str(&format!("  task x{node} cpu=1 @n{node} running\n"));
        }
    }
    text + waiting
}

/// Two members that need three pieces each.
const TWO: &str = "job p priority=9 min=2\n  task p cpu=3 x2";

fn cycle(tiers: &str, text: &str) -> (usize, CacheStats) {
    let mut world = World::new(&conf("gangpreempt", tiers), text);
    let cycle = world.cycle();
    (cycle.report.n_evictions, world.engine.cache_stats())
}

#[test]
fn fast__gang_bound_spares_simulations() {
    let (n_evictions, cache_stats) = cycle(TIERS, &pieces(6, 4, TWO));
    assert_eq!(n_evictions, 6);
    // One piece on each node is enough in sum and is tried, two are not, three are enough. Of the
    // third job two pods go; of the eight that are elsewhere the first and the last are given back
    // alone, two and four others together.
    assert_eq!(cache_stats, CacheStats { n_bounded: 1, n_returned: 6, ..CacheStats::default() });
}

#[test]
fn fast__gang_bound_of_the_pods_of_one_bundle() {
    let mut text = String::new();
    (0..6).for_each(|node| text.push_str(&format!("node n{node} cpu=3 pods=20\n")));
    text.push_str("job a priority=1 min=0\n");
    for pod in 0..18 {
        text.push_str(&format!("  task x{pod:02} cpu=1 @n{} running\n", pod % 6));
    }
    let (n_evictions, cache_stats) = cycle(TIERS, &(text + TWO));
    assert_eq!(n_evictions, 6);
    // Six are tried; seven to thirteen are not, nor is one place enough; fourteen are.
    assert_eq!(cache_stats.n_bounded, 7);
}

#[test]
fn fast__gang_bound_skips_the_last_simulation_too() {
    let other = "queue other\njob o queue=other min=12\n  task o cpu=2 x12\n";
    let text = pieces(6, 4, &format!("{other}job p priority=9\n  task p cpu=5"));
    let text = text.replace("pods=20", "pods=4");
    let tiers = format!("{TIERS} proportion{{overused}}");
    let (n_evictions, cache_stats) = cycle(&tiers, &text);
    assert_eq!((n_evictions, cache_stats.n_bounded), (0, 3));
}

#[test]
fn fast__gang_bound_counts_the_nodes_of_a_selector() {
    let waiting = "job p priority=9 min=3\n  task p cpu=1 x3 selector.disk=ssd";
    let (n_evictions, cache_stats) = cycle(&format!("{TIERS} predicates"), &pieces(6, 4, waiting));
    assert_eq!(n_evictions, 3);
    // Two pieces on the only node; then the pods of the third job before the one on it.
    assert_eq!(cache_stats.n_bounded, 1 + 4);
}

/// Each kind would find room by itself; all members ask for four cpus at least.
#[test]
fn fast__gang_bound_of_members_of_two_sizes() {
    let waiting = "job p priority=9 min=4\n  task a cpu=4 x2\n  task b cpu=5 x2";
    let (n_evictions, cache_stats) = cycle(TIERS, &pieces(3, 8, waiting));
    assert_eq!((n_evictions, cache_stats.n_bounded), (18, 1));
}

#[test]
fn fast__gang_bound_leaves_affinity_out() {
    let waiting = "job p priority=9 min=2\n  task p cpu=3 x2 label.app=p near=zone:p";
    let (n_evictions, cache_stats) = cycle(&format!("{TIERS} predicates"), &pieces(6, 4, waiting));
    assert_eq!((n_evictions, cache_stats.n_bounded), (6, 1));
    assert_eq!(cache_stats.n_returned, 0, "filters read more than the rows of nodes");
}

#[test]
fn fast__gang_bound_not_where_scorers_look_at_all_candidates() {
    let waiting = "job p priority=9 min=2\n  task p cpu=3 x2 label.app=p like=zone:p";
    let tiers = format!("{TIERS} predicates nodeorder");
    let (n_evictions, cache_stats) = cycle(&tiers, &pieces(6, 4, waiting));
    assert_eq!((n_evictions, cache_stats.n_bounded), (6, 0));
    assert_eq!(cycle(&tiers, &pieces(6, 4, TWO)).1.n_bounded, 1);
}

#[test]
fn fast__gang_bound_not_where_a_plugin_reads_anything() {
    let config = conf("gangpreempt", &format!("{TIERS} scorer"));
    let mut all = objects("queue default");
    all.extend(objects(&pieces(6, 4, TWO)));
    let mut world = World::with(beside_silent(), &config, all);
    let cycle = world.cycle();
    assert_eq!((cycle.report.n_evictions, world.engine.cache_stats()), (6, CacheStats::default()));
}

#[test]
fn fast__gang_bound_not_in_the_plain_evaluator() {
    let mut stage = Stage::new(&gang_preempt(), Vec::new(), &pieces(6, 4, TWO));
    let outbox = stage.session(|session| {
        run(session, "gangpreempt");
        assert_eq!(*session.stats(), CacheStats::default());
    });
    let is_eviction =
        |effect: &&vc_engine::Effect| matches!(effect, vc_engine::Effect::Evict { .. });
    assert_eq!(outbox.effects.iter().filter(is_eviction).count(), 6);
}

/// Sub-job by sub-job; how many are needed is seen when one is placed and the job is not complete.
#[test]
fn fast__gang_bound_of_sub_groups() {
    let waiting = "job p priority=9 min=4 policy.g=2x2
        task a cpu=3 label.g=1 x2
        task b cpu=5 label.g=2 x2";
    let text = pieces(6, 6, waiting);
    let (n_evictions, cache_stats) = cycle(TIERS, &text);
    assert_eq!((n_evictions, cache_stats.n_bounded), (16, 1));
    // A plugin that reads more than the row of the job may find it complete another time.
    let sla = "sla{jobPipelined sla-waiting-time=99h}";
    let (n_evictions, cache_stats) = cycle(&format!("{sla} {TIERS}"), &text);
    assert_eq!((n_evictions, cache_stats), (16, CacheStats::default()));
}

/// Some go for the quota of the queue although their room is of no use.
#[test]
fn fast__gang_bound_gives_back_what_quota_allows() {
    let text = format!("queue default cap.cpu=20\n{}", pieces(6, 4, TWO));
    let (n_evictions, cache_stats) = cycle(&format!("{TIERS} proportion{{allocatable}}"), &text);
    assert_eq!((n_evictions, cache_stats.n_returned), (10, 2));
}

fn configs() -> Vec<Config> {
    let rules = "predicates nodeorder binpack";
    let shares = "proportion{allocatable overused queueOrder preemptive}";
    let both = "gangpreempt, gangreclaim";
    let arguments = |text| with_arguments(conf("gangpreempt", TIERS), "gangpreempt", text);
    vec![
        conf("gangpreempt", TIERS),
        arguments("{trimBoundaryBundle: false}"),
        arguments("{allowWholeBundle: false}"),
        arguments("{victimOrderPolicy: priority-first}"),
        conf(both, &format!("{TIERS} {rules}")),
        conf(both, &format!("{TIERS} drf {rules} {shares}")),
        conf(&format!("allocate, {both}"), &format!("{TIERS} predicates capacity pdb")),
    ]
}

fn clusters() -> impl Strategy<Value = String> {
    let wants = prop_oneof![
        5 => Just(""),
        1 => Just("selector.disk=ssd"),
        1 => Just("near=zone:a"),
        1 => Just("away=zone:a"),
        1 => Just("like=zone:a"),
        1 => Just("spread=zone:1:a"),
        1 => Just("port=80"),
    ];
    let node = (0_u32..3, any::<bool>(), prop::collection::vec((0_usize..4, 1_u32..3), 3..9));
    let queue = prop::option::of(4_u32..30);
    let victim = (0_u32..3, 0_u32..3, 0_u32..4);
    let task = (2_u32..6, 1_u32..4, wants, any::<bool>(), 1_u32..3);
    let policy = prop_oneof![3 => Just(""), 1 => Just("policy.g=1x1"), 1 => Just("policy.g=2x2")];
    let waiting = (1_u32..5, 0_u32..6, policy, prop::collection::vec(task, 1..4));
    let parts = (
        prop::collection::vec(node, 2..9),
        prop::collection::vec(queue, 2),
        prop::collection::vec(victim, 4),
        prop::collection::vec(waiting, 1..4),
    );
    parts.prop_map(|(nodes, queues, victims, waiting)| {
        let mut text = String::new();
        for (index, (more, ssd, slots)) in nodes.iter().enumerate() {
            let cpu = more + slots.iter().map(|(_, cpu)| cpu).sum::<u32>();
            let disk = if *ssd { "disk=ssd" } else { "" };
            text.push_str(&format!("node n{index} cpu={cpu} zone=z{} {disk}\n", index % 3));
        }
        for (index, cap) in queues.iter().enumerate() {
            let cap = cap.map_or(String::new(), |cap| format!("cap.cpu={cap}"));
            text.push_str(&format!("queue q{index} {cap}\n"));
        }
        for (job, (queue, priority, min)) in victims.iter().enumerate() {
            let queue = queue.min(&1);
            text.push_str(&format!("job v{job} queue=q{queue} priority={priority} min={min}\n"));
            for (index, (.., slots)) in nodes.iter().enumerate() {
                for (slot, (_, cpu)) in slots.iter().enumerate().filter(|(_, it)| it.0 == job) {
                    text.push_str(&format!("  task x{index}{slot} cpu={cpu} @n{index} running\n"));
                }
            }
        }
        for (job, (priority, min, policy, tasks)) in waiting.iter().enumerate() {
            text.push_str(&format!("job w{job} queue=q0 priority={priority} min={min} {policy}\n"));
            for (task, (cpu, n_equal, wants, is_a, group)) in tasks.iter().enumerate() {
                let app = if *is_a { "a" } else { "b" };
                text.push_str(&format!(
                    "  task t{task} cpu={cpu} label.app={app} label.g={group} {wants} x{n_equal}\n"
                ));
            }
        }
        text
    })
}

/// Both evaluators decide and say the same, and the shortcuts are taken in these clusters.
#[test]
fn fast__gang_bound_law() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[15; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let (clusters, configs, mut sum) = (clusters(), configs(), CacheStats::default());
    for number in 0..1_400 {
        let text = clusters.new_tree(&mut runner).expect("nothing is rejected").current();
        let mut world = World::new(&configs[number % configs.len()], &text);
        for _ in 0..3 {
            world.cycle();
            let cache_stats = world.engine.cache_stats();
            sum.n_bounded += cache_stats.n_bounded;
            sum.n_returned += cache_stats.n_returned;
            world.kubelets_and_controllers();
        }
    }
    assert!(300 < sum.n_bounded && 150 < sum.n_returned, "{sum:?}");
}

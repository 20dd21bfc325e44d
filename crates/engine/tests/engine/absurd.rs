//! Amounts, weights, counts and priorities that no cluster can serve: what does not depend on them is
//! placed as if they were not there, and how far they are beyond the cluster does not matter. The
//! world compares the plain evaluator with the fast one in each cycle, and checks all sums.
//! Specification: core.md 3.1 (C-34), plugins-jobs-queues.md 5.1 (D39).

use proptest::prelude::*;
use vc_conf::Config;

use crate::support::*;

/// Configurations in which a queue is no limit by itself, so that its pods are independent.
fn configs() -> Vec<Config> {
    let two_tiers = |queues: &str| {
        conf(
            "enqueue, allocate, preempt, reclaim, backfill",
            &format!("priority gang conformance | {queues} predicates nodeorder binpack"),
        )
    };
    let gangs = conf(
        "enqueue, allocate, gangpreempt, gangreclaim, backfill",
        "priority gang | drf capacity predicates nodeorder",
    );
    vec![
        conf("allocate, backfill", "priority gang | predicates nodeorder binpack"),
        two_tiers("drf overcommit proportion resourcequota"),
        two_tiers("drf capacity"),
        two_tiers("drf capacity{* hierarchy}"),
        two_tiers("drf{* hierarchy} overcommit"),
        two_tiers("drf proportion sla{* sla-waiting-time=1m}"),
        gangs,
    ]
}

/// Those, and one in which queues lend to each other.
fn all_configs() -> Vec<Config> {
    let lending = "priority gang | cohort predicates nodeorder";
    let mut configs = configs();
    configs.push(conf("enqueue, allocate, preempt, reclaim", lending));
    configs
}

/// Requests that nothing can hold, as users write them.
const ABSURD: [&str; 9] = [
    "cpu=10P",
    "cpu=9223372036854775807",
    "memory=7Ei",
    "memory=8Ei",
    "memory=9223372036854775807 cpu=9E",
    "gpu=9E",
    "gpu=9223372036854775",
    "example.com/x=8Ei",
    "pods=9223372036854775807",
];

/// A request beyond any cluster here, but nowhere near the bounds of numbers, in the place of one of
/// these.
fn modest(absurd: &str) -> String {
    let words = absurd.split(' ').map(|word| {
        let (name, _) = word.split_once('=').expect("name=amount");
        format!("{name}={}", if name == "memory" { "1000Gi" } else { "1000" })
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A job that nothing can serve.
#[derive(Clone, Debug)]
struct Hopeless {
    request: &'static str,
    n_pods: usize,
    head: String,
    with_minimum: bool,
}

impl Hopeless {
    /// The lines of its PodGroup and its pods. A group with `minResources` is Pending, because the
    /// minimum of an admitted group is reserved for it (C-34).
    fn lines(&self, number: usize, request: &str) -> String {
        let minimum = |word: &str| format!(" minres.{word}");
        let minimums: String = match self.with_minimum {
            true => request.split(' ').map(minimum).chain([" pending".to_owned()]).collect(),
            false => String::new(),
        };
        let (head, n_pods) = (&self.head, self.n_pods);
        format!("job h{number} {head}{minimums}\n  task a {request} x{n_pods}\n")
    }
}

fn unresolvable() -> impl Strategy<Value = Hopeless> {
    let min = prop::sample::select(vec!["1", "2", "2147483647"]);
    let priority = prop::sample::select(vec!["", "priority=2147483647", "priority=-2147483648"]);
    let phase = prop::sample::select(vec!["", "pending"]);
    let request = prop::sample::select(ABSURD.to_vec());
    (request, 1_usize..4, min, priority, phase, any::<bool>()).prop_map(
        |(request, n_pods, min, priority, phase, with_minimum)| {
            let head = format!("min={min} {priority} {phase}");
            Hopeless { request, n_pods, head, with_minimum }
        },
    )
}

/// Nodes, and jobs that some of them can serve.
fn ordinary() -> impl Strategy<Value = String> {
    let node = (1_u32..9, 1_u32..5).prop_map(|(cpu, gi)| format!("cpu={cpu} memory={gi}Gi gpu=2"));
    let task = (1_u32..4, 0_u32..3, 0_u32..2, prop::bool::weighted(0.3)).prop_map(
        |(cpu, gi, gpu, runs)| {
            let place = if runs { "@n0 running" } else { "" };
            format!("cpu={cpu} memory={gi}Gi gpu={gpu} {place}")
        },
    );
    let phase = prop::sample::select(vec!["", "pending", "pending minres.cpu=2"]);
    let job = (0_u32..3, -3_i32..3, phase, prop::collection::vec(task, 1..4));
    let parts = (prop::collection::vec(node, 1..4), prop::collection::vec(job, 1..5));
    parts.prop_map(|(nodes, jobs)| {
        let mut text = String::from("queue root\n");
        for (index, words) in nodes.iter().enumerate() {
            text.push_str(&format!("node n{index} {words}\n"));
        }
        for (index, (min, priority, phase, tasks)) in jobs.iter().enumerate() {
            text.push_str(&format!("job j{index} min={min} priority={priority} {phase}\n"));
            for (task, words) in tasks.iter().enumerate() {
                text.push_str(&format!("  task t{task} {words}\n"));
            }
        }
        text
    })
}

/// What is decided in a few cycles, in which what was bound starts to run.
fn decisions(config: &Config, text: &str) -> Vec<String> {
    let mut world = World::new(config, text);
    let cycles = (0..3).map(|_| {
        let decisions = world.cycle().decisions();
        world.kubelets_and_controllers();
        world.tick(90);
        decisions
    });
    cycles.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn absurd__others_are_placed_as_if_it_were_not_there(
        ordinary in ordinary(),
        unresolvable in prop::collection::vec(unresolvable(), 1..4),
        config in prop::sample::select(configs()),
    ) {
        let mut with = ordinary.clone();
        for (number, job) in unresolvable.iter().enumerate() {
            with.push_str(&job.lines(number, job.request));
        }
        prop_assert_eq!(decisions(&config, &with), decisions(&config, &ordinary), "{}", with);
    }

    /// Also where others depend on it: some of its pods hold a node, and queues are small.
    #[test]
    fn absurd__how_far_it_is_beyond_the_cluster_does_not_matter(
        ordinary in ordinary(),
        unresolvable in prop::collection::vec((unresolvable(), any::<bool>(), any::<bool>()), 1..4),
        queue in prop::sample::select(vec![
            "queue q", "queue q weight=2147483647 cap.cpu=4", "queue q weight=-2147483648",
            "queue q deserved.cpu=2 guarantee.cpu=1", "queue q priority=-2147483648 cap.gpu=1",
        ]),
        config in prop::sample::select(all_configs()),
    ) {
        let text = |of: &dyn Fn(&Hopeless) -> String| {
            let mut text = format!("{queue}\n{ordinary}");
            for (number, (job, runs, is_apart)) in unresolvable.iter().enumerate() {
                let mut lines = job.lines(number, &of(job));
                if *runs {
                    lines = format!("{}  task r {} @n0 running\n", lines, of(job));
                }
                let place = if *is_apart { "queue=q min=" } else { "min=" };
                text.push_str(&lines.replacen("min=", place, 1));
            }
            text
        };
        let absurd = text(&|job| job.request.to_owned());
        let beyond = text(&|job| modest(job.request));
        prop_assert_eq!(decisions(&config, &absurd), decisions(&config, &beyond), "{}", absurd);
    }
}

/// The queue is asked for more than 64 bits hold, and shares out what the cluster has.
#[test]
fn absurd__two_pods_of_seven_exbi_freeze_nobody() {
    for request in ["memory=7Ei x2", "memory=8Ei", "cpu=10P x2"] {
        let text = format!(
            "node n1 cpu=4 memory=8Gi
            job evil\n task a {request}
            job good min=2\n task a cpu=2 memory=1Gi x2"
        );
        let mut world = World::new(&ta(), &text);
        let cycle = world.cycle();
        assert_eq!(cycle.decisions(), "bind good-a-0 n1\nbind good-a-1 n1", "{request}");
        assert!(!cycle.only(&["pod"]).contains("pod good"), "{}", cycle.all());
    }
}

/// What they hold is counted exactly, and all is as before when they are gone.
#[test]
fn absurd__what_was_held_is_free_again() {
    let text = "node n1 cpu=4 memory=8Gi
        job evil\n task a memory=7Ei x3 @n1 running
        job good\n task a cpu=1 memory=1Gi";
    let mut world = World::new(&ta(), text);
    let first = world.cycle();
    assert_eq!(first.decisions(), "");
    assert!(
        first.all().contains("queue default cpu=0 memory=9223372036854775807"),
        "{}",
        first.all()
    );
    (0..3).for_each(|number| world.delete_pod(&format!("evil-a-{number}")));
    assert_eq!(world.cycle().decisions(), "bind good-a n1");
}

/// Milli-bytes of storage of nodes as they are sold leave 64 bits when a thousand are added up.
#[test]
fn absurd__a_thousand_large_disks_are_not_absurd() {
    let text = |n_nodes: usize| {
        let nodes = (0..n_nodes).map(|index| format!("node n{index:04} cpu=2 example.com/x=20T\n"));
        let jobs =
            (0..n_nodes).map(|index| format!("job j{index:04}\n task a cpu=1 example.com/x=19T\n"));
        nodes.chain(jobs).collect::<String>()
    };
    let config = conf("allocate", "priority gang | drf proportion predicates nodeorder");
    let decisions = World::new(&config, &text(1000)).alone().cycle().decisions();
    assert_eq!(decisions.lines().count(), 1000);
}

#[test]
fn absurd__a_guarantee_beyond_the_cluster_is_cut_with_one_warning() {
    for queues in ["proportion", "capacity", "capacity{* hierarchy}"] {
        let text = "node n1 cpu=4 memory=8Gi
            queue root
            queue greedy guarantee.cpu=100 guarantee.memory=8Ei
            job rich queue=greedy min=2\n task a cpu=2 memory=1Gi x2";
        let tiers = format!("priority gang | {queues} predicates nodeorder");
        let mut world = World::new(&conf("enqueue, allocate", &tiers), text);
        let first = world.cycle();
        assert_eq!(first.decisions(), "bind rich-a-0 n1\nbind rich-a-1 n1", "{queues}");
        let said = "Queue greedy Warning GuaranteeExceedsCluster \
            \"spec.guarantee.resource.cpu is 100, the cluster has 4: it counts as 4. Lower the \
            guarantee, or add nodes\"";
        assert!(first.all().contains(said), "{queues}: {}", first.all());
        assert_eq!(first.report.warnings.len(), 2, "{:?}", first.report.warnings);
        world.kubelets();
        world.add("queue another");
        assert!(!world.cycle().all().contains("GuaranteeExceedsCluster"), "{queues}");
    }
}

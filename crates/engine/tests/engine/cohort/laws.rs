//! cohort.md T.6, property: random trees, groups and arrivals over several cycles. Every world also
//! compares both evaluators and verifies each certificate: whole groups, allowed by policy, no queue
//! within its quota robbed.

use proptest::prelude::*;
use vc_conf::Config;

use super::notation::*;
use crate::support::*;

#[derive(Clone, Debug)]
struct Arrival {
    queue: usize,
    priority: i32,
    size: u32,
    n_pods: u32,
    /// Enqueue decides first.
    is_pending: bool,
}

fn arrival() -> impl Strategy<Value = Arrival> {
    let parts = (0..4_usize, -1..=1_i32, 1..=3_u32, 1..=2_u32, any::<bool>());
    parts.prop_map(|(queue, priority, size, n_pods, is_pending)| Arrival {
        queue,
        priority,
        size,
        n_pods,
        is_pending,
    })
}

fn policies() -> impl Strategy<Value = String> {
    let within = prop::sample::select(vec!["Never", "L", "LN"]);
    let reclaim = prop::sample::select(vec!["Never", "L", "A"]);
    (within, reclaim, 0..=4_u32, any::<bool>()).prop_map(|(within, reclaim, deserved, below)| {
        let parent = if below { " @p" } else { "" };
        format!("{deserved} in:{within} re:{reclaim}{parent}")
    })
}

fn config(fair: bool) -> Config {
    let argument = if fair { "{* fairSharing.enable=true}" } else { "" };
    let tiers = format!("priority gang conformance | cohort{argument} predicates");
    conf("enqueue, allocate, preempt, reclaim", &tiers)
}

fn job(number: usize, arrival: &Arrival) -> String {
    let Arrival { queue, priority, size, n_pods, is_pending } = arrival;
    let pending = match is_pending {
        true => format!("pending minres.cpu={}", size * n_pods),
        false => String::new(),
    };
    format!(
        "job g{number} queue=q{queue} priority={priority} min={n_pods} created={number} {pending}\n  \
         task p cpu={size} x{n_pods}\n"
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Nobody goes without a preemptor that gets the room, and without external change it ends.
    #[test]
    fn t6_property_cycles_terminate(
        queues in prop::collection::vec(policies(), 4),
        arrivals in prop::collection::vec(arrival(), 1..8),
        fair in any::<bool>(),
    ) {
        let mut text = String::from("node n1 cpu=6 pods=99\nnode n2 cpu=4 pods=99\n");
        let names: Vec<String> =
            queues.iter().enumerate().map(|(at, queue)| format!("q{at} {queue}")).collect();
        text.push_str(&objects_of(&format!("p 2; {}", names.join("; ")), "", ""));
        let mut world = World::new(&config(fair), &text);
        for (number, arrival) in arrivals.iter().enumerate() {
            world.add(&job(number, arrival));
            let cycle = world.cycle();
            prop_assert!(is_for_somebody(&cycle), "{}", cycle.decisions());
            world.kubelets_and_controllers();
            world.tick(1);
        }
        let mut n_evicted = 0;
        for _ in 0..40 {
            let cycle = world.cycle();
            prop_assert!(is_for_somebody(&cycle), "{}", cycle.decisions());
            let evicts = !cycle.only(&["evict"]).is_empty();
            n_evicted = if evicts { n_evicted + 1 } else { 0 };
            if !evicts && cycle.only(&["bind", "pipeline"]).is_empty() {
                return Ok(());
            }
            world.kubelets_and_controllers();
            world.tick(1);
        }
        prop_assert!(n_evicted == 0, "groups take turns: {}", text);
    }
}

/// Each transaction places somebody, and whoever is placed stays so until the end of the cycle.
fn is_for_somebody(cycle: &Cycle) -> bool {
    let placed =
        |uid: &vc_engine::Placement| cycle.report.pipelined.iter().any(|task| task.pod == uid.pod);
    let certificates = cycle.report.certificates.iter();
    certificates.clone().all(|it| !it.placements.is_empty() && it.placements.iter().all(placed))
}

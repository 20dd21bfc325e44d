//! Worlds of one cycle in which much is moved: members of a job are on many nodes, gangs give up
//! between others that are served, and queues lose pods while they wait for their turns. `World`
//! compares the plain search. Specification: actions.md 12.2 S9, S17.

use proptest::prelude::*;
use vc_conf::Config;

use crate::support::*;

/// A job that runs.
#[derive(Clone, Debug)]
struct Holder {
    queue: usize,
    min: usize,
    stays: bool,
    /// The nodes of its pods, and whether they are small.
    pods: Vec<(usize, bool)>,
}

/// A gang that waits.
#[derive(Clone, Debug)]
struct Gang {
    queue: usize,
    size: usize,
    is_small: bool,
    /// The only node that it may go to.
    node: Option<usize>,
}

/// Which configuration, what queues deserve, who runs and who waits.
type Crowd = (usize, Vec<u32>, Vec<Holder>, Vec<Gang>);

fn crowds(which: std::ops::Range<usize>, n_nodes: usize) -> impl Strategy<Value = Crowd> {
    let pods = prop::collection::vec((0..n_nodes, prop::bool::weighted(0.4)), 1..5);
    let holder = (0..6_usize, 0..4_usize, prop::bool::weighted(0.1), pods)
        .prop_map(|(queue, min, stays, pods)| Holder { queue, min, stays, pods });
    let node = prop::option::weighted(0.2, 0..n_nodes);
    let gang = (0..6_usize, 1..4_usize, prop::bool::weighted(0.3), node)
        .prop_map(|(queue, size, is_small, node)| Gang { queue, size, is_small, node });
    let holders = prop::collection::vec(holder, 2..8);
    let deserved = prop::collection::vec(0..4_u32, 3..6);
    (which, deserved, holders, prop::collection::vec(gang, 2..7))
}

fn cpu(is_small: bool) -> usize {
    if is_small { 500 } else { 1000 }
}

/// Nodes are full; of the queues only the first one is there where evictions stay inside of one.
fn text((_, deserved, holders, gangs): &Crowd, n_queues: usize, n_nodes: usize) -> String {
    let mut text = String::new();
    for (queue, cpu) in deserved.iter().enumerate().take(n_queues) {
        text.push_str(&format!("queue q{queue} deserved.cpu={cpu}\n"));
    }
    let n_queues = n_queues.min(deserved.len());
    for node in 0..n_nodes {
        let held = holders.iter().flat_map(|holder| &holder.pods);
        let held: usize =
            held.filter(|(at, _)| *at == node).map(|(_, is_small)| cpu(*is_small)).sum();
        text.push_str(&format!("node n{node} cpu={held}m pods=40 host=h{node}\n"));
    }
    for (number, Holder { queue, min, stays, pods }) in holders.iter().enumerate() {
        let (queue, min) = (queue % n_queues, pods.len().min(*min));
        text.push_str(&format!("job r{number} queue=q{queue} min={min} running\n"));
        let stays = if *stays { "pre=false" } else { "" };
        for (member, (node, is_small)) in pods.iter().enumerate() {
            let cpu = cpu(*is_small);
            text.push_str(&format!("  task a{member} cpu={cpu}m @n{node} running {stays}\n"));
        }
    }
    for (number, Gang { queue, size, is_small, node }) in gangs.iter().enumerate() {
        let queue = queue % n_queues;
        text.push_str(&format!("job w{number} queue=q{queue} min={size} priority=1\n"));
        let node = node.map_or(String::new(), |node| format!("selector.host=h{node}"));
        text.push_str(&format!("  task a cpu={}m x{size} {node}\n", cpu(*is_small)));
    }
    text
}

fn configs() -> [Config; 5] {
    let inside = "gang{preemptable jobPipelined jobStarving} \
        priority{preemptable jobOrder taskOrder jobStarving} predicates";
    let between = "gang{reclaimable jobPipelined jobStarving}";
    [
        conf("preempt", inside),
        conf("preempt", &format!("{inside} nodeorder")),
        conf("reclaim", &format!("{between} capacity{{reclaimable queueOrder}} predicates")),
        conf("reclaim", &format!("{between} proportion{{reclaimable queueOrder}} predicates")),
        conf("reclaim", &format!("{between} capacity{{queueOrder}} predicates")),
    ]
}

/// How many evictions.
fn live(crowd: &Crowd, n_nodes: usize) -> usize {
    let (config, n_queues) = (&configs()[crowd.0], if crowd.0 < 2 { 1 } else { 6 });
    let mut world = World::new(config, &text(crowd, n_queues, n_nodes));
    world.cycle().report.n_evictions
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, ..ProptestConfig::default() })]

    #[test]
    fn who_was_passed_over_inside_a_queue_is_looked_at_again(crowd in crowds(0..2, 5)) {
        live(&crowd, 5);
    }

    #[test]
    fn queues_that_give_and_take_are_served_in_their_order(crowd in crowds(2..5, 3)) {
        live(&crowd, 3);
    }
}

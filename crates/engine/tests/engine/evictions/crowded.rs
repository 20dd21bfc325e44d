//! Worlds of one cycle in which queues that wait for their turns lose pods to others, which changes
//! whose turn it is. `World` compares the order of all pairs. Specification: actions.md 12.2 S17.

use std::sync::OnceLock;

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

const N_NODES: usize = 3;

fn crowds() -> impl Strategy<Value = Crowd> {
    let pods = prop::collection::vec((0..N_NODES, prop::bool::weighted(0.4)), 1..5);
    let holder = (0..6_usize, 0..4_usize, prop::bool::weighted(0.1), pods)
        .prop_map(|(queue, min, stays, pods)| Holder { queue, min, stays, pods });
    let node = prop::option::weighted(0.1, 0..N_NODES);
    let gang = (0..6_usize, 1..4_usize, prop::bool::weighted(0.3), node)
        .prop_map(|(queue, size, is_small, node)| Gang { queue, size, is_small, node });
    let holders = prop::collection::vec(holder, 2..8);
    let deserved = prop::collection::vec(0..4_u32, 3..6);
    (0..configs().len(), deserved, holders, prop::collection::vec(gang, 3..10))
}

fn cpu(is_small: bool) -> usize {
    if is_small { 500 } else { 1000 }
}

/// Nodes are full.
fn text((_, deserved, holders, gangs): &Crowd) -> String {
    let mut text = String::new();
    for (queue, cpu) in deserved.iter().enumerate() {
        text.push_str(&format!("queue q{queue} deserved.cpu={cpu}\n"));
    }
    let n_queues = deserved.len();
    for node in 0..N_NODES {
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

fn configs() -> &'static [Config; 3] {
    static CONFIGS: OnceLock<[Config; 3]> = OnceLock::new();
    CONFIGS.get_or_init(|| {
        let shares = [
            "capacity{reclaimable queueOrder}",
            "proportion{reclaimable queueOrder}",
            "capacity{queueOrder}",
        ];
        let gang = "gang{reclaimable jobPipelined jobStarving}";
        shares.map(|shares| conf("reclaim", &format!("{gang} {shares} predicates")))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn queues_that_give_and_take_are_served_in_their_order(crowd in crowds()) {
        World::new(&configs()[crowd.0], &text(&crowd)).cycle();
    }
}

/// Who is not marked may not go to `n1`, which a taken port hides as long as it is taken.
const TWO_FILTERS: &str = "gang{preemptable jobPipelined jobStarving jobReady jobOrder} \
    priority{preemptable taskOrder jobOrder jobStarving} predicates \
    tdm{predicate tdm.revocable-zone.rz1=0:00-0:00} nodeorder";

#[test]
fn what_a_filter_hides_shows_when_its_reason_goes() {
    let text = "node n1 cpu=4 pool=x revocable=rz1
        node n2 cpu=4
        node n3 cpu=4
        node n4 cpu=4
        job v min=0 priority=1
          task a cpu=4 port=80 @n1 running
          task b cpu=4 @n2 running
          task c cpu=4 @n3 running
          task d cpu=4 @n4 running
        job a priority=9 min=2
          task w cpu=4 port=80 x2
        job b priority=9
          task w cpu=4 selector.pool=x annotation.volcano.sh/revocable-zone=*
        job c priority=9
          task w cpu=4 port=80";
    let mut world = World::new(&conf("preempt", TWO_FILTERS), text);
    assert_eq!(world.cycle().report.n_evictions, 4);
    assert!(1 < world.engine.cache_stats().n_resumed, "{:?}", world.engine.cache_stats());
}

#[test]
fn what_allocate_has_ruled_out_stays_so_when_another_filter_hides_it() {
    let text = "node n1 cpu=4 revocable=rz1
        node n2 cpu=4
        node n3 cpu=4
        job v min=0 priority=1
          task a cpu=2 @n1 running
          task b cpu=4 @n2 running
          task c cpu=4 @n3 running
        job a priority=9 min=2
          task w cpu=2 port=80 x2
        job b priority=1
          task w cpu=2 port=80 annotation.volcano.sh/revocable-zone=*";
    let mut world = World::new(&conf("allocate, preempt", TWO_FILTERS), text);
    let cycle = world.cycle();
    assert!(cycle.all().contains("bind b-w n1"), "{}", cycle.all());
    assert_eq!(cycle.report.n_evictions, 2);
}

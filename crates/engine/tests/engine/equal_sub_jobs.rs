//! Sub-groups that are not tried in a HyperNode because an equal one failed there, or because it has
//! too few places, by both evaluators. Specification: actions.md 12.2 S12, S14.

use vc_model::{ClusterEvent, fixture};

use crate::support::*;

/// Two racks with room for twelve CPUs each, of which no node has more than eight.
const HALF: &str = "node n1 cpu=8\nnode n2 cpu=8\nnode n3 cpu=8\nnode n4 cpu=8\n
    job other min=2 running\n task o cpu=4 @n1 running\n task o2 cpu=4 @n3 running\n";

const RACKS: &str = "hypernode rack-a node=n1 node=n2\nhypernode rack-b node=n3 node=n4";

fn world_with(racks: &str, text: &str) -> World {
    let plugins = "gang | predicates nodeorder network-topology-aware";
    let mut world = World::new(&conf("allocate", plugins), text);
    fixture::events_of(racks).into_iter().for_each(|event| world.send(event));
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    world
}

/// HyperNodes that were not tried in the first cycle, because an equal sub-group failed there and
/// because too few tasks find room, and what was bound.
fn spared(job: &str) -> ([u64; 2], String) {
    let mut world = world_with(RACKS, &format!("{HALF}{job}"));
    let bound = world.cycle().decisions();
    let stats = world.engine.cache_stats();
    ([stats.n_equal_sub_jobs, stats.n_pruned_hyper_nodes], bound)
}

/// Three sub-groups of a master and two workers fit nowhere, although there are places for each of
/// them: the second and the third are tried in no rack but the closest one, for the message.
#[test]
fn equal_sub_groups_are_not_tried_again() {
    let group = |label: &str| {
        format!(" task m{label} cpu=6 label.g={label}\n task w{label} cpu=3 x2 label.g={label}\n")
    };
    let groups = ["a", "b", "c"].map(group).concat();
    let job = format!("job j min=3 policy.g=3x1:hard:1\n{groups}");
    assert_eq!(spared(&job), ([4, 0], String::new()));
}

/// A sub-group that asks for less is tried, and placed.
#[test]
fn other_sub_groups_are_tried() {
    let job = "job j min=2 policy.g=2x1:hard:1
        task a cpu=6 x2 label.g=a\n task b cpu=4 x2 label.g=b";
    let ([n_equal, _], bound) = spared(job);
    assert_eq!((n_equal, bound.lines().count()), (0, 2), "{bound}");
}

/// A minimum of its own makes another shape.
#[test]
fn what_a_trial_reads_of_a_sub_group_is_part_of_its_shape() {
    let of_two_policies = "job j min=1 policy.g=2x0:hard:1 policy.h=1x1:hard:1
        task a cpu=6 x2 label.g=a\n task b cpu=6 x2 label.h=b";
    let ([n_equal, _], bound) = spared(of_two_policies);
    assert_eq!(n_equal, 0);
    assert!(bound.contains("j-b-0"), "one of the second sub-group is enough: {bound}");
}

/// Once a sub-group has failed in a rack, the places of all racks are counted, and hold while other
/// sub-groups are placed.
#[test]
fn racks_with_too_few_places_are_tried_once() {
    let nodes: String = (1..=8).map(|at| format!("node n{at} cpu=8\n")).collect();
    let others = "job other min=2 running\n task o cpu=4 @n1 running\n task o2 cpu=4 @n3 running\n";
    let job = "job j min=2 policy.g=2x1:hard:1
        task a cpu=6 x2 label.g=a\n task b cpu=6 x2 label.g=b\n task c cpu=6 x2 label.g=c";
    let racks =
        format!("{RACKS}\nhypernode rack-c node=n5 node=n6\nhypernode rack-d node=n7 node=n8");
    let mut world = world_with(&racks, &format!("{nodes}{others}{job}"));
    let bound = world.cycle().decisions();
    assert_eq!(bound.lines().count(), 4, "{bound}");
    assert!(0 < world.engine.cache_stats().n_pruned_hyper_nodes);
}

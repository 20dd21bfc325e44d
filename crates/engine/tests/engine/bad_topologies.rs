//! Network topologies and HyperNodes that cannot mean what their author wanted: condition, event and
//! metric name the field, and nobody else is held up. Specification: core.md 4.9, actions.md 2.12.

use vc_conf::Config;
use vc_framework::{HyperNodeProblemCount, Sample};
use vc_model::{ClusterEvent, fixture};

use crate::support::*;

fn config() -> Config {
    conf("allocate, backfill", "gang | predicates nodeorder network-topology-aware")
}

/// Two racks in a hall.
const RACKS: &str = "hypernode rack-a tier=1 node=n1 node=n2
    hypernode rack-b tier=1 node=n3 node=n4
    hypernode hall tier=2 named=hall member=rack-a member=rack-b";

const NODES: &str = "node n1 cpu=4\nnode n2 cpu=4\nnode n3 cpu=4\nnode n4 cpu=4\n";

fn world(text: &str, hyper_nodes: &str) -> World {
    let mut world = World::new(&config(), &format!("{NODES}{text}"));
    send(&mut world, hyper_nodes);
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    world
}

fn send(world: &mut World, hyper_nodes: &str) {
    fixture::events_of(hyper_nodes).into_iter().for_each(|event| world.send(event));
}

/// The fields of the sample, as `job field`.
fn fields(cycle: &Cycle) -> Option<Vec<String>> {
    cycle.report.samples.iter().find_map(|sample| match sample {
        Sample::NetworkTopologyProblems(fields) => {
            Some(fields.iter().map(|(key, field)| format!("{} {field}", key.name)).collect())
        }
        _ => None,
    })
}

fn counts(cycle: &Cycle) -> Option<Vec<(String, u32)>> {
    cycle.report.samples.iter().find_map(|sample| match sample {
        Sample::HyperNodeProblems(counts) => {
            let count = |it: &HyperNodeProblemCount| {
                (format!("{} {}", it.hyper_node, it.field), it.n_problems)
            };
            Some(counts.iter().map(count).collect())
        }
        _ => None,
    })
}

const BAD: &str = "job below min=1 created=1 topology=hard:0\n task p cpu=1
    job unknown min=9 created=2 topology=hard:name=room\n task p cpu=1
    job nokey min=3 created=3 policy.g=1x1\n task p cpu=1\n task q cpu=1 label.g=a
    job large min=3 created=4 topology=hard:2 policy.g=3x1:hard:1\n task p cpu=4 label.g=a x3
    job good min=2 created=5 topology=hard:1\n task p cpu=2 x2\n";

/// Each of four bad fields is in the PodGroup's condition, in an event and in the metric; a good gang that comes last is bound in the same cycle.
#[test]
fn bad_topologies_hold_nobody_up() {
    let mut world = world(BAD, RACKS);
    let cycle = world.cycle();
    let bound = cycle.decisions();
    assert_eq!(bound.lines().filter(|line| line.contains("good-p")).count(), 2, "{bound}");
    let said = cycle.all();
    for (job, reason, text) in [
        (
            "below",
            "InvalidNetworkTopology",
            "spec.networkTopology.highestTierAllowed: no HyperNode has tier 0 or a lower one; the \
             lowest tier is 1",
        ),
        (
            "unknown",
            "InvalidNetworkTopology",
            "spec.networkTopology.highestTierName: no HyperNode has the tier name room, so that it sets \
             no limit",
        ),
        (
            "nokey",
            "InvalidNetworkTopology",
            "spec.subGroupPolicy[0].matchLabelKeys: label g is missing on 1 pods, first on nokey-p, so \
             that they are in no sub-group",
        ),
        (
            "large",
            "Unschedulable",
            "even when empty. Allow a higher tier in spec.subGroupPolicy[0].networkTopology, or ask \
             for less",
        ),
    ] {
        let has =
            |start: &str| said.lines().any(|line| line.starts_with(start) && line.contains(text));
        assert!(has(&format!("event PodGroup {job} Warning {reason}")), "event of {job}:\n{said}");
        assert!(has(&format!("group {job} ")), "condition of {job}:\n{said}");
    }
    let wanted = [
        "below spec.networkTopology.highestTierAllowed",
        "large spec.subGroupPolicy[0].networkTopology",
        "nokey spec.subGroupPolicy[0].matchLabelKeys",
        "unknown spec.networkTopology.highestTierName",
    ];
    assert_eq!(fields(&cycle), Some(wanted.map(str::to_owned).to_vec()));
    assert_eq!(fields(&world.cycle()), None, "nothing has changed");
}

/// What was wrong and is right now leaves condition and metric, also if only HyperNodes changed.
#[test]
fn a_topology_that_makes_sense_again_is_no_longer_told() {
    let text = "job unknown min=9 topology=hard:name=room\n task p cpu=1";
    let mut world = world(text, RACKS);
    let sentence = "no HyperNode has the tier name room";
    assert!(world.cycle().only(&["group"]).contains(sentence));
    world.cycle();
    send(&mut world, "hypernode top tier=3 named=room member=hall");
    let cycle = world.cycle();
    assert_eq!(fields(&cycle), Some(Vec::new()));
    for (kind, start) in [("group", "group unknown"), ("pod", "pod unknown-p")] {
        let said = cycle.only(&[kind]);
        assert!(said.starts_with(start) && !said.contains(sentence), "{said}");
    }
}

/// A limit that no HyperNode can satisfy leaves the metric with a larger HyperNode, with its policy, and
/// with the PodGroup.
#[test]
fn a_limit_that_can_be_satisfied_leaves_the_metric() {
    let text = "job large min=3 policy.g=3x1:hard:1\n task p cpu=4 label.g=a x3";
    let told = ["large spec.subGroupPolicy[0].networkTopology".to_owned()];
    let wide = "hypernode wide node=n1 node=n2 node=n3";
    for change in ["wide", "end", "policy"] {
        let mut world = world(text, RACKS);
        assert_eq!(fields(&world.cycle()), Some(told.to_vec()));
        match change {
            "wide" => send(&mut world, wide),
            "end" => world.delete_group("large"),
            _ => world.edit_group("large", |group| group.sub_group_policies.clear()),
        }
        assert_eq!(fields(&world.cycle()), Some(Vec::new()), "{change}");
    }
}

/// The same for a PodGroup that enqueue refuses, whose texts are repeated as long as nothing changes.
#[test]
fn a_refused_podgroup_is_no_longer_told_either() {
    let config = conf("enqueue, allocate", "gang | proportion predicates network-topology-aware");
    let text = "node n1 cpu=4\nqueue q cap.cpu=1
        job j queue=q min=1 minres.cpu=2 topology=hard:name=room\n task p cpu=2";
    let mut world = World::new(&config, text);
    send(&mut world, "hypernode rack-a tier=1 node=n1");
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    let sentence = "no HyperNode has the tier name room";
    assert!(world.cycle().only(&["group"]).contains(sentence));
    world.cycle();
    world.cycle();
    send(&mut world, "hypernode top tier=3 named=room member=rack-a");
    let said = world.cycle().only(&["group"]);
    assert!(said.starts_with("group j") && !said.contains(sentence), "{said}");
    world.cycle();
    send(&mut world, "hypernode top tier=3 named=hall member=rack-a");
    assert!(world.cycle().only(&["group"]).contains(sentence));
}

/// While HyperNodes cannot be read, nothing is told of topologies, also not of one that has gone.
#[test]
fn hyper_nodes_that_cannot_be_read_leave_no_stale_series() {
    let mut world = world("job unknown min=9 topology=hard:name=room\n task p cpu=1", RACKS);
    let one = vec!["unknown spec.networkTopology.highestTierName".to_owned()];
    assert_eq!(fields(&world.cycle()), Some(one.clone()));
    world.send(ClusterEvent::HyperNodesListed { is_complete: false });
    assert_eq!(fields(&world.cycle()), Some(Vec::new()));
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    let cycle = world.cycle();
    assert_eq!(fields(&cycle), Some(one));
    assert!(!cycle.only(&["event"]).contains("InvalidNetworkTopology"), "it was told already");
}

/// A HyperNode that was made anew with the same fault is another object, with an event of its own.
#[test]
fn a_hyper_node_that_was_made_anew_is_told_again() {
    let mut world = world("", "hypernode rack-a tier=1 node=n1 member=none");
    let n_events = |cycle: &Cycle| cycle.only(&["event"]).matches("InvalidHyperNode").count();
    assert_eq!(n_events(&world.cycle()), 1);
    world.add("node n9 cpu=1");
    assert_eq!(n_events(&world.cycle()), 0, "the tree is another one, the problem is known");
    let mut anew = fixture::events_of("hypernode rack-a tier=1 node=n1 member=none");
    for event in &mut anew {
        if let ClusterEvent::HyperNodeApplied(record) = event {
            record.uid = "another".into();
        }
    }
    world.send(ClusterEvent::HyperNodeDeleted { name: "rack-a".into() });
    anew.into_iter().for_each(|event| world.send(event));
    assert_eq!(n_events(&world.cycle()), 1);
}

/// A pattern that does not compile selects nothing: an event on the HyperNode names the field, the
/// metric counts it, and the rest of the HyperNode is in force.
#[test]
fn a_pattern_that_does_not_compile_is_told_on_the_hyper_node() {
    let racks =
        "hypernode rack-a tier=1 node=n1 pattern=( node=n2\nhypernode rack-b tier=1 node=n3";
    let mut world = world("job j min=2 topology=hard:1\n task p cpu=4 x2", racks);
    let cycle = world.cycle();
    let mut bound: Vec<String> = cycle.decisions().lines().map(str::to_owned).collect();
    bound.sort();
    assert_eq!(bound, ["bind j-p-0 n1", "bind j-p-1 n2"]);
    let said = cycle.only(&["event"]);
    let start = "event HyperNode rack-a Warning InvalidHyperNode \"HyperNode rack-a: \
                 spec.members[1].selector.regexMatch.pattern: not a regular expression";
    assert_eq!(said.lines().filter(|line| line.starts_with(start)).count(), 1, "{said}");
    assert_eq!(
        counts(&cycle),
        Some(vec![("rack-a spec.members[1].selector.regexMatch.pattern".to_owned(), 1)])
    );
    assert!(
        cycle.report.warnings.is_empty(),
        "the edge logs wrong fields: {:?}",
        cycle.report.warnings
    );
    assert_eq!(counts(&world.cycle()), None);
}

/// A PodGroup in hard mode that waits names the field of the HyperNode, which might be its own, as long as
/// it is wrong.
#[test]
fn who_waits_in_hard_mode_hears_of_wrong_fields_of_hyper_nodes() {
    let broken = "hypernode rack-a tier=1 node=n1 pattern=(\nhypernode rack-b tier=1 node=n3";
    let text = "job hard min=3 topology=hard:1\n task p cpu=4 x3
        job part min=3 policy.g=3x1:hard:1\n task p cpu=4 label.g=a x3
        job soft min=9 topology=soft\n task p cpu=4 x9";
    let mut world = world(text, broken);
    let field =
        "HyperNode rack-a: spec.members[1].selector.regexMatch.pattern: not a regular expression";
    let told = |cycle: &Cycle| {
        let said = cycle.only(&["group"]);
        let lines = said.lines().filter(|line| line.contains(field));
        lines.filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(&world.cycle()), ["hard", "part"]);
    send(&mut world, "hypernode rack-a tier=1 node=n1");
    let cycle = world.cycle();
    assert_eq!(told(&cycle), [""; 0]);
    assert!(cycle.only(&["group"]).contains("group hard"), "the condition is written anew");
}

/// Of two tiers with one name the higher one counts, which is told on the lower one.
#[test]
fn two_tiers_with_one_name_are_told() {
    let racks = "hypernode rack-a tier=1 named=hall node=n1 node=n2
        hypernode rack-b tier=1 named=hall node=n3 node=n4
        hypernode hall tier=2 named=hall member=rack-a member=rack-b";
    let mut world = world("job j min=4 topology=hard:name=hall\n task p cpu=4 x4", racks);
    let cycle = world.cycle();
    assert_eq!(cycle.report.n_binds, 4, "tier 2 is allowed");
    let text = "HyperNode rack-a of tier 1 has the tier name hall, and so has hall of tier 2: jobs that \
                name it may use tier 2";
    let first: Vec<&str> =
        cycle.report.warnings.iter().filter_map(|warning| warning.lines().next()).collect();
    assert_eq!(first, [text]);
    let event = format!("event HyperNode rack-a Warning InvalidHyperNode \"{text}\"");
    assert!(cycle.only(&["event"]).contains(&event));
}

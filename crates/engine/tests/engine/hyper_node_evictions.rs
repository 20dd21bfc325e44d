//! Evictions for jobs with a network topology, by both evaluators. Specification: actions.md 7.3
//! (A39), 9.3, 9.5, 11.2.

use vc_conf::Config;
use vc_model::{ClusterEvent, NetworkTopology, fixture};

use crate::support::*;

const PLUGINS: &str =
    "priority gang conformance | proportion predicates binpack network-topology-aware";

/// Two racks of two nodes each in a zone.
const RACKS: &str = "hypernode rack-a node=n1 node=n2
    hypernode rack-b node=n3 node=n4
    hypernode zone tier=2 member=rack-a member=rack-b";

const NODES: &str = "node n1 cpu=4\nnode n2 cpu=4\nnode n3 cpu=4\nnode n4 cpu=4\n";

fn world(config: &Config, text: &str) -> World {
    let mut world = World::new(config, &format!("{NODES}{text}"));
    told(&mut world, RACKS);
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    world
}

fn told(world: &mut World, hyper_nodes: &str) {
    fixture::events_of(hyper_nodes).into_iter().for_each(|event| world.send(event));
}

fn decisions(actions: &str, text: &str) -> String {
    world(&conf(actions, PLUGINS), text).cycle().decisions()
}

/// The pods that are evicted.
fn evicted(decisions: &str) -> Vec<&str> {
    let evictions = decisions.lines().filter_map(|line| line.strip_prefix("evict "));
    evictions.filter_map(|rest| rest.split(' ').next()).collect()
}

/// Rack a holds a gang at its minimum, rack b surplus pods.
const COSTLY_AND_CHEAP: &str = "job gang min=2
      task r cpu=4 @n1 running
      task s cpu=4 @n2 running
    job elastic min=0
      task r cpu=4 @n3 running
      task s cpu=4 @n4 running
    ";

#[test]
fn gangpreempt_takes_the_cheapest_domain() {
    let job = "job j min=2 priority=5 topology=hard\n task p cpu=4 x2";
    let done = decisions("allocate, gangpreempt", &format!("{COSTLY_AND_CHEAP}{job}"));
    assert_eq!(
        done,
        "evict elastic-r gangpreempt\nevict elastic-s gangpreempt\npipeline j-p-0 n3\n\
         pipeline j-p-1 n4"
    );
    // The names of HyperNodes decide nothing.
    let swapped = COSTLY_AND_CHEAP
        .replace("@n1", "@m1")
        .replace("@n2", "@m2")
        .replace("@n3", "@n1")
        .replace("@n4", "@n2")
        .replace("@m1", "@n3")
        .replace("@m2", "@n4");
    let done = decisions("allocate, gangpreempt", &format!("{swapped}{job}"));
    assert_eq!(evicted(&done), ["elastic-r", "elastic-s"], "{done}");
}

#[test]
fn fewer_victims_of_lower_priority_are_cheaper() {
    let of_priority = "job low min=0 priority=1
          task r cpu=2 @n3 running
          task s cpu=2 @n3 running
          task t cpu=4 @n4 running
        job high min=0 priority=2
          task r cpu=4 @n1 running
          task s cpu=4 @n2 running
        job j min=2 priority=5 topology=hard\n task p cpu=4 x2";
    let done = decisions("allocate, gangpreempt", of_priority);
    assert_eq!(evicted(&done), ["low-r", "low-s", "low-t"], "{done}");
    let by_count = of_priority.replace("priority=2", "priority=1");
    let done = decisions("allocate, gangpreempt", &by_count);
    assert_eq!(evicted(&done), ["high-r", "high-s"], "{done}");
}

#[test]
fn whole_gangs_go_in_the_domain() {
    let gangs = "job a min=3
          task r cpu=2 @n1 running
          task s cpu=2 @n1 running
          task t cpu=4 @n2 running
        job b min=2
          task r cpu=4 @n3 running
          task s cpu=4 @n4 running
        job j min=2 priority=5 topology=hard\n task p cpu=4 x2";
    for (actions, text) in [
        ("allocate, gangpreempt", gangs.to_owned()),
        (
            "allocate, gangreclaim",
            format!("queue q\nqueue r\n{gangs}")
                .replace("min=3", "min=3 queue=q")
                .replace("min=2\n", "min=2 queue=q\n")
                .replace("priority=5", "priority=5 queue=r"),
        ),
    ] {
        let done = decisions(actions, &text);
        assert_eq!(evicted(&done), ["b-r", "b-s"], "{actions}: {done}");
    }
}

#[test]
fn nothing_goes_if_no_domain_suffices() {
    // One node of each rack is protected.
    let text = "job safe min=0 priority=9
          task r cpu=4 @n1 running
          task s cpu=4 @n3 running
        job low min=0
          task r cpu=4 @n2 running
          task s cpu=4 @n4 running
        job j min=2 priority=5 topology=hard\n task p cpu=4 x2";
    let mut world = world(&conf("allocate, gangpreempt", PLUGINS), text);
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let why = "gangpreempt: 1 network topology: evictions make room for all pods in no \
        HyperNode of tier 1 or lower";
    assert!(cycle.all().contains(why), "{}", cycle.all());
    // The whole zone would do.
    let wider = text.replace("topology=hard", "topology=hard:2");
    assert_eq!(evicted(&decisions("allocate, gangpreempt", &wider)), ["low-r", "low-s"]);
}

#[test]
fn a_wide_limit_prefers_the_closer_network_at_equal_cost() {
    let text = "job low min=0
          task r cpu=4 @n1 running
          task s cpu=4 @n2 running
          task t cpu=4 @n3 running
          task u cpu=4 @n4 running
        job j min=2 priority=5 topology=soft\n task p cpu=4 x2";
    let done = decisions("allocate, gangpreempt", text);
    let in_rack = [["low-r", "low-s"], ["low-t", "low-u"]];
    assert!(in_rack.iter().any(|rack| evicted(&done) == *rack), "{done}");
}

/// `gang/domains` of actions.md.
#[test]
fn so_many_domains_are_tried() {
    let text = format!("{COSTLY_AND_CHEAP}job j min=2 priority=5 topology=hard\n task p cpu=4 x2");
    for (most, wanted) in [(1, ["gang-r", "gang-s"]), (2, ["elastic-r", "elastic-s"])] {
        let config = conf("allocate, gangpreempt", PLUGINS);
        let config = with_arguments(config, "gangpreempt", &format!("{{maxDomains: {most}}}"));
        let done = world(&config, &text).cycle().decisions();
        assert_eq!(evicted(&done), wanted, "{most}: {done}");
    }
}

#[test]
fn a_hard_job_without_a_domain_evicts_nobody() {
    let text = format!("{COSTLY_AND_CHEAP}job j min=2 priority=5 topology=hard\n task p cpu=4 x2");
    let mut world = world(&conf("allocate, gangpreempt", PLUGINS), &text);
    let higher = RACKS.replace("zone tier=2", "zone tier=3");
    told(
        &mut world,
        &higher.replace(" node=n1", " tier=2 node=n1").replace(" node=n3", " tier=2 node=n3"),
    );
    let cycle = world.cycle();
    assert_eq!(cycle.decisions(), "");
    let why = "gangpreempt: 1 network topology: no HyperNode has tier 1 or a lower one";
    assert!(cycle.all().contains(why), "{}", cycle.all());
}

/// Each of two sub-groups of a gang gets a rack of its own.
#[test]
fn sub_groups_get_room_in_one_domain_each() {
    let text = "job low min=0
          task r cpu=1 x3 @n1 running
          task s cpu=1 x3 @n2 running
          task t cpu=1 x3 @n3 running
          task u cpu=1 x3 @n4 running
        job kept min=0 pre=false
          task r cpu=1 @n1 running
          task s cpu=1 @n2 running
          task t cpu=1 @n3 running
          task u cpu=1 @n4 running
        job j min=4 priority=5 policy.g=2x2
          task p cpu=3 x2 label.g=a
          task q cpu=3 x2 label.g=b";
    for actions in ["allocate, gangpreempt", "allocate, gangreclaim", "allocate, reclaim"] {
        let apart = actions.contains("reclaim");
        let text = match apart {
            true => format!("queue q\nqueue r\n{text}")
                .replace(" min=0", " min=0 queue=q")
                .replace("queue r\n", "queue r weight=9\n")
                .replace("priority=5", "priority=5 queue=r"),
            false => text.to_owned(),
        };
        let mut world = world(&conf(actions, PLUGINS), &text);
        world.edit_group("j", |group| {
            group.sub_group_policies[0].network_topology = Some(NetworkTopology {
                soft: false,
                highest_tier_allowed: Some(1),
                highest_tier_name: "".into(),
            });
        });
        let cycle = world.cycle();
        let done = cycle.decisions();
        let rack = |pod: &str| {
            let line = done.lines().find(|line| line.contains(pod)).unwrap_or_default();
            line.ends_with("n1") || line.ends_with("n2")
        };
        assert_eq!(evicted(&done).len(), 12, "{actions}: {}", cycle.all());
        assert_eq!((rack("j-p-0"), rack("j-q-0")), (rack("j-p-1"), rack("j-q-1")), "{done}");
        assert_ne!(rack("j-p-0"), rack("j-q-0"), "{done}");
    }
}

/// `reclaim/topology` of actions.md.
#[test]
fn reclaim_takes_all_victims_from_one_domain() {
    let text = "queue q
        queue r
        job safe queue=r min=0
          task r cpu=4 @n2 running
        job low queue=q min=0
          task r cpu=4 @n1 running
          task s cpu=4 @n3 running
          task t cpu=4 @n4 running
        job j queue=r min=2 topology=hard\n task p cpu=4 x2";
    let text = text.replace("queue r\n", "queue r weight=9\n");
    let done = decisions("allocate, reclaim", &text);
    assert_eq!(evicted(&done), ["low-s", "low-t"], "{done}");
    // Without a limit any node does.
    let anywhere = text.replace(" topology=hard", "");
    assert_eq!(evicted(&decisions("allocate, reclaim", &anywhere)).len(), 2);
    let nowhere =
        text.replace("@n4", "@n4 unknown").replace("task t cpu=4 @n4 unknown running", "");
    assert_eq!(evicted(&decisions("allocate, reclaim", &nowhere)).len(), 1);
}

/// `gang/pin-persists` of actions.md: another rack would be better by then.
#[test]
fn the_room_of_a_domain_is_kept_until_the_victims_are_gone() {
    let text = format!("{COSTLY_AND_CHEAP}job j min=2 priority=5 topology=hard\n task p cpu=4 x2");
    let mut world = world(&conf("allocate, gangpreempt", PLUGINS), &text).alone();
    assert_eq!(evicted(&world.cycle().decisions()), ["elastic-r", "elastic-s"]);
    for pod in ["gang-r", "gang-s"] {
        world.delete_pod(pod);
    }
    world.kubelets();
    assert_eq!(world.cycle().decisions(), "bind j-p-0 n3\nbind j-p-1 n4");
}

/// `net/nomination-miss` of actions.md: a planned node left the HyperNode.
#[test]
fn a_plan_that_breaks_the_limit_is_given_up() {
    let text = format!("{COSTLY_AND_CHEAP}job j min=2 priority=5 topology=hard\n task p cpu=4 x2");
    let mut world = world(&conf("allocate, gangpreempt", PLUGINS), &text).alone();
    assert_eq!(evicted(&world.cycle().decisions()), ["elastic-r", "elastic-s"]);
    world.kubelets();
    told(&mut world, "hypernode rack-b node=n3");
    let done = world.cycle().decisions();
    assert!(!done.contains("bind"), "{done}");
}

/// What a node is used beyond what it offers is not missing on the other nodes of its rack.
#[test]
fn an_overcommitted_node_takes_nothing_from_the_others_of_its_rack() {
    let text = "job over min=1 priority=9 \n task r cpu=9 @n1 running
        job low min=0\n task r cpu=3 @n2 running
        job full min=1 priority=9\n task r cpu=4 @n3 running\n task s cpu=4 @n4 running
        job j min=1 priority=5 topology=hard\n task p cpu=4";
    let config =
        conf("allocate, gangpreempt", "priority gang | predicates binpack network-topology-aware");
    let done = world(&config, text).cycle().decisions();
    assert_eq!(done, "evict low-r gangpreempt\npipeline j-p n2");
}

/// Room that was promised to the first gang is none for the second, which does not give up at the only
/// domain that it may try (A49).
#[test]
fn urgent_gangs_get_a_domain_each() {
    let text = "job low min=0
          task r cpu=4 @n1 running
          task s cpu=4 @n2 running
          task t cpu=4 @n3 running
          task u cpu=4 @n4 running
        job j min=2 priority=5 topology=hard\n task p cpu=4 x2
        job k min=2 priority=5 topology=hard created=1\n task p cpu=4 x2";
    let config = conf("allocate, gangpreempt", PLUGINS);
    let config = with_arguments(config, "gangpreempt", "{maxDomains: 1}");
    let done = world(&config, text).cycle().decisions();
    assert_eq!(evicted(&done), ["low-r", "low-s", "low-t", "low-u"], "{done}");
}

//! Evictions for jobs with a network topology and the eviction holds that follow, by both
//! evaluators. Specification: actions.md 4.8, 9.3, 9.5, `net/nomination-hit`, `net/nomination-miss`
//! and `gang/isolation` of its cases.

use vc_framework::{Report, Session};
use vc_model::{ClusterEvent, PodPhase};

use crate::hyper_node_cases::{RACKS, apply_hyper_nodes, world_with_hyper_nodes};
use crate::support::*;

const PLUGINS: &str =
    "priority gang conformance | proportion predicates binpack network-topology-aware";

const NODES: &str = "node n1 cpu=4\nnode n2 cpu=4\nnode n3 cpu=4\nnode n4 cpu=4\n";

/// Rack a is full of pods that stay, rack b of pods that may be evicted. Job j needs a rack.
const FULL: &str = "job kept min=2 pre=false
      task r cpu=4 @n1 running
      task s cpu=4 @n2 running
    job elastic min=0
      task r cpu=4 @n3 running
      task s cpu=4 @n4 running
    job j min=2 priority=5 topology=hard
      task p cpu=4 x2";

/// Returns the nominated nodes of the pods of job j.
fn nominated_nodes(world: &World) -> [Option<&str>; 2] {
    ["j-p-0", "j-p-1"].map(|pod| world.pod(pod).nominated_node.as_deref())
}

/// Returns a world after the evictions for job j in rack b, whose pods are gone. Job j has an
/// eviction hold.
fn world_after_evictions(text: &str) -> World {
    let mut world = world_with_hyper_nodes(
        &conf("allocate, gangpreempt", PLUGINS),
        RACKS,
        &format!("{NODES}{text}"),
    );
    assert_eq!(
        world.cycle().decisions(),
        "evict elastic-r gangpreempt\nevict elastic-s gangpreempt\npipeline j-p-0 n3\n\
         pipeline j-p-1 n4"
    );
    world.kubelets();
    assert_eq!(nominated_nodes(&world), [Some("n3"), Some("n4")]);
    world
}

/// Ends the pods of rack a. Without an eviction hold rack a is chosen then: its name comes first.
fn free_rack_a(world: &mut World) {
    for pod in ["kept-r", "kept-s"] {
        world.delete_pod(pod);
    }
}

/// Returns the number of values in the eviction holds that the engine keeps.
fn n_hold_values(world: &World) -> usize {
    world.engine.table_sizes().expect("they can be counted")["memory.eviction_holds"]
}

/// The pods of a job with an eviction hold go to their planned nodes, although another rack is
/// free. The hold ends once they are bound. The same goes for a job without a topology.
#[test]
fn net__nomination_hit() {
    for text in [FULL.to_owned(), FULL.replace(" topology=hard", "")] {
        let mut world = world_after_evictions(&text);
        let with_hold = n_hold_values(&world);
        free_rack_a(&mut world);
        let cycle = world.cycle();
        assert_eq!(cycle.decisions(), "bind j-p-0 n3\nbind j-p-1 n4", "{text}");
        world.kubelets();
        assert_eq!(world.cycle().decisions(), "");
        let mut plain =
            world_with_hyper_nodes(&conf("allocate, gangpreempt", PLUGINS), RACKS, NODES);
        plain.cycle();
        assert_eq!(n_hold_values(&world), n_hold_values(&plain));
        assert!(n_hold_values(&plain) < with_hold);
    }
}

/// An eviction hold whose planned nodes do not suffice any more ends. The pods lose their
/// nominations and are placed as if there had been none, or they wait and hold nothing.
#[test]
fn net__nomination_miss() {
    type Change = fn(&mut World);
    let gone: Change = |world| world.send(ClusterEvent::HyperNodeDeleted { name: "rack-b".into() });
    let moved: Change = |world| apply_hyper_nodes(world, "hypernode rack-b node=n3");
    let node_gone: Change = |world| world.delete_node("n4");
    let short: Change =
        |world| world.add("job late min=0 priority=9 pre=false\n task r cpu=1 @n4 running");
    let forgotten: Change = |world| {
        world.edit("j-p-1", |pod| pod.nominated_node = None);
        world.restart(&conf("allocate, gangpreempt", PLUGINS));
        apply_hyper_nodes(world, RACKS);
        world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    };
    for (what, change, if_full) in [
        ("the HyperNode is gone", gone, ""),
        ("a planned node left the HyperNode", moved, ""),
        ("a planned node is gone", node_gone, ""),
        ("the room is short", short, ""),
        // The same rack by the normal path.
        ("a pod has no nomination", forgotten, "bind j-p-0 n3\nbind j-p-1 n4"),
    ] {
        for (is_free, wanted) in [(true, "bind j-p-0 n1\nbind j-p-1 n2"), (false, if_full)] {
            let mut world = world_after_evictions(FULL);
            if is_free {
                free_rack_a(&mut world);
            }
            change(&mut world);
            let cycle = world.cycle();
            assert_eq!(cycle.decisions(), wanted, "{what}: {}", cycle.all());
            if wanted != "bind j-p-0 n3\nbind j-p-1 n4" {
                assert_eq!(nominated_nodes(&world), [None, None], "{what}: {}", cycle.all());
            }
            // The next cycle places nothing by the former plan.
            world.kubelets();
            assert_eq!(world.cycle().decisions(), "", "{what}");
        }
    }
}

/// A planned pod that another party has put on its node needs no place any more. The other one gets
/// its planned node.
#[test]
fn net__nomination_miss_of_a_pod_that_is_already_there() {
    let mut world = world_after_evictions(FULL);
    free_rack_a(&mut world);
    world.edit("j-p-1", |pod| {
        pod.node_name = Some("n4".into());
        pod.phase = PodPhase::Running;
    });
    assert_eq!(world.cycle().decisions(), "bind j-p-0 n3");
    world.kubelets();
    assert_eq!(world.cycle().decisions(), "");
}

/// Plans that fail in every rack change nothing. Each rack has 8 cpu, which the gang needs, but the
/// last pod finds no node there.
#[test]
fn gang__isolation_in_hyper_nodes() {
    let gangs = "job v priority=1 min=1
          task x cpu=2 x2 @n1 running
          task y cpu=4 @n2 running
        job w priority=2 min=2
          task x cpu=4 @n3 running
          task y cpu=4 @n4 running
        job p priority=9 min=3 topology=hard
          task p cpu=3 x2
          task q cpu=LAST";
    let queues = format!("queue q\nqueue r\n{gangs}")
        .replace("job v", "job v queue=q")
        .replace("job w", "job w queue=q")
        .replace("job p", "job p queue=r");
    for (action, text) in [("gangpreempt", gangs), ("gangreclaim", &queues)] {
        let config = conf(action, PLUGINS);
        // With a smaller last pod the plan in rack a holds.
        for (last, n_evicted) in [("2", 0), ("1", 3)] {
            let text = format!("{NODES}{}", text.replace("LAST", last));
            let world = world_with_hyper_nodes(&config, RACKS, &text);
            let mut stage = Stage::of(world, &config, Vec::new());
            let before = State::of(&stage.cluster);
            let outbox = stage.session(|session| {
                let shares = |session: &Session<'_>| {
                    ["default", "q", "r"].map(|name| {
                        let queue = session.queue(name)?;
                        let share = session.plugins().queue_share(session.view(), queue)?;
                        Some(share.share)
                    })
                };
                let shares_before = shares(session);
                run(session, action);
                if n_evicted == 0 {
                    assert_eq!(State::of(session), before, "{action}");
                    assert_eq!(shares(session), shares_before, "{action}");
                    assert!(session.records.last_transaction.is_empty(), "{action}");
                }
            });
            let evicts = |line: &&String| line.starts_with("evict v-");
            let sent = lines(&outbox.effects, &Report::default());
            assert_eq!(sent.iter().filter(evicts).count(), n_evicted, "{action} {last}: {sent:?}");
            assert_eq!(sent.is_empty(), n_evicted == 0, "{action} {last}: {sent:?}");
            assert_eq!(stage.eviction_holds.is_empty(), n_evicted == 0, "{action} {last}");
        }
    }
}

/// Returns a cycle of gangreclaim for job j of queue r, with victims of queue q.
fn gangreclaim_cycle(victims: &str, topology: &str) -> Cycle {
    let text = format!(
        "queue q\nqueue r\n{NODES}{victims}
        job j queue=r min=2 priority=5 topology={topology}\n task p cpu=4 x2"
    );
    world_with_hyper_nodes(&conf("allocate, gangreclaim", PLUGINS), RACKS, &text).cycle()
}

/// Returns the victims with the nodes of rack a in place of those of rack b, and the other way
/// round.
fn with_racks_swapped(victims: &str) -> String {
    let away = [("@n1", "@m3"), ("@n2", "@m4"), ("@n3", "@m1"), ("@n4", "@m2"), ("@m", "@n")];
    away.iter().fold(victims.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// gangreclaim empties the rack where the loss is least: no broken gang, then lower priority, then
/// fewer victims. Names of HyperNodes decide nothing.
#[test]
fn gangreclaim_takes_the_cheapest_domain() {
    let gang = "job a queue=q min=2
          task r cpu=4 @n1 running
          task s cpu=4 @n2 running
        job b queue=q min=0
          task r cpu=4 @n3 running
          task s cpu=4 @n4 running\n";
    let important = gang.replace("job a queue=q min=2", "job a queue=q min=0 priority=2");
    let many = "job a queue=q min=0
          task r cpu=2 x2 @n1 running
          task s cpu=4 @n2 running
        job b queue=q min=0
          task r cpu=4 @n3 running
          task s cpu=4 @n4 running\n";
    for victims in [gang, &important, many] {
        let done = gangreclaim_cycle(victims, "hard").decisions();
        assert_eq!(
            done,
            "evict b-r gangreclaim\nevict b-s gangreclaim\npipeline j-p-0 n3\npipeline j-p-1 n4",
            "{victims}"
        );
        let done = gangreclaim_cycle(&with_racks_swapped(victims), "hard").decisions();
        assert_eq!(
            done,
            "evict b-r gangreclaim\nevict b-s gangreclaim\npipeline j-p-0 n1\npipeline j-p-1 n2",
            "{victims}"
        );
    }
}

/// gangreclaim evicts nobody if one node of each rack is protected, and says so. The zone would do.
#[test]
fn gangreclaim_evicts_nobody_if_no_domain_suffices() {
    let victims = "job safe queue=q min=0 pre=false
          task r cpu=4 @n1 running
          task s cpu=4 @n3 running
        job low queue=q min=0
          task r cpu=4 @n2 running
          task s cpu=4 @n4 running\n";
    let cycle = gangreclaim_cycle(victims, "hard");
    assert_eq!(cycle.decisions(), "");
    let why = "gangreclaim: 1 network topology: evictions make room for all pods in no HyperNode of \
        tier 1 or lower";
    assert!(cycle.all().contains(why), "{}", cycle.all());
    assert_eq!(
        gangreclaim_cycle(victims, "hard:2").decisions(),
        "evict low-r gangreclaim\nevict low-s gangreclaim\npipeline j-p-0 n2\npipeline j-p-1 n4"
    );
}

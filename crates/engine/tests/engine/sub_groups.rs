//! Jobs with sub-groups and without topologies: actions.md 4.3, 4.5, "Sub-groups" of its cases. Those
//! with HyperNodes are in `hyper_nodes` and `hyper_node_cases`.

use proptest::prelude::*;
use vc_conf::Config;
use vc_framework::Report;

use crate::support::*;

/// Legend TA and the switches of sub-jobs.
fn config() -> Config {
    let tiers = TA.replace("gang{", "gang{subJobReady subJobPipelined subJobOrder ");
    conf("enqueue, allocate", &tiers)
}

/// Who is bound, by name.
fn bound(text: &str) -> String {
    let cycle = World::new(&config(), text).cycle();
    let lines = cycle.only(&["bind"]);
    let mut names: Vec<&str> =
        lines.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    names.sort_unstable();
    names.join(" ")
}

/// Nodes with room for one pod each.
fn nodes(n_nodes: u32) -> String {
    (1..=n_nodes).map(|index| format!("node n{index} cpu=2\n")).collect()
}

#[test]
fn sub__no_topology() {
    let job = "job j min=2 policy.g=1x2
          task p cpu=2 label.g=a
          task q cpu=2 label.g=b";
    assert_eq!(bound(&format!("{}{job}", nodes(2))), "j-p j-q");
    assert_eq!(bound(&format!("{}{job}", nodes(1))), "");
}

fn masters_and_workers(min: u32, groups: u32) -> String {
    format!(
        "job j min={min} policy.master=1x2 policy.worker=2x{groups}
          task m1 cpu=2 label.master=1
          task m2 cpu=2 label.master=2
          task m3 cpu=2 label.master=3
          task m4 cpu=2 label.master=4
          task w cpu=2 label.worker=1 x2
          task v cpu=2 label.worker=2 x2"
    )
}

#[test]
fn sub__many_masters() {
    let text = format!("{}{}", nodes(4), masters_and_workers(3, 1));
    assert_eq!(bound(&text), "j-m1 j-m2 j-w-0 j-w-1");
    // What is left goes to the others, as long as a whole sub-group fits.
    let text = format!("{}{}", nodes(5), masters_and_workers(3, 1));
    assert_eq!(bound(&text), "j-m1 j-m2 j-m3 j-w-0 j-w-1");
}

#[test]
fn sub__min_member_5() {
    assert_eq!(bound(&format!("{}{}", nodes(4), masters_and_workers(5, 1))), "");
}

#[test]
fn sub__groups_unmet() {
    assert_eq!(bound(&format!("{}{}", nodes(5), masters_and_workers(3, 2))), "");
    let text = format!("{}{}", nodes(6), masters_and_workers(3, 2));
    assert_eq!(bound(&text), "j-m1 j-m2 j-v-0 j-v-1 j-w-0 j-w-1");
}

#[test]
fn sub__rescheduled() {
    let text = |n_nodes: u32| {
        format!(
            "{}job j min=2 policy.g=2x1
              task p cpu=2 label.g=a @n1 running
              task q cpu=2 label.g=a",
            nodes(n_nodes)
        )
    };
    assert_eq!(bound(&text(2)), "j-q");
    assert_eq!(bound(&text(1)), "");
}

#[test]
fn sub__running_masters() {
    let text = format!(
        "{}job j min=3 policy.master=1x2 policy.worker=2x1
          task m1 cpu=2 label.master=1 @n1 running
          task m2 cpu=2 label.master=2 @n2 running
          task w cpu=2 label.worker=1 x2",
        nodes(4)
    );
    assert_eq!(bound(&text), "j-w-0 j-w-1");
}

#[test]
fn sub__two_chunks() {
    let text = format!(
        "{}job j min=3 policy.g=2x2
          task a cpu=2 label.g=a @n1 running
          task b cpu=2 label.g=a
          task c cpu=2 label.g=b x2",
        nodes(4)
    );
    assert_eq!(bound(&text), "j-b j-c-0 j-c-1");
}

/// A sub-group that does not fit holds nothing against those behind it.
#[test]
fn sub__incomplete_is_dropped() {
    let text = format!(
        "{}job j min=1 policy.big=3x0 policy.small=1x0
          task b cpu=2 label.big=1 x3
          task s cpu=2 label.small=2",
        nodes(2)
    );
    let cycle = World::new(&config(), &text).cycle();
    assert_eq!(cycle.only(&["bind"]), "bind j-s n1");
    let why =
        "pod j-b-2 Unschedulable \"queue default has no room: insufficient cpu. Limit of queue";
    assert!(cycle.lines.iter().any(|line| line.starts_with(why)), "{:#?}", cycle.lines);
}

/// A sub-group waits for room that becomes free; its job keeps what it has.
#[test]
fn sub__pipelined_is_kept() {
    let text = "node n1 cpu=2
        node n2 cpu=2
        job leaving min=0
          task v cpu=2 @n2 running deleting
        job j min=2 policy.g=2x1 created=0
          task p cpu=2 label.g=a x2
        job other created=1
          task p cpu=2";
    let mut world = World::new(&config(), text);
    assert_eq!(world.cycle().decisions(), "pipeline j-p-1 n2");
    world.kubelets();
    assert_eq!(world.cycle().decisions(), "bind j-p-0 n1\nbind j-p-1 n2");
}

/// Pods that match no policy are a sub-group of their own.
#[test]
fn sub__pods_without_group() {
    let text = format!(
        "{}job j min=3 policy.g=2x1
          task a cpu=2 label.g=a x2
          task rest cpu=2 x2",
        nodes(3)
    );
    assert_eq!(bound(&text), "j-a-0 j-a-1 j-rest-0");
}

#[test]
fn sub__topology_waits_for_hyper_nodes() {
    let text = "node n1 cpu=2
        job j min=1 policy.g=1x1 topology=hard
          task p cpu=2 label.g=a";
    let cycle = World::new(&config(), text).cycle();
    assert_eq!(cycle.decisions(), "");
    assert!(cycle.all().contains("network topology: hyperNodes are not ready"));
}

#[test]
fn sub__attempt_that_fails_leaves_nothing() {
    let text = format!("{}{}", nodes(5), masters_and_workers(3, 2));
    let mut stage = Stage::new(&config(), Vec::new(), &text);
    let before = State::of(&stage.cluster);
    let outbox = stage.session(|session| {
        run(session, "allocate");
        assert_eq!(State::of(session), before);
    });
    assert_eq!(lines(&outbox.effects, &Report::default()), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Sub-groups that are kept in order are those that are looked for each time: both evaluators
    /// place the same, in two cycles.
    #[test]
    fn sub__order_is_that_of_all_looked_at(
        pods in prop::collection::vec((0..12_u32, 0..4_i32, 1..4_u32), 1..40),
        (size, groups, min) in (1..4_u32, 0..4_u32, 1..12_u32),
        n_nodes in 1..25_u32,
        cap in prop::option::of(4..40_u32),
    ) {
        let mut text = nodes(n_nodes).replace("cpu=2", "cpu=4");
        if let Some(cap) = cap {
            text.push_str(&format!("queue default cap.cpu={cap}\n"));
        }
        text.push_str(&format!("job j min={min} policy.g={size}x{groups}\n"));
        for (place, (group, priority, cpu)) in pods.iter().enumerate() {
            let of_group = if *group == 0 { String::new() } else { format!("label.g={group}") };
            text.push_str(&format!("task p{place} cpu={cpu} priority={priority} {of_group}\n"));
        }
        text.push_str("job other min=2\ntask o cpu=1 x3\n");
        let mut world = World::new(&config(), &text);
        world.cycle();
        world.kubelets();
        world.cycle();
    }
}

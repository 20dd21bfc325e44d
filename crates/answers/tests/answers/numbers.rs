//! Numbers of nodes and resources. Specification: answers.md 20, cases 5 to 9, 12, 13, 15.

use std::collections::BTreeSet;

use proptest::prelude::*;
use vc_answers::{Depth, Explanation, FailingClass, SubGroupNumbers, explain_waiting};

use crate::support::{Asked, EXAMPLE, conf, groups, random_cases};

fn asked(text: &str) -> Asked {
    Asked::new(&conf("enqueue, allocate, backfill", EXAMPLE), text)
}

fn short(why: &Explanation, resource: &str) -> [String; 4] {
    let row = why.short.iter().find(|row| row.resource == resource).unwrap();
    [&row.need, &row.free, &row.largest, &row.short].map(String::clone)
}

#[test]
fn ans_05_all_findings_of_a_node_count_once() {
    let mut text: String = (0..6).map(|at| format!("node a{at} cpu=4 zone=a\n")).collect();
    (0..4).for_each(|at| text.push_str(&format!("node b{at} cpu=1 zone=a\n")));
    text.push_str("job j\n task a cpu=2 selector.zone=b");
    let found = groups(&asked(&text).why("j"));
    assert_eq!(found, ["6 label/zone a0 a1 a2 a3 a4", "4 label/zone+room/cpu b0 b1 b2 b3"]);
}

fn node() -> impl Strategy<Value = String> {
    let amounts = (1..5_i64, 0..3_i64);
    let marks = (any::<bool>(), any::<bool>(), any::<bool>());
    (amounts, marks).prop_map(|((cpu, gpu), (is_tainted, is_cordoned, is_away))| {
        let gpu = if gpu == 0 { String::new() } else { format!("gpu={gpu}") };
        let taint = if is_tainted { "taint=x:NoSchedule" } else { "" };
        let cordon = if is_cordoned { "unschedulable" } else { "" };
        let zone = if is_away { "zone=b" } else { "zone=a" };
        format!("cpu={cpu} {gpu} {taint} {cordon} {zone}")
    })
}

proptest! {
    #![proptest_config(random_cases(200))]

    #[test]
    fn ans_05_groups_are_a_partition(
        nodes in prop::collection::vec(node(), 1..12),
        gpus in 0..3_i64,
    ) {
        let mut text: String =
            nodes.iter().enumerate().map(|(at, node)| format!("node n{at} {node}\n")).collect();
        let gpu = if gpus == 0 { String::new() } else { format!("gpu={gpus}") };
        text.push_str(&format!("job j min=20\n task a cpu=3 {gpu} selector.zone=a x20"));
        let why = asked(&text).why("j");
        let numbers = why.nodes.unwrap();
        prop_assert_eq!(numbers.total, nodes.len());
        let counted: usize = numbers.groups.iter().map(|group| group.count).sum();
        prop_assert_eq!(counted, nodes.len());
        let mut seen = BTreeSet::new();
        for group in &numbers.groups {
            prop_assert_eq!(group.names.len(), group.count.min(5));
            prop_assert!(group.names.iter().all(|name| seen.insert(name.clone())));
        }
    }
}

#[test]
fn ans_06_more_than_twelve_groups() {
    let mut text: String =
        (10..23).map(|at| format!("node n{at} cpu=4 taint=t{at}:NoSchedule\n")).collect();
    text.push_str("node n23 cpu=4 taint=t10:NoSchedule taint=t11:NoSchedule\njob j\n task a cpu=1");
    let found = groups(&asked(&text).why("j"));
    assert_eq!(found.len(), 13);
    assert_eq!(found[0], "1 taint/t10:NoSchedule n10");
    assert_eq!(found[12], "2 others n22 n23");
}

#[test]
fn ans_07_fewer_atoms_before_smaller_lacks() {
    let text = "node a cpu=2\nnode b cpu=3\nnode c cpu=3\nnode d cpu=3 taint=x:NoSchedule
        job j\n task a cpu=4";
    let nearest = asked(text).why("j").nodes.unwrap().nearest.clone();
    let names: Vec<&str> = nearest.iter().map(|node| &*node.name).collect();
    assert_eq!(names, ["b", "c", "a"]);
    assert_eq!(nearest[0].lacks, [("cpu".to_owned(), "1".to_owned())]);
}

#[test]
fn ans_08_members_with_a_node_are_not_needed_again() {
    let text = "node n cpu=5\njob j min=3 running\n task a cpu=2 @n running\n task b cpu=2 x2";
    let why = asked(text).why("j");
    let gang = why.gang.as_ref().unwrap();
    assert_eq!((gang.needed, gang.ready, gang.waiting, gang.placed), (3, 1, 2, 1));
    assert_eq!(short(&why, "cpu"), ["2", "1", "1", "1"], "one of them finds a place");
}

#[test]
fn ans_09_every_resource_has_a_row() {
    let text = "node n cpu=4 memory=4Gi\njob j\n task a cpu=5 memory=6Gi gpu=1";
    let why = asked(text).why("j");
    let shown: Vec<&str> = why.short.iter().map(|row| &*row.resource).collect();
    assert_eq!(shown, ["cpu", "memory"]);
    assert_eq!(groups(&why), ["1 room/cpu+room/memory+lacks/nvidia.com/gpu n"]);
    let without = text.replace(" gpu=1", "");
    let why = asked(&without).why("j");
    assert_eq!(short(&why, "cpu"), ["5", "4", "4", "1"]);
    assert_eq!(short(&why, "memory"), ["6Gi", "4Gi", "4Gi", "2Gi"]);
}

#[test]
fn ans_12_one_pod_that_asks_for_more_than_is_idle() {
    let text = "node n cpu=8\njob k running\n task a cpu=5 @n running\njob j\n task a cpu=5";
    assert_eq!(short(&asked(text).why("j"), "cpu"), ["5", "3", "3", "2"]);
}

#[test]
fn ans_13_the_role_that_fails_comes_first() {
    let text = "node n cpu=4\njob j min=3 role.ps=1 role.worker=2
        task ps cpu=1 role=ps\n task w cpu=4 role=worker x2";
    let why = asked(text).why("j");
    assert_eq!(groups(&why), ["1 room/cpu n"], "a worker fits, but not beside the others");
    let gang = why.gang.unwrap();
    let placed: Vec<(&str, u32)> =
        gang.roles.iter().map(|role| (&*role.role, role.placed)).collect();
    assert_eq!(placed, [("ps", 1), ("worker", 0)]);
    let classes: Vec<(u32, u32)> = gang.pods.iter().map(|row| (row.count, row.placed)).collect();
    assert_eq!(classes, [(1, 1), (2, 0)]);
}

#[test]
fn ans_15_sub_groups_with_a_minimum_are_counted() {
    let why = asked(
        "node n cpu=4\njob j min=4
          policy p keys=idx size=2 min=2
          task a cpu=2 x2 label.idx=0\n task b cpu=3 x2 label.idx=1",
    )
    .why("j");
    let numbers = |it: &SubGroupNumbers| (it.name.to_string(), it.needed, it.placed, it.ready);
    let groups: Vec<_> = why.gang.unwrap().sub_groups.iter().map(numbers).collect();
    let group = |name: &str, placed| (format!("default/j/{name}"), 2, placed, 0);
    assert_eq!(groups, [group("p-0", 2), group("p-1", 0)]);
    let plain = asked("node n cpu=4\njob j\n task a cpu=5").why("j");
    assert!(plain.gang.unwrap().sub_groups.is_empty());
}

/// Returns the further classes that fail, one text each: `1 pods cpu=9 NeverFits: ...`.
fn failing(tiers: &str, text: &str) -> (String, Vec<String>) {
    let why = Asked::new(&conf("allocate", tiers), text).why("j");
    let class = |it: &FailingClass| {
        let request: Vec<String> =
            it.request.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        format!("{} pods {} {}: {}", it.count, request.join(" "), it.code.as_str(), it.text)
    };
    (why.verdict.code.as_str().to_owned(), why.classes.iter().map(class).collect())
}

#[test]
fn ans_13_further_classes_that_fail_are_listed() {
    let text = "node n cpu=8 gpu=1\njob k running\n task a cpu=5 @n running\njob j min=5
        task a cpu=2 x2\n task b cpu=1 gpu=2 x2\n task c cpu=9";
    let (code, classes) = failing("gang predicates", text);
    // Pods come by index: after the first pod of the first class one of the second class is the first that fails.
    assert_eq!(code, "GangShort");
    let short = "1 pods cpu=2 NoRoom: 1 cpu short: 2 needed, 1 free on eligible nodes";
    let never = "1 pods cpu=9 NeverFits: no eligible node is large enough: 9 cpu asked, 8 on the \
        largest";
    assert_eq!(classes, [short, never]);
    let fits = "node n cpu=8\njob j min=2\n task a cpu=9\n task b cpu=1";
    assert_eq!(failing("gang predicates", fits), ("NeverFits".to_owned(), Vec::new()));
    let one = "node n cpu=8\njob j min=2\n task a cpu=9 x2";
    assert_eq!(failing("gang predicates", one), ("NeverFits".to_owned(), Vec::new()));
}

/// The numbers of a queue are not for everybody.
#[test]
fn ans_13_a_class_that_its_queue_refuses_tells_what_is_short() {
    let text = "node n cpu=8 gpu=4\nnode m cpu=8\nqueue q cap.gpu=1
        job j queue=q min=2\n task a cpu=9\n task b gpu=2";
    let (code, classes) = failing("gang predicates capacity", text);
    assert_eq!(code, "NeverFits");
    let expected = "1 pods nvidia.com/gpu=2 QueueFull: capacity: queue q has no room: 1 nvidia.com/gpu \
        short";
    assert_eq!(classes, [expected]);
}

/// The limit of a cohort is not that of a queue.
#[test]
fn ans_13_a_class_that_a_cohort_refuses_names_the_cohort() {
    let text = "node n cpu=8 gpu=8\nqueue root reclaimable=false
        queue a deserved.gpu=1\nqueue b deserved.gpu=1
        job j queue=a min=2\n task a cpu=9\n task b gpu=3";
    let (code, classes) = failing("priority gang | cohort predicates", text);
    assert_eq!(code, "NeverFits");
    let expected = "1 pods nvidia.com/gpu=3 QueueFull: cohort: cohort root has no room: 1 nvidia.com/gpu \
        short";
    assert_eq!(classes, [expected]);
}

/// Rows of a list have no classes: each would take a look at all nodes.
#[test]
fn ans_13_lists_have_no_further_classes() {
    let text = "node n cpu=8 gpu=1\njob j min=2\n task a cpu=9\n task b gpu=2";
    let it = Asked::new(&conf("allocate", "gang predicates"), text);
    let mut state = it.state();
    let listed = explain_waiting(&mut state).to_vec();
    assert_eq!((listed.len(), listed[0].classes.len()), (1, 0));
    // What the list has found out is used, and what it left out is found.
    for depth in [Depth::Quick, Depth::Full] {
        let why = it.why_to(&mut state, "j", depth);
        assert_eq!(why.verdict, listed[0].verdict);
        assert_eq!((why.classes.len(), &why.classes), (1, &it.why("j").classes), "{depth:?}");
    }
}

#[test]
fn ans_15_a_best_effort_pod_and_no_slot() {
    let text = "node n cpu=4 pods=1\njob k running\n task a cpu=1 @n running\njob j\n task a";
    let why = asked(text).why("j");
    assert_eq!(groups(&why), ["1 room/pods n"]);
    assert_eq!(why.verdict.text, "1 pods short: 1 needed, 0 free on eligible nodes");
}

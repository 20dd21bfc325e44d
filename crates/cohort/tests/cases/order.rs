//! Cases T.5 of cohort.md: which queue is first, what a waiting head keeps, two that reclaim.

use std::collections::BTreeMap;

use proptest::prelude::*;
use vc_cohort::{
    AllowAll, AssignmentMode, Group, Groups, HeadRanking, PreemptionStrategies, QueueHead,
    QuotaDemand, QuotaNode, QuotaPreemptor, SearchOptions, TreeRules,
};

use crate::notation::{demand, slots, trees};
use crate::random::{group, rows, shapes};

/// Name of the queue that is served first. A head is `queue priority size seconds`.
fn first(fair_sharing: bool, queues: &str, uses: &[(&str, &str)], heads: &[&str]) -> String {
    let built = trees(queues, &TreeRules::default());
    let mut forest = built.forest.clone();
    uses.iter().for_each(|(queue, size)| forest.add(built.by_name[*queue], &demand(size)));
    let head = |text: &&str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        QueueHead {
            queue: built.by_name[words[0]],
            priority: words[1].parse().expect("a priority"),
            demand: demand(words[2]),
            created_micros: words[3].parse().expect("seconds"),
        }
    };
    let heads: Vec<QueueHead> = heads.iter().map(head).collect();
    let mut groups = Groups::new(forest.clone());
    let winner = groups.next_head(&heads, fair_sharing);
    for node in forest.nodes() {
        for slot in slots().1 {
            assert_eq!(groups.forest().usage(node, slot), forest.usage(node, slot));
        }
    }
    winner.map(|at| forest.name(heads[at].queue).to_string()).unwrap_or_default()
}

#[test]
fn t5_08_borrow_level() {
    let heads = ["e 3 4 0", "g 0 4 0"];
    assert_eq!(first(false, "p 4; g 0 @p; e 0", &[], &heads), "g");
    // Without the cohort the higher priority decides, then age, then the name.
    assert_eq!(first(false, "g 0; e 0; x 4", &[], &heads), "e");
    assert_eq!(first(false, "g 0; e 0; x 4", &[], &["e 0 4 1", "g 0 4 0"]), "g");
    assert_eq!(first(false, "g 0; e 0; x 4", &[], &["g 0 4 0", "e 0 4 0"]), "e");
    assert_eq!(first(false, "g 0", &[], &[]), "");
}

#[test]
fn t5_09_order_share() {
    let uses = [("alpha", "50"), ("beta", "55")];
    let heads = ["alpha 0 5 2", "beta 0 1 1"];
    assert_eq!(first(true, "alpha 50; beta 50; shared 10", &uses, &heads), "alpha");
    // Then beta, with 56 of 50 + 10 - 5, does not fit.
    let built = trees("alpha 50; beta 50; shared 10", &TreeRules::default());
    let mut forest = built.forest.clone();
    forest.add(built.by_name["alpha"], &demand("55"));
    forest.add(built.by_name["beta"], &demand("55"));
    assert_eq!(forest.available(built.by_name["beta"], slots().1[0]), 0);
}

#[test]
fn t5_10_order_after_admission() {
    assert_eq!(first(true, "root 100; b 0; c 0", &[("b", "10")], &["c 0 75 0", "b 0 50 0"]), "b");
}

#[test]
fn t5_11_order_tournament() {
    let queues = "root 200; p –; r –; d 0 @p; e 0 @p; f 0 @r; g 0 @r";
    let uses = [("d", "10"), ("e", "20"), ("g", "100")];
    let heads = ["d 0 70 0", "e 0 61 0", "f 0 1 0", "g 0 1 0"];
    assert_eq!(first(true, queues, &uses, &heads), "d");
}

#[test]
fn t5_12_order_weight_zero() {
    let queues = "root 8; b 0 w0; c 0 w0";
    assert_eq!(first(true, queues, &[("b", "4")], &["b 9001 4 0", "c 0 4 0"]), "c");
}

#[test]
fn t5_13_order_nominal_first() {
    let queues = "p 10; a 0 @p; r –; b 5 @r; c 0 @r";
    assert_eq!(first(true, queues, &[("c", "10")], &["a 0 5 1", "b 0 5 0"]), "a");
}

#[test]
fn queues_of_trees_of_their_own_compare_by_age() {
    let queues = "x 4 @one; y 4 @two";
    assert_eq!(first(true, queues, &[], &["x 0 4 1", "y 0 4 0"]), "y");
    assert_eq!(first(true, queues, &[], &["x 1 4 1", "y 0 4 0"]), "x");
}

/// What is left for `b` while the head of `a` waits.
fn left_for_b(policy: &str) -> i128 {
    let built = trees(&format!("a 2gpu {policy}; b 0gpu"), &TreeRules::default());
    let (a, b) = (built.by_name["a"], built.by_name["b"]);
    let mut forest = built.forest.clone();
    forest.add(a, &demand("1gpu"));
    let wanted = demand("2gpu");
    let class = forest.classify(a, &wanted, false);
    assert_eq!(class.mode, AssignmentMode::Preempt);
    let reserved = forest.reservation(a, &wanted, class.level);
    forest.add(a, &reserved);
    let left = forest.available(b, slots().1[2]);
    forest.remove(a, &reserved);
    assert_eq!(forest.available(b, slots().1[2]), 1);
    left
}

#[test]
fn t5_14_reserve_lower_and_reserve_any() {
    assert_eq!(left_for_b("re:L"), 0);
    assert_eq!(left_for_b("re:A"), 1);
}

#[test]
fn a_head_within_its_own_quota_keeps_what_is_left_of_that() {
    let built = trees("a 4 re:L; b 4", &TreeRules::default());
    let a = built.by_name["a"];
    let mut forest = built.forest.clone();
    forest.add(a, &demand("3"));
    assert_eq!(forest.reservation(a, &demand("3"), 0), demand("1"));
    assert_eq!(forest.reservation(a, &demand("3"), 1), demand("3"));
    forest.add(a, &demand("3"));
    assert_eq!(forest.reservation(a, &demand("3"), 0), QuotaDemand::default());
}

/// One takes the group, the other fits beside it without a target of its own.
#[test]
fn t5_15_two_reclaimers() {
    for fair_sharing in [None, Some(PreemptionStrategies::Both)] {
        let built = trees("a 3 re:A; c 1 re:A; b 0", &TreeRules::default());
        let mut groups = Groups::new(built.forest.clone());
        let group = |queue: &str, size: &str| Group {
            queue: built.by_name[queue],
            priority: 0,
            created_micros: 0,
            admitted_micros: 0,
            uid: queue.into(),
            evicting: false,
            holds: demand(size),
        };
        let only = groups.insert(group("b", "4"));
        let how = SearchOptions { fair_sharing, ..SearchOptions::default() };
        let incoming = |queue: &str, size: &str| QuotaPreemptor {
            queue: built.by_name[queue],
            priority: 0,
            created_micros: 1,
            demand: demand(size),
        };
        let fair = fair_sharing.is_some();
        let first = incoming("a", "3");
        let class = groups.forest().classify(first.queue, &first.demand, fair);
        let targets = how.run(&mut groups, &first, &class.need, &mut AllowAll).unwrap();
        assert_eq!(targets.iter().map(|target| target.group).collect::<Vec<_>>(), [only]);
        groups.take(only);
        groups.insert(group("a", "3"));
        let second = incoming("c", "1");
        let class = groups.forest().classify(second.queue, &second.demand, fair);
        assert_eq!(class.mode, AssignmentMode::Fit);
    }
}

proptest! {
    /// What is remembered of heads changes no decision (B.11).
    #[test]
    fn a_ranking_that_is_kept_decides_as_a_new_one(
        steps in prop::collection::vec((0..5_usize, 0..6_i64, any::<bool>()), 1..30),
        sizes in prop::collection::vec(1..6_i64, 5),
        fair_sharing in any::<bool>(),
    ) {
        let queues = "p 6; a 2 @p; b 1 g1 @p; r 4; c 3 @r; d 0 @r; e 2 w2";
        let built = trees(queues, &TreeRules::default());
        let nodes = ["a", "b", "c", "d", "e"].map(|name| built.by_name[name]);
        let mut groups = Groups::new(built.forest.clone());
        let mut ranking = HeadRanking::new(&mut groups, fair_sharing);
        let head = |at: usize, size: i64| QueueHead {
            queue: nodes[at],
            priority: 0,
            created_micros: at as i64,
            demand: demand(&size.to_string()),
        };
        let mut asked: Vec<Option<i64>> = sizes.iter().copied().map(Some).collect();
        (0..5).for_each(|at| ranking.enter(head(at, sizes[at])));
        for (at, size, is_head) in steps {
            match (is_head, size) {
                (true, 0) => {
                    asked[at] = None;
                    ranking.leave(nodes[at]);
                }
                (true, size) => {
                    asked[at] = Some(size);
                    ranking.enter(head(at, size));
                }
                (false, _) => groups.keep(nodes[at], &demand(&size.to_string())),
            }
            let waiting = (0..5).filter_map(|at| Some(head(at, asked[at]?)));
            let heads: Vec<QueueHead> = waiting.collect();
            let by_rule = groups.next_head(&heads, fair_sharing).map(|at| heads[at].queue);
            prop_assert_eq!(ranking.next(&mut groups), by_rule);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The same in any tree, with priorities, two resources, and quota that is given back.
    #[test]
    fn a_ranking_that_is_kept_decides_as_a_new_one_in_any_tree(
        mut shape in shapes(true),
        priorities in prop::collection::vec(0..2_i32, 6),
        steps in prop::collection::vec((rows(1..2), 0..4_u8), 1..40),
        fair_sharing in any::<bool>(),
    ) {
        shape.queues.iter_mut().zip(priorities).for_each(|(queue, priority)| {
            queue.priority = priority;
        });
        let built = shape.built();
        let leaves = shape.leaves(&built);
        let mut groups = Groups::new(built.forest.clone());
        let mut ranking = HeadRanking::new(&mut groups, fair_sharing);
        let mut heads: BTreeMap<QuotaNode, QueueHead> = BTreeMap::new();
        let mut kept = Vec::new();
        for (row, kind) in steps {
            let Group { queue, priority, created_micros, holds: demand, .. } =
                group(&leaves, 0, &row[0]);
            match kind {
                0 => {
                    let head = QueueHead { queue, priority, created_micros, demand };
                    heads.insert(queue, head.clone());
                    ranking.enter(head);
                }
                1 if heads.remove(&queue).is_some() => ranking.leave(queue),
                2 => {
                    groups.keep(queue, &demand);
                    kept.push((queue, demand));
                }
                _ => kept.pop().iter().for_each(|(queue, demand)| groups.let_go(*queue, demand)),
            }
            let all: Vec<QueueHead> = heads.values().cloned().collect();
            let by_rule = groups.next_head(&all, fair_sharing).map(|at| all[at].queue);
            prop_assert_eq!(ranking.next(&mut groups), by_rule);
        }
    }
}

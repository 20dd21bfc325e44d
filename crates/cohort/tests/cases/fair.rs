//! Cases T.3 of cohort.md: fair sharing.

use vc_cohort::{
    AssignmentMode, EvictionTarget, GroupId, PreemptionStrategies, SearchEnvironment,
    SearchOptions, SearchRefusal, TreeRules,
};

use crate::notation::{Case, check, check_by, slots, trees};

const FAIR: SearchOptions = by(PreemptionStrategies::Both);
const INITIAL: SearchOptions = by(PreemptionStrategies::InitialShare);
const FINAL: SearchOptions = by(PreemptionStrategies::FinalShare);

const fn by(strategies: PreemptionStrategies) -> SearchOptions {
    SearchOptions { fair_sharing: Some(strategies), own: true, others: true }
}

#[test]
fn t3_01_fs_reclaim_nominal() {
    check(&FAIR, "F3", "a1–a3(a 0 1 each) b1–b5(b 0 1 each) c1(c 0 1)", "(c 0 1)", "b1 REC");
}

#[test]
fn t3_02_fs_reclaim_less() {
    check(&FAIR, "F3", "a1(a 0 3) a2(a 0 1) b1(b 0 2) b2(b 0 3)", "(c 0 3)", "a1 REC");
}

#[test]
fn t3_03_fs_borrowable() {
    check(&FAIR, "F3", "a1–a3(a 0 1 each) b1–b5(b 0 1 each) c1(c 0 1)", "(a 0 1)", "b1 FAIR");
}

#[test]
fn t3_04_fs_one_from_each() {
    check(
        &FAIR,
        "F3",
        "a1(a 0 0.5) a2(a 0 0.5) a3(a 0 3) b1(b 0 0.5) b2(b 0 0.5) b3(b 0 3)",
        "(c 0 2)",
        "a1 REC, b1 REC",
    );
}

#[test]
fn t3_05_fs_all_nominal() {
    check(&FAIR, "F3", "a1–a3(a 0 1 each) b1–b3(b 0 1 each) c1–c3(c 0 1 each)", "(c 0 1)", "none");
}

#[test]
fn t3_06_fs_switch_imbalance() {
    check(&FAIR, "F3", "a1–a3(a 0 1 each) b1–b5(b 0 1 each)", "(a 0 2)", "none");
}

#[test]
fn t3_07_fs_own_lower() {
    check(
        &FAIR,
        "F3",
        "a1-low(a -1 1) a2-low(a -1 1) a3(a 0 1) a4(a 0 1) b1–b5(b 0 1 each)",
        "(a 0 2)",
        "a1-low OWN, a2-low OWN",
    );
}

#[test]
fn t3_08_fs_own_and_highest() {
    check(
        &FAIR,
        "F3",
        "a-low(a -1 1) a2(a 0 1) a3(a 0 1) b1–b6(b 0 1 each)",
        "(a 0 2)",
        "a-low OWN, b1 FAIR",
    );
}

#[test]
fn t3_09_fs_huge() {
    check(&FAIR, "F3", "b1(b 0 9)", "(a 0 2)", "b1 REC");
}

#[test]
fn t3_10_fs_huge_incoming() {
    check(&FAIR, "F3", "a1(a 0 2) b1(b 0 7)", "(a 0 5)", "none");
}

#[test]
fn t3_11_fs_huge_incoming_two() {
    check(&FAIR, "F3", "b1(b 0 2) b2(b 0 2) b3(b 0 3)", "(a 0 6)", "none");
}

#[test]
fn t3_12_fs_own_and_others_over() {
    check(
        &FAIR,
        "F3",
        "a1-low(a -1 2) a2-low(a -1 1) b1(b 0 3) b2(b 0 3)",
        "(a 0 4)",
        "a1-low OWN, b1 FAIR",
    );
}

#[test]
fn t3_13_fs_final_share_first() {
    check(&FAIR, "F3", "b1(b 0 2) b2(b 0 1) b3(b 0 2) c1(c 0 1)", "(a 0 3.5)", "b2 FAIR");
}

#[test]
fn t3_14_fs_two_queues() {
    check(
        &FAIR,
        "F3",
        "b1(b 0 2) b2(b 0 2.5) c1(c 0 2) c2(c 0 2.5)",
        "(a 0 3.5)",
        "b1 FAIR, c1 FAIR",
    );
}

#[test]
fn t3_15_fs_no_flap() {
    check(&FAIR, "F3", "a1(a 0 3.5) b2(b 0 2.5) c2(c 0 2.5)", "(b 0 2)", "none");
}

#[test]
fn t3_16_fs_under_nominal_after_one() {
    check(&FAIR, "F3", "b1(b 0 3) b2(b 0 3) c1(c 0 3)", "(a 0 4)", "none");
}

#[test]
fn t3_17_fs_threshold_ignored() {
    check(
        &FAIR,
        "F3",
        "a1–a3(a 0 1 each) b1–b3(b 0 1 each) p1–p3(pre -3 1 each)",
        "(a 0 2)",
        "none",
    );
}

#[test]
fn t3_18_fs_initial_only() {
    check(&INITIAL, "F3", "a1(a 0 3) b-low(b 0 5) b-high(b +1 1)", "(a 0 1)", "b-low FAIR");
}

#[test]
fn t3_19_fs_final_only() {
    check(&FINAL, "F3", "a1(a 0 3) b-low(b 0 5) b-high(b +1 1)", "(a 0 1)", "b-high FAIR");
}

#[test]
fn t3_20_fs_weight() {
    check(
        &FAIR,
        "a 3 w2 in:L re:A; b 3 in:L re:A; c 3 in:L re:A",
        "a1–a3(a 0 1 each) b1–b6(b 0 1 each)",
        "(a 0 2)",
        "b1 FAIR, b2 FAIR",
    );
}

#[test]
fn t3_21_fs_weight_zero_target() {
    check(
        &FAIR,
        "a 3 in:L re:A; b 3 w0 in:L re:A; c 3 in:L re:A",
        "a1–a3(a 0 1 each) b1–b6(b 0 1 each)",
        "(a 0 3)",
        "b1 FAIR, b2 FAIR, b3 FAIR",
    );
}

#[test]
fn t3_22_fs_weight_zero_nominal() {
    check(
        &FAIR,
        "a 3 in:L re:A; b 3 w0 in:L re:A",
        "a1–a3(a 0 1 each) b1–b3(b 0 1 each)",
        "(a 0 1)",
        "none",
    );
}

#[test]
fn t3_23_fs_weight_zero_cohort_nominal() {
    check(
        &FAIR,
        "left 0 re:A; rc 1 w0; right 0 w0 re:A @rc",
        "r1(right 0 1)",
        "(left 0 1)",
        "none",
    );
}

#[test]
fn t3_24_fs_own_no_cohort() {
    check(&FAIR, "a 1 in:L", "a1(a 0 1)", "(a +1000 1)", "a1 OWN");
}

#[test]
fn t3_25_fs_hier() {
    let group = |queue: &str, n: u32| format!("{queue}{n}({queue} {n} 1) ");
    let of = |queue| (1..=5).map(move |n| group(queue, n));
    let running: String = ["b", "c", "d", "e"].into_iter().flat_map(of).collect();
    let queues = "root 20; left 7 w2; right 7; a 1 w2 re:A @left; b 1 @left; c 1; d 1 @right; \
        e 1 w0.99 @right";
    let expected = "b1 FAIR, b2 FAIR, c1 FAIR, c2 FAIR, e1 FAIR";
    check(&FAIR, queues, &running, "(a 0 5)", expected);
}

#[test]
fn t3_26_fs_nonborrowing_cohort() {
    check(
        &FAIR,
        "a 5 w10 in:L re:A; right 1 w0.1; b – w0.1 @right",
        "a1–a3(a -1 1 each) b1(b -1 1)",
        "(a 0 5)",
        "a1 OWN, a2 OWN, a3 OWN",
    );
}

#[test]
fn t3_27_fs_too_important() {
    check(
        &FAIR,
        "a 5 w10 in:L re:L; right 3 w0.1; b – w0.1 @right",
        "a1–a3(a -1 1 each) b1(b +100 4)",
        "(a 0 4)",
        "a1 OWN, a2 OWN, a3 OWN",
    );
}

#[test]
fn t3_28_fs_deep() {
    check(
        &FAIR,
        "oa – w1.01; oaa – @oa; oaaa – @oaa; ob – w0.99; obb – @ob; obbb – @obb; oc 1; occ 1 \
         @oc; occc 1 @occ; a 0 re:A @oaaa; b 0 @obbb; idle 0 @occc",
        "b1(b 0 1)",
        "(a 0 1)",
        "b1 FAIR",
    );
}

#[test]
fn t3_29_fs_weight_zero_reclaims() {
    check(&FAIR, "a 1 w0 re:A; b 0", "b1(b 0 1)", "(a 0 1)", "b1 REC");
}

#[test]
fn t3_30_fs_weight_zero_cohort_reclaims() {
    check(&FAIR, "ca 1 w0; a 0 w0 re:A @ca; b 0", "b1(b 0 1)", "(a 0 1)", "b1 FAIR");
}

#[test]
fn t3_31_fs_zero_preemptor() {
    check(&FAIR, "root 3; a 1 w0 re:A; b 1", "a1(a 0 1) b1(b 0 1) b2(b 0 1)", "(a 0 1)", "none");
}

#[test]
fn t3_32_fs_zero_vs_zero() {
    check(&FAIR, "root 4; a 1 w0 re:A; b 0 w0", "b1–b3(b 0 1 each)", "(a 0 2)", "b1 FAIR");
}

#[test]
fn t3_33_fs_nonzero() {
    check(&FAIR, "root 4; a 1 re:A; b 0", "b1–b3(b 0 1 each)", "(a 0 2)", "b1 FAIR");
}

#[test]
fn t3_34_fs_second_strategy_kept() {
    check(
        &FAIR,
        "ca 5 w0; p 2 re:A @ca; y 2 @ca; x 1",
        "p1(p 0 2) y1(y 0 2) y2(y 0 2) x1(x 0 1) x2(x 0 1)",
        "(p 0 1)",
        "x1 FAIR, y1 FAIR",
    );
}

#[test]
fn t3_35_fs_return_check() {
    check(&FAIR, "b 0 w2 re:A; c 2 w2 re:A; d 2 w1", "w0(b +1 3) w1(b 0 1)", "(c 0 4)", "none");
}

#[test]
fn t3_36_fs_own_no_parent() {
    let rules = TreeRules { without_root: true, ..TreeRules::default() };
    check_by(&rules, &FAIR, "a 1 in:L", "a1(a 0 1)", "(a +1000 1)", "a1 OWN");
    let alone = trees("a 1 in:L", &rules);
    assert_eq!(alone.forest.path_text(alone.by_name["a"]), "/a");
    let below_root = trees("a 1 in:L", &TreeRules::default());
    assert_eq!(below_root.forest.path_text(below_root.by_name["a"]), "/root/a");
}

/// By A.9 alone both would be taken.
#[test]
fn t3_35_the_one_that_would_return_is_named() {
    let queues = "b 0 w2 re:A; c 2 w2 re:A; d 2 w1";
    let rules = TreeRules::default();
    let mut case = Case::new(queues, "w0(b +1 3) w1(b 0 1)", "(c 0 4)", &rules);
    let (mode, found) = case.decide(&FAIR);
    assert_eq!(
        (mode, found),
        (AssignmentMode::Preempt, Err(SearchRefusal::WouldReturn(case.by_name["w1"])))
    );
}

/// Those that have a place, and those that may not go, are asked about.
#[test]
fn surroundings_have_a_say() {
    struct Around {
        protected: Option<GroupId>,
        place_of: GroupId,
    }
    impl SearchEnvironment for Around {
        fn may_take(&mut self, _: &[EvictionTarget], group: GroupId) -> bool {
            Some(group) != self.protected
        }
        fn has_place(&mut self, taken: &[EvictionTarget]) -> bool {
            taken.iter().any(|target| target.group == self.place_of)
        }
    }
    let running = "b1(b -3 2) b2(b -2 2) b3(b -1 2)";
    for how in [FAIR, SearchOptions::default()] {
        let rules = TreeRules::default();
        let mut case = Case::new("a 3 in:L re:A; b 3 in:L re:A", running, "(a 0 2)", &rules);
        let [b1, b2, b3] = ["b1", "b2", "b3"].map(|name| case.by_name[name]);
        let mut text = |protected: Option<GroupId>, place_of: GroupId| {
            let need = [slots().1[0]];
            let mut around = Around { protected, place_of };
            let found = how.run(&mut case.groups, &case.incoming, &need, &mut around);
            found.map(|targets| case.text(&targets))
        };
        // The first one is given back: the place is elsewhere.
        assert_eq!(text(None, b2), Ok("b2 REC".to_owned()));
        assert_eq!(text(Some(b1), b2), Ok("b2 REC".to_owned()));
        // Who may not be taken alone is no candidate.
        assert_eq!(text(Some(b1), b1), Err(SearchRefusal::Unplaceable));
        assert_eq!(text(Some(b2), b3), Ok("b3 REC".to_owned()));
        // b is within its quota before its third group is reached.
        assert_eq!(text(None, b3), Err(SearchRefusal::NotEnough(None)));
    }
}

//! Cases T.1 of cohort.md: the classic search in flat cohorts.

use vc_cohort::SearchOptions;

use crate::notation::check;

const CLASSIC: SearchOptions = SearchOptions { fair_sharing: None, own: true, others: true };

#[test]
fn t1_01_own_lowest_priority() {
    check(&CLASSIC, "SA", "low(sa -1 2) mid(sa 0 2) high(sa +1 2)", "(sa +1 2)", "low OWN");
}

#[test]
fn t1_02_own_multiple() {
    check(
        &CLASSIC,
        "SA",
        "low(sa -1 2) mid(sa 0 2) high(sa +1 2)",
        "(sa +1 3)",
        "low OWN, mid OWN",
    );
}

#[test]
fn t1_03_own_low_cannot() {
    check(&CLASSIC, "SA", "low(sa -1 3) mid(sa 0 3)", "(sa -1 1)", "none");
}

#[test]
fn t1_04_own_not_enough() {
    check(&CLASSIC, "SA", "low(sa -1 3) mid(sa 0 3)", "(sa 0 4)", "none");
}

#[test]
fn t1_05_own_some_free() {
    check(&CLASSIC, "SA", "low(sa -1 1) mid(sa 0 1) high(sa +1 3)", "(sa +1 2)", "low OWN");
}

#[test]
fn t1_06_own_minimal_set() {
    check(&CLASSIC, "SA", "low(sa -1 1) mid(sa 0 2) high(sa +1 3)", "(sa +1 2)", "mid OWN");
}

#[test]
fn t1_07_own_never() {
    check(&CLASSIC, "sa 6 re:A", "low(sa -1 3)", "(sa +1 4)", "none");
}

#[test]
fn t1_08_own_newer_equal() {
    check(
        &CLASSIC,
        "sa 6 in:LN",
        "wl1(sa +2 2) wl2(sa +1 2 adm+1s) wl3(sa +1 2)",
        "(sa +1 2 made-15s)",
        "wl2 OWN",
    );
}

#[test]
fn t1_09_own_older_equal() {
    check(&CLASSIC, "sa 6 in:LN", "wl1(sa +1 6 made-60s)", "(sa +1 2)", "none");
}

#[test]
fn t1_10_reclaim_from_borrower() {
    check(
        &CLASSIC,
        "C12",
        "c1-low(c1 -1 3) c2-mid(c2 0 3) c2-high(c2 +1 6)",
        "(c1 +1 3)",
        "c2-mid REC",
    );
}

#[test]
fn t1_11_reclaim_zero_request() {
    check(
        &CLASSIC,
        "C12",
        "c1-low(c1 -1 3+3Gi) c2-mid(c2 0 3) c2-high(c2 +1 6)",
        "(c1 +1 3+0Gi)",
        "c2-mid REC",
    );
}

#[test]
fn t1_12_reclaim_nobody_borrows() {
    check(&CLASSIC, "C12", "c1-high(c1 +1 4) c2-low-1(c2 -1 4)", "(c1 +1 4)", "none (Fit)");
}

#[test]
fn t1_13_reclaim_not_enough() {
    check(
        &CLASSIC,
        "C12",
        "c1-high(c1 +1 4) c2-low-1(c2 -1 4) c2-low-2(c2 -1 4)",
        "(c1 +1 4)",
        "none",
    );
}

#[test]
fn t1_14_local_while_borrowing_other() {
    check(
        &CLASSIC,
        "C12",
        "c1-low(c1 -1 4) c2-low-1(c2 -1 4) c2-high-2(c2 +1 4)",
        "(c1 +1 4+5Gi)",
        "c1-low OWN",
    );
}

#[test]
fn t1_15_local_while_borrowing_same() {
    check(
        &CLASSIC,
        "C12",
        "c1-med(c1 0 4) c1-low(c1 -1 4) c2-low-1(c2 -1 4)",
        "(c1 +1 4)",
        "c1-low OWN",
    );
}

#[test]
fn t1_16_local_no_limits() {
    check(
        &CLASSIC,
        "D12",
        "d1-med(d1 0 4) d1-low(d1 -1 4) d2-low-1(d2 -1 4)",
        "(d1 +1 4)",
        "d1-low OWN",
    );
}

#[test]
fn t1_17_local_fallback_with_cohort_candidates() {
    check(
        &CLASSIC,
        "C12",
        "c1-med(c1 0 4) c2-low-1(c2 -1 5) c2-low-2(c2 -1 1) c2-low-3(c2 -1 1)",
        "(c1 +1 2+5Gi)",
        "c1-med OWN",
    );
}

#[test]
fn t1_18_one_queue_cohort() {
    check(
        &CLASSIC,
        "l1 6/12 in:L re:L",
        "l1-med(l1 0 4) l1-low(l1 -1 2)",
        "(l1 +1 4)",
        "l1-med OWN",
    );
}

#[test]
fn t1_19_reclaim_lower_equal_priority() {
    check(&CLASSIC, "C12", "c1(c1 0 2) c2-1(c2 0 4) c2-2(c2 0 4)", "(c1 0 4)", "none");
}

#[test]
fn t1_20_reclaim_any_equal_priority() {
    check(&CLASSIC, "C12", "c1-1(c1 0 4) c1-2(c1 +1 4) c2(c2 0 2)", "(c2 0 4)", "c1-1 REC");
}

#[test]
fn t1_21_mixed_own_and_cohort() {
    check(
        &CLASSIC,
        "C12",
        "c1-low(c1 -1 3) c1-mid(c1 0 2) c2-low(c2 -1 3) c2-mid(c2 0 4)",
        "(c1 0 4)",
        "c1-low OWN, c2-low REC",
    );
}

#[test]
fn t1_22_borrow_lower() {
    check(
        &CLASSIC,
        "SH",
        "a-be-low(a-be -1 10) b-be-low(b-be -1 1)",
        "(a-std 0 10)",
        "a-be-low BORR",
    );
}

#[test]
fn t1_23_borrow_above_threshold() {
    check(&CLASSIC, "SH", "b-std-1(b-std +1 10)", "(a-std +2 10)", "none");
}

#[test]
fn t1_24_borrow_threshold_no_borrow() {
    check(&CLASSIC, "SH", "b-std-1(b-std +1 13)", "(a-std +2 1)", "b-std-1 REC");
}

#[test]
fn t1_25_borrow_own_never() {
    check(&CLASSIC, "SH", "a-std-1(a-std +1 13)", "(a-std +2 1)", "none");
}

#[test]
fn t1_26_borrow_own_only_above_nominal() {
    check(
        &CLASSIC,
        "SH",
        "a-std-1(a-std +1 10) a-std-2(a-std +1 1) b-std-1(b-std +1 1) b-std-2(b-std +2 1)",
        "(b-std +3 1)",
        "b-std-1 OWN",
    );
}

#[test]
fn t1_27_borrow_own_and_others() {
    check(
        &CLASSIC,
        "SH",
        "b-std-high(b-std +2 10) b-std-mid(b-std +1 1) a-be-low(a-be -1 1) a-be-lower(a-be -2 1)",
        "(b-std +2 2)",
        "a-be-lower BORR, b-std-mid OWN",
    );
}

#[test]
fn t1_28_lend_reclaim() {
    check(
        &CLASSIC,
        "LE",
        "lend1-low(lend1 -1 3) lend2-mid(lend2 0 3) lend2-high(lend2 +1 4)",
        "(lend1 +1 3)",
        "lend2-mid REC",
    );
}

#[test]
fn t1_29_lend_mixed() {
    check(
        &CLASSIC,
        "LE",
        "lend1-low(lend1 -1 3) lend1-mid(lend1 0 2) lend2-low(lend2 -1 3) lend2-mid(lend2 0 4)",
        "(lend1 0 4)",
        "lend1-low OWN, lend2-low REC",
    );
}

#[test]
fn t1_30_lend_exceeds_potential() {
    check(&CLASSIC, "LE", "lend2-low(lend2 -1 10)", "(lend1 0 9)", "none (NoFit)");
}

#[test]
fn t1_31_own_when_over_nominal() {
    check(
        &CLASSIC,
        "T3",
        "a1(a -2 1) a2(a -2 1) a3(a -1 1) b1–b3(b 0 1 each)",
        "(a 0 2)",
        "a1 OWN, a2 OWN",
    );
}

#[test]
fn t1_32_own_when_over_nominal_two_res() {
    check(
        &CLASSIC,
        "T3",
        "a1(a -2 1+1Gi) a2(a -2 1+1Gi) a3(a -1 1+1Gi) b1–b3(b 0 1+1Gi each)",
        "(a 0 2+2Gi)",
        "a1 OWN, a2 OWN",
    );
}

#[test]
fn t1_33_own_when_over_nominal_one_res() {
    check(
        &CLASSIC,
        "T3",
        "a1(a -2 1) a2(a -2 1) a3(a -1 1) b1–b3(b 0 1 each)",
        "(a 0 2+2Gi)",
        "a1 OWN, a2 OWN",
    );
}

#[test]
fn t1_34_cohort_when_under_nominal() {
    check(&CLASSIC, "T3", "a1(a -1 1) b1–b4(b 0 1 each) b5(b -1 1)", "(a 0 2)", "a1 OWN, b5 REC");
}

#[test]
fn t1_35_long_range() {
    check(
        &CLASSIC,
        "left 10; right –; cq-left 10 re:A @left; cq-right 0 @right",
        "v(cq-right 0 5)",
        "(cq-left 0 8)",
        "v REC",
    );
}

#[test]
fn t1_36_too_big_for_nominal() {
    check(&CLASSIC, "a 2 in:L re:A; b 2", "a1(a -1 1) b1(b -1 1)", "(a +1 3)", "none (NoFit)");
}

#[test]
fn t1_37_evicted_first() {
    check(&CLASSIC, "SA", "low(sa -1 3) mid(sa 0 3 Evicted)", "(sa +1 3)", "mid OWN");
}

#[test]
fn t1_38_newest_admitted_first() {
    check(
        &CLASSIC,
        "SA",
        "old(sa 0 2 adm-10s) cur(sa 0 2) young(sa 0 2 adm+10s)",
        "(sa +1 2)",
        "young OWN",
    );
}

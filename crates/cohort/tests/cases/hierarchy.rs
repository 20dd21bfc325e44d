//! Cases T.2 of cohort.md: the classic search in trees of cohorts.

use vc_cohort::SearchOptions;

use crate::notation::check;

const CLASSIC: SearchOptions = SearchOptions { fair_sharing: None, own: true, others: true };

#[test]
fn t2_01_hier_advantage() {
    check(
        &CLASSIC,
        "c 2; q – in:L re:A @c; q-bor – in:L re:A",
        "adm2(q-bor 0 2)",
        "(q 0 2)",
        "adm2 REC",
    );
}

#[test]
fn t2_02_hier_avoid_nominal() {
    check(
        &CLASSIC,
        "c 2; q-nom 2 in:L re:A; q – in:L re:A @c; q-bor – in:L re:A",
        "adm1(q-nom -10 2) adm2(q-bor 0 2)",
        "(q 0 2)",
        "adm2 REC",
    );
}

#[test]
fn t2_03_hier_multiple() {
    check(
        &CLASSIC,
        "c 2; q – in:L re:A @c; q-bor – in:L re:A",
        "adm1(q-bor +1 1) adm2(q-bor +2 1)",
        "(q 0 2)",
        "adm1 REC, adm2 REC",
    );
}

#[test]
fn t2_04_hier_cohort_and_own() {
    check(
        &CLASSIC,
        "c 3; q – in:L re:A bo:L≤0 @c; q-same – in:L re:A @c",
        "keep(q-same +1 1) goes(q-same 0 1) own(q -1 1)",
        "(q +1 2)",
        "goes BORR, own OWN",
    );
}

#[test]
fn t2_05_hier_prefer_hier() {
    check(
        &CLASSIC,
        "c 2; q – in:L re:A @c; q-bor – in:L re:A",
        "bor(q-bor +1 1) same(q -2 1)",
        "(q 0 1)",
        "bor REC",
    );
}

#[test]
fn t2_06_hier_forced_priority() {
    check(
        &CLASSIC,
        "c 2; q – in:L re:A bo:L≤0 @c; q-nom 2 in:L re:A; q-same – in:L re:A @c",
        "nom(q-nom -10 2) same(q-same -1 2)",
        "(q 0 2)",
        "same BORR",
    );
}

#[test]
fn t2_07_hier_own_nominal() {
    check(
        &CLASSIC,
        "c 6; q 4 in:L re:A @c; q-bor – in:L re:A; q-same – in:L re:A @c",
        "bor(q-bor +10 3) same(q-same +10 3)",
        "(q 0 4)",
        "bor REC, same REC",
    );
}

#[test]
fn t2_08_hier_and_priority() {
    check(
        &CLASSIC,
        "root 5; c 4; q – in:L re:L bo:L≤0 @c; q-bor – in:L re:A; q-same – in:L re:A @c",
        "bor(q-bor -1 2) same(q-same -1 1) keep(q-bor +1 2)",
        "(q 0 3)",
        "bor REC, same BORR",
    );
}

#[test]
fn t2_09_hier_and_own() {
    check(
        &CLASSIC,
        "root 5; c 4; q – in:L re:L bo:L≤0 @c; q-bor – in:L re:A; q-same – in:L re:A @c",
        "bor(q-bor -1 2) own(q -1 1) keep(q-bor +1 2)",
        "(q 0 3)",
        "bor REC, own OWN",
    );
}

#[test]
fn t2_10_hier_lowest_of_borrowers() {
    check(
        &CLASSIC,
        "c 3; q – in:L re:A @c; q-bor – in:L re:A; q-nom 2 in:L re:A",
        "b8(q-bor +8 1) b9(q-bor +9 1) b10(q-bor +9 1) nom(q-nom -2 2)",
        "(q 0 1)",
        "b8 REC",
    );
}

#[test]
fn t2_11_hier_pruned_infeasible() {
    check(
        &CLASSIC,
        "c 2; c-oth 2; q-oth – in:L re:A @c-oth; q – in:L re:A @c; q-same – in:L re:A @c",
        "o1(q-oth -10 1) o2(q-oth -10 1) same(q-same 0 2)",
        "(q 0 2)",
        "none (NoFit)",
    );
}

#[test]
fn t2_12_hier_two_resources() {
    check(
        &CLASSIC,
        "root 7+4Gi; c 4+4Gi; q – in:L re:A @c; q-bor – in:L re:A; q-same – in:L re:A @c",
        "bor(q-bor 0 3+1Gi) same(q-same -2 1+3Gi)",
        "(q -2 2+1Gi)",
        "bor REC",
    );
}

#[test]
fn t2_13_hier_evicted_first() {
    check(
        &CLASSIC,
        "c 2; q – in:L re:A bo:L≤0 @c; q-bor – in:L re:A; q-same – in:L re:A @c",
        "bor(q-bor -10 1) ev(q-same -1 1 Evicted)",
        "(q 0 1)",
        "ev BORR",
    );
}

#[test]
fn t2_14_hier_lending() {
    check(
        &CLASSIC,
        "c 5 g1; q 3 g1 in:L re:A @c; q-bor – in:L re:A",
        "bor(q-bor 0 4)",
        "(q -2 5)",
        "bor REC",
    );
}

#[test]
fn t2_15_hier_complex() {
    check(
        &CLASSIC,
        "c11 24; c12 4; c21 12 @c11; c22 4 @c11; c23 4 @c11; c31 4 @c21; c32 4 @c21; q1 – \
         in:L re:A @c12; q2 – in:L re:A @c23; q3 – in:L re:A @c22; q4 – in:L re:A @c32; q5 – \
         in:L re:A @c31",
        "b1(q1 -6 4) b2(q1 -5 4) b3(q2 -9 4) b4(q2 -10 4) b5(q3 -4 4) b6(q3 -3 3) b7(q4 +4 2) \
         b8(q4 +2 3)",
        "(q5 -2 7)",
        "b1 REC, b4 REC",
    );
}

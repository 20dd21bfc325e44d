//! Cases T.4 of cohort.md: share values.

use vc_cohort::{Groups, QuotaDemand, TreeRules};

use crate::notation::{demand, trees};

/// Published shares of the nodes, when the queues use so much.
fn shares(queues: &str, uses: &[(&str, &str)], nodes: &[&str], rules: &TreeRules) -> Vec<i64> {
    let built = trees(queues, rules);
    let mut forest = built.forest.clone();
    for (queue, size) in uses {
        let demand: QuotaDemand = demand(size);
        forest.add(built.by_name[*queue], &demand);
    }
    nodes.iter().map(|name| forest.share(built.by_name[*name]).published()).collect()
}

fn check(queues: &str, uses: &[(&str, &str)], nodes: &[&str], expected: &[i64]) {
    assert_eq!(shares(queues, uses, nodes, &TreeRules::default()), expected, "{queues} {uses:?}");
}

const TWO: &str = "q 2+5gpu; lender 8+5gpu";

#[test]
fn t4_01_the_dominant_resource_counts() {
    check(TWO, &[("q", "3+7gpu")], &["q", "root"], &[200, 0]);
}

#[test]
fn t4_02_what_is_not_borrowed_does_not_count() {
    check(TWO, &[("q", "3+3gpu")], &["q", "root"], &[100, 0]);
}

#[test]
fn t4_03_within_nominal() {
    check(TWO, &[("q", "1+2gpu")], &["q", "root"], &[0, 0]);
    let built = trees(TWO, &TreeRules::default());
    let mut groups = Groups::new(built.forest.clone());
    assert!(!groups.forest().borrows(built.by_name["q"]));
    let group = vc_cohort::Group {
        queue: built.by_name["q"],
        priority: 0,
        created_micros: 0,
        admitted_micros: 0,
        uid: "g".into(),
        evicting: false,
        holds: demand("3"),
    };
    let id = groups.insert(group);
    assert!(groups.forest().borrows(built.by_name["q"]));
    groups.take(id);
    assert!(!groups.holds(id) && !groups.forest().borrows(built.by_name["q"]));
    groups.put_back(id);
    assert!(groups.holds(id) && groups.forest().borrows(built.by_name["q"]));
    groups.change(id, demand("2"));
    assert!(!groups.forest().borrows(built.by_name["q"]));
    groups.keep(built.by_name["q"], &demand("1"));
    assert!(groups.forest().borrows(built.by_name["q"]));
    groups.let_go(built.by_name["q"], &demand("1"));
    groups.take(id);
    groups.change(id, demand("9"));
    assert!(!groups.holds(id) && !groups.forest().borrows(built.by_name["q"]));
}

#[test]
fn t4_04_rounded_up() {
    check("q 500gpu; lender 1000gpu", &[("q", "501gpu")], &["q"], &[1]);
}

#[test]
fn t4_05_a_large_weight() {
    check("q 500gpu w300; lender 1000gpu", &[("q", "800gpu")], &["q"], &[1]);
}

#[test]
fn t4_06_weights() {
    for (weight, expected) in [("2", 100), ("0.5", 400), ("0", i64::MAX)] {
        let queues = format!("q 5gpu w{weight}; lender 5gpu");
        check(&queues, &[("q", "7gpu")], &["q"], &[expected]);
    }
}

#[test]
fn t4_07_what_nobody_lends_does_not_count_but_is_borrowed() {
    let queues = "q 2+2gpu g2gpu; lender 8+64gpu g64gpu";
    check(queues, &[("q", "5+5gpu")], &["q"], &[300]);
    let built = trees(queues, &TreeRules::default());
    let mut forest = built.forest.clone();
    forest.add(built.by_name["q"], &demand("2+3gpu"));
    let q = built.by_name["q"];
    assert_eq!((forest.share(q).published(), forest.borrows(q)), (0, true));
}

#[test]
fn t4_08_a_child_lends_on() {
    let queues = "root 50gpu; child 5gpu w2; q 5gpu @child";
    check(queues, &[("q", "10gpu")], &["q", "child", "root"], &[100, 50, 0]);
}

#[test]
fn t4_09_a_child_that_may_not_use_all() {
    let queues = "root 50gpu; child –/10gpu; q 0gpu @child";
    check(queues, &[("q", "10gpu")], &["q", "child"], &[1000, 200]);
}

#[test]
fn t4_10_a_top_has_none() {
    let rules = TreeRules { without_root: true, ..TreeRules::default() };
    assert_eq!(shares("q 2gpu", &[("q", "7gpu")], &["q"], &rules), [0]);
}

//! Cases T.5 of cohort.md: quota arithmetic, and edge cases of B.9.

use vc_cohort::{
    AssignmentMode, Forest, NodeQuota, NodeSpec, Policy, QuotaAmount, QuotaForest, SearchOptions,
    TreeRules,
};
use vc_cohort::{ForestError, UNLIMITED, is_unlimited};

use crate::notation::{check_by, demand, queues, slots, trees};

struct World {
    built: QuotaForest,
    forest: Forest,
}

impl World {
    fn new(queues: &str) -> Self {
        Self::by(queues, &TreeRules::default())
    }

    fn by(queues: &str, rules: &TreeRules) -> Self {
        let built = trees(queues, rules);
        Self { forest: built.forest.clone(), built }
    }

    fn uses(mut self, queue: &str, size: &str) -> Self {
        self.forest.add(self.built.by_name[queue], &demand(size));
        self
    }

    /// In whole cores.
    fn available(&self, queue: &str) -> QuotaAmount {
        self.forest.available(self.built.by_name[queue], slots().1[0]) / 1000
    }

    fn potential(&self, queue: &str) -> QuotaAmount {
        self.forest.potential(self.built.by_name[queue], slots().1[0]) / 1000
    }

    fn mode(&self, queue: &str, size: &str) -> AssignmentMode {
        self.forest.classify(self.built.by_name[queue], &demand(size), false).mode
    }
}

#[test]
fn t5_01_lend_available() {
    let world = World::new("LE").uses("lend2", "7");
    let potential = (world.potential("lend1"), world.potential("lend2"));
    assert_eq!((world.available("lend1"), potential), (5, (8, 10)));
}

/// Whatever of it is lent or kept, a cohort shows what it has and what is in use below it.
#[test]
fn totals_count_what_is_kept_too() {
    let built = trees("top 10; a 4 g3 @top; b 2 @top; other 5", &TreeRules::default());
    let mut forest = built.forest.clone();
    let (node, cpu) = (|name: &str| built.by_name[name], slots().1[0]);
    forest.add(node("a"), &demand("2"));
    forest.add(node("b"), &demand("6"));
    let shown = ["top", "a", "b", "other", "root"]
        .map(|name| (forest.total(node(name), cpu) / 1000, forest.used(node(name), cpu) / 1000));
    assert_eq!(shown, [(10, 8), (4, 2), (2, 6), (5, 0), (15, 8)]);
    assert_eq!(forest.usage(node("top"), cpu), 6_000, "what a keeps is its own business");
}

/// The limit that is exceeded, in whole cores: `node limit used asked`.
fn exceeded(world: &World, queue: &str, cores: QuotaAmount) -> Option<String> {
    let (node, cpu) = (world.built.by_name[queue], slots().1[0]);
    let found = world.forest.exceeded_limit(node, cpu, cores * 1000)?;
    let name = world.forest.name(found.node);
    let amounts = [found.limit, found.used, found.asked].map(|amount| amount / 1000);
    Some(format!("{name} {} {} {}", amounts[0], amounts[1], amounts[2]))
}

#[test]
fn the_nearest_limit_that_is_exceeded() {
    let some = |text: &str| Some(text.to_owned());
    let world = World::new(CEILING);
    assert_eq!(exceeded(&world, "x", 6), None);
    assert_eq!(exceeded(&world, "x", 7), some("p 6 0 7"));
    let world = world.uses("y", "2").uses("z", "10");
    assert_eq!(exceeded(&world, "x", 2), None);
    assert_eq!(exceeded(&world, "x", 3), some("root 14 12 3"), "x and y may use 6, root has 14");
    assert_eq!(exceeded(&world, "x", 5), some("p 6 2 5"));
    // What a keeps is asked of nobody: 2 of its 3.
    let world = World::new("a 4/4 g3; b 2").uses("a", "1").uses("b", "3");
    assert_eq!(exceeded(&world, "a", 3), some("root 3 3 1"));
    assert_eq!(exceeded(&world, "a", 4), some("a 4 1 4"));
    assert_eq!(exceeded(&world, "b", 1), some("root 3 3 1"));
}

#[test]
fn t5_02_parent_own_quota() {
    for (parent, own, potential) in [("10", 3000, 10), ("–", 0, 7)] {
        let world = World::new(&format!("p {parent}; x 3 @p; y 4 @p"));
        let p = world.built.by_name["p"];
        assert_eq!(world.forest.nominal(p, slots().1[0]), own);
        assert_eq!(world.potential("x"), potential);
    }
}

const CEILING: &str = "p 4/6; x 2 @p; y 2 @p; z 10";

#[test]
fn t5_03_parent_ceiling() {
    assert_eq!(World::new(CEILING).available("x"), 6);
    assert_eq!(World::new(CEILING).uses("x", "4").available("y"), 2);
    assert_eq!(World::new(CEILING).uses("x", "6").available("y"), 0);
    assert_eq!(World::new(CEILING).uses("z", "10").available("x"), 4);
}

#[test]
fn t5_04_parent_ceiling_negative() {
    let queues = "p –/3; x 2 @p; y 2 @p";
    assert_eq!(World::new(queues).uses("x", "2").available("y"), 1);
    // The top of a tree is held to its capability, too.
    let rules = TreeRules { without_root: true, ..TreeRules::default() };
    assert_eq!(World::by(queues, &rules).uses("x", "2").available("y"), 1);
    assert_eq!(World::by(queues, &rules).potential("y"), 3);
}

#[test]
fn t5_05_capability_only() {
    let world = World::new("x –/4gpu; y –").uses("x", "3gpu").uses("y", "900gpu");
    let gpu = slots().1[2];
    let (x, y) = (world.built.by_name["x"], world.built.by_name["y"]);
    assert_eq!(world.forest.available(x, gpu), 1);
    assert!(is_unlimited(world.forest.available(y, gpu)));
    assert_eq!(world.forest.share(x).published(), 0);
    assert!(world.forest.is_within_nominal(x, &slots().1), "a ceiling makes nobody borrow");
    assert!(!world.forest.borrows(x) && !world.forest.borrows(y));
    assert_eq!(
        (world.mode("x", "1gpu"), world.mode("x", "2gpu")),
        (AssignmentMode::Fit, AssignmentMode::NoFit)
    );
    // A queue that stands alone owns what its capability says.
    let rules = TreeRules { without_root: true, ..TreeRules::default() };
    let alone = World::by("x –/4gpu", &rules).uses("x", "3gpu");
    assert_eq!(
        (alone.mode("x", "1gpu"), alone.mode("x", "5gpu")),
        (AssignmentMode::Fit, AssignmentMode::NoFit)
    );
}

#[test]
fn t5_06_unmanaged() {
    let world = World::new("x 1; y 1").uses("x", "1+900gpu");
    assert_eq!(world.mode("x", "900gpu"), AssignmentMode::Fit);
    let x = world.built.by_name["x"];
    assert!(world.forest.is_within_nominal(x, &slots().1), "it never makes anybody borrow");
    assert!(!world.forest.borrows(x));
}

#[test]
fn t5_07_root_quota_cluster() {
    let queues = "x 4 re:A; default –";
    let cluster = Some(vec![20_000, 0, 0]);
    let rules = TreeRules { cluster, ..TreeRules::default() };
    let world = World::by(queues, &rules);
    assert_eq!((world.available("default"), world.available("x")), (20, 20));
    let classic = SearchOptions::default();
    check_by(&rules, &classic, queues, "d(default 0 20)", "(x 0 4)", "d REC");
    assert_eq!(World::new(queues).available("default"), 4);
}

#[test]
fn parents_that_are_missing_or_go_round_touch_nobody_else() {
    let built = trees("x 2 @nope; a 3 @b; b 3 @a; c 3 @a; z 4", &TreeRules::default());
    assert_eq!(built.missing, ["nope".into()]);
    assert_eq!(built.inactive, ["a".into(), "b".into(), "c".into()]);
    let names: Vec<&str> = built.by_name.keys().map(|name| &**name).collect();
    assert_eq!(names, ["nope", "root", "x", "z"]);
    let cpu = slots().1[0];
    let available = |name: &str| built.forest.available(built.by_name[name], cpu);
    assert_eq!((available("x"), available("z")), (2000, 4000));
    assert_eq!(built.forest.path_text(built.by_name["x"]), "/nope/x");
}

#[test]
fn amounts_that_contradict_each_other_give_a_tree() {
    // A guarantee above the deserved amount, a capability below both.
    let world = World::new("x 2/1 g3; y 4 g1; p 1; q 5 @p");
    assert_eq!(world.potential("x"), 1);
    assert_eq!(world.potential("p"), 5 + 3);
    assert_eq!(world.available("y"), 4 + 5);
    let zero = World::new("x 2/0; y 3");
    assert_eq!(zero.potential("x"), 5, "a capability of 0 cpu is none");
}

/// In Kueue's words: nominal 6, lending at most 4 of it, borrowing at most 1.
#[test]
fn limits_of_kueue() {
    let node = |name: &str, parent, quota: NodeQuota| NodeSpec {
        name: name.into(),
        parent,
        is_queue: parent.is_some(),
        weight: 1.0,
        queue_priority: 0,
        policy: Policy::default(),
        quotas: vec![quota],
    };
    let (all, [cpu, ..]) = slots();
    let of_limits = |nominal, borrowing, lending| NodeQuota::of_limits(nominal, borrowing, lending);
    let undeclared = NodeQuota { declared: false, ..NodeQuota::default() };
    let specs = [
        node("cohort", None, of_limits(3, None, None)),
        node("a", Some(0), of_limits(6, Some(1), Some(4))),
        node("b", Some(0), of_limits(6, None, Some(0))),
        node("c", Some(0), undeclared),
    ];
    let forest = Forest::new(all.clone(), &specs).unwrap();
    let nodes: Vec<_> = forest.nodes().collect();
    let potential: Vec<QuotaAmount> =
        nodes.iter().map(|&node| forest.potential(node, cpu)).collect();
    assert_eq!(potential, [7, 7, 13, 7]);
    let one = vc_cohort::QuotaDemand::new([(cpu, 1)]);
    assert_eq!(forest.classify(nodes[2], &one, false).mode, AssignmentMode::Fit);
    assert_eq!(forest.classify(nodes[3], &one, false).mode, AssignmentMode::NoFit);
    assert!(is_unlimited(forest.borrowing(nodes[2], cpu)) && forest.borrowing(nodes[1], cpu) == 1);
    assert_eq!(forest.nominal(nodes[1], cpu), 6);
    assert_eq!(NodeQuota::of_limits(i64::MAX, None, None).nominal, UNLIMITED);

    let round =
        [node("a", Some(1), NodeQuota::default()), node("b", Some(0), NodeQuota::default())];
    let round = round.map(|spec| NodeSpec { is_queue: false, ..spec });
    let error = Forest::new(all.clone(), &round).unwrap_err();
    assert_eq!(error, ForestError::Cycle("a".into()));
    let below_queue =
        [specs[0].clone(), specs[1].clone(), node("d", Some(1), NodeQuota::default())];
    let error = Forest::new(all, &below_queue).unwrap_err();
    assert_eq!(error, ForestError::Parent("d".into()));
}

#[test]
fn every_queue_of_the_notation_is_read() {
    let read = queues("a-std 1/13 re:L bo:L≤0; shared 10");
    assert_eq!(read[0].capability[0], Some(13_000));
    assert_eq!((read[1].deserved[0], read[1].weight), (Some(10_000), 1.0));
}

/// A thousand queues, five levels below root: a change is noted where the queue's own quota does not
/// suffice, at most once per level.
#[test]
fn a_change_touches_the_path_only() {
    let parent = |number: usize| match number {
        0 => String::new(),
        _ => format!(" @q{}", (number - 1) / 4),
    };
    let queue = |number: usize| format!("q{number} 2 g1{}", parent(number));
    let text: Vec<String> = (0..1_000).map(queue).collect();
    let mut forest = trees(&text.join(";"), &TreeRules::default()).forest;
    let cpu = slots().1[0];
    let uses = |forest: &Forest| -> Vec<QuotaAmount> {
        forest.nodes().map(|node| forest.usage(node, cpu)).collect()
    };
    let leaves: Vec<_> = forest.nodes().filter(|&node| forest.is_queue(node)).collect();
    assert!(700 < leaves.len());
    for (asked, whole_way) in [("1", false), ("2", true), ("50", true)] {
        for &leaf in leaves.iter().step_by(37) {
            let before = uses(&forest);
            forest.add(leaf, &demand(asked));
            let after = uses(&forest);
            let changed = forest.nodes().filter(|node| before[node.index()] != after[node.index()]);
            let changed: Vec<_> = changed.collect();
            let path: Vec<_> = forest.path(leaf).collect();
            assert!(path.len() <= 7 && changed.iter().all(|node| path.contains(node)));
            let n_touched = if whole_way { 2..=path.len() } else { 1..=1 };
            assert!(n_touched.contains(&changed.len()), "{asked}: {changed:?}");
            forest.remove(leaf, &demand(asked));
            assert_eq!(uses(&forest), before);
        }
    }
}

//! Laws on small random trees, against the definitions and against trying everything: quota
//! arithmetic, what targets may be, that sets are minimal.

use proptest::prelude::*;
use vc_cohort::{
    AssignmentMode, EvictionTarget, Forest, Group, GroupId, Groups, Policy, PreemptionReason,
    QuotaAmount, QuotaDemand, QuotaNode, QuotaPreemptor, ReclaimWithin, SearchOptions, Slot,
    WithinQueue,
};

use crate::notation::slots;
use crate::random::{FAIR, Row, Shape, admitted, decide, group, preemptor, rows, shapes, uses};

/// The definition of A.2, from the groups up.
fn usage_by_definition(
    groups: &Groups,
    ids: &[GroupId],
    node: QuotaNode,
    slot: Slot,
) -> QuotaAmount {
    let forest = groups.forest();
    let own = ids.iter().filter(|&&id| groups.holds(id) && groups.get(id).queue == node);
    let own: QuotaAmount = own.map(|&id| groups.get(id).holds.get(slot)).sum();
    let children = forest.nodes().filter(|&child| forest.parent(child) == Some(node));
    let lent = children.map(|child| {
        let usage = usage_by_definition(groups, ids, child, slot);
        (usage - forest.local(child, slot)).max(0)
    });
    own + lent.sum::<QuotaAmount>()
}

/// The most that a node may use in the end.
fn limit(forest: &Forest, node: QuotaNode, slot: Slot) -> QuotaAmount {
    let borrowing = forest.borrowing(node, slot);
    let is_top = forest.parent(node).is_none();
    forest.subtree(node, slot) + if is_top { borrowing.min(0) } else { borrowing }
}

fn keeps_limits(forest: &Forest, slot: Slot) -> bool {
    forest.nodes().all(|node| forest.usage(node, slot) <= limit(forest, node, slot))
}

/// A capability below what the children keep for themselves is held otherwise: by what these may
/// use of it.
fn can_keep_limits(forest: &Forest, slot: Slot) -> bool {
    forest.nodes().all(|node| 0 <= limit(forest, node, slot))
}

/// By trying every amount.
fn available_by_trying(forest: &Forest, queue: QuotaNode, slot: Slot, most: i64) -> QuotaAmount {
    let fits = |&amount: &i64| {
        let mut with = forest.clone();
        with.add(queue, &QuotaDemand::new([(slot, amount)]));
        keeps_limits(&with, slot)
    };
    (0..=most).rev().find(fits).map_or(0, QuotaAmount::from)
}

fn fits(groups: &Groups, preemptor: &QuotaPreemptor, may_borrow: bool) -> bool {
    let forest = groups.forest();
    preemptor.demand.iter().all(|(slot, amount)| {
        let used = forest.usage(preemptor.queue, slot) + amount;
        (may_borrow || used <= forest.nominal(preemptor.queue, slot))
            && amount <= forest.available(preemptor.queue, slot)
    })
}

/// With these gone, all but one.
fn fits_without(
    groups: &mut Groups,
    preemptor: &QuotaPreemptor,
    targets: &[EvictionTarget],
    spared: Option<usize>,
    may_borrow: bool,
) -> bool {
    let gone = targets.iter().enumerate().filter(|&(at, _)| Some(at) != spared);
    let gone: Vec<GroupId> = gone.map(|(_, target)| target.group).collect();
    gone.iter().for_each(|&id| groups.take(id));
    let fits = fits(groups, preemptor, may_borrow);
    gone.iter().for_each(|&id| groups.put_back(id));
    fits
}

/// The policies of the preemptor's queue, and that nobody is taken from a queue within its quota.
fn check_allowed(
    groups: &Groups,
    policy: Policy,
    preemptor: &QuotaPreemptor,
    need: &[Slot],
    target: &EvictionTarget,
) -> Result<(), TestCaseError> {
    let group = groups.get(target.group);
    let is_lower = group.priority < preemptor.priority;
    prop_assert!(group.holds.uses_any(need));
    if target.reason == PreemptionReason::InClusterQueue {
        prop_assert_eq!(group.queue, preemptor.queue);
        let is_newer = group.priority == preemptor.priority
            && preemptor.created_micros < group.created_micros
            && policy.within_queue == WithinQueue::LowerOrNewerEqualPriority;
        prop_assert!(policy.within_queue != WithinQueue::Never && (is_lower || is_newer));
        return Ok(());
    }
    prop_assert!(group.queue != preemptor.queue);
    prop_assert!(!groups.forest().is_within_nominal(group.queue, need));
    let may_reclaim = match policy.reclaim_within {
        ReclaimWithin::Never => false,
        ReclaimWithin::LowerPriority => is_lower,
        ReclaimWithin::Any => true,
    };
    prop_assert!(may_reclaim);
    Ok(())
}

fn policy_of(shape: &Shape, groups: &Groups, queue: QuotaNode) -> Policy {
    let name = groups.forest().name(queue);
    let found = shape.queues.iter().find(|queue| queue.name == *name);
    found.map(|queue| queue.policy).unwrap_or_default()
}

/// The ancestors, or nodes themselves, just below what both have in common.
fn sides(forest: &Forest, l: QuotaNode, r: QuotaNode) -> (QuotaNode, QuotaNode) {
    let above: Vec<QuotaNode> = forest.path(l).collect();
    let mut side = r;
    for node in forest.path(r) {
        if let Some(at) = above.iter().position(|&other| other == node) {
            return (above[at - 1], side);
        }
        side = node;
    }
    panic!("they are in different trees");
}

fn check_classic(shape: &Shape, rows: &[Row], incoming: &Row) -> Result<(), TestCaseError> {
    let (mut groups, _) = admitted(shape, rows, true);
    let built = shape.built();
    let preemptor = preemptor(&group(&shape.leaves(&built), rows.len(), incoming));
    let before = uses(groups.forest());
    let (mode, need, found) = decide(&mut groups, &preemptor, &SearchOptions::default());
    prop_assert_eq!(uses(groups.forest()), before);
    prop_assert_eq!(mode == AssignmentMode::Fit, fits(&groups, &preemptor, true));
    let Ok(targets) = found else { return Ok(()) };
    let policy = policy_of(shape, &groups, preemptor.queue);
    for target in &targets {
        check_allowed(&groups, policy, &preemptor, &need, target)?;
    }
    let is_minimal = |groups: &mut Groups, may_borrow: bool| {
        let mut without = |spared| fits_without(groups, &preemptor, &targets, spared, may_borrow);
        without(None) && (0..targets.len() - 1).all(|at| !without(Some(at)))
    };
    prop_assert!(is_minimal(&mut groups, true) || is_minimal(&mut groups, false));
    targets.iter().for_each(|target| groups.take(target.group));
    groups.insert(Group {
        queue: preemptor.queue,
        priority: 0,
        created_micros: 0,
        admitted_micros: 0,
        uid: "in".into(),
        evicting: false,
        holds: preemptor.demand.clone(),
    });
    for slot in preemptor.demand.slots() {
        let forest = groups.forest();
        let queue = preemptor.queue;
        prop_assert!(forest.usage(queue, slot) <= forest.potential(queue, slot));
        prop_assert!(keeps_limits(forest, slot) || !can_keep_limits(forest, slot));
    }
    Ok(())
}

fn check_fair(shape: &Shape, rows: &[Row], incoming: &Row) -> Result<(), TestCaseError> {
    let (mut groups, _) = admitted(shape, rows, true);
    let built = shape.built();
    let preemptor = preemptor(&group(&shape.leaves(&built), rows.len(), incoming));
    let before = uses(groups.forest());
    let (_, need, found) = decide(&mut groups, &preemptor, &FAIR);
    prop_assert_eq!(uses(groups.forest()), before);
    let Ok(targets) = found else { return Ok(()) };
    let policy = policy_of(shape, &groups, preemptor.queue);
    for target in &targets {
        check_allowed(&groups, policy, &preemptor, &need, target)?;
    }
    prop_assert!(fits_without(&mut groups, &preemptor, &targets, None, true));
    let old = groups.forest().clone();
    targets.iter().for_each(|target| groups.take(target.group));
    let mut new = groups.forest().clone();
    new.add(preemptor.queue, &preemptor.demand);
    for target in
        targets.iter().filter(|target| target.reason == PreemptionReason::InCohortFairSharing)
    {
        // Nobody stands above where the other side stood.
        let (mine, theirs) = sides(&new, preemptor.queue, groups.get(target.group).queue);
        prop_assert!(new.share(mine).compare(&old.share(theirs)).is_le());
        prop_assert!(new.share(theirs).compare(&old.share(theirs)).is_le());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn usage_is_as_defined_and_taken_back_exactly(
        shape in shapes(true),
        rows in rows(0..9),
        taken in prop::collection::vec(any::<bool>(), 9),
    ) {
        let (mut groups, ids) = admitted(&shape, &rows, false);
        let before = uses(groups.forest());
        let gone = ids.iter().copied().zip(&taken).filter(|(_, taken)| **taken);
        let gone: Vec<GroupId> = gone.map(|(id, _)| id).collect();
        gone.iter().for_each(|&id| groups.take(id));
        for node in groups.forest().nodes() {
            for slot in slots().1 {
                let usage = usage_by_definition(&groups, &ids, node, slot);
                prop_assert_eq!(groups.forest().usage(node, slot), usage);
            }
        }
        gone.iter().for_each(|&id| groups.put_back(id));
        prop_assert_eq!(uses(groups.forest()), before);
    }

    #[test]
    fn available_is_the_most_that_breaks_no_limit(shape in shapes(true), rows in rows(0..9)) {
        const MOST: i64 = 40;
        let (groups, _) = admitted(&shape, &rows, true);
        let forest = groups.forest();
        for slot in slots().1.into_iter().filter(|&slot| keeps_limits(forest, slot)) {
            for queue in shape.leaves(&shape.built()) {
                let available = forest.available(queue, slot).min(MOST.into());
                prop_assert_eq!(available, available_by_trying(forest, queue, slot, MOST));
            }
        }
    }

    #[test]
    fn classic_targets_are_allowed_and_minimal(
        shape in shapes(true),
        rows in rows(1..9),
        incoming in rows(1..2),
    ) {
        check_classic(&shape, &rows, &incoming[0])?;
    }

    #[test]
    fn fair_targets_never_make_the_cohort_worse(
        shape in shapes(true),
        rows in rows(1..9),
        incoming in rows(1..2),
    ) {
        check_fair(&shape, &rows, &incoming[0])?;
    }

    #[test]
    fn the_order_of_insertion_does_not_matter(
        shape in shapes(true),
        rows in rows(1..9),
        incoming in rows(1..2),
        fair in any::<bool>(),
    ) {
        let how = if fair { FAIR } else { SearchOptions::default() };
        let built = shape.built();
        let leaves = shape.leaves(&built);
        let in_order = |places: Vec<usize>| {
            let mut groups = Groups::new(built.forest.clone());
            for at in places {
                groups.insert(group(&leaves, at, &rows[at]));
            }
            let preemptor = preemptor(&group(&leaves, rows.len(), &incoming[0]));
            let (mode, _, found) = decide(&mut groups, &preemptor, &how);
            let uid = |target: EvictionTarget| (groups.get(target.group).uid.clone(), target.reason);
            let found: Option<Vec<_>> = found.ok().map(|all| all.into_iter().map(uid).collect());
            (mode, found)
        };
        let forward = in_order((0..rows.len()).collect());
        prop_assert_eq!(forward, in_order((0..rows.len()).rev().collect()));
    }
}

//! The classic search against trying everything, on small trees: whatever it answers is among the
//! sets of groups that may go, suffice, and of which none can be spared (cohort.md A.4, A.6).

use proptest::prelude::*;
use vc_cohort::{
    AssignmentMode, EvictionTarget, Forest, Group, GroupId, Groups, Policy, QuotaNode,
    QuotaPreemptor, ReclaimWithin, SearchEnvironment, SearchOptions, SearchRefusal, Slot,
    WithinQueue,
};

use crate::random::{Row, Shape, admitted, decide, group, preemptor, rows, shapes};

/// A set of groups, one bit each.
type Set = u16;

/// Everything that there is to try.
struct Everything {
    groups: Groups,
    ids: Vec<GroupId>,
    preemptor: QuotaPreemptor,
    policy: Policy,
    need: Vec<Slot>,
}

impl Everything {
    fn members(&self, set: Set) -> impl Iterator<Item = (usize, GroupId)> + '_ {
        let ids = self.ids.iter().copied().enumerate();
        ids.filter(move |(at, _)| set >> at & 1 == 1)
    }

    /// What it would be without these.
    fn without<R>(&mut self, set: Set, ask: impl Fn(&Self) -> R) -> R {
        let gone: Vec<GroupId> = self.members(set).map(|(_, id)| id).collect();
        gone.iter().for_each(|&id| self.groups.take(id));
        let answer = ask(self);
        gone.iter().for_each(|&id| self.groups.put_back(id));
        answer
    }

    fn fits(&mut self, set: Set, may_borrow: bool) -> bool {
        self.without(set, |all| {
            let (forest, queue) = (all.groups.forest(), all.preemptor.queue);
            all.preemptor.demand.iter().all(|(slot, amount)| {
                let used = forest.usage(queue, slot) + amount;
                (may_borrow || used <= forest.nominal(queue, slot))
                    && amount <= forest.available(queue, slot)
            })
        })
    }

    /// Whether the policies allow it to go, whoever else goes.
    fn may_ever_go(&self, group: &Group) -> bool {
        let (mine, theirs) = (self.preemptor.priority, group.priority);
        let is_newer = mine == theirs && self.preemptor.created_micros < group.created_micros;
        let allowed = match group.queue == self.preemptor.queue {
            true => match self.policy.within_queue {
                WithinQueue::Never => false,
                WithinQueue::LowerPriority => theirs < mine,
                WithinQueue::LowerOrNewerEqualPriority => theirs < mine || is_newer,
            },
            false => match self.policy.reclaim_within {
                ReclaimWithin::Never => false,
                ReclaimWithin::LowerPriority => theirs < mine,
                ReclaimWithin::Any => true,
            },
        };
        allowed && group.holds.uses_any(&self.need)
    }

    /// Whether the group may go next when these are gone.
    fn may_go_now(&mut self, gone: Set, id: GroupId) -> bool {
        let queue = self.groups.get(id).queue;
        let own = self.preemptor.queue;
        self.may_ever_go(self.groups.get(id))
            && (queue == own
                || self.without(gone, |all| exceeds(all.groups.forest(), own, queue, &all.need)))
    }

    /// Whether there is an order in which each of them may go.
    fn is_reachable(&mut self, set: Set) -> bool {
        let mut reached = vec![false; usize::from(set) + 1];
        reached[0] = true;
        for gone in 0..=set {
            if gone & !set != 0 || !reached[usize::from(gone)] {
                continue;
            }
            let next: Vec<(usize, GroupId)> = self.members(set & !gone).collect();
            for (at, id) in next {
                if self.may_go_now(gone, id) {
                    reached[usize::from(gone | 1 << at)] = true;
                }
            }
        }
        reached[usize::from(set)]
    }

    /// It suffices, and no part of it does.
    fn is_minimal(&mut self, set: Set, may_borrow: bool) -> bool {
        let parts = (0..set).filter(|part| part & !set == 0);
        self.fits(set, may_borrow) && !parts.into_iter().any(|part| self.fits(part, may_borrow))
    }

    fn is_right(&mut self, set: Set) -> bool {
        (self.is_minimal(set, true) || self.is_minimal(set, false)) && self.is_reachable(set)
    }
}

/// The queue, and every cohort below the lowest that it has in common with the other, uses more
/// than its quota.
fn exceeds(forest: &Forest, own: QuotaNode, queue: QuotaNode, need: &[Slot]) -> bool {
    let above: Vec<QuotaNode> = forest.path(own).collect();
    let mut below_common = forest.path(queue).take_while(|node| !above.contains(node));
    below_common.all(|node| !forest.is_within_nominal(node, need))
}

/// There is a place for everything, but these groups stay.
struct Stay(Vec<GroupId>);

impl SearchEnvironment for Stay {
    fn may_take(&mut self, _taken: &[EvictionTarget], group: GroupId) -> bool {
        !self.0.contains(&group)
    }
}

fn everything(shape: &Shape, rows: &[Row], incoming: &Row) -> Everything {
    let (groups, ids) = admitted(shape, rows, true);
    let built = shape.built();
    let preemptor = preemptor(&group(&shape.leaves(&built), rows.len(), incoming));
    let name = groups.forest().name(preemptor.queue);
    let queue = shape.queues.iter().find(|queue| queue.name == *name);
    let policy = queue.map(|queue| queue.policy).unwrap_or_default();
    let need = groups.forest().classify(preemptor.queue, &preemptor.demand, false).need;
    Everything { groups, ids, preemptor, policy, need }
}

fn check(shape: &Shape, rows: &[Row], incoming: &Row) -> Result<(), TestCaseError> {
    let mut all = everything(shape, rows, incoming);
    let (mode, _, found) = decide(&mut all.groups, &all.preemptor, &SearchOptions::default());
    let needs_nobody = all.fits(0, true);
    prop_assert_eq!(mode == AssignmentMode::Fit, needs_nobody);
    match found {
        Ok(targets) => {
            prop_assert!(!needs_nobody, "somebody goes although there is room");
            let bit = |target: &EvictionTarget| all.ids.iter().position(|&id| id == target.group);
            let bits: Option<Vec<usize>> = targets.iter().map(bit).collect();
            let set = bits.expect("they run").into_iter().fold(0, |set: Set, at| set | 1 << at);
            prop_assert!(all.is_right(set), "{targets:?}");
        }
        // Who could go at all does not suffice: nothing does.
        Err(SearchRefusal::NoCandidates) if mode == AssignmentMode::Preempt => {
            let n_sets = 1 << all.ids.len();
            let right = (1..n_sets).find(|&set| all.is_right(set));
            prop_assert_eq!(right, None);
        }
        Err(_) => {}
    }
    Ok(())
}

/// Nobody is taken whom the surroundings protect, and nothing is in use afterwards that was not.
fn check_protected(shape: &Shape, rows: &[Row], incoming: &Row) -> Result<(), TestCaseError> {
    let mut all = everything(shape, rows, incoming);
    let protected: Vec<GroupId> = all.ids.iter().copied().step_by(2).collect();
    let mut around = Stay(protected.clone());
    let found =
        SearchOptions::default().run(&mut all.groups, &all.preemptor, &all.need, &mut around);
    let targets = found.unwrap_or_default();
    prop_assert!(targets.iter().all(|target| !protected.contains(&target.group)));
    prop_assert!(all.ids.iter().all(|&id| all.groups.holds(id)));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_classic_answer_is_one_of_those_that_trying_everything_finds(
        shape in shapes(true),
        rows in rows(1..9),
        incoming in rows(1..2),
    ) {
        check(&shape, &rows, &incoming[0])?;
    }

    #[test]
    fn whom_the_surroundings_protect_stays(
        shape in shapes(true),
        rows in rows(1..9),
        incoming in rows(1..2),
    ) {
        check_protected(&shape, &rows, &incoming[0])?;
    }
}

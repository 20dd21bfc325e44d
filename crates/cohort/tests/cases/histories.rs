//! Groups that came and went leave no trace: numbers that are used again and an order that is kept
//! change no decision (cohort.md B.11).

use proptest::prelude::*;
use vc_cohort::{
    AssignmentMode, Group, GroupId, Groups, PreemptionReason, QuotaPreemptor, SearchOptions,
    SearchRefusal,
};

use crate::random::{FAIR, decide, group, preemptor, rows, shapes, uses};

/// Mode, then who goes and why, or why nobody does.
type Said = (AssignmentMode, Result<Vec<(String, PreemptionReason)>, String>);

fn said(groups: &mut Groups, preemptor: &QuotaPreemptor, how: &SearchOptions) -> Said {
    let (mode, _, found) = decide(groups, preemptor, how);
    let uid = |id: GroupId| groups.get(id).uid.to_string();
    let found = match found {
        Ok(targets) => {
            Ok(targets.iter().map(|target| (uid(target.group), target.reason)).collect())
        }
        Err(SearchRefusal::WouldReturn(group)) => Err(uid(group)),
        Err(refusal) => Err(format!("{refusal:?}")),
    };
    (mode, found)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn groups_that_came_and_went_leave_no_trace(
        shape in shapes(true),
        steps in prop::collection::vec((rows(1..2), 0..5_u8), 1..30),
        incoming in rows(1..2),
        fair in any::<bool>(),
    ) {
        let how = if fair { FAIR } else { SearchOptions::default() };
        let built = shape.built();
        let leaves = shape.leaves(&built);
        let preemptor = preemptor(&group(&leaves, steps.len(), &incoming[0]));
        let mut groups = Groups::new(built.forest.clone());
        let mut there: Vec<(GroupId, Group)> = Vec::new();
        for (at, (row, kind)) in steps.iter().enumerate() {
            match kind {
                0 => drop(said(&mut groups, &preemptor, &how)),
                1 | 2 if !there.is_empty() => {
                    let (id, _) = there.swap_remove(at % there.len());
                    groups.remove(id);
                }
                _ => {
                    let new = group(&leaves, at, &row[0]);
                    there.push((groups.insert(new.clone()), new));
                }
            }
        }
        let mut anew = Groups::new(built.forest.clone());
        there.iter().for_each(|(_, group)| { anew.insert(group.clone()); });
        prop_assert_eq!(uses(groups.forest()), uses(anew.forest()));
        let by_history = said(&mut groups, &preemptor, &how);
        prop_assert_eq!(by_history, said(&mut anew, &preemptor, &how));
    }
}

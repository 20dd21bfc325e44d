//! Nobody is evicted who would at once have the preemptor evicted in turn. Specification: cohort.md
//! B.7 (Q13; Q15 for the search without fair sharing).

use crate::amount::Slot;
use crate::candidates::may_reclaim;
use crate::group::{Group, GroupId, Groups, QuotaPreemptor};
use crate::mode::AssignmentMode;
use crate::search::{AllowAll, EvictionTarget, PreemptionReason, SearchOptions};

/// A target that, evicted, would evict the preemptor in turn: in the state with all targets gone
/// and the preemptor running as the newest group.
pub(crate) fn returning(
    how: &SearchOptions,
    groups: &mut Groups,
    preemptor: &QuotaPreemptor,
    targets: &[EvictionTarget],
) -> Option<GroupId> {
    if !targets.iter().any(may_return) {
        return None;
    }
    targets.iter().for_each(|target| groups.take(target.group));
    let newcomer = groups.insert(running(preemptor));
    let mut may_return = targets.iter().filter(|target| may_return(target));
    let found = may_return.find(|target| takes_back(how, groups, target.group, newcomer));
    groups.remove(newcomer);
    targets.iter().for_each(|target| groups.put_back(target.group));
    found.map(|target| target.group)
}

/// Whoever takes its own quota back stays within it, and a target of the own queue ranks lower:
/// only these two rest on a comparison that may turn round.
fn may_return(target: &EvictionTarget) -> bool {
    matches!(
        target.reason,
        PreemptionReason::InCohortFairSharing | PreemptionReason::InCohortReclaimWhileBorrowing
    )
}

fn running(preemptor: &QuotaPreemptor) -> Group {
    Group {
        queue: preemptor.queue,
        priority: preemptor.priority,
        created_micros: preemptor.created_micros,
        admitted_micros: i64::MAX,
        uid: "".into(),
        evicting: false,
        holds: preemptor.demand.clone(),
    }
}

fn takes_back(
    how: &SearchOptions,
    groups: &mut Groups,
    target: GroupId,
    newcomer: GroupId,
) -> bool {
    let group = groups.get(target);
    let evicted = QuotaPreemptor {
        queue: group.queue,
        priority: group.priority,
        created_micros: group.created_micros,
        demand: group.holds.clone(),
    };
    let is_fair = how.fair_sharing.is_some();
    let class = groups.forest().classify(evicted.queue, &evicted.demand, is_fair);
    class.mode == AssignmentMode::Preempt
        && is_exposed(groups, &evicted, newcomer, &class.need)
        && how
            .by_quota(groups, &evicted, &class.need, &mut AllowAll)
            .is_ok_and(|found| found.iter().any(|target| target.group == newcomer))
}

/// Without this no search has to be run.
fn is_exposed(groups: &Groups, evicted: &QuotaPreemptor, newcomer: GroupId, need: &[Slot]) -> bool {
    let group = groups.get(newcomer);
    may_reclaim(groups.forest(), evicted, group)
        && group.holds.uses_any(need)
        && !groups.forest().is_within_nominal(group.queue, need)
}

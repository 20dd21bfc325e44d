//! The cost of evictions, by which the domain for a job is chosen.
//! Specification: actions.md 9.5, A50.

use vc_conf::VictimOrderPolicy;
use vc_framework::SessionState;
use vc_model::{HyperNodeId, TaskId};

use super::GangEvictionAttempt;
use super::domains::EvictionDomain;
use super::select::{VictimChoice, candidates};

/// Cost of a choice of victims. The smallest one wins, and of equal ones the closest network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionCost {
    /// Number of gangs that are broken and the highest priority of a victim's job, in the order of
    /// `victimOrderPolicy`.
    loss: [i64; 2],
    n_victims: usize,
    tier: i32,
    domain: HyperNodeId,
}

impl EvictionCost {
    pub(super) fn of(
        session: &SessionState<'_>,
        attempt: &GangEvictionAttempt,
        domain: &EvictionDomain,
        choice: &VictimChoice,
    ) -> Self {
        let victims = || choice.units.iter().flatten().copied();
        let highest = priorities(session, victims()).max();
        let n_broken = i64::try_from(choice.broken.len()).unwrap_or(i64::MAX);
        Self::new(session, attempt, domain, (n_broken, highest, victims().count()))
    }

    /// Returns a lower bound of the cost of any choice in the domain: no gang is broken, the least
    /// important candidates go, and each of them is as large as the largest one. Returns `None` if
    /// there is no bound: of several sub-jobs some may do, and then less room is needed.
    pub(super) fn at_least(
        session: &SessionState<'_>,
        attempt: &GangEvictionAttempt,
        domain: &EvictionDomain,
    ) -> Option<Self> {
        let [_] = attempt.sub_jobs[..] else { return None };
        let candidates = candidates(session, attempt, domain);
        let mut n_victims = 0;
        for dim in attempt.need.dims() {
            let missing = attempt.need.get(dim) - domain.room.get(dim);
            let largest = candidates.iter().map(|&task| session.request(task).get(dim)).max();
            if let Some(largest) = largest.filter(|&largest| 0 < largest && 0 < missing) {
                n_victims = n_victims.max(missing.div_euclid(largest));
            }
        }
        let lowest = priorities(session, candidates.into_iter()).min();
        let highest = lowest.filter(|_| 0 < n_victims);
        let n_victims = usize::try_from(n_victims).unwrap_or(0);
        Some(Self::new(session, attempt, domain, (0, highest, n_victims)))
    }

    fn new(
        session: &SessionState<'_>,
        attempt: &GangEvictionAttempt,
        domain: &EvictionDomain,
        (n_broken, highest, n_victims): (i64, Option<i64>, usize),
    ) -> Self {
        let highest = highest.unwrap_or(i64::MIN);
        let loss = match attempt.settings(session).victim_order_policy {
            VictimOrderPolicy::SafeFirst => [n_broken, highest],
            VictimOrderPolicy::PriorityFirst => [highest, n_broken],
        };
        let tier = session.info().hyper_nodes[domain.id].tier;
        Self { loss, n_victims, tier, domain: domain.id }
    }
}

/// The priorities of the jobs of victims.
fn priorities(
    session: &SessionState<'_>,
    victims: impl Iterator<Item = TaskId>,
) -> impl Iterator<Item = i64> {
    let jobs = victims.filter_map(|victim| session.tasks[victim].job);
    jobs.map(|job| i64::from(session.jobs[job].priority))
}

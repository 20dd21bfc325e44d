//! Where the limits of admission and share are set: fields of queues, cohorts, the cluster, or a ResourceQuota.
//! Specification: answers.md 4.3 (ANS-25).

use std::collections::BTreeMap;

use vc_actions::needed;
use vc_framework::{Atom, LimitOwner, LimitedAmount, QueueLimit, Session};
use vc_model::{Cluster, JobId, TaskId};

use crate::raised_quota::{CAPABILITY, DESERVED, is_capped};
use crate::trials::{AtomSet, JobTrials};

/// Source of a limit that is what all other queues leave of the cluster.
const REST_OF_CLUSTER: &str = "the cluster without the guarantees of other queues";
/// Source of a limit of a queue of a cohort that may not borrow.
const NOMINAL: &str = "nominal quota";

/// Returns where the limit of each atom of admission or share is set. The limits are those of the first member
/// that finds no place, else those of all needed members together.
pub(crate) fn limit_places(
    trials: &mut JobTrials<'_, '_>,
    atoms: &AtomSet,
) -> BTreeMap<Atom, String> {
    let is_limit = |atom: &&Atom| matches!(atom, Atom::Admission(_) | Atom::Share(_));
    let limits: Vec<Atom> = atoms.iter().filter(is_limit).cloned().collect();
    if limits.is_empty() {
        return BTreeMap::new();
    }
    let job = trials.job();
    let failed = trials.known(&AtomSet::new()).and_then(|answer| answer.failed);
    trials.with_lifted(&AtomSet::new(), |session| {
        let session = &*session;
        let place = |atom: Atom| {
            let place = limit_place(session, job, (&atom, failed));
            (atom, place)
        };
        limits.into_iter().map(place).collect()
    })
}

/// Returns where the limit of one atom is set.
fn limit_place(
    session: &Session<'_>,
    job: JobId,
    (atom, failed): (&Atom, Option<TaskId>),
) -> String {
    let row = &session.jobs[job];
    let (plugins, view) = (session.plugins(), session.view());
    let limit = match atom {
        Atom::Admission("overcommit") => return "the cluster (overcommit-factor)".to_owned(),
        Atom::Admission("resourcequota") => {
            return format!("ResourceQuota of namespace {}", row.key.namespace);
        }
        Atom::Admission(plugin) => plugins.admission_limit_of(view, job, plugin),
        Atom::Share(plugin) => {
            let of = |tasks: &[TaskId]| plugins.queue_limit_of(view, row.queue, tasks, plugin);
            failed.and_then(|task| of(&[task])).or_else(|| of(&needed(session, job)))
        }
        _ => None,
    };
    match limit {
        Some(limit) if !limit.amounts.is_empty() => text(view.cluster, &limit),
        _ => format!("limits of Queue {}", session.queues[row.queue].name),
    }
}

/// Returns where a limit is set, each field once: `Queue research spec.capability`.
fn text(cluster: &Cluster, limit: &QueueLimit) -> String {
    let mut places: Vec<String> = Vec::new();
    for amount in &limit.amounts {
        let place = place_of_amount(cluster, &limit.owner, amount);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.join(" and ")
}

/// Returns where one amount of a limit is set.
fn place_of_amount(cluster: &Cluster, owner: &LimitOwner, it: &LimitedAmount) -> String {
    let is_capability = it.set_by.starts_with(CAPABILITY);
    if let LimitOwner::Cohort(name) = owner {
        let field = if is_capability { " spec.capability" } else { "" };
        return format!("Cohort {name}{field}");
    }
    let LimitOwner::Queue(name) = owner else { return format!("the cluster ({})", it.set_by) };
    // What a queue deserves by its weight is never more than its capability.
    let is_at_capability = || {
        let row = cluster.queue(name).map(|queue| &cluster.queues[queue]);
        row.is_some_and(|row| is_capped(row, (it.dim, it.limit.saturating_add(1))))
    };
    let field = match it.set_by {
        REST_OF_CLUSTER => return "the cluster without spec.guarantee of other queues".to_owned(),
        NOMINAL => "spec.deserved",
        DESERVED if is_at_capability() => CAPABILITY,
        DESERVED => "spec.weight",
        _ if is_capability => CAPABILITY,
        _ => return format!("limits of Queue {name}"),
    };
    format!("Queue {name} {field}")
}

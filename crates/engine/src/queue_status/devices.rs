//! Numbers of devices that the jobs of a queue have claimed. A claim counts once per queue, however
//! many pods share it. Specification: core.md 7.7, 3.6.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::SessionState;
use vc_model::{
    AllocationMode, ClaimSource, DeviceRequest, ObjectKey, QueueId, RequestKind, TaskId,
};

/// Returns names and counts for the status, by queue.
pub(super) fn counts(
    session: &SessionState<'_>,
    chains: &BTreeMap<QueueId, Vec<QueueId>>,
) -> BTreeMap<QueueId, Vec<(String, String)>> {
    if session.devices.claims().next().is_none() {
        return BTreeMap::new();
    }
    let mut claims: BTreeMap<QueueId, BTreeSet<ObjectKey>> = BTreeMap::new();
    // All jobs are visited: running jobs hold devices, too, even if no action looks at them.
    for job in session.view().all_jobs() {
        let row = &session.jobs[job];
        let placed = row.tasks.iter().filter(|&&task| session.tasks[task].status.is_allocated());
        let of_job: Vec<ObjectKey> = placed.flat_map(|&task| claims_of(session, task)).collect();
        let above = chains.get(&row.queue).into_iter().flatten();
        for &queue in std::iter::once(&row.queue).chain(above) {
            claims.entry(queue).or_default().extend(of_job.iter().cloned());
        }
    }
    claims.into_iter().map(|(queue, claims)| (queue, list(session, &claims))).collect()
}

fn claims_of(session: &SessionState<'_>, task: TaskId) -> Vec<ObjectKey> {
    let namespace = &session.tasks[task].key.namespace;
    let entries = session.class(task).resource_claims.iter();
    let names = entries.filter_map(|entry| match &entry.source {
        ClaimSource::Named(name) | ClaimSource::Made(name) => Some(name.clone()),
        ClaimSource::NotNeeded | ClaimSource::NotMade | ClaimSource::Unset => None,
    });
    names.map(|name| ObjectKey { namespace: namespace.clone(), name }).collect()
}

fn list(session: &SessionState<'_>, claims: &BTreeSet<ObjectKey>) -> Vec<(String, String)> {
    let mut sums: BTreeMap<Arc<str>, i64> = BTreeMap::new();
    let claims = claims.iter().filter_map(|key| session.devices.claim(key));
    for (class, count) in claims.flat_map(|claim| &claim.requests).filter_map(count) {
        let sum = sums.entry(class.clone()).or_default();
        *sum = sum.saturating_add(count);
    }
    let entry =
        |(class, count): (Arc<str>, i64)| (format!("deviceclass/{class}"), count.to_string());
    sums.into_iter().map(entry).collect()
}

/// Returns class and number of devices of a request. Returns `None` for alternatives and `All`,
/// which are not counted.
fn count(request: &DeviceRequest) -> Option<(&Arc<str>, i64)> {
    let RequestKind::Exactly(exact) = &request.kind else { return None };
    let AllocationMode::Count(count) = exact.mode else { return None };
    (!exact.class.is_empty()).then_some((&exact.class, i64::from(count.max(1))))
}

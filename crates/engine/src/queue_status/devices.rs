//! Numbers of devices that the jobs of a queue have claimed. A claim counts once per queue, however
//! many pods share it. Specification: core.md 7.7, 3.6.

use std::collections::{BTreeMap, BTreeSet};

use vc_framework::SessionState;
use vc_model::{DeviceRequest, ObjectKey, QueueId};

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
        let of_job: Vec<ObjectKey> =
            placed.flat_map(|&task| session.resource_claims(task)).collect();
        let above = chains.get(&row.queue).into_iter().flatten();
        for &queue in std::iter::once(&row.queue).chain(above) {
            claims.entry(queue).or_default().extend(of_job.iter().cloned());
        }
    }
    claims.into_iter().map(|(queue, claims)| (queue, list(session, &claims))).collect()
}

/// Returns names and amounts of the devices of these claims, and of the capacity that they consume.
fn list(session: &SessionState<'_>, claims: &BTreeSet<ObjectKey>) -> Vec<(String, String)> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    let mut add = |name: String, amount: i64| {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(amount);
    };
    let claims = claims.iter().filter_map(|key| session.devices.claim(key));
    for (exact, count) in
        claims.flat_map(|claim| &claim.requests).filter_map(DeviceRequest::counted)
    {
        let class = format!("deviceclass/{}", exact.class);
        for (dim, quantity) in &exact.capacity {
            let amount = quantity.value().saturating_mul(i64::from(count));
            add(format!("{dim}.{class}"), amount);
        }
        add(class, i64::from(count));
    }
    sums.into_iter().map(|(name, amount)| (name, amount.to_string())).collect()
}

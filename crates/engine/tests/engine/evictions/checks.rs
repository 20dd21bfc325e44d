//! What must hold after every cycle of a random cluster: invariants 1, 3 and 4 of "never useless,
//! never endless". Certificates and sums are checked by the world itself.

use std::collections::{BTreeMap, BTreeSet};

use vc_engine::{Certificate, Effect, EvictReason};
use vc_model::{Cluster, JobId};

use super::world::COVERED;
use crate::support::*;

/// What runs counts for its gang: by job, how many ready members.
pub(super) fn ready(cluster: &Cluster) -> BTreeMap<JobId, i64> {
    let row = |(job, row): (JobId, &vc_model::Job)| (job, i64::from(row.counts.ready()));
    cluster.jobs.iter().map(row).collect()
}

/// Pods that are bound, with their nodes.
pub(super) fn bound(cycle: &Cycle) -> BTreeMap<String, String> {
    let name = |effect: &Effect| match effect {
        Effect::Bind { pod, node, .. } => Some((pod.name.to_string(), node.to_string())),
        _ => None,
    };
    cycle.effects.iter().filter_map(name).collect()
}

fn job_of(cluster: &Cluster, pod: &str) -> JobId {
    cluster.tasks[task(cluster, pod)].job.expect("every pod of the test has one")
}

/// Invariant 1: every pod that evictions were made for has its place in the same cycle, and so has
/// its gang; every eviction is one of a certificate.
pub(super) fn check_useful(cluster: &Cluster, cycle: &Cycle) -> Result<(), String> {
    let mut placed = bound(cycle);
    let waits = || cycle.report.pipelined.iter();
    placed.extend(waits().map(|task| (task.pod.name.to_string(), task.node.to_string())));
    let n_victims: usize = cycle.report.certificates.iter().map(|it| it.victims.len()).sum();
    if n_victims != cycle.report.n_evictions {
        return Err("an eviction without certificate".to_owned());
    }
    for certificate in &cycle.report.certificates {
        for it in &certificate.placements {
            // Backfill gives a best-effort pod another chance.
            let moves = cluster.tasks[task(cluster, &it.pod.name)].best_effort;
            if !moves && placed.get(&*it.pod.name).map(String::as_str) != Some(&*it.node) {
                return Err(format!("evictions for {}, which has no place on {}", it.pod, it.node));
            }
        }
        let Some(it) = certificate.placements.first() else {
            return Err("evictions for nobody".to_owned());
        };
        if is_inside_job(certificate) {
            continue;
        }
        let job = job_of(cluster, &it.pod.name);
        let row = &cluster.jobs[job];
        let n_waiting = waits().filter(|task| job_of(cluster, &task.pod.name) == job).count();
        let n_free = i64::from(row.counts.ready() + row.counts.pending_best_effort);
        if n_free + (n_waiting as i64) < i64::from(row.min_available) {
            return Err(format!("evictions for {}, whose gang is not complete", it.pod));
        }
    }
    Ok(())
}

fn is_inside_job(certificate: &Certificate) -> bool {
    certificate.victims.iter().all(|it| Some(&it.pod_group) == certificate.pod_group.as_ref())
}

/// Invariant 3: no gang loses members that it needs, unless a gang action breaks it (A42).
pub(super) fn check_gangs(
    cluster: &Cluster,
    cycle: &Cycle,
    before: &BTreeMap<JobId, i64>,
) -> Result<(), String> {
    let mut left = before.clone();
    for pod in bound(cycle).keys() {
        *left.entry(job_of(cluster, pod)).or_default() += 1;
    }
    let (mut losers, mut broken) = (BTreeSet::new(), BTreeSet::new());
    for certificate in &cycle.report.certificates {
        let in_bundles =
            matches!(certificate.action, EvictReason::GangPreempt | EvictReason::GangReclaim);
        for victim in &certificate.victims {
            let job = job_of(cluster, &victim.pod.name);
            *left.entry(job).or_default() -= 1;
            if in_bundles {
                broken.insert(job);
            }
            losers.insert(job);
        }
    }
    for &job in losers.difference(&broken) {
        let row = &cluster.jobs[job];
        if left[&job] < i64::from(row.min_available) {
            return Err(format!("{} is left with {}", row.key, left[&job]));
        }
    }
    Ok(())
}

/// Invariant 4: who was promised which node, and since when.
#[derive(Default)]
pub(super) struct Promises {
    owed: BTreeMap<String, (String, u32)>,
    served: BTreeSet<String>,
}

impl Promises {
    /// Takes a cycle in; the places must be there after `lag` cycles, and nobody is evicted twice
    /// for the same pod.
    pub(super) fn check(
        &mut self,
        cluster: &Cluster,
        cycle: &Cycle,
        number: u32,
        lag: u32,
    ) -> Result<(), String> {
        for certificate in &cycle.report.certificates {
            for it in &certificate.placements {
                let (pod, node) = (it.pod.name.to_string(), it.node.to_string());
                if !self.served.insert(pod.clone()) {
                    return Err(format!("{pod} has more evicted than was enough"));
                }
                self.owed.insert(pod, (node, number));
            }
        }
        for (pod, node) in bound(cycle) {
            let moves = cluster.tasks[task(cluster, &pod)].best_effort;
            let promise = self.owed.remove(&pod);
            if let Some((planned, _)) = promise.filter(|(planned, _)| !moves && *planned != node) {
                return Err(format!("{pod} was to get {planned}, it got {node}"));
            }
        }
        match self.owed.iter().find(|(_, (_, since))| since + lag < number) {
            Some((pod, _)) => Err(format!("{pod} did not get the place")),
            None => Ok(()),
        }
    }
}

/// Invariant 5: critical pods stay, and no more covered pods go than the budget allows.
pub(super) struct Protected {
    /// `None`: there is no budget.
    left: Option<i64>,
}

impl Protected {
    pub(super) fn of(text: &str) -> Self {
        let allowed = text.split_whitespace().find_map(|word| word.strip_prefix("allowed="));
        Self { left: allowed.and_then(|number| number.parse().ok()) }
    }

    pub(super) fn check(&mut self, cluster: &Cluster, cycle: &Cycle) -> Result<(), String> {
        for victim in cycle.report.certificates.iter().flat_map(|it| &it.victims) {
            let id = task(cluster, &victim.pod.name);
            if &*cluster.tasks[id].priority_class_name == "system-node-critical" {
                return Err(format!("{} is critical", victim.pod));
            }
            let labels = &cluster.class(id).labels;
            if labels.get("app").is_some_and(|label| &**label == COVERED) {
                self.left = self.left.map(|left| left - 1);
            }
        }
        match self.left.is_some_and(|left| left < 0) {
            true => Err("more go than the budget allows".to_owned()),
            false => Ok(()),
        }
    }
}

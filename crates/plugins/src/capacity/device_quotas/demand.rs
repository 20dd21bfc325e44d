//! Amounts of devices by device class: what claims, pods and jobs ask for.
//! Specification: plugins-jobs-queues.md 6.10.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_model::{Cluster, DeviceRequest, Job, JobId, ObjectKey, ResourceClaim, TaskId};

/// Amounts of devices by device class. Sums are exact integers, so that subtracting undoes adding.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DeviceAmounts(BTreeMap<Arc<str>, ClassAmounts>);

/// Amounts of one device class.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClassAmounts {
    /// Number of devices.
    pub(super) count: i128,
    /// Consumed capacity in milli-units, by dimension.
    pub(super) capacity: BTreeMap<Arc<str>, i128>,
}

impl DeviceAmounts {
    /// Returns what a claim asks for. Alternatives and requests for all devices are not counted.
    pub(super) fn of_claim(claim: &ResourceClaim, counts_capacity: bool) -> Self {
        let mut amounts = Self::default();
        for (exact, count) in claim.requests.iter().filter_map(DeviceRequest::counted) {
            let class = amounts.0.entry(exact.class.clone()).or_default();
            class.count += i128::from(count);
            for (dim, quantity) in exact.capacity.iter().filter(|_| counts_capacity) {
                let amount = i128::from(quantity.milli()) * i128::from(count);
                *class.capacity.entry(dim.clone()).or_default() += amount;
            }
        }
        amounts
    }

    /// Returns what these claims ask for together. A claim that does not exist asks for nothing.
    pub(super) fn of_claims<'a>(
        cluster: &Cluster,
        claims: impl IntoIterator<Item = &'a ObjectKey>,
        counts_capacity: bool,
    ) -> Self {
        let mut sum = Self::default();
        for claim in claims.into_iter().filter_map(|key| cluster.devices.claim(key)) {
            sum.add(&Self::of_claim(claim, counts_capacity), 1);
        }
        sum
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn class(&self, class: &str) -> Option<&ClassAmounts> {
        self.0.get(class)
    }

    pub(super) fn classes(&self) -> impl Iterator<Item = (&Arc<str>, &ClassAmounts)> {
        self.0.iter()
    }

    /// Adds the amounts so many times.
    pub(super) fn add(&mut self, other: &Self, times: i128) {
        for (name, amounts) in &other.0 {
            let class = self.0.entry(name.clone()).or_default();
            let added = |sum: i128, amount: i128| sum.saturating_add(amount.saturating_mul(times));
            class.count = added(class.count, amounts.count);
            for (dim, &amount) in &amounts.capacity {
                let sum = class.capacity.entry(dim.clone()).or_default();
                *sum = added(*sum, amount);
            }
        }
    }

    /// Subtracts amounts that were added before. A class without devices is dropped.
    pub(super) fn sub(&mut self, other: &Self) {
        self.add(other, -1);
        self.0.retain(|_, class| class.count != 0);
    }

    /// Returns what is left of these amounts without the other ones, at least 0 each.
    fn beyond(mut self, other: &Self) -> Self {
        for (name, class) in &mut self.0 {
            let Some(held) = other.0.get(name) else { continue };
            class.count = (class.count - held.count).max(0);
            for (dim, amount) in &mut class.capacity {
                *amount = (*amount - held.capacity.get(dim).copied().unwrap_or(0)).max(0);
            }
        }
        self.0.retain(|_, class| class.count != 0);
        self
    }

    /// Returns what the job needs at least: for each role its minimum, or without roles
    /// `minAvailable` pods. Claims that pods share count once. Pods that do not exist yet are
    /// taken to be like the first of their role.
    pub(super) fn minimum(cluster: &Cluster, job: &Job, counts_capacity: bool) -> Self {
        let mut tasks = job.tasks.clone();
        tasks.retain(|&task| !cluster.class(task).resource_claims.is_empty());
        tasks.sort_by_key(|&task| {
            let row = &cluster.tasks[task];
            (row.key.clone(), row.uid.clone())
        });
        let amounts =
            |claims: &BTreeSet<ObjectKey>| Self::of_claims(cluster, claims, counts_capacity);
        let mut claims: Vec<(TaskId, BTreeSet<ObjectKey>)> = Vec::new();
        for task in tasks {
            let of_task = cluster.resource_claims(task);
            if !amounts(&of_task).is_empty() {
                claims.push((task, of_task));
            }
        }
        if job.task_min_available.is_empty() {
            let n_least = usize::try_from(job.min_available).unwrap_or(0);
            let first = claims.iter().take(n_least).flat_map(|(_, claims)| claims);
            return amounts(&first.cloned().collect());
        }
        let (mut named, mut unborn) = (BTreeSet::new(), Self::default());
        for (role, &least) in job.task_min_available.iter().filter(|(_, least)| 0 < **least) {
            let n_least = usize::try_from(least).unwrap_or(0);
            let of_role = claims.iter().filter(|(task, _)| cluster.tasks[*task].role == *role);
            let of_role: Vec<&BTreeSet<ObjectKey>> =
                of_role.map(|(_, claims)| claims).take(n_least).collect();
            let Some(first) = of_role.first() else { continue };
            unborn.add(&amounts(first), (n_least - of_role.len()) as i128);
            named.extend(of_role.into_iter().flatten().cloned());
        }
        let mut sum = amounts(&named);
        sum.add(&unborn, 1);
        sum.0.retain(|_, class| class.count != 0);
        sum
    }

    /// Returns what an admitted job still reserves: its minimum without what its pods hold.
    pub(super) fn reserved(cluster: &Cluster, job: JobId, counts_capacity: bool) -> Self {
        let row = &cluster.jobs[job];
        let minimum = Self::minimum(cluster, row, counts_capacity);
        let held = row.tasks.iter().filter(|&&task| cluster.tasks[task].status.is_allocated());
        let held: BTreeSet<ObjectKey> =
            held.flat_map(|&task| cluster.resource_claims(task)).collect();
        minimum.beyond(&Self::of_claims(cluster, &held, counts_capacity))
    }
}

#[cfg(test)]
impl DeviceAmounts {
    /// Builds the amounts of one class for tests: devices, and milli-units of `memory`.
    pub(super) fn of_class(class: &str, count: i128, memory: Option<i128>) -> Self {
        let capacity = memory.map(|amount| ("memory".into(), amount)).into_iter().collect();
        Self(BTreeMap::from([(class.into(), ClassAmounts { count, capacity })]))
    }
}

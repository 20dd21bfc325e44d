//! The quota of device classes of one queue, and what its pods have charged to it.
//! Specification: plugins-jobs-queues.md 6.10, D18.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::LimitedAmount;
use vc_model::{ObjectKey, Queue};
use vc_resource::{Dim, Dims};

use super::demand::DeviceAmounts;

/// Marks a quota of a device class: the beginning of the resource name, or what stands after the
/// dimension of a capacity and a dot.
const CLASS: &str = "deviceclass/";
const AFTER_DIMENSION: &str = ".deviceclass/";

/// An upper bound, and the dimension of `spec.capability` that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceLimit {
    dim: Dim,
    /// Devices, or milli-units of capacity.
    most: i64,
}

/// The quota of one device class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClassQuota {
    /// Number of devices. `None` or 0: any number.
    pub(super) count: Option<DeviceLimit>,
    /// Limits of capacity by dimension.
    pub(super) capacity: BTreeMap<Arc<str>, DeviceLimit>,
}

/// A limit that a demand exceeds. `used` and `asked` are in the units of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceShortage {
    limit: DeviceLimit,
    /// Milli-units per unit of the amounts.
    scale: i64,
    set_by: &'static str,
    used: i128,
    asked: i128,
}

/// A claim that pods of a queue have charged.
#[derive(Clone, Debug, PartialEq)]
struct ChargedClaim {
    n_tasks: u32,
    amounts: DeviceAmounts,
}

/// The quota of one queue and its use. Pods of the queue and of all queues below it count.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DeviceLedger {
    quota: BTreeMap<Arc<str>, ClassQuota>,
    claims: BTreeMap<ObjectKey, ChargedClaim>,
    /// Sum over `claims`.
    allocated: DeviceAmounts,
    /// Devices that admitted jobs wait for.
    pub(super) inqueue: DeviceAmounts,
}

impl DeviceLedger {
    /// Reads the quota of a queue. Returns `None` if it has none.
    pub(super) fn of_queue(queue: &Queue, dims: &Dims) -> Option<Self> {
        let mut quota: BTreeMap<Arc<str>, ClassQuota> = BTreeMap::new();
        for dim in queue.capability.scalars() {
            let (name, amount) = (dims.name(dim), queue.capability.get(dim));
            if let Some(class) = name.strip_prefix(CLASS) {
                // Rounded up to whole devices.
                let most = amount / 1000 + i64::from(0 < amount % 1000);
                quota.entry(class.into()).or_default().count = Some(DeviceLimit { dim, most });
            } else if let Some((capacity, class)) = name.split_once(AFTER_DIMENSION) {
                let class = quota.entry(class.into()).or_default();
                class.capacity.insert(capacity.into(), DeviceLimit { dim, most: amount });
            }
        }
        (!quota.is_empty()).then(|| Self { quota, ..Self::default() })
    }

    /// Returns the names of the dimensions of the quota.
    pub(super) fn names<'a>(&'a self, dims: &'a Dims) -> impl Iterator<Item = &'a str> {
        let limits = self.quota.values();
        limits
            .flat_map(|class| class.count.iter().chain(class.capacity.values()))
            .map(|limit| dims.name(limit.dim))
    }

    /// Returns the classes whose number of devices is given as 0, which limits nothing.
    pub(super) fn zero_counts(&self) -> impl Iterator<Item = &Arc<str>> {
        let is_zero = |class: &ClassQuota| class.count.is_some_and(|limit| limit.most <= 0);
        self.quota.iter().filter(move |(_, class)| is_zero(class)).map(|(name, _)| name)
    }

    /// Drops everything that is charged.
    pub(super) fn clear(&mut self) {
        *self = Self { quota: std::mem::take(&mut self.quota), ..Self::default() };
    }

    pub(super) fn has(&self, claim: &ObjectKey) -> bool {
        self.claims.contains_key(claim)
    }

    /// Charges a claim for one more pod. Only the first pod adds the amounts.
    pub(super) fn charge(&mut self, claim: &ObjectKey, amounts: &DeviceAmounts) {
        if let Some(charged) = self.claims.get_mut(claim) {
            charged.n_tasks += 1;
            return;
        }
        self.allocated.add(amounts, 1);
        let charged = ChargedClaim { n_tasks: 1, amounts: amounts.clone() };
        self.claims.insert(claim.clone(), charged);
    }

    /// Reverses [`Self::charge`] for one pod. Only the last pod gives the amounts back.
    pub(super) fn release(&mut self, claim: &ObjectKey) {
        let Some(charged) = self.claims.get_mut(claim) else { return };
        charged.n_tasks -= 1;
        if charged.n_tasks == 0
            && let Some(last) = self.claims.remove(claim)
        {
            self.allocated.sub(&last.amounts);
        }
    }

    /// Returns the limits that the demand exceeds. At admission the devices that other admitted
    /// jobs wait for count as used.
    pub(super) fn shortages(
        &self,
        demand: &DeviceAmounts,
        at_admission: bool,
    ) -> Vec<DeviceShortage> {
        let mut found = Vec::new();
        for (class, asked) in demand.classes() {
            let Some(quota) = self.quota.get(class) else { continue };
            let used = [Some(&self.allocated), at_admission.then_some(&self.inqueue)];
            let used: Vec<_> =
                used.into_iter().flatten().filter_map(|sum| sum.class(class)).collect();
            let held = used.iter().fold(0_i128, |sum, class| sum.saturating_add(class.count));
            let count = quota.count.filter(|limit| 0 < limit.most);
            found.extend(count.and_then(|limit| limit.shortage(1000, held, asked.count)));
            for (dim, &amount) in &asked.capacity {
                let held = used.iter().filter_map(|class| class.capacity.get(dim));
                let held = held.fold(0_i128, |sum, &amount| sum.saturating_add(amount));
                found.extend(match quota.capacity.get(dim) {
                    Some(limit) => limit.shortage(1, held, amount),
                    None => quota.not_listed(held, amount),
                });
            }
        }
        found
    }
}

impl ClassQuota {
    /// Returns the shortage of a capacity dimension that the quota does not list: it is refused.
    fn not_listed(&self, used: i128, asked: i128) -> Option<DeviceShortage> {
        let listed = self.count.into_iter().chain(self.capacity.values().copied()).next();
        let limit = DeviceLimit { dim: listed?.dim, most: 0 };
        let set_by = "spec.capability lists no such capacity of the class";
        Some(DeviceShortage { limit, scale: 1, set_by, used, asked })
    }
}

impl DeviceLimit {
    fn shortage(self, scale: i64, used: i128, asked: i128) -> Option<DeviceShortage> {
        let is_exceeded = i128::from(self.most) < used.saturating_add(asked);
        let set_by = "spec.capability";
        is_exceeded.then_some(DeviceShortage { limit: self, scale, set_by, used, asked })
    }
}

impl DeviceShortage {
    pub(super) fn dim(&self) -> Dim {
        self.limit.dim
    }

    /// Returns the shortage in units of a Resource, for messages.
    pub(super) fn amount(&self) -> LimitedAmount {
        let shown = |amount: i128| {
            i64::try_from(amount.saturating_mul(i128::from(self.scale))).unwrap_or(i64::MAX)
        };
        LimitedAmount {
            dim: self.limit.dim,
            limit: shown(i128::from(self.limit.most)),
            set_by: self.set_by,
            used: shown(self.used),
            asked: shown(self.asked),
        }
    }
}

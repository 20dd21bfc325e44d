//! ResourceQuotas: the limits of a namespace and what of them is used, by the names of the object.
//! Specification: plugins-jobs-queues.md 11.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_resource::Quantity;

use crate::record::{ObjectKey, ResourceList};

/// A ResourceQuota as it comes in.
#[derive(Clone, Debug, Default)]
pub struct QuotaRecord {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `status.hard`.
    pub hard: ResourceList,
    /// `status.used`.
    pub used: ResourceList,
}

/// Amounts by name, compared as they are written: `cpu` is not `requests.cpu`.
pub type QuotaAmounts = BTreeMap<Arc<str>, Quantity>;

/// A ResourceQuota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The limits.
    pub hard: QuotaAmounts,
    /// What is used of them.
    pub used: QuotaAmounts,
}

/// All quotas.
#[derive(Clone, Debug, Default)]
pub struct Quotas(BTreeMap<Arc<str>, BTreeMap<Arc<str>, Quota>>);

impl Quotas {
    /// Those of a namespace, by name.
    pub fn of(&self, namespace: &str) -> impl Iterator<Item = (&Arc<str>, &Quota)> {
        self.0.get(namespace).into_iter().flatten()
    }

    pub(crate) fn apply(&mut self, record: QuotaRecord) {
        let ObjectKey { namespace, name } = record.key;
        let (hard, used) = (record.hard.into_iter(), record.used.into_iter());
        let quota = Quota { hard: hard.collect(), used: used.collect() };
        self.0.entry(namespace).or_default().insert(name, quota);
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        let Some(of_namespace) = self.0.get_mut(&key.namespace) else { return };
        of_namespace.remove(&key.name);
        if of_namespace.is_empty() {
            self.0.remove(&key.namespace);
        }
    }
}

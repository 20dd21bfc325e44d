//! ResourceQuotas: the limits of a namespace and their use, by the names in the object.
//! Specification: plugins-jobs-queues.md 11.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_resource::Quantity;

use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::reads::{self, Read};
use crate::record::{ObjectKey, ResourceList};

/// A ResourceQuota as the watch delivers it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct QuotaRecord {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `status.hard`.
    pub hard: ResourceList,
    /// `status.used`.
    pub used: ResourceList,
}

/// Amounts by the name in the object: `cpu` and `requests.cpu` are different entries.
pub type ResourceQuotaAmounts = BTreeMap<Arc<str>, Quantity>;

/// A ResourceQuota.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// The limits.
    pub hard: ResourceQuotaAmounts,
    /// The used amounts.
    pub used: ResourceQuotaAmounts,
}

/// The quotas of a namespace, by name.
type QuotasByName = BTreeMap<Arc<str>, Quota>;

/// All ResourceQuotas, by namespace and name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Quotas {
    by_namespace: CopyOnWrite<BTreeMap<Arc<str>, QuotasByName>>,
    n_changes: u64,
}

copy_on_write_members! { Quotas: shared by_namespace; copied n_changes; }

impl Quotas {
    /// Returns the quotas of a namespace, by name.
    pub fn of(&self, namespace: &str) -> impl Iterator<Item = (&Arc<str>, &Quota)> {
        reads::note(Read::OtherObjects);
        self.by_namespace.get().get(namespace).into_iter().flatten()
    }

    /// Returns the number of changes of any ResourceQuota so far.
    pub fn n_changes(&self) -> u64 {
        self.n_changes
    }

    pub(crate) fn apply(&mut self, record: QuotaRecord) {
        self.n_changes += 1;
        let ObjectKey { namespace, name } = record.key;
        let (hard, used) = (record.hard.into_iter(), record.used.into_iter());
        let quota = Quota { hard: hard.collect(), used: used.collect() };
        self.by_namespace.get_mut().entry(namespace).or_default().insert(name, quota);
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        self.n_changes += 1;
        let by_namespace = self.by_namespace.get_mut();
        let Some(of_namespace) = by_namespace.get_mut(&key.namespace) else { return };
        of_namespace.remove(&key.name);
        if of_namespace.is_empty() {
            by_namespace.remove(&key.namespace);
        }
    }
}

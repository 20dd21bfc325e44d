//! Usage that the plugin `fairshare` keeps over a restart. Specification: fair-share.md 11.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Usage of all accounts at one time, as it is saved and read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedUsage {
    /// Time of the cycle whose usage this is, in microseconds since 1970.
    pub time_micros: i64,
    /// What the exact amounts mean. `None`: only `decayed_micros` is known, as from Volcano.
    pub scale: Option<UsageScale>,
    /// The accounts by queue and name. None is twice in the list.
    pub accounts: Vec<SavedAccount>,
    /// Usage of queues and of the cluster by resource. It is empty if deserved shares do not follow
    /// usage, and without a scale.
    pub shares: Vec<SavedShare>,
}

/// What exact amounts of usage mean.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageScale {
    /// Half-life in microseconds, above 0.
    pub half_life_micros: i64,
    /// Time at which a charge weighs 2^32, in microseconds since 1970.
    pub origin_micros: i64,
    /// What is charged, as text. Amounts of another text cannot be compared.
    pub charge: Arc<str>,
}

/// Usage of an account of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedAccount {
    /// Name of the queue.
    pub queue: Arc<str>,
    /// Name of the account.
    pub account: Arc<str>,
    /// Usage of ended tasks, less what running tasks did not use before they began. 0 without a
    /// scale.
    pub closed: i128,
    /// Charge of the running tasks. 0 without a scale.
    pub rate: i128,
    /// Usage in charge times microseconds, faded to the time of the usage.
    pub decayed_micros: i128,
}

/// Usage of a resource by a queue, or what the cluster had of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedShare {
    /// Name of the queue. `None`: the cluster.
    pub queue: Option<Arc<str>>,
    /// Name of the resource.
    pub resource: Arc<str>,
    /// As in [`SavedAccount`].
    pub closed: i128,
    /// What is held now, in internal units.
    pub rate: i128,
}

/// The usage that was read, and the saves that failed since.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SavedUsages {
    read: Option<Arc<SavedUsage>>,
    /// True if usage was saved that could not be read yet.
    #[serde(default)]
    is_unread: bool,
    n_failed_saves: u64,
}

impl SavedUsages {
    /// Returns the usage that was read last. Returns `None` if none was.
    pub fn read(&self) -> Option<&Arc<SavedUsage>> {
        self.read.as_ref()
    }

    /// True if usage was saved that could not be read yet. Nothing may be saved over it.
    pub fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Returns the number of saves that failed.
    pub fn n_failed_saves(&self) -> u64 {
        self.n_failed_saves
    }

    pub(crate) fn set_read(&mut self, usage: Option<Arc<SavedUsage>>) {
        self.read = usage;
        self.is_unread = false;
    }

    pub(crate) fn set_unread(&mut self) {
        self.read = None;
        self.is_unread = true;
    }

    pub(crate) fn save_failed(&mut self) {
        self.n_failed_saves += 1;
    }
}

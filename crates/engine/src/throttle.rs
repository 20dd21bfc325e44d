//! Which PodGroups were told what and when, so that a text that stays is not sent every cycle.
//! Specification: core.md 7.6, C-30.

use std::collections::BTreeMap;

use vc_model::{Cluster, ObjectKey};

/// An unchanged text is repeated after this long at the earliest.
const REPEAT_MICROS: i64 = 5 * 60 * 1_000_000;

/// The last Unschedulable event per PodGroup.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    told: BTreeMap<ObjectKey, (String, i64)>,
}

impl Throttle {
    /// Whether the text is to be sent now; if so, it is remembered.
    pub(crate) fn admits(&mut self, key: &ObjectKey, text: &str, now_micros: i64) -> bool {
        let known = self.told.get(key).filter(|(last, _)| last == text);
        if known.is_some_and(|(_, then)| now_micros - then < REPEAT_MICROS) {
            return false;
        }
        self.told.insert(key.clone(), (text.to_owned(), now_micros));
        true
    }

    /// Forgets a PodGroup that no longer waits.
    pub(crate) fn forget(&mut self, key: &ObjectKey) {
        self.told.remove(key);
    }

    /// Forgets the PodGroups that are gone.
    pub(crate) fn sweep(&mut self, cluster: &Cluster) {
        self.told.retain(|key, _| cluster.job(key).is_some());
    }
}

//! PodDisruptionBudgets: which pods they cover, and how many of these pods may be evicted.
//! Specification: plugins-jobs-queues.md 10, D22.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::reads::{self, Read};
use crate::record::ObjectKey;
use crate::selector::{LabelSelector, Labels};

/// The pods of its namespace that a budget covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Covers {
    /// No pod: the selector is absent or empty.
    #[default]
    Nobody,
    /// The pods that match the selector.
    Matching(LabelSelector),
    /// All pods: the selector cannot be parsed, so any pod may be meant. No pod may be evicted.
    Everybody,
}

/// A PodDisruptionBudget as the watch delivers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetRecord {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `spec.selector`.
    pub covers: Covers,
    /// `status.disruptionsAllowed`; 0 if it is absent or unreadable.
    pub allowed: i32,
    /// `status.currentHealthy`; 0 if it is absent.
    pub healthy: i32,
    /// Names in `status.disruptedPods`: pods whose eviction is already counted in the status.
    pub disrupted: BTreeSet<Arc<str>>,
}

/// A PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// The pods that the budget covers.
    pub covers: Covers,
    /// `status.disruptionsAllowed` as last seen: how many pods may still be evicted.
    pub allowed: i32,
    /// Names of pods whose eviction is already counted in the status.
    pub disrupted: BTreeSet<Arc<str>>,
    /// Number of healthy pods, as last seen.
    pub healthy: i32,
    /// Sum of all decreases of [`Budget::healthy`] since the budget was first seen. An eviction
    /// that was sent shows up as such a decrease.
    pub fallen: u64,
}

impl Budget {
    /// True if the eviction of this pod counts against the budget.
    pub fn counts(&self, pod: &str, labels: &Labels) -> bool {
        let covered = match &self.covers {
            Covers::Nobody => false,
            Covers::Everybody => true,
            Covers::Matching(selector) => selector.matches(labels),
        };
        covered && !self.disrupted.contains(pod)
    }

    /// Returns how many pods of the budget may still be evicted, as last seen.
    pub fn left(&self) -> i64 {
        match self.covers {
            Covers::Everybody => 0,
            Covers::Nobody | Covers::Matching(_) => self.allowed.into(),
        }
    }
}

/// The budgets of a namespace, by name.
type BudgetsByName = BTreeMap<Arc<str>, Budget>;

/// All PodDisruptionBudgets, by namespace and name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Budgets {
    by_namespace: CopyOnWrite<BTreeMap<Arc<str>, BudgetsByName>>,
    coverage: u64,
}

copy_on_write_members! { Budgets: shared by_namespace; copied coverage; }

impl Budgets {
    /// Returns the budgets of a namespace, by name.
    pub fn of(&self, namespace: &str) -> impl Iterator<Item = (&Arc<str>, &Budget)> {
        reads::note(Read::Budgets);
        self.by_namespace.get().get(namespace).into_iter().flatten()
    }

    /// Returns the budget with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Budget> {
        reads::note(Read::Budgets);
        self.by_namespace.get().get(&key.namespace)?.get(&key.name)
    }

    /// Returns a counter that increases whenever the result of [`Budget::counts`] may have changed
    /// for a pod.
    pub fn coverage(&self) -> u64 {
        self.coverage
    }

    pub(crate) fn apply(&mut self, record: BudgetRecord) {
        let ObjectKey { namespace, name } = record.key;
        let by_name = self.by_namespace.get_mut().entry(namespace).or_default();
        let row = by_name.entry(name).or_default();
        let is_same = row.covers == record.covers && row.disrupted == record.disrupted;
        self.coverage += u64::from(!is_same);
        let fall = row.healthy.saturating_sub(record.healthy).max(0);
        *row = Budget {
            covers: record.covers,
            allowed: record.allowed,
            disrupted: record.disrupted,
            healthy: record.healthy,
            fallen: row.fallen.saturating_add(u64::from(fall.unsigned_abs())),
        };
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        let by_namespace = self.by_namespace.get_mut();
        let Some(of_namespace) = by_namespace.get_mut(&key.namespace) else { return };
        self.coverage += u64::from(of_namespace.remove(&key.name).is_some());
        if of_namespace.is_empty() {
            by_namespace.remove(&key.namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(healthy: i32) -> BudgetRecord {
        let key = ObjectKey::new("ns", "b");
        BudgetRecord { key, healthy, ..BudgetRecord::default() }
    }

    #[test]
    fn who_is_covered_has_a_number() {
        let mut budgets = Budgets::default();
        let mut n_changes = 0;
        let everybody = BudgetRecord { covers: Covers::Everybody, ..record(3) };
        let disrupted = BudgetRecord { disrupted: ["p".into()].into(), ..everybody.clone() };
        let steps = [
            (record(3), false),
            (everybody.clone(), true),
            (BudgetRecord { allowed: 2, healthy: 1, ..everybody.clone() }, false),
            (disrupted.clone(), true),
            (everybody, true),
        ];
        for (record, is_another) in steps {
            n_changes += u64::from(is_another);
            budgets.apply(record.clone());
            assert_eq!(budgets.coverage(), n_changes, "{record:?}");
        }
        budgets.remove(&disrupted.key);
        budgets.remove(&disrupted.key);
        assert_eq!(budgets.coverage(), n_changes + 1);
    }

    #[test]
    fn falls_of_the_healthy_pods_add_up() {
        let mut budgets = Budgets::default();
        let key = ObjectKey::new("ns", "b");
        for (healthy, fallen) in [(3, 0), (2, 1), (2, 1), (5, 1), (1, 5), (i32::MIN, 2_147_483_652)]
        {
            budgets.apply(record(healthy));
            assert_eq!(budgets.get(&key).unwrap().fallen, fallen, "{healthy}");
        }
        budgets.remove(&key);
        budgets.remove(&key);
        assert_eq!(budgets.get(&key), None);
    }

    #[test]
    fn who_is_covered() {
        let labels: Labels = [("app".into(), "x".into())].into();
        let selector = LabelSelector { match_labels: labels.clone(), ..Default::default() };
        let counts = |covers: Covers, pod: &str| {
            let disrupted = [Arc::from("gone")].into();
            Budget { covers, disrupted, ..Budget::default() }.counts(pod, &labels)
        };
        assert!(counts(Covers::Matching(selector.clone()), "p"));
        assert!(!counts(Covers::Matching(selector), "gone"));
        assert!(!counts(Covers::Nobody, "p"));
        assert!(counts(Covers::Everybody, "p"));
    }
}

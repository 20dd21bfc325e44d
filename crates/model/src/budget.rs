//! PodDisruptionBudgets: which pods they cover and how many of them may go. Specification:
//! plugins-jobs-queues.md 10, D22.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::record::ObjectKey;
use crate::selector::{LabelSelector, Labels};

/// Which pods of its namespace a budget covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Covers {
    /// There is no selector, or an empty one.
    #[default]
    Nobody,
    /// The pods that match.
    Matching(LabelSelector),
    /// The selector cannot be read: whom it means to protect is not known, so nobody may go.
    Everybody,
}

/// A PodDisruptionBudget as it comes in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetRecord {
    /// Namespace and name.
    pub key: ObjectKey,
    /// `spec.selector`.
    pub covers: Covers,
    /// `status.disruptionsAllowed`; absent or unreadable: 0.
    pub allowed: i32,
    /// `status.currentHealthy`; absent: 0.
    pub healthy: i32,
    /// Names in `status.disruptedPods`: pods whose eviction the status counts already.
    pub disrupted: BTreeSet<Arc<str>>,
}

/// A PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Which pods.
    pub covers: Covers,
    /// How many of them may still go, as last seen.
    pub allowed: i32,
    /// Pods that the status counts as gone.
    pub disrupted: BTreeSet<Arc<str>>,
    /// Healthy pods, as last seen.
    pub healthy: i32,
    /// By how many the healthy pods have become fewer since the budget was first seen, all falls
    /// together: an eviction that was sent shows itself as one of them.
    pub fallen: u64,
}

impl Budget {
    /// Whether the eviction of this pod counts against the budget.
    pub fn counts(&self, pod: &str, labels: &Labels) -> bool {
        let covered = match &self.covers {
            Covers::Nobody => false,
            Covers::Everybody => true,
            Covers::Matching(selector) => selector.matches(labels),
        };
        covered && !self.disrupted.contains(pod)
    }

    /// How many of its pods may still go, as last seen.
    pub fn left(&self) -> i64 {
        match self.covers {
            Covers::Everybody => 0,
            Covers::Nobody | Covers::Matching(_) => self.allowed.into(),
        }
    }
}

/// All budgets.
#[derive(Clone, Debug, Default)]
pub struct Budgets(BTreeMap<Arc<str>, BTreeMap<Arc<str>, Budget>>);

impl Budgets {
    /// Those of a namespace, by name.
    pub fn of(&self, namespace: &str) -> impl Iterator<Item = (&Arc<str>, &Budget)> {
        self.0.get(namespace).into_iter().flatten()
    }

    /// The budget of this name.
    pub fn get(&self, key: &ObjectKey) -> Option<&Budget> {
        self.0.get(&key.namespace)?.get(&key.name)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn apply(&mut self, record: BudgetRecord) {
        let ObjectKey { namespace, name } = record.key;
        let row = self.0.entry(namespace).or_default().entry(name).or_default();
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
        let Some(of_namespace) = self.0.get_mut(&key.namespace) else { return };
        of_namespace.remove(&key.name);
        if of_namespace.is_empty() {
            self.0.remove(&key.namespace);
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
        assert!(budgets.is_empty());
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

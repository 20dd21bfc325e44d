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
pub struct Budgets {
    by_namespace: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Budget>>,
    coverage: u64,
}

impl Budgets {
    /// Those of a namespace, by name.
    pub fn of(&self, namespace: &str) -> impl Iterator<Item = (&Arc<str>, &Budget)> {
        self.by_namespace.get(namespace).into_iter().flatten()
    }

    /// The budget of this name.
    pub fn get(&self, key: &ObjectKey) -> Option<&Budget> {
        self.by_namespace.get(&key.namespace)?.get(&key.name)
    }

    /// Another number whenever [`Budget::counts`] may answer otherwise about some pod.
    pub fn coverage(&self) -> u64 {
        self.coverage
    }

    pub(crate) fn apply(&mut self, record: BudgetRecord) {
        let ObjectKey { namespace, name } = record.key;
        let row = self.by_namespace.entry(namespace).or_default().entry(name).or_default();
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
        let Some(of_namespace) = self.by_namespace.get_mut(&key.namespace) else { return };
        self.coverage += u64::from(of_namespace.remove(&key.name).is_some());
        if of_namespace.is_empty() {
            self.by_namespace.remove(&key.namespace);
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

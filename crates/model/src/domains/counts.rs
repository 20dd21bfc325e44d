//! Counts of pods by topology domain. Affinity counts the pods of a matcher; spread counts them on
//! included nodes. A domain without pods has no entry, so undoing an operation leaves nothing
//! behind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{InclusionId, KeyId, MatcherId, ValueId};

/// Counts of one domain of a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermCount {
    /// Number of pods that the term selects.
    pub meant: i32,
    /// Number of pods that have the term as required anti-affinity.
    pub away: i32,
    /// Number of pods that have the term as a preference.
    pub preferring: i32,
    /// Σ weights over pods that have the term as a preference; negative for anti-affinity.
    pub weight: i64,
}

impl std::ops::AddAssign for TermCount {
    fn add_assign(&mut self, other: Self) {
        self.meant += other.meant;
        self.away += other.away;
        self.preferring += other.preferring;
        self.weight += other.weight;
    }
}

/// Counts by the values of a topology key: pods that a matcher selects, and pods that have the
/// term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    pub(super) matcher: MatcherId,
    /// The topology key.
    pub key: KeyId,
    /// Number of uses in the terms of classes.
    pub(super) n_users: u32,
    /// Counts over all nodes that have the key.
    pub total: TermCount,
    pub(super) by_value: BTreeMap<ValueId, TermCount>,
}

impl Term {
    pub(super) fn new(matcher: MatcherId, key: KeyId) -> Self {
        let (total, by_value) = (TermCount::default(), BTreeMap::new());
        Self { matcher, key, n_users: 1, total, by_value }
    }

    /// Returns the counts of the domain.
    pub fn at(&self, value: ValueId) -> TermCount {
        self.by_value.get(&value).copied().unwrap_or_default()
    }

    /// Returns each domain with a count that is not 0.
    pub fn each(&self) -> impl Iterator<Item = (ValueId, TermCount)> + '_ {
        self.by_value.iter().map(|(&value, &count)| (value, count))
    }

    pub(super) fn add(&mut self, value: ValueId, count: TermCount) {
        self.total += count;
        let held = self.by_value.entry(value).or_default();
        *held += count;
        if *held == TermCount::default() {
            self.by_value.remove(&value);
        }
    }
}

/// Counts by the values of a topology key: pods on included nodes that a matcher selects and that
/// are not terminating.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    pub(super) matcher: MatcherId,
    pub(super) inclusion: InclusionId,
    pub(super) key: KeyId,
    /// Number of uses in the constraints of classes.
    pub(super) n_users: u32,
    pub(super) by_value: BTreeMap<ValueId, i32>,
    /// Number of domains by count. Domains with count 0 are left out.
    pub(super) histogram: BTreeMap<i32, u32>,
}

impl Spread {
    pub(super) fn new(matcher: MatcherId, inclusion: InclusionId, key: KeyId) -> Self {
        let (by_value, histogram) = (BTreeMap::new(), BTreeMap::new());
        Self { matcher, inclusion, key, n_users: 1, by_value, histogram }
    }

    /// Returns the number of pods in the domain, or 0 if the domain is unknown.
    pub fn at(&self, value: ValueId) -> i32 {
        self.by_value.get(&value).copied().unwrap_or(0)
    }

    /// Returns each domain that has pods, with their number.
    pub fn each(&self) -> impl Iterator<Item = (ValueId, i32)> + '_ {
        self.by_value.iter().map(|(&value, &n_pods)| (value, n_pods))
    }

    pub(super) fn add(&mut self, value: ValueId, n_pods: i32) {
        let held = self.by_value.entry(value).or_default();
        let before = *held;
        *held += n_pods;
        let after = *held;
        if after == 0 {
            self.by_value.remove(&value);
        }
        if 0 < after {
            *self.histogram.entry(after).or_default() += 1;
        }
        if let Some(n_domains) = self.histogram.get_mut(&before) {
            *n_domains -= 1;
            if *n_domains == 0 {
                self.histogram.remove(&before);
            }
        }
    }

    /// Returns the smallest count over `n_domains` domains.
    pub(super) fn least(&self, n_domains: usize) -> i32 {
        match self.by_value.len() < n_domains {
            true => 0,
            false => self.histogram.keys().next().copied().unwrap_or(0),
        }
    }
}

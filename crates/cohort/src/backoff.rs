//! Groups that were evicted after they had others evicted wait before they do so again: no local
//! rule excludes that three or more groups take turns. Specification: cohort.md B.7.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest wait is 2^9 times the first.
const MOST_TIMES: u32 = 10;

/// Who waits until when, by uid.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Backoff {
    first_micros: i64,
    records: BTreeMap<Arc<str>, BackoffRecord>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct BackoffRecord {
    /// It had others evicted since it was last evicted itself.
    has_preempted: bool,
    n_times: u32,
    until_micros: i64,
}

impl Backoff {
    /// With the wait after the first time; 0: there is none.
    pub fn new(first_micros: i64) -> Self {
        Self { first_micros: first_micros.max(0), records: BTreeMap::new() }
    }

    /// The same records with another first wait.
    pub fn with_first(self, first_micros: i64) -> Self {
        Self { first_micros: first_micros.max(0), ..self }
    }

    /// The group had others evicted.
    pub fn preempted(&mut self, uid: &Arc<str>) {
        self.records.entry(uid.clone()).or_default().has_preempted = true;
    }

    /// The group was evicted for quota. Until when it has to wait, if this is a further round.
    pub fn evicted(&mut self, uid: &str, now_micros: i64) -> Option<i64> {
        let record = self.records.get_mut(uid).filter(|record| record.has_preempted)?;
        record.has_preempted = false;
        record.n_times = (record.n_times + 1).min(MOST_TIMES);
        let wait = self.first_micros.saturating_mul(1 << (record.n_times - 1));
        record.until_micros = now_micros.saturating_add(wait);
        (0 < wait).then_some(record.until_micros)
    }

    /// Until when the group may not preempt; `None`: it may. It may be admitted in any case.
    pub fn waits_until(&self, uid: &str, now_micros: i64) -> Option<i64> {
        let until = self.records.get(uid)?.until_micros;
        (now_micros < until).then_some(until)
    }

    /// When the next wait ends; `None`: nobody waits.
    pub fn next_until(&self, now_micros: i64) -> Option<i64> {
        let untils = self.records.values().map(|record| record.until_micros);
        untils.filter(|until| now_micros < *until).min()
    }

    /// Those of whom something is known.
    pub fn uids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.records.keys()
    }

    /// Forgets groups that are gone.
    pub fn retain(&mut self, exists: impl Fn(&str) -> bool) {
        self.records.retain(|uid, _| exists(uid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_with_every_round_up_to_a_limit() {
        let uid: Arc<str> = "a".into();
        let mut backoff = Backoff::new(60);
        assert_eq!(backoff.evicted(&uid, 0), None, "it has evicted nobody");
        for round in 1..=12_u32 {
            backoff.preempted(&uid);
            let wait = 60 << (round.min(10) - 1);
            assert_eq!(backoff.evicted(&uid, 1_000), Some(1_000 + wait), "{round}");
            assert_eq!(backoff.evicted(&uid, 5_000), None, "no round in between");
            assert_eq!(backoff.waits_until(&uid, 999 + wait), Some(1_000 + wait));
            assert_eq!(backoff.next_until(999 + wait), Some(1_000 + wait));
            assert_eq!(backoff.next_until(1_000 + wait), None);
            assert_eq!(backoff.waits_until(&uid, 1_000 + wait), None);
        }
        backoff.retain(|uid| uid != "a");
        assert_eq!(backoff.waits_until(&uid, 0), None);
        let mut off = Backoff::new(0);
        off.preempted(&uid);
        assert_eq!((off.evicted(&uid, 7), off.waits_until(&uid, 7)), (None, None));
    }
}

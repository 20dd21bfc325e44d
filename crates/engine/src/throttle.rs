//! Which PodGroups were told what and when, so that a text that stays is not sent every cycle.
//! Specification: core.md 7.6, C-30; actions.md 10.3, A44.

use std::collections::BTreeMap;
use std::sync::Arc;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// What a PodGroup is told again and again while nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Told {
    /// Why its tasks wait.
    Waits,
    /// Why it is not admitted.
    NotAdmitted,
    /// Why nothing was evicted for it.
    Skipped,
    /// Its role minimums are not enforced.
    Roles,
    /// The amounts in the messages of its pods.
    Amounts,
    /// Why nothing was evicted for it, without counts, in the messages of its pods.
    Evictions,
    /// It is ready, and members have scheduling gates.
    Gated,
}

impl Told {
    /// How long an unchanged text is not repeated, in microseconds. Five minutes (C-30): of thousands
    /// of groups that wait for room nothing is written in between. Thirty seconds for refusals by
    /// enqueue (A44).
    fn repeat_micros(self) -> i64 {
        match self {
            Self::NotAdmitted => 30 * MICROS_PER_SECOND,
            _ => 300 * MICROS_PER_SECOND,
        }
    }

    /// When a text that was sent at `then_micros` may be sent again.
    fn due_micros(self, then_micros: i64) -> i64 {
        then_micros.saturating_add(self.repeat_micros())
    }
}

/// The last text per PodGroup uid, and when it was sent.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    sent: BTreeMap<(Arc<str>, Told), (Arc<str>, i64)>,
    /// None of it may be sent again before this time.
    first_due_micros: i64,
}

impl Throttle {
    /// Whether the text is to be sent now; if so, it is remembered.
    pub(crate) fn admits(
        &mut self,
        uid: &Arc<str>,
        told: Told,
        text: &Arc<str>,
        now_micros: i64,
    ) -> bool {
        let key = (uid.clone(), told);
        let same = self.sent.get(&key).filter(|(last, _)| last == text);
        if same.is_some_and(|(_, then)| now_micros < told.due_micros(*then)) {
            return false;
        }
        let due_micros = told.due_micros(now_micros);
        self.first_due_micros = match self.sent.is_empty() {
            true => due_micros,
            false => self.first_due_micros.min(due_micros),
        };
        self.sent.insert(key, (text.clone(), now_micros));
        true
    }

    /// Forgets why a PodGroup waited: it waits no longer.
    pub(crate) fn forget(&mut self, uid: &Arc<str>) {
        self.sent.remove(&(uid.clone(), Told::Waits));
    }

    /// When the text that was sent last may be sent again, in microseconds since 1970; `None`: nothing
    /// was sent, or it may be now.
    pub(crate) fn due_micros(&self, uid: &Arc<str>, told: Told) -> Option<i64> {
        let (_, then) = self.sent.get(&(uid.clone(), told))?;
        Some(told.due_micros(*then))
    }

    /// The first time at which something may be said again, in microseconds since 1970; `None`:
    /// nothing was said.
    pub(crate) fn next_due_micros(&self) -> Option<i64> {
        self.sent.iter().map(|((_, told), (_, then))| told.due_micros(*then)).min()
    }

    /// Forgets what may be said again by now, PodGroups that are gone among it.
    pub(crate) fn sweep(&mut self, now_micros: i64) {
        if now_micros < self.first_due_micros {
            return;
        }
        self.sent.retain(|(_, told), (_, then)| now_micros < told.due_micros(*then));
        self.first_due_micros = self.next_due_micros().unwrap_or(now_micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_repeated_when_it_changes_or_after_its_time() {
        let second = MICROS_PER_SECOND;
        let cases = [
            (Told::Waits, "a", 0, true),
            (Told::Waits, "a", 299 * second, false),
            (Told::NotAdmitted, "a", 270 * second, true),
            (Told::NotAdmitted, "a", 299 * second, false),
            (Told::NotAdmitted, "a", 300 * second, true),
            (Told::Waits, "b", 299 * second, true),
            (Told::Waits, "b", 598 * second, false),
            (Told::Waits, "b", 599 * second, true),
            (Told::Skipped, "a", 0, true),
            (Told::Roles, "a", 0, true),
            (Told::Skipped, "a", 299 * second, false),
            (Told::Roles, "a", 299 * second, false),
        ];
        let (mut throttle, uid) = (Throttle::default(), Arc::from("uid"));
        for (index, (told, text, now, admitted)) in cases.into_iter().enumerate() {
            assert_eq!(throttle.admits(&uid, told, &text.into(), now), admitted, "case {index}");
        }
    }

    #[test]
    fn what_is_forgotten_or_swept_is_said_at_once() {
        let (mut throttle, uid, text) = (Throttle::default(), Arc::from("uid"), Arc::from("a"));
        assert!(throttle.admits(&uid, Told::Waits, &text, 0));
        throttle.forget(&uid);
        assert!(throttle.admits(&uid, Told::Waits, &text, 1));
        throttle.sweep(300 * MICROS_PER_SECOND);
        assert_eq!(throttle.sent.len(), 1);
        throttle.sweep(300 * MICROS_PER_SECOND + 1);
        assert_eq!(throttle.sent.len(), 0);
    }
}

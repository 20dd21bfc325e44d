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
}

/// An unchanged text is repeated after five minutes at the earliest (C-30): of thousands of groups
/// that wait for room nothing is written in between.
const REPEAT_MICROS: i64 = 300 * MICROS_PER_SECOND;

/// The last text per PodGroup uid, and when it was sent.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    sent: BTreeMap<(Arc<str>, Told), (Arc<str>, i64)>,
    /// Nothing of it was sent before this time.
    first_micros: i64,
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
        if same.is_some_and(|(_, then)| now_micros - then < REPEAT_MICROS) {
            return false;
        }
        self.first_micros = match self.sent.is_empty() {
            true => now_micros,
            false => self.first_micros.min(now_micros),
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
        Some(then.saturating_add(REPEAT_MICROS))
    }

    /// The first time at which something may be said again, in microseconds since 1970; `None`:
    /// nothing was said.
    pub(crate) fn next_due_micros(&self) -> Option<i64> {
        self.sent.values().map(|(_, then)| then.saturating_add(REPEAT_MICROS)).min()
    }

    /// Forgets what may be said again by now, PodGroups that are gone among it.
    pub(crate) fn sweep(&mut self, now_micros: i64) {
        if now_micros - self.first_micros < REPEAT_MICROS {
            return;
        }
        self.sent.retain(|_, (_, then)| now_micros - *then < REPEAT_MICROS);
        let times = self.sent.values().map(|(_, then)| *then);
        self.first_micros = times.min().unwrap_or(now_micros);
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
            (Told::NotAdmitted, "a", 299 * second, true),
            (Told::NotAdmitted, "a", 598 * second, false),
            (Told::Waits, "b", 299 * second, true),
            (Told::Waits, "b", 598 * second, false),
            (Told::Waits, "b", 599 * second, true),
            (Told::NotAdmitted, "a", 599 * second, true),
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

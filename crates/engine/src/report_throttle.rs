//! The texts that PodGroups got last and their times, so that an unchanged text is not sent in
//! every cycle. Specification: core.md 7.6, C-30; actions.md 10.3, A44.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// A kind of report about a PodGroup that is repeated while nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum ReportKind {
    /// Why the tasks wait.
    Waits,
    /// Why the PodGroup is not admitted.
    NotAdmitted,
    /// Why nothing was evicted for the PodGroup.
    Skipped,
    /// Role minimums are not enforced.
    Roles,
    /// The amounts in the messages of the pods.
    Amounts,
    /// Why nothing was evicted, without counts, in the messages of the pods.
    Evictions,
    /// The PodGroup is ready, and members have scheduling gates.
    Gated,
}

impl ReportKind {
    /// Returns the microseconds in which an unchanged text is not repeated. C-30: five minutes, so
    /// that thousands of waiting groups cause few writes. A44: thirty seconds for refusals by
    /// enqueue.
    fn repeat_micros(self) -> i64 {
        match self {
            Self::NotAdmitted => 30 * MICROS_PER_SECOND,
            _ => 300 * MICROS_PER_SECOND,
        }
    }

    /// Returns when a text that was sent at `then_micros` may be sent again.
    fn due_micros(self, then_micros: i64) -> i64 {
        then_micros.saturating_add(self.repeat_micros())
    }
}

/// The last text per PodGroup uid and kind, and when it was sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReportThrottle {
    sent: BTreeMap<(Arc<str>, ReportKind), (Arc<str>, i64)>,
    /// Lower bound of the times at which a text may be sent again.
    first_due_micros: i64,
}

impl ReportThrottle {
    /// True if the text is to be sent now; the throttle then records it.
    pub(crate) fn admits(
        &mut self,
        uid: &Arc<str>,
        reported: ReportKind,
        text: &Arc<str>,
        now_micros: i64,
    ) -> bool {
        let key = (uid.clone(), reported);
        let same = self.sent.get(&key).filter(|(last, _)| last == text);
        if same.is_some_and(|(_, then)| now_micros < reported.due_micros(*then)) {
            return false;
        }
        let due_micros = reported.due_micros(now_micros);
        self.first_due_micros = match self.sent.is_empty() {
            true => due_micros,
            false => self.first_due_micros.min(due_micros),
        };
        self.sent.insert(key, (text.clone(), now_micros));
        true
    }

    /// Drops the text about why a PodGroup waited, because it no longer waits.
    pub(crate) fn forget(&mut self, uid: &Arc<str>) {
        self.sent.remove(&(uid.clone(), ReportKind::Waits));
    }

    /// Returns the time when the last text may be sent again, in microseconds since 1970. Returns
    /// `None` if no text is recorded.
    pub(crate) fn due_micros(&self, uid: &Arc<str>, reported: ReportKind) -> Option<i64> {
        let (_, then) = self.sent.get(&(uid.clone(), reported))?;
        Some(reported.due_micros(*then))
    }

    /// Returns the first time when any text may be sent again, in microseconds since 1970. Returns
    /// `None` if no text is recorded.
    pub(crate) fn next_due_micros(&self) -> Option<i64> {
        self.sent.iter().map(|((_, reported), (_, then))| reported.due_micros(*then)).min()
    }

    /// Drops texts that may be sent again by now, including those of PodGroups that are gone.
    pub(crate) fn sweep(&mut self, now_micros: i64) {
        if now_micros < self.first_due_micros {
            return;
        }
        self.sent.retain(|(_, reported), (_, then)| now_micros < reported.due_micros(*then));
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
            (ReportKind::Waits, "a", 0, true),
            (ReportKind::Waits, "a", 299 * second, false),
            (ReportKind::NotAdmitted, "a", 270 * second, true),
            (ReportKind::NotAdmitted, "a", 299 * second, false),
            (ReportKind::NotAdmitted, "a", 300 * second, true),
            (ReportKind::Waits, "b", 299 * second, true),
            (ReportKind::Waits, "b", 598 * second, false),
            (ReportKind::Waits, "b", 599 * second, true),
            (ReportKind::Skipped, "a", 0, true),
            (ReportKind::Roles, "a", 0, true),
            (ReportKind::Skipped, "a", 299 * second, false),
            (ReportKind::Roles, "a", 299 * second, false),
        ];
        let (mut report_throttle, uid) = (ReportThrottle::default(), Arc::from("uid"));
        for (index, (reported, text, now, admitted)) in cases.into_iter().enumerate() {
            assert_eq!(
                report_throttle.admits(&uid, reported, &text.into(), now),
                admitted,
                "case {index}"
            );
        }
    }

    #[test]
    fn what_is_forgotten_or_swept_is_said_at_once() {
        let (mut report_throttle, uid, text) =
            (ReportThrottle::default(), Arc::from("uid"), Arc::from("a"));
        assert!(report_throttle.admits(&uid, ReportKind::Waits, &text, 0));
        report_throttle.forget(&uid);
        assert!(report_throttle.admits(&uid, ReportKind::Waits, &text, 1));
        report_throttle.sweep(300 * MICROS_PER_SECOND);
        assert_eq!(report_throttle.sent.len(), 1);
        report_throttle.sweep(300 * MICROS_PER_SECOND + 1);
        assert_eq!(report_throttle.sent.len(), 0);
    }
}

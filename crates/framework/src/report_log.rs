//! The last reported value per row: only changes are reported again, and a cycle without changes
//! costs next to nothing. Tested below and in the engine's `numbers.rs`. Specification: core.md 9.
//!
//! Exact because:
//! - Each value is compared with the last reported one.
//! - A row without a reported value counts as new.

use vc_model::{Column, Id};

/// The last reported value of each row. The caller removes rows that are gone.
#[derive(Clone, Debug)]
pub struct ReportLog<I, V> {
    rows: Column<I, V>,
}

impl<I, V> Default for ReportLog<I, V> {
    fn default() -> Self {
        Self { rows: Column::default() }
    }
}

impl<I: Id, V: Clone + PartialEq> ReportLog<I, V> {
    /// Records the value as reported. Returns true if it differs from the last reported value of
    /// this row.
    pub fn record_if_new(&mut self, id: I, value: V) -> bool {
        let row = self.rows.place(id);
        let record_if_new = row.as_ref() != Some(&value);
        *row = Some(value);
        record_if_new
    }

    /// Returns the last reported value of this row.
    pub fn get(&self, id: I) -> Option<&V> {
        self.rows.get(id)
    }

    /// Removes a row that is gone. Returns true if a value was reported for it.
    pub fn forget(&mut self, id: I) -> bool {
        self.rows.take(id).is_some()
    }
}

#[cfg(test)]
mod tests {
    use vc_model::JobId;

    use super::*;

    #[test]
    fn a_value_stays_reported_until_its_row_is_gone() {
        let (mut log, job) = (ReportLog::default(), JobId::new(3));
        assert!(
            log.record_if_new(job, 1) && !log.record_if_new(job, 1) && log.record_if_new(job, 2)
        );
        assert_eq!(log.get(job), Some(&2));
        assert!(log.forget(job) && !log.forget(job));
        assert_eq!((log.get(job), log.get(JobId::new(9))), (None, None));
        assert!(!log.forget(JobId::new(9)));
        assert!(log.record_if_new(job, 2), "another object");
    }
}

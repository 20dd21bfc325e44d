//! What was handed out last per row, so that only news is handed out again and a cycle without any
//! costs next to nothing. Exact because a value is compared with what was told, and a row that was
//! absent counts as new: the tests below, and the engine's `numbers.rs`. Specification: core.md 9.

use vc_model::{Column, Id};

/// The value of each row as it was last told, where rows are told when they change. Whoever tells
/// says which are gone.
#[derive(Clone, Debug)]
pub struct Latest<I, V> {
    rows: Column<I, V>,
}

impl<I, V> Default for Latest<I, V> {
    fn default() -> Self {
        Self { rows: Column::default() }
    }
}

impl<I: Id, V: PartialEq> Latest<I, V> {
    /// Whether the value was not told for this row before; from now on it was.
    pub fn is_news(&mut self, id: I, value: V) -> bool {
        let row = self.rows.place(id);
        let is_news = row.as_ref() != Some(&value);
        *row = Some(value);
        is_news
    }

    /// What was told last of this row.
    pub fn get(&self, id: I) -> Option<&V> {
        self.rows.get(id)
    }

    /// The row is gone. Whether something was told of it.
    pub fn forget(&mut self, id: I) -> bool {
        self.rows.take(id).is_some()
    }
}

#[cfg(test)]
mod tests {
    use vc_model::JobId;

    use super::*;

    #[test]
    fn a_value_stays_told_until_its_row_is_gone() {
        let (mut latest, job) = (Latest::default(), JobId::new(3));
        assert!(latest.is_news(job, 1) && !latest.is_news(job, 1) && latest.is_news(job, 2));
        assert_eq!(latest.get(job), Some(&2));
        assert!(latest.forget(job) && !latest.forget(job));
        assert_eq!((latest.get(job), latest.get(JobId::new(9))), (None, None));
        assert!(!latest.forget(JobId::new(9)));
        assert!(latest.is_news(job, 2), "another object");
    }
}

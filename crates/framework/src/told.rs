//! What was handed out last per row, so that only news is handed out again and a cycle without any
//! costs next to nothing. Exact because a value is compared with what was told, and a row that was
//! absent counts as new: the tests below, and the engine's `numbers.rs`. Specification: core.md 9.

use vc_model::{Column, Id};

/// The value of each row as it was last told, where all rows are told in every session. A row that
/// was not in the last session is news: its id may mean another object by now.
#[derive(Clone, Debug)]
pub struct Told<I, V> {
    session: u64,
    rows: Column<I, (u64, V)>,
}

impl<I, V> Default for Told<I, V> {
    fn default() -> Self {
        Self { session: 1, rows: Column::default() }
    }
}

impl<I: Id, V: PartialEq> Told<I, V> {
    /// A session begins.
    pub fn begin(&mut self) {
        self.session += 1;
    }

    /// Whether the value was not told for this row before; from now on it was.
    pub fn is_news(&mut self, id: I, value: V) -> bool {
        match self.rows.place(id) {
            Some((session, told)) if *told == value && self.session <= *session + 1 => {
                *session = self.session;
                false
            }
            row => {
                *row = Some((self.session, value));
                true
            }
        }
    }
}

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

    /// What is told, and what of it is news.
    type Case = (&'static [(u32, i32)], &'static [u32]);

    #[test]
    fn a_value_is_news_once_and_again_after_an_absence() {
        let mut told = Told::default();
        let cases: [Case; 6] = [
            (&[(0, 5), (3, 7)], &[0, 3]),
            (&[(0, 5), (3, 7)], &[]),
            (&[(0, 6), (3, 7)], &[0]),
            (&[(3, 7), (4, 1)], &[4]),
            (&[(0, 6), (3, 7), (3, 7)], &[0]),
            (&[], &[]),
        ];
        for (values, news) in cases {
            told.begin();
            let mut found = Vec::new();
            for &(id, value) in values {
                if told.is_news(JobId::new(id), value) {
                    found.push(id);
                }
            }
            assert_eq!(found, news, "{values:?}");
        }
    }

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

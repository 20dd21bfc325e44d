//! What was handed out last per row, so that only news is handed out again and a cycle without any
//! costs next to nothing. Specification: core.md 9.

use std::marker::PhantomData;

use vc_model::Id;

/// The value of each row as it was last told. A row that was not in the last session is news: its
/// id may mean another object by now.
#[derive(Clone, Debug)]
pub struct Told<I, V> {
    session: u64,
    rows: Vec<Option<(u64, V)>>,
    /// Rows of the last session.
    n_before: usize,
    /// Rows of this session, and those of them that were in the last one too.
    n_rows: usize,
    n_stayed: usize,
    id: PhantomData<I>,
}

impl<I, V> Default for Told<I, V> {
    fn default() -> Self {
        let (rows, id) = (Vec::new(), PhantomData);
        Self { session: 1, rows, n_before: 0, n_rows: 0, n_stayed: 0, id }
    }
}

impl<I: Id, V: PartialEq> Told<I, V> {
    /// A session begins.
    pub fn begin(&mut self) {
        self.session += 1;
        self.n_before = std::mem::take(&mut self.n_rows);
        self.n_stayed = 0;
    }

    /// Whether the value was not told for this row before; from now on it was.
    pub fn is_news(&mut self, id: I, value: V) -> bool {
        if self.rows.len() <= id.index() {
            self.rows.resize_with(id.index() + 1, || None);
        }
        let row = &mut self.rows[id.index()];
        let last = row.as_ref().map_or(0, |(session, _)| *session);
        self.n_rows += usize::from(last != self.session);
        self.n_stayed += usize::from(last + 1 == self.session);
        match row {
            Some((session, told)) if *told == value && self.session <= *session + 1 => {
                *session = self.session;
                false
            }
            _ => {
                *row = Some((self.session, value));
                true
            }
        }
    }

    /// Rows of the last session that are not in this one; asked when all of this one are told.
    pub fn left(&self) -> impl Iterator<Item = I> + '_ {
        let some_left = self.n_stayed < self.n_before;
        let rows = self.rows.iter().enumerate().take(if some_left { self.rows.len() } else { 0 });
        rows.filter(|(_, row)| row.as_ref().is_some_and(|row| row.0 + 1 == self.session))
            .map(|(index, _)| I::new(u32::try_from(index).expect("ids come from u32")))
    }
}

#[cfg(test)]
mod tests {
    use vc_model::JobId;

    use super::*;

    /// News and leavers of a session that tells these values.
    fn session(told: &mut Told<JobId, i32>, values: &[(u32, i32)]) -> (Vec<u32>, Vec<usize>) {
        told.begin();
        let mut news = Vec::new();
        for &(id, value) in values {
            if told.is_news(JobId::new(id), value) {
                news.push(id);
            }
        }
        (news, told.left().map(Id::index).collect())
    }

    /// What is told, what of it is news, who has left.
    type Case = (&'static [(u32, i32)], &'static [u32], &'static [usize]);

    #[test]
    fn a_value_is_news_once_and_again_after_an_absence() {
        let mut told = Told::default();
        let cases: [Case; 6] = [
            (&[(0, 5), (3, 7)], &[0, 3], &[]),
            (&[(0, 5), (3, 7)], &[], &[]),
            (&[(0, 6), (3, 7)], &[0], &[]),
            (&[(3, 7), (4, 1)], &[4], &[0]),
            (&[(0, 6), (3, 7), (3, 7)], &[0], &[4]),
            (&[], &[], &[0, 3]),
        ];
        for (values, news, left) in cases {
            assert_eq!(session(&mut told, values), (news.to_vec(), left.to_vec()), "{values:?}");
        }
    }
}

//! Scores of nodes in a row. Nodes of one kind that nobody uses yet stand side by side with the same
//! amounts: a node like the one before it has its score. Exact, because the score is a function of
//! the amounts. Specification: actions.md 12.2 S2.

/// The score of each row, worked out where it differs from the row before.
#[inline]
pub fn scores<R: Copy + PartialEq, S: Copy>(
    rows: impl Iterator<Item = R>,
    score: impl Fn(R) -> S,
) -> impl Iterator<Item = S> {
    let mut last = None;
    rows.map(move |row| match last {
        Some((before, known)) if before == row => known,
        _ => {
            let worked_out = score(row);
            last = Some((row, worked_out));
            worked_out
        }
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn rows_like_the_one_before_are_not_worked_out() {
        let n_calls = Cell::new(0);
        let square = |row: i64| {
            n_calls.set(n_calls.get() + 1);
            row * row
        };
        let squares: Vec<i64> = scores([3, 3, 3, 4, 3, 3].into_iter(), square).collect();
        assert_eq!((squares, n_calls.get()), (vec![9, 9, 9, 16, 9, 9], 3));
    }
}

//! Normalizes raw scores of the candidate nodes to 0..100, and checks the result.
//! Specification: plugins-nodes.md 7.2.

/// The best score that a node can have.
pub const MAX_SCORE: i64 = 100;

/// Which raw score is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    Highest,
    Lowest,
}

/// Scales the scores so that the highest becomes 100, and inverts them if the lowest is best. If no
/// score is above 0, they stay unchanged, or become 100 if inverted.
pub fn normalize(scores: &mut [i64], best: Best) {
    let highest = scores.iter().copied().max().unwrap_or(0).max(0);
    for score in scores {
        *score = scaled(*score, highest, best);
    }
}

/// Normalizes one score. `highest` is the highest score of all candidates, at least 0.
pub fn scaled(score: i64, highest: i64, best: Best) -> i64 {
    let scaled = match highest {
        0 => score,
        _ => MAX_SCORE * score / highest,
    };
    match (best, highest) {
        (Best::Highest, _) => scaled,
        (Best::Lowest, 0) => MAX_SCORE,
        (Best::Lowest, _) => MAX_SCORE - scaled,
    }
}

/// Returns position and value of the first score outside of 0..100. Returns `None` if all are
/// inside.
pub fn invalid(scores: &[i64]) -> Option<(usize, i64)> {
    let mut numbered = scores.iter().copied().enumerate();
    numbered.find(|(_, score)| !(0..=MAX_SCORE).contains(score))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(mut scores: Vec<i64>, best: Best) -> Vec<i64> {
        normalize(&mut scores, best);
        scores
    }

    #[test]
    fn nodes_90_highest_is_100() {
        assert_eq!(normalized(vec![10, 5, 0], Best::Highest), [100, 50, 0]);
        assert_eq!(normalized(vec![0, 0], Best::Highest), [0, 0]);
        assert_eq!(normalized(vec![3, 1], Best::Highest), [100, 33]);
        assert_eq!(normalized(vec![-4, -2], Best::Highest), [-4, -2]);
        assert_eq!(normalized(vec![], Best::Highest), [0; 0]);
    }

    #[test]
    fn nodes_90_lowest_is_100_where_it_is_0() {
        assert_eq!(normalized(vec![0, 1, 2], Best::Lowest), [100, 50, 0]);
        assert_eq!(normalized(vec![0, 0], Best::Lowest), [100, 100]);
        assert_eq!(normalized(vec![1, 3], Best::Lowest), [67, 0]);
    }

    #[test]
    fn scores_outside_of_the_range_are_found() {
        assert_eq!(invalid(&[0, 100, 50]), None);
        assert_eq!(invalid(&[0, 101, -1]), Some((1, 101)));
        assert_eq!(invalid(&[-1]), Some((0, -1)));
    }
}

//! Ratios and the tolerance of fractional comparisons (core.md 3.1, plugins-jobs-queues.md 1.1).

/// Tolerance of comparisons between fractional amounts, in the unit of the dimension.
pub const EPS: f64 = 0.1;

/// Returns the share `a / b`. If `b` is 0, it is 0 if `a` is 0 too, and 1 otherwise.
pub fn share(a: f64, b: f64) -> f64 {
    if b != 0.0 {
        a / b
    } else if a == 0.0 {
        0.0
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn share_of_nothing_is_zero_or_one() {
        for (a, b, want) in [(1.0, 4.0, 0.25), (0.0, 0.0, 0.0), (3.0, 0.0, 1.0), (0.0, 3.0, 0.0)] {
            assert_eq!(share(a, b), want, "share({a}, {b})");
        }
    }
}

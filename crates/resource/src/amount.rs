//! The two number types of a vector: `i64` for amounts, `f64` for plugin arithmetic (core.md 3.1).
//! With integers "less or equal within ε" is plain `<=`, and "equal within ε" is `==` (C-11).

use std::fmt::Debug;
use std::ops::{Add, Sub};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::share::EPS;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i64 {}
    impl Sealed for f64 {}
}

/// A number that a vector can hold: `i64` or `f64`.
pub trait Amount:
    sealed::Sealed + Copy + Debug + Default + PartialEq + PartialOrd + Serialize + DeserializeOwned
{
    /// The largest amount, which stands for "unlimited".
    const LARGEST: Self;
    /// Zero.
    const ZERO: Self;
    /// Value of a missing scalar in a difference, where missing means "unlimited".
    const UNLIMITED: Self;

    /// The type of sums. It is wide enough for the sum of all amounts that fit into memory.
    type Exact: Copy
        + Debug
        + Default
        + PartialEq
        + PartialOrd
        + Add<Output = Self::Exact>
        + Sub<Output = Self::Exact>
        + Serialize
        + DeserializeOwned;

    /// Returns the sum, and true if it overflowed. Integers then wrap.
    #[must_use]
    fn plus(self, other: Self) -> (Self, bool);
    /// Returns the difference, and true if it overflowed. Integers then wrap.
    #[must_use]
    fn minus(self, other: Self) -> (Self, bool);
    /// Returns the same number in the type of sums.
    fn exact(self) -> Self::Exact;
    /// Returns the amount nearest to a sum, and true if it equals the sum.
    fn nearest(exact: Self::Exact) -> (Self, bool);
    /// Returns the `f64` nearest to a sum.
    fn exact_to_f64(exact: Self::Exact) -> f64;
    /// True if `self <= other` within ε.
    fn less_equal(self, other: Self) -> bool;
    /// True if both are equal within ε.
    fn equal(self, other: Self) -> bool;
    /// True if the amount is below ε.
    fn is_small(self) -> bool;
    /// Returns the nearest `f64`.
    fn to_f64(self) -> f64;
    /// Returns whole units, truncated toward zero.
    fn whole(self) -> i64;
    /// Returns the amount as text with two decimals.
    fn text(self) -> String;
}

impl Amount for i64 {
    const LARGEST: i64 = i64::MAX;
    const ZERO: i64 = 0;
    const UNLIMITED: i64 = -1;

    type Exact = i128;

    #[inline]
    fn plus(self, other: i64) -> (i64, bool) {
        self.overflowing_add(other)
    }

    #[inline]
    fn minus(self, other: i64) -> (i64, bool) {
        self.overflowing_sub(other)
    }

    #[inline]
    fn exact(self) -> i128 {
        i128::from(self)
    }

    fn nearest(exact: i128) -> (i64, bool) {
        match i64::try_from(exact) {
            Ok(amount) => (amount, true),
            Err(_) => (if exact < 0 { i64::MIN } else { i64::MAX }, false),
        }
    }

    fn exact_to_f64(exact: i128) -> f64 {
        exact as f64
    }

    fn less_equal(self, other: i64) -> bool {
        self <= other
    }

    fn equal(self, other: i64) -> bool {
        self == other
    }

    fn is_small(self) -> bool {
        self <= 0
    }

    fn to_f64(self) -> f64 {
        self as f64
    }

    fn whole(self) -> i64 {
        self
    }

    fn text(self) -> String {
        match self {
            i64::MAX => "maxInt".to_owned(),
            _ => format!("{self}.00"),
        }
    }
}

impl Amount for f64 {
    const LARGEST: f64 = f64::MAX;
    const ZERO: f64 = 0.0;
    const UNLIMITED: f64 = -1.0;

    type Exact = f64;

    #[inline]
    fn plus(self, other: f64) -> (f64, bool) {
        (self + other, false)
    }

    #[inline]
    fn minus(self, other: f64) -> (f64, bool) {
        (self - other, false)
    }

    #[inline]
    fn exact(self) -> f64 {
        self
    }

    fn nearest(exact: f64) -> (f64, bool) {
        (exact, true)
    }

    fn exact_to_f64(exact: f64) -> f64 {
        exact
    }

    fn less_equal(self, other: f64) -> bool {
        self < other || (self - other).abs() < EPS
    }

    fn equal(self, other: f64) -> bool {
        self == other || (self - other).abs() < EPS
    }

    fn is_small(self) -> bool {
        self < EPS
    }

    fn to_f64(self) -> f64 {
        self
    }

    fn whole(self) -> i64 {
        self as i64
    }

    fn text(self) -> String {
        if self == f64::MAX {
            "maxFloat".to_owned()
        } else if self == i64::MAX as f64 {
            "maxInt".to_owned()
        } else {
            format!("{self:.2}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Amount;

    #[test]
    fn fractions_compare_within_epsilon_and_integers_exactly() {
        assert!(1.09.less_equal(1.0) && 1.09.equal(1.0) && 0.09.is_small());
        assert!(!1.2.less_equal(1.0) && !1.2.equal(1.0) && !0.1.is_small());
        assert!(2.less_equal(2) && !3.less_equal(2) && 0.is_small() && !1.is_small());
    }

    #[test]
    fn largest_values_have_names() {
        assert_eq!((f64::MAX.text(), i64::MAX.text()), ("maxFloat".into(), "maxInt".into()));
        assert_eq!((9223372036854775808.0.text(), 0.5.text()), ("maxInt".into(), "0.50".into()));
    }
}

//! Exact sums beyond the range of an amount (core.md 3.1). If a sum of a vector exceeds 64 bits,
//! the vector keeps all its sums in a wider type. Subtracting what was added then restores the
//! earlier value. Other readers get the nearest amount. Such vectors are rare, so the wide sums are
//! behind one pointer.

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::dims::Dim;
use crate::vector::Vector;

/// Exact amounts, indexed by `Dim`. Amounts after the last one are 0.
pub(crate) type ExactAmounts<T> = SmallVec<[<T as Amount>::Exact; 8]>;

/// The operation of `add` or `sub` on one component.
pub(crate) trait Operation {
    /// Returns the result, and true if it overflowed.
    fn of<T: Amount>(left: T, right: T) -> (T, bool);
    /// Returns the left side again, from a result that may have wrapped.
    fn undo<T: Amount>(result: T, right: T) -> T;
    /// Returns the exact result.
    fn exactly<T: Amount>(left: T::Exact, right: T::Exact) -> T::Exact;
}

/// Sum.
pub(crate) struct Plus;

/// Difference.
pub(crate) struct Minus;

impl Operation for Plus {
    #[inline]
    fn of<T: Amount>(left: T, right: T) -> (T, bool) {
        left.plus(right)
    }

    fn undo<T: Amount>(result: T, right: T) -> T {
        result.minus(right).0
    }

    fn exactly<T: Amount>(left: T::Exact, right: T::Exact) -> T::Exact {
        left + right
    }
}

impl Operation for Minus {
    #[inline]
    fn of<T: Amount>(left: T, right: T) -> (T, bool) {
        left.minus(right)
    }

    fn undo<T: Amount>(result: T, right: T) -> T {
        result.plus(right).0
    }

    fn exactly<T: Amount>(left: T::Exact, right: T::Exact) -> T::Exact {
        left - right
    }
}

impl<T: Amount> Vector<T> {
    /// Returns the amount in the type of sums, or 0 if the scalar is missing.
    #[inline]
    pub fn exact(&self, dim: Dim) -> T::Exact {
        match &self.wide {
            None => self.get(dim).exact(),
            Some(wide) => wide.get(dim.index()).copied().unwrap_or_default(),
        }
    }

    /// Returns the `f64` nearest to the exact amount.
    #[inline]
    pub fn to_f64(&self, dim: Dim) -> f64 {
        match &self.wide {
            None => self.get(dim).to_f64(),
            Some(_) => T::exact_to_f64(self.exact(dim)),
        }
    }

    /// Sets the amount to a sum. The scalar then exists, even with 0.
    pub fn set_exact(&mut self, dim: Dim, exact: T::Exact) {
        let (amount, is_exact) = T::nearest(exact);
        self.set(dim, amount);
        if !is_exact {
            self.widened()[dim.index()] = exact;
        }
    }

    /// Adds to one component.
    pub fn add_to(&mut self, dim: Dim, amount: T) {
        self.set_exact(dim, self.exact(dim) + amount.exact());
    }

    /// Returns the exact amounts, created if necessary, with one entry per amount.
    fn widened(&mut self) -> &mut ExactAmounts<T> {
        let amounts = &self.amounts;
        let wide = self
            .wide
            .get_or_insert_with(|| Box::new(amounts.iter().map(|amount| amount.exact()).collect()));
        wide.resize(amounts.len(), T::ZERO.exact());
        wide
    }

    /// Sets the exact amount of one component to its readable amount. The exact amounts are dropped
    /// when no component needs them.
    #[cold]
    pub(crate) fn narrow(&mut self, dim: Dim) {
        let amount = self.get(dim).exact();
        if let Some(exact) = self.widened().get_mut(dim.index()) {
            *exact = amount;
        }
        self.read_wide();
    }

    /// Undoes an operation that overflowed, and repeats it exactly.
    #[cold]
    pub(crate) fn recombine<O: Operation>(&mut self, other: &Self) {
        for (result, &right) in self.amounts.iter_mut().zip(&other.amounts) {
            *result = O::undo(*result, right);
        }
        self.combine_exactly::<O>(other);
    }

    #[cold]
    pub(crate) fn combine_exactly<O: Operation>(&mut self, other: &Self) {
        let right = |at: usize| match &other.wide {
            None => other.amounts.get(at).copied().unwrap_or_default().exact(),
            Some(wide) => wide.get(at).copied().unwrap_or_default(),
        };
        for (at, exact) in self.widened().iter_mut().enumerate() {
            *exact = O::exactly::<T>(*exact, right(at));
        }
        self.read_wide();
    }

    /// Derives the readable amounts from the exact ones. The exact amounts are dropped if they are
    /// all equal.
    fn read_wide(&mut self) {
        let Some(wide) = &self.wide else { return };
        let mut all_exact = true;
        for (amount, &exact) in self.amounts.iter_mut().zip(wide.iter()) {
            let (nearest, is_exact) = T::nearest(exact);
            *amount = nearest;
            all_exact &= is_exact;
        }
        if all_exact {
            self.wide = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{Dim, Resource};

    /// Amounts at the bounds and in between.
    fn amounts() -> impl Strategy<Value = i64> {
        prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(0), any::<i64>(), -9_i64..9, Just(7 << 60),]
    }

    fn vectors() -> impl Strategy<Value = Resource> {
        prop::collection::vec((0_usize..12, amounts()), 0..6).prop_map(|list| {
            let mut vector = Resource::new();
            list.into_iter().for_each(|(dim, amount)| vector.set(Dim::at(dim), amount));
            vector
        })
    }

    fn exact(vector: &Resource) -> Vec<i128> {
        (0..12).map(|dim| vector.exact(Dim::at(dim))).collect()
    }

    proptest! {
        #[test]
        fn sums_are_exact_and_undone_exactly(
            start in vectors(),
            steps in prop::collection::vec((vectors(), any::<bool>()), 0..12),
        ) {
            let (mut sum, mut expected) = (start.clone(), exact(&start));
            for (by, adds) in &steps {
                let sign = if *adds { 1 } else { -1 };
                expected.iter_mut().zip(exact(by)).for_each(|(sum, by)| *sum += sign * by);
                if *adds { sum.add(by) } else { sum.sub(by) }
                prop_assert_eq!(&exact(&sum), &expected);
                for (dim, &expected) in expected.iter().enumerate() {
                    let clamped = expected.clamp(i64::MIN.into(), i64::MAX.into());
                    prop_assert_eq!(i128::from(sum.get(Dim::at(dim))), clamped);
                    prop_assert_eq!(sum.to_f64(Dim::at(dim)), expected as f64);
                }
                let leaves = expected.iter().any(|&sum| i64::try_from(sum).is_err());
                prop_assert_eq!(sum.wide.is_some(), leaves);
            }
            // In another order than they came.
            for (by, adds) in &steps {
                if *adds { sum.sub(by) } else { sum.add(by) }
            }
            prop_assert_eq!(exact(&sum), exact(&start));
            prop_assert!(sum.wide.is_none());
        }

        #[test]
        fn what_is_made_of_sums_is_exact(l in vectors(), r in vectors(), more in vectors()) {
            let (mut left, mut right) = (l.clone(), r.clone());
            left.add(&more);
            right.add(&l);
            let (l, r) = (exact(&left), exact(&right));
            let of = |with: fn(i128, i128) -> i128| -> Vec<i128> {
                l.iter().zip(&r).map(|(&l, &r)| with(l, r)).collect()
            };
            prop_assert_eq!(exact(&left.excess(&right)), of(|l, r| (l - r).max(0)));
            let least = left.min_dim(&right, crate::Absent::Infinity);
            for dim in left.dims().filter(|&dim| right.has(dim)) {
                let expected = l[dim.index()].min(r[dim.index()]);
                prop_assert_eq!(least.exact(dim), expected);
            }
            let mut rest = left.clone();
            let clamped = rest.sub_clamped(&right);
            let is_short = right.dims().any(|dim| l[dim.index()] < r[dim.index()]);
            prop_assert_eq!(clamped, is_short);
            let mut largest = left.clone();
            largest.set_max(&right);
            for dim in left.dims().filter(|&dim| right.has(dim)) {
                prop_assert_eq!(largest.exact(dim), l[dim.index()].max(r[dim.index()]));
            }
        }
    }

    #[test]
    fn two_requests_of_seven_exbi_are_more_than_one() {
        let mut request = Resource::new();
        request.set(Dim::MEMORY, 7 << 60);
        let mut sum = request.clone();
        sum.add(&request);
        assert_eq!((sum.get(Dim::MEMORY), sum.exact(Dim::MEMORY)), (i64::MAX, 14 << 60));
        assert_eq!(sum.to_fractional().get(Dim::MEMORY), (14_i128 << 60) as f64);
        sum.add_to(Dim::PODS, 1);
        sum.set(Dim::MEMORY, 1);
        assert_eq!((sum.exact(Dim::MEMORY), sum.exact(Dim::PODS)), (1, 1));
        assert!(sum.wide.is_none());
    }
}

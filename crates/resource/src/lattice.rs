//! Differences, minima and maxima of vectors (core.md 3.1, plugins-jobs-queues.md 1.1).

use crate::amount::Amount;
use crate::dims::Dim;
use crate::vector::{Absent, Vector};

impl<T: Amount> Vector<T> {
    /// Returns the amounts by which the left side is larger, and those by which it is smaller. Per
    /// dimension one of the two gets the difference. With `Infinity` a scalar missing on one side
    /// is larger than everything, and its difference is −1.
    pub fn diff(&self, right: &Self, absent: Absent) -> (Self, Self) {
        let mut increased = Self::new();
        let mut decreased = Self::new();
        for dim in self.union(right) {
            let (l, r) = (self.exact(dim), right.exact(dim));
            if self.unlimited(dim, absent) {
                increased.set(dim, T::UNLIMITED);
            } else if right.unlimited(dim, absent) {
                decreased.set(dim, T::UNLIMITED);
            } else if l > r {
                increased.set_exact(dim, l - r);
            } else {
                decreased.set_exact(dim, r - l);
            }
        }
        (increased, decreased)
    }

    /// Returns the part above `right`: `max(0, l - r)` per dimension. Scalars with result 0 are
    /// left out.
    #[must_use]
    pub fn excess(&self, right: &Self) -> Self {
        self.diff(right, Absent::Zero).0
    }

    /// Returns the component-wise minimum over the dimensions of the left side. A scalar missing in
    /// `right` counts 0 with `Zero` (`min_req`), and is ignored with `Infinity` (`min_cap`). cpu
    /// and memory of `right` always count.
    #[must_use]
    pub fn min_dim(&self, right: &Self, absent: Absent) -> Self {
        let mut least = self.clone();
        for dim in self.dims() {
            let counts = absent == Absent::Zero || right.has(dim);
            if counts && right.exact(dim) < self.exact(dim) {
                least.set_exact(dim, right.exact(dim));
            }
        }
        least
    }

    /// Returns the component-wise maximum over the dimensions of both sides. Negative scalars are
    /// dropped.
    #[must_use]
    pub fn max_dim(&self, right: &Self) -> Self {
        let mut largest = self.clone();
        largest.set_max(right);
        for dim in largest.scalars() {
            if largest.get(dim) < T::ZERO {
                largest.remove(dim);
            }
        }
        largest
    }

    /// Returns the component-wise minimum. A scalar missing in `right` counts 0. If one side has no
    /// scalars, the result has none.
    #[must_use]
    pub fn min(&self, right: &Self) -> Self {
        let mut least = self.min_dim(right, Absent::Zero);
        if !right.has_scalars() {
            for dim in self.scalars() {
                least.remove(dim);
            }
        }
        least
    }

    /// Returns the dimensions with at least ε on both sides, `pods` included, in `Dim` order.
    pub fn intersection(&self, right: &Self) -> impl Iterator<Item = Dim> {
        self.names().filter(|&dim| !right.is_zero(dim))
    }

    /// Returns the dimensions of `intersection` except `pods`.
    pub fn intersection_without_pods(&self, right: &Self) -> impl Iterator<Item = Dim> {
        self.intersection(right).filter(|&dim| dim != Dim::PODS)
    }
}

//! Comparisons of vectors (core.md 3.1, plugins-jobs-queues.md 1.1). `self` is the left side. Names
//! are returned in report order: cpu, memory, then scalars by name.

use crate::amount::Amount;
use crate::dims::{Dim, Dims};
use crate::vector::{Absent, Vector};

impl<T: Amount> Vector<T> {
    /// True if the left side is strictly less in every dimension. With `Infinity`, a scalar only on
    /// the right fails, and a scalar only on the left is skipped.
    pub fn less(&self, right: &Self, absent: Absent) -> bool {
        self.covered(right, absent) && self.all(right, absent, |l, r| l < r)
    }

    /// True if the left side is less or equal within ε in every dimension. Missing scalars count as
    /// in `less`.
    pub fn less_equal(&self, right: &Self, absent: Absent) -> bool {
        self.covered(right, absent) && self.all(right, absent, T::less_equal)
    }

    /// True if the right side has no scalar that the left side lacks. With `Zero` always true.
    fn covered(&self, right: &Self, absent: Absent) -> bool {
        absent == Absent::Zero || right.scalars().all(|dim| self.has(dim))
    }

    fn all(&self, right: &Self, absent: Absent, holds: impl Fn(T, T) -> bool) -> bool {
        self.dims().all(|dim| right.unlimited(dim, absent) || holds(self.get(dim), right.get(dim)))
    }

    /// True if the scalar is missing and `absent` makes that unlimited.
    pub(crate) fn unlimited(&self, dim: Dim, absent: Absent) -> bool {
        absent == Absent::Infinity && !self.has(dim)
    }

    /// Compares like `less_equal`, but reports the failing dimensions. With `Infinity`, a scalar
    /// only on the right does not fail.
    ///
    /// # Errors Returns the dimensions that are too large, in report order.
    pub fn less_equal_names(
        &self,
        right: &Self,
        absent: Absent,
        dims: &Dims,
    ) -> Result<(), Vec<Dim>> {
        let failing = in_order(dims, |dim| {
            self.has(dim)
                && !right.unlimited(dim, absent)
                && !self.get(dim).less_equal(right.get(dim))
        });
        ok_if_none(failing)
    }

    /// Checks that no requested dimension is above the right side (`le_req`). The comparison is
    /// strict, without ε, and skips `pods`. If the left side has no scalars, only cpu and memory
    /// are compared.
    ///
    /// # Errors Returns the dimensions that are too large, in report order.
    pub fn less_equal_dim(&self, right: &Self, req: &Self, dims: &Dims) -> Result<(), Vec<Dim>> {
        self.no_requested(right, req, dims, |l, r| l > r)
    }

    /// Checks `le_req` with a tolerance in the unit of the dimension (D11). A dimension fails if `l
    /// > r + tolerance`.
    ///
    /// # Errors Returns the dimensions that are too large, in report order.
    pub fn less_equal_dim_within(
        &self,
        right: &Self,
        req: &Self,
        tolerance: f64,
        dims: &Dims,
    ) -> Result<(), Vec<Dim>> {
        self.no_requested(right, req, dims, |l, r| l.to_f64() > r.to_f64() + tolerance)
    }

    fn no_requested(
        &self,
        right: &Self,
        req: &Self,
        dims: &Dims,
        violates: impl Fn(T, T) -> bool,
    ) -> Result<(), Vec<Dim>> {
        let looked_at = |dim| is_native(dim) || self.has_scalars();
        let failing = in_order(dims, |dim| {
            req.requests(dim) && looked_at(dim) && violates(self.get(dim), right.get(dim))
        });
        ok_if_none(failing)
    }

    /// True if the dimension is requested. The `…_dim` comparisons never look at `pods`.
    fn requests(&self, dim: Dim) -> bool {
        dim != Dim::PODS && self.get(dim) > T::ZERO
    }

    /// True if the left side is strictly less in some dimension. With `Zero`, a scalar only on the
    /// right suffices; with `Infinity`, a scalar only on the left.
    pub fn less_partly(&self, right: &Self, absent: Absent) -> bool {
        self.any(right, absent, |l, r| l < r)
    }

    /// True if the left side is less or equal within ε in some dimension. Missing scalars count as
    /// in `less_partly`.
    pub fn less_equal_partly(&self, right: &Self, absent: Absent) -> bool {
        self.any(right, absent, T::less_equal)
    }

    fn any(&self, right: &Self, absent: Absent, holds: impl Fn(T, T) -> bool) -> bool {
        let only_right = || right.scalars().any(|dim| !self.has(dim));
        absent == Absent::Zero && only_right()
            || self
                .dims()
                .any(|dim| right.unlimited(dim, absent) || holds(self.get(dim), right.get(dim)))
    }

    /// Returns the requested dimensions, except `pods`, that are less or equal within ε. The
    /// comparison is false if the list is empty.
    pub fn less_equal_partly_dim(&self, right: &Self, req: &Self, dims: &Dims) -> Vec<Dim> {
        in_order(dims, |dim| req.requests(dim) && self.get(dim).less_equal(right.get(dim)))
    }

    /// Returns the dimensions of `less_equal_partly_dim`, except those where both sides are below ε
    /// (`any_le_req`). The comparison is false if the list is empty.
    pub fn less_equal_partly_dim_nonzero(&self, right: &Self, req: &Self, dims: &Dims) -> Vec<Dim> {
        in_order(dims, |dim| {
            req.requests(dim)
                && !(self.is_zero(dim) && right.is_zero(dim))
                && self.get(dim).less_equal(right.get(dim))
        })
    }

    /// True if cpu, memory and the scalars of the left side are equal within ε. Scalars only on the
    /// right are ignored.
    pub fn equal(&self, right: &Self) -> bool {
        self.dims().all(|dim| self.get(dim).equal(right.get(dim)))
    }

    /// Returns the dimensions that make `less_equal_names` fail. The comparison is false if the
    /// list is empty.
    pub fn greater_partly(&self, right: &Self, absent: Absent, dims: &Dims) -> Vec<Dim> {
        self.less_equal_names(right, absent, dims).err().unwrap_or_default()
    }

    /// Returns the requested dimensions, except `pods`, that are larger, without ε. The comparison
    /// is false if the list is empty.
    pub fn greater_partly_dim(&self, right: &Self, req: &Self, dims: &Dims) -> Vec<Dim> {
        in_order(dims, |dim| req.requests(dim) && self.get(dim) > right.get(dim))
    }

    /// Returns the dimensions of `greater_partly_dim` that the right side limits (`any_gt_rel`). It
    /// limits cpu and memory from ε on, and scalars that it has, even with 0. The comparison is
    /// false if the list is empty.
    pub fn greater_partly_relevant(&self, right: &Self, req: &Self, dims: &Dims) -> Vec<Dim> {
        let limits = |dim| match is_native(dim) {
            true => !right.is_zero(dim),
            false => right.has(dim),
        };
        in_order(dims, |dim| req.requests(dim) && limits(dim) && self.get(dim) > right.get(dim))
    }

    /// True if this request fits the idle amounts, `pods` included. A dimension that is not
    /// requested is ignored, even if it is negative in `idle` (C-15).
    pub fn fits(&self, idle: &Self) -> bool {
        let missing = std::iter::repeat(T::ZERO);
        let available = idle.amounts().iter().copied().chain(missing);
        self.amounts().iter().zip(available).all(|(&requested, idle)| !lacks(requested, idle))
    }

    /// Returns the first dimension in report order that makes `fits` fail. Returns `None` if the
    /// request fits.
    pub fn first_lacking(&self, idle: &Self, dims: &Dims) -> Option<Dim> {
        self.first_lacking_of(|dim| idle.get(dim), dims)
    }

    /// Returns the first dimension in report order that the request lacks. `idle` computes the idle
    /// amount of a dimension; it is called for requested dimensions only.
    pub fn first_lacking_of(&self, idle: impl Fn(Dim) -> T, dims: &Dims) -> Option<Dim> {
        let mut order = dims.in_report_order().iter().copied();
        order.find(|&dim| T::ZERO < self.get(dim) && !self.get(dim).less_equal(idle(dim)))
    }

    /// Returns all dimensions that make `fits` fail, in report order.
    pub fn all_lacking(&self, idle: &Self, dims: &Dims) -> Vec<Dim> {
        in_order(dims, |dim| lacks(self.get(dim), idle.get(dim)))
    }
}

fn lacks<T: Amount>(requested: T, available: T) -> bool {
    requested > T::ZERO && !requested.less_equal(available)
}

fn is_native(dim: Dim) -> bool {
    dim == Dim::CPU || dim == Dim::MEMORY
}

fn in_order(dims: &Dims, wanted: impl Fn(Dim) -> bool) -> Vec<Dim> {
    dims.in_report_order().iter().copied().filter(|&dim| wanted(dim)).collect()
}

fn ok_if_none(failing: Vec<Dim>) -> Result<(), Vec<Dim>> {
    if failing.is_empty() { Ok(()) } else { Err(failing) }
}

//! Comparisons of vectors (core.md 3.1, plugins-jobs-queues.md 1.1). `self` is the left side.
//! Where names are returned they are in report order: cpu, memory, then scalars by name.

use crate::amount::Amount;
use crate::dims::{Dim, Dims};
use crate::vector::{Absent, Vector};

impl<T: Amount> Vector<T> {
    /// Strictly less in every dimension. With `Infinity` a scalar that only the right side has
    /// fails and one that only the left side has is skipped.
    pub fn less(&self, right: &Self, absent: Absent) -> bool {
        self.covered(right, absent) && self.all(right, absent, |l, r| l < r)
    }

    /// As `less`, with "less or equal within ε".
    pub fn less_equal(&self, right: &Self, absent: Absent) -> bool {
        self.covered(right, absent) && self.all(right, absent, T::less_equal)
    }

    /// With `Infinity`: the right side has no scalar that the left side lacks.
    fn covered(&self, right: &Self, absent: Absent) -> bool {
        absent == Absent::Zero || right.scalars().all(|dim| self.has(dim))
    }

    fn all(&self, right: &Self, absent: Absent, holds: impl Fn(T, T) -> bool) -> bool {
        self.dims().all(|dim| right.unlimited(dim, absent) || holds(self.get(dim), right.get(dim)))
    }

    /// Whether a scalar is missing here and that means "unlimited".
    pub(crate) fn unlimited(&self, dim: Dim, absent: Absent) -> bool {
        absent == Absent::Infinity && !self.has(dim)
    }

    /// As `less_equal` with the failing names, except that with `Infinity` a scalar that only the
    /// right side has does not fail.
    ///
    /// # Errors
    /// The dimensions that are too large, in report order.
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

    /// `le_req`: no requested dimension but `pods` is above the right side (strict, without ε).
    /// If the left side has no scalars, only cpu and memory are looked at.
    ///
    /// # Errors
    /// The dimensions that are too large, in report order.
    pub fn less_equal_dim(&self, right: &Self, req: &Self, dims: &Dims) -> Result<(), Vec<Dim>> {
        self.no_requested(right, req, dims, |l, r| l > r)
    }

    /// `le_req` with a tolerance in the unit of the dimension: a violation is
    /// `l > r + tolerance` (D11).
    ///
    /// # Errors
    /// The dimensions that are too large, in report order.
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

    /// Requested in the sense of the `…_dim` comparisons, which never look at `pods`.
    fn requests(&self, dim: Dim) -> bool {
        dim != Dim::PODS && self.get(dim) > T::ZERO
    }

    /// Strictly less in some dimension. With `Zero` a scalar that only the right side has is
    /// enough, with `Infinity` one that only the left side has.
    pub fn less_partly(&self, right: &Self, absent: Absent) -> bool {
        self.any(right, absent, |l, r| l < r)
    }

    /// As `less_partly`, with "less or equal within ε".
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

    /// The requested dimensions (not `pods`) that are less or equal within ε. Empty: the
    /// comparison is false.
    pub fn less_equal_partly_dim(&self, right: &Self, req: &Self, dims: &Dims) -> Vec<Dim> {
        in_order(dims, |dim| req.requests(dim) && self.get(dim).less_equal(right.get(dim)))
    }

    /// `any_le_req`: as `less_equal_partly_dim` without the dimensions where both sides are
    /// below ε. Empty: the comparison is false.
    pub fn less_equal_partly_dim_nonzero(&self, right: &Self, req: &Self, dims: &Dims) -> Vec<Dim> {
        in_order(dims, |dim| {
            req.requests(dim)
                && !(self.is_zero(dim) && right.is_zero(dim))
                && self.get(dim).less_equal(right.get(dim))
        })
    }

    /// cpu, memory and the scalars of the left side are equal within ε; scalars that only the
    /// right side has are not looked at.
    pub fn equal(&self, right: &Self) -> bool {
        self.dims().all(|dim| self.get(dim).equal(right.get(dim)))
    }

    /// The dimensions that make `less_equal_names` fail. Empty: the comparison is false.
    pub fn greater_partly(&self, right: &Self, absent: Absent, dims: &Dims) -> Vec<Dim> {
        self.less_equal_names(right, absent, dims).err().unwrap_or_default()
    }

    /// The requested dimensions (not `pods`) that are larger, without ε. Empty: the comparison
    /// is false.
    pub fn greater_partly_dim(&self, right: &Self, req: &Self, dims: &Dims) -> Vec<Dim> {
        in_order(dims, |dim| req.requests(dim) && self.get(dim) > right.get(dim))
    }

    /// `any_gt_rel`: as `greater_partly_dim` for the dimensions that the right side limits: cpu
    /// and memory from ε on, scalars that it has, even with 0. Empty: the comparison is false.
    pub fn greater_partly_relevant(&self, right: &Self, req: &Self, dims: &Dims) -> Vec<Dim> {
        let limits = |dim| match is_native(dim) {
            true => !right.is_zero(dim),
            false => right.has(dim),
        };
        in_order(dims, |dim| req.requests(dim) && limits(dim) && self.get(dim) > right.get(dim))
    }

    /// Whether this request fits what is idle, `pods` included. A dimension that is not requested
    /// does not matter, even where idle is negative (C-15).
    pub fn fits(&self, idle: &Self) -> bool {
        let missing = std::iter::repeat(T::ZERO);
        let available = idle.amounts().iter().copied().chain(missing);
        self.amounts().iter().zip(available).all(|(&requested, idle)| !lacks(requested, idle))
    }

    /// The first dimension in report order that makes `fits` fail.
    pub fn first_lacking(&self, idle: &Self, dims: &Dims) -> Option<Dim> {
        let mut order = dims.in_report_order().iter().copied();
        order.find(|&dim| lacks(self.get(dim), idle.get(dim)))
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

//! The resource vector: storage and arithmetic (core.md 3.1, plugins-jobs-queues.md 1.1). cpu and
//! memory always exist. Every other dimension, `pods` included, is a scalar that exists only after
//! it was set. Several comparisons distinguish "0" from "missing". Sums beyond 64 bits are read as
//! the nearest 64-bit amount, and kept exactly beside it (`exact.rs`).

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::amount::Amount;
use crate::dims::Dim;
use crate::exact::{ExactAmounts, Minus, Operation, Plus};
use crate::mask::Mask;

/// Value of a scalar that one side lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The missing scalar is 0.
    Zero,
    /// The missing scalar is unlimited.
    Infinity,
}

/// One amount per dimension. Units are millicores, bytes, whole pods and whole attachable volumes,
/// and thousandths for all other resources.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Vector<T: Amount> {
    /// Amounts indexed by `Dim`; zero where `present` has no bit. The list may be shorter than the
    /// interner.
    pub(crate) amounts: SmallVec<[T; 8]>,
    /// The scalars that exist.
    present: Mask,
    /// Every amount as an exact sum. `None` if no amount has left the range of `T`.
    pub(crate) wide: Option<Box<ExactAmounts<T>>>,
}

/// Amounts of nodes, tasks, jobs and queues.
pub type Resource = Vector<i64>;
/// Deserved amounts, and products of ratios and amounts.
pub type Fractional = Vector<f64>;

impl<T: Amount> Vector<T> {
    /// Returns a vector of zeros without scalars.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns unlimited cpu and memory, without scalars.
    pub fn infinite() -> Self {
        let mut infinite = Self::new();
        infinite.set(Dim::CPU, T::LARGEST);
        infinite.set(Dim::MEMORY, T::LARGEST);
        infinite
    }

    /// Returns the amount, or 0 if the scalar is missing. A sum beyond the range of `T` is read as
    /// the nearest amount.
    #[inline]
    pub fn get(&self, dim: Dim) -> T {
        self.amounts.get(dim.index()).copied().unwrap_or(T::ZERO)
    }

    /// Sets the amount. The scalar then exists, even with 0.
    pub fn set(&mut self, dim: Dim, amount: T) {
        if self.amounts.len() <= dim.index() {
            self.amounts.resize(dim.index() + 1, T::ZERO);
        }
        self.amounts[dim.index()] = amount;
        if !Mask::NATIVE.has(dim) {
            self.present.insert(dim);
        }
        if self.wide.is_some() {
            self.narrow(dim);
        }
    }

    /// True if the dimension exists; always true for cpu and memory.
    #[inline]
    pub fn has(&self, dim: Dim) -> bool {
        Mask::NATIVE.has(dim) || self.present.has(dim)
    }

    /// Removes a scalar; sets cpu or memory to 0.
    pub fn remove(&mut self, dim: Dim) {
        if let Some(amount) = self.amounts.get_mut(dim.index()) {
            *amount = T::ZERO;
        }
        self.present.remove(dim);
        if self.wide.is_some() {
            self.narrow(dim);
        }
    }

    /// Returns the vector without scalars whose amount is 0. Additions that were undone leave such
    /// scalars.
    #[must_use]
    pub fn without_zero_scalars(mut self) -> Self {
        for dim in self.scalars().filter(|&dim| self.get(dim) == T::ZERO).collect::<Vec<_>>() {
            self.remove(dim);
        }
        self
    }

    /// True if any scalar exists, `pods` included, whatever its amount.
    pub fn has_scalars(&self) -> bool {
        !self.present.is_empty()
    }

    /// Returns every existing dimension in `Dim` order; cpu and memory are always included.
    pub fn dims(&self) -> impl Iterator<Item = Dim> + use<T> {
        self.mask().into_dims()
    }

    /// Returns every existing scalar in `Dim` order.
    pub fn scalars(&self) -> impl Iterator<Item = Dim> + use<T> {
        self.present.clone().into_dims()
    }

    /// Returns every dimension that exists on either side.
    pub(crate) fn union(&self, other: &Self) -> impl Iterator<Item = Dim> + use<T> {
        let mut mask = self.mask();
        mask.unite(&other.present);
        mask.into_dims()
    }

    /// Returns readable amounts in `Dim` order, up to the last dimension that was ever set.
    pub(crate) fn amounts(&self) -> &[T] {
        &self.amounts
    }

    fn mask(&self) -> Mask {
        let mut mask = self.present.clone();
        mask.unite(&Mask::NATIVE);
        mask
    }

    /// Adds component by component. Missing scalars are created. `sub` undoes it exactly.
    pub fn add(&mut self, other: &Self) {
        self.combine::<Plus>(other);
    }

    /// Subtracts component by component; results may be negative. Missing scalars are created.
    /// `add` undoes it exactly.
    pub fn sub(&mut self, other: &Self) {
        self.combine::<Minus>(other);
    }

    fn combine<O: Operation>(&mut self, other: &Self) {
        if self.amounts.len() < other.amounts.len() {
            self.amounts.resize(other.amounts.len(), T::ZERO);
        }
        self.present.unite(&other.present);
        if self.wide.is_some() || other.wide.is_some() {
            return self.combine_exactly::<O>(other);
        }
        let mut has_left = false;
        // A dimension that `other` lacks is 0 there and changes nothing.
        for (left, &right) in self.amounts.iter_mut().zip(&other.amounts) {
            let (result, leaves) = O::of(*left, right);
            *left = result;
            has_left |= leaves;
        }
        if has_left {
            self.recombine::<O>(other);
        }
    }

    /// Subtracts with a lower bound of 0: a dimension that is larger in `other` becomes 0 (C-03,
    /// D5). Returns true if that happened; the caller counts it. If the left side has no scalars,
    /// scalars of `other` create none.
    #[must_use]
    pub fn sub_clamped(&mut self, other: &Self) -> bool {
        let had_scalars = self.has_scalars();
        let mut clamped = false;
        for dim in other.dims() {
            let (left, right) = (self.exact(dim), other.exact(dim));
            let is_read_exactly = self.wide.is_none() && other.wide.is_none();
            let within = || other.get(dim).less_equal(self.get(dim));
            let enough = right <= left || is_read_exactly && within();
            clamped |= !enough;
            if had_scalars || self.has(dim) {
                let zero = T::ZERO.exact();
                self.set_exact(dim, if enough { left - right } else { zero });
            }
        }
        clamped
    }

    /// Returns every component times `factor`.
    #[must_use]
    pub fn multi(&self, factor: f64) -> Fractional {
        self.fractions(|amount| amount * factor)
    }

    /// Returns the same amounts for fractional arithmetic; exact below 2^53.
    #[must_use]
    pub fn to_fractional(&self) -> Fractional {
        self.fractions(|amount| amount)
    }

    fn fractions(&self, of: impl Fn(f64) -> f64) -> Fractional {
        let mut amounts: SmallVec<[f64; 8]> =
            self.amounts.iter().map(|amount| of(amount.to_f64())).collect();
        if let Some(wide) = &self.wide {
            let exact = wide.iter().map(|&exact| of(T::exact_to_f64(exact)));
            amounts.iter_mut().zip(exact).for_each(|(amount, exact)| *amount = exact);
        }
        Vector { amounts, present: self.present.clone(), wide: None }
    }

    /// Sets each component to the maximum of both sides. Scalars only in `other` are taken.
    pub fn set_max(&mut self, other: &Self) {
        for dim in other.dims() {
            let amount = other.exact(dim);
            if !self.has(dim) || self.exact(dim) < amount {
                self.set_exact(dim, amount);
            }
        }
    }

    /// Sets negative amounts to 0.
    pub fn raise_to_zero(&mut self) {
        for dim in self.dims() {
            if self.get(dim) < T::ZERO {
                self.set(dim, T::ZERO);
            }
        }
    }

    /// True if nothing is requested: every dimension but `pods` is below ε.
    pub fn is_empty(&self) -> bool {
        self.dims().all(|dim| dim == Dim::PODS || self.is_zero(dim))
    }

    /// True if every amount is exactly 0, `pods` included.
    pub fn is_all_zero(&self) -> bool {
        self.wide.is_none() && self.amounts.iter().all(|amount| *amount == T::ZERO)
    }

    /// True if the amount is below ε, or the scalar is missing.
    pub fn is_zero(&self, dim: Dim) -> bool {
        self.get(dim).is_small()
    }

    /// Returns the dimensions with an amount of at least ε, `pods` included, in `Dim` order.
    pub fn names(&self) -> impl Iterator<Item = Dim> + '_ {
        self.dims().filter(|&dim| !self.is_zero(dim))
    }
}

/// Equal if scalars and amounts are equal. Spare capacity is ignored.
impl<T: Amount> PartialEq for Vector<T> {
    fn eq(&self, other: &Self) -> bool {
        self.present == other.present
            && self.wide.is_some() == other.wide.is_some()
            && self.dims().all(|dim| self.exact(dim) == other.exact(dim))
    }
}

impl Eq for Resource {}

impl Hash for Resource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.present.hash(state);
        for dim in self.dims() {
            self.get(dim).hash(state);
        }
    }
}

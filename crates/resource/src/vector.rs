//! The resource vector: storage and arithmetic (core.md 3.1, plugins-jobs-queues.md 1.1).
//! cpu and memory always exist; every other dimension, `pods` included, is a scalar that exists
//! only after it was set, because several comparisons tell "0" from "not there". Amounts that leave
//! 64 bits in a sum are read as the nearest that does not, and kept exactly beside it (`exact.rs`).

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::dims::Dim;
use crate::exact::{Minus, Operation, Plus, Wide};
use crate::mask::Mask;

/// What a scalar that one side lacks counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It is 0.
    Zero,
    /// It is unlimited.
    Infinity,
}

/// One amount per dimension. Units: millicores, bytes, whole pods, thousandths of the rest
/// (attachable volumes: whole volumes).
#[derive(Clone, Debug, Default)]
pub struct Vector<T: Amount> {
    /// Indexed by `Dim`; zero wherever `present` has no bit; may be shorter than the interner.
    pub(crate) amounts: SmallVec<[T; 8]>,
    /// The scalars that exist.
    present: Mask,
    /// Every amount as an exact sum. `None`: none has left the range of `T`.
    pub(crate) wide: Option<Box<Wide<T>>>,
}

/// Amounts of nodes, tasks, jobs and queues.
pub type Resource = Vector<i64>;
/// Deserved amounts, ratios times amounts.
pub type Fractional = Vector<f64>;

impl<T: Amount> Vector<T> {
    /// Nothing, without scalars.
    pub fn new() -> Self {
        Self::default()
    }

    /// Unlimited cpu and memory, without scalars.
    pub fn infinite() -> Self {
        let mut infinite = Self::new();
        infinite.set(Dim::CPU, T::LARGEST);
        infinite.set(Dim::MEMORY, T::LARGEST);
        infinite
    }

    /// The amount, 0 if the scalar is missing; the nearest one to a sum that left the range of `T`.
    #[inline]
    pub fn get(&self, dim: Dim) -> T {
        self.amounts.get(dim.index()).copied().unwrap_or(T::ZERO)
    }

    /// Sets the amount; a scalar exists from now on, even with 0.
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

    /// Whether the dimension exists; true for cpu and memory.
    #[inline]
    pub fn has(&self, dim: Dim) -> bool {
        Mask::NATIVE.has(dim) || self.present.has(dim)
    }

    /// Makes a scalar missing, cpu and memory 0.
    pub fn remove(&mut self, dim: Dim) {
        if let Some(amount) = self.amounts.get_mut(dim.index()) {
            *amount = T::ZERO;
        }
        self.present.remove(dim);
        if self.wide.is_some() {
            self.narrow(dim);
        }
    }

    /// Whether any scalar exists (`pods` is one), whatever its amount.
    pub fn has_scalars(&self) -> bool {
        !self.present.is_empty()
    }

    /// Every existing dimension in `Dim` order, cpu and memory always.
    pub fn dims(&self) -> impl Iterator<Item = Dim> + use<T> {
        self.mask().into_dims()
    }

    /// Every existing scalar in `Dim` order.
    pub fn scalars(&self) -> impl Iterator<Item = Dim> + use<T> {
        self.present.clone().into_dims()
    }

    /// Every dimension that exists on either side.
    pub(crate) fn union(&self, other: &Self) -> impl Iterator<Item = Dim> + use<T> {
        let mut mask = self.mask();
        mask.unite(&other.present);
        mask.into_dims()
    }

    /// Readable amounts in `Dim` order, without those behind the last dimension that was ever set.
    pub(crate) fn amounts(&self) -> &[T] {
        &self.amounts
    }

    fn mask(&self) -> Mask {
        let mut mask = self.present.clone();
        mask.unite(&Mask::NATIVE);
        mask
    }

    /// Adds component by component; missing scalars are made. Undone exactly by `sub`.
    pub fn add(&mut self, other: &Self) {
        self.combine::<Plus>(other);
    }

    /// Subtracts component by component, may go negative; missing scalars are made. Undone exactly
    /// by `add`.
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
        // What `other` lacks is 0 there and changes nothing.
        for (left, &right) in self.amounts.iter_mut().zip(&other.amounts) {
            let (result, leaves) = O::of(*left, right);
            *left = result;
            has_left |= leaves;
        }
        if has_left {
            self.recombine::<O>(other);
        }
    }

    /// The checked subtraction: a dimension of `other` that is larger than ours becomes 0 instead
    /// of negative (C-03, D5). True if that happened; the caller counts it. Without any scalar
    /// on our side, scalars of `other` make none.
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

    /// Every component times `factor`.
    #[must_use]
    pub fn multi(&self, factor: f64) -> Fractional {
        self.fractions(|amount| amount * factor)
    }

    /// The same amounts for fractional arithmetic; exact below 2^53.
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

    /// Component-wise maximum in place; scalars only in `other` are taken.
    pub fn set_max(&mut self, other: &Self) {
        for dim in other.dims() {
            let amount = other.exact(dim);
            if !self.has(dim) || self.exact(dim) < amount {
                self.set_exact(dim, amount);
            }
        }
    }

    /// Makes amounts below zero 0.
    pub fn raise_to_zero(&mut self) {
        for dim in self.dims() {
            if self.get(dim) < T::ZERO {
                self.set(dim, T::ZERO);
            }
        }
    }

    /// Whether nothing is asked for: everything but `pods` is below ε.
    pub fn is_empty(&self) -> bool {
        self.dims().all(|dim| dim == Dim::PODS || self.is_zero(dim))
    }

    /// Whether the amount is below ε; true for a missing scalar.
    pub fn is_zero(&self, dim: Dim) -> bool {
        self.get(dim).is_small()
    }

    /// Dimensions whose amount is at least ε, `pods` included, in `Dim` order.
    pub fn names(&self) -> impl Iterator<Item = Dim> + '_ {
        self.dims().filter(|&dim| !self.is_zero(dim))
    }
}

/// Same scalars and same amounts; how much room is behind them does not count.
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

//! The set of dimensions that a vector has. The first 64 dimensions are bits of one word. The
//! others, which are rare, are in an allocation.

use serde::{Deserialize, Serialize};

use crate::dims::{Dim, MAX_DIMS};

const WORD: usize = 64;
/// Number of words after the first one.
const N_MORE: usize = MAX_DIMS / WORD - 1;

/// A set of dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Mask {
    first: u64,
    /// The other words. `None` if all are 0, so that equal sets compare equal.
    more: Option<Box<[u64; N_MORE]>>,
}

impl Mask {
    /// cpu and memory.
    pub(crate) const NATIVE: Self = Self { first: 0b11, more: None };

    #[inline]
    pub(crate) fn has(&self, dim: Dim) -> bool {
        match dim.index().checked_sub(WORD) {
            None => self.first >> dim.index() & 1 != 0,
            Some(rest) => {
                let bit = |more: &[u64; N_MORE]| more[rest / WORD] >> (rest % WORD) & 1 != 0;
                self.more.as_deref().is_some_and(bit)
            }
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, dim: Dim) {
        match dim.index().checked_sub(WORD) {
            None => self.first |= 1 << dim.index(),
            Some(rest) => {
                let more = self.more.get_or_insert_with(|| Box::new([0; N_MORE]));
                more[rest / WORD] |= 1 << (rest % WORD);
            }
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, dim: Dim) {
        match dim.index().checked_sub(WORD) {
            None => self.first &= !(1 << dim.index()),
            Some(rest) => {
                let Some(more) = &mut self.more else { return };
                more[rest / WORD] &= !(1 << (rest % WORD));
                if **more == [0; N_MORE] {
                    self.more = None;
                }
            }
        }
    }

    #[inline]
    pub(crate) fn unite(&mut self, other: &Self) {
        self.first |= other.first;
        if let Some(theirs) = &other.more {
            let ours = self.more.get_or_insert_with(|| Box::new([0; N_MORE]));
            ours.iter_mut().zip(theirs.iter()).for_each(|(ours, theirs)| *ours |= theirs);
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == 0 && self.more.is_none()
    }

    /// Returns the dimensions in ascending order.
    #[inline]
    pub(crate) fn into_dims(self) -> Members {
        Members { rest: self.first, base: 0, more: self.more }
    }
}

/// Iterator over the dimensions of a mask in ascending order.
pub(crate) struct Members {
    /// Bits of the present word that are still to be yielded.
    rest: u64,
    base: usize,
    more: Option<Box<[u64; N_MORE]>>,
}

impl Iterator for Members {
    type Item = Dim;

    #[inline]
    fn next(&mut self) -> Option<Dim> {
        while self.rest == 0 {
            self.rest = *self.more.as_deref()?.get(self.base / WORD)?;
            self.base += WORD;
        }
        let position = self.base + self.rest.trailing_zeros() as usize;
        self.rest &= self.rest - 1;
        Some(Dim::at(position))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn mask(positions: &BTreeSet<usize>) -> Mask {
        let mut mask = Mask::default();
        positions.iter().for_each(|&position| mask.insert(Dim::at(position)));
        mask
    }

    fn positions(mask: Mask) -> Vec<usize> {
        mask.into_dims().map(Dim::index).collect()
    }

    fn sets() -> impl Strategy<Value = BTreeSet<usize>> {
        prop::collection::btree_set(prop_oneof![0..70_usize, 0..MAX_DIMS], 0..12)
    }

    proptest! {
        #[test]
        fn a_mask_is_a_set(a in sets(), b in sets(), other in 0..MAX_DIMS) {
            prop_assert_eq!(positions(mask(&a)), a.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(mask(&a).has(Dim::at(other)), a.contains(&other));
            prop_assert_eq!(mask(&a).is_empty(), a.is_empty());
            let mut both = mask(&a);
            both.unite(&mask(&b));
            prop_assert_eq!(&both, &mask(&(&a | &b)));
            b.iter().for_each(|&position| both.remove(Dim::at(position)));
            prop_assert_eq!(both, mask(&(&a - &b)));
        }
    }
}

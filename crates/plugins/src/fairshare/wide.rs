//! Sums and products of usage, weights and capacities without overflow.

use std::ops::Add;

const N_LIMBS: usize = 7;

/// An integer of 448 bits, most significant part first, so that the derived order is that of numbers.
/// It holds the product of two amounts of 127 bits and four weights of 40 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WideInt([u64; N_LIMBS]);

impl WideInt {
    /// Returns an amount. Amounts below 0 count as 0.
    pub(super) fn of(amount: i128) -> Self {
        let amount = amount.max(0).unsigned_abs();
        let mut limbs = [0; N_LIMBS];
        limbs[N_LIMBS - 2] = (amount >> 64) as u64;
        limbs[N_LIMBS - 1] = amount as u64;
        Self(limbs)
    }

    /// Returns the product with an amount. Amounts below 0 count as 0.
    pub(super) fn times(self, by: i128) -> Self {
        let by = by.max(0).unsigned_abs();
        let high = self.times_limb((by >> 64) as u64);
        let mut shifted = [0; N_LIMBS];
        shifted[..N_LIMBS - 1].copy_from_slice(&high.0[1..]);
        Self(shifted) + self.times_limb(by as u64)
    }

    fn times_limb(self, by: u64) -> Self {
        let (mut limbs, mut carry) = ([0; N_LIMBS], 0_u128);
        for at in (0..N_LIMBS).rev() {
            let product = u128::from(self.0[at]) * u128::from(by) + carry;
            limbs[at] = product as u64;
            carry = product >> 64;
        }
        Self(limbs)
    }
}

impl Add for WideInt {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (mut limbs, mut carry) = ([0; N_LIMBS], 0_u128);
        for at in (0..N_LIMBS).rev() {
            let sum = u128::from(self.0[at]) + u128::from(other.0[at]) + carry;
            limbs[at] = sum as u64;
            carry = sum >> 64;
        }
        Self(limbs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_sums_are_exact() {
        let most = i128::MAX;
        let square = WideInt::of(most).times(most);
        // (2^127 - 1)^2 = 2^254 - 2^128 + 1.
        assert_eq!(square.0, [0, 0, 0, (1 << 62) - 1, u64::MAX, 0, 1]);
        assert!(WideInt::of(most).times(most - 1) < square);
        assert_eq!(square + WideInt::of(0), square);
        let carried = WideInt::of(i128::from(u64::MAX)) + WideInt::of(1);
        assert_eq!(carried, WideInt::of(1 << 64));
        assert_eq!(WideInt::of(3).times(1 << 64), WideInt::of(3 << 64));
        assert_eq!(WideInt::of(-3).times(5), WideInt::of(0));
        assert_eq!(WideInt::of(3).times(-5), WideInt::of(0));
    }
}

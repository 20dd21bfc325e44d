//! The weight of time: it doubles with each half-life, so that old usage fades without being
//! touched (forward decay). Integers only: the same bits on every machine.
//! Specification: fair-share.md 2, FS-12 to FS-15.

use serde::{Deserialize, Serialize};

/// Number of steps of the table in a half-life.
const STEPS: i128 = 4096;
const STEP_BITS: usize = 12;
/// After so many half-lives the weights are divided by 2 to the power of [`REBASED`].
const MOST_HALF_LIVES: i128 = 16;
/// Number of half-lives by which the origin moves on.
pub(super) const REBASED: u32 = 8;
/// From this exponent on the weight stays the same, so that a product with a charge fits.
const MOST_EXPONENT: i128 = 40;

/// The natural logarithm of 2, times 2^32.
const LN_2: i128 = 2_977_044_472;

/// 2 to the power of 32 + i / 4096, rounded.
static TABLE: [i64; STEPS as usize + 1] = table();

/// Computes the table as products of roots of 2 with 62 binary digits.
const fn table() -> [i64; STEPS as usize + 1] {
    let mut roots = [0_u128; STEP_BITS];
    let mut root = (2_u128 << 124).isqrt();
    let mut bit = 0;
    while bit < STEP_BITS {
        roots[bit] = root;
        root = (root << 62).isqrt();
        bit += 1;
    }
    let mut table = [1_i64 << 33; STEPS as usize + 1];
    let mut at = 0;
    while at < STEPS as usize {
        let (mut product, mut bit) = (1_u128 << 62, 0);
        while bit < STEP_BITS {
            if at >> (STEP_BITS - 1 - bit) & 1 == 1 {
                product = (product * roots[bit]) >> 62;
            }
            bit += 1;
        }
        table[at] = ((product + (1 << 29)) >> 30) as i64;
        at += 1;
    }
    table
}

/// The weight of a moment, relative to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decay {
    /// In microseconds, above 0.
    pub(super) half_life: i64,
    /// Time at which the weight is 2^32, in microseconds since 1970.
    pub(super) origin: i64,
}

impl Decay {
    /// Returns the weight G of a time, in microseconds since 1970.
    pub(super) fn weight(&self, time: i64) -> i128 {
        let half_life = i128::from(self.half_life);
        let since = i128::from(time) - i128::from(self.origin);
        let (exponent, rest) = (since.div_euclid(half_life), since.rem_euclid(half_life));
        let (step, part) = (STEPS * rest / half_life, STEPS * rest % half_life);
        // The rest is below one half-life, so the step is below `STEPS`.
        let entry = |step: i128| i128::from(TABLE[usize::try_from(step).unwrap_or_default()]);
        let (low, high) = (entry(step), entry(step + 1));
        let base = (low * half_life + (high - low) * part) / half_life;
        match u32::try_from(exponent) {
            Ok(_) => base << exponent.min(MOST_EXPONENT),
            Err(_) => base >> exponent.unsigned_abs().min(64),
        }
    }

    /// Returns usage at a time as charge times microseconds: U / G · h / ln 2.
    pub(super) fn decayed_micros(&self, usage: i128, time: i64) -> i128 {
        let (weight, half_life) = (self.weight(time).max(1), i128::from(self.half_life));
        let whole = (usage / weight).saturating_mul(half_life);
        let times = whole.saturating_add(usage % weight * half_life / weight);
        (times / LN_2).saturating_mul(1 << 32).saturating_add(((times % LN_2) << 32) / LN_2)
    }

    /// Returns the usage at the origin for so much charge times microseconds.
    pub(super) fn usage_of(&self, decayed_micros: i128) -> i128 {
        // The weight of the origin is 2^32, as is the denominator of the logarithm.
        decayed_micros.saturating_mul(LN_2) / i128::from(self.half_life)
    }

    /// Returns how often the origin has to move on by [`REBASED`] half-lives.
    pub(super) fn n_rebases(&self, time: i64) -> u32 {
        let half_life = i128::from(self.half_life);
        let passed = (i128::from(time) - i128::from(self.origin)).div_euclid(half_life);
        let beyond = (passed - MOST_HALF_LIVES).max(-1) + 1;
        u32::try_from((beyond + i128::from(REBASED) - 1) / i128::from(REBASED)).unwrap_or(u32::MAX)
    }

    /// Moves the origin on. Weights become smaller by a factor of 2^8 each time, exactly.
    pub(super) fn rebase(&mut self, n_times: u32) {
        let moved = i128::from(self.half_life) * i128::from(REBASED) * i128::from(n_times);
        let origin = i128::from(self.origin).saturating_add(moved);
        self.origin = i64::try_from(origin).unwrap_or(i64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    /// The checksum (FNV-1a over the entries) is that of 2^x computed with 100 decimal digits.
    #[test]
    fn fs_fading_table() {
        let checksum = TABLE.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, &entry| {
            (sum ^ entry as u64).wrapping_mul(0x100_0000_01b3)
        });
        assert_eq!(checksum, 0xe29e_21de_959f_21bc);
        assert_eq!((TABLE[0], TABLE[2048], TABLE[4096]), (1 << 32, 6_074_001_000, 1 << 33));
        assert!(TABLE.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn fs_12_weights_double_with_each_half_life_and_never_fall() {
        let decay = Decay { half_life: 4 * HOUR, origin: 7 };
        assert_eq!(decay.weight(7), 1 << 32);
        assert_eq!(decay.weight(7 + 4 * HOUR), 1 << 33);
        assert_eq!(decay.weight(7 - 4 * HOUR), 1 << 31);
        assert_eq!(decay.weight(7 + 40 * HOUR), 1 << 42);
        let weights: Vec<i128> = (-500..500).map(|at| decay.weight(at * HOUR / 7)).collect();
        assert!(weights.windows(2).all(|pair| pair[0] <= pair[1]));
        // Interpolation differs from 2^x by less than 4e-9.
        for minutes in [1, 17, 119, 239] {
            let exact = 2_f64.powf(32.0 + minutes as f64 / 240.0);
            let found = decay.weight(7 + minutes * HOUR / 60) as f64;
            assert!((found / exact - 1.0).abs() < 4e-9, "{minutes}: {found} for {exact}");
        }
    }

    #[test]
    fn fs_14_the_origin_moves_on_by_eight_half_lives() {
        let mut decay = Decay { half_life: HOUR, origin: 0 };
        assert_eq!(decay.n_rebases(16 * HOUR - 1), 0);
        assert_eq!(decay.n_rebases(16 * HOUR), 1);
        assert_eq!(decay.n_rebases(24 * HOUR), 2);
        assert_eq!(decay.n_rebases(i64::MIN), 0);
        let later = 40 * HOUR + 1_234_567;
        let before = decay.weight(later);
        let n_times = decay.n_rebases(later);
        decay.rebase(n_times);
        assert_eq!(decay.weight(later) << (REBASED * n_times), before);
        assert_eq!(decay.n_rebases(later), 0);
    }
}

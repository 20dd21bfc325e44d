//! Numbers that look random, from a seed (splitmix64).

/// A source of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below the bound, which must be above 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in so many of a thousand cases.
    pub(crate) fn happens(&mut self, per_thousand: u64) -> bool {
        self.below(1_000) < per_thousand
    }

    /// One of the items. There must be some.
    pub(crate) fn of<T: Copy>(&mut self, items: &[T]) -> T {
        let last = items.len() as u64;
        items[usize::try_from(self.below(last)).unwrap_or_default()]
    }

    /// Puts items in another order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1);
            items.swap(last, usize::try_from(other).unwrap_or_default());
        }
    }
}

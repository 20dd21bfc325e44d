//! The byte budget of cached class results. It starts small and doubles when an evicted class is
//! needed again. Most shapes belong to one job and never return, and first touches of memory cost
//! more than the results in it. Evicted results are computed again, so no decision depends on the
//! budget; the engine's `laws.rs` and `columns.rs` compare.
//! Specification: actions.md 12.2 S2.

use std::collections::BTreeSet;

use super::ClassScoresKey;

const FEW_BYTES: usize = 8 << 20;
const MOST_BYTES: usize = 96 << 20;

/// Upper bound of the number of evicted classes that are known.
const MOST_GONE: usize = 1 << 16;

/// Returns the bytes that a list has allocated.
pub(super) fn bytes_of<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// The budget, with the classes that were evicted.
#[derive(Debug, Default)]
pub(super) struct CacheBudget {
    /// Classes that were evicted and not needed since.
    gone: BTreeSet<ClassScoresKey>,
    n_doubled: u32,
    /// True if the budget never doubles.
    is_fixed: bool,
}

impl CacheBudget {
    /// Returns the bytes that cached classes may take together.
    pub(super) fn most_bytes(&self) -> usize {
        MOST_BYTES.min(FEW_BYTES << self.n_doubled)
    }

    /// Keeps the budget as it is.
    pub(super) fn fix(&mut self) {
        self.is_fixed = true;
    }

    /// Notes that a class is needed. The budget doubles if that class was evicted before.
    pub(super) fn asked(&mut self, key: &ClassScoresKey) {
        if self.gone.remove(key) && !self.is_fixed && self.most_bytes() < MOST_BYTES {
            self.n_doubled += 1;
        }
    }

    /// Notes that a class was evicted.
    pub(super) fn forgot(&mut self, key: ClassScoresKey) {
        if MOST_GONE <= self.gone.len() {
            self.gone.pop_first();
        }
        self.gone.insert(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Filter;

    #[test]
    fn only_classes_that_come_back_make_room_for_more() {
        let mut budget = CacheBudget::default();
        let key = |shape_id| (shape_id, Filter::Allocate, 0, None);
        (0..100).for_each(|shape_id| budget.forgot(key(shape_id)));
        (100..200).for_each(|shape_id| budget.asked(&key(shape_id)));
        assert_eq!(budget.most_bytes(), FEW_BYTES);
        budget.asked(&key(7));
        budget.asked(&key(7));
        assert_eq!(budget.most_bytes(), 2 * FEW_BYTES, "it came back once");
        (0..100).for_each(|shape_id| budget.asked(&key(shape_id)));
        assert_eq!(budget.most_bytes(), MOST_BYTES);
    }
}

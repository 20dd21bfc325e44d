//! How many bytes of results are kept for classes: few, until a class comes back that had to go.
//! Most shapes are those of one job and never come back, and first touches of memory cost more than
//! the results in it. What is forgotten is worked out again, so that no decision depends on it: the
//! engine's `laws.rs` and `columns.rs` compare with the plain evaluator. Specification: actions.md
//! 12.2 S2.

use std::collections::BTreeSet;

use super::Key;

const FEW_BYTES: usize = 8 << 20;
const MOST_BYTES: usize = 96 << 20;

/// So many classes that had to go are known.
const MOST_GONE: usize = 1 << 16;

/// What a list has allocated.
pub(super) fn bytes_of<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// Classes that had to go and did not come back since.
    gone: BTreeSet<Key>,
    n_doubled: u32,
}

impl Budget {
    /// Bytes that remembered classes may take together.
    pub(super) fn most_bytes(&self) -> usize {
        MOST_BYTES.min(FEW_BYTES << self.n_doubled)
    }

    /// A class is wanted: more is kept from now on if it had to go.
    pub(super) fn asked(&mut self, key: &Key) {
        if self.gone.remove(key) && self.most_bytes() < MOST_BYTES {
            self.n_doubled += 1;
        }
    }

    /// A class had to go.
    pub(super) fn forgot(&mut self, key: Key) {
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
        let mut budget = Budget::default();
        let key = |serial| (serial, Filter::Allocate, 0);
        (0..100).for_each(|serial| budget.forgot(key(serial)));
        (100..200).for_each(|serial| budget.asked(&key(serial)));
        assert_eq!(budget.most_bytes(), FEW_BYTES);
        budget.asked(&key(7));
        budget.asked(&key(7));
        assert_eq!(budget.most_bytes(), 2 * FEW_BYTES, "it came back once");
        (0..100).for_each(|serial| budget.asked(&key(serial)));
        assert_eq!(budget.most_bytes(), MOST_BYTES);
    }
}

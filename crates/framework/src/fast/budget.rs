//! How many bytes of results are kept for classes: few, until a class comes back that had to go.
//! Most shapes are those of one job and never come back, and first touches of memory cost more than
//! the results in it. What is forgotten is worked out again, so that no decision depends on it: the
//! engine's `laws.rs` and `columns.rs` compare with the plain evaluator. Specification: actions.md
//! 12.2 S2.

use std::collections::{BTreeSet, VecDeque};

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

/// The uses of classes in their order. A class may be in it several times, and only its last use
/// counts.
#[derive(Debug, Default)]
pub(super) struct Uses(VecDeque<(u64, Key)>);

/// So many entries that do not count are never too many.
const FEW_OUTDATED: usize = 64;

impl Uses {
    /// What a class takes in here.
    pub(super) const N_BYTES: usize = 2 * size_of::<(u64, Key)>();

    /// A class is used; `is_last`: whether a use of a class is its last one.
    pub(super) fn add(
        &mut self,
        used: (u64, Key),
        n_classes: usize,
        is_last: impl Fn(&(u64, Key)) -> bool,
    ) {
        // The tasks of a gang come one after the other.
        if self.0.back().is_some_and(|(_, key)| *key == used.1) {
            self.0.pop_back();
        }
        self.0.push_back(used);
        if 2 * n_classes + FEW_OUTDATED < self.0.len() {
            self.0.retain(is_last);
        }
    }

    /// Takes out the class that was not used for longest.
    pub(super) fn pop(&mut self, is_last: impl Fn(&(u64, Key)) -> bool) -> Option<Key> {
        while let Some(used) = self.0.pop_front() {
            if is_last(&used) {
                return Some(used.1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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

    /// Classes in the order in which they would go after these uses, and the longest line meanwhile.
    fn line(uses: impl Iterator<Item = u64>) -> (Vec<u64>, usize) {
        let (mut line, mut last, mut longest) = (Uses::default(), BTreeMap::new(), 0);
        for (use_, serial) in (0..).zip(uses) {
            let key = (serial, Filter::Allocate, 0);
            last.insert(key, use_);
            line.add((use_, key), last.len(), |(use_, key)| last.get(key) == Some(use_));
            longest = longest.max(line.0.len());
        }
        let next = || line.pop(|(use_, key)| last.get(key) == Some(use_)).map(|key| key.0);
        (std::iter::from_fn(next).collect(), longest)
    }

    #[test]
    fn who_was_not_used_for_longest_goes_first() {
        assert_eq!(line([1, 2, 3].into_iter()).0, [1, 2, 3]);
        assert_eq!(line([1, 2, 3, 1, 1, 2].into_iter()).0, [3, 1, 2]);
        assert_eq!(line([].into_iter()).0, [0; 0]);
    }

    #[test]
    fn the_line_is_no_longer_than_it_has_to_be() {
        let gang = std::iter::repeat_n(7, 1000);
        assert_eq!(line(gang), (vec![7], 1));
        let (order, longest) = line((0..10_000).map(|index| index % 10));
        assert_eq!((order, longest), ((0..10).collect(), 2 * 10 + FEW_OUTDATED));
    }
}

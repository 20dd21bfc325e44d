//! A hash index of the rows of a table by a key that each row holds. An entry is a 32-bit hash and
//! the row number, eight bytes. Keys are not stored: the caller compares the key with the row.
//! Entries stay small because long lists make the index grow several times, and copying
//! reference-counted keys would cost a counter update each. The test compares the index with a map.
//! Copies share the entries until one of them writes. Figures: docs/performance.md (memory).

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Serialize};

use crate::copy_on_write::CopyOnWriteMember;

/// Row numbers by the hash of their keys. No two rows may hold equal keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<(u32, I)>", into = "Vec<(u32, I)>")]
#[serde(bound = "I: Copy + Ord + Serialize + for<'d> Deserialize<'d>")]
pub struct Index<I: Clone>(Arc<HashTable<(u32, I)>>);

impl<I: Clone> Default for Index<I> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<I: Clone> From<Vec<(u32, I)>> for Index<I> {
    fn from(entries: Vec<(u32, I)>) -> Self {
        let mut table = HashTable::with_capacity(entries.len());
        for entry in entries {
            table.insert_unique(spread(entry.0), entry, |&(short, _)| spread(short));
        }
        Self(Arc::new(table))
    }
}

impl<I: Clone + Ord> From<Index<I>> for Vec<(u32, I)> {
    /// Returns the entries in an order that does not depend on when they were added.
    fn from(index: Index<I>) -> Self {
        let mut entries: Vec<(u32, I)> = Arc::unwrap_or_clone(index.0).into_iter().collect();
        entries.sort_unstable();
        entries
    }
}

impl<I: Copy + Eq> Index<I> {
    /// Returns the row that holds the key. `is_it` is true for a row that holds the key. Returns
    /// `None` if there is no such row.
    pub fn get(&self, key: &(impl Hash + ?Sized), is_it: impl Fn(I) -> bool) -> Option<I> {
        let short = short(key);
        self.0.find(spread(short), |&(other, id)| other == short && is_it(id)).map(|&(_, id)| id)
    }

    /// Adds a row under its key. No other row in the index may hold an equal key.
    pub fn insert(&mut self, key: &(impl Hash + ?Sized), id: I) {
        let short = short(key);
        let entries = Arc::make_mut(&mut self.0);
        entries.insert_unique(spread(short), (short, id), |&(short, _)| spread(short));
    }

    /// Removes the row from the entries of the key.
    pub fn remove(&mut self, key: &(impl Hash + ?Sized), id: I) {
        let short = short(key);
        let entries = Arc::make_mut(&mut self.0);
        if let Ok(entry) = entries.find_entry(spread(short), |&entry| entry == (short, id)) {
            entry.remove();
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn short(key: &(impl Hash + ?Sized)) -> u32 {
    let hash = FxBuildHasher.hash_one(key);
    (hash ^ hash >> 32) as u32
}

/// Spreads a short hash over 64 bits. The hash table uses the low bits and the highest seven.
fn spread(short: u32) -> u64 {
    u64::from(short).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<I: Clone> CopyOnWriteMember for Index<I> {
    fn share(&mut self) {
        self.0.share();
    }

    fn unshare(&mut self) {
        self.0.unshare();
    }

    #[cfg(test)]
    fn addresses(&mut self) -> Vec<usize> {
        self.0.addresses()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_is_the_same_as_a_map() {
        let texts: Vec<String> = (0..500).map(|number| format!("pod-{number}")).collect();
        let (mut ours, mut map) = (Index::default(), BTreeMap::new());
        let is_it = |text: &str, row: usize| texts[row] == text;
        // In and out, and in again.
        for step in 0..4_000_usize {
            let row = step * 37 % texts.len();
            let text = &*texts[row];
            match map.remove(text) {
                Some(row) => ours.remove(text, row),
                None => {
                    ours.insert(text, row);
                    map.insert(text, row);
                }
            }
            let asked = &*texts[step * 11 % texts.len()];
            assert_eq!(ours.get(asked, |row| is_it(asked, row)), map.get(asked).copied());
            assert_eq!((ours.len(), ours.is_empty()), (map.len(), map.is_empty()));
        }
    }

    #[test]
    fn a_copy_shares_its_entries_until_one_side_writes() {
        let mut index = Index::default();
        index.insert("a", 1_u32);
        let mut copy = index.clone();
        let get = |index: &Index<u32>, key: &str| index.get(key, |_| true);
        index.insert("b", 2);
        copy.remove("a", 1);
        assert_eq!((get(&index, "a"), get(&index, "b")), (Some(1), Some(2)));
        assert_eq!((get(&copy, "a"), get(&copy, "b"), copy.len()), (None, None, 0));
    }

    #[test]
    fn rows_of_one_hash_are_told_apart() {
        let mut index = Index::default();
        [1_u32, 2, 3].into_iter().for_each(|id| index.insert("same", id));
        index.remove("same", 2);
        let found = [1, 2, 3].map(|wanted| index.get("same", |id| id == wanted));
        assert_eq!(found, [Some(1), None, Some(3)]);
    }
}

//! A least-recently-used cache that is bounded by the bytes of its entries and not by their number.
//! Specification: actions.md 12.2 (S2: versioned results per class and node).

use std::hash::Hash;

use lru::LruCache;
use rustc_hash::FxBuildHasher;

/// Values by key in the order of their last uses, each with its size in bytes. The cache only
/// counts bytes. Its owner has the budget, and evicts with [`ByteLruCache::pop_oldest`] until the
/// cache fits it.
#[derive(Debug)]
pub struct ByteLruCache<K: Hash + Eq, V> {
    entries: LruCache<K, CacheEntry<V>, FxBuildHasher>,
    n_bytes: usize,
}

#[derive(Debug)]
struct CacheEntry<V> {
    value: V,
    n_bytes: usize,
}

impl<K: Hash + Eq, V> Default for ByteLruCache<K, V> {
    fn default() -> Self {
        Self { entries: LruCache::unbounded_with_hasher(FxBuildHasher), n_bytes: 0 }
    }
}

impl<K: Hash + Eq, V> ByteLruCache<K, V> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the bytes of all entries, as they were last counted.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// True if there is an entry with this key. The call does not count as a use.
    pub fn contains(&self, key: &K) -> bool {
        self.entries.contains(key)
    }

    /// Returns the value of the key, which becomes the most recently used one. Returns `None` if
    /// there is no such entry.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    /// Removes the value of the key, and returns it. Returns `None` if there is no such entry.
    pub fn take(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.pop(key)?;
        self.n_bytes -= entry.n_bytes;
        Some(entry.value)
    }

    /// Inserts the value as the most recently used one. It replaces the earlier value of the key.
    pub fn put(&mut self, key: K, value: V, n_bytes: usize) {
        let before = self.entries.put(key, CacheEntry { value, n_bytes });
        self.n_bytes += n_bytes;
        self.n_bytes -= before.map_or(0, |before| before.n_bytes);
    }

    /// Counts the bytes of the most recently used value again. Its owner calls this after the value
    /// may have grown.
    pub fn recount_newest(&mut self, count: impl Fn(&V) -> usize) {
        if let Some((_, newest)) = self.entries.iter_mut().next() {
            let n_bytes = count(&newest.value);
            self.n_bytes += n_bytes;
            self.n_bytes -= std::mem::replace(&mut newest.n_bytes, n_bytes);
        }
    }

    /// Returns the least recently used value. The call does not count as a use. Returns `None` if
    /// the cache is empty.
    pub fn oldest(&self) -> Option<&V> {
        self.entries.peek_lru().map(|(_, oldest)| &oldest.value)
    }

    /// Removes the least recently used value, and returns it with its key. Returns `None` if the
    /// cache is empty.
    pub fn pop_oldest(&mut self) -> Option<(K, V)> {
        let (key, oldest) = self.entries.pop_lru()?;
        self.n_bytes -= oldest.n_bytes;
        Some((key, oldest.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_value_is_evicted_first() {
        let mut cache = ByteLruCache::default();
        ["a", "b", "c", "d"].into_iter().for_each(|key| cache.put(key, key.len(), 1));
        assert_eq!(cache.take(&"b"), Some(1));
        assert_eq!(cache.get_mut(&"a"), Some(&mut 1));
        cache.put("c", 7, 1);
        assert_eq!(cache.oldest(), Some(&1));
        let order = std::iter::from_fn(|| cache.pop_oldest());
        assert_eq!(order.collect::<Vec<_>>(), [("d", 1), ("a", 1), ("c", 7)]);
    }

    #[test]
    fn bytes_are_those_of_the_present_entries() {
        let mut cache = ByteLruCache::default();
        (1..=4).for_each(|n_bytes| cache.put(n_bytes, n_bytes, n_bytes));
        assert_eq!((cache.len(), cache.n_bytes()), (4, 1 + 2 + 3 + 4));
        cache.put(2, 9, 9);
        assert_eq!(cache.n_bytes(), 1 + 9 + 3 + 4);
        cache.recount_newest(|&value| 2 * value);
        assert_eq!(cache.n_bytes(), 1 + 18 + 3 + 4);
        assert_eq!((cache.take(&3), cache.take(&3)), (Some(3), None));
        assert_eq!(cache.pop_oldest(), Some((1, 1)));
        assert_eq!(cache.n_bytes(), 18 + 4);
        while cache.pop_oldest().is_some() {}
        assert_eq!((cache.is_empty(), cache.n_bytes()), (true, 0));
    }
}

//! Values by text, in order: roles of a job, labels and annotations. Nearly all have a handful, for
//! which a B-tree has nodes of eleven places: in a large cluster they would be a hundred megabytes.
//! The test compares it with a tree. docs/performance.md (memory).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Entries that stand in a list; more are in a tree.
const FEW: usize = 16;

/// Values by text, in the order of the texts.
#[derive(Clone, Debug)]
pub struct TextMap<T> {
    /// In order; empty when there are many.
    few: Vec<(Arc<str>, T)>,
    many: BTreeMap<Arc<str>, T>,
}

impl<T> Default for TextMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> TextMap<T> {
    /// An empty one.
    pub const fn new() -> Self {
        Self { few: Vec::new(), many: BTreeMap::new() }
    }

    /// An empty one with room for so many.
    pub fn with_room(n_entries: usize) -> Self {
        let few = if n_entries <= FEW { n_entries } else { 0 };
        Self { few: Vec::with_capacity(few), many: BTreeMap::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    /// The value of the text. A search that halves the list would read texts, which other cores write
    /// beside; of those that differ nearly all have another length.
    pub fn get(&self, key: &str) -> Option<&T> {
        match self.many.is_empty() {
            true => self.few.iter().find(|(other, _)| **other == *key).map(|(_, value)| value),
            false => self.many.get(key),
        }
    }

    /// The same for writing.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut T> {
        match self.many.is_empty() {
            true => self.few.iter_mut().find(|(other, _)| **other == *key).map(|(_, value)| value),
            false => self.many.get_mut(key),
        }
    }

    /// The value of the text for writing; one that has none gets the default one.
    pub fn get_or_default(&mut self, key: &Arc<str>) -> &mut T
    where
        T: Default,
    {
        // Nearly always the text itself is in the list, not one that equals it.
        let is_key = |other: &Arc<str>| Arc::ptr_eq(other, key) || **other == **key;
        match self.few.iter().position(|(other, _)| is_key(other)) {
            Some(place) => &mut self.few[place].1,
            None => {
                if !self.contains_key(key) {
                    self.insert(key.clone(), T::default());
                }
                self.get_mut(key).expect("it has a value by now")
            }
        }
    }

    /// Whether the text has a value.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The text has this value from now on; the one that it had before.
    pub fn insert(&mut self, key: Arc<str>, value: T) -> Option<T> {
        match self.place(&key) {
            Ok(place) => Some(std::mem::replace(&mut self.few[place].1, value)),
            Err(place) if self.many.is_empty() && self.few.len() < FEW => {
                if self.few.is_empty() {
                    // Nearly every job has one role.
                    self.few.reserve_exact(1);
                }
                self.few.insert(place, (key, value));
                None
            }
            Err(_) => {
                self.many.extend(self.few.drain(..));
                self.many.insert(key, value)
            }
        }
    }

    /// The text has no value any more; the one that it had.
    pub fn remove(&mut self, key: &str) -> Option<T> {
        match self.place(key) {
            Ok(place) => Some(self.few.remove(place).1),
            Err(_) => self.many.remove(key),
        }
    }

    /// Nothing has a value any more.
    pub fn clear(&mut self) {
        self.few.clear();
        self.many.clear();
    }

    /// Texts and values in order.
    pub fn iter(&self) -> Entries<'_, T> {
        Entries { few: self.few.iter(), many: self.many.iter() }
    }

    /// The texts in order.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.iter().map(|(key, _)| key)
    }

    /// The values in the order of their texts.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, value)| value)
    }

    /// Where the text is in the list, or belongs.
    fn place(&self, key: &str) -> Result<usize, usize> {
        // Objects have them in order.
        if self.few.last().is_some_and(|(last, _)| **last < *key) {
            return Err(self.few.len());
        }
        self.few.binary_search_by(|(other, _)| (**other).cmp(key))
    }
}

impl<T: PartialEq> PartialEq for TextMap<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for TextMap<T> {}

impl<T: PartialOrd> PartialOrd for TextMap<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.iter().partial_cmp(other.iter())
    }
}

impl<T: Ord> Ord for TextMap<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl<T: Hash> Hash for TextMap<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|entry| entry.hash(state));
    }
}

impl<T> Extend<(Arc<str>, T)> for TextMap<T> {
    fn extend<I: IntoIterator<Item = (Arc<str>, T)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| drop(self.insert(key, value)));
    }
}

impl<T> FromIterator<(Arc<str>, T)> for TextMap<T> {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, T)>>(entries: I) -> Self {
        let mut all = Self::default();
        all.extend(entries);
        all
    }
}

impl<T, const N: usize> From<[(Arc<str>, T); N]> for TextMap<T> {
    fn from(entries: [(Arc<str>, T); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<'a, T> IntoIterator for &'a TextMap<T> {
    type Item = (&'a Arc<str>, &'a T);
    type IntoIter = Entries<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> IntoIterator for TextMap<T> {
    type Item = (Arc<str>, T);
    type IntoIter = std::iter::Chain<
        std::vec::IntoIter<(Arc<str>, T)>,
        std::collections::btree_map::IntoIter<Arc<str>, T>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.few.into_iter().chain(self.many)
    }
}

/// The entries in order.
#[derive(Clone, Debug)]
pub struct Entries<'a, T> {
    few: std::slice::Iter<'a, (Arc<str>, T)>,
    many: std::collections::btree_map::Iter<'a, Arc<str>, T>,
}

impl<'a, T> Iterator for Entries<'a, T> {
    type Item = (&'a Arc<str>, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        match self.few.next() {
            Some((key, value)) => Some((key, value)),
            None => self.many.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_as_a_tree() {
        let (mut ours, mut tree) = (TextMap::default(), BTreeMap::new());
        // In and out, over the number that a list holds and back again.
        let steps =
            (0..90).map(|step| (step * 7 % 23, step % 3 != 2)).chain((0..23).map(|n| (n, false)));
        for (number, comes) in steps {
            let key: Arc<str> = format!("key-{number:02}").into();
            match comes {
                true => {
                    ours.insert(key.clone(), number);
                    tree.insert(key.clone(), number);
                }
                false => {
                    ours.remove(&key);
                    tree.remove(&key);
                }
            }
            assert_eq!(ours.get(&key), tree.get(&key));
            assert_eq!(ours.get_mut("key-05").copied(), tree.get("key-05").copied());
            assert!(ours.iter().eq(tree.iter()) && ours == tree.clone().into_iter().collect());
        }
        assert_eq!(ours.keys().count(), 0);
    }
}

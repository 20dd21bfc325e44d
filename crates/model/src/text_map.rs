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
pub struct TextMap<T>(Entered<T>);

#[derive(Clone, Debug)]
enum Entered<T> {
    /// In order, at most [`FEW`].
    Few(Vec<(Arc<str>, T)>),
    #[expect(clippy::box_collection, reason = "it would make the other, frequent case larger")]
    Many(Box<BTreeMap<Arc<str>, T>>),
}
use Entered::{Few, Many};

impl<T> Default for TextMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> TextMap<T> {
    /// An empty one.
    pub const fn new() -> Self {
        Self(Few(Vec::new()))
    }

    /// An empty one with room for so many.
    pub fn with_room(n_entries: usize) -> Self {
        let few = if n_entries <= FEW { n_entries } else { 0 };
        Self(Few(Vec::with_capacity(few)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Few(few) => few.len(),
            Many(many) => many.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of the text. A search that halves the list would read texts, which other cores write
    /// beside; of those that differ nearly all have another length.
    pub fn get(&self, key: &str) -> Option<&T> {
        match &self.0 {
            Few(few) => few.iter().find(|(other, _)| **other == *key).map(|(_, value)| value),
            Many(many) => many.get(key),
        }
    }

    /// The same for writing.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut T> {
        match &mut self.0 {
            Few(few) => few.iter_mut().find(|(other, _)| **other == *key).map(|(_, value)| value),
            Many(many) => many.get_mut(key),
        }
    }

    /// The value of the text for writing; one that has none gets the default one.
    pub fn get_or_default(&mut self, key: &Arc<str>) -> &mut T
    where
        T: Default,
    {
        // Nearly always the text itself is in the list, not one that equals it.
        let is_key = |other: &Arc<str>| Arc::ptr_eq(other, key) || **other == **key;
        let place = match &self.0 {
            Few(few) => few.iter().position(|(other, _)| is_key(other)),
            Many(_) => None,
        };
        if place.is_none() && !self.contains_key(key) {
            self.insert(key.clone(), T::default());
        }
        let Some(place) = place else {
            return self.get_mut(key).expect("it has a value by now");
        };
        match &mut self.0 {
            Few(few) => &mut few[place].1,
            Many(_) => unreachable!("places are those of a list"),
        }
    }

    /// Whether the text has a value.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The text has this value from now on; the one that it had before.
    pub fn insert(&mut self, key: Arc<str>, value: T) -> Option<T> {
        let few = match &mut self.0 {
            Few(few) => few,
            Many(many) => return many.insert(key, value),
        };
        match place(few, &key) {
            Ok(place) => Some(std::mem::replace(&mut few[place].1, value)),
            Err(place) if few.len() < FEW => {
                if few.is_empty() {
                    // Nearly every job has one role.
                    few.reserve_exact(1);
                }
                few.insert(place, (key, value));
                None
            }
            Err(_) => {
                let all = few.drain(..).chain([(key, value)]).collect();
                self.0 = Many(Box::new(all));
                None
            }
        }
    }

    /// The text has no value any more; the one that it had.
    pub fn remove(&mut self, key: &str) -> Option<T> {
        match &mut self.0 {
            Few(few) => Some(few.remove(place(few, key).ok()?).1),
            Many(many) => many.remove(key),
        }
    }

    /// Nothing has a value any more.
    pub fn clear(&mut self) {
        match &mut self.0 {
            Few(few) => few.clear(),
            Many(_) => *self = Self::new(),
        }
    }

    /// Texts and values in order.
    pub fn iter(&self) -> Entries<'_, T> {
        match &self.0 {
            Few(few) => Entries::Few(few.iter()),
            Many(many) => Entries::Many(many.iter()),
        }
    }

    /// The texts in order.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.iter().map(|(key, _)| key)
    }

    /// The values in the order of their texts.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, value)| value)
    }
}

/// Where the text is in the list, or belongs.
fn place<T>(few: &[(Arc<str>, T)], key: &str) -> Result<usize, usize> {
    // Objects have them in order.
    if few.last().is_some_and(|(last, _)| **last < *key) {
        return Err(few.len());
    }
    few.binary_search_by(|(other, _)| (**other).cmp(key))
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
    type IntoIter = Taken<T>;

    fn into_iter(self) -> Self::IntoIter {
        match self.0 {
            Few(few) => Taken::Few(few.into_iter()),
            Many(many) => Taken::Many(many.into_iter()),
        }
    }
}

/// The entries in order.
#[derive(Clone, Debug)]
pub enum Entries<'a, T> {
    /// Of a list.
    Few(std::slice::Iter<'a, (Arc<str>, T)>),
    /// Of a tree.
    Many(std::collections::btree_map::Iter<'a, Arc<str>, T>),
}

impl<'a, T> Iterator for Entries<'a, T> {
    type Item = (&'a Arc<str>, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Few(few) => few.next().map(|(key, value)| (key, value)),
            Self::Many(many) => many.next(),
        }
    }
}

/// The same, taken out.
#[derive(Debug)]
pub enum Taken<T> {
    /// Of a list.
    Few(std::vec::IntoIter<(Arc<str>, T)>),
    /// Of a tree.
    Many(std::collections::btree_map::IntoIter<Arc<str>, T>),
}

impl<T> Iterator for Taken<T> {
    type Item = (Arc<str>, T);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Few(few) => few.next(),
            Self::Many(many) => many.next(),
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

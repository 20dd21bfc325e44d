//! Values by role of a job, in order. Nearly every job has one role or two, for which a B-tree has a
//! node of eleven places: of the jobs of a large cluster they would be a hundred megabytes. DESIGN.md 4
//! (memory).

use std::collections::BTreeMap;
use std::sync::Arc;

/// Roles that stand in a list; more are in a tree.
const FEW: usize = 8;

/// Values by role, in the order of the roles.
#[derive(Clone, Debug)]
pub struct ByRole<T> {
    /// In order; empty when there are many.
    few: Vec<(Arc<str>, T)>,
    many: BTreeMap<Arc<str>, T>,
}

impl<T> Default for ByRole<T> {
    fn default() -> Self {
        Self { few: Vec::new(), many: BTreeMap::new() }
    }
}

impl<T> ByRole<T> {
    /// The value of the role.
    pub fn get(&self, role: &str) -> Option<&T> {
        match self.place(role) {
            Ok(place) => Some(&self.few[place].1),
            Err(_) => self.many.get(role),
        }
    }

    /// The same for writing.
    pub fn get_mut(&mut self, role: &str) -> Option<&mut T> {
        match self.place(role) {
            Ok(place) => Some(&mut self.few[place].1),
            Err(_) => self.many.get_mut(role),
        }
    }

    /// The role has this value from now on.
    pub fn insert(&mut self, role: Arc<str>, value: T) {
        match self.place(&role) {
            Ok(place) => self.few[place].1 = value,
            Err(place) if self.many.is_empty() && self.few.len() < FEW => {
                if self.few.is_empty() {
                    self.few.reserve_exact(1);
                }
                self.few.insert(place, (role, value));
            }
            Err(_) => {
                self.many.extend(self.few.drain(..));
                self.many.insert(role, value);
            }
        }
    }

    /// The role has no value any more.
    pub fn remove(&mut self, role: &str) {
        match self.place(role) {
            Ok(place) => drop(self.few.remove(place)),
            Err(_) => drop(self.many.remove(role)),
        }
    }

    /// No role has a value any more.
    pub fn clear(&mut self) {
        self.few.clear();
        self.many.clear();
    }

    /// Roles and values by role.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &T)> {
        self.few.iter().map(|(role, value)| (role, value)).chain(&self.many)
    }

    /// The roles in order.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.iter().map(|(role, _)| role)
    }

    /// The values by role.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.iter().map(|(_, value)| value)
    }

    fn place(&self, role: &str) -> Result<usize, usize> {
        self.few.binary_search_by(|(other, _)| (**other).cmp(role))
    }
}

impl<T: PartialEq> PartialEq for ByRole<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T> FromIterator<(Arc<str>, T)> for ByRole<T> {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, T)>>(entries: I) -> Self {
        let mut all = Self::default();
        entries.into_iter().for_each(|(role, value)| all.insert(role, value));
        all
    }
}

impl<T, const N: usize> From<[(Arc<str>, T); N]> for ByRole<T> {
    fn from(entries: [(Arc<str>, T); N]) -> Self {
        entries.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_same_as_a_tree() {
        let (mut ours, mut tree) = (ByRole::default(), BTreeMap::new());
        // In and out, over the number that a list holds and back again.
        let steps =
            (0..40).map(|step| (step * 7 % 13, step % 3 != 2)).chain((0..13).map(|n| (n, false)));
        for (number, comes) in steps {
            let role: Arc<str> = format!("role-{number:02}").into();
            match comes {
                true => {
                    ours.insert(role.clone(), number);
                    tree.insert(role.clone(), number);
                }
                false => {
                    ours.remove(&role);
                    tree.remove(&role);
                }
            }
            assert_eq!(ours.get(&role), tree.get(&role));
            assert_eq!(ours.get_mut("role-05").copied(), tree.get("role-05").copied());
            assert!(ours.iter().eq(tree.iter()) && ours == tree.clone().into_iter().collect());
        }
        assert_eq!(ours.keys().count(), 0);
    }
}

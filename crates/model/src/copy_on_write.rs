//! A value that copies of its owner may share until one of them writes to it. Specification: answers.md 10
//! (ANS-64).

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value with copy on write. A value that was never shared is the owner's alone: reading and writing it costs
/// one branch.
#[derive(Clone, Debug)]
pub enum CopyOnWrite<T> {
    /// The value of this owner alone. A copy of it is another value.
    Own(T),
    /// A value that copies have, too.
    Shared(Arc<T>),
}

impl<T: Default> Default for CopyOnWrite<T> {
    fn default() -> Self {
        Self::Own(T::default())
    }
}

impl<T> CopyOnWrite<T> {
    /// Returns the value for reading.
    #[inline]
    pub fn get(&self) -> &T {
        match self {
            Self::Own(value) => value,
            Self::Shared(value) => value,
        }
    }
}

impl<T: Default> CopyOnWrite<T> {
    /// Lets copies made from now on have the same value, without copying it.
    pub fn share(&mut self) {
        if let Self::Own(value) = self {
            *self = Self::Shared(Arc::new(std::mem::take(value)));
        }
    }
}

impl<T: Clone + Default> CopyOnWrite<T> {
    /// Returns the value for writing. A shared value is copied if another owner has it.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        if let Self::Shared(_) = self {
            self.unshare();
        }
        match self {
            Self::Own(value) => value,
            Self::Shared(_) => unreachable!("it has a value of its own now"),
        }
    }

    /// Takes a value of its own: a shared one is copied if another owner has it.
    #[cold]
    pub fn unshare(&mut self) {
        if let Self::Shared(value) = self {
            *self = Self::Own(Arc::unwrap_or_clone(std::mem::take(value)));
        }
    }
}

impl<K: Clone + Ord, V: Clone> CopyOnWrite<BTreeMap<K, V>> {
    /// Removes the value of a key and returns it. A shared map without the key is not copied.
    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if let Self::Shared(map) = &*self
            && !map.contains_key(key)
        {
            return None;
        }
        self.get_mut().remove(key)
    }
}

impl<T: Clone + Ord> CopyOnWrite<BTreeSet<T>> {
    /// Removes an element. Returns true if it was there. A shared set without it is not copied.
    pub(crate) fn remove(&mut self, element: &T) -> bool {
        if let Self::Shared(set) = &*self
            && !set.contains(element)
        {
            return false;
        }
        self.get_mut().remove(element)
    }
}

/// A member of a structure that copies of the structure share until one side writes to it.
pub(crate) trait CopyOnWriteMember {
    /// Lets copies made from now on have the same values, without copying them.
    fn share(&mut self);

    /// Takes values of its own: those that another owner has, too, are copied.
    fn unshare(&mut self);

    /// Returns the addresses of the values. A copy that shares them has the same addresses.
    #[cfg(test)]
    fn addresses(&mut self) -> Vec<usize>;
}

impl<T: Clone + Default> CopyOnWriteMember for CopyOnWrite<T> {
    fn share(&mut self) {
        CopyOnWrite::share(self);
    }

    fn unshare(&mut self) {
        CopyOnWrite::unshare(self);
    }

    #[cfg(test)]
    fn addresses(&mut self) -> Vec<usize> {
        vec![std::ptr::from_ref(self.get()).addr()]
    }
}

/// Copies share such a value from the start.
impl<T: Clone> CopyOnWriteMember for Arc<T> {
    fn share(&mut self) {}

    fn unshare(&mut self) {
        let _own = Arc::make_mut(self);
    }

    #[cfg(test)]
    fn addresses(&mut self) -> Vec<usize> {
        vec![Arc::as_ptr(self).addr()]
    }
}

/// Implements [`CopyOnWriteMember`] for a structure. Copies share the first members, and copy those
/// after `copied`. A member that is in neither list does not compile. Members are unshared in the
/// order of the list.
macro_rules! copy_on_write_members {
    ($owner:ident: shared $($shared:ident),+; $(copied $($copied:ident),+;)?) => {
        impl $crate::copy_on_write::CopyOnWriteMember for $owner {
            fn share(&mut self) {
                let Self { $($shared,)+ $($($copied: _,)+)? } = self;
                $($crate::copy_on_write::CopyOnWriteMember::share($shared);)+
            }

            fn unshare(&mut self) {
                let Self { $($shared,)+ $($($copied: _,)+)? } = self;
                $($crate::copy_on_write::CopyOnWriteMember::unshare($shared);)+
            }

            #[cfg(test)]
            fn addresses(&mut self) -> Vec<usize> {
                let Self { $($shared,)+ $($($copied: _,)+)? } = self;
                let members =
                    [$($crate::copy_on_write::CopyOnWriteMember::addresses($shared)),+];
                members.concat()
            }
        }
    };
}
pub(crate) use copy_on_write_members;

impl<T: Serialize> Serialize for CopyOnWrite<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for CopyOnWrite<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::Own(T::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_64_a_copy_shares_rows_until_one_side_writes() {
        let mut part = CopyOnWrite::Own(vec![Some("a"), None]);
        assert!(!is_shared(&part, &part.clone()), "a copy of own rows is another list");
        part.share();
        let mut copy = part.clone();
        assert!(is_shared(&part, &copy));
        copy.get_mut()[1] = Some("b");
        assert_eq!(part.get(), &[Some("a"), None]);
        assert_eq!(copy.get(), &[Some("a"), Some("b")]);
        let address = part.get().as_ptr();
        part.get_mut()[0] = None;
        assert_eq!(part.get().as_ptr(), address, "nobody else has the rows any more");
    }

    #[test]
    fn ans_59_the_first_owner_keeps_its_rows_if_the_copy_takes_its_own() {
        let mut part = CopyOnWrite::Own(vec![Some("a"), None]);
        let address = part.get().as_ptr();
        part.share();
        let mut copy = part.clone();
        copy.unshare();
        assert!(!is_shared(&part, &copy));
        part.get_mut()[1] = Some("b");
        assert_eq!(part.get().as_ptr(), address, "nothing is copied");
        assert_eq!(copy.get(), &[Some("a"), None]);
    }

    #[test]
    fn ans_64_what_is_not_there_is_removed_without_a_copy() {
        let mut map = CopyOnWrite::Own(BTreeMap::from([("a", 1), ("b", 2)]));
        let mut set = CopyOnWrite::Own(BTreeSet::from(["a", "b"]));
        map.share();
        set.share();
        let (mut map_copy, mut set_copy) = (map.clone(), set.clone());
        assert_eq!((map_copy.remove("c"), set_copy.remove(&"c")), (None, false));
        assert_eq!(map_copy.addresses(), map.addresses());
        assert_eq!(set_copy.addresses(), set.addresses());
        assert_eq!((map_copy.remove("a"), set_copy.remove(&"a")), (Some(1), true));
        assert_eq!((map.get().len(), map_copy.get().len()), (2, 1));
        assert_eq!((set.get().len(), set_copy.get().len()), (2, 1));
    }

    fn is_shared<T>(part: &CopyOnWrite<Vec<T>>, copy: &CopyOnWrite<Vec<T>>) -> bool {
        part.get().as_ptr() == copy.get().as_ptr()
    }
}

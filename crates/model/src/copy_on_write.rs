//! A value that copies of its owner may share until one of them writes to it. Specification: answers.md 10
//! (ANS-64).

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

    #[cold]
    fn unshare(&mut self) {
        if let Self::Shared(value) = self {
            *self = Self::Own(Arc::unwrap_or_clone(std::mem::take(value)));
        }
    }
}

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

    fn is_shared<T>(part: &CopyOnWrite<Vec<T>>, copy: &CopyOnWrite<Vec<T>>) -> bool {
        part.get().as_ptr() == copy.get().as_ptr()
    }
}

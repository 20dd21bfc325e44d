//! A part of a table, which copies of the table may share until one of them writes to it.
//! Specification: answers.md 10 (ANS-64).

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Rows of a table. A table that was never shared has rows of its own only.
#[derive(Clone, Debug)]
pub(crate) enum Part<T> {
    /// Rows that this table alone has. A copy of them is another list.
    Own(Vec<Option<T>>),
    /// Rows that copies of the table have, too.
    Shared(Arc<Vec<Option<T>>>),
}

impl<T> Part<T> {
    #[inline]
    pub(crate) fn rows(&self) -> &Vec<Option<T>> {
        match self {
            Self::Own(rows) => rows,
            Self::Shared(rows) => rows,
        }
    }

    /// Lets copies made from now on have the same rows, without copying them.
    pub(crate) fn share(&mut self) {
        if let Self::Own(rows) = self {
            *self = Self::Shared(Arc::new(std::mem::take(rows)));
        }
    }
}

impl<T: Clone> Part<T> {
    /// Returns the rows for writing. Shared rows are copied if another table has them.
    #[inline]
    pub(crate) fn rows_mut(&mut self) -> &mut Vec<Option<T>> {
        if let Self::Shared(_) = self {
            self.unshare();
        }
        match self {
            Self::Own(rows) => rows,
            Self::Shared(_) => unreachable!("it has rows of its own now"),
        }
    }

    #[cold]
    fn unshare(&mut self) {
        if let Self::Shared(rows) = self {
            *self = Self::Own(Arc::unwrap_or_clone(std::mem::take(rows)));
        }
    }
}

impl<T: Serialize> Serialize for Part<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.rows().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Part<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::Own(Vec::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_64_a_copy_shares_rows_until_one_side_writes() {
        let mut part = Part::Own(vec![Some("a"), None]);
        assert!(!is_shared(&part, &part.clone()), "a copy of own rows is another list");
        part.share();
        let mut copy = part.clone();
        assert!(is_shared(&part, &copy));
        copy.rows_mut()[1] = Some("b");
        assert_eq!(part.rows(), &[Some("a"), None]);
        assert_eq!(copy.rows(), &[Some("a"), Some("b")]);
        let address = part.rows().as_ptr();
        part.rows_mut()[0] = None;
        assert_eq!(part.rows().as_ptr(), address, "nobody else has the rows any more");
    }

    fn is_shared<T>(part: &Part<T>, copy: &Part<T>) -> bool {
        part.rows().as_ptr() == copy.rows().as_ptr()
    }
}

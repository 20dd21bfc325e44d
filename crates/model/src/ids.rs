//! Typed row numbers and the tables that only they can index. Architecture: "Core types".

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A row number of one kind of table.
pub trait Id: Copy + Ord + Send + Sync + 'static {
    /// The id of row `index`.
    fn new(index: u32) -> Self;
    /// The row number.
    fn index(self) -> usize;
}

macro_rules! define_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        impl Id for $name {
            #[inline]
            fn new(index: u32) -> Self { Self(index) }
            #[inline]
            fn index(self) -> usize { self.0 as usize }
        }
    )+};
}

define_ids!(
    /// A node, known or only named by a pod.
    NodeId,
    /// A pod as the scheduler sees it.
    TaskId,
    /// A PodGroup with its pods.
    JobId,
    /// A queue, known or only named by a PodGroup.
    QueueId,
    /// A scheduling class: what filters and scorers read of a pod.
    ClassId,
    /// A name of a container image that some node has.
    ImageId,
    /// A label of nodes that pods name as topology key.
    KeyId,
    /// A value of such a label; counts for its key only.
    ValueId,
    /// A set of pod selectors that some pod has.
    MatcherId,
    /// Pods of a matcher, counted by the values of a key.
    TermId,
    /// The nodes that count for a spread constraint.
    InclusionId,
    /// Pods of a matcher on included nodes, counted by the values of a key.
    SpreadId,
);

/// Rows of a part of a table; a power of two.
const PART: usize = 256;

/// Rows with stable ids. A freed row is reused only after [`Table::recycle`], so that an id that is
/// still held somewhere during a cycle can never mean another object.
#[derive(Clone, Debug)]
pub struct Table<I, T> {
    /// In parts of [`PART`] rows, all but the last one full: a table that grows is never copied.
    parts: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
    limbo: Vec<u32>,
    n_rows: usize,
    id: PhantomData<I>,
}

impl<I: Id, T> Default for Table<I, T> {
    fn default() -> Self {
        Self { parts: Vec::new(), free: Vec::new(), limbo: Vec::new(), n_rows: 0, id: PhantomData }
    }
}

impl<I: Id, T> Table<I, T> {
    /// Adds a row and returns its id.
    pub fn insert(&mut self, row: T) -> I {
        self.n_rows += 1;
        if let Some(index) = self.free.pop() {
            let (part, place) = position(index as usize);
            self.parts[part][place] = Some(row);
            return I::new(index);
        }
        let full = self.parts.len().saturating_sub(1) * PART;
        match self.parts.last_mut().filter(|part| part.len() < PART) {
            Some(part) => {
                part.push(Some(row));
                row_id(full + part.len() - 1)
            }
            None => self.insert_part(row),
        }
    }

    /// Begins another part. Only a small table makes room row by row.
    fn insert_part(&mut self, row: T) -> I {
        let mut part = match self.parts.is_empty() {
            true => Vec::new(),
            false => Vec::with_capacity(PART),
        };
        part.push(Some(row));
        self.parts.push(part);
        row_id((self.parts.len() - 1) * PART)
    }

    /// Takes a row out. `None` if it was already gone.
    pub fn remove(&mut self, id: I) -> Option<T> {
        let (part, place) = position(id.index());
        let row = self.parts.get_mut(part)?.get_mut(place)?.take();
        if row.is_some() {
            self.n_rows -= 1;
            self.limbo.push(u32::try_from(id.index()).expect("ids come from u32"));
        }
        row
    }

    /// Makes the rows that were freed reusable; called between cycles.
    pub fn recycle(&mut self) {
        self.free.append(&mut self.limbo);
    }

    /// The row, unless it is gone.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        let (part, place) = position(id.index());
        self.parts.get(part)?.get(place)?.as_ref()
    }

    /// The row for writing, unless it is gone.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        let (part, place) = position(id.index());
        self.parts.get_mut(part)?.get_mut(place)?.as_mut()
    }

    /// All rows by id.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let numbered = self.parts.iter().flatten().enumerate();
        numbered.filter_map(|(index, row)| Some((I::new(index as u32), row.as_ref()?)))
    }

    /// All ids.
    pub fn ids(&self) -> impl Iterator<Item = I> + '_ {
        self.iter().map(|(id, _)| id)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }
}

/// Values for rows of another table. In parts like those of [`Table`].
#[derive(Clone, Debug)]
pub struct Column<I, T> {
    parts: Vec<Vec<Option<T>>>,
    id: PhantomData<I>,
}

impl<I, T> Default for Column<I, T> {
    fn default() -> Self {
        Self { parts: Vec::new(), id: PhantomData }
    }
}

impl<I: Id, T> Column<I, T> {
    /// The value of the row; `None`: it has none.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        let (part, place) = position(id.index());
        self.parts.get(part)?.get(place)?.as_ref()
    }

    /// The same for writing.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        let (part, place) = position(id.index());
        self.parts.get_mut(part)?.get_mut(place)?.as_mut()
    }

    /// The place for the value of the row, which is made if there was none.
    pub fn place(&mut self, id: I) -> &mut Option<T> {
        let (part, place) = position(id.index());
        if self.parts.len() <= part {
            self.parts.resize_with(part + 1, Vec::new);
        }
        let part = &mut self.parts[part];
        if part.is_empty() {
            part.resize_with(PART, || None);
        }
        &mut part[place]
    }

    /// Takes the value of the row out.
    pub fn take(&mut self, id: I) -> Option<T> {
        let (part, place) = position(id.index());
        self.parts.get_mut(part)?.get_mut(place)?.take()
    }

    /// Whether no row has a value.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().flatten().all(Option::is_none)
    }
}

/// Part and place of a row.
#[inline]
fn position(index: usize) -> (usize, usize) {
    (index / PART, index % PART)
}

fn row_id<I: Id>(index: usize) -> I {
    I::new(u32::try_from(index).expect("fewer than 2^32 rows"))
}

impl<I: Id, T> Index<I> for Table<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        self.get(id).expect("ids are handed out by this table and outlive the cycle")
    }
}

impl<I: Id, T> IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        self.get_mut(id).expect("ids are handed out by this table and outlive the cycle")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_values_that_were_put_in() {
        let mut column: Column<TaskId, u32> = Column::default();
        let ids = [0, 3, PART as u32 - 1, PART as u32, 7 * PART as u32 + 5].map(TaskId::new);
        assert!(column.is_empty() && column.get(ids[4]).is_none());
        for (number, &id) in ids.iter().enumerate() {
            assert_eq!(column.place(id).replace(number as u32), None);
        }
        for (number, &id) in ids.iter().enumerate() {
            *column.get_mut(id).expect("it was put in") += 1;
            assert_eq!(column.get(id), Some(&(number as u32 + 1)));
            let neighbour = TaskId::new(id.index() as u32 + 1);
            assert_eq!(column.get(neighbour).is_some(), ids.contains(&neighbour));
        }
        for (number, &id) in ids.iter().enumerate() {
            assert!(!column.is_empty());
            assert_eq!((column.take(id), column.take(id)), (Some(number as u32 + 1), None));
        }
        assert!(column.is_empty());
    }
}

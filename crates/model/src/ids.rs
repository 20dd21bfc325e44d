//! Typed row numbers, and the tables that are indexed by them. Architecture: "Core types".

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

use crate::copy_on_write::{CopyOnWrite, CopyOnWriteMember};
use crate::reads::{self, Read};

/// A row number of one kind of table.
pub trait Id: Copy + Ord + Send + Sync + 'static {
    /// Returns the id of row `index`.
    fn new(index: u32) -> Self;
    /// Returns the row number.
    fn index(self) -> usize;
    /// Returns the read that the recorder notes for this row. Returns `None` if reads of such rows
    /// are not recorded.
    #[inline]
    fn read(self) -> Option<Read> {
        None
    }
}

macro_rules! define_ids {
    ($($(#[$doc:meta])* $name:ident $(as $read:ident)?),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(u32);
        impl Id for $name {
            #[inline]
            fn new(index: u32) -> Self { Self(index) }
            #[inline]
            fn index(self) -> usize { self.0 as usize }
            $(#[inline]
            fn read(self) -> Option<Read> { Some(Read::$read(self)) })?
        }
    )+};
}

define_ids!(
    /// A node, known or only named by a pod.
    NodeId as Node,
    /// A pod as the scheduler sees it.
    TaskId as Task,
    /// A PodGroup with its pods.
    JobId as Job,
    /// A queue, known or only named by a PodGroup.
    QueueId as Queue,
    /// A scheduling class: what filters and scorers read of a pod.
    ClassId,
    /// A container image name that at least one node lists.
    ImageId,
    /// A node label that pods name as topology key.
    KeyId,
    /// A value of a topology key. Ids of values are per key.
    ValueId,
    /// A set of pod selectors that at least one pod has.
    MatcherId,
    /// Counts of the pods that a matcher selects, by the values of a topology key.
    TermId,
    /// The nodes that count for a spread constraint.
    InclusionId,
    /// Counts of the pods that a matcher selects on included nodes, by the values of a topology
    /// key.
    SpreadId,
);

/// Number of rows in a part of a table; a power of two.
const PART: usize = 256;

/// A part of a table or column, which copies may share until one of them writes to it.
type Part<T> = CopyOnWrite<Vec<Option<T>>>;

/// Rows with stable ids. A freed row is reused only after [`Table::recycle`], so an id that is
/// still held during a cycle never denotes another object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table<I, T> {
    /// Parts of [`PART`] rows, all but the last one full. A table that grows is never copied.
    parts: Vec<Part<T>>,
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

impl<I: Id, T: Clone> Table<I, T> {
    /// Adds a row and returns its id.
    pub fn insert(&mut self, row: T) -> I {
        self.n_rows += 1;
        if let Some(index) = self.free.pop() {
            let (part, place) = position(index as usize);
            self.parts[part].get_mut()[place] = Some(row);
            return I::new(index);
        }
        let full = self.parts.len().saturating_sub(1) * PART;
        match self.parts.last_mut().filter(|part| part.get().len() < PART) {
            Some(part) => {
                let rows = part.get_mut();
                rows.push(Some(row));
                row_id(full + rows.len() - 1)
            }
            None => self.insert_part(row),
        }
    }

    /// Begins another part with room for [`PART`] rows. Only the first part grows row by row, so
    /// small tables stay small.
    fn insert_part(&mut self, row: T) -> I {
        let mut part = match self.parts.is_empty() {
            true => Vec::new(),
            false => Vec::with_capacity(PART),
        };
        part.push(Some(row));
        self.parts.push(Part::Own(part));
        row_id((self.parts.len() - 1) * PART)
    }

    /// Removes a row and returns it. Returns `None` if it was already gone.
    pub fn remove(&mut self, id: I) -> Option<T> {
        let (part, place) = position(id.index());
        let row = self.parts.get_mut(part)?.get_mut().get_mut(place)?.take();
        if row.is_some() {
            self.n_rows -= 1;
            self.limbo.push(u32::try_from(id.index()).expect("ids come from u32"));
        }
        row
    }

    /// Returns the row for writing. Returns `None` if it is gone.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        let (part, place) = position(id.index());
        self.parts.get_mut(part)?.get_mut().get_mut(place)?.as_mut()
    }
}

impl<I: Id, T> Table<I, T> {
    /// Makes freed rows reusable. It is called between cycles.
    pub fn recycle(&mut self) {
        self.free.append(&mut self.limbo);
    }

    /// Returns the row. Returns `None` if it is gone.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        if let Some(read) = id.read() {
            reads::note(read);
        }
        let (part, place) = position(id.index());
        self.parts.get(part)?.get().get(place)?.as_ref()
    }

    /// Returns all rows in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let numbered = self.parts.iter().flat_map(Part::get).enumerate();
        numbered.filter_map(|(index, row)| Some((I::new(index as u32), row.as_ref()?)))
    }

    /// Returns all ids in order.
    pub fn ids(&self) -> impl Iterator<Item = I> + '_ {
        self.iter().map(|(id, _)| id)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }
}

/// Values for the rows of another table, stored in parts of [`PART`] values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Column<I, T> {
    parts: Vec<Part<T>>,
    id: PhantomData<I>,
}

impl<I, T> Default for Column<I, T> {
    fn default() -> Self {
        Self { parts: Vec::new(), id: PhantomData }
    }
}

impl<I: Id, T> Column<I, T> {
    /// Returns the value of the row. Returns `None` if it has none.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        if let Some(read) = id.read().and_then(Read::of_usage) {
            reads::note(read);
        }
        let (part, place) = position(id.index());
        self.parts.get(part)?.get().get(place)?.as_ref()
    }

    /// Returns all values in the order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let parts = self.parts.iter().enumerate();
        let rows = parts.flat_map(|(part, rows)| {
            rows.get().iter().enumerate().map(move |(place, row)| (part * PART + place, row))
        });
        rows.filter_map(|(index, row)| Some((row_id(index), row.as_ref()?)))
    }

    /// True if no row has a value.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().flat_map(Part::get).all(Option::is_none)
    }

    /// Lets copies made from now on share the values, until either side writes to their part.
    pub fn share(&mut self) {
        self.parts.iter_mut().for_each(Part::share);
    }
}

impl<I: Id, T: Clone> Column<I, T> {
    /// Returns the value of the row for writing. Returns `None` if it has none.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        let (part, place) = position(id.index());
        self.parts.get_mut(part)?.get_mut().get_mut(place)?.as_mut()
    }

    /// Returns the slot for the value of the row. The slot is created if necessary.
    #[inline]
    pub fn place(&mut self, id: I) -> &mut Option<T> {
        let (part, place) = position(id.index());
        if self.parts.get(part).is_none_or(|rows| rows.get().is_empty()) {
            self.create(part);
        }
        &mut self.parts[part].get_mut()[place]
    }

    #[cold]
    fn create(&mut self, part: usize) {
        if self.parts.len() <= part {
            self.parts.resize_with(part + 1, Part::default);
        }
        self.parts[part].get_mut().resize_with(PART, || None);
    }

    /// Removes the value of the row and returns it.
    #[inline]
    pub fn take(&mut self, id: I) -> Option<T> {
        let (part, place) = position(id.index());
        let rows = self.parts.get_mut(part)?;
        // A part that copies have too stays as it is if there is nothing to take.
        rows.get().get(place)?.as_ref()?;
        rows.get_mut().get_mut(place)?.take()
    }

    /// Takes values of its own: those that another column has, too, are copied.
    pub fn unshare(&mut self) {
        self.parts.iter_mut().for_each(Part::unshare);
    }
}

/// Returns the part of a row, and its index within the part.
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

impl<I: Id, T: Clone> IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        self.get_mut(id).expect("ids are handed out by this table and outlive the cycle")
    }
}

impl<I: Id, T: Clone> CopyOnWriteMember for Table<I, T> {
    fn share(&mut self) {
        self.parts.iter_mut().for_each(Part::share);
    }

    fn unshare(&mut self) {
        self.parts.iter_mut().for_each(Part::unshare);
    }

    #[cfg(test)]
    fn addresses(&mut self) -> Vec<usize> {
        self.parts.iter_mut().flat_map(Part::addresses).collect()
    }
}

impl<I: Id, T: Clone> CopyOnWriteMember for Column<I, T> {
    fn share(&mut self) {
        Column::share(self);
    }

    fn unshare(&mut self) {
        Column::unshare(self);
    }

    #[cfg(test)]
    fn addresses(&mut self) -> Vec<usize> {
        self.parts.iter_mut().flat_map(Part::addresses).collect()
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
        assert!(column.iter().map(|(id, value)| (id, *value - 1)).eq(ids.into_iter().zip(0..)));
        for (number, &id) in ids.iter().enumerate() {
            assert!(!column.is_empty());
            assert_eq!((column.take(id), column.take(id)), (Some(number as u32 + 1), None));
        }
        assert!(column.is_empty());
    }

    #[test]
    fn ans_64_a_copy_of_a_column_shares_parts_until_one_side_writes() {
        let mut column: Column<TaskId, u32> = Column::default();
        let ids = [1, PART as u32 + 1].map(TaskId::new);
        ids.iter().for_each(|&id| *column.place(id) = Some(7));
        column.share();
        let mut copy = column.clone();
        *copy.place(ids[0]) = Some(8);
        assert_eq!((column.take(ids[1]), column.get(ids[0])), (Some(7), Some(&7)));
        assert_eq!(ids.map(|id| copy.get(id).copied()), [Some(8), Some(7)]);
    }
}

//! Logs of changed rows, for caches that keep a value per row. A reader learns which rows changed
//! since its last read, and revalidates only their values.
//!
//! Exact because
//! - a log has one entry per row, so it names each row that changed, and none twice,
//! - a reader that comes after [`ChangeLog::forget`] learns that any row may have changed.
//!
//! A log needs no more memory than its table, and no entry is ever dropped for lack of room.
//! Specification: actions.md 12.2 (S2: versioned results per class and node), 12.3.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use crate::copy_on_write::{CopyOnWrite, CopyOnWriteMember};
use crate::ids::Id;

/// A stamp of a state. Equal revisions of one owner mean that nothing changed in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Revision(u64);

impl Revision {
    /// Increases the revision, so that it equals no earlier one.
    pub fn advance(&mut self) {
        self.0 += 1;
    }
}

/// The link at either end of the list: there is no further row.
const NO_ROW: u32 = u32::MAX;

/// The changed rows of a table, as a doubly linked list in the order of their last changes. A
/// change costs constant time; a read costs one step per row that it yields.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeLog<I> {
    revision: Revision,
    /// Revision of the last [`ChangeLog::forget`]. A reader whose last read is older must visit
    /// every row.
    forgotten_until: Revision,
    /// The row that changed last. [`NO_ROW`] if no row has changed yet.
    newest: u32,
    /// Links of the rows, by row index.
    entries: CopyOnWrite<Vec<LogEntry>>,
    id: PhantomData<I>,
}

/// The links of one row in the list, and its last change.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct LogEntry {
    /// Revision of the last change. It is 0 if the row never changed; then the row is not in the
    /// list.
    changed_at: Revision,
    older: u32,
    newer: u32,
}

impl LogEntry {
    const UNCHANGED: Self = Self { changed_at: Revision(0), older: NO_ROW, newer: NO_ROW };
}

impl<I> Default for ChangeLog<I> {
    fn default() -> Self {
        Self {
            revision: Revision(0),
            forgotten_until: Revision(0),
            newest: NO_ROW,
            entries: CopyOnWrite::default(),
            id: PhantomData,
        }
    }
}

impl<I: Id> ChangeLog<I> {
    /// Returns the revision of the log. It increases with every change.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Records that the row changed: its entry moves to the newest end of the list.
    pub fn push(&mut self, row: I) {
        self.revision.advance();
        let (index, entries) = (row.index(), self.entries.get_mut());
        if entries.len() <= index {
            entries.resize(index + 1, LogEntry::UNCHANGED);
        }
        let row = index as u32;
        if self.newest != row {
            let entry = entries[index];
            unlink(entries, entry);
            if let Some(before) = entries.get_mut(self.newest as usize) {
                before.newer = row;
            }
            (entries[index].older, entries[index].newer) = (self.newest, NO_ROW);
            self.newest = row;
        }
        entries[index].changed_at = self.revision;
    }

    /// Records that any row may have changed. At its next read, every reader must visit all rows.
    pub fn forget(&mut self) {
        self.revision.advance();
        self.forgotten_until = self.revision;
    }
}

/// Removes an entry from the list by linking its neighbours. It must not be the newest entry.
fn unlink(entries: &mut [LogEntry], entry: LogEntry) {
    if let Some(older) = entries.get_mut(entry.older as usize) {
        older.newer = entry.newer;
    }
    if let Some(newer) = entries.get_mut(entry.newer as usize) {
        newer.older = entry.older;
    }
}

/// The position of one reader in a log. A reader that has not read yet must visit every row.
#[derive(Debug)]
pub struct ChangeReader<I> {
    /// Revision of the log at the last read. `None` if the reader has not read yet.
    read_until: Option<Revision>,
    id: PhantomData<I>,
}

impl<I> Clone for ChangeReader<I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I> Copy for ChangeReader<I> {}

impl<I> Default for ChangeReader<I> {
    fn default() -> Self {
        Self { read_until: None, id: PhantomData }
    }
}

impl<I: Id> ChangeReader<I> {
    /// Returns a reader that knows the present state of all rows.
    pub fn at_end(log: &ChangeLog<I>) -> Self {
        Self { read_until: Some(log.revision), id: PhantomData }
    }

    /// Returns the rows that changed since the last read, and moves the reader to the end of the
    /// log. Returns `None` if any row may have changed.
    pub fn read<'l>(&mut self, log: &'l ChangeLog<I>) -> Option<ChangedRows<'l, I>> {
        let unread = self.unread(log);
        *self = Self::at_end(log);
        unread
    }

    /// Returns the rows that changed since the last read. The reader does not move. Returns `None`
    /// if any row may have changed.
    pub fn unread<'l>(&self, log: &'l ChangeLog<I>) -> Option<ChangedRows<'l, I>> {
        let known = log.forgotten_until..=log.revision;
        let read_until = self.read_until.filter(|read_until| known.contains(read_until))?;
        Some(ChangedRows { log, read_until, next: log.newest })
    }
}

/// Iterator over changed rows, latest change first. It yields each row once.
#[derive(Clone, Debug)]
pub struct ChangedRows<'l, I> {
    log: &'l ChangeLog<I>,
    read_until: Revision,
    next: u32,
}

impl<I: Id> Iterator for ChangedRows<'_, I> {
    type Item = I;

    fn next(&mut self) -> Option<I> {
        let entry = self.log.entries.get().get(self.next as usize)?;
        let is_new = self.read_until < entry.changed_at;
        let row = std::mem::replace(&mut self.next, if is_new { entry.older } else { NO_ROW });
        is_new.then(|| I::new(row))
    }
}

impl<I: Id> CopyOnWriteMember for ChangeLog<I> {
    fn share(&mut self) {
        self.entries.share();
    }

    fn unshare(&mut self) {
        self.entries.unshare();
    }

    #[cfg(test)]
    fn addresses(&mut self) -> Vec<usize> {
        self.entries.addresses()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::NodeId;

    fn rows(changed: Option<ChangedRows<'_, NodeId>>) -> Option<Vec<usize>> {
        changed.map(|changed| changed.map(Id::index).collect())
    }

    #[test]
    fn a_reader_sees_each_row_once_that_changed_after_it() {
        let mut log = ChangeLog::<NodeId>::default();
        let mut reader = ChangeReader::default();
        assert_eq!(rows(reader.read(&log)), None, "it has never read");
        assert_eq!(rows(reader.read(&log)), Some(vec![]));
        [1, 2, 2, 0, 1].map(NodeId::new).into_iter().for_each(|row| log.push(row));
        assert_eq!(rows(reader.unread(&log)), Some(vec![1, 0, 2]));
        assert_eq!(rows(reader.read(&log)), Some(vec![1, 0, 2]));
        assert_eq!(rows(ChangeReader::at_end(&log).read(&log)), Some(vec![]));
        log.push(NodeId::new(1));
        assert_eq!(rows(reader.read(&log)), Some(vec![1]), "again, after it was read");
        assert_eq!(rows(reader.read(&ChangeLog::default())), None, "this log is another one");
    }

    #[test]
    fn a_reader_of_what_was_forgotten_looks_at_every_row() {
        let mut log = ChangeLog::<NodeId>::default();
        let (mut early, mut late) = (ChangeReader::at_end(&log), ChangeReader::at_end(&log));
        log.push(NodeId::new(7));
        log.forget();
        assert_eq!(rows(early.read(&log)), None);
        log.push(NodeId::new(3));
        assert_eq!(rows(early.read(&log)), Some(vec![3]));
        assert_eq!(rows(late.read(&log)), None);
    }

    #[test]
    fn ans_64_a_copy_of_a_log_goes_on_alone() {
        let mut log = ChangeLog::<NodeId>::default();
        [1, 2, 0].map(NodeId::new).into_iter().for_each(|row| log.push(row));
        log.share();
        let (mut copy, mut reader) = (log.clone(), ChangeReader::at_end(&log));
        let mut of_copy = reader;
        [2, 5].map(NodeId::new).into_iter().for_each(|row| log.push(row));
        copy.push(NodeId::new(1));
        assert_eq!(rows(reader.read(&log)), Some(vec![5, 2]));
        assert_eq!(rows(of_copy.read(&copy)), Some(vec![1]));
    }

    proptest! {
        #[test]
        fn readers_see_what_a_plain_list_says(
            steps in prop::collection::vec((0..9_u32, 0..4_usize), 0..200),
        ) {
            let mut log = ChangeLog::<NodeId>::default();
            let mut readers = [ChangeReader::at_end(&log); 4];
            let (mut list, mut read) = (Vec::new(), [0; 4]);
            for (row, reader) in steps {
                log.push(NodeId::new(row));
                list.push(row as usize);
                let mut expected: Vec<usize> = Vec::new();
                for &row in list[read[reader]..].iter().rev() {
                    if !expected.contains(&row) {
                        expected.push(row);
                    }
                }
                prop_assert_eq!(rows(readers[reader].read(&log)), Some(expected));
                read[reader] = list.len();
            }
        }
    }
}

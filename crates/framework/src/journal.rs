//! The journal of a session: the operations of the open statements, and a version of the state. A
//! version stands for one state only. A rollback restores the version of the earlier state, so
//! results computed in a state are valid while the version is the same. Specification: actions.md
//! 12.2 S7, S11; `a_number_stands_for_one_state` shows it.

use crate::statement::Op;

/// A state that a statement goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateMark {
    /// Number of operations before it.
    place: usize,
    version: u64,
}

/// Operations in order, each with the version of the state before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    ops: Vec<Op>,
    before: Vec<u64>,
    version: u64,
    n_versions: u64,
}

impl Journal {
    /// Returns the version of the present state.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Assigns new versions to the present and all earlier states. Used for changes outside the
    /// journal, and when operations can no longer be undone.
    pub(crate) fn touch(&mut self) {
        for place in 0..self.before.len() {
            self.before[place] = self.fresh();
        }
        self.version = self.fresh();
    }

    /// Assigns a new version for a change outside the journal that is reversed before the newest
    /// operation is undone.
    pub(crate) fn depart(&mut self) {
        self.version = self.fresh();
    }

    fn fresh(&mut self) -> u64 {
        self.n_versions += 1;
        self.n_versions
    }

    /// Appends an operation that was applied.
    pub(crate) fn push(&mut self, op: Op) {
        self.ops.push(op);
        self.before.push(self.version);
        self.version = self.fresh();
    }

    /// Removes the newest operation, which the caller undoes, and restores the version before it.
    pub(crate) fn pop(&mut self) -> Option<Op> {
        self.version = self.before.pop()?;
        self.ops.pop()
    }

    /// Removes the operations from this position on and returns them; they stay applied.
    pub(crate) fn split_off(&mut self, start: usize) -> Vec<Op> {
        self.before.truncate(start);
        self.touch();
        self.ops.split_off(start)
    }

    /// Returns the present state.
    pub(crate) fn state_mark(&self) -> StateMark {
        StateMark { place: self.ops.len(), version: self.version }
    }

    /// True if only operations of the journal lie between that state and the present one.
    pub(crate) fn goes_on_from(&self, state: StateMark) -> bool {
        self.version_at(state.place) == Some(state.version)
    }

    /// Returns the version of the state before the operation at this position, or of the present state
    /// behind the last one.
    fn version_at(&self, place: usize) -> Option<u64> {
        match place == self.ops.len() {
            true => Some(self.version),
            false => self.before.get(place).copied(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// Returns the operations from this position on.
    pub(crate) fn from(&self, start: usize) -> &[Op] {
        self.ops.get(start..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use vc_model::{Id, NodeId, TaskId};

    use super::*;

    #[test]
    fn a_number_stands_for_one_state() {
        let op = |task| Op::Allocate { task: TaskId::new(task), node: NodeId::new(0) };
        let mut journal = Journal::default();
        let empty = journal.version();
        journal.push(op(1));
        let one = journal.version();
        assert_ne!(one, empty);
        journal.push(op(2));
        assert_eq!(journal.from(1), [op(2)]);
        assert_eq!(journal.pop(), Some(op(2)));
        assert_eq!(journal.version(), one, "rolled back to");
        assert_eq!([0, 1, 2].map(|at| journal.version_at(at)), [Some(empty), Some(one), None]);
        journal.push(op(2));
        let two = journal.version();
        assert!(two != one && two != empty);
        journal.depart();
        assert!(![two, one, empty].contains(&journal.version()));
        assert_eq!(journal.split_off(1), [op(2)]);
        assert_ne!(journal.version(), two, "it cannot be undone any more");
        assert_eq!(journal.pop(), Some(op(1)));
        assert_ne!(journal.version(), empty, "what was taken out is still applied");
        assert_eq!((journal.len(), journal.pop()), (0, None));
    }
}

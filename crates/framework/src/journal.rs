//! The journal of a session: what the open statements did, and a number for the state that they
//! led to. A number stands for one state only, and a state that is rolled back to has its number
//! again, so that what was worked out in a state holds as long as the number is the same.
//! Specification: actions.md 12.2 S7, S11; `a_number_stands_for_one_state` shows it.

use crate::statement::Op;

/// Operations in order, each with the number of the state before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    ops: Vec<Op>,
    before: Vec<u64>,
    version: u64,
    n_versions: u64,
}

impl Journal {
    /// The number of the present state.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The state was changed otherwise, or operations are no longer to be undone; no state from
    /// before is rolled back to.
    pub(crate) fn touch(&mut self) {
        for place in 0..self.before.len() {
            self.before[place] = self.fresh();
        }
        self.version = self.fresh();
    }

    /// Something was changed out of turn, which is undone before the newest operation is.
    pub(crate) fn depart(&mut self) {
        self.version = self.fresh();
    }

    fn fresh(&mut self) -> u64 {
        self.n_versions += 1;
        self.n_versions
    }

    /// The operation was applied.
    pub(crate) fn push(&mut self, op: Op) {
        self.ops.push(op);
        self.before.push(self.version);
        self.version = self.fresh();
    }

    /// Takes the newest operation out; it is undone now.
    pub(crate) fn pop(&mut self) -> Option<Op> {
        self.version = self.before.pop()?;
        self.ops.pop()
    }

    /// Takes out what was pushed from this position on; it stays applied.
    pub(crate) fn split_off(&mut self, start: usize) -> Vec<Op> {
        self.before.truncate(start);
        self.touch();
        self.ops.split_off(start)
    }

    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// From this position on.
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

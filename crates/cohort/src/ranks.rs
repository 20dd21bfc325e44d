//! The order in which groups are taken as numbers, kept from search to search: only groups that came
//! since are put in their places. Specification: cohort.md A.5 keys 4 to 6, B.11.

use std::cmp::Reverse;

use crate::group::{Group, GroupId};

/// Lower priority, then later admission.
type RankKey = (i32, Reverse<i64>);

/// All groups in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupRanks {
    order: Vec<(RankKey, GroupId)>,
    /// By group: its place in the order.
    ranks: Vec<u32>,
    /// Groups that came, and places that were given up, since the order was made.
    came: Vec<GroupId>,
    went: Vec<GroupId>,
}

impl GroupRanks {
    pub(crate) fn came(&mut self, group: GroupId) {
        self.came.push(group);
    }

    pub(crate) fn went(&mut self, group: GroupId) {
        self.went.push(group);
    }

    /// Makes the order again. `is_in`: by group, whether there is such a group.
    pub(crate) fn update(&mut self, rows: &[Group], is_in: &[bool]) {
        if self.came.is_empty() && self.went.is_empty() {
            return;
        }
        let mut has_left = vec![false; rows.len()];
        self.went.drain(..).for_each(|group| has_left[group.index()] = true);
        self.order.retain(|(_, group)| !has_left[group.index()]);
        self.came.sort_unstable();
        self.came.dedup();
        let came = self.came.drain(..).filter(|group| is_in[group.index()]);
        self.order.extend(came.map(|group| {
            let row = &rows[group.index()];
            ((row.priority, Reverse(row.admitted_micros)), group)
        }));
        // What was in order stays a run, which the sort takes as it is.
        let uid = |group: GroupId| &rows[group.index()].uid;
        self.order.sort_by(|l, r| l.0.cmp(&r.0).then_with(|| uid(l.1).cmp(uid(r.1))));
        self.ranks.resize(rows.len(), 0);
        for (rank, (_, group)) in (0..).zip(&self.order) {
            self.ranks[group.index()] = rank;
        }
    }

    /// Place of the group; the order is up to date.
    pub(crate) fn of(&self, group: GroupId) -> u32 {
        debug_assert!(self.came.is_empty() && self.went.is_empty(), "nobody made the order again");
        self.ranks[group.index()]
    }
}

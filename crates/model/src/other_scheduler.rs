//! The schedulers that decide about pods on the nodes of this one. A row of a pod has a number of one
//! byte in place of a name. Specification: core.md 4.2, 4.4, answers.md 2 (ANS-5).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Names that are kept at once. Number 0 is this scheduler, and the last number has no name.
const MOST_NAMES: usize = 254;
/// Longest name that is kept, in bytes. Names of objects are not longer.
const LONGEST_NAME: usize = 253;

/// A scheduler that decides about a pod in place of this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OtherScheduler {
    /// The `spec.schedulerName` of the pod.
    ByName(Arc<str>),
    /// The scheduler that the division of work gives the pod to. `spec.schedulerName` is ours.
    ByDivision(Arc<str>),
    /// A scheduler whose name is not kept, as too many others are.
    Unnamed,
}

static UNNAMED: OtherScheduler = OtherScheduler::Unnamed;

impl OtherScheduler {
    fn name(&self) -> &str {
        match self {
            Self::ByName(name) | Self::ByDivision(name) => name,
            Self::Unnamed => "",
        }
    }
}

/// The number of the scheduler that decides about a pod. The default is this scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SchedulerNumber(u8);

impl SchedulerNumber {
    const OURS: Self = Self(0);
    const UNNAMED: Self = Self(u8::MAX);

    /// Returns the number of a row.
    fn of_row(row: usize) -> Self {
        u8::try_from(row + 1).map_or(Self::UNNAMED, Self)
    }

    /// Returns the row of [`OtherSchedulers`]. A scheduler without a name has a number behind the
    /// last row. Returns `None` for this scheduler.
    fn row(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }
}

/// The schedulers that decide about pods in place of this one, with their names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct OtherSchedulers {
    rows: Vec<CountedScheduler>,
}

/// A scheduler with the number of its pods. One without pods keeps its row until a new name needs
/// it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CountedScheduler {
    scheduler: OtherScheduler,
    n_pods: u32,
}

impl OtherSchedulers {
    /// Returns the number of a scheduler, and counts one more pod of it. `None` is this scheduler.
    pub(crate) fn acquire(&mut self, scheduler: Option<OtherScheduler>) -> SchedulerNumber {
        let Some(scheduler) = scheduler else { return SchedulerNumber::OURS };
        let Some(row) = self.row_for(scheduler) else { return SchedulerNumber::UNNAMED };
        self.rows[row].n_pods += 1;
        SchedulerNumber::of_row(row)
    }

    /// Counts one pod less.
    pub(crate) fn release(&mut self, number: SchedulerNumber) {
        let row = number.row().and_then(|row| self.rows.get_mut(row));
        if let Some(row) = row {
            row.n_pods = row.n_pods.saturating_sub(1);
        }
    }

    /// Returns the scheduler of a number. Returns `None` for this scheduler.
    pub(crate) fn get(&self, number: SchedulerNumber) -> Option<&OtherScheduler> {
        let row = self.rows.get(number.row()?);
        Some(row.map_or(&UNNAMED, |row| &row.scheduler))
    }

    /// Returns the row of a scheduler, which is new if it has none. Returns `None` if its name is not
    /// kept.
    fn row_for(&mut self, scheduler: OtherScheduler) -> Option<usize> {
        let known = self.rows.iter().position(|row| row.scheduler == scheduler);
        if known.is_some() || LONGEST_NAME < scheduler.name().len() {
            return known;
        }
        let unused = self.rows.iter().position(|row| row.n_pods == 0);
        let row = CountedScheduler { scheduler, n_pods: 0 };
        match unused {
            Some(unused) => self.rows[unused] = row,
            None if self.rows.len() < MOST_NAMES => self.rows.push(row),
            None => return None,
        }
        unused.or_else(|| self.rows.len().checked_sub(1))
    }

    /// Returns the number of pods of each row.
    pub(crate) fn n_pods(&self) -> Vec<u32> {
        self.rows.iter().map(|row| row.n_pods).collect()
    }

    /// Returns the number of pods of each row, counted anew.
    pub(crate) fn counted(&self, pods: impl Iterator<Item = SchedulerNumber>) -> Vec<u32> {
        let mut n_pods = vec![0; self.rows.len()];
        for row in pods.filter_map(SchedulerNumber::row) {
            if let Some(count) = n_pods.get_mut(row) {
                *count += 1;
            }
        }
        n_pods
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Option<OtherScheduler> {
        Some(OtherScheduler::ByName(name.into()))
    }

    #[test]
    fn ans_05_a_scheduler_keeps_its_number_until_another_needs_it() {
        let mut schedulers = OtherSchedulers::default();
        let [first, second] = ["first", "second"].map(|name| schedulers.acquire(named(name)));
        assert_eq!(schedulers.acquire(named("second")), second);
        assert_eq!(schedulers.acquire(None), SchedulerNumber::default());
        assert_eq!(schedulers.get(SchedulerNumber::default()), None);
        schedulers.release(first);
        assert_eq!(schedulers.acquire(named("first")), first, "it was not needed");
        schedulers.release(first);
        assert_eq!(schedulers.acquire(named("third")), first);
        assert_eq!(schedulers.get(first).cloned(), named("third"));
        assert_eq!(schedulers.get(second).cloned(), named("second"));
        assert_eq!(schedulers.n_pods(), [1, 2]);
        let pods = [first, second, SchedulerNumber::OURS, second, SchedulerNumber::UNNAMED];
        assert_eq!(schedulers.counted(pods.into_iter()), [1, 2]);
    }

    #[test]
    fn ans_05_what_decides_is_part_of_a_scheduler() {
        let mut schedulers = OtherSchedulers::default();
        let by_name = schedulers.acquire(named("s-1"));
        let by_division = schedulers.acquire(Some(OtherScheduler::ByDivision("s-1".into())));
        assert_ne!(by_name, by_division);
    }

    #[test]
    fn ans_05_names_of_schedulers_are_bounded() {
        let mut schedulers = OtherSchedulers::default();
        let numbers: Vec<SchedulerNumber> =
            (0..300).map(|name| schedulers.acquire(named(&format!("s-{name}")))).collect();
        let last_named = numbers[MOST_NAMES - 1];
        assert_eq!(schedulers.get(last_named).cloned(), named("s-253"));
        for number in &numbers[MOST_NAMES..] {
            assert_eq!(schedulers.get(*number), Some(&OtherScheduler::Unnamed));
            schedulers.release(*number);
        }
        assert_eq!(schedulers.n_pods(), [1; MOST_NAMES]);
        schedulers.release(last_named);
        assert_eq!(schedulers.acquire(named(&"s".repeat(254))), SchedulerNumber::UNNAMED, "long");
        assert_eq!(schedulers.acquire(named(&"s".repeat(253))), last_named);
    }
}

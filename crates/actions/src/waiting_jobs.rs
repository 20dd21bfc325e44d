//! The waiting jobs of one queue, in job order.
//!
//! Placements and evictions may change the order of jobs, if a plugin's JobOrder reads usage of the
//! queue ([`vc_framework::PluginSet::job_order_moves`]). The fast evaluator then keeps one sorted
//! list per line, and a tournament over the first jobs of the lines.
//!
//! Exact because:
//! - jobs of one line keep their order among themselves ([`vc_framework::CacheKeys::job_line`]),
//! - the first job of all is the first job of its line,
//! - a line plays again when one of its jobs was taken or has lost pods.
//!
//! Specification: actions.md 2.5, fair-share.md 17.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use vc_framework::SessionState;
use vc_model::{JobId, TournamentTree};

/// How the order of the waiting jobs is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OrderUpkeep {
    /// One list that stays sorted, except for jobs that lose pods.
    #[default]
    Sorted,
    /// One list that is sorted again before each turn.
    SortedAnew,
    /// One sorted list per line.
    Lines,
}

/// The waiting jobs of one queue.
#[derive(Debug, Default)]
pub(crate) struct WaitingJobs {
    upkeep: OrderUpkeep,
    /// Lists of jobs, the first job of each last. There is one list unless `upkeep` is `Lines`.
    lists: Vec<Vec<JobId>>,
    /// Place in `lists` by line. The map is only looked up, never iterated.
    places: FxHashMap<u64, usize>,
    /// The first job of each list, for `Lines`.
    tournament: TournamentTree<Option<JobId>>,
    /// Places in `lists` whose first job or whose position may have changed.
    moved: BTreeSet<usize>,
}

impl WaitingJobs {
    /// Creates an empty list. `is_fast` is false in the plain evaluator.
    pub(crate) fn new(session: &SessionState<'_>, is_fast: bool) -> Self {
        let plugins = session.plugins();
        let upkeep = match (plugins.job_order_moves(), is_fast && plugins.has_job_lines()) {
            (false, _) => OrderUpkeep::Sorted,
            (true, false) => OrderUpkeep::SortedAnew,
            (true, true) => OrderUpkeep::Lines,
        };
        Self { upkeep, ..Self::default() }
    }

    /// Adds jobs.
    pub(crate) fn extend(&mut self, session: &SessionState<'_>, jobs: &[JobId]) {
        let mut grown = BTreeSet::new();
        for &job in jobs {
            let place = self.place(session, job);
            self.lists[place].push(job);
            grown.insert(place);
        }
        grown.iter().for_each(|&place| sort(session, &mut self.lists[place]));
        self.moved.extend(grown);
    }

    /// Inserts a job at its current position.
    pub(crate) fn insert(&mut self, session: &SessionState<'_>, job: JobId) {
        let place = self.place(session, job);
        let list = &mut self.lists[place];
        let at = list.partition_point(|&other| {
            session.plugins().job_order(session.view(), other, job).is_gt()
        });
        list.insert(at, job);
        self.moved.insert(place);
    }

    /// Returns the first job in the current order.
    pub(crate) fn first(&mut self, session: &SessionState<'_>) -> Option<JobId> {
        match self.upkeep {
            OrderUpkeep::Sorted => {}
            OrderUpkeep::SortedAnew => self.sort(session),
            OrderUpkeep::Lines => {
                self.play_again(session);
                return self.tournament.first();
            }
        }
        self.lists.first()?.last().copied()
    }

    /// Takes the first job in the current order.
    pub(crate) fn pop(&mut self, session: &SessionState<'_>) -> Option<JobId> {
        let first = self.first(session)?;
        let place = match self.upkeep {
            OrderUpkeep::Sorted | OrderUpkeep::SortedAnew => 0,
            OrderUpkeep::Lines => self.place(session, first),
        };
        self.moved.insert(place);
        self.lists[place].pop()
    }

    /// Sorts all jobs by the current order.
    pub(crate) fn sort(&mut self, session: &SessionState<'_>) {
        self.lists.iter_mut().for_each(|list| sort(session, list));
        self.moved.extend(0..self.lists.len());
    }

    /// Moves jobs of the queue that have lost pods to their current positions. Not all of them need
    /// to wait. Returns true if the first job may have changed.
    pub(crate) fn reposition(
        &mut self,
        session: &SessionState<'_>,
        losers: &BTreeSet<JobId>,
    ) -> bool {
        let mut has_changed = false;
        if self.upkeep == OrderUpkeep::Lines {
            for &job in losers {
                let line = session.plugins().job_line(session.view(), job);
                if let Some(&place) = self.places.get(&line) {
                    self.moved.insert(place);
                    has_changed = true;
                }
            }
        }
        // All moved jobs are taken out first, since a position is found only in a sorted list.
        let mut taken = Vec::new();
        for list in &mut self.lists {
            taken.extend(list.extract_if(.., |job| losers.contains(job)));
        }
        has_changed |= !taken.is_empty() || self.upkeep == OrderUpkeep::SortedAnew;
        taken.into_iter().for_each(|job| self.insert(session, job));
        has_changed
    }

    /// Returns the jobs in the current order, the first one last.
    pub(crate) fn into_jobs(mut self, session: &SessionState<'_>) -> Vec<JobId> {
        let mut jobs = match self.lists.len() {
            0 | 1 => self.lists.pop().unwrap_or_default(),
            _ => self.lists.concat(),
        };
        if self.upkeep != OrderUpkeep::Sorted {
            sort(session, &mut jobs);
        }
        jobs
    }

    /// Returns the place of the job's list. A list that is missing is created.
    fn place(&mut self, session: &SessionState<'_>, job: JobId) -> usize {
        let line = match self.upkeep {
            OrderUpkeep::Sorted | OrderUpkeep::SortedAnew => 0,
            OrderUpkeep::Lines => session.plugins().job_line(session.view(), job),
        };
        let lists = &mut self.lists;
        *self.places.entry(line).or_insert_with(|| {
            lists.push(Vec::new());
            lists.len() - 1
        })
    }

    fn play_again(&mut self, session: &SessionState<'_>) {
        let (plugins, view) = (session.plugins(), session.view());
        for place in std::mem::take(&mut self.moved) {
            let first = self.lists[place].last().copied();
            self.tournament.set(place, first, |later, earlier| match (later, earlier) {
                (Some(l), Some(r)) => plugins.job_order(view, l, r).is_lt(),
                (later, None) => later.is_some(),
                (None, Some(_)) => false,
            });
        }
    }
}

/// Sorts jobs, the first one last.
fn sort(session: &SessionState<'_>, jobs: &mut [JobId]) {
    jobs.sort_by(|&l, &r| session.plugins().job_order(session.view(), r, l));
}

//! The accounts that come before a job because they have used less, as a sentence after Volcano's
//! text. Specification: fair-share.md 13.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use vc_model::{JobId, QueueId, TaskStatus};

use crate::plugin::PastUsage;
use crate::session::SessionState;

/// Number of accounts that the sentence names.
const N_NAMES: usize = 3;

/// Cache of the first waiting job of each account, by queue, of one state.
#[derive(Debug, Default)]
pub(crate) struct AccountsAhead {
    /// In JobOrder, by queue and by whether the jobs wait for admission. Looked up by key only.
    first_jobs: FxHashMap<(QueueId, bool), Vec<JobId>>,
}

impl AccountsAhead {
    /// Returns `Behind accounts a and b of queue q, which have used less.` Returns `None` if no plugin
    /// remembers usage, the job does not wait, or no account comes before it for its usage.
    pub(crate) fn sentence(&mut self, session: &SessionState<'_>, job: JobId) -> Option<String> {
        let (plugins, view) = (session.plugins(), session.view());
        let usage = plugins.past_usage()?;
        usage.account(view, job).filter(|_| waits(session, job))?;
        let row = &session.jobs[job];
        let of_queue = (row.queue, row.is_pending());
        let first_jobs =
            self.first_jobs.entry(of_queue).or_insert_with(|| first_jobs(session, usage, of_queue));
        let n_before = first_jobs.partition_point(|&it| plugins.job_order(view, it, job).is_lt());
        let mut ahead = first_jobs[..n_before]
            .iter()
            .filter(|&&it| usage.usage_order(view, job, it).is_lt())
            .filter_map(|&it| usage.account(view, it));
        let names: Vec<&str> = ahead.by_ref().take(N_NAMES).map(|name| &**name).collect();
        let (last, others) = names.split_last()?;
        let list = match (others, ahead.next()) {
            ([], None) => format!("account {last}"),
            (others, None) => format!("accounts {} and {last}", others.join(", ")),
            (_, Some(_)) => format!("accounts {} and others", names.join(", ")),
        };
        let have = if names.len() == 1 { "has" } else { "have" };
        let queue = &session.queues[row.queue].name;
        Some(format!("Behind {list} of queue {queue}, which {have} used less."))
    }
}

/// True if the job waits for admission or for a place.
fn waits(session: &SessionState<'_>, job: JobId) -> bool {
    let row = &session.jobs[job];
    row.is_pending() || 0 < row.counts.of(TaskStatus::Pending)
}

/// Returns the first waiting job of each account of a queue, in JobOrder.
fn first_jobs(
    session: &SessionState<'_>,
    usage: &dyn PastUsage,
    of_queue: (QueueId, bool),
) -> Vec<JobId> {
    let (plugins, view) = (session.plugins(), session.view());
    let is_of = |job: JobId| {
        let row = &session.jobs[job];
        (row.queue, row.is_pending()) == of_queue && waits(session, job)
    };
    let order = |l: &JobId, r: &JobId| plugins.job_order(view, *l, *r);
    let mut first: FxHashMap<&str, JobId> = FxHashMap::default();
    for &job in session.info().jobs.iter().filter(|&&job| is_of(job)) {
        let Some(account) = usage.account(view, job) else { continue };
        let entry = first.entry(&**account).or_insert(job);
        if order(&job, entry) == Ordering::Less {
            *entry = job;
        }
    }
    let mut jobs: Vec<JobId> = first.into_values().collect();
    jobs.sort_unstable_by(order);
    jobs
}
